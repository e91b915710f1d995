/*-------------------------------------------------------------------------
 *
 * plan_placement.c
 *	  The flush node's place in a finished plan.
 *
 * Each Gather whose workers may read temporary tables gets one flush node below
 * it.  As near to the Gather as possible, where the fewest rows pass, but below
 * what ExecSetTupleBound() reaches a Sort through: a node that it does not know
 * would turn every worker's top-N sort into a full one.
 *
 * The invariant: no Gather in the plan is without its flush node if a
 * temporary table is read below it and the Gather may launch workers.  A
 * statement over temporary tables whose plan is not known in all its nodes
 * launches none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"

/* The highest plan_node_id in plan. */
static int
max_plan_node_id(Plan *plan)
{
	int			max;
	List	   *children;
	ListCell   *lc;

	if (plan == NULL)
		return 0;
	max = plan->plan_node_id;
	children = tp_plan_children(plan);
	foreach(lc, children)
		max = Max(max, max_plan_node_id(lfirst(lc)));
	list_free(children);
	return max;
}

/* Where the child of a node that ExecSetTupleBound() looks through hangs. */
static Plan **
tuple_bound_child(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Sort:
		case T_IncrementalSort:
		case T_Result:
			return plan->lefttree ? &plan->lefttree : NULL;
		case T_SubqueryScan:
			return &((SubqueryScan *) plan)->subplan;
		default:
			return NULL;
	}
}

/*
 * Insert a flush node below gather, and add its cost to the nodes between the
 * two.  Gather itself carries the cost already.
 */
static void
insert_flush_node(Plan *gather, const FlushPlan *info, int plan_node_id)
{
	Plan	  **place = &gather->lefttree;
	Plan	  **child;
	CustomScan *flush;

	while ((child = tuple_bound_child(*place)) != NULL)
	{
		(*place)->startup_cost += info->planned.charge;
		(*place)->total_cost += info->planned.charge;
		place = child;
	}

	flush = tp_make_flush_node(*place, info, plan_node_id);
	*place = &flush->scan.plan;
}

/*
 * The flush node of top, which is what a Gather has below it: the plan that its
 * workers run.  NULL if there is none.
 */
CustomScan *
tp_find_flush_node(Plan *top)
{
	Plan	  **place = &top;
	Plan	  **child;

	while ((child = tuple_bound_child(*place)) != NULL)
		place = child;
	return tp_is_flush_node(*place) ? (CustomScan *) *place : NULL;
}

/*
 * Give each Gather of stmt that needs one its flush node.  stats are the counts
 * that the planner reckoned with, or NULL if it never needed them (a plan that
 * debug_parallel_query made parallel).  Changes the plan in place; returns whether
 * it has a flush node now.
 *
 * If a node of the plan is unknown, wherever it is, it may read temporary
 * tables unseen or have a Gather below it.  Then all of the statement's Gathers
 * run their plans in the leader, as they do when no worker is to be had:
 * ExecGather() and ExecGatherMerge() launch none without parallel mode, and a
 * parallel-aware node that has no shared state works alone.
 */
bool
tp_place_flush_nodes(PlannedStmt *stmt, LocalBufStats *stats)
{
	PlanContents all = tp_statement_contents(stmt);
	bool		placed = false;
	int			last_id;
	ListCell   *lc;

	if (all.unknown && tp_names_temp_table(stmt->rtable))
	{
		stmt->parallelModeNeeded = false;
		return false;
	}
	if (all.temp_tables == NIL)
		return false;

	last_id = max_plan_node_id(stmt->planTree);
	foreach(lc, stmt->subplans)
		last_id = Max(last_id, max_plan_node_id(lfirst(lc)));

	foreach(lc, tp_statement_gathers(stmt))
	{
		Plan	   *gather = lfirst(lc);
		PlanContents contents = tp_plan_contents(gather->lefttree, stmt->rtable,
											  stmt->subplans);
		FlushPlan info;

		if (contents.temp_tables == NIL)
			continue;
		if (stats == NULL)
			stats = tp_localbuf_stats_for_price();
		info.relids = contents.temp_tables;
		info.indexes = contents.indexes;
		info.planned = tp_flush_cost_of_tables(stats, info.relids, info.indexes);
		info.pins = tp_plan_pins(gather->lefttree, contents.subplans, stmt);
		info.user_code = contents.user_code;
		insert_flush_node(gather, &info, ++last_id);
		placed = true;
	}
	return placed;
}
