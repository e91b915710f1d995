-- Functions that check indexes which workers have built: by amcheck, where the server has
-- it, and by a look-up of each row.
SELECT count(*) AS has_amcheck FROM pg_available_extensions WHERE name = 'amcheck' \gset
\if :has_amcheck
CREATE EXTENSION amcheck;
\endif

CREATE FUNCTION reset_report() RETURNS void LANGUAGE sql AS $$
	SELECT set_config('index_build.flushes', flushes::text, false) FROM temp_parallel_stats();
$$;
SELECT reset_report();

-- How many of the builds since the last report have had the table prepared for workers,
-- and are the indexes of tab right?
CREATE FUNCTION report(tab text DEFAULT 't', builds int DEFAULT NULL, OUT report text) LANGUAGE plpgsql
SET temp_parallel.enabled = off AS $$
DECLARE
	i record;
	missing bigint;
	prepared bigint;
BEGIN
	SELECT flushes - current_setting('index_build.flushes')::bigint INTO prepared
	  FROM temp_parallel_stats();
	report := prepared || coalesce(' of ' || builds, '') || ', right';
	FOR i IN SELECT indexrelid::regclass AS index, amname AS am FROM pg_index
		 JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
		 WHERE indrelid = tab::regclass ORDER BY indexrelid::regclass::text
	LOOP
		IF i.am = 'btree' AND EXISTS (SELECT FROM pg_extension WHERE extname = 'amcheck') THEN
			PERFORM bt_index_parent_check(i.index, true, true);
		ELSIF i.am = 'gin' AND to_regprocedure('gin_index_check(regclass)') IS NOT NULL THEN
			PERFORM gin_index_check(i.index);
		END IF;
	END LOOP;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	EXECUTE format('SELECT count(*) FROM %1$s a WHERE NOT EXISTS '
		'(SELECT FROM %1$s b WHERE b.id = a.id AND b.ctid = a.ctid OFFSET 0)', tab) INTO missing;
	IF missing > 0 THEN
		report := missing || ' rows not found';
	END IF;
	PERFORM reset_report();
END $$;

-- Run a command with the messages that say why it has no workers.
CREATE FUNCTION why_not(command text) RETURNS void LANGUAGE plpgsql
SET client_min_messages = debug1 AS $$
BEGIN
	EXECUTE command;
END $$;
