--
-- Transactions: what is visible to workers, and what remains after commit and
-- rollback
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/shapes.sql

-- fewer buffers than the table has pages
SET temp_buffers = '800kB';

CREATE TEMP TABLE t (id int, v int, pad text);
INSERT INTO t SELECT i, i, repeat('t', 60) FROM generate_series(1, 3000) i;
ANALYZE t;

-- count(*) and sum(v) of t, read by workers only
\set workers 'SET parallel_leader_participation = off; SELECT count(*), sum(v) FROM t; RESET parallel_leader_participation;'
\set both 'SELECT * FROM pg_temp.both_ways(''SELECT * FROM t'', ''Parallel Seq Scan on t'');'

--
-- Rows inserted, updated and deleted by the same transaction
--
BEGIN;
INSERT INTO t SELECT i, i, 'new' FROM generate_series(3001, 4000) i;
:both
UPDATE t SET v = v + 1 WHERE id % 2 = 0;
:both
DELETE FROM t WHERE id % 5 = 0;
:both
:workers
ROLLBACK;
:both
:workers

-- combo command IDs: rows inserted and deleted, updated and deleted, updated
-- twice by the same transaction; the leader sends the combo CIDs to the workers
BEGIN;
INSERT INTO t SELECT i, i, 'new' FROM generate_series(3001, 4000) i;
UPDATE t SET v = v + 1 WHERE id > 2000;
UPDATE t SET v = v + 1 WHERE id > 2500;
DELETE FROM t WHERE id > 3500;
:both
UPDATE t SET v = v + 10 WHERE id > 3000;
DELETE FROM t WHERE id BETWEEN 2900 AND 3100;
:both
:workers
COMMIT;
:both
:workers
-- a cursor returns what was visible when it was opened, whatever is read in
-- between
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(v) FROM t;
DECLARE s SCROLL CURSOR FOR SELECT id, v FROM t;
FETCH 2 FROM s;
UPDATE t SET v = v * 2;
DELETE FROM t WHERE id > 3000;
:both
-- s goes on in the middle of a page, with heap's own routine, over the old rows
FETCH 2 FROM s;
:workers
MOVE 500 FROM s;
:workers
FETCH 2 FROM s;
FETCH BACKWARD 1 FROM s;
FETCH c;
ROLLBACK;

--
-- Savepoints
--
BEGIN;
SAVEPOINT a;
INSERT INTO t SELECT i, i, 'a' FROM generate_series(5001, 5500) i;
SAVEPOINT b;
UPDATE t SET v = v + 1 WHERE id > 5000;
DELETE FROM t WHERE id <= 1000;
:both
ROLLBACK TO b;
:both
:workers
SAVEPOINT c;
UPDATE t SET v = v + 7;
RELEASE c;
:both
ROLLBACK TO a;
:both
:workers
COMMIT;
:workers

--
-- Tables and rows that do not live as long as the session
--
-- ON COMMIT DELETE ROWS
CREATE TEMP TABLE odr (id int, v int) ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO odr SELECT i, i FROM generate_series(1, 2000) i;
SELECT * FROM pg_temp.both_ways('SELECT * FROM odr', 'Parallel Seq Scan on odr');
COMMIT;
SELECT count(*) FROM odr;
BEGIN;
INSERT INTO odr SELECT i, i + 1 FROM generate_series(1, 1000) i;
SELECT * FROM pg_temp.both_ways('SELECT * FROM odr', 'Parallel Seq Scan on odr');
ROLLBACK;
DROP TABLE odr;
-- ON COMMIT DROP; created and read in the same transaction
BEGIN;
CREATE TEMP TABLE ocd ON COMMIT DROP AS SELECT i AS id, i AS v FROM generate_series(1, 2000) i;
SELECT * FROM pg_temp.both_ways('SELECT * FROM ocd', 'Parallel Seq Scan on ocd');
CREATE INDEX ON ocd (id);
UPDATE ocd SET v = v + 1;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT * FROM pg_temp.both_ways('SELECT * FROM ocd WHERE id < 1500 ORDER BY id', 'Parallel Index Scan using ocd_id_idx on ocd');
COMMIT;
SELECT to_regclass('ocd');

-- TRUNCATE: a new file in the same transaction, and the old one after ROLLBACK
BEGIN;
:workers
TRUNCATE t;
SELECT count(*) FROM t;
INSERT INTO t SELECT i, i, 'after' FROM generate_series(1, 1500) i;
:both
SAVEPOINT a;
TRUNCATE t;
INSERT INTO t SELECT i, -i, 'again' FROM generate_series(1, 1000) i;
:both
ROLLBACK TO a;
:both
:workers
ROLLBACK;
:both
:workers
-- statements that rewrite the table: they need heap's own routine, and the
-- workers must read the new files
BEGIN;
ALTER TABLE t ALTER v TYPE bigint;
:both
CREATE INDEX t_id ON t (id);
CLUSTER t USING t_id;
:both
COMMIT;
VACUUM FULL t;
:both
:workers
ALTER TABLE t ADD extra int DEFAULT 5;
:both
REINDEX TABLE t;
ANALYZE t;
SELECT relpages > 0 AS analyzed, reltuples FROM pg_class WHERE oid = 't'::regclass;

--
-- Changes made after a parallel query are not lost
--
CREATE TEMP TABLE filler (pad text);
:workers
UPDATE t SET v = v + 1, pad = 'changed';
-- all buffers are reused for other pages
INSERT INTO filler SELECT repeat('f', 500) FROM generate_series(1, 3000);
SELECT count(*), sum(v), min(pad) FROM t;
:both
-- pages whose hint bits were discarded by a parallel query
BEGIN;
UPDATE t SET v = v + 1 WHERE id % 2 = 0;
:workers
DELETE FROM t WHERE id % 3 = 0;
INSERT INTO filler SELECT repeat('f', 500) FROM generate_series(1, 3000);
:both
COMMIT;
SELECT count(*) FROM filler;
:both
VACUUM t;
INSERT INTO filler SELECT repeat('f', 500) FROM generate_series(1, 3000);
:both
SELECT * FROM pg_temp.both_ways('SELECT count(*) FROM filler', 'Parallel Seq Scan on filler');
TRUNCATE filler;

--
-- Isolation levels
--
BEGIN ISOLATION LEVEL REPEATABLE READ;
:workers
UPDATE t SET v = v + 1 WHERE id % 2 = 1;
:both
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
:workers
UPDATE t SET v = v + 1 WHERE id % 2 = 1;
:both
COMMIT;
BEGIN READ ONLY;
:workers
UPDATE t SET v = v + 1 WHERE id % 2 = 1;
:workers
COMMIT;

--
-- Errors
--
\set VERBOSITY terse
-- in a worker; afterwards the table has heap's own routine again: an index
-- build fails with any other one
BEGIN;
UPDATE t SET v = v + 1 WHERE id % 2 = 1;
SAVEPOINT a;
SET LOCAL parallel_leader_participation = off;
SELECT count(1 / (v - v)) FROM t;
ROLLBACK TO a;
CREATE INDEX t_after_error ON t (v);
:both
DROP INDEX t_after_error;
COMMIT;
SET parallel_leader_participation = off;
SELECT count(1 / (v - v)) FROM t;
RESET parallel_leader_participation;
CREATE INDEX t_after_error ON t (v);
UPDATE t SET v = v + 1;
:both
DROP INDEX t_after_error;
-- in the leader, above the Gather
SELECT 1 / (count(*) - count(*)) FROM t;
CREATE INDEX t_after_error ON t (v);
DROP INDEX t_after_error;
-- caught by PL/pgSQL, which then uses the same table
DO $$
DECLARE n bigint;
BEGIN
	FOR i IN 1 .. 5 LOOP
		UPDATE t SET v = v + 1;
		BEGIN
			SELECT count(1 / (v - v)) INTO n FROM t;
		EXCEPTION WHEN division_by_zero THEN
			RAISE INFO 'caught';
		END;
		INSERT INTO t (id, v, pad) VALUES (i, i, 'after');
		SELECT count(*) INTO n FROM t WHERE pad = 'after';
		RAISE INFO '% rows', n;
	END LOOP;
END $$;
:both
-- canceled in the middle
SET statement_timeout = '200ms';
SELECT count(pg_sleep(v * 0 + 5)) FROM t;
RESET statement_timeout;
CREATE INDEX t_after_error ON t (v);
UPDATE t SET v = v + 1;
:both
-- a function that reads a temporary table and is wrongly marked parallel safe
-- fails with core's error, whichever table it reads
CREATE FUNCTION pg_temp.wrongly_safe(x bigint) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN RETURN (SELECT max(id) FROM t); END';
SET parallel_leader_participation = off;
SELECT count(pg_temp.wrongly_safe(v)) FROM t;
RESET parallel_leader_participation;
:both

-- dropped and created again
DROP TABLE t;
CREATE TEMP TABLE t AS SELECT i AS id, i AS v FROM generate_series(1, 2000) i;
:both
:workers
