"""bench/pictures: what the pages show of the measurements.

results: doc/data/results.csv, of the outputs of bench/figures; tables: those of the pages; plots,
diagram: the pictures.
"""
