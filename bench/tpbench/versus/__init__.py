"""bench/versus: off, on and unlogged tables compared.

workloads and job are what is run, report and plot show the results.
"""
