"""The measurements that the programs in bench and script/demo run.

A package each: choice (bench/planner_choice), flush (bench/flush_cost and
bench/flush_writes), versus (bench/versus), and common, what several of them use.
A program of a single module is a module here.
"""
