"""Modules that several programs use.

session: a connection and the arms of a comparison; settings: what all arms share;
tpch: the TPC-H tables and queries; measure: time and answer of a query; progress:
lines on the terminal.
"""
