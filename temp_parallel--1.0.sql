/* temp_parallel--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION temp_parallel" to load this file. \quit

CREATE FUNCTION pg_flush_local_buffers()
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_flush_local_buffers'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_flush_local_buffers() IS
'write all dirty local buffers of this session, return the number of pages written';

CREATE FUNCTION pg_allocated_local_buffers()
RETURNS integer
AS 'MODULE_PATHNAME', 'pg_allocated_local_buffers'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_allocated_local_buffers() IS
'number of local buffers of this session that have storage';

CREATE FUNCTION pg_dirty_local_buffers()
RETURNS integer
AS 'MODULE_PATHNAME', 'pg_dirty_local_buffers'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_dirty_local_buffers() IS
'number of dirty local buffers of this session';

CREATE FUNCTION pg_temp_flush_cost(relation regclass DEFAULT NULL)
RETURNS float8
AS 'MODULE_PATHNAME', 'pg_temp_flush_cost'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_temp_flush_cost(regclass) IS
'planner cost of flushing a temporary table with its indexes and TOAST table, or all local buffers';
