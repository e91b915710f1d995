/*-------------------------------------------------------------------------
 *
 * plan_call.c
 *	  A call of the planner, and what its hooks know of it.
 *
 * The planner's hooks have to know what is being planned.  Calls nest, as the planner may
 * evaluate a function that runs other statements.  So they are on a stack, and the hooks
 * look at the innermost one.
 *
 * The invariant: when a call ends or fails, the one outside it is the innermost again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc.h"

#include "plan.h"

typedef struct Planning
{
	struct Planning *outer;
	PlanFor		purpose;
	List	   *without;		/* temporary tables that are left to the
								 * leader */
} Planning;

/* the innermost call, or NULL */
static Planning *innermost = NULL;

/* May workers of the statement that is being planned read temporary tables? */
bool
tp_planning_temp_tables(void)
{
	return innermost != NULL && innermost->purpose != PLAN_AS_CORE;
}

/* May workers of that statement not read relid, as it is left to the leader? */
bool
tp_planning_without(Oid relid)
{
	return innermost != NULL && list_member_oid(innermost->without, relid);
}

/* Is a statement being planned that changes a table, by rows that workers may find? */
bool
tp_planning_modification(void)
{
	return innermost != NULL && innermost->purpose == PLAN_MODIFICATION;
}

/*
 * If root belongs to such a statement, have the planner consider parallel paths from now
 * on, as standard_planner() of planner.c does for SELECT.  To be called for each table of
 * the query, by the first hook that the planner calls.  Relations that the planner has
 * looked at by then, which are subqueries and unions of subqueries, are looked at again
 * by plan_paths.c.
 */
void
tp_allow_parallel(PlannerInfo *root)
{
	PlannerGlobal *glob = root->glob;

	while (root->parent_root != NULL)
		root = root->parent_root;
	/* functions that the planner has called may have changed the setting */
	if (!tp_planning_modification() || glob->parallelModeOK ||
		root->parse->commandType == CMD_SELECT || max_parallel_workers_per_gather == 0)
		return;

	/* what standard_planner() sets for such a statement, up to now */
	Assert(glob->maxParallelHazard == PROPARALLEL_UNSAFE);
	Assert(!glob->parallelModeNeeded);
	/* have is_parallel_safe() look at each expression */
	glob->maxParallelHazard = PROPARALLEL_RESTRICTED;
	glob->parallelModeOK = true;
}

/*
 * Call the planner for purpose, with the temporary tables without left to the leader.  Returns
 * the plan, without the nodes of this module, in the current memory context.  Raises what the
 * planner raises.
 */
PlannedStmt *
tp_call_planner(const PlannerCall *call, PlanFor purpose, List *without)
{
	Planning	planning = {innermost, purpose, without};
	PlannedStmt *volatile result;

	if (innermost == NULL && purpose == PLAN_AS_CORE)
		return call->next(PLANNER_HOOK_UNPACK(&call->args));

	innermost = &planning;
	PG_TRY();
	{
		result = call->next(PLANNER_HOOK_UNPACK(&call->args));
	}
	PG_FINALLY();
	{
		innermost = planning.outer;
	}
	PG_END_TRY();
	return result;
}
