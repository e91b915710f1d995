/*-------------------------------------------------------------------------
 *
 * func_localbuf.c
 *	  SQL functions that count, flush, read, dirty and evict local buffers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "funcapi.h"

#include "func.h"

PG_FUNCTION_INFO_V1(pg_allocated_local_buffers);
PG_FUNCTION_INFO_V1(pg_dirty_local_buffers);
PG_FUNCTION_INFO_V1(pg_temp_flush_cost);
PG_FUNCTION_INFO_V1(pg_flush_local_buffers);
PG_FUNCTION_INFO_V1(pg_flush_local_buffers_relation);
PG_FUNCTION_INFO_V1(pg_read_temp_relation);
PG_FUNCTION_INFO_V1(pg_temp_buffers_dirty);
PG_FUNCTION_INFO_V1(pg_evict_local_buffers);

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
 * indexes and TOAST table, or, if that is null, the whole pool; in planner
 * cost units.
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
	PG_RETURN_FLOAT8(tp_flush_cost_of_tables(stats, list_make1_oid(relid),
											 tp_table_indexes(relid)).cost);
}

/*
 * pg_flush_local_buffers() returns bigint
 *
 * Write all dirty local buffers; return the number of pages written.  Pages of
 * tables that another session has dropped are discarded.  This and the
 * functions below raise an error while workers may be reading the files.
 */
Datum
pg_flush_local_buffers(PG_FUNCTION_ARGS)
{
	tp_refuse_while_workers_read("pg_flush_local_buffers()");
	tp_discard_dropped_relations();
	PG_RETURN_INT64(tp_flush_all_local_buffers());
}

/*
 * pg_flush_local_buffers(relation regclass) returns bigint
 *
 * Write the dirty pages of a temporary table, its indexes and its TOAST table;
 * return their number.
 */
Datum
pg_flush_local_buffers_relation(PG_FUNCTION_ARGS)
{
	Oid			relid;
	List	   *family;
	int64		written;

	tp_refuse_while_workers_read("pg_flush_local_buffers()");
	relid = tp_temp_table_argument(fcinfo, 0, MAY_READ_TABLE);
	family = tp_family_open(relid, tp_table_indexes(relid));
	written = tp_flush_local_buffers_of(family);
	tp_family_close(family);
	tp_cut_accounts(list_make1_oid(relid));
	PG_RETURN_INT64(written);
}

/*
 * pg_read_temp_relation(relation regclass, randomize boolean) returns bigint
 *
 * Read all blocks of a temporary table's main fork into local buffers, in
 * order or in random order; return their number.  A table that is larger than
 * the pool evicts its own first pages.
 */
Datum
pg_read_temp_relation(PG_FUNCTION_ARGS)
{
	Oid			relid;
	Relation	rel;
	BlockNumber nblocks;

	tp_refuse_while_workers_read("pg_read_temp_relation()");
	relid = tp_temp_table_argument(fcinfo, 0, MAY_READ_TABLE);
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("randomize cannot be null"),
				 errhint("Pass false to read the blocks in order, true to read them in random order.")));

	rel = relation_open(relid, AccessShareLock);
	nblocks = tp_read_into_local_buffers(rel, PG_GETARG_BOOL(1));
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64((int64) nblocks);
}

/*
 * pg_temp_buffers_dirty(relation regclass) returns bigint
 *
 * Mark as dirty all pages of a temporary table that are in local buffers;
 * return their number.  Its indexes and its TOAST table are left as they are.
 */
Datum
pg_temp_buffers_dirty(PG_FUNCTION_ARGS)
{
	Oid			relid;
	Relation	rel;
	int64		marked;

	tp_refuse_while_workers_read("pg_temp_buffers_dirty()");
	relid = tp_temp_table_argument(fcinfo, 0, MUST_OWN_TABLE);

	rel = relation_open(relid, AccessShareLock);
	marked = tp_dirty_local_buffers_of(rel);
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64(marked);
}

/*
 * pg_evict_local_buffers(relation regclass default null) returns record
 *
 * Write the dirty pages of a temporary table, its indexes and its TOAST table,
 * or of all that the caller owns, and evict all of their pages that are not
 * pinned from the pool.  Without an argument, pages of tables that another
 * session has dropped are discarded.
 */
Datum
pg_evict_local_buffers(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	LocalBufEviction result;
	Datum		values[3];
	bool		nulls[3] = {0};

	tp_refuse_while_workers_read("pg_evict_local_buffers()");
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	if (PG_ARGISNULL(0))
	{
		tp_discard_dropped_relations();
		result = tp_evict_owned_local_buffers();
	}
	else
		result = tp_evict_local_buffers_of_table(tp_temp_table_argument(fcinfo, 0,
																		MUST_OWN_TABLE));

	values[0] = Int32GetDatum(result.evicted);
	values[1] = Int32GetDatum(result.flushed);
	values[2] = Int32GetDatum(result.skipped);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
