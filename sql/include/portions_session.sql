--
-- Cursors over t in transactions; undoes what it changes.
--
SELECT workers_launched AS before FROM temp_parallel_stats() \gset
BEGIN;
INSERT INTO t VALUES (1, -1, 1);
DECLARE held CURSOR WITH HOLD FOR SELECT k, count(*) FROM t WHERE k < 4 GROUP BY k ORDER BY k;
DECLARE unread CURSOR WITH HOLD FOR SELECT k, sum(v) FROM t WHERE k < 4 GROUP BY k ORDER BY k;
DECLARE scrolls SCROLL CURSOR WITH HOLD FOR SELECT id, v FROM t WHERE k = 4 ORDER BY v;
FETCH 2 FROM held;
FETCH 2 FROM scrolls;
COMMIT;
DELETE FROM t WHERE k = -1;
FETCH 2 FROM held;
FETCH ALL FROM unread;
FETCH LAST FROM scrolls;
FETCH FIRST FROM scrolls;
FETCH BACKWARD ALL FROM held;
CLOSE ALL;
-- rows that the end of the transaction deletes
CREATE TEMP TABLE d (v int) ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO d SELECT v FROM t;
DECLARE unread CURSOR WITH HOLD FOR SELECT count(*), sum(v) FROM d;
COMMIT;
FETCH ALL FROM unread;
CLOSE unread;
DROP TABLE d;
-- savepoints
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM t WHERE k < 8 ORDER BY v;
SAVEPOINT s;
FETCH 2 FROM c;
INSERT INTO t VALUES (1, 2, 1);
ROLLBACK TO s;
FETCH 2 FROM c;
INSERT INTO t VALUES (1, 4, 1);
FETCH BACKWARD 1 FROM c;
FETCH FORWARD 3 FROM c;
SAVEPOINT s;
SELECT 1 / 0;
ROLLBACK TO s;
FETCH 1 FROM c;
TRUNCATE t;
ROLLBACK;
-- another role, other privileges and another function at the first fetch: workers would look at
-- these again, which without workers nobody does
BEGIN;
DECLARE c CURSOR FOR SELECT k, sum(v) FROM t GROUP BY k ORDER BY k;
DECLARE h CURSOR WITH HOLD FOR SELECT k, sum(v) FROM t GROUP BY k ORDER BY k;
SET LOCAL ROLE portions_user;
FETCH 2 FROM c;
COMMIT;
FETCH 2 FROM h;
CLOSE h;
GRANT SELECT ON t TO portions_user;
BEGIN;
SET LOCAL ROLE portions_user;
DECLARE c CURSOR FOR SELECT k, sum(v) FROM t GROUP BY k ORDER BY k;
RESET ROLE;
REVOKE ALL ON t FROM portions_user;
SET LOCAL ROLE portions_user;
FETCH 2 FROM c;
ROLLBACK;
BEGIN;
CREATE FUNCTION pg_temp.replaced(int) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int4abs';
DECLARE c CURSOR FOR SELECT pg_temp.replaced(k), count(*) FROM t GROUP BY 1 ORDER BY 1;
CREATE OR REPLACE FUNCTION pg_temp.replaced(int) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int4um';
FETCH 2 FROM c;
ROLLBACK;
-- what core computes below its sort, it computes before the first row
BEGIN;
SET LOCAL portions.least = 0;
DECLARE c CURSOR FOR SELECT k, sum(v) || (current_user = 'portions_user')::text FROM t GROUP BY k HAVING count(*) > current_setting('portions.least')::int ORDER BY k;
FETCH 2 FROM c;
SET LOCAL portions.least = 1000;
SET LOCAL ROLE portions_user;
FETCH 2 FROM c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT k, sum(v) / (k - 5) FROM t GROUP BY k ORDER BY k;
FETCH 2 FROM c;
ROLLBACK;
-- also where something is computed above, as rows are asked for
BEGIN;
DECLARE c CURSOR FOR SELECT k, rank() OVER (ORDER BY k) + s FROM (SELECT k, sum(v) / (k - 5) AS s FROM t GROUP BY k) q;
FETCH 2 FROM c;
ROLLBACK;
-- a final function that reads a setting
BEGIN;
SET LOCAL portions.least = 0;
DECLARE c CURSOR FOR SELECT k, pg_temp.reads_setting(v) FROM t WHERE k < 2 GROUP BY k;
FETCH 1 FROM c \g /dev/null
SET LOCAL portions.least = 1000;
MOVE 0 IN c;
FETCH 1 FROM c \gset
\echo :reads_setting
ROLLBACK;
-- an error at the first fetch
BEGIN;
DECLARE c CURSOR FOR SELECT sum(100 / (k - 7)) FROM t;
SAVEPOINT s;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 1 FROM c;
ROLLBACK;
-- COMMIT and ROLLBACK in the body of a loop
CREATE TEMP TABLE seen (line text);
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT k, count(*) c FROM t WHERE k < 25 GROUP BY k ORDER BY k LOOP
		INSERT INTO seen VALUES (r);
		IF r.k % 3 = 0 THEN
			COMMIT;
		ELSIF r.k % 7 = 0 THEN
			ROLLBACK;
		END IF;
	END LOOP;
END
$$;
SELECT string_agg(line, ' ' ORDER BY line) FROM seen;
DROP TABLE seen;
SELECT workers_launched > :before AS launched FROM temp_parallel_stats();
