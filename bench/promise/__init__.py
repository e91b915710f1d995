"""Checks the bound that temp_parallel.flush_investment guarantees: for any sequence of
statements, the total cost is at most twice that of the best decisions in hindsight."""
