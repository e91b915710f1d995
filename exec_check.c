/*-------------------------------------------------------------------------
 *
 * exec_check.c
 *	  Cross-check: a plan below Gather reads only what is flushed for it.
 *
 * plan_walk.c finds the temporary tables and indexes by the plan tree.  The check
 * looks at what the running plan has opened instead, in the leader before workers
 * are launched and in each worker before it runs, so that a mistake of the former
 * is an error and not a wrong answer.
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
 * Raise an error (internal) if ps, or a node below it, has a temporary table or an
 * index of one open that plan does not list.
 */
void
tp_check_flushed(PlanState *ps, const FlushPlan *plan)
{
	(void) check_flushed_walker(ps, unconstify(FlushPlan *, plan));
}
