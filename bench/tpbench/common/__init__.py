"""Modules that several programs use.

session: a connection and the arms of a comparison; settings: what all arms share;
tpch: the TPC-H tables and queries; measure: time and answer of a query; machine: what
it is and how busy; calibrate: its constants of the cost model; arguments: values of
options; report: parts of tables; progress: lines on the terminal.
"""
