/*-------------------------------------------------------------------------
 *
 * plan_explain.c
 *	  What EXPLAIN says of a statement that has no workers, or fewer than it could have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
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
	[NO_WORKERS_MODIFYING_WITH] = "WITH has a statement that modifies data",
	[NO_WORKERS_LOCKS] = "locks rows",
	[NO_WORKERS_UNSAFE] = "query is not parallel safe",
	[NO_WORKERS_PLANNING] = "planning took too long to be done twice",
};

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
 * If neither a reason nor a lost saving is known, add the tables without statistics.
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
	Refusal		refusal = tp_refusal_of(stmt);
	FlushSaving saving;
	ListCell   *lc;

	/* of these, it has been noted without a look at the tables */
	if ((refusal == NOT_REFUSED || refusal == RUN_AHEAD_VALUES ||
		 refusal >= NO_WORKERS_MODIFYING_WITH) && !tp_has_lost_saving(stmt))
	{
		List	   *tables = large_temp_tables(stmt);

		if (tables == NIL)
			refusal = NOT_REFUSED;
		if (refusal == NOT_REFUSED)
			tp_explain_names("Not Analyzed", not_analyzed(tables), es);
	}
	if (refusal >= NO_WORKERS_MODIFYING_WITH)
		ExplainPropertyText("No Workers", refusals[refusal], es);
	else if (refusal != NOT_REFUSED)
		ExplainPropertyText("Not Run Ahead", refusals[refusal], es);
	if (!tp_has_lost_saving(stmt))
		return;
	saving = tp_saving_of(stmt);
	foreach(lc, saving.relids)
	{
		if (get_rel_name(lfirst_oid(lc)) == NULL)
			return;				/* the statement has dropped it */
	}
	tp_explain_names("Not Parallel", saving.relids, es);

	flush = tp_flush_estimate(saving.relids, saving.indexes, false);
	if (es->costs)
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
