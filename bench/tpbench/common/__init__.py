"""What several programs use.

session is a connection and the arms of a comparison, settings what all arms share,
tpch the TPC-H tables and queries, measure the time and the answer of a query,
progress the lines on the terminal.
"""
