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
#include "optimizer/plancat.h"
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
 * Is the flush of the tables of saving, which costs flush now, worth it, for a plan that is
 * made again?  If it was by that reckoning when the plan was made, only once it is charged
 * no more than half, so that a plan is not made again at each execution.
 */
static bool
flush_pays(const FlushSaving *saving, FlushCost flush)
{
	Cost		charge = flush.charge + flush.search;

	return charge < saving->saving &&
		(saving->charge >= saving->saving || charge <= saving->charge / 2);
}

/* The planner's estimate of the number of rows of table relid, at least 1. */
static double
estimated_rows(Oid relid)
{
	Relation	table = tp_relation_open(relid);
	BlockNumber pages;
	double		rows;
	double		all_visible;

	estimate_rel_size(table, NULL, &pages, &rows, &all_visible);
	RelationClose(table);
	return Max(rows, 1);
}

/*
 * Add saving to the accounts of tables relids, in proportion to their rows, as
 * workers save most where they read most rows.  If a large part went to a
 * table that adds little to the saving, the others would be flushed too late.
 * An account that pays for the flush of its table already gets nothing, none gets
 * more than that, and what would go to a table that is not one of scanned is lost.
 */
static void
credit_saving(Cost saving, List *relids, List *indexes, List *scanned)
{
	Cost	   *cost = palloc0(list_length(relids) * sizeof(Cost));
	double	   *rows = palloc0(list_length(relids) * sizeof(double));
	double		all_rows = 0;
	ListCell   *lc;

	foreach(lc, relids)
	{
		int			i = foreach_current_index(lc);
		FlushCost	flush = tp_flush_estimate(list_make1_oid(lfirst_oid(lc)),
											  indexes, false);

		cost[i] = flush.cost;
		if (flush.charge > 0 && !isinf(cost[i]))
			rows[i] = estimated_rows(lfirst_oid(lc));
		all_rows += rows[i];
	}
	foreach(lc, relids)
	{
		int			i = foreach_current_index(lc);

		if (rows[i] > 0 && list_member_oid(scanned, lfirst_oid(lc)))
			tp_account_add(lfirst_oid(lc), saving * rows[i] / all_rows, cost[i]);
	}
}

/* tp_credit_saving() in a memory context of its own. */
static bool
credit_in_context(const FlushSaving *saving, PlanState *root)
{
	List	   *scanned = NIL;
	List	   *relids = existing_tables(saving->relids);
	FlushCost	flush = tp_flush_estimate(relids, saving->indexes, false);
	Cost		net = saving->saving - flush.search;	/* which is paid for
														 * each time */
	ListCell   *lc;

	(void) collect_scanned(root, &scanned);
	if (net <= 0 ||
		list_length(list_difference_oid(saving->relids, scanned)) == list_length(saving->relids))
		return false;
	credit_saving(net, relids, saving->indexes, scanned);
	/* the accounts have changed */
	flush = tp_flush_estimate(relids, saving->indexes, false);
	foreach(lc, flush_pays(saving, flush) ? relids : NIL)
		tp_replan_for(lfirst_oid(lc));
	return true;
}

/*
 * Add saving to the accounts of its tables.  It is what workers would have saved in the
 * plan of which root is the topmost node, and which has run to its end without workers for
 * these tables.  A table that the plan has not started to scan gets nothing.  Returns
 * whether one gets something.  The tables are locked, except those that the statement itself
 * has dropped, which get nothing.
 *
 * If a flush is worth it now, invalidates the cached plans of this session that have
 * lost a saving with one of these tables, so that they are made again; also if the
 * reason is that other statements have written pages.
 */
bool
tp_credit_saving(const FlushSaving *saving, PlanState *root)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "saving of a statement",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool		credited = credit_in_context(saving, root);

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return credited;
}
