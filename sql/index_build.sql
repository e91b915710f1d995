--
-- Index builds by workers: which have them, and that the index is right.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
-- A pool that is smaller than the tables: a page that a worker or the leader changes
-- while workers read is written, which fails in a worker.
SET temp_buffers = '800kB';
SET client_min_messages = warning;
\i sql/include/index_checks.sql

-- The storage parameter makes the number of workers independent of the size, as for
-- permanent tables, and of what the preparation costs.
CREATE TEMP TABLE t (id int, k int, s text, v text) WITH (parallel_workers = 2, fillfactor = 80);
-- Rows of several transactions: committed, hinted, HOT-updated, deleted, rolled back.
INSERT INTO t SELECT g, g % 100, 'row ' || g, md5(g::text) FROM generate_series(1, 20000) g;
UPDATE t SET v = v || 'x' WHERE id % 7 = 0;
DELETE FROM t WHERE id % 11 = 0;
BEGIN;
INSERT INTO t SELECT g, g % 100, 'not there', 'x' FROM generate_series(20001, 22000) g;
DELETE FROM t WHERE id % 5 = 0;
ROLLBACK;

CREATE INDEX t_id ON t (id);
SELECT * FROM report();
CREATE UNIQUE INDEX t_unique ON t (id DESC NULLS LAST, s) INCLUDE (k);
SELECT * FROM report();
CREATE INDEX t_collated ON t (s COLLATE "POSIX", k DESC);
CREATE INDEX t_c ON t (s COLLATE "C");
-- slow enough for workers to start before the leader has read all
CREATE INDEX t_expression ON t (md5(v), (k + 1), length(repeat(v, 300)));
CREATE INDEX t_partial ON t (k) WHERE id % 2 = 0 AND s LIKE 'row%';
SELECT * FROM report();
REINDEX INDEX t_id;
SELECT * FROM report();
REINDEX TABLE t;
SELECT * FROM report();
DROP INDEX t_collated, t_c, t_expression, t_partial, t_unique;
ALTER TABLE t ADD PRIMARY KEY (id);
SELECT * FROM report();
ALTER TABLE t ADD UNIQUE (s);
SELECT * FROM report();
-- What rewrites the table.
CLUSTER t USING t_pkey;
SELECT * FROM report();
VACUUM FULL t;
SELECT * FROM report();
ALTER TABLE t ALTER k TYPE bigint;
SELECT * FROM report();
BEGIN;
TRUNCATE t;
INSERT INTO t SELECT g, g, g, g FROM generate_series(1, 5000) g;
REINDEX TABLE t;
SELECT * FROM report();
ROLLBACK;
SELECT * FROM report();
-- What other access methods build, from a certain version on.
SELECT current_setting('server_version_num')::int >= 170000 AS brin_has_workers,
	current_setting('server_version_num')::int >= 180000 AS gin_has_workers \gset
CREATE INDEX t_brin ON t USING brin (id, s);
SELECT report = :'brin_has_workers'::bool::int || ' of 1, right' AS brin FROM report('t', 1);
CREATE INDEX t_gin ON t USING gin (to_tsvector('simple', s));
SELECT report = :'gin_has_workers'::bool::int || ' of 1, right' AS gin FROM report('t', 1);
CREATE INDEX t_hash ON t USING hash (id);
SELECT * FROM report('t', 1);
SET enable_seqscan = off;
SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM t WHERE to_tsvector('simple', s) @@ 'row & 4711'::tsquery;
DROP INDEX t_id, t_hash;
ALTER TABLE t DROP CONSTRAINT t_pkey, DROP CONSTRAINT t_s_key;
SELECT count(*), sum(id) FROM t WHERE id BETWEEN 1000 AND 2000;
RESET enable_seqscan;
RESET max_parallel_workers_per_gather;
DROP INDEX t_brin, t_gin;
SELECT reset_report();

-- Rows of the running transaction and its subtransactions, locked ones, and
-- multixacts; in PL/pgSQL.
BEGIN;
SAVEPOINT a;
UPDATE t SET k = k + 1 WHERE id % 3 = 0;
SAVEPOINT b;
DELETE FROM t WHERE id % 4 = 0;
ROLLBACK TO b;
SELECT count(*) FROM (SELECT FROM t WHERE id % 5 = 0 FOR UPDATE) x;
SAVEPOINT c;
SELECT count(*) FROM (SELECT FROM t WHERE id % 10 = 0 FOR NO KEY UPDATE) x;
UPDATE t SET v = 'own' WHERE id % 10 = 0;
INSERT INTO t SELECT g, g, 'own ' || g, 'x' FROM generate_series(30001, 31000) g;
DELETE FROM t WHERE id % 100 = 1;
DO $$ BEGIN CREATE INDEX t_id ON t (id); CREATE INDEX t_v ON t (v, id); END $$;
SELECT * FROM report();
ROLLBACK TO c;
CREATE UNIQUE INDEX t_id ON t (id, length(repeat(v, 300)));
SELECT * FROM report();
COMMIT;
SELECT * FROM report();
REINDEX INDEX t_id;
SELECT * FROM report();

-- Values in the TOAST table, of which pages have dead rows.
CREATE TEMP TABLE toasted (id int, big text) WITH (parallel_workers = 2);
ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT g, repeat(chr(97 + g % 26), 3000 + g) FROM generate_series(1, 1500) g;
DELETE FROM toasted WHERE id % 3 = 0;
BEGIN;
DELETE FROM toasted WHERE id % 5 = 0;
CREATE INDEX toasted_length ON toasted (length(repeat(big, 30))) WHERE length(big) > 3010;
SELECT * FROM report('toasted');
COMMIT;
UPDATE toasted SET big = big || 'x' WHERE id % 2 = 0;
REINDEX TABLE toasted;
SELECT * FROM report('toasted');
SELECT count(*), sum(length(big)) FROM toasted;

-- Partitions, and a foreign key, whose check reads the table afterwards.
CREATE TEMP TABLE parts (id int, s text) PARTITION BY RANGE (id);
CREATE TEMP TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (5000) WITH (parallel_workers = 2);
CREATE TEMP TABLE part_2 PARTITION OF parts FOR VALUES FROM (5000) TO (10000) WITH (parallel_workers = 2);
INSERT INTO parts SELECT g, 'row ' || g FROM generate_series(1, 9999) g;
ALTER TABLE parts ADD PRIMARY KEY (id);
SELECT * FROM report('part_1', 2);
SELECT * FROM report('part_2', 0);
CREATE TEMP TABLE referring AS SELECT id FROM parts;
ALTER TABLE referring ADD FOREIGN KEY (id) REFERENCES parts;

-- A duplicate key: nothing is left, and the next statement is right.
\set VERBOSITY terse
\set SHOW_CONTEXT never
DROP INDEX t_id;
INSERT INTO t SELECT * FROM t WHERE id = 4711;
CREATE UNIQUE INDEX t_duplicate ON t (id);
BEGIN;
SAVEPOINT a;
CREATE UNIQUE INDEX t_duplicate ON t (id, s);
ROLLBACK TO a;
DELETE FROM t WHERE id = 4711;
CREATE UNIQUE INDEX t_duplicate ON t (id);
ROLLBACK;
DO $$
BEGIN
	INSERT INTO t SELECT * FROM t WHERE id = 4712;
	CREATE UNIQUE INDEX t_duplicate ON t (id);
EXCEPTION WHEN unique_violation THEN
	RAISE WARNING '%', SQLERRM;
END $$;
SELECT reset_report();
CREATE INDEX t_id ON t (id);
SELECT * FROM report();

-- The setting that tells workers is the leader's alone.
SHOW temp_parallel.index_build;
SET temp_parallel.index_build = '1663/1/0/0/100';
SELECT set_config('temp_parallel.index_build', '1663/1/0/0/100', true);
ALTER DATABASE :"DBNAME" SET temp_parallel.index_build = '1663/1/0/0/100';
SELECT count(*) FROM pg_settings WHERE name = 'temp_parallel.index_build';

-- Types of the server's own, and enums, whose values it compares; also of this transaction.
CREATE TYPE color AS ENUM ('red', 'green');
ALTER TABLE t ADD c color, ADD a int[], ADD r int4range;
UPDATE t SET c = (enum_range(NULL::color))[1 + id % 2], a = ARRAY[id, k], r = int4range(id - k::int, id);
SELECT reset_report();
CREATE INDEX t_enum ON t (c, length(repeat(v, 300)));
CREATE INDEX t_array ON t (a, r);
SELECT * FROM report();
BEGIN;
CREATE TYPE fresh AS ENUM ('b', 'c');
ALTER TABLE t ADD f fresh;
UPDATE t SET f = (enum_range(NULL::fresh))[1 + id % 2];
CREATE INDEX t_fresh ON t (f, length(repeat(v, 300)));
SELECT * FROM report();
ROLLBACK;
ALTER TABLE t DROP c, DROP a, DROP r;

-- No workers for user code; the reason is in a message.
CREATE FUNCTION own(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN $1; END';
CREATE FUNCTION own_cmp(int, int) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'btint4cmp';
CREATE OPERATOR CLASS own_ops FOR TYPE int USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 own_cmp(int, int);
CREATE TYPE pair AS (a int, b int);
ALTER TABLE t ADD c pair DEFAULT '(1,2)';
SELECT reset_report();
SELECT * FROM why_not('CREATE INDEX t_own ON t (own(id))');
SELECT * FROM why_not('CREATE INDEX t_own_where ON t (id) WHERE own(id) > 0');
SELECT * FROM why_not('CREATE INDEX t_own_ops ON t (id own_ops)');
SELECT * FROM why_not('CREATE INDEX t_own_type ON t (c)');
SELECT * FROM report('t', 4);
-- Nor if a descriptor has what a function was when it was inlined: workers inline what it is now.
CREATE FUNCTION inlined(int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT $1 + 1';
SELECT * FROM why_not('CREATE INDEX t_inlined ON t (inlined(id)) WHERE inlined(k::int) > 0');
SELECT count(*) FROM t WHERE inlined(id) = 3 AND inlined(k::int) > 0;
SELECT * FROM why_not('REINDEX INDEX t_inlined');
SELECT * FROM report('t', 2);
DROP INDEX t_inlined;
-- Nothing is prepared if no worker is free, or the module is off.
SET max_parallel_workers = 0;
SELECT * FROM why_not('REINDEX INDEX t_id');
RESET max_parallel_workers;
SET temp_parallel.enabled = off;
SELECT * FROM why_not('REINDEX INDEX t_id');
RESET temp_parallel.enabled;
SET max_parallel_maintenance_workers = 0;
SELECT * FROM why_not('REINDEX INDEX t_id');
RESET max_parallel_maintenance_workers;
SELECT * FROM report('t', 3);
-- The rows of each process are written to files. Otherwise, a build could fail that has
-- none without workers.
SET temp_file_limit = '1GB';
SELECT * FROM why_not('REINDEX INDEX t_id');
SELECT * FROM report('t', 1);
RESET temp_file_limit;

-- Without the storage parameter, core's rules: the table's size and the memory; and
-- the saving, which a table with dirty pages has to pay for.
CREATE TEMP TABLE sized (id int, s text);
INSERT INTO sized SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
CREATE INDEX sized_s ON sized (s);
SELECT * FROM report('sized');
SET min_parallel_table_scan_size = 0;
SET maintenance_work_mem = '128MB';
SET parallel_setup_cost = 0;
SET temp_parallel.processors = 2;
REINDEX INDEX sized_s;
SELECT * FROM report('sized');
SET maintenance_work_mem = '32MB';
SELECT * FROM why_not('REINDEX INDEX sized_s');
SET maintenance_work_mem = '128MB';
SET temp_parallel.processors = 1;
SELECT * FROM why_not('REINDEX INDEX sized_s');
SET temp_parallel.processors = 2;
SELECT * FROM report('sized', 2);
UPDATE sized SET s = s;
SET temp_parallel.write_temp_page_cost = 1000;
SELECT * FROM why_not('REINDEX INDEX sized_s');
SELECT account > 0 AS credited FROM temp_parallel_tables WHERE relation = 'sized'::regclass;
SELECT * FROM report('sized');
-- Nobody knows how many rows a partial index has, and BRIN has next to nothing to sort.
SELECT pg_flush_local_buffers() >= 0 AS clean;
SELECT * FROM why_not('CREATE INDEX sized_partial ON sized (s) WHERE id % 1000 = 0');
CREATE INDEX sized_brin ON sized USING brin (id);
SELECT * FROM report('sized', 2);
-- The number of rows is seen in the table: the columns' types, all that the planner has without
-- ANALYZE, let it expect a third of them.
CREATE TEMP TABLE narrow AS SELECT g AS id, 'x' AS a, 'x' AS b FROM generate_series(1, 100000) g;
SET maintenance_work_mem = '64MB';
SET temp_parallel.write_temp_page_cost = 8;
CREATE INDEX ON narrow (id);
SELECT * FROM report('narrow', 1);
SET temp_parallel.write_temp_page_cost = 1;
-- The keys of GIN are of fixed length, the values are not.
ALTER TABLE toasted ADD a int[];
ALTER TABLE toasted ALTER a SET STORAGE EXTERNAL;
UPDATE toasted SET a = ARRAY(SELECT generate_series(id, id + 700)) WHERE id < 600;
UPDATE toasted SET a = a || 7 WHERE id % 2 = 0;
SELECT reset_report();
CREATE INDEX toasted_gin ON toasted USING gin (a);
SELECT report = :'gin_has_workers'::bool::int || ' of 1, right' AS gin FROM report('toasted', 1);
-- Pages in the leader's buffers have hints that are not in the file, set and dropped by a
-- query while workers could have read them. If they were taken for hinted, a worker would
-- set the hints in its own buffers, and fail.
BEGIN;
CREATE TEMP TABLE queried (id int, v text) WITH (parallel_workers = 2);
INSERT INTO queried SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
SELECT pg_flush_local_buffers('queried') > 0 AS written;
COMMIT;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET temp_parallel.write_temp_page_cost = 0;
SET max_parallel_workers = 0;
SELECT hints_dropped AS before FROM temp_parallel_stats() \gset
SELECT count(*) FROM queried;
SELECT hints_dropped > :before AS dropped FROM temp_parallel_stats();
RESET max_parallel_workers;
SELECT reset_report();
CREATE INDEX queried_v ON queried (v, length(repeat(v, 3000)));
SELECT * FROM report('queried');
-- An index has not the rows that HOT updates of the same transaction have replaced. A snapshot
-- taken before sees these, so it must not use the index; if none can, there is no such mark.
CREATE TEMP TABLE replaced (id int, k int, a int[]) WITH (parallel_workers = 2, fillfactor = 50);
INSERT INTO replaced SELECT g, 0, '{0}' FROM generate_series(1, 5000) g;
CREATE FUNCTION pg_temp.seen() RETURNS text LANGUAGE plpgsql STABLE SET enable_seqscan = off AS
	$$ BEGIN RETURN concat((SELECT count(*) FROM replaced WHERE k = 0), ' ', (SELECT count(*) FROM replaced WHERE a @> '{0}')); END $$;
BEGIN;
DECLARE before CURSOR FOR SELECT pg_temp.seen() FROM generate_series(1, 2);
FETCH before;
UPDATE replaced SET k = 7, a = '{7}' WHERE id > 4000;
CREATE INDEX replaced_btree ON replaced (k);
CREATE INDEX replaced_brin ON replaced USING brin (k) WITH (pages_per_range = 1);
CREATE INDEX replaced_gin ON replaced USING gin (a);
SELECT indexrelid::regclass, indcheckxmin FROM pg_index WHERE indrelid = 'replaced'::regclass ORDER BY indexrelid::regclass::text;
FETCH before;
COMMIT;
DROP INDEX replaced_btree, replaced_brin, replaced_gin;
UPDATE replaced SET k = 8 WHERE id > 4500;
CREATE INDEX replaced_brin ON replaced USING brin (k);
CREATE INDEX replaced_gin ON replaced USING gin (a);
SELECT indexrelid::regclass, indcheckxmin FROM pg_index WHERE indrelid = 'replaced'::regclass ORDER BY indexrelid::regclass::text;
SELECT reset_report();
-- Emptied at the end of each transaction, which builds its index.
CREATE TEMP TABLE emptied (id int) ON COMMIT DELETE ROWS;
ALTER TABLE emptied SET (parallel_workers = 2);
CREATE INDEX emptied_id ON emptied (id);
BEGIN;
INSERT INTO emptied SELECT generate_series(1, 5000);
REINDEX TABLE emptied;
SELECT * FROM report('emptied');
COMMIT;
INSERT INTO emptied VALUES (1);
SELECT count(*) FROM emptied;
-- Hints that were dropped from a page do not concern the next one in its buffer: otherwise the
-- pages of a clean table would be written.
\connect -
LOAD 'temp_parallel';
SET temp_buffers = 400;
SET temp_parallel.share_local_buffers = off;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
CREATE TEMP TABLE clean (id int, pad text) WITH (parallel_workers = 2);
INSERT INTO clean SELECT g, repeat('x', 500) FROM generate_series(1, 4500) g;
VACUUM (FREEZE) clean;
CREATE TEMP TABLE hinted AS SELECT g AS id, repeat('x', 500) AS pad FROM generate_series(1, 5000) g;
-- written without hints
SELECT buffers_flushed > 300 AS evicted FROM pg_evict_local_buffers();
-- by the leader alone, as only its own count is shown
SET max_parallel_workers = 0;
SELECT count(*) FROM hinted;
SELECT hints_dropped > 300 AS dropped FROM temp_parallel_stats();
RESET max_parallel_workers;
SET temp_parallel.enabled = off;
SELECT count(*) FROM clean;
RESET temp_parallel.enabled;
SELECT flushes, pages_flushed FROM temp_parallel_stats() \gset before_
CREATE INDEX ON clean (id);
SELECT flushes - :before_flushes AS builds, pages_flushed - :before_pages_flushed AS pages FROM temp_parallel_stats();
DROP EXTENSION temp_parallel CASCADE;
