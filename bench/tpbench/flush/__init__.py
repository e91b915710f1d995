"""bench/flush_cost (cost) and bench/flush_writes (writes): what a flush costs.

buffers, steps: the measurements of bench/flush_cost; samples: its raw rows; machine:
what it ran on; summary, results: its statistics; report, plots: its output.
"""
