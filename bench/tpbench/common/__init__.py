"""Modules that several programs use.

session: a connection, its settings, and the arms of a comparison; measure: time and
answer of a query; tpch: its tables and queries; machine: what it is and how busy;
arguments: values of options; progress: lines on the terminal; slower (script/demo): why
a query takes longer.
"""
