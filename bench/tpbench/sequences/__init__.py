"""bench/planner_sequences: the time that decisions to flush lose, over sequences of queries.

grid: the sequences; policy: who decides, and hindsight; report: tables and plots.
"""
