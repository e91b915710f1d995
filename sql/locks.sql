--
-- Locks: the leader takes no more than for the serial query, and a worker no
-- more than over an unlogged table. Otherwise, a query over many partitions
-- could run out of shared memory for locks where these do not.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
\i sql/include/cheap_workers.sql
-- the changes between the queries have no workers
SET temp_parallel.run_ahead = off;

-- Tables with a TOAST table and indexes of several access methods.
CREATE TEMP TABLE t (id int PRIMARY KEY, k int, v text) WITH (parallel_workers = 2);
CREATE UNLOGGED TABLE u (id int PRIMARY KEY, k int, v text) WITH (parallel_workers = 2);
ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
ALTER TABLE u ALTER v SET STORAGE EXTERNAL;
INSERT INTO t SELECT g, g % 10, CASE WHEN g % 50 = 0 THEN repeat('x', 3000) END FROM generate_series(1, 1000) g;
INSERT INTO u SELECT * FROM t;
CREATE INDEX ON t (k);
CREATE INDEX ON t USING hash (k);
CREATE INDEX ON t USING brin (id);
CREATE INDEX ON u (k);
CREATE INDEX ON u USING hash (k);
CREATE INDEX ON u USING brin (id);
ANALYZE t;
ANALYZE u;

-- the locks that are held, and the session's flushes so far
\set count 'SELECT (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()) AS locks, (SELECT flushes FROM temp_parallel_stats()) AS flushes'

-- In the leader, at the end of the transaction. The flush has a cost, so that
-- the planner has to compute it.
SET temp_parallel.write_temp_page_cost = 0.01;
SET temp_parallel.enabled = off;
BEGIN;
SELECT count(*), sum(k), count(v) FROM t;
:count \gset off_
COMMIT;
SET temp_parallel.enabled = on;
BEGIN;
SELECT count(*), sum(k), count(v) FROM t;
:count \gset on_
COMMIT;
SELECT :on_flushes - :off_flushes AS flushes, :on_locks - :off_locks AS more_locks;

-- The same with a cached plan: only the indexes that it scans are locked, and
-- the second look computes the cost of the flush again.
SET plan_cache_mode = force_generic_plan;
SET temp_parallel.enabled = off;
PREPARE q AS SELECT count(*), sum(k), count(v) FROM t;
EXECUTE q;
BEGIN;
EXECUTE q;
:count \gset off_
COMMIT;
DEALLOCATE q;
SET temp_parallel.enabled = on;
PREPARE q AS SELECT count(*), sum(k), count(v) FROM t;
EXECUTE q;
UPDATE t SET k = k;
BEGIN;
EXECUTE q;
:count \gset on_
COMMIT;
SELECT :on_flushes - :off_flushes AS flushes, :on_locks - :off_locks AS more_locks;
RESET plan_cache_mode;

-- In a worker: the locks that it holds when it processes a row, before and
-- after it has read the TOAST table.
CREATE FUNCTION locks_here(length int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()); END $$;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT min(locks_here(length(v))), max(locks_here(length(v))) FROM t WHERE id % 10 = 0;
SELECT min(locks_here(0)), max(locks_here(0)) FROM t WHERE id % 50 = 0 \gset t_
SELECT min(locks_here(0)), max(locks_here(0)) FROM u WHERE id % 50 = 0 \gset u_
SELECT :t_min - :u_min AS more_locks, :t_max - :u_max AS more_at_most;
SELECT max(locks_here(length(v))) FROM t WHERE id % 50 = 0 \gset t_
SELECT max(locks_here(length(v))) FROM u WHERE id % 50 = 0 \gset u_
SELECT :t_max - :u_max AS more_at_most;
RESET parallel_leader_participation;

-- A function called with a table locks that table.
BEGIN;
:count \gset before_
SELECT pg_flush_local_buffers('t') >= 0 AS done;
SELECT (temp_parallel_flush_cost('t')).flush_cost >= 0 AS done;
SELECT buffers_skipped FROM pg_evict_local_buffers('t');
:count \gset after_
SELECT :after_locks - :before_locks AS more_locks;
COMMIT;

-- An INSERT that is run ahead, after a look at all partitions, holds locks on those that got
-- a row.  Otherwise it would block DDL on the others, deadlock with it, or need a lock for each.
CREATE TABLE parted (id int, k int) PARTITION BY LIST (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2) PARTITION BY RANGE (id);
CREATE TABLE parted_3 PARTITION OF parted_2 DEFAULT;
SET temp_parallel.run_ahead = on;
\set locked 'SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation::regclass::text ~ ''parted'' ORDER BY relation::regclass::text, mode'
BEGIN;
EXPLAIN (COSTS OFF) INSERT INTO parted SELECT id, 1 FROM t WHERE length(v) > 0;
:locked;
INSERT INTO parted SELECT id, 1 FROM t WHERE length(v) > 0;
:locked;
ROLLBACK;

DROP FUNCTION locks_here;
DROP TABLE t, u, parted;
DROP EXTENSION temp_parallel;
