/*-------------------------------------------------------------------------
 *
 * exec_check.c
 *	  Cross-check: a plan below Gather reads only what is flushed for it.
 *
 * plan_walk.c finds the temporary tables and indexes in the plan tree.  This
 * check looks at what the initialized plan has opened instead, in the leader
 * before workers are launched and in each worker before it runs the plan.  So
 * an omission in plan_walk.c causes an error, not a wrong answer.
 *
 * The invariant: no worker runs a plan that scans a temporary table or index
 * that its flush node does not list.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"

#include "exec.h"

/* The kinds of node are those of ExecInitNode() of execProcnode.c. */
static bool
check_flushed_walker(PlanState *ps, void *context)
{
	const FlushPlan *plan = context;
	Relation	rel = NULL;
	Relation	index = NULL;

	switch (nodeTag(ps))
	{
		case T_IndexScanState:
			index = ((IndexScanState *) ps)->iss_RelationDesc;
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		case T_IndexOnlyScanState:
			index = ((IndexOnlyScanState *) ps)->ioss_RelationDesc;
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		case T_BitmapIndexScanState:
			index = ((BitmapIndexScanState *) ps)->biss_RelationDesc;
			break;
		case T_SeqScanState:
		case T_SampleScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
		case T_CustomScanState:
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		default:
			break;
	}
	if (rel != NULL && RelationUsesLocalBuffers(rel) &&
		!list_member_oid(plan->relids, RelationGetRelid(rel)))
		elog(ERROR, "temporary table \"%s\" below Gather was not planned to be flushed",
			 RelationGetRelationName(rel));
	if (index != NULL && RelationUsesLocalBuffers(index) &&
		!list_member_oid(plan->indexes, RelationGetRelid(index)))
		elog(ERROR, "index \"%s\" of a temporary table below Gather was not planned to be flushed",
			 RelationGetRelationName(index));

	return planstate_tree_walker(ps, check_flushed_walker, context);
}

/*
 * Raise an internal error if ps, or a node below it, subplans included, has a
 * temporary table or an index of one open that is not in plan's lists.
 */
void
tp_check_flushed(PlanState *ps, const FlushPlan *plan)
{
	(void) check_flushed_walker(ps, unconstify(FlushPlan *, plan));
}
