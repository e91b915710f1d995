"""bench/versus: temporary tables with temp_parallel off and on, and unlogged tables.

workloads: what is run; report, plot: the output.
"""
