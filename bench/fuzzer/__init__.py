"""The differential tester: see bench/fuzz.

Requires only Python's standard library and psql, as the tests run it where nothing
else is available.
"""
