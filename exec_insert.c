/*-------------------------------------------------------------------------
 *
 * exec_insert.c
 *	  Execution of an INSERT whose SELECT workers run, in the leader.
 *
 * Before the executor enters parallel mode, the transaction, or its current
 * subtransaction, gets the ID with which rows are inserted: none can be
 * assigned afterwards.  While the statement runs, its targets are listed as
 * being written (readonly_targets.c).
 *
 * The plan may be a cached one, and the planner is not told of everything that
 * changes a partition.  So the rules for the target (plan_insert.c) are applied
 * again.  If they refuse it now, the statement runs without workers.
 *
 * The invariant: rows are inserted in parallel mode only into tables that are
 * listed, in no read-only phase, and not refused by plan_insert.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"

#include "exec.h"
#include "readonly.h"

/*
 * May queryDesc's statement, which needs parallel mode, run in it?  flushed are
 * the tables that its workers read, a List of Oid.  Sets *targets to the tables
 * that it writes, NIL if it is a SELECT.  A SELECT may not if an INSERT in
 * parallel mode, by which it is run, writes a table that would be flushed.
 * Allocates in the current memory context.
 */
bool
tp_may_write_in_parallel_mode(QueryDesc *queryDesc, List *flushed,
							  List **targets)
{
	ListCell   *lc;

	*targets = NIL;
	foreach(lc, flushed)
	{
		if (tp_table_is_written(lfirst_oid(lc)))
			return false;
	}
	if (queryDesc->operation == CMD_SELECT)
		return true;
	if (queryDesc->operation != CMD_INSERT)
		return false;

	*targets = tp_insert_targets_of_plan(queryDesc->plannedstmt);
	if (tp_oids_overlap(flushed, *targets))
		return false;
	foreach(lc, *targets)
	{
		if (tp_table_is_readonly(lfirst_oid(lc)))
			return false;
	}
	return tp_insert_target_refusal(*targets) == INSERT_MAY_BE_PARALLEL;
}

/*
 * Begin the run of an INSERT into tables targets, which has tp_written_end() as
 * its counterpart.
 */
void
tp_begin_insert(WrittenTables *tables, List *targets)
{
	(void) GetCurrentTransactionId();
	tp_written_begin(tables, targets);
}
