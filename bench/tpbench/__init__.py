"""The measurements that the programs in bench and script/demo run.

Packages: choice (bench/planner_choice), flush (bench/flush_cost, bench/flush_writes),
versus (bench/versus), and common, which several of them use. Programs of a single
module: demo, worker_pool.
"""
