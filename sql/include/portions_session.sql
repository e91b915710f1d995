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
INSERT INTO t VALUES (1, 2, 1);
FETCH 2 FROM c;
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
