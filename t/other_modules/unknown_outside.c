/*-------------------------------------------------------------------------
 *
 * unknown_outside.c
 *	  See unknown.h.  unknown_outside.in_workers makes the topmost node of a
 *	  worker's plan unknown.
 *
 *-------------------------------------------------------------------------
 */
#include "unknown.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static bool in_workers;
static planner_hook_type prev_planner = NULL;
static ExecutorStart_hook_type prev_ExecutorStart = NULL;

/* Undo what unknown_inside did before the plan is used. */
static PlannedStmt *
outside_planner(PLANNER_HOOK_ARGS)
{
	PlannedStmt *stmt = prev_planner(PLANNER_HOOK_PASS);
	Plan	   *gather;

	make_known(stmt->planTree);
	gather = left_gather(stmt->planTree);
	if (gather != NULL)
		make_known(gather->lefttree);
	return stmt;
}

static void
outside_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (IsParallelWorker() && in_workers)
		make_unknown(queryDesc->plannedstmt->planTree);
	prev_ExecutorStart(queryDesc, eflags);
}

void
_PG_init(void)
{
	DefineCustomBoolVariable("unknown_outside.in_workers",
							 "Makes workers' plans unknown.",
							 NULL, &in_workers, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	prev_planner = planner_hook;
	planner_hook = outside_planner;
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = outside_ExecutorStart;
}
