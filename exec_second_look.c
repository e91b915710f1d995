/*-------------------------------------------------------------------------
 *
 * exec_second_look.c
 *	  Is the parallel plan still worth its flush?
 *
 * A plan may be older than the pool's state: made when the tables were clean,
 * cached, and executed after a gigabyte has been loaded.  Before a statement
 * runs, the flush is therefore priced again.  If it has become dearer, and the
 * parallel plan with the new price costs more than the same plan run by the
 * leader alone, the statement runs without parallel mode, and nothing is
 * written.
 *
 * Cached plans are executed often, so what costs most comes last: a statement
 * without a flush node does not come here, and the tables' sizes are asked for
 * only when the flush has become dearer.
 *
 * The invariant: a plan whose flush costs no more than the planner reckoned
 * with runs as planned, and a cached plan is never changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/spccache.h"

#include "exec.h"

/* How many processes share the rows: get_parallel_divisor() of costsize.c. */
static double
parallel_divisor(int workers)
{
	double		divisor = workers;

	if (parallel_leader_participation)
		divisor += Max(1.0 - 0.3 * workers, 0.0);
	return divisor;
}

/* The disk cost of cost_seqscan() of costsize.c, the same for every reader. */
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
 * What plan, whose rows the workers share, costs if one process does it all.
 * The planner has divided the CPU cost of each node by divisor, so each node's
 * own part is multiplied again; a child that every process runs as a whole, and
 * a table read from disk, cost what they cost (see cost_seqscan() and
 * initial_cost_hashjoin() of costsize.c).  Errs on the high side where a
 * node's disk and CPU cost cannot be told apart.
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
 * Is stmt, whose plan needs parallel mode and has flush nodes, a List of
 * CustomScanState, cheaper by now if the leader runs it alone?  Leaves garbage in
 * the current memory context.
 */
bool
tp_leader_alone_is_cheaper(PlannedStmt *stmt, List *flush_nodes)
{
	LocalBufStats *stats = tp_localbuf_stats_for_price();
	Cost		planned_flush = 0;
	Cost		flush = 0;
	Cost		parallel = 0;	/* of all Gathers, less their flush */
	Cost		alone = 0;		/* of all Gathers, by the leader alone */
	ListCell   *lc;

	foreach(lc, flush_nodes)
	{
		const FlushPlan *plan = tp_flush_node_plan(lfirst(lc));

		planned_flush += plan->planned.cost;
		flush += tp_flush_cost_of_tables(stats, plan->relids,
										 plan->indexes).cost;
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
	return parallel - planned_flush + flush > alone;
}
