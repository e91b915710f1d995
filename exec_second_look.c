/*-------------------------------------------------------------------------
 *
 * exec_second_look.c
 *	  The second look: is a parallel plan still worth its flush?
 *
 * A cached plan may have been made when the tables were clean, and be executed
 * after a gigabyte has been loaded.  So the charge for the flush is computed
 * again before a statement runs.  If it is higher than when the plan was made,
 * and with it the parallel plan costs more than the same plan run by the
 * leader alone, the statement runs without parallel mode, and nothing is
 * written.
 *
 * Cached plans are executed often, so the expensive steps come last:
 * statements without flush nodes are not looked at, and the sizes of tables
 * are determined only if the charge has risen.
 *
 * The invariant: a plan whose flush is charged no more than when it was
 * planned runs as planned, and a cached plan is never changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"

/*
 * Is it now cheaper if the leader runs stmt alone?  flush_nodes is a List of
 * CustomScanState, the flush nodes of its plan, which needs parallel mode.  If
 * so, sets *saving to what workers would save if the tables were clean,
 * divided into shares; otherwise its contents are undefined.
 *
 * Opens tables without a lock, and closes them.  Allocates the lists of
 * *saving, and more, in the current memory context, and frees nothing.
 */
bool
tp_leader_alone_is_cheaper(PlannedStmt *stmt, List *flush_nodes,
						   FlushSaving *saving)
{
	LocalBufStats *stats = tp_stats_for_statement(stmt);
	Cost		planned_flush = 0;	/* the charge when planned */
	Cost		flush = 0;		/* the charge now */
	Cost		search = 0;		/* the part of it for the search of the pool */
	Cost		parallel = 0;	/* of all Gathers, with planned_flush */
	Cost		alone = 0;		/* of all Gathers, by the leader alone */
	ListCell   *lc;

	memset(saving, 0, sizeof(FlushSaving));
	foreach(lc, flush_nodes)
	{
		const FlushPlan *plan = tp_flush_node_plan(lfirst(lc));
		FlushCost	now;

		planned_flush += plan->planned.charge;
		now = tp_flush_cost_of_tables(stats, plan->relids, plan->indexes);
		flush += now.charge;
		search += now.search;
		saving->relids = list_concat_unique_oid(saving->relids, plan->relids);
		saving->indexes = list_concat_unique_oid(saving->indexes,
												 plan->indexes);
	}
	if (flush <= planned_flush)
		return false;

	foreach(lc, tp_statement_gathers(stmt))
	{
		Plan	   *gather = lfirst(lc);

		parallel += gather->total_cost;
		alone += tp_gather_cost_alone(gather, stmt);
	}
	saving->saving = alone - (parallel - planned_flush);
	if (flush <= saving->saving)
		return false;
	saving->saving -= search;
	tp_divide_saving(saving, stmt);
	return true;
}
