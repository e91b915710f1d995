--
-- Two clean tables with a row a page.
--
CREATE TEMP TABLE t (id int, filler char(5000));
ALTER TABLE t ALTER filler SET STORAGE PLAIN;
INSERT INTO t SELECT g, '' FROM generate_series(1, 500) g;
CREATE TEMP TABLE other (LIKE t INCLUDING STORAGE);
INSERT INTO other SELECT g, '' FROM generate_series(1, 500) g;
ANALYZE t;
ANALYZE other;
SELECT pg_flush_local_buffers() >= 1000 AS clean;
