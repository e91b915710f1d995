/*-------------------------------------------------------------------------
 *
 * localbuf_funcs.c
 *	  SQL functions about the session's own local buffers.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "tcop/utility.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pg_flush_local_buffers);
PG_FUNCTION_INFO_V1(pg_allocated_local_buffers);
PG_FUNCTION_INFO_V1(pg_dirty_local_buffers);
PG_FUNCTION_INFO_V1(pg_temp_flush_cost);

/*
 * Raise an error unless relid is a table that this module handles.  Takes and
 * keeps AccessShareLock on it.
 */
static void
check_session_temp_table(Oid relid)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (rel->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table",
						RelationGetRelationName(rel)),
				 errhint("Name a temporary table; its indexes and its TOAST table are counted with it.")));
	if (!RelationUsesLocalBuffers(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a temporary table",
						RelationGetRelationName(rel)),
				 errhint("Only temporary tables are in local buffers.")));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	relation_close(rel, NoLock);
}

/*
 * pg_flush_local_buffers() returns bigint
 *
 * Write all dirty local buffers; return the number of pages written.  Not
 * while workers may be reading the files.
 */
Datum
pg_flush_local_buffers(PG_FUNCTION_ARGS)
{
	PreventCommandIfParallelMode("pg_flush_local_buffers()");
	PG_RETURN_INT64(flush_local_buffers(NULL, 0));
}

/*
 * pg_allocated_local_buffers() returns integer
 *
 * The number of local buffers that have storage.
 */
Datum
pg_allocated_local_buffers(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(localbuf_stats_collect()->allocated);
}

/*
 * pg_dirty_local_buffers() returns integer
 *
 * The number of local buffers that are dirty.
 */
Datum
pg_dirty_local_buffers(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(localbuf_stats_collect()->dirtied);
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

	if (PG_ARGISNULL(0))
		PG_RETURN_FLOAT8(flush_cost_of_pool(localbuf_stats_collect()).cost);

	check_session_temp_table(PG_GETARG_OID(0));
	stats = localbuf_stats_collect();
	PG_RETURN_FLOAT8(flush_cost_of_tables(stats,
										  list_make1_oid(PG_GETARG_OID(0))).cost);
}
