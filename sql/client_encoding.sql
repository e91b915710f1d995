--
-- A client with another encoding than the database's. That of a worker is the database's. What
-- depends on it must not run in workers: text would be stored converted once too often.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql
-- workers alone compute, each a part
SET parallel_leader_participation = off;
SET cpu_operator_cost = 0.5;
CREATE EXTENSION temp_parallel;
\i sql/include/launched.sql

CREATE TEMP TABLE t AS SELECT g AS id, g % 3 AS k, chr(233) || g AS txt FROM generate_series(1, 6000) g;
CREATE TEMP TABLE r (k int, txts text[]);
ANALYZE t;
CREATE FUNCTION pg_temp.wrong() RETURNS bigint LANGUAGE sql AS
'SELECT count(*) FROM (SELECT unnest(txts) AS txt FROM r) u WHERE left(txt, 1) <> chr(233) OR length(txt) > 5';

--
-- Functions that return it, or send text in it
--
SELECT pg_temp.launched() AS launched;
SELECT count(*) FROM t WHERE pg_client_encoding() || left(txt, 0) = 'UTF8';
SELECT count(*) FROM t WHERE textsend(left(txt, 1)) = '\xc3a9';
SELECT pg_temp.launched() AS launched;
SET client_encoding = latin1;
SELECT count(*) FROM t WHERE pg_client_encoding() || left(txt, 0) = 'LATIN1';
SELECT count(*) FROM t WHERE textsend(left(txt, 1)) = '\xe9';
SELECT pg_temp.launched() AS launched;

--
-- From 16 on, array_agg() in workers sends text so.
--
INSERT INTO r SELECT k, array_agg(txt) FROM t GROUP BY k;
SELECT count(*), sum(cardinality(txts)), pg_temp.wrong() AS wrong FROM r;
UPDATE r SET txts = a.txts FROM (SELECT k, array_agg(txt) AS txts FROM t GROUP BY k) a WHERE a.k = r.k;
SELECT count(*), sum(cardinality(txts)), pg_temp.wrong() AS wrong FROM r;
DO $$
DECLARE
	a record;
BEGIN
	FOR a IN SELECT k, array_agg(txt) AS txts FROM t GROUP BY k LOOP
		INSERT INTO r VALUES (a.k, a.txts);
	END LOOP;
END $$;
SELECT count(*), sum(cardinality(txts)), pg_temp.wrong() AS wrong FROM r;
-- numbers
SELECT pg_temp.launched() >= 0 AS counted;
SELECT k, cardinality(array_agg(id)) FROM t GROUP BY k ORDER BY k;
SELECT pg_temp.launched() AS launched;
-- A plan that is older than the client's encoding: what depends on that runs in the leader. Nor
-- is text converted to that encoding and back, where it would not be the same, or cannot be.
RESET client_encoding;
SET plan_cache_mode = force_generic_plan;
PREPARE arrays AS INSERT INTO r SELECT k, array_agg(txt) FROM t GROUP BY k;
PREPARE encodings AS SELECT count(*) FROM t WHERE pg_client_encoding() || left(txt, 0) = 'UTF8';
EXECUTE arrays;
EXECUTE encodings;
SELECT pg_temp.launched() AS launched;
SET client_encoding = latin1;
EXECUTE arrays;
SELECT pg_temp.launched() >= 0 AS counted;
EXECUTE encodings;
SELECT pg_temp.launched() AS launched;
SELECT count(*), sum(cardinality(txts)), pg_temp.wrong() AS wrong FROM r;
RESET client_encoding;
CREATE TEMP TABLE waves AS SELECT k, chr(12316) AS w FROM t;
ANALYZE waves;
PREPARE waves AS SELECT array_agg(DISTINCT ascii(ws[1])) FROM (SELECT k, array_agg(w) AS ws FROM waves GROUP BY k) a;
EXECUTE waves;
SET client_encoding = sjis;
EXECUTE waves;
SET client_encoding = latin1;
EXECUTE waves;
RESET client_encoding;
DEALLOCATE ALL;

--
-- Elements that cannot be sent, or not read again: array_agg() of workers does not send them.
--
-- no binary format
CREATE TEMP TABLE acls AS SELECT g % 3 AS k, makeaclitem(10, 10, 'SELECT', false) AS acl FROM generate_series(1, 6000) g;
ANALYZE acls;
SELECT k, cardinality(array_agg(acl)) FROM acls GROUP BY k ORDER BY k;
SELECT k, cardinality(array_agg(acls)) FROM acls GROUP BY k ORDER BY k;
SELECT k, cardinality(array_agg(ROW(acl))) FROM acls GROUP BY k ORDER BY k;
-- values that the domain's constraint does not allow any more
CREATE DOMAIN word AS text;
CREATE TEMP TABLE words AS SELECT k, txt::word AS w FROM t;
ANALYZE words;
ALTER DOMAIN word ADD CHECK (length(VALUE) < 3) NOT VALID;
SELECT k, cardinality(array_agg(w)) FROM words GROUP BY k ORDER BY k;
-- empty ones, which are not read again
SELECT k, cardinality(array_agg(plainto_tsquery('english', 'the'))) FROM t GROUP BY k ORDER BY k;
SELECT k, cardinality(array_agg(circle(point(k, k), -1))) FROM t GROUP BY k ORDER BY k;
-- an aggregate of users that makes arrays, of no argument
DO $$
BEGIN
	IF to_regproc('array_agg_serialize') IS NOT NULL THEN
		CREATE FUNCTION pg_temp.nothing(internal) RETURNS internal LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'int8inc_support';
		CREATE AGGREGATE pg_temp.nothing(*) (SFUNC = pg_temp.nothing, STYPE = internal, FINALFUNC = array_agg_serialize,
			COMBINEFUNC = array_agg_combine, SERIALFUNC = array_agg_serialize, DESERIALFUNC = array_agg_deserialize, PARALLEL = SAFE);
		EXECUTE 'EXPLAIN SELECT pg_temp.nothing(*) FROM t';
	END IF;
END $$;

DROP TABLE t, r, acls, words, waves;
DROP DOMAIN word;
DROP EXTENSION temp_parallel;
