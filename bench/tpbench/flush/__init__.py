"""bench/flush_cost. steps: what is timed; rows: times and their statistics; report: tables, plots."""
