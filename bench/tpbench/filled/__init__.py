"""bench/fill_and_query: sessions that fill tables and then run the same report.

sequence: what a session does; report, plot: the output.
"""
