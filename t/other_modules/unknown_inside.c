/*-------------------------------------------------------------------------
 *
 * unknown_inside.c
 *	  See unknown.h.  unknown_inside.node says which node of a plan becomes
 *	  unknown: the one 'below' the Gather, or the 'top' node.
 *
 *-------------------------------------------------------------------------
 */
#include "unknown.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static char *node;
static planner_hook_type prev_planner = NULL;
static ExecutorStart_hook_type prev_ExecutorStart = NULL;

static PlannedStmt *
inside_planner(PLANNER_HOOK_ARGS)
{
	PlannedStmt *stmt = prev_planner ? prev_planner(PLANNER_HOOK_PASS) :
		standard_planner(PLANNER_HOOK_PASS);
	Plan	   *gather = left_gather(stmt->planTree);

	if (gather != NULL && strcmp(node, "below") == 0)
		make_unknown(gather->lefttree);
	else if (gather != NULL && strcmp(node, "top") == 0)
		make_unknown(stmt->planTree);
	return stmt;
}

/* In a worker, undo what unknown_outside did before core sees it. */
static void
inside_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (IsParallelWorker())
		make_known(queryDesc->plannedstmt->planTree);
	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("unknown_inside.node",
							   "Which node is unknown.",
							   NULL, &node, "", PGC_USERSET, 0,
							   NULL, NULL, NULL);
	prev_planner = planner_hook;
	planner_hook = inside_planner;
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = inside_ExecutorStart;
}
