/*-------------------------------------------------------------------------
 *
 * plan_select_node.c
 *	  The plan node Custom Scan (ParallelSelect).
 *
 * The node is the child of ModifyTable in the plan of an INSERT whose SELECT
 * has a Gather (plan_insert.c).  It returns the rows of the SELECT, after it
 * has run that to its end; exec_select_node.c executes it.
 *
 * ExecutePlan() of execMain.c must not run the statement in parallel mode, as
 * then nothing could be inserted.  So parallelModeNeeded is not set in a
 * statement with the node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/guc.h"

#include "plan.h"

/*
 * A target list that takes each column of tlist from varno, except constants:
 * ExecCheckPlanOutput() of nodeModifyTable.c expects those of dropped columns.
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
 * Bytes of the rows of plan in a tuplestore, as relation_byte_size() of costsize.c
 * estimates it.
 */
static double
bytes_of_rows(const Plan *plan)
{
	return plan->plan_rows *
		(MAXALIGN(plan->plan_width) + MAXALIGN(SizeofHeapTupleHeader));
}

/*
 * The cost of keeping the rows of plan in a tuplestore, in planner cost units, as
 * cost_material() of costsize.c has it.
 */
static Cost
cost_of_keeping_rows(const Plan *plan)
{
	double		bytes = bytes_of_rows(plan);
	Cost		cost = 2 * cpu_operator_cost * plan->plan_rows;

	if (bytes > work_mem * 1024.0)
		cost += seq_page_cost * ceil(bytes / BLCKSZ);
	return cost;
}

/*
 * May a tuplestore with the rows of plan exceed temp_file_limit, so that the
 * statement fails?  Half the limit is left to the plan itself, which may need
 * temporary files at the same time, and for an estimate that is too low.
 */
bool
tp_rows_exceed_file_limit(const Plan *plan)
{
	double		bytes = bytes_of_rows(plan);

	return temp_file_limit >= 0 && bytes > work_mem * 1024.0 &&
		bytes > temp_file_limit * 1024.0 / 2;
}

/*
 * If stmt, the plan of an INSERT, needs parallel mode, give it the node, numbered
 * after all others.  Changes the plan in place.  References are set as in
 * tp_make_flush_node().
 */
void
tp_place_select_node(PlannedStmt *stmt)
{
	ModifyTable *insert = castNode(ModifyTable, stmt->planTree);
	Plan	   *child = insert->plan.lefttree;
	CustomScan *cscan;
	Plan	   *plan;

	if (!stmt->parallelModeNeeded)
		return;
	cscan = makeNode(CustomScan);
	plan = &cscan->scan.plan;
	plan->startup_cost = child->total_cost;
	plan->total_cost = child->total_cost + cost_of_keeping_rows(child);
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	plan->plan_node_id = tp_statement_facts(stmt).last_node_id + 1;
	plan->targetlist = columns_of(child->targetlist, INDEX_VAR);
	plan->lefttree = child;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	set_disabled_nodes(cscan, child);
	/* the INSERT costs as much more as what it reads */
	insert->plan.startup_cost += plan->startup_cost - child->startup_cost;
	insert->plan.total_cost += plan->total_cost - child->total_cost;
	cscan->custom_scan_tlist = columns_of(child->targetlist, OUTER_VAR);
	cscan->methods = GetCustomScanMethods(SELECT_NODE_NAME, false);
	insert->plan.lefttree = plan;
	stmt->parallelModeNeeded = false;
}
