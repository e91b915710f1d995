\set ECHO none
--
-- Settings with which every query that may read a temporary table in workers does
-- so: no table is too small for workers, starting them and flushing cost nothing,
-- most of the cost of a query is processing rows, which they share, and there is a
-- processor for each.
--
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
SET temp_parallel.processors = 1000;
SET cpu_tuple_cost = 0.5;
\set ECHO all
