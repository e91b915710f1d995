"""Measurements of temp_parallel: what bench/versus and script/demo share.

Each module is one concern: session (connections and arms), tpch and workloads
(what is run), measure (how it is timed and compared), progress and report
(what is shown).
"""
