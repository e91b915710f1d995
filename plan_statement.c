/*-------------------------------------------------------------------------
 *
 * plan_statement.c
 *	  Planning of a statement: how often the planner is called, for what, which
 *	  of its plans is taken, and what EXPLAIN says if that has no workers.
 *
 * Most statements are planned once.  A second plan, without workers over temporary
 * tables, is made and compared with the first one if that has costs which the
 * planner does not know: lookups in more pages than a worker has local buffers
 * (plan_lookup.c), or the rows that are kept (plan_run_ahead.c).
 *
 * The invariant: a plan with a Gather that reads temporary tables has been given its
 * flush nodes when it leaves this file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
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

/* Is node a function in FROM?  The planner may inline it, with the tables that it reads. */
static bool
is_function(Node *node)
{
	return IsA(node, RangeTblEntry) && ((RangeTblEntry *) node)->rtekind == RTE_FUNCTION;
}

/*
 * Plan a statement whose workers may read temporary tables, and which is run ahead if
 * it modifies a table; returns NULL if the plan of such a one turns out not to be
 * parallel safe.  Another one is then planned without workers, as theirs would not do for
 * the leader: it may read the inner side of a nested loop again for each row, where the
 * other plan reads it once.  The planner modifies its Query, so a second planning gets a
 * copy, unless workers will read no temporary table, as none is large enough.
 */
static PlannedStmt *
plan_with_workers(const PlannerCall *call, bool modifies)
{
	Query	   *parse = call->args.parse;
	PlannerCall again = *call;
	Planning	planning = {.modifies = modifies};
	bool		reads_temp = tp_reads_temp_table(parse);
	List	   *flushed = NIL;
	PlannedStmt *stmt;
	bool		second_look;

	planning.temp_tables = modifies ||
		(reads_temp && tp_reads_large_table(parse)) ||
		tp_any_range_table_entry(parse, is_function);
	/* tables have more pages than the pool only if all buffers were used */
	second_look = reads_temp && tp_buffer_was_used(tp_pool_size() - 1);
	again.args.parse = second_look || (planning.temp_tables && !modifies) ?
		copyObject(parse) : NULL;
	stmt = tp_call_planner(call, &planning);
	if (stmt->parallelModeNeeded)
	{
		flushed = tp_place_flush_nodes(stmt, &planning);
		if (modifies && !stmt->parallelModeNeeded)
			return NULL;
		/* rows are not locked in core's plan of a function with FOR UPDATE */
		if (again.args.parse != NULL && !stmt->parallelModeNeeded &&
			stmt->rowMarks == NIL)
		{
			Planning	serial = {0};

			stmt = tp_call_planner(&again, &serial);
			/* its workers, which read no temporary tables */
			if (stmt->parallelModeNeeded)
				(void) tp_place_flush_nodes(stmt, &serial);
			else
				tp_note_refusal(stmt, NO_WORKERS_UNSAFE);
			return stmt;
		}
	}
	if (second_look && flushed != NIL)
	{
		Cost		copies = tp_cost_of_copies(stmt);

		if (copies > 0)
		{
			Planning	serial = {.modifies = modifies};
			PlannedStmt *other = tp_call_planner(&again, &serial);

			/* the leader copies pages, too */
			if (other->planTree->total_cost + tp_cost_of_copies(other) <
				stmt->planTree->total_cost + copies)
			{
				/* for values that its workers are sent */
				if (other->parallelModeNeeded)
					(void) tp_place_flush_nodes(other, &serial);
				return other;
			}
		}
	}
	tp_attach_savings(stmt, flushed, planning.savings);
	return stmt;
}

/*
 * Plan a statement that changes a table, run ahead unless plan_run_ahead.c refuses, or
 * it is not better with the cost of keeping the rows, which depends on their
 * number and is not known before they have been planned.
 */
static PlannedStmt *
plan_modification(const PlannerCall *call)
{
	PlannerCall again = *call;
	Query	   *parse = call->args.parse;
	List	   *defaults;
	RunAheadRefusal refusal;
	PlannedStmt *parallel = NULL;
	PlannedStmt *stmt;

	again.args.parse = copyObject(parse);
	defaults = tp_take_defaults(parse);
	refusal = tp_run_ahead_refusal(parse);
	if (refusal == RUN_AHEAD_ALLOWED)
	{
		parallel = plan_with_workers(call, true);
		if (parallel == NULL)
			refusal = RUN_AHEAD_UNSAFE;
		else if (!parallel->parallelModeNeeded && defaults == NIL)
			return parallel;
	}
	stmt = plan_without_temp_tables(&again);
	if (parallel != NULL && !parallel->parallelModeNeeded)
		tp_copy_savings(parallel, stmt);
	else if (parallel != NULL)
	{
		refusal = tp_plan_refusal(parallel, defaults);
		if (refusal == RUN_AHEAD_ALLOWED)
		{
			tp_place_run_ahead_node(parallel, defaults);
			if (!plan_costs_less(stmt->planTree, parallel->planTree) &&
				tp_gains_enough(parallel, parallel->planTree, stmt->planTree))
				return parallel;
			refusal = RUN_AHEAD_GAINS_LITTLE;
		}
	}
	tp_note_refusal(stmt, refusal);
	return stmt;
}

/*
 * Plan a query whose rows are fetched in portions.  A part of it is run ahead if
 * that finds the first row sooner than the plan without workers.
 */
static PlannedStmt *
plan_portions(const PlannerCall *call)
{
	PlannerCall again = *call;
	PlannedStmt *stmt;
	RunAheadRefusal refusal;

	again.args.parse = copyObject(call->args.parse);
	again.args.cursorOptions |= CURSOR_OPT_PARALLEL_OK;
	stmt = plan_without_temp_tables(call);
	if (!tp_finds_first_row_late(stmt))
		return stmt;
	refusal = tp_query_refusal(again.args.parse);
	if (refusal == RUN_AHEAD_ALLOWED)
	{
		PlannedStmt *parallel = plan_with_workers(&again, false);

		if (!parallel->parallelModeNeeded)
		{
			tp_copy_savings(parallel, stmt);
			refusal = tp_refusal_of(parallel);
		}
		else
		{
			refusal = tp_place_for_portions(parallel, stmt);
			if (!parallel->parallelModeNeeded)
				return parallel;
		}
	}
	tp_note_refusal(stmt, refusal);
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
	Query	   *parse = call->args.parse;
	bool		consider_temp = tp_enabled &&
		tp_session_has_temp_tables() &&
		debug_parallel_query != DEBUG_PARALLEL_REGRESS &&
		max_parallel_workers_per_gather > 0 &&
		!IsParallelWorker();
	RunAheadRefusal refusal = RUN_AHEAD_ALLOWED;
	PlannedStmt *stmt;

	/* the server's own queries for foreign keys change a few rows at a time */
	if (consider_temp && !InNoForceRLSOperation() && tp_may_run_ahead(parse))
		return plan_modification(call);
	if (consider_temp && parse->commandType == CMD_SELECT &&
		(call->args.cursorOptions & CURSOR_OPT_PARALLEL_OK) != 0)
		return plan_with_workers(call, false);
	if (consider_temp && !InNoForceRLSOperation() && tp_may_run_portions_ahead(parse))
		return plan_portions(call);
	if (consider_temp && tp_inserts_values(parse))
		refusal = RUN_AHEAD_VALUES;
	stmt = plan_without_temp_tables(call);
	tp_note_refusal(stmt, refusal);
	return stmt;
}

/*
 * The temporary tables that stmt reads that are large enough for workers, if it has
 * none.
 */
static List *
large_temp_tables(PlannedStmt *stmt)
{
	PlanFacts	facts;
	List	   *result = NIL;
	ListCell   *lc;

	if (!tp_enabled || max_parallel_workers_per_gather == 0 ||
		!tp_session_has_temp_tables())
		return NIL;
	facts = tp_statement_facts(stmt);
	if (facts.gathers != NIL)
		return NIL;
	foreach(lc, facts.temp_tables)
	{
		Relation	table = RelationIdGetRelation(lfirst_oid(lc));

		if (!RelationIsValid(table))
			continue;			/* the statement has dropped it */
		if (RelationGetNumberOfBlocks(table) >= Max(min_parallel_table_scan_size, 1))
			result = lappend_oid(result, lfirst_oid(lc));
		RelationClose(table);
	}
	return result;
}

/* Why core gives stmt, a query, no workers whatever it computes, if its form is the reason. */
static RunAheadRefusal
refusal_of_form(PlannedStmt *stmt)
{
	if (stmt->commandType != CMD_SELECT)
		return RUN_AHEAD_ALLOWED;
	if (stmt->hasModifyingCTE)
		return NO_WORKERS_MODIFYING_WITH;
	return stmt->rowMarks != NIL ? NO_WORKERS_LOCKS : RUN_AHEAD_ALLOWED;
}

/* Those of tables, a List of Oid, that have never been analyzed: the planner may have guessed wrong. */
static List *
not_analyzed(List *tables)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, tables)
	{
		Relation	table = RelationIdGetRelation(lfirst_oid(lc));

		if (table->rd_rel->reltuples < 0)
			result = lappend_oid(result, lfirst_oid(lc));
		RelationClose(table);
	}
	return result;
}

/*
 * Say why stmt has no workers, or fewer Gathers than it could have.  Shown
 * without VERBOSE, too: a user who wonders why a query is not parallel does
 * not know which option to use.
 *
 * If stmt cannot be run ahead, or workers cannot run it, add the reason to the output
 * of EXPLAIN.
 *
 * If neither a reason nor a lost saving is known, add that the statement's form is the
 * reason, or else the tables without statistics.
 *
 * If stmt reads temporary tables without workers only because of the flush, add
 * their names, unless it has dropped one of them; with COSTS also, in planner
 * cost units, what their flush costs now, what their accounts have of it, what
 * workers would save, and if that is cheaper, what sharing pages costs.  Allocates
 * in the current memory context.
 */
void
tp_explain_saving(PlannedStmt *stmt, ExplainState *es)
{
	FlushCost	flush;
	RunAheadRefusal refusal = tp_refusal_of(stmt);
	List	   *relids = NIL;
	Cost		saving = 0;
	ListCell   *lc;

	/* of VALUES, it has been noted without a look at the tables */
	if ((refusal == RUN_AHEAD_ALLOWED || refusal == RUN_AHEAD_VALUES) &&
		!tp_has_savings(stmt))
	{
		List	   *tables = large_temp_tables(stmt);

		if (refusal == RUN_AHEAD_ALLOWED)
			refusal = refusal_of_form(stmt);
		if (tables == NIL)
			refusal = RUN_AHEAD_ALLOWED;
		if (refusal == RUN_AHEAD_ALLOWED)
			tp_explain_names("Not Analyzed", not_analyzed(tables), es);
	}
	tp_explain_refusal(refusal, es);
	if (!tp_has_savings(stmt))
		return;
	foreach(lc, tp_savings_of(stmt))
	{
		FlushSaving *lost = lfirst(lc);

		if (lost->charge < lost->saving)
			continue;			/* there is another reason, too */
		relids = list_concat_unique_oid(relids, lost->relids);
		saving += lost->saving;
	}
	foreach(lc, relids)
	{
		if (get_rel_name(lfirst_oid(lc)) == NULL)
			return;				/* the statement has dropped it */
	}
	if (relids == NIL)
		return;
	tp_explain_names("Not Parallel", relids, es);

	/* the saving is net of the search of the pool, the cost is not */
	flush = tp_flush_estimate(relids, NIL, false);
	if (es->costs)
	{
		const ExplainNumber refused[] = {
			{"dirtied", "Refused Dirtied Buffers", flush.dirtied},
			{"cost", "Refused Flush Cost", flush.cost, 2},
			{"account", "Refused Flush Account", flush.account, 2},
			{"saving", "Refused Flush Saving", saving + flush.search, 2}
		};
		const ExplainNumber share[] = {
			{"pages", "Refused Pages Shared", flush.shareable},
			{"cost", "Refused Share Cost", flush.charge, 2}
		};

		tp_explain_numbers("Flush Refused", refused, lengthof(refused), es);
		if (flush.share)
			tp_explain_numbers("Share Refused", share, lengthof(share), es);
	}
}
