"""The server's own regression tests as an oracle: see bench/oracle.

Python's standard library and psql are all it needs.
"""
