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

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"

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
	plan->total_cost = child->total_cost +
		2 * cpu_operator_cost * child->plan_rows;	/* as cost_material() */
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	plan->plan_node_id = tp_last_plan_node_id(stmt) + 1;
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

/* Does stmt have the node? */
static bool
has_select_node(PlannedStmt *stmt)
{
	Plan	   *plan;

	if (stmt->commandType != CMD_INSERT || !IsA(stmt->planTree, ModifyTable))
		return false;
	plan = stmt->planTree->lefttree;
	return plan != NULL && IsA(plan, CustomScan) &&
		strcmp(((CustomScan *) plan)->methods->CustomName,
			   SELECT_NODE_NAME) == 0;
}

/* The part of stmt that needs parallel mode, if it does: all, or an INSERT's SELECT. */
Plan *
tp_parallel_part(PlannedStmt *stmt)
{
	Plan	   *plan = stmt->planTree;

	if (stmt->commandType != CMD_INSERT || !IsA(plan, ModifyTable))
		return plan;
	return has_select_node(stmt) ? plan->lefttree->lefttree : plan->lefttree;
}

/* Does stmt need parallel mode, for all of it or for its SELECT? */
bool
tp_needs_parallel_mode(PlannedStmt *stmt)
{
	return stmt->parallelModeNeeded || has_select_node(stmt);
}
