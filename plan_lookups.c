/*-------------------------------------------------------------------------
 *
 * plan_lookups.c
 *	  How many pages a plan reads again and again.
 *
 * A worker that scans a table once needs few local buffers, and those stay in
 * the processor's cache.  But if the inner side of a nested loop looks rows up
 * all over a table, a small pool makes the worker copy a page from the
 * operating system for nearly every row.
 * The leader, in whose pool the table may be, would not, nor would a backend
 * that has it in shared buffers.  So a worker with such a plan gets a pool for
 * the pages that are looked up, see tp_worker_open_local_buffers().
 *
 * The number is an estimate; only the speed of a worker depends on it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/float.h"

#include "plan.h"

/* The smaller of reads and the number of pages of relation relid. */
static double
distinct_pages(Oid relid, double reads)
{
	Relation	rel = tp_relation_open(relid);
	BlockNumber pages = RelationGetNumberOfBlocks(rel);

	RelationClose(rel);
	return Min(reads, pages);
}

/*
 * Pages that scan node plan reads in this number of executions, if it is a
 * scan of a temporary table.
 */
static double
pages_of_scan(Plan *plan, double loops, PlannedStmt *stmt)
{
	double		rows = loops * Max(plan->plan_rows, 1);
	Oid			relid = tp_scanned_temp_table(plan, stmt->rtable);

	if (!OidIsValid(relid))
		return 0;
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
			return distinct_pages(relid, get_float8_infinity());
		case T_IndexScan:
			return distinct_pages(relid, rows) +
				distinct_pages(((IndexScan *) plan)->indexid, loops);
		case T_IndexOnlyScan:
			return distinct_pages(relid, rows) +
				distinct_pages(((IndexOnlyScan *) plan)->indexid, loops);
		case T_BitmapIndexScan:
			return distinct_pages(((BitmapIndexScan *) plan)->indexid, loops);
		default:
			return distinct_pages(relid, rows);
	}
}

/* The number of executions of child in loops executions of plan. */
static double
loops_of_child(Plan *plan, Plan *child, double loops)
{
	switch (nodeTag(plan))
	{
		case T_NestLoop:
			return child == plan->righttree ?
				loops * Max(plan->lefttree->plan_rows, 1) : loops;
		case T_Material:
		case T_Sort:
		case T_Hash:
			/* keeps the rows, unless they depend on the outer row */
			return bms_is_empty(plan->extParam) ? 1 : loops;
		default:
			return loops;
	}
}

/* The pages that plan reads again in this number of executions. */
static double
pages_of_plan(Plan *plan, double loops, PlannedStmt *stmt)
{
	double		pages = loops > 1 ? pages_of_scan(plan, loops, stmt) : 0;
	List	   *children = tp_plan_children(plan);
	ListCell   *lc;

	foreach(lc, children)
		pages += pages_of_plan(lfirst(lc),
							   loops_of_child(plan, lfirst(lc), loops), stmt);
	list_free(children);
	return pages;
}

/*
 * The number of local buffers for all pages of temporary tables that plan and
 * those of stmt's subplans whose numbers are in plan_ids read more than once
 * in different executions of their nodes.  0 if a process executes each node
 * once.
 */
int
tp_plan_lookup_pages(Plan *plan, Bitmapset *plan_ids, PlannedStmt *stmt)
{
	double		pages = pages_of_plan(plan, 1, stmt);
	int			plan_id = -1;

	/* the planner keeps those that depend on an outer row out of workers */
	while ((plan_id = bms_next_member(plan_ids, plan_id)) >= 0)
		pages += pages_of_plan(list_nth(stmt->subplans, plan_id - 1), 1, stmt);
	return Min(pages, INT_MAX / 4);
}
