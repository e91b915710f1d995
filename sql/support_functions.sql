--
-- Support functions of a user's operator classes that are not parallel safe, at which core
-- does not look: neither a worker nor a leader that has some calls them, whether a plan joins,
-- hashes, sorts, finds partitions or scans an index by them. Otherwise statements fail that work
-- without the module.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql
CREATE FUNCTION pg_temp.plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text := 'serial';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line LIKE '%Gather%' THEN
			result := 'parallel';
		END IF;
	END LOOP;
	RETURN result;
END $$;

CREATE TYPE pg_temp.wrapped AS (v int);
CREATE FUNCTION pg_temp.less(pg_temp.wrapped, pg_temp.wrapped) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN ($1).v < ($2).v; END';
CREATE FUNCTION pg_temp.equal(pg_temp.wrapped, pg_temp.wrapped) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN ($1).v = ($2).v; END';
CREATE FUNCTION pg_temp.compare(pg_temp.wrapped, pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN sign(($1).v - ($2).v); END';
CREATE FUNCTION pg_temp.hash(pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN ($1).v; END';
CREATE OPERATOR pg_temp.@< (function = pg_temp.less, leftarg = pg_temp.wrapped, rightarg = pg_temp.wrapped);
CREATE OPERATOR pg_temp.@= (function = pg_temp.equal, leftarg = pg_temp.wrapped, rightarg = pg_temp.wrapped,
	commutator = OPERATOR(pg_temp.@=), hashes, merges, restrict = eqsel, join = eqjoinsel);
CREATE OPERATOR CLASS pg_temp.wrapped_hash DEFAULT FOR TYPE pg_temp.wrapped USING hash AS
	OPERATOR 1 pg_temp.@=, FUNCTION 1 pg_temp.hash(pg_temp.wrapped);
CREATE OPERATOR CLASS pg_temp.wrapped_btree DEFAULT FOR TYPE pg_temp.wrapped USING btree AS
	OPERATOR 1 pg_temp.@<, OPERATOR 3 pg_temp.@=, FUNCTION 1 pg_temp.compare(pg_temp.wrapped, pg_temp.wrapped);
CREATE TEMP TABLE t AS SELECT ROW(g)::pg_temp.wrapped AS v, g AS id FROM generate_series(1, 3000) g;
CREATE TEMP TABLE u AS TABLE t;
CREATE INDEX t_v ON t USING btree (v pg_temp.wrapped_btree);
ANALYZE t, u;

\set hash_join 'SELECT count(*) FROM t JOIN u ON t.v OPERATOR(pg_temp.@=) u.v'
\set hashed_array 'SELECT count(*) FROM u WHERE v OPERATOR(pg_temp.@=) ANY (ARRAY[ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9)]::pg_temp.wrapped[])'
\set sort 'SELECT id FROM u ORDER BY v USING OPERATOR(pg_temp.@<) LIMIT 1'
\set index_scan 'SELECT sum(t.id) FROM u JOIN t ON t.v OPERATOR(pg_temp.@=) u.v WHERE u.id < 100'

-- as long as they are parallel safe, there are workers
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT pg_temp.plan(:'hash_join') AS hash_join, pg_temp.plan(:'hashed_array') AS hashed_array, pg_temp.plan(:'sort') AS sort;
SET enable_nestloop = on;
SET enable_hashjoin = off;
SELECT pg_temp.plan(:'index_scan') AS index_scan;
-- also in cached plans, which are made again when one is replaced
SET plan_cache_mode = force_generic_plan;
PREPARE sort AS :sort;
PREPARE index_scan AS :index_scan;
SET enable_hashjoin = on;
SET enable_nestloop = off;
PREPARE hash_join AS :hash_join;
PREPARE hashed_array AS :hashed_array;
EXECUTE hash_join;
EXECUTE hashed_array;
EXECUTE sort;
SET enable_nestloop = on;
SET enable_hashjoin = off;
EXECUTE index_scan;

-- one that is not
CREATE OR REPLACE FUNCTION pg_temp.compare(pg_temp.wrapped, pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS
	$$ BEGIN PERFORM set_config('my.n', '1', false); RETURN sign(($1).v - ($2).v); END $$;
CREATE OR REPLACE FUNCTION pg_temp.hash(pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS
	$$ BEGIN PERFORM set_config('my.n', '1', false); RETURN ($1).v; END $$;
EXECUTE index_scan;
SELECT pg_temp.plan(:'index_scan') AS index_scan;
:index_scan;
SET enable_hashjoin = on;
SET enable_nestloop = off;
EXECUTE hash_join;
EXECUTE hashed_array;
EXECUTE sort;
SELECT pg_temp.plan(:'hash_join') AS hash_join, pg_temp.plan(:'hashed_array') AS hashed_array, pg_temp.plan(:'sort') AS sort;
:hash_join;
:hashed_array;
:sort;

-- the same for windows, set operations, hashed subqueries, BRIN, whose index compares by other
-- operators than the query, and for finding partitions while the statement runs
RESET ALL;
\i sql/include/cheap_workers.sql
CREATE OR REPLACE FUNCTION pg_temp.compare(pg_temp.wrapped, pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN sign(($1).v - ($2).v); END';
CREATE OR REPLACE FUNCTION pg_temp.hash(pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN ($1).v; END';
CREATE FUNCTION pg_temp.in_range(pg_temp.wrapped, pg_temp.wrapped, int, boolean, boolean) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN CASE WHEN $5 THEN ($1).v <= ($2).v + CASE WHEN $4 THEN -$3 ELSE $3 END ELSE ($1).v >= ($2).v + CASE WHEN $4 THEN -$3 ELSE $3 END END; END';
CREATE FUNCTION pg_temp.at_most(pg_temp.wrapped, pg_temp.wrapped) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN ($1).v <= ($2).v; END';
CREATE OPERATOR pg_temp.@<= (function = pg_temp.at_most, leftarg = pg_temp.wrapped, rightarg = pg_temp.wrapped);
CREATE FUNCTION pg_temp.at_least(pg_temp.wrapped, pg_temp.wrapped) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN ($1).v >= ($2).v; END';
CREATE OPERATOR pg_temp.@>= (function = pg_temp.at_least, leftarg = pg_temp.wrapped, rightarg = pg_temp.wrapped);
CREATE FUNCTION pg_temp.greater(pg_temp.wrapped, pg_temp.wrapped) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN ($1).v > ($2).v; END';
CREATE OPERATOR pg_temp.@> (function = pg_temp.greater, leftarg = pg_temp.wrapped, rightarg = pg_temp.wrapped);
ALTER OPERATOR FAMILY pg_temp.wrapped_btree USING btree ADD
	FUNCTION 3 (pg_temp.wrapped, int) pg_temp.in_range(pg_temp.wrapped, pg_temp.wrapped, int, boolean, boolean);
CREATE OPERATOR CLASS pg_temp.wrapped_brin FOR TYPE pg_temp.wrapped USING brin AS
	OPERATOR 1 pg_temp.@<, OPERATOR 2 pg_temp.@<=, OPERATOR 3 pg_temp.@=, OPERATOR 4 pg_temp.@>=, OPERATOR 5 pg_temp.@>,
	FUNCTION 1 brin_minmax_opcinfo(internal), FUNCTION 2 brin_minmax_add_value(internal, internal, internal, internal),
	FUNCTION 3 brin_minmax_consistent(internal, internal, internal), FUNCTION 4 brin_minmax_union(internal, internal, internal);
CREATE INDEX u_v ON u USING brin (v pg_temp.wrapped_brin);
CREATE TEMP TABLE parted (v pg_temp.wrapped, id int) PARTITION BY RANGE (v pg_temp.wrapped_btree);
CREATE TEMP TABLE parted_1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO ('(1500)');
CREATE TEMP TABLE parted_2 PARTITION OF parted FOR VALUES FROM ('(1500)') TO (MAXVALUE);
INSERT INTO parted SELECT v, id FROM t;
ANALYZE parted, parted_1, parted_2;
\set window 'SELECT sum(n) FROM (SELECT count(*) OVER (ORDER BY v USING OPERATOR(pg_temp.@<) RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING) AS n FROM t WHERE id < 50) w'
\set window_start 'SELECT sum(n) FROM (SELECT count(*) OVER (ORDER BY v USING OPERATOR(pg_temp.@<) RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS n FROM t WHERE id < 50) w'
\set set_operation 'SELECT count(*) FROM (SELECT v FROM t WHERE id < 9 INTERSECT SELECT v FROM u WHERE id % 2 = 0) s'
\set hashed_set_operation 'SELECT count(*) FROM (SELECT v FROM t INTERSECT SELECT v FROM u WHERE id % 2 = 0) s'
\set hashed_subquery 'SELECT count(*) FROM t WHERE NOT v OPERATOR(pg_temp.@=) ANY (SELECT v FROM u WHERE id > 7)'
\set brin 'SELECT id FROM u WHERE v OPERATOR(pg_temp.@=) ROW(5)::pg_temp.wrapped'
\set partitions 'SELECT id FROM parted WHERE v OPERATOR(pg_temp.@=) (SELECT v FROM u WHERE id = 5)'
SELECT pg_temp.plan(:'window') AS "window", pg_temp.plan(:'window_start') AS window_start, pg_temp.plan(:'set_operation') AS set_operation,
	pg_temp.plan(:'hashed_set_operation') AS hashed_set_operation, pg_temp.plan(:'hashed_subquery') AS hashed_subquery, pg_temp.plan(:'partitions') AS partitions;
SET enable_seqscan = off;
SELECT pg_temp.plan(:'brin') AS brin;
CREATE OR REPLACE FUNCTION pg_temp.at_most(pg_temp.wrapped, pg_temp.wrapped) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS
	$$ BEGIN PERFORM set_config('my.n', '1', false); RETURN ($1).v <= ($2).v; END $$;
SELECT pg_temp.plan(:'brin') AS brin;
:brin;
RESET enable_seqscan;
CREATE OR REPLACE FUNCTION pg_temp.in_range(pg_temp.wrapped, pg_temp.wrapped, int, boolean, boolean) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS
	$$ BEGIN PERFORM set_config('my.n', '1', false); RETURN CASE WHEN $5 THEN ($1).v <= ($2).v + CASE WHEN $4 THEN -$3 ELSE $3 END ELSE ($1).v >= ($2).v + CASE WHEN $4 THEN -$3 ELSE $3 END END; END $$;
SELECT pg_temp.plan(:'window') AS "window", pg_temp.plan(:'window_start') AS window_start;
:window;
:window_start;
CREATE OR REPLACE FUNCTION pg_temp.hash(pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS
	$$ BEGIN PERFORM set_config('my.n', '1', false); RETURN ($1).v; END $$;
SELECT pg_temp.plan(:'hashed_subquery') AS hashed_subquery;
:hashed_subquery;
SELECT pg_temp.plan(:'hashed_set_operation') AS hashed_set_operation;
:hashed_set_operation;
CREATE OR REPLACE FUNCTION pg_temp.compare(pg_temp.wrapped, pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS
	$$ BEGIN PERFORM set_config('my.n', '1', false); RETURN sign(($1).v - ($2).v); END $$;
SELECT pg_temp.plan(:'set_operation') AS set_operation, pg_temp.plan(:'partitions') AS partitions;
:set_operation;
:partitions;
