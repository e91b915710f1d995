/*-------------------------------------------------------------------------
 *
 * flush_placement.c
 *	  The flush node's place in a finished plan.
 *
 * Each Gather whose workers may read temporary tables gets one flush node below
 * it.  As near to the Gather as possible, where the fewest rows pass, but below
 * what ExecSetTupleBound() reaches a Sort through: a node that it does not know
 * would turn every worker's top-N sort into a full one.
 *
 * A worker initializes every parallel-safe subplan of the statement, also those
 * that only the leader runs, and BRIN, SP-GiST and bloom read a page of their
 * index as soon as a scan is initialized.  A subplan that no Gather runs is
 * therefore kept from workers if it reads a temporary table; one that some
 * Gather runs has its tables flushed by all of them.
 *
 * The invariant: no Gather in the plan is without its flush node if its workers
 * read, or get with a subplan, a temporary table.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "nodes/pg_list.h"

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
	children = plan_children(plan);
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
insert_flush_node(Plan *gather, const TempFlushPlan *info, int plan_node_id)
{
	Plan	  **place = &gather->lefttree;
	Plan	  **child;
	CustomScan *flush;

	while ((child = tuple_bound_child(*place)) != NULL)
	{
		(*place)->startup_cost += info->planned.cost;
		(*place)->total_cost += info->planned.cost;
		place = child;
	}

	flush = make_temp_flush(*place, info, plan_node_id);
	*place = &flush->scan.plan;
}

/*
 * The flush node of top, which is what a Gather has below it: the plan that its
 * workers run.  NULL if there is none.
 */
CustomScan *
find_flush_node(Plan *top)
{
	Plan	  **place = &top;
	Plan	  **child;

	while ((child = tuple_bound_child(*place)) != NULL)
		place = child;
	return is_temp_flush(*place) ? (CustomScan *) *place : NULL;
}

/* The flush node below gather, or NULL. */
CustomScan *
gather_flush_node(Plan *gather)
{
	return find_flush_node(gather->lefttree);
}

typedef struct Placement
{
	PlannedStmt *stmt;
	LocalBufStats *stats;		/* NULL until needed */
	int			last_id;		/* highest plan_node_id */
	Bitmapset  *run;			/* plan_ids of subplans that workers run */
	List	   *subplan_relids; /* temporary tables that these read */
} Placement;

/* Note which subplans are run below a Gather of plan. */
static void
find_subplans_of_workers(Plan *plan, Placement *placement)
{
	List	   *children;
	ListCell   *lc;

	if (plan == NULL)
		return;
	if (is_gather(plan))
	{
		(void) plan_temp_tables(plan->lefttree, placement->stmt->rtable,
								placement->stmt->subplans, &placement->run);
		return;					/* Gathers do not nest */
	}
	children = plan_children(plan);
	foreach(lc, children)
		find_subplans_of_workers(lfirst(lc), placement);
	list_free(children);
}

/*
 * Keep from workers what only the leader runs, and note which tables the other
 * subplans read.
 */
static void
sort_subplans(Placement *placement)
{
	PlannedStmt *stmt = placement->stmt;
	int			plan_id = 0;
	ListCell   *lc;

	foreach(lc, stmt->subplans)
	{
		Plan	   *subplan = lfirst(lc);
		List	   *relids;

		plan_id++;
		if (subplan == NULL || !subplan->parallel_safe)
			continue;
		relids = plan_temp_tables(subplan, stmt->rtable, stmt->subplans, NULL);
		if (relids == NIL)
			continue;
		if (bms_is_member(plan_id, placement->run))
			placement->subplan_relids =
				list_concat_unique_oid(placement->subplan_relids, relids);
		else
			subplan->parallel_safe = false; /* see ExecSerializePlan() */
	}
}

static void
place_in_plan(Plan *plan, Placement *placement)
{
	List	   *children;
	ListCell   *lc;

	if (plan == NULL)
		return;

	if (is_gather(plan))
	{
		PlannedStmt *stmt = placement->stmt;
		TempFlushPlan info;

		info.relids = plan_temp_tables(plan->lefttree, stmt->rtable,
									   stmt->subplans, NULL);
		info.relids = list_concat_unique_oid(info.relids,
											 placement->subplan_relids);
		if (info.relids != NIL)
		{
			if (placement->stats == NULL)
				placement->stats = localbuf_stats_collect();
			info.planned = flush_cost_of_tables(placement->stats, info.relids);
			insert_flush_node(plan, &info, ++placement->last_id);
		}
		return;
	}

	children = plan_children(plan);
	foreach(lc, children)
		place_in_plan(lfirst(lc), placement);
	list_free(children);
}

/*
 * Give each Gather of stmt that needs one its flush node.  stats are the counts
 * that the planner reckoned with, or NULL if it never needed them (a plan that
 * debug_parallel_query made parallel).  Changes the plan in place.
 */
void
place_flush_nodes(PlannedStmt *stmt, LocalBufStats *stats)
{
	Placement	placement = {0};
	ListCell   *lc;

	placement.stmt = stmt;
	placement.stats = stats;
	placement.last_id = max_plan_node_id(stmt->planTree);
	find_subplans_of_workers(stmt->planTree, &placement);
	foreach(lc, stmt->subplans)
	{
		placement.last_id = Max(placement.last_id,
								max_plan_node_id(lfirst(lc)));
		find_subplans_of_workers(lfirst(lc), &placement);
	}
	sort_subplans(&placement);

	place_in_plan(stmt->planTree, &placement);
	foreach(lc, stmt->subplans)
		place_in_plan(lfirst(lc), &placement);
}
