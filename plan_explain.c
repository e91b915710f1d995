/*-------------------------------------------------------------------------
 *
 * plan_explain.c
 *	  What EXPLAIN says of a statement that has no workers, or fewer than it could have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "exec.h"

/*
 * Why a statement is not run ahead, or a query has no workers, as EXPLAIN says it; by
 * Refusal.
 */
static const char *const refusals[] = {
	[NOT_REFUSED] = NULL,
	[RUN_AHEAD_PERMANENT_TARGET] = "changes rows of a permanent table",
	[RUN_AHEAD_MODIFYING_WITH] = "WITH has a statement that modifies data",
	[RUN_AHEAD_VALUES] = "inserts rows of VALUES",
	[RUN_AHEAD_UNSAFE] = "query is not parallel safe",
	[RUN_AHEAD_VOLATILE] = "query calls a volatile function",
	[RUN_AHEAD_SUBQUERY] = "subquery is evaluated as rows are changed",
	[RUN_AHEAD_CURRENT_OF] = "WHERE CURRENT OF",
	[RUN_AHEAD_UNIQUE_COLUMN] = "changes a column of a unique index",
	[RUN_AHEAD_TRIGGER] = "trigger for each row",
	[RUN_AHEAD_CONFLICT] = "ON CONFLICT depends on the order of rows",
	[RUN_AHEAD_LOCKED] = "another session has locked a partition",
	[RUN_AHEAD_TOO_WIDE] = "its rows have more than 1664 columns",
	[RUN_AHEAD_GAINS_LITTLE] = "workers would save less than 15 % of its cost",
	[RUN_AHEAD_TOO_LARGE] = "its rows may exceed temp_file_limit",
	[RUN_AHEAD_NO_PART] = "no expensive sort or aggregation that can be run ahead",
	[NO_WORKERS_MODIFYING_WITH] = "WITH has a statement that modifies data",
	[NO_WORKERS_LOCKS] = "locks rows",
	[NO_WORKERS_UNSAFE] = "query is not parallel safe",
	[NO_WORKERS_PLANNING] = "planning took too long to be done twice",
};

/* Why stmt has no workers, if that has been noted in it, or NULL. */
const char *
tp_refusal_text(PlannedStmt *stmt)
{
	return refusals[tp_refusal_of(stmt)];
}

/*
 * Does stmt, which has no workers, read temporary tables that are large enough for them?  Adds
 * those that have never been analyzed to *guessed: the planner may have guessed wrong.
 */
static bool
reads_large_temp_table(PlannedStmt *stmt, List **guessed)
{
	PlanFacts	facts;
	bool		result = false;
	ListCell   *lc;

	if (!tp_enabled || max_parallel_workers_per_gather == 0 ||
		!tp_session_has_temp_tables())
		return false;
	facts = tp_statement_facts(stmt);
	foreach(lc, facts.gathers == NIL ? facts.temp_tables : NIL)
	{
		Relation	table = RelationIdGetRelation(lfirst_oid(lc));

		if (!RelationIsValid(table))
			continue;			/* the statement has dropped it */
		if (RelationGetNumberOfBlocks(table) >= Max(min_parallel_table_scan_size, 1))
		{
			result = true;
			if (table->rd_rel->reltuples < 0)
				*guessed = lappend_oid(*guessed, lfirst_oid(lc));
		}
		RelationClose(table);
	}
	return result;
}

/*
 * Say that stmt has a lost saving: the tables, unless it has dropped one of them; with COSTS
 * also, in planner cost units, what their flush costs now, what their accounts have of it,
 * what workers would save, and if that is cheaper, what sharing pages costs.
 */
static void
explain_lost_saving(PlannedStmt *stmt, ExplainState *es)
{
	FlushSaving saving = tp_sum_of_savings(tp_savings_of(stmt, true));
	FlushCost	flush;
	ListCell   *lc;

	foreach(lc, saving.relids)
	{
		if (get_rel_name(lfirst_oid(lc)) == NULL)
			return;				/* the statement has dropped it */
	}
	tp_explain_names("Not Parallel", saving.relids, es);
	if (!es->costs)
		return;

	flush = tp_flush_estimate(saving.relids, saving.indexes, false);
	if (saving.searched)
		flush.search = 0;
	{
		const ExplainNumber refused[] = {
			{"dirtied", "Refused Dirtied Buffers", flush.dirtied},
			{"cost", "Refused Flush Cost", flush.cost + flush.search, 2},
			{"account", "Refused Flush Account", flush.account, 2},
			{"saving", "Refused Flush Saving", saving.saving, 2}
		};
		const ExplainNumber share[] = {
			{"pages", "Refused Pages Shared", flush.shareable},
			{"cost", "Refused Share Cost", flush.charge + flush.search, 2}
		};

		tp_explain_numbers("Flush Refused", refused, lengthof(refused), es);
		if (flush.share)
			tp_explain_numbers("Share Refused", share, lengthof(share), es);
	}
}

/*
 * Say why stmt has no workers, or fewer Gathers than it could have: the reason why it is
 * refused, or a lost saving, or else the tables without statistics.  Shown without VERBOSE,
 * too: a user who wonders why a query is not parallel does not know which option to use.
 * Allocates in the current memory context.
 */
void
tp_explain_saving(PlannedStmt *stmt, ExplainState *es)
{
	Refusal		refusal = tp_refusal_of(stmt);
	bool		lost = tp_has_lost_saving(stmt);
	List	   *guessed = NIL;

	/* of these, it has been noted without a look at the tables */
	if ((refusal == NOT_REFUSED || refusal == RUN_AHEAD_VALUES ||
		 refusal >= NO_WORKERS_MODIFYING_WITH) && !lost &&
		!reads_large_temp_table(stmt, &guessed))
		return;
	if (refusal == NOT_REFUSED)
		tp_explain_names("Not Analyzed", guessed, es);
	else if (refusal < NO_WORKERS_MODIFYING_WITH)
		ExplainPropertyText("Not Run Ahead", refusals[refusal], es);
	else
		ExplainPropertyText("No Workers", refusals[refusal], es);
	if (lost)
		explain_lost_saving(stmt, es);
}
