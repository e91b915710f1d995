/*-------------------------------------------------------------------------
 *
 * plan_call.c
 *	  A call of the planner, and what is set while it runs.
 *
 * The planner's hooks have to know what is being planned: a statement whose
 * workers may read temporary tables, one that changes a table by rows that workers may
 * find, or neither.  Calls nest, as the planner may evaluate a function that runs other
 * statements.  So they are on a stack, and the hooks look at the innermost one.
 *
 * To charge a Gather, parallel_setup_cost is raised while core makes its path
 * (plan_gather_cost.c).
 *
 * The invariant: when a call ends or fails, the one outside it is the innermost
 * again, and parallel_setup_cost has its former value, unless a function that the
 * planner evaluates has set it.  A nested statement, planned by such a function,
 * is planned with the former value too, or with what the function has set.  Only a
 * function that reads the setting itself sees the charge.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "optimizer/optimizer.h"
#include "utils/guc.h"

#include "plan.h"

/* the innermost call, or NULL */
static Planning *innermost = NULL;

/* The call whose workers may read temporary tables, if that is the innermost. */
Planning *
tp_planning_temp_tables(void)
{
	return innermost != NULL && innermost->temp_tables ? innermost : NULL;
}

/* Is a statement being planned that changes a table, by rows that workers may find? */
bool
tp_planning_modification(void)
{
	return innermost != NULL && innermost->modifies;
}

/*
 * If glob belongs to such a statement, of which parse is the Query that the planner
 * works on, have it consider parallel paths from now on, as standard_planner() of
 * planner.c does for SELECT.  To be called before the planner looks at the first
 * relation: from 19 on, standard_planner() calls planner_setup_hook when it has
 * decided by the kind of statement.  Before, the first hook that it calls is
 * get_relation_info_hook, for each table of the query.  Relations that the planner
 * has looked at by then, which are subqueries and unions of subqueries, are looked at
 * again by plan_paths.c.
 */
void
tp_allow_parallel(PlannerGlobal *glob, Query *parse)
{
	if (!tp_planning_modification() || glob->parallelModeOK ||
		parse->commandType == CMD_SELECT)
		return;

	/* what standard_planner() sets for such a statement, up to now */
	Assert(glob->maxParallelHazard == PROPARALLEL_UNSAFE);
	Assert(!glob->parallelModeNeeded);
	/* have is_parallel_safe() look at each expression */
	glob->maxParallelHazard = PROPARALLEL_RESTRICTED;
	glob->parallelModeOK = true;
}

/* ----------
 * parallel_setup_cost
 * ----------
 */

/*
 * Returns parallel_setup_cost without a charge.  If it was changed since the
 * last charge, the new value becomes the base for further charges.
 */
Cost
tp_setup_cost_without_charge(void)
{
	if (parallel_setup_cost != innermost->charged)
	{
		innermost->setup_cost = innermost->before = parallel_setup_cost;
		innermost->charged = parallel_setup_cost;
	}
	return innermost->setup_cost;
}

/*
 * Have the server restore parallel_setup_cost, too, at the end and after an
 * error.  Otherwise, if a function evaluated by the planner changes the setting
 * and fails, the server would restore the value including the charge.
 */
static void
save_setup_cost(void)
{
	parallel_setup_cost = innermost->before;
	(void) NewGUCNestLevel();	/* not changed in this one yet */
	(void) set_config_option("parallel_setup_cost",
							 psprintf("%.17g", innermost->before),
							 PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	innermost->saved = true;
}

/*
 * Add charge to the cost of every Gather path that is made from now on, in place of
 * the last charge.
 */
void
tp_charge_gathers(Cost charge)
{
	Cost		setup_cost = tp_setup_cost_without_charge();

	if (charge > 0 && !innermost->saved)
		save_setup_cost();
	innermost->charged = setup_cost + charge;
	parallel_setup_cost = innermost->charged;
}

/* ----------
 * The call
 * ----------
 */
static void
begin_planning(Planning *planning)
{
	planning->outer = innermost;
	planning->before = parallel_setup_cost;
	if (innermost != NULL && parallel_setup_cost == innermost->charged)
		parallel_setup_cost = innermost->setup_cost;
	planning->setup_cost = planning->charged = parallel_setup_cost;
	innermost = planning;
}

static void
end_planning(Planning *planning)
{
	if (parallel_setup_cost == planning->charged)
		parallel_setup_cost = planning->before;
	innermost = planning->outer;
}

/*
 * Call the planner for what is in *planning, in which the other members are zero.
 * Returns the plan, without flush nodes, and in *planning what was charged, both in
 * the current memory context.  A statement with nothing in *planning is planned as
 * without this module.
 */
PlannedStmt *
tp_call_planner(const PlannerCall *call, Planning *planning)
{
	PlannedStmt *volatile result;
	int			guc_level;

	if (innermost == NULL && !planning->temp_tables &&
		!planning->modifies)
		return call->next(PLANNER_HOOK_UNPACK(&call->args));

	guc_level = NewGUCNestLevel();
	begin_planning(planning);
	PG_TRY();
	{
		result = call->next(PLANNER_HOOK_UNPACK(&call->args));
	}
	PG_FINALLY();
	{
		end_planning(planning);
	}
	PG_END_TRY();
	AtEOXact_GUC(true, guc_level);	/* after an error the abort does it */
	return result;
}
