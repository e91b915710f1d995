"""The server's own regression tests as an oracle: see bench/oracle.

Requires only Python's standard library and psql.
"""
