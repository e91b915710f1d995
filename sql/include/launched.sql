\set ECHO none
--
-- pg_temp.launched(): how many workers were launched since the last call?
--
CREATE FUNCTION pg_temp.launched() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint = (temp_parallel_stats()).workers_launched;
BEGIN
	PERFORM temp_parallel_stats_reset();
	RETURN n;
END $$;
\set ECHO all
