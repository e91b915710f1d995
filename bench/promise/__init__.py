"""Checks the promise of temp_parallel.flush_investment: for any sequence of statements,
the total cost is at most twice that of the best decisions made in hindsight."""
