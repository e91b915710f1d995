/*-------------------------------------------------------------------------
 *
 * plan_pins.c
 *	  How many local buffers a plan may have pinned at once.
 *
 * A worker's pool of local buffers is small, because a worker keeps no page
 * for long, but it has to hold all pages that the worker's plan has pinned at
 * the same time, or the plan fails with "no empty local buffer available".
 * The leader runs the same plan in the session's pool, so a worker never needs
 * more than temp_buffers.
 *
 * The invariant: the number may be too large, but not too small.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_am.h"
#include "utils/lsyscache.h"

#include "plan.h"

/*
 * Pages that a scan of a table or index has pinned while it runs: the index's
 * current, next and marked page, a page of the table and one of its visibility
 * map, the page of the tuple in the node's slot, and some to spare.
 */
#define PINS_OF_SCAN	8

/* More than any session has; the sum of two is still an int. */
#define PINS_UNKNOWN	(INT_MAX / 4)

/* Numbers of pins that a plan has. */
typedef struct PlanPins
{
	int			held;			/* from its initialization to its end */
	int			running;		/* in addition, while it returns rows */
} PlanPins;

static int
add_pins(int a, int b)
{
	return Min(a + b, PINS_UNKNOWN);
}

/*
 * Scans of core's index access methods pin a few pages, except that GIN pins
 * one for each key that it looks up.  BRIN keeps its metapage and a page of
 * its revmap pinned.  From 19 on, a scan that fetches rows through an index
 * keeps the last page of the table pinned to its end: PINS_KEPT_BY_INDEX_SCAN.
 */
static PlanPins
pins_of_index(Oid indexid)
{
	Relation	index = tp_relation_open(indexid);
	PlanPins	pins = {0, PINS_OF_SCAN};

	switch (index->rd_rel->relam)
	{
		case BTREE_AM_OID:
		case HASH_AM_OID:
		case GIST_AM_OID:
		case SPGIST_AM_OID:
			break;
		case BRIN_AM_OID:
			pins.held = 2;
			break;
		default:
			pins.held = PINS_UNKNOWN;
			break;
	}
	RelationClose(index);
	return pins;
}

/*
 * Pages of temporary tables that the node itself pins.  The kinds of node are
 * those of ExecInitNode() of execProcnode.c.
 */
static PlanPins
pins_of_node(Plan *plan, PlannedStmt *stmt)
{
	PlanPins	pins = {0, 0};
	Oid			relid = tp_scanned_temp_table(plan, stmt->rtable);

	if (IsA(plan, ForeignScan) ||
		(IsA(plan, CustomScan) && !tp_is_flush_node(plan)))
		pins.held = PINS_UNKNOWN;
	if (!OidIsValid(relid))
		return pins;

	switch (nodeTag(plan))
	{
		case T_IndexScan:
			pins = pins_of_index(((IndexScan *) plan)->indexid);
			pins.held = add_pins(pins.held, PINS_KEPT_BY_INDEX_SCAN);
			return pins;
		case T_IndexOnlyScan:
			pins = pins_of_index(((IndexOnlyScan *) plan)->indexid);
			/* and a page of the visibility map */
			pins.held = add_pins(pins.held, PINS_KEPT_BY_INDEX_SCAN + 1);
			return pins;
		case T_BitmapIndexScan:
			return pins_of_index(((BitmapIndexScan *) plan)->indexid);
		case T_BitmapHeapScan:
			pins.held++;		/* the same */
			break;
		default:
			break;
	}
	pins.running = PINS_OF_SCAN + heap_scan_read_ahead(get_rel_tablespace(relid));
	return pins;
}

/*
 * Is every scan in plan exhausted once plan has returned its last row?  A join
 * may stop before the end of one side, and a limit before the end of its
 * child.  The kinds of node are those of ExecInitNode() of execProcnode.c.
 */
static bool
ends_its_scans(Plan *plan)
{
	List	   *children;
	ListCell   *lc;
	bool		result = true;

	switch (nodeTag(plan))
	{
		case T_Result:
		case T_Append:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapIndexScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_Sort:
		case T_Agg:
			break;
		default:
			return false;
	}
	children = tp_plan_children(plan);
	foreach(lc, children)
		result = result && ends_its_scans(lfirst(lc));
	list_free(children);
	return result;
}

/*
 * Does plan read child until it has returned its last row, if plan itself is
 * read like that?  A hash join may not: it reads a first outer row, and then
 * finds its hash table empty.  A join that needs one match leaves the inner
 * side in the middle, and its scans keep their pages until they are executed
 * again, which may be much later.
 */
static bool
reads_to_the_end(Plan *plan, Plan *child)
{
	switch (nodeTag(plan))
	{
		case T_Result:
		case T_Append:
		case T_SubqueryScan:
		case T_Material:
		case T_Sort:
		case T_Agg:
		case T_Hash:
			return true;
		case T_HashJoin:
			return child == plan->righttree;
		case T_NestLoop:
			return child == plan->lefttree ||
				(((Join *) plan)->jointype != JOIN_SEMI &&
				 ((Join *) plan)->jointype != JOIN_ANTI &&
				 !((Join *) plan)->inner_unique);
		default:
			return tp_is_flush_node(plan);
	}
}

/*
 * What plan pins, without the subplans of its expressions.  Append's children
 * run one after another, and if each is read to its end, their scans are not
 * in progress at the same time.  to_the_end says whether plan is.
 */
static PlanPins
pins_of_plan(Plan *plan, bool to_the_end, PlannedStmt *stmt)
{
	PlanPins	pins = pins_of_node(plan, stmt);
	int			most = 0;
	List	   *children = tp_plan_children(plan);
	ListCell   *lc;

	foreach(lc, children)
	{
		PlanPins	child = pins_of_plan(lfirst(lc),
										 to_the_end &&
										 reads_to_the_end(plan, lfirst(lc)),
										 stmt);

		pins.held = add_pins(pins.held, child.held);
		if (IsA(plan, Append) && to_the_end && ends_its_scans(lfirst(lc)))
			most = Max(most, child.running);
		else
			pins.running = add_pins(pins.running, child.running);
	}
	list_free(children);
	pins.running = add_pins(pins.running, most);
	return pins;
}

/*
 * The number of local buffers that a process needs to run plan and those of
 * stmt's subplans whose numbers are in plan_ids: enough for all pages of
 * temporary tables that these may have pinned at the same time.
 */
int
tp_plan_pins(Plan *plan, Bitmapset *plan_ids, PlannedStmt *stmt)
{
	PlanPins	pins = pins_of_plan(plan, true, stmt);
	int			plan_id = -1;

	while ((plan_id = bms_next_member(plan_ids, plan_id)) >= 0)
	{
		PlanPins	subplan = pins_of_plan(list_nth(stmt->subplans, plan_id - 1),
										   false, stmt);

		pins.held = add_pins(pins.held, subplan.held);
		pins.running = add_pins(pins.running, subplan.running);
	}
	return local_buffers_for_pins(add_pins(pins.held, pins.running));
}
