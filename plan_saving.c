/*-------------------------------------------------------------------------
 *
 * plan_saving.c
 *	  Adds to the accounts of temporary tables (flush_cost.c) what workers would have
 *	  saved in a statement that ran without them only because of the flush.
 *
 * That is done when the statement has run to its end, so one that is only explained
 * changes no account, and a cached plan does so at each execution.
 *
 * The invariant: all that is lost in a statement is added, and no more than the
 * statement costs.  So a flush is never later than the accounts promise.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "plan.h"

/* Add to *relids the tables whose scans at or below ps have been started. */
static bool
collect_scanned(PlanState *ps, List **relids)
{
	bool		started = false;

	switch (nodeTag(ps))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			started = ((ScanState *) ps)->ss_currentScanDesc != NULL;
			break;
		case T_IndexScanState:
			started = ((IndexScanState *) ps)->iss_ScanDesc != NULL;
			break;
		case T_IndexOnlyScanState:
			started = ((IndexOnlyScanState *) ps)->ioss_ScanDesc != NULL;
			break;
		case T_BitmapHeapScanState:
			started = ((BitmapHeapScanState *) ps)->initialized;
			break;
		default:
			break;
	}
	if (started)
		*relids = list_append_unique_oid(*relids,
										 RelationGetRelid(((ScanState *) ps)->ss_currentRelation));
	return planstate_tree_walker(ps, collect_scanned, relids);
}

/* Those of tables relids that still exist. */
static List *
existing_tables(List *relids)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, relids)
	{
		if (tp_is_session_temp_table(lfirst_oid(lc)))
			result = lappend_oid(result, lfirst_oid(lc));
	}
	return result;
}

/*
 * Is the flush of the tables of saving worth it now, for a plan that is made again?  If it was
 * by that reckoning when the plan was made, only once it is charged no more than half, so that
 * a plan is not made again at each execution.
 */
static bool
flush_pays(const FlushSaving *saving, FlushCost flush)
{
	Cost		charge = flush.charge + (saving->searched ? 0 : flush.search);

	return charge < saving->saving &&
		(saving->charge >= saving->saving || charge <= saving->charge / 2);
}

/*
 * Add saving to the accounts of tables relids, in proportion to what it costs to write each.
 * An account that pays for that already gets nothing, and none gets more.  What would go to a
 * table that is not one of scanned is lost.  Returns whether one of these has an account that
 * can get something.
 */
static bool
credit_tables(Cost saving, List *relids, List *indexes, List *scanned)
{
	Cost	   *cost = palloc0(list_length(relids) * sizeof(Cost));
	Cost		sum = 0;
	bool		result = false;
	ListCell   *lc;

	foreach(lc, relids)
	{
		FlushCost	flush = tp_flush_estimate(list_make1_oid(lfirst_oid(lc)), indexes, false);

		/* what has an infinite cost is never flushed */
		if (flush.account < flush.cost && !isinf(flush.cost))
			cost[foreach_current_index(lc)] = flush.cost;
		sum += cost[foreach_current_index(lc)];
	}
	foreach(lc, relids)
	{
		Cost		most = cost[foreach_current_index(lc)];

		if (most <= 0 || !list_member_oid(scanned, lfirst_oid(lc)))
			continue;
		tp_account_add(lfirst_oid(lc), saving * (most / sum), most);
		result = true;
	}
	return result;
}

/*
 * tp_credit_savings() in a memory context of its own.  Where workers are all that has the pool
 * searched, the search is paid for each time.
 */
static bool
credit_in_context(List *savings, PlanState *root)
{
	FlushSaving sum = tp_sum_of_savings(savings);
	List	   *scanned = NIL;
	bool		credited = false;
	ListCell   *lc;

	(void) collect_scanned(root, &scanned);
	foreach(lc, savings)
	{
		FlushSaving *saving = lfirst(lc);
		List	   *relids = existing_tables(saving->relids);
		FlushCost	flush = tp_flush_estimate(relids, saving->indexes, false);
		Cost		net = saving->saving - (saving->searched ? 0 : flush.search);

		if (net <= 0 || list_length(list_difference_oid(saving->relids, scanned)) == list_length(saving->relids))
			continue;
		credited = true;

		/*
		 * A partition that each execution prunes is flushed with the others
		 * nevertheless, so that it gets what they no longer need.
		 */
		if (!credit_tables(net, relids, saving->indexes, scanned))
			(void) credit_tables(net, relids, saving->indexes, relids);
	}
	if (credited)
	{
		List	   *relids = existing_tables(sum.relids);

		/* the accounts have changed */
		foreach(lc, flush_pays(&sum, tp_flush_estimate(relids, sum.indexes, false)) ? relids : NIL)
			tp_replan_for(lfirst_oid(lc));
	}
	return credited;
}

/*
 * Add savings, of FlushSaving, to the accounts of their tables: what workers would have saved in
 * the plan of which root is the topmost node, and which has run to its end without workers for
 * them.  The tables are locked.  One that the plan has not started to scan, or that the statement
 * has dropped, gets nothing, but for what the scanned ones do not need, and none does while
 * workers would not be launched as the processors are busy.  Returns whether something was lost.
 *
 * If a flush is worth it now, also because other statements have written pages, has the cached
 * plans of this session made again that have lost a saving with one of these tables.
 */
bool
tp_credit_savings(List *savings, PlanState *root)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "saving of a statement",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool		credited = !tp_processors_are_busy(root->plan->total_cost) &&
		credit_in_context(savings, root);

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return credited;
}
