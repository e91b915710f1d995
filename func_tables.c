/*-------------------------------------------------------------------------
 *
 * func_tables.c
 *	  SQL function that shows temporary tables and what flushing them costs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/tuplestore.h"

#include "func.h"

PG_FUNCTION_INFO_V1(temp_parallel_tables);

/*
 * temp_parallel_tables() returns setof record
 *
 * One row for each temporary table of the session, partitions included: its
 * pages; the dirty pages of its family; what a flush of these costs, in
 * planner cost units; and its account.  Takes AccessShareLock on each table
 * until the end of the transaction.
 */
Datum
temp_parallel_tables(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	LocalBufStats *stats;
	HASH_SEQ_STATUS seq;
	TempRelation *relation;

	tp_refuse_in_worker();
	InitMaterializedSRF(fcinfo, 0);

	stats = tp_localbuf_stats_collect();
	hash_seq_init(&seq, tp_session_temp_relations());
	while ((relation = hash_seq_search(&seq)) != NULL)
	{
		Datum		values[5];
		bool		nulls[5] = {0};
		FlushCost	flush;
		Relation	table;

		CHECK_FOR_INTERRUPTS();
		if (relation->relkind != RELKIND_RELATION)
			continue;
		table = try_relation_open(relation->relid, AccessShareLock);
		if (table == NULL)
			continue;			/* dropped by another session */
		flush = tp_flush_cost_of_tables(stats, list_make1_oid(relation->relid),
										tp_table_indexes(relation->relid));
		values[0] = ObjectIdGetDatum(relation->relid);
		values[1] = Int64GetDatum((int64) RelationGetNumberOfBlocks(table));
		values[2] = Int32GetDatum(flush.dirtied);
		values[3] = Float8GetDatum(flush.cost);
		values[4] = Float8GetDatum(flush.account);
		relation_close(table, NoLock);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
