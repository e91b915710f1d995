"""bench/planner_choice and bench/planner_sequences: the time that the planner's choices, and
decisions to flush over sequences of queries, lose.

grid: what is measured; policy: how is decided, and hindsight; run: options, and the way over
the grid; report: tables and plots; choice, sequences: the programs.
"""
