/*-------------------------------------------------------------------------
 *
 * func.c
 *	  The SQL functions.
 *
 * Each checks, in this order: parallel mode; then its table: is it given, does it exist,
 * is it a table, is it temporary, does it belong to this session, does the caller have the
 * privilege?  Each error has its SQLSTATE, and a hint that says what is accepted.
 *
 * Ownership is required for what causes work for the owner, to write or read pages again,
 * SELECT for the rest, as in contrib/pg_prewarm, and nothing for a flush of the whole pool,
 * which the server writes from when it needs a buffer.
 *
 * The invariant: nothing has been read, written or evicted when one of these checks raises
 * an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "exec.h"

PG_FUNCTION_INFO_V1(pg_allocated_local_buffers);
PG_FUNCTION_INFO_V1(pg_flush_local_buffers);
PG_FUNCTION_INFO_V1(pg_flush_local_buffers_relation);
PG_FUNCTION_INFO_V1(pg_read_temp_relation);
PG_FUNCTION_INFO_V1(pg_temp_buffers_dirty);
PG_FUNCTION_INFO_V1(pg_evict_local_buffers);
PG_FUNCTION_INFO_V1(temp_parallel_pages);
PG_FUNCTION_INFO_V1(temp_parallel_flush_cost);
PG_FUNCTION_INFO_V1(temp_parallel_stats);
PG_FUNCTION_INFO_V1(temp_parallel_stats_reset);
PG_FUNCTION_INFO_V1(temp_parallel_session_counts);

/* ----------
 * Checks
 * ----------
 */

/* Raise an error in a parallel worker, whose pool is not the session's. */
static void
refuse_in_worker(void)
{
	if (IsParallelWorker())
		tp_worker_refuse();
}

/*
 * Raise an error, with function's name, if workers may be reading temporary tables: the
 * server leaves parallel mode after all of them have exited.
 */
static void
refuse_while_workers_read(const char *function)
{
	/* message and SQLSTATE of PreventCommandIfParallelMode() of utility.c */
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot execute %s during a parallel operation",
						function),
				 errhint("Mark the function that does so PARALLEL UNSAFE.")));
}

/*
 * Returns the OID of the table that the first argument names, a temporary table of this
 * session that the caller may read, or owns if must_own is set; otherwise an error.  Takes
 * AccessShareLock on the table, and keeps it until the end of the transaction.
 */
static Oid
temp_table_argument(FunctionCallInfo fcinfo, bool must_own)
{
	Oid			relid;
	Relation	rel;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("relation cannot be null"),
				 errhint("Name a temporary table of this session.")));
	relid = PG_GETARG_OID(0);

	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid),
				 errhint("Name a temporary table of this session.")));
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned table",
						RelationGetRelationName(rel)),
				 errhint("Name its partitions, which have the pages.")));
	if (rel->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table",
						RelationGetRelationName(rel)),
				 errhint("Name a temporary table; its indexes and its TOAST table are included.")));
	if (!RelationUsesLocalBuffers(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a temporary table",
						RelationGetRelationName(rel)),
				 errhint("Only temporary tables are in local buffers.")));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions"),
				 errhint("Each session has local buffers of its own.")));
	if (must_own && !role_owns_relation(relid, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of table %s",
						RelationGetRelationName(rel)),
				 errhint("Only the owner of a temporary table may evict its pages or mark them dirty.")));
	if (!must_own &&
		pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table %s",
						RelationGetRelationName(rel)),
				 errhint("This needs the SELECT privilege on the table.")));
	relation_close(rel, NoLock);
	return relid;
}

/* Returns a value of the function's result type, which is a row type. */
static Datum
make_record(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values,
											 nulls));
}

/* ----------
 * Flushing, reading, dirtying and evicting
 * ----------
 */

/* pg_allocated_local_buffers() returns integer: local buffers that have storage */
Datum
pg_allocated_local_buffers(PG_FUNCTION_ARGS)
{
	refuse_in_worker();
	PG_RETURN_INT32(tp_used_buffers());
}

/*
 * pg_flush_local_buffers() returns bigint
 * Write all dirty local buffers; return their number.
 */
Datum
pg_flush_local_buffers(PG_FUNCTION_ARGS)
{
	refuse_while_workers_read("pg_flush_local_buffers()");
	PG_RETURN_INT64(tp_flush_all_local_buffers());
}

/*
 * pg_flush_local_buffers(relation regclass) returns bigint
 * Write the dirty pages of a temporary table, its indexes and its TOAST table;
 * return their number.
 */
Datum
pg_flush_local_buffers_relation(PG_FUNCTION_ARGS)
{
	Oid			relid;

	refuse_while_workers_read("pg_flush_local_buffers()");
	relid = temp_table_argument(fcinfo, false);
	PG_RETURN_INT64(tp_flush_tables(list_make1_oid(relid),
									tp_table_indexes(relid), NULL, 0, 0));
}

/*
 * pg_read_temp_relation(relation regclass, randomize boolean) returns bigint
 * Read all blocks of a temporary table's main fork into local buffers, in order or in
 * random order; return their number.
 */
Datum
pg_read_temp_relation(PG_FUNCTION_ARGS)
{
	Oid			relid;
	Relation	rel;
	BlockNumber nblocks;

	refuse_while_workers_read("pg_read_temp_relation()");
	relid = temp_table_argument(fcinfo, false);
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
 * Mark as dirty all pages of a temporary table, without its indexes and its TOAST table,
 * that are in local buffers; return their number.
 */
Datum
pg_temp_buffers_dirty(PG_FUNCTION_ARGS)
{
	Oid			relid;
	Relation	rel;
	int64		marked;

	refuse_while_workers_read("pg_temp_buffers_dirty()");
	relid = temp_table_argument(fcinfo, true);

	rel = relation_open(relid, AccessShareLock);
	marked = tp_dirty_local_buffers_of(rel);
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64(marked);
}

/*
 * pg_evict_local_buffers(relation regclass default null) returns record
 * Write the dirty pages of a temporary table, its indexes and its TOAST table, or of all
 * that the caller owns, and evict those of their pages that are not pinned.
 */
Datum
pg_evict_local_buffers(PG_FUNCTION_ARGS)
{
	LocalBufEviction result;
	Datum		values[3];
	bool		nulls[3] = {0};

	refuse_while_workers_read("pg_evict_local_buffers()");

	if (PG_ARGISNULL(0))
		result = tp_evict_owned_local_buffers();
	else
		result = tp_evict_local_buffers_of_table(temp_table_argument(fcinfo, true));

	values[0] = Int32GetDatum(result.evicted);
	values[1] = Int32GetDatum(result.flushed);
	values[2] = Int32GetDatum(result.skipped);
	return make_record(fcinfo, values, nulls);
}

/* ----------
 * Showing
 * ----------
 */

/*
 * May the caller see which pages of the relation, NULL if it is not known, are in the pool?
 * Those of an index may reveal which keys were looked up.  Roles that may read the table may
 * see them, and so may those to which pg_buffercache shows all tables.
 */
static bool
may_see_pages_of(const TempRelation *relation)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_MONITOR) ||
		(relation != NULL &&
		 pg_class_aclcheck(relation->table, GetUserId(), ACL_SELECT) == ACLCHECK_OK);
}

/*
 * temp_parallel_pages() returns setof record: one row per buffer of the pool.
 * For a buffer that holds no page, only its number; for a page that the caller may not see,
 * nothing that identifies it.  Pages of a file that the running transaction has dropped have
 * no relation.  As pg_buffercache_pages() of contrib's pg_buffercache_pages.c.
 */
Datum
temp_parallel_pages(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HTAB	   *relations;
	TempRelation *relation = NULL;
	TempRelation *last = NULL;
	bool		visible = may_see_pages_of(NULL);

	refuse_in_worker();
	InitMaterializedSRF(fcinfo, 0);

	relations = tp_session_temp_relations(NIL);
	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		BufferState state = LocalBufferStateRead(buf);
		Datum		values[11] = {0};
		bool		nulls[11];

		CHECK_FOR_INTERRUPTS();

		memset(nulls, true, sizeof(nulls));
		values[0] = Int32GetDatum(i + 1);
		nulls[0] = false;
		if ((state & BM_VALID) != 0 && (state & BM_TAG_VALID) != 0)
		{
			RelFileLocator locator = BufTagGetRelFileLocator(&buf->tag);

			relation = tp_relation_of_buffer(relations, i, last);
			if (relation != last)
				visible = may_see_pages_of(relation);
			last = relation;
			values[1] = ObjectIdGetDatum(RelFileLocatorNumber(locator));
			values[2] = ObjectIdGetDatum(RelFileLocatorSpc(locator));
			values[3] = ObjectIdGetDatum(RelFileLocatorDb(locator));
			values[4] = Int16GetDatum((int16) BufTagGetForkNum(&buf->tag));
			values[5] = Int64GetDatum((int64) buf->tag.blockNum);
			values[6] = BoolGetDatum((state & BM_DIRTY) != 0);
			values[7] = Int16GetDatum((int16) BUF_STATE_GET_USAGECOUNT(state));
			values[8] = Int32GetDatum(LocalRefCount[i]);
			memset(&nulls[6], false, 3 * sizeof(bool));
			if (visible)
				memset(&nulls[1], false, 5 * sizeof(bool));
			if (visible && relation != NULL)
			{
				values[9] = ObjectIdGetDatum(relation->table);
				values[10] = ObjectIdGetDatum(relation->relid);
				nulls[9] = nulls[10] = false;
			}
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * temp_parallel_flush_cost(relation regclass) returns record
 * The dirty pages of a temporary table, its indexes and its TOAST table; the cost of
 * flushing them with the search, and the account, in planner cost units.
 */
Datum
temp_parallel_flush_cost(PG_FUNCTION_ARGS)
{
	Oid			relid;
	FlushCost	flush;
	Datum		values[3];
	bool		nulls[3] = {0};

	refuse_in_worker();
	relid = temp_table_argument(fcinfo, false);

	flush = tp_flush_cost_of_tables(tp_localbuf_stats_collect(),
									list_make1_oid(relid),
									tp_table_indexes(relid));
	values[0] = Int32GetDatum(flush.dirtied);
	values[1] = Float8GetDatum(flush.cost + flush.search);
	values[2] = Float8GetDatum(flush.account);
	return make_record(fcinfo, values, nulls);
}

/* temp_parallel_stats() returns record: the session's counters, and its processors */
Datum
temp_parallel_stats(PG_FUNCTION_ARGS)
{
	Datum		values[10];
	bool		nulls[10] = {0};

	refuse_in_worker();

	values[0] = Int64GetDatum(tp_session_stats->flushes);
	values[1] = Int64GetDatum(tp_session_stats->pages_flushed);
	values[2] = Float8GetDatum(tp_session_stats->flush_time);
	values[3] = Int64GetDatum(tp_session_stats->workers_launched);
	values[4] = Int64GetDatum(tp_session_stats->hints_dropped);
	values[5] = Int64GetDatum(tp_session_stats->left_to_leader);
	values[6] = Int64GetDatum(tp_session_stats->serial_by_flush);
	values[7] = Int32GetDatum(tp_usable_processors());
	values[8] = Int64GetDatum(tp_session_stats->pages_shared);
	nulls[9] = tp_sharing_failure() == NULL;
	if (!nulls[9])
		values[9] = CStringGetTextDatum(tp_sharing_failure());
	return make_record(fcinfo, values, nulls);
}

/* temp_parallel_stats_reset() returns void: zero the session's counters */
Datum
temp_parallel_stats_reset(PG_FUNCTION_ARGS)
{
	refuse_in_worker();
	memset(tp_session_stats, 0, sizeof(SessionStats));
	PG_RETURN_VOID();
}

/* The reason that stats has counted most often; empty if there is none. */
static const char *
most_frequent_reason(const SessionStats *stats)
{
	const SerialReason *most = &stats->reasons[0];

	for (int i = 1; i < MOST_REASONS; i++)
	{
		if (stats->reasons[i].statements > most->statements)
			most = &stats->reasons[i];
	}
	return most->name;
}

/*
 * temp_parallel_session_counts() returns setof record: a row for each session whose counters
 * others can see (session_activity.c).
 */
Datum
temp_parallel_session_counts(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ActivitySlot *slots;

	refuse_while_workers_read("temp_parallel_session_counts()");
	slots = tp_activity();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; slots != NULL && i < MaxBackends; i++)
	{
		int			pid = slots[i].pid;
		SessionStats stats;
		Datum		values[7];
		bool		nulls[7] = {0};

		if (pid == 0)
			continue;
		pg_read_barrier();
		stats = slots[i].stats;
		values[0] = ObjectIdGetDatum(slots[i].database);
		values[1] = Int32GetDatum(pid);
		values[2] = Int64GetDatum(stats.workers_launched);
		values[3] = Int64GetDatum(stats.pages_flushed);
		values[4] = Int64GetDatum(stats.pages_shared);
		values[5] = Int64GetDatum(stats.serial);
		values[6] = CStringGetTextDatum(most_frequent_reason(&stats));
		nulls[6] = stats.serial == 0;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	PG_RETURN_VOID();
}
