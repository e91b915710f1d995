--
-- Answers: the same statement with the module off and on gives the same rows, and workers have
-- run. A page that workers read in an older state, or twice, would show here.
--
\ir include/start.psql
CREATE TEMP TABLE orders (id int PRIMARY KEY, customer int, amount numeric, note text);
CREATE TEMP TABLE items (order_id int, product text, n int);
INSERT INTO orders SELECT g, g % 97, g * 7 % 1000 / 10.0, CASE WHEN g % 5 > 0 THEN md5(g::text) END FROM generate_series(1, 5000) g;
INSERT INTO items SELECT g % 6000, chr(65 + g % 26), g % 9 FROM generate_series(1, 15000) g;
CREATE INDEX ON items (order_id);
ANALYZE orders, items;
-- dirty pages with rows that are deleted, updated, and of a subtransaction that was rolled back
DELETE FROM orders WHERE id % 11 = 0;
UPDATE items SET n = n + 1 WHERE order_id % 7 = 0;
SAVEPOINT s;
INSERT INTO items SELECT g, 'rolled back', 0 FROM generate_series(1, 500) g;
ROLLBACK TO s;

CREATE TEMP TABLE statements (no serial, ordered boolean, query text);
INSERT INTO statements (ordered, query) VALUES
	(true, 'SELECT count(*), sum(amount), count(note), min(id), max(note COLLATE "C") FROM orders'),
	(true, 'SELECT customer, count(*), sum(amount) FROM orders GROUP BY customer ORDER BY customer'),
	(true, 'SELECT id, note FROM orders WHERE amount > 50 ORDER BY amount, id'),
	(true, 'SELECT id FROM orders ORDER BY amount DESC, id LIMIT 40 OFFSET 10'),
	(true, 'SELECT product, sum(n) FROM items JOIN orders ON order_id = id GROUP BY product HAVING sum(n) > 100 ORDER BY product'),
	(true, 'SELECT customer, amount, rank() OVER (PARTITION BY customer ORDER BY amount, id) FROM orders ORDER BY id'),
	(true, 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n), array_agg(DISTINCT product ORDER BY product) FROM items'),
	(true, 'SELECT id FROM orders o WHERE NOT EXISTS (SELECT FROM items WHERE order_id = o.id) ORDER BY amount, id'),
	(false, 'SELECT * FROM orders WHERE amount < 30'),
	(false, 'SELECT DISTINCT product, n FROM items'),
	(false, 'SELECT o.id, i.product FROM orders o LEFT JOIN items i ON i.order_id = o.id AND i.n > 4'),
	(false, 'SELECT o.id, i.n FROM orders o FULL JOIN items i ON i.order_id = o.id WHERE o.id IS NULL OR i.n IS NULL'),
	(false, 'SELECT id FROM orders UNION ALL SELECT order_id FROM items'),
	(false, 'SELECT id FROM orders EXCEPT SELECT order_id FROM items'),
	(false, 'SELECT customer, product, count(*) FROM orders, items WHERE order_id = id GROUP BY GROUPING SETS ((customer), (product), ())'),
	(false, 'WITH big AS MATERIALIZED (SELECT * FROM orders WHERE amount > 70) SELECT b.id, n FROM big b JOIN items ON order_id = b.id'),
	(false, 'SELECT id, (SELECT max(n) FROM items) FROM orders WHERE customer = ANY (ARRAY[1, 2, 3])');

\ir ../../sql/include/cheap_workers.sql
\set ECHO none
ALTER FUNCTION bag_eq(text, text, text) SET max_parallel_workers_per_gather = 0;
-- the leader would have read these tables before the workers have started
SET LOCAL parallel_leader_participation = off;
SET LOCAL cursor_tuple_fraction = 1;	-- all rows are fetched
-- One assertion for the rows, one for the workers; rows in order come from cursors. Before,
-- rows on many pages are changed, which are written, or workers read them in the leader's memory.
CREATE FUNCTION compare(query text, ordered boolean, share boolean) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	want refcursor;
	have refcursor;
	launched bigint;
	name text := CASE WHEN share THEN 'shared: ' ELSE 'written: ' END || query;
BEGIN
	UPDATE orders SET amount = amount + 1 WHERE id % 13 = 0;
	UPDATE items SET n = n + 1 WHERE order_id % 13 = 0;
	PERFORM set_config('temp_parallel.share_local_buffers', share::text, true),
			set_config('temp_parallel.write_temp_page_cost', CASE WHEN share THEN '10' ELSE '0' END, true);
	SET LOCAL temp_parallel.enabled = off;
	IF ordered THEN
		OPEN want FOR EXECUTE query;
	ELSE
		EXECUTE 'CREATE TEMP TABLE want AS ' || query;
	END IF;
	SET LOCAL temp_parallel.enabled = on;
	PERFORM temp_parallel_stats_reset();
	IF ordered THEN
		OPEN have FOR EXECUTE query;
		RETURN NEXT results_eq(have, want, name);
		launched := (SELECT workers_launched FROM temp_parallel_stats());
		CLOSE have;
		CLOSE want;
	ELSE
		EXECUTE 'CREATE TEMP TABLE have AS ' || query;
		launched := (SELECT workers_launched FROM temp_parallel_stats());
		RETURN NEXT bag_eq('TABLE have', 'TABLE want', name);
		DROP TABLE have, want;
	END IF;
	RETURN NEXT cmp_ok(launched, '>', 0::bigint, 'in workers, ' || name);
END $$;
SELECT compare(query, ordered, share) FROM statements, unnest(ARRAY[false, true]) share ORDER BY no, share;
SELECT set_config('temp_parallel.write_temp_page_cost', '0', true) \g /dev/null

-- Statements that change a table: each on a copy.
CREATE FUNCTION compare_change(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	want bigint;
	have bigint;
	launched bigint;
BEGIN
	SET LOCAL temp_parallel.enabled = off;
	CREATE TEMP TABLE want AS TABLE orders;
	CREATE TEMP TABLE have AS TABLE orders;
	ANALYZE want, have;
	EXECUTE format(statement, 'want');
	GET DIAGNOSTICS want = ROW_COUNT;
	SET LOCAL temp_parallel.enabled = on;
	PERFORM temp_parallel_stats_reset();
	EXECUTE format(statement, 'have');
	GET DIAGNOSTICS have = ROW_COUNT;
	launched := (SELECT workers_launched FROM temp_parallel_stats());
	RETURN NEXT is(have, want, 'rows changed: ' || statement);
	RETURN NEXT bag_eq('TABLE have', 'TABLE want', statement);
	RETURN NEXT cmp_ok(launched, '>', 0::bigint, 'in workers: ' || statement);
	DROP TABLE have, want;
END $$;
SELECT compare_change(s) FROM unnest(ARRAY[
	'INSERT INTO %I (customer, amount) SELECT n, count(*) FROM items GROUP BY n',
	'UPDATE %I t SET amount = s.n FROM (SELECT order_id, sum(n) AS n FROM items GROUP BY order_id) s WHERE s.order_id = t.id',
	'DELETE FROM %I t USING items WHERE order_id = t.id AND n > 7']) s;

SELECT * FROM finish();
ROLLBACK;
