/*-------------------------------------------------------------------------
 *
 * func_localbuf.c
 *	  SQL functions about the session's own local buffers.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "fmgr.h"
#include "nodes/pg_list.h"

PG_FUNCTION_INFO_V1(pg_flush_local_buffers);
PG_FUNCTION_INFO_V1(pg_allocated_local_buffers);
PG_FUNCTION_INFO_V1(pg_dirty_local_buffers);
PG_FUNCTION_INFO_V1(pg_temp_flush_cost);

/*
 * pg_flush_local_buffers() returns bigint
 *
 * Write all dirty local buffers; return the number of pages written.  Not
 * while workers may be reading the files.  Those of tables that another session
 * has dropped are discarded.
 */
Datum
pg_flush_local_buffers(PG_FUNCTION_ARGS)
{
	RelFileLocator *heaps;
	int			nheaps;

	tp_refuse_while_workers_read("pg_flush_local_buffers()");
	tp_discard_dropped_relations();
	nheaps = tp_session_heaps(&heaps);
	PG_RETURN_INT64(tp_flush_local_buffers(NULL, 0, heaps, nheaps));
}

/*
 * pg_allocated_local_buffers() returns integer
 *
 * The number of local buffers that have storage.
 */
Datum
pg_allocated_local_buffers(PG_FUNCTION_ARGS)
{
	tp_refuse_in_worker();
	PG_RETURN_INT32(tp_localbuf_stats_collect()->allocated);
}

/*
 * pg_dirty_local_buffers() returns integer
 *
 * The number of local buffers that are dirty.
 */
Datum
pg_dirty_local_buffers(PG_FUNCTION_ARGS)
{
	tp_refuse_in_worker();
	PG_RETURN_INT32(tp_localbuf_stats_collect()->dirtied);
}

/*
 * pg_temp_flush_cost(relation regclass default null) returns float8
 *
 * What the planner would charge now for flushing a temporary table with its
 * indexes and TOAST table, or, without one, the whole pool; in the planner's
 * units.
 */
Datum
pg_temp_flush_cost(PG_FUNCTION_ARGS)
{
	LocalBufStats *stats;
	Oid			relid;

	tp_refuse_in_worker();
	if (PG_ARGISNULL(0))
		PG_RETURN_FLOAT8(tp_flush_cost_of_pool(tp_localbuf_stats_collect()).cost);

	relid = tp_temp_table_argument(fcinfo, 0, MAY_READ_TABLE);
	stats = tp_localbuf_stats_collect();
	PG_RETURN_FLOAT8(tp_flush_cost_of_table(stats, relid).cost);
}
