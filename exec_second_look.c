/*-------------------------------------------------------------------------
 *
 * exec_second_look.c
 *	  The second look: is a parallel plan still worth its flush?
 *
 * A cached plan may have been made when the tables were clean, and be executed
 * after a gigabyte has been loaded.  So the charge for the flush is computed
 * again before a statement runs.  If it is higher than when the plan was made,
 * and than what the workers save, which is in the flush nodes (plan_saving.c),
 * the statement runs without parallel mode, and nothing is written.
 *
 * The invariant: a plan whose flush is charged no more than when it was
 * planned runs as planned, and a cached plan is never changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"

/*
 * Is it now cheaper if the leader runs a plan alone?  flush_nodes is a List of
 * CustomScanState, its flush nodes.
 * Allocates in the current memory context, and frees nothing.
 */
bool
tp_leader_alone_is_cheaper(List *flush_nodes)
{
	const FlushPlan *first = tp_flush_node_plan(linitial(flush_nodes));
	LocalBufStats *stats = tp_stats_for_price(first->any_user_code);
	Cost		planned = 0;	/* the charge when planned */
	Cost		charge = 0;		/* the charge now, without the search */
	Cost		search = 0;
	Cost		saving = 0;
	ListCell   *lc;

	foreach(lc, flush_nodes)
	{
		const FlushPlan *plan = tp_flush_node_plan(lfirst(lc));
		FlushCost	now = tp_flush_cost_of_tables(stats, plan->relids,
												  plan->indexes);

		planned += plan->planned.charge;
		charge += now.charge - now.search;
		search += now.search;
		saving += plan->saving.saving;
	}
	return charge + search > planned && charge > saving;
}
