/* temp_parallel--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION temp_parallel UPDATE TO '1.1'" to load this file. \quit

-- counters of all sessions

CREATE FUNCTION temp_parallel_session_counts(
	OUT datid oid,
	OUT pid integer,
	OUT workers_launched bigint,
	OUT pages_flushed bigint,
	OUT pages_shared bigint,
	OUT serial_statements bigint,
	OUT usual_reason text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'temp_parallel_session_counts'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION temp_parallel_session_counts() IS
'what the sessions of the server have done with workers over temporary tables';

CREATE VIEW temp_parallel_activity AS
	SELECT c.datid, d.datname, c.pid, c.workers_launched, c.pages_flushed, c.pages_shared,
		   c.serial_statements, c.usual_reason
	  FROM temp_parallel_session_counts() c
	  LEFT JOIN pg_database d ON d.oid = c.datid;

COMMENT ON VIEW temp_parallel_activity IS
'what the sessions of the server have done with workers over temporary tables';
COMMENT ON COLUMN temp_parallel_activity.pid IS
'process ID, as in pg_stat_activity';
COMMENT ON COLUMN temp_parallel_activity.workers_launched IS
'workers launched to read temporary tables';
COMMENT ON COLUMN temp_parallel_activity.pages_flushed IS
'dirty pages written before workers were launched';
COMMENT ON COLUMN temp_parallel_activity.pages_shared IS
'dirty pages that workers have read in the memory of the session instead';
COMMENT ON COLUMN temp_parallel_activity.serial_statements IS
'statements over temporary tables that had no workers for a reason that EXPLAIN names';
COMMENT ON COLUMN temp_parallel_activity.usual_reason IS
'the most frequent of these reasons';

REVOKE ALL ON FUNCTION temp_parallel_session_counts() FROM PUBLIC;
REVOKE ALL ON temp_parallel_activity FROM PUBLIC;
GRANT EXECUTE ON FUNCTION temp_parallel_session_counts() TO pg_monitor;
GRANT SELECT ON temp_parallel_activity TO pg_monitor;
