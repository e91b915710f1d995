/*-------------------------------------------------------------------------
 *
 * plan_placement.c
 *	  Placing flush nodes in a finished plan.
 *
 * Each Gather whose workers may read temporary tables gets one flush node
 * below it, as close to the Gather as possible, where the fewest rows pass.
 * But the node goes below those through which ExecSetTupleBound() reaches a
 * Sort: that function stops at a node that it does not know, and every
 * worker's top-N sort would become a full one.
 *
 * The invariant: a Gather that may launch workers has a flush node if a
 * temporary table is read below it.  A statement over temporary tables
 * launches no workers if its plan has unknown nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"

/*
 * The link to the child of plan if ExecSetTupleBound() of execProcnode.c goes
 * on to that child, otherwise NULL.  Append and Merge Append have several
 * children, and are left out.
 */
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
 * If gather is in the plan tree of plan, add charge to its cost and to those
 * of the nodes above it, and return true.
 */
static bool
add_charge(Plan *plan, Plan *gather, Cost charge)
{
	bool		found = plan == gather;
	List	   *children;
	ListCell   *lc;

	if (plan == NULL)
		return false;
	children = tp_plan_children(plan);
	foreach(lc, children)
		found = found || add_charge(lfirst(lc), gather, charge);
	list_free(children);
	if (found)
	{
		plan->startup_cost += charge;
		plan->total_cost += charge;
	}
	return found;
}

/* The same for the plan tree or the subplan of stmt that contains gather. */
static void
add_charge_to_statement(PlannedStmt *stmt, Plan *gather, Cost charge)
{
	ListCell   *lc;

	if (add_charge(stmt->planTree, gather, charge))
		return;
	foreach(lc, stmt->subplans)
	{
		if (add_charge(lfirst(lc), gather, charge))
			return;
	}
}

/*
 * Insert a flush node below gather, and add its charge to the costs of the
 * nodes between the two.  The cost of gather itself includes it already.
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
 * The flush node in top, the plan below a Gather, which its workers run.
 * NULL if there is none.
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
 * Number of workers that divide the plan below gather with the leader; 0 if
 * one process runs all of it.
 */
static int
planned_workers(Plan *gather)
{
	if (IsA(gather, GatherMerge))
		return ((GatherMerge *) gather)->num_workers;
	return ((Gather *) gather)->single_copy ? 0 :
		((Gather *) gather)->num_workers;
}

/* Number of pages of each of tables relids, in that order. */
static List *
pages_of_tables(List *relids)
{
	List	   *pages = NIL;
	ListCell   *lc;

	foreach(lc, relids)
	{
		Relation	table = tp_relation_open(lfirst_oid(lc));

		pages = lappend_int(pages, (int) RelationGetNumberOfBlocks(table));
		RelationClose(table);
	}
	return pages;
}

/*
 * The number of local buffers that a worker needs to run plan and the subplans
 * of stmt whose numbers are in plan_ids: for the pages that it may have pinned
 * at once, or for those that it looks rows up in and what it reads besides.
 */
static int
pool_of_worker(Plan *plan, Bitmapset *plan_ids, PlannedStmt *stmt)
{
	int			pins = tp_plan_pins(plan, plan_ids, stmt);
	int			lookups = tp_plan_lookup_pages(plan, plan_ids, stmt);

	if (lookups == 0)
		return pins;
	return Max(pins, lookups + tp_worker_temp_buffers);
}

/*
 * Give a flush node to each Gather of stmt that needs one, numbered after the
 * nodes that set_plan_refs() of setrefs.c has numbered.  Changes the plan in
 * place.  charges are those of the planner call that made stmt.  They have no
 * counts if debug_parallel_query made the plan parallel; then the pool is
 * counted here.  With CHARGE_CLEAN, adds to the costs what the planner has not
 * charged for writing pages.  Returns the OIDs of the tables that the plan
 * flushes.
 *
 * An unknown node, anywhere in the plan, may read temporary tables or have a
 * Gather below it.  A domain's constraint that is not parallel safe, which core does
 * not look at, fails in a worker, or in parallel mode.  Then all Gathers of the
 * statement run their plans in the leader, as when no worker is available:
 * ExecGather() and ExecGatherMerge() launch none without parallel mode, and a
 * parallel-aware node without shared state works alone.
 */
List *
tp_place_flush_nodes(PlannedStmt *stmt, const FlushCharges *charges)
{
	LocalBufStats *stats = charges->stats;
	PlanContents all = tp_statement_contents(stmt);
	List	   *flushed = NIL;
	int			last_id;
	ListCell   *lc;

	if ((all.unknown && tp_names_temp_table(stmt->rtable)) ||
		(all.unsafe_check && all.temp_tables != NIL))
	{
		stmt->parallelModeNeeded = false;
		return NIL;
	}
	if (all.temp_tables == NIL)
		return NIL;

	last_id = tp_last_plan_node_id(stmt);
	foreach(lc, tp_statement_gathers(stmt))
	{
		Plan	   *gather = lfirst(lc);
		PlanContents contents = tp_plan_contents(gather->lefttree, stmt->rtable,
												 stmt->subplans);
		FlushPlan	info;

		if (contents.temp_tables == NIL)
			continue;
		if (stats == NULL)
			stats = tp_stats_for_statement(stmt);
		info.relids = contents.temp_tables;
		info.pages = pages_of_tables(info.relids);
		info.indexes = contents.indexes;
		info.planned = tp_flush_cost_of_tables(stats, info.relids, info.indexes);
		info.pool = pool_of_worker(gather->lefttree, contents.subplans, stmt);
		info.user_code = contents.user_code;
		info.processes = tp_process_limit(gather->lefttree,
										  planned_workers(gather),
										  &info.repeated);
		if (charges->charging == CHARGE_CLEAN)
			add_charge_to_statement(stmt, gather,
									info.planned.charge - info.planned.search);
		insert_flush_node(gather, &info, ++last_id);
		flushed = list_concat_unique_oid(flushed, info.relids);
	}
	return flushed;
}
