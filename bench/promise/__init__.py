"""Checks the bound that the accounts of temporary tables guarantee: for any sequence of
statements, the total cost is at most twice that of the best decisions in hindsight."""
