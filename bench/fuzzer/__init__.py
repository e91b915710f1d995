"""The differential tester: see bench/fuzz.

Python's standard library and psql are all it needs, as the tests run it where
nothing else is to be had.
"""
