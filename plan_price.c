/*-------------------------------------------------------------------------
 *
 * plan_price.c
 *	  Counts of local buffers, for the price of a statement's flush.
 *
 * The price depends on how many dirty pages workers may read in the leader's
 * memory.  Those stay pinned while the statement runs, and functions of users may
 * need buffers, too (see tp_most_shared_pages()).
 *
 * The invariant: a query that runs user code in its plan is known to do so.  The
 * reverse need not hold: the planner may evaluate or inline the function.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"

#include "plan.h"

/* Do prices by stats depend on whether the statement runs user code? */
static bool
user_code_matters(LocalBufStats *stats)
{
	return tp_sharing() && stats->dirtied > tp_most_shared_pages(true);
}

/* Does node, a Query or a part of it, call user code? */
static bool
calls_user_code(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Query:
			return query_tree_walker((Query *) node, calls_user_code, context,
									 QTW_IGNORE_JOINALIASES);

			/* these evaluate nothing themselves */
		case T_CommonTableExpr:
		case T_FromExpr:
		case T_JoinExpr:
		case T_OnConflictExpr:
		case T_RangeTblRef:
		case T_SetOperationStmt:
		case T_SubLink:
		case T_WindowClause:
			break;
		default:
			if (tp_expression_is_user_code(node))
				return true;
	}
	return expression_tree_walker(node, calls_user_code, context);
}

/*
 * May stmt run user code while workers read temporary tables?  Any subplan may be
 * run meanwhile.
 */
bool
tp_runs_user_code(PlannedStmt *stmt)
{
	ListCell   *lc;

	if (tp_plan_contents(tp_parallel_part(stmt), stmt->rtable,
						 stmt->subplans).user_code)
		return true;
	foreach(lc, stmt->subplans)
	{
		if (lfirst(lc) != NULL &&
			tp_plan_contents(lfirst(lc), stmt->rtable, stmt->subplans).user_code)
			return true;
	}
	return false;
}

/*
 * Returns counts in the current memory context for the price of flushes of query,
 * which has not been planned; NULL if that is not known.
 */
LocalBufStats *
tp_stats_for_query(Query *query)
{
	LocalBufStats *stats = tp_localbuf_stats_for_price();

	if (user_code_matters(stats) &&
		(query == NULL || calls_user_code((Node *) query, NULL)))
		stats->most_shared = tp_most_shared_pages(true);
	return stats;
}

/* The same for stmt, a plan. */
LocalBufStats *
tp_stats_for_statement(PlannedStmt *stmt)
{
	LocalBufStats *stats = tp_localbuf_stats_for_price();

	if (user_code_matters(stats) && tp_runs_user_code(stmt))
		stats->most_shared = tp_most_shared_pages(true);
	return stats;
}
