--
-- The sequence with which the cost of a flush was first measured: fill, flush, flush again,
-- evict by another table, read in order, read again, evict, read in random order, mark as
-- dirty, flush. The pool is a tenth larger than the table, for its free space map. Each step
-- must write, read or find each page of the table once: figures per page would be wrong
-- otherwise.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;

-- One row per step: if it calls a function, its pages by EXPLAIN (ANALYZE, BUFFERS), without
-- those of the free space map, which some versions make; and what the pool holds of the
-- table afterwards.
CREATE FUNCTION published_sequence(pages int)
RETURNS TABLE (step text, written int, read int, hit int, in_pool bigint, dirty bigint) LANGUAGE plpgsql AS $$
DECLARE
	evict text := format('INSERT INTO evictor SELECT g, '''' FROM generate_series(1, %s) g; TRUNCATE evictor', pages * 2);
	statement text;
	plan json;
	dirty_maps bigint;
BEGIN
	CREATE TEMP TABLE test (id int, pad char(5000));	-- a row a page
	ALTER TABLE test ALTER pad SET STORAGE PLAIN;
	CREATE TEMP TABLE evictor (LIKE test INCLUDING STORAGE);
	FOR step, statement IN VALUES
		('fill', format('INSERT INTO test SELECT g, '''' FROM generate_series(1, %s) g', pages)),
		('flush', 'SELECT pg_flush_local_buffers()'),
		('flush again', 'SELECT pg_flush_local_buffers()'),
		('evict', evict),
		('read', 'SELECT pg_read_temp_relation(''test'', false)'),
		('read again', 'SELECT pg_read_temp_relation(''test'', false)'),
		('evict', evict),
		('read at random', 'SELECT pg_read_temp_relation(''test'', true)'),
		('mark as dirty', 'SELECT pg_temp_buffers_dirty(''test'')'),
		('flush', 'SELECT pg_flush_local_buffers()')
	LOOP
		SELECT count(*) INTO dirty_maps FROM pg_local_buffers WHERE isdirty AND relforknumber > 0;
		IF statement LIKE 'SELECT%' THEN
			EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || statement INTO plan;
			plan := plan->0->'Plan';
		ELSE
			EXECUTE statement;
			plan := NULL;
		END IF;
		written := (plan->>'Local Written Blocks')::int - CASE step WHEN 'flush' THEN dirty_maps ELSE 0 END;
		read := plan->>'Local Read Blocks';
		hit := plan->>'Local Hit Blocks';
		SELECT count(*), count(*) FILTER (WHERE isdirty) INTO in_pool, dirty
		  FROM pg_local_buffers WHERE relfilenode = pg_relation_filenode('test') AND relforknumber = 0;
		RETURN NEXT;
	END LOOP;
END $$;

LOAD 'temp_parallel';
SET temp_buffers = 141;
SELECT * FROM published_sequence(128);
-- all buffers have been used; the functions return what the steps did
SELECT pg_allocated_local_buffers(), pg_read_temp_relation('test', true), pg_temp_buffers_dirty('test'),
	   pg_flush_local_buffers(), pg_flush_local_buffers() AS again;
\c -
LOAD 'temp_parallel';
SET temp_buffers = 2253;
SELECT * FROM published_sequence(2048);
SELECT pg_allocated_local_buffers(), pg_read_temp_relation('test', true), pg_temp_buffers_dirty('test'),
	   pg_flush_local_buffers(), pg_flush_local_buffers() AS again;

DROP FUNCTION published_sequence;
DROP EXTENSION temp_parallel;
