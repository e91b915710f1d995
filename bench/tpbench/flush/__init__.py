"""What a flush costs.

cost is bench/flush_cost: steps measures, samples keeps the raw rows, summary and
results compute, report and plots show. writes is bench/flush_writes.
"""
