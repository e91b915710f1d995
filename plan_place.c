/*-------------------------------------------------------------------------
 *
 * plan_place.c
 *	  The nodes of this module in a finished plan, Custom Scan (TempFlush) and
 *	  Custom Scan (RunAhead).
 *
 * Each Gather whose workers may read temporary tables gets one flush node below it, as
 * close as possible, where the fewest rows pass, but below the nodes through which
 * ExecSetTupleBound() reaches a Sort: it stops at a node that it does not know, and every
 * worker's top-N sort would become a full one.  The node returns its child's rows.  Only
 * this file writes and decodes its custom_private.  exec_flush.c executes it.
 *
 * The node of a statement that is run ahead is the child of ModifyTable, or, if rows are
 * fetched in portions, where plan_portions.c puts it.  exec_run_ahead.c executes it.
 *
 * The invariant: a Gather that may launch workers has a flush node if a
 * temporary table is read below it, and also if it sends values, in a statement
 * that is run ahead or that reads a temporary table elsewhere.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"

#include "plan.h"

/* ----------
 * The node
 * ----------
 */

/*
 * A target list that takes each column of tlist from varno, except constants, which
 * ExecCheckPlanOutput() of nodeModifyTable.c expects for dropped columns.
 */
static List *
columns_of(List *tlist, int varno)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, tlist)
	{
		TargetEntry *tle = flatCopyTargetEntry(lfirst(lc));

		if (!IsA(tle->expr, Const))
			tle->expr = (Expr *) makeVarFromTargetEntry(varno, lfirst(lc));
		result = lappend(result, tle);
	}
	return result;
}

/*
 * Make a node of this module, with that name and plan_node_id, which passes on the
 * rows of child and costs as much; in the current memory context.  The plan is
 * finished, so references are set as by set_customscan_references() of setrefs.c:
 * the node's columns refer to its scan tuple, and the scan tuple's to the child.
 */
static CustomScan *
custom_scan_above(Plan *child, const char *name, int plan_node_id)
{
	CustomScan *cscan = makeNode(CustomScan);
	Plan	   *plan = &cscan->scan.plan;

	plan->startup_cost = child->startup_cost;
	plan->total_cost = child->total_cost;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	plan->plan_node_id = plan_node_id;
	plan->targetlist = columns_of(child->targetlist, INDEX_VAR);
	plan->lefttree = child;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	set_disabled_nodes(cscan, child);
	cscan->custom_scan_tlist = columns_of(child->targetlist, OUTER_VAR);
	cscan->methods = GetCustomScanMethods(name, false);
	return cscan;
}

/* What of a FlushPlan custom_private has as bytes; the Lists follow as such. */
#define FLUSH_PLAN_BYTES	offsetof(FlushPlan, relids)

/*
 * Make a flush node with the given plan_node_id above child, for the tables of info,
 * whose lists it shares.
 */
static CustomScan *
make_flush_node(Plan *child, const FlushPlan *info, int plan_node_id)
{
	CustomScan *cscan = custom_scan_above(child, FLUSH_NODE_NAME, plan_node_id);
	Plan	   *plan = &cscan->scan.plan;
	bytea	   *bytes = palloc(VARHDRSZ + FLUSH_PLAN_BYTES);

	plan->parallel_aware = true;	/* otherwise the callbacks for parallel
									 * query are not called */
	plan->parallel_safe = true;

	SET_VARSIZE(bytes, VARHDRSZ + FLUSH_PLAN_BYTES);
	memcpy(VARDATA(bytes), info, FLUSH_PLAN_BYTES);
	/* the release comes first in every release, see tp_flush_plan_release() */
	cscan->custom_private = list_make4(makeString(pstrdup(TP_VERSION)),
									   info->relids, info->indexes,
									   makeConst(BYTEAOID, -1, InvalidOid, -1,
												 PointerGetDatum(bytes), false,
												 false));
	return cscan;
}

/*
 * The release of temp_parallel that has made the flush node cscan.  A worker loads the library
 * anew, and the file may have been replaced since its leader did.
 */
const char *
tp_flush_plan_release(CustomScan *cscan)
{
	return strVal(linitial(cscan->custom_private));
}

/*
 * What make_flush_node() was given, in the current memory context.  The Lists are the
 * plan's own: it may be a copy, or that of a worker, for which it has been text.
 */
FlushPlan
tp_flush_plan(CustomScan *cscan)
{
	List	   *items = cscan->custom_private;
	Const	   *bytes = list_nth_node(Const, items, 3);
	FlushPlan	info;

	memcpy(&info, VARDATA(DatumGetPointer(bytes->constvalue)), FLUSH_PLAN_BYTES);
	info.relids = lsecond(items);
	info.indexes = lthird(items);
	return info;
}

/* The link to the flush node, or to where it belongs, at or below *top, the link of a Gather. */
static Plan **
place_of_flush_node(Plan **top)
{
	Plan	  **child;

	while ((child = tp_tuple_bound_child(*top)) != NULL)
		top = child;
	return top;
}

/* The flush node in top, the plan that workers of a Gather run, or NULL if there is none. */
CustomScan *
tp_find_flush_node(Plan *top)
{
	Plan	   *node = *place_of_flush_node(&top);

	return tp_is_flush_node(node) ? (CustomScan *) node : NULL;
}

/* ----------
 * Placing flush nodes
 * ----------
 */

/*
 * Does the leader send workers of gather values, which may be TOAST pointers into a
 * temporary table (exec_worker_refuse.c)?
 */
static bool
sends_values(const GatherFacts *facts)
{
	Plan	   *gather = facts->gather;

	return facts->below.has_params ||
		(IsA(gather, Gather) ? ((Gather *) gather)->initParam :
		 ((GatherMerge *) gather)->initParam) != NULL;
}

/*
 * The number of local buffers that a worker needs to run a plan with these facts: for the
 * pages that it pins at once, or for those that it looks rows up in, and some besides.
 */
static int
pool_of_worker(const PlanFacts *facts)
{
	double		lookups = tp_pages_of_lookups(facts->lookups, true);

	if (lookups == 0)
		return facts->pins;
	return Max(facts->pins, (int) Min(lookups, INT_MAX / 4) + LEAST_WORKER_POOL);
}

/* What the flush node below the Gather of facts is to know, in a statement with facts all. */
static FlushPlan
flush_plan_of(const GatherFacts *facts, const PlanFacts *all)
{
	Plan	   *gather = facts->gather;
	FlushPlan	info;

	/* with its padding, as it becomes a part of the plan */
	memset(&info, 0, sizeof(info));
	info.relids = facts->below.temp_tables;
	info.indexes = facts->below.indexes;
	info.planned = tp_flush_estimate(info.relids, info.indexes, all->user_code);
	info.pool = pool_of_worker(&facts->below);
	info.user_code = facts->below.user_code;
	info.leader_pins = all->pins;
	info.any_user_code = all->user_code;
	info.looks_at_statement = all->looks_at_statement;
	info.calls_volatile = all->calls_volatile;
	if (info.relids != NIL)
		info.processes = tp_process_limit(gather->lefttree, IsA(gather, Gather) ?
										  ((Gather *) gather)->num_workers :
										  ((GatherMerge *) gather)->num_workers);
	return info;
}

/*
 * Give a flush node to each Gather of stmt that needs one, numbered after the
 * nodes that set_plan_refs() of setrefs.c has numbered.  *all and gathers are the facts of
 * stmt, of which last_node_id is updated, and of its Gathers.  Changes the plan in place,
 * but no costs.  Returns what the flush of all tables costs, each of them once, and in
 * *saving the tables and their indexes.
 */
FlushCost
tp_place_flush_nodes(PlannedStmt *stmt, PlanFacts *all, List *gathers,
					 FlushSaving *saving)
{
	FlushCost	flush = {0};
	ListCell   *lc;

	foreach(lc, gathers)
	{
		GatherFacts *facts = lfirst(lc);
		Cost		before = flush.charge + flush.search;
		Plan	  **place = place_of_flush_node(&facts->gather->lefttree);
		FlushPlan	info;

		if (facts->below.temp_tables == NIL && !sends_values(facts))
			continue;
		info = flush_plan_of(facts, all);
		saving->relids = list_concat_unique_oid(saving->relids, info.relids);
		saving->indexes = list_concat_unique_oid(saving->indexes, info.indexes);
		flush = tp_flush_estimate(saving->relids, saving->indexes, all->user_code);
		/* infinite costs have no difference */
		info.charge = isinf(before) ? 0 : flush.charge + flush.search - before;
		*place = &make_flush_node(*place, &info, ++all->last_node_id)->scan.plan;
	}
	return flush;
}

/*
 * Add what the flush nodes in plan are charged to their costs and those of the nodes above
 * them.  of_subplans has that of each subplan, which its InitPlan adds.  Returns the sum.
 */
static Cost
raise_costs(Plan *plan, const Cost *of_subplans)
{
	Cost		charge = 0;
	ListCell   *lc;

	if (tp_is_flush_node(plan))
		charge = tp_flush_plan((CustomScan *) plan).charge;
	foreach(lc, tp_plan_children(plan))
		charge += raise_costs(lfirst(lc), of_subplans);
	foreach(lc, plan->initPlan)
		charge += of_subplans[lfirst_node(SubPlan, lc)->plan_id - 1];
	plan->startup_cost += charge;
	plan->total_cost += charge;
	return charge;
}

/*
 * Add charge, what the flush of all tables costs, to the costs of stmt, which has flush
 * nodes.  To which node a subplan in an expression belongs is not known: what it is charged
 * is added to the topmost one.
 */
void
tp_charge_flush(PlannedStmt *stmt, Cost charge)
{
	Plan	   *top = stmt->planTree;
	Cost	   *of_subplans = palloc0(list_length(stmt->subplans) * sizeof(Cost));
	Cost		startup = top->startup_cost;
	Cost		total = top->total_cost;
	ListCell   *lc;

	/* a subplan comes after those that it has itself */
	foreach(lc, stmt->subplans)
	{
		if (lfirst(lc) != NULL)
			of_subplans[foreach_current_index(lc)] = raise_costs(lfirst(lc), of_subplans);
	}
	(void) raise_costs(top, of_subplans);
	top->startup_cost = startup + charge;
	top->total_cost = total + charge;
}

/* ----------
 * Running ahead
 * ----------
 */

/* Bytes of the rows of plan in a tuplestore, as by relation_byte_size() of costsize.c. */
static double
bytes_of_rows(const Plan *plan)
{
	return plan->plan_rows *
		(MAXALIGN(plan->plan_width) + MAXALIGN(SizeofHeapTupleHeader));
}

/*
 * May a tuplestore with the rows of plan exceed temp_file_limit, so that the statement fails?
 * Half the limit is left to the plan itself, and for an estimate that is too low.
 */
bool
tp_rows_exceed_file_limit(const Plan *plan)
{
	double		bytes = bytes_of_rows(plan);

	return temp_file_limit >= 0 && bytes > work_mem * 1024.0 &&
		bytes > temp_file_limit * 1024.0 / 2;
}

/* The planner cost of keeping the rows of plan, as by cost_material() of costsize.c. */
static Cost
cost_of_keeping_rows(const Plan *plan)
{
	double		bytes = bytes_of_rows(plan);
	Cost		cost = 2 * cpu_operator_cost * plan->plan_rows;

	if (bytes > work_mem * 1024.0)
		cost += seq_page_cost * ceil(bytes / BLCKSZ);
	return cost;
}

/* Make the node above child, with its costs, numbered plan_node_id. */
CustomScan *
tp_run_ahead_node(Plan *child, int plan_node_id)
{
	CustomScan *node = custom_scan_above(child, RUN_AHEAD_NODE_NAME, plan_node_id);

	node->scan.plan.startup_cost = child->total_cost;
	node->scan.plan.total_cost = child->total_cost + cost_of_keeping_rows(child);
	return node;
}

/*
 * Have node, above the plan of stmt's SELECT, evaluate defaults.  stmt is made anew
 * if what they depend on changes, as with any expression in a plan.
 */
static void
give_defaults(CustomScan *node, List *defaults, PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, defaults)
	{
		TargetEntry *tle = lfirst(lc);
		TargetEntry *column = get_tle_by_resno(node->scan.plan.targetlist, tle->resno);
		List	   *relids = NIL;
		List	   *items = NIL;

		column->expr = expression_planner_with_deps(tle->expr, &relids, &items);
		stmt->relationOids = list_concat(stmt->relationOids, relids);
		/* those of plan_note.c are the last ones */
		stmt->invalItems = list_concat(items, stmt->invalItems);
	}
}

/*
 * Give stmt, the plan of a statement that changes a table and needs parallel mode, the
 * node, numbered plan_node_id.  It evaluates defaults, those that tp_take_defaults() has
 * taken out of its query.  Changes the plan in place.
 */
void
tp_place_run_ahead_node(PlannedStmt *stmt, List *defaults, int plan_node_id)
{
	Plan	   *modify = &castNode(ModifyTable, stmt->planTree)->plan;
	Plan	   *child = outerPlan(modify);
	CustomScan *node = tp_run_ahead_node(child, plan_node_id);
	Plan	   *plan = &node->scan.plan;

	give_defaults(node, defaults, stmt);
	/* the statement costs as much more as what it reads */
	modify->startup_cost += plan->startup_cost - child->startup_cost;
	modify->total_cost += plan->total_cost - child->total_cost;
	outerPlan(modify) = plan;
	stmt->parallelModeNeeded = false;
}
