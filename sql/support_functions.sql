--
-- Support functions of a user's operator classes that are not parallel safe, at which core
-- does not look: no worker calls them, whether a plan joins, hashes, sorts or scans an index
-- by them. Otherwise statements fail that work without the module.
--
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
CREATE FUNCTION pg_temp.equal(pg_temp.wrapped, pg_temp.wrapped) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN ($1).v = ($2).v; END';
CREATE FUNCTION pg_temp.compare(pg_temp.wrapped, pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN sign(($1).v - ($2).v); END';
CREATE FUNCTION pg_temp.hash(pg_temp.wrapped) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	'BEGIN RETURN ($1).v; END';
CREATE OPERATOR pg_temp.@< (function = pg_temp.less, leftarg = pg_temp.wrapped, rightarg = pg_temp.wrapped);
CREATE OPERATOR pg_temp.@= (function = pg_temp.equal, leftarg = pg_temp.wrapped, rightarg = pg_temp.wrapped,
	commutator = OPERATOR(pg_temp.@=), hashes, merges, restrict = eqsel, join = eqjoinsel);
CREATE OPERATOR CLASS pg_temp.wrapped_hash FOR TYPE pg_temp.wrapped USING hash AS
	OPERATOR 1 pg_temp.@=, FUNCTION 1 pg_temp.hash(pg_temp.wrapped);
CREATE OPERATOR CLASS pg_temp.wrapped_btree FOR TYPE pg_temp.wrapped USING btree AS
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
