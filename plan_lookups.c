/*-------------------------------------------------------------------------
 *
 * plan_lookups.c
 *	  Pages that a plan reads again and again.
 *
 * A worker that scans a table once needs few local buffers, and those stay in
 * the processor's cache.  But if the inner side of a nested loop looks rows up
 * all over a table, a small pool makes the worker copy a page from the
 * operating system for nearly every row.
 * The leader, in whose pool the table may be, would not, nor would a backend
 * that has it in shared buffers.  So a worker with such a plan gets a pool for
 * the pages that are looked up, see tp_worker_open_local_buffers().
 *
 * It gets no more than the session's temp_buffers.  If these are too few, the
 * lookups cost what the planner does not know: it assumes that a page that has
 * been read is in a cache, of effective_cache_size, from which reading it costs
 * nothing.  So if a plan has such lookups in workers, the copies are added to its
 * cost, and it is compared with the plan without workers.
 *
 * All numbers are estimates; only the choice of the plan and the speed of a worker
 * depend on them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

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

/* pages_of_scan() or reads_of_scan() */
typedef double (*ScanEstimate) (Plan *plan, double loops, PlannedStmt *stmt);

/*
 * The sum of an estimate over those scan nodes in plan that are executed more than
 * once in this number of executions of plan.
 */
static double
sum_over_scans(ScanEstimate estimate, Plan *plan, double loops,
			   PlannedStmt *stmt)
{
	double		sum = loops > 1 ? estimate(plan, loops, stmt) : 0;
	List	   *children = tp_plan_children(plan);
	ListCell   *lc;

	foreach(lc, children)
		sum += sum_over_scans(estimate, lfirst(lc),
							  loops_of_child(plan, lfirst(lc), loops), stmt);
	list_free(children);
	return sum;
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
	double		pages = sum_over_scans(pages_of_scan, plan, 1, stmt);
	int			plan_id = -1;

	/* the planner keeps those that depend on an outer row out of workers */
	while ((plan_id = bms_next_member(plan_ids, plan_id)) >= 0)
		pages += sum_over_scans(pages_of_scan,
								list_nth(stmt->subplans, plan_id - 1), 1, stmt);
	return Min(pages, INT_MAX / 4);
}

/* ----------
 * The cost of copies
 * ----------
 */

/*
 * The cost, in planner cost units, of copying a page from the operating system's
 * cache into a local buffer, and of evicting another one.
 */
#define COPY_PAGE_COST		0.7

/*
 * How closely the order of a table's rows is that of the first column of its index
 * indexid: between 0 and 1, the square of the correlation that ANALYZE has found.
 */
static double
index_correlation(Oid indexid)
{
	Relation	index = tp_relation_open(indexid);
	Oid			relid = index->rd_index->indrelid;
	AttrNumber	attno = index->rd_index->indkey.values[0];
	HeapTuple	tuple;
	AttStatsSlot slot;
	double		result = 0;

	RelationClose(index);
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid),
							Int16GetDatum(attno), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return 0;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers == 1)
			result = slot.numbers[0] * slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * How many pages scan node plan reads in this number of executions, each page as
 * often as it is read, if it is a scan of a temporary table by an index or a bitmap:
 * of an index one each time and, of the table, one for the first row and one for each
 * other row that is not next to it.
 */
static double
reads_of_scan(Plan *plan, double loops, PlannedStmt *stmt)
{
	double		others = Max(plan->plan_rows - 1, 0);

	if (!OidIsValid(tp_scanned_temp_table(plan, stmt->rtable)))
		return 0;
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			others *= 1 - index_correlation(((IndexScan *) plan)->indexid);
			return loops * (2 + others);
		case T_IndexOnlyScan:
		case T_BitmapIndexScan:
			return loops;
		case T_BitmapHeapScan:
			return loops * (1 + others);
		default:
			return 0;
	}
}

/*
 * What stmt's lookups in temporary tables cost a process with this number of local
 * buffers beyond the planner's estimate, which includes reading each page once: 0 or
 * more, in planner cost units.  Subplans are not counted.
 */
static Cost
cost_of_copies(PlannedStmt *stmt, double buffers)
{
	double		pages = sum_over_scans(pages_of_scan, stmt->planTree, 1, stmt);
	double		reads;

	if (pages <= buffers)
		return 0;
	reads = sum_over_scans(reads_of_scan, stmt->planTree, 1, stmt);
	return COPY_PAGE_COST * Max(reads * (1 - buffers / pages) - pages, 0);
}

/*
 * The same for a worker of stmt, a plan with flush nodes.
 */
Cost
tp_cost_of_copies_in_worker(PlannedStmt *stmt)
{
	return cost_of_copies(stmt, Max(tp_worker_temp_buffers, num_temp_buffers));
}

/*
 * Is stmt, a plan without flush nodes, better than one with them, which costs this
 * much, if copies are counted?  The leader copies pages, too, and more of them if it
 * looks up as many rows.
 */
bool
tp_costs_less_with_copies(PlannedStmt *stmt, Cost other)
{
	return stmt->planTree->total_cost + cost_of_copies(stmt, num_temp_buffers) <
		other;
}
