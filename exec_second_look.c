/*-------------------------------------------------------------------------
 *
 * exec_second_look.c
 *	  The second look: is a parallel plan still worth its flush?
 *
 * A cached plan may have been made when the tables were clean, and be executed
 * after a gigabyte has been loaded.  So the cost of the flush is estimated
 * again before a statement runs.  If it is higher than the planner's estimate,
 * and with it the parallel plan costs more than the same plan run by the
 * leader alone, the statement runs without parallel mode, and nothing is
 * written.
 *
 * Cached plans are executed often, so the expensive steps come last:
 * statements without flush nodes are not looked at, and the sizes of tables
 * are determined only if the cost of the flush has risen.
 *
 * The invariant: a plan whose flush costs no more than the planner has
 * estimated runs as planned, and a cached plan is never changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/spccache.h"

#include "exec.h"

/*
 * Number of processes that share the rows: get_parallel_divisor() of
 * costsize.c.
 */
static double
parallel_divisor(int workers)
{
	double		divisor = workers;

	if (parallel_leader_participation)
		divisor += Max(1.0 - 0.3 * workers, 0.0);
	return divisor;
}

/*
 * Disk cost of plan, a SeqScan, as in cost_seqscan(); it does not depend on
 * the number of processes.  At most the plan's total cost.
 */
static Cost
seqscan_disk_cost(Plan *plan, PlannedStmt *stmt)
{
	RangeTblEntry *rte = rt_fetch(((Scan *) plan)->scanrelid, stmt->rtable);
	Relation	rel = tp_relation_open(rte->relid);
	double		page_cost;
	Cost		cost;

	get_tablespace_page_costs(rel->rd_rel->reltablespace, NULL, &page_cost);
	cost = page_cost * RelationGetNumberOfBlocks(rel);
	RelationClose(rel);
	return Min(cost, plan->total_cost);
}

/*
 * The cost of plan, a partial plan, if one process runs all of it.  The
 * planner has divided the CPU cost of each node by divisor, so each node's own
 * cost is multiplied by it again, but not the cost of a child that every
 * process runs completely, nor the disk cost of a sequential scan.  The result
 * is an overestimate for nodes whose disk and CPU costs cannot be separated.
 * Undoes what cost_seqscan() and initial_cost_hashjoin() of costsize.c do.
 */
static Cost
cost_alone(Plan *plan, double divisor, PlannedStmt *stmt)
{
	Cost		own = plan->total_cost;
	Cost		result = 0;
	List	   *children;
	ListCell   *lc;

	if (IsA(plan, SeqScan))
	{
		Cost		disk = seqscan_disk_cost(plan, stmt);

		return disk + (plan->total_cost - disk) * divisor;
	}

	children = tp_plan_children(plan);
	foreach(lc, children)
	{
		Plan	   *child = lfirst(lc);
		bool		whole = child == plan->righttree &&
			!(IsA(child, Hash) && child->parallel_aware);

		own -= child->total_cost;
		result += whole ? child->total_cost : cost_alone(child, divisor, stmt);
	}
	list_free(children);

	/* a flush node's own cost is the flush */
	if (!tp_is_flush_node(plan))
		result += Max(own, 0) * divisor;
	return result;
}

/*
 * Is it now cheaper if the leader runs stmt alone?  flush_nodes is a List of
 * CustomScanState, the flush nodes of its plan, which needs parallel mode.  If
 * so, *saving is what workers would save if the tables were clean.
 * Opens tables without a lock, and closes them.  Frees nothing of what it
 * allocates in the current memory context.
 */
bool
tp_leader_alone_is_cheaper(PlannedStmt *stmt, List *flush_nodes,
						   FlushSaving *saving)
{
	LocalBufStats *stats = tp_localbuf_stats_for_price();
	Cost		planned_flush = 0;	/* what was charged */
	Cost		flush = 0;		/* what would be now */
	Cost		parallel = 0;	/* of all Gathers, with planned_flush */
	Cost		alone = 0;		/* of all Gathers, by the leader alone */
	ListCell   *lc;

	memset(saving, 0, sizeof(FlushSaving));
	foreach(lc, flush_nodes)
	{
		const FlushPlan *plan = tp_flush_node_plan(lfirst(lc));

		planned_flush += plan->planned.charge;
		flush += tp_flush_cost_of_tables(stats, plan->relids,
										 plan->indexes).charge;
		saving->relids = list_concat_unique_oid(saving->relids, plan->relids);
		saving->indexes = list_concat_unique_oid(saving->indexes,
												 plan->indexes);
	}
	if (flush <= planned_flush)
		return false;

	foreach(lc, tp_statement_gathers(stmt))
	{
		Plan	   *gather = lfirst(lc);
		int			workers = IsA(gather, Gather) ?
			((Gather *) gather)->num_workers :
			((GatherMerge *) gather)->num_workers;

		parallel += gather->total_cost;
		alone += cost_alone(gather->lefttree, parallel_divisor(workers), stmt);
	}
	saving->saving = alone - (parallel - planned_flush);
	return flush > saving->saving;
}
