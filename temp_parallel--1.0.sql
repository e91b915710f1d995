/* temp_parallel--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION temp_parallel" to load this file. \quit

CREATE FUNCTION pg_flush_local_buffers()
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_flush_local_buffers'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_flush_local_buffers() IS
'write all dirty local buffers of this session and return the number of pages written';

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

-- showing local buffers

CREATE FUNCTION pg_local_buffers_pages(
	OUT bufferid integer,
	OUT relfilenode oid,
	OUT reltablespace oid,
	OUT reldatabase oid,
	OUT relforknumber smallint,
	OUT relblocknumber bigint,
	OUT isdirty boolean,
	OUT usagecount smallint,
	OUT pins integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_local_buffers_pages'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_local_buffers_pages() IS
'local buffers of this session, for the view pg_local_buffers';

CREATE VIEW pg_local_buffers AS
SELECT * FROM pg_local_buffers_pages();

COMMENT ON VIEW pg_local_buffers IS
'local buffers of this session, one row each; nulls where a buffer holds no page';
COMMENT ON COLUMN pg_local_buffers.bufferid IS
'number of the buffer, from 1 to temp_buffers';
COMMENT ON COLUMN pg_local_buffers.pins IS
'pins that this session holds on the buffer';

GRANT SELECT ON pg_local_buffers TO PUBLIC;

CREATE FUNCTION pg_local_buffers_summary(
	OUT buffers_used integer,
	OUT buffers_unused integer,
	OUT buffers_dirty integer,
	OUT buffers_pinned integer,
	OUT usagecount_avg float8,
	OUT buffers_allocated integer)
RETURNS record
AS 'MODULE_PATHNAME', 'pg_local_buffers_summary'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_local_buffers_summary() IS
'numbers of local buffers of this session that hold a page, hold none, are dirty, are pinned and have storage, and the mean usage count';

CREATE FUNCTION pg_local_buffers_relations(
	OUT "table" regclass,
	OUT relation regclass,
	OUT kind text,
	OUT fork text,
	OUT allocated integer,
	OUT dirty integer,
	OUT pinned integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_local_buffers_relations'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_local_buffers_relations() IS
'pages in local buffers by table, relation (the table itself, an index, its TOAST table or TOAST index) and fork';

-- writing, evicting, reading, dirtying

CREATE FUNCTION pg_flush_local_buffers(relation regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_flush_local_buffers_relation'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_flush_local_buffers(regclass) IS
'write the dirty local buffers of a temporary table, its indexes and its TOAST table, and return the number of pages written';

CREATE FUNCTION pg_evict_local_buffers(
	relation regclass DEFAULT NULL,
	OUT buffers_evicted integer,
	OUT buffers_flushed integer,
	OUT buffers_skipped integer)
RETURNS record
AS 'MODULE_PATHNAME', 'pg_evict_local_buffers'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_evict_local_buffers(regclass) IS
'write and evict the local buffers of a temporary table, its indexes and its TOAST table, or of all temporary tables that the caller owns; pinned pages and those of other owners are skipped';

CREATE FUNCTION pg_read_temp_relation(relation regclass, randomize boolean DEFAULT false)
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_read_temp_relation'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_read_temp_relation(regclass, boolean) IS
'read all blocks of a temporary table into local buffers, in order or in random order, and return their number';

CREATE FUNCTION pg_temp_buffers_dirty(relation regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_temp_buffers_dirty'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_temp_buffers_dirty(regclass) IS
'mark all pages of a temporary table that are in local buffers as dirty and return their number';

CREATE FUNCTION pg_temp_os_cache_evict(
	relation regclass,
	OUT pages bigint,
	OUT still_cached bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'pg_temp_os_cache_evict'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_temp_os_cache_evict(regclass) IS
'evict a temporary table from local buffers, and advise the kernel to drop its files from the page cache, which it may ignore; still_cached is the number of pages that the kernel reports as cached, null if it does not report that';

-- counters of the session

CREATE FUNCTION temp_parallel_stats(
	OUT flushes bigint,
	OUT pages_flushed bigint,
	OUT flush_time float8,
	OUT workers_launched bigint,
	OUT hints_dropped bigint,
	OUT plans_left_to_leader bigint,
	OUT serial_by_flush bigint,
	OUT processors integer,
	OUT pages_shared bigint,
	OUT not_shared text)
RETURNS record
AS 'MODULE_PATHNAME', 'temp_parallel_stats'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION temp_parallel_stats() IS
'this session''s flushes before launches of workers, the pages and milliseconds they took, workers launched after them, pages whose hints the leader dropped, statements whose parallel plan the leader ran alone, statements that had no workers only because of the flush, the number of processors that the session may use, dirty pages that workers read in this session''s memory instead of the file, and why they cannot, if so';

-- calibrating the cost model

CREATE FUNCTION temp_parallel_calibrate(
	pages integer DEFAULT NULL,
	iterations integer DEFAULT 30,
	tablespace name DEFAULT NULL,
	max_cv float8 DEFAULT 0.25,
	OUT measured_pages integer,
	OUT measured_iterations integer,
	OUT write_page_us float8,
	OUT read_page_us float8,
	OUT scan_buffer_us float8,
	OUT process_page_us float8,
	OUT gain_page_us float8,
	OUT gain_low float8,
	OUT gain_high float8,
	OUT write_read_ratio float8,
	OUT ratio_low float8,
	OUT ratio_high float8,
	OUT write_cv float8,
	OUT gain_cv float8,
	OUT planner_unit_us float8,
	OUT write_temp_page_cost float8,
	OUT buffer_scan_cost float8,
	OUT set_commands text[],
	OUT alter_system_commands text[])
RETURNS record
AS 'MODULE_PATHNAME', 'temp_parallel_calibrate'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION temp_parallel_calibrate(integer, integer, name, float8) IS
'measure on a temporary table of its own, in microseconds, what writing, reading and processing a page and looking at a buffer take and what workers gain, and recommend settings for the cost model; nulls where the measurements vary by more than max_cv, or workers gain nothing';

CREATE FUNCTION temp_parallel_tables(
	OUT relation regclass,
	OUT pages bigint,
	OUT dirty_pages integer,
	OUT flush_cost float8,
	OUT account float8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'temp_parallel_tables'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION temp_parallel_tables() IS
'temporary tables of this session and what flushing them would cost';

CREATE VIEW temp_parallel_tables AS
	SELECT * FROM temp_parallel_tables();

COMMENT ON VIEW temp_parallel_tables IS
'temporary tables of this session and what flushing them would cost';
COMMENT ON COLUMN temp_parallel_tables.pages IS
'pages of the table itself';
COMMENT ON COLUMN temp_parallel_tables.dirty_pages IS
'dirty local buffers of the table, its indexes and its TOAST table';
COMMENT ON COLUMN temp_parallel_tables.flush_cost IS
'what the planner would charge for writing them if the account were empty';
COMMENT ON COLUMN temp_parallel_tables.account IS
'what workers would have saved so far had the table been clean, and what sharing its pages has cost; subtracted from the flush cost';

GRANT SELECT ON temp_parallel_tables TO PUBLIC;
