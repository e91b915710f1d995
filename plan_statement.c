/*-------------------------------------------------------------------------
 *
 * plan_statement.c
 *	  Planning of a statement: how often the planner is called, for what, which
 *	  of its plans is taken, and what EXPLAIN says if that has no workers.
 *
 * Most statements are planned once.  A second plan, without workers over temporary
 * tables, is made and compared with the first one if that has costs which the
 * planner does not know: lookups in more pages than a worker has local buffers
 * (plan_lookup.c), or the rows of a SELECT that are kept until they are inserted
 * (run_ahead.c).
 *
 * The invariant: a plan with a Gather that reads temporary tables has been given its
 * flush nodes when it leaves this file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "exec.h"

/* Plan a statement whose workers do without temporary tables, if it has any. */
static PlannedStmt *
plan_without_temp_tables(const PlannerCall *call)
{
	Planning	planning = {0};

	return tp_call_planner(call, &planning);
}

/*
 * Plan a statement whose workers may read temporary tables, an INSERT if
 * insert_hazard is not 0.  The planner modifies its Query, so a second planning gets a
 * copy.  That can be needed only if tables have more pages than there are local
 * buffers, and then all of these have been used.
 */
static PlannedStmt *
plan_with_workers(const PlannerCall *call, char insert_hazard)
{
	Query	   *parse = call->args.parse;
	PlannerCall again = *call;
	Planning	planning = {.temp_tables = true,.insert_hazard = insert_hazard};
	List	   *flushed = NIL;
	PlannedStmt *stmt;

	again.args.parse = tp_buffer_was_used(num_temp_buffers - 1) &&
		tp_reads_temp_table(parse) ? copyObject(parse) : NULL;
	stmt = tp_call_planner(call, &planning);
	if (stmt->parallelModeNeeded)
		flushed = tp_place_flush_nodes(stmt, &planning);
	if (again.args.parse != NULL && flushed != NIL)
	{
		Cost		copies = tp_cost_of_copies(stmt);

		if (copies > 0)
		{
			Planning	serial = {.insert_hazard = insert_hazard};
			PlannedStmt *other = tp_call_planner(&again, &serial);

			/* the leader copies pages, too */
			if (other->planTree->total_cost + tp_cost_of_copies(other) <
				stmt->planTree->total_cost + copies)
				return other;
		}
	}
	tp_attach_savings(stmt, flushed, planning.savings);
	return stmt;
}

/*
 * Plan INSERT INTO ... SELECT, with workers unless run_ahead.c refuses them,
 * or it is not better with the cost of keeping the rows, which depends on their
 * number and is not known before they have been planned.
 */
static PlannedStmt *
plan_insert_select(const PlannerCall *call)
{
	PlannerCall again = *call;
	char		hazard;
	InsertRefusal refusal = tp_insert_refusal(call->args.parse, &hazard);
	PlannedStmt *parallel = NULL;
	PlannedStmt *stmt;

	if (refusal == INSERT_MAY_BE_PARALLEL)
	{
		again.args.parse = copyObject(call->args.parse);
		parallel = plan_with_workers(call, hazard);
		if (!parallel->parallelModeNeeded)
			return parallel;
		if (tp_rows_exceed_file_limit(outerPlan(parallel->planTree)))
			refusal = INSERT_KEEPS_TOO_MUCH;
		tp_place_run_ahead_node(parallel);
	}
	stmt = plan_without_temp_tables(&again);
	if (refusal == INSERT_MAY_BE_PARALLEL)
		return plan_costs_less(stmt->planTree, parallel->planTree) ?
			stmt : parallel;
	if (refusal != INSERT_OTHER_TARGET)
		tp_note_serial_insert(stmt, refusal);
	return stmt;
}

/*
 * Plan a statement: what planner_hook has to do.
 */
PlannedStmt *
tp_plan_statement(const PlannerCall *call)
{
	/*
	 * With "regress", which is for the server's tests, EXPLAIN hides the
	 * Gather, as if there were no workers, but would show the flush node.
	 */
	bool		consider_temp = tp_enabled &&
		tp_session_has_temp_tables() &&
		debug_parallel_query != DEBUG_PARALLEL_REGRESS &&
		(call->args.cursorOptions & CURSOR_OPT_PARALLEL_OK) != 0 &&
		max_parallel_workers_per_gather > 0 &&
		!IsParallelWorker();

	if (consider_temp && tp_insert_select && tp_is_insert_select(call->args.parse))
		return plan_insert_select(call);
	if (consider_temp && call->args.parse->commandType == CMD_SELECT)
		return plan_with_workers(call, 0);
	return plan_without_temp_tables(call);
}

/*
 * Say why stmt has no workers, or fewer Gathers than it could have.  Shown
 * without VERBOSE, too: a user who wonders why a query is not parallel does
 * not know which option to use.
 *
 * If the SELECT of stmt, an INSERT into a temporary table, cannot be parallel,
 * add the reason to the output of EXPLAIN.
 *
 * If stmt reads temporary tables without workers only because of the flush, add
 * their names, unless it has dropped one of them; with COSTS also, in planner
 * cost units, what their flush costs now, what their accounts have of it, and
 * what workers would save.  Allocates in the current memory context.
 */
void
tp_explain_saving(PlannedStmt *stmt, ExplainState *es)
{
	FlushCost	flush;
	List	   *relids = NIL;
	Cost		saving = 0;
	const char *reason = tp_serial_insert_reason(stmt);
	ListCell   *lc;

	if (reason != NULL)
		ExplainPropertyText("Insert Not Parallel", reason, es);
	if (!tp_has_savings(stmt))
		return;
	foreach(lc, tp_savings_of(stmt))
	{
		FlushSaving *lost = lfirst(lc);

		relids = list_concat_unique_oid(relids, lost->relids);
		saving += lost->saving;
	}
	foreach(lc, relids)
	{
		if (get_rel_name(lfirst_oid(lc)) == NULL)
			return;				/* the statement has dropped it */
	}
	tp_explain_names("Not Parallel", relids, es);

	/* the saving is net of the search of the pool, the cost is not */
	flush = tp_flush_cost_of_tables(tp_localbuf_stats_for_price(false), relids, NIL);
	if (es->costs)
	{
		const ExplainNumber refused[] = {
			{"dirtied", "Refused Dirtied Buffers", flush.dirtied},
			{"cost", "Refused Flush Cost", flush.cost, 2},
			{"account", "Refused Flush Account", flush.account, 2},
			{"saving", "Refused Flush Saving", saving + flush.search, 2}
		};

		tp_explain_numbers("Flush Refused", refused, lengthof(refused), es);
	}
}
