/*-------------------------------------------------------------------------
 *
 * exec_explain.c
 *	  EXPLAIN of a statement that has no workers because of the flush, or
 *	  because it is an INSERT whose SELECT cannot be parallel.
 *
 * Shown without VERBOSE, too: a user who wonders why a query is not parallel
 * does not know which option to use.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"

#include "exec.h"

/*
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
	List	   *indexes = NIL;
	Cost		saving = 0;
	List	   *names = NIL;
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
		indexes = list_concat_unique_oid(indexes, lost->indexes);
		saving += lost->saving;
	}
	foreach(lc, relids)
	{
		char	   *name = get_rel_name(lfirst_oid(lc));

		if (name == NULL)
			return;				/* the statement has dropped it */
		names = lappend(names, name);
	}
	ExplainPropertyList("Not Parallel", names, es);
	if (!es->costs)
		return;

	/* the saving is net of the search of the pool, the cost is not */
	flush = tp_flush_cost_of_tables(tp_localbuf_stats_for_price(),
									relids, indexes);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Flush Refused",
							psprintf("dirtied=%d cost=%.2f account=%.2f saving=%.2f",
									 flush.dirtied, flush.cost,
									 flush.account,
									 saving + flush.search), es);
	else
	{
		ExplainPropertyInteger("Refused Dirtied Buffers", NULL, flush.dirtied,
							   es);
		ExplainPropertyFloat("Refused Flush Cost", NULL, flush.cost, 2, es);
		ExplainPropertyFloat("Refused Flush Account", NULL,
							 flush.account, 2, es);
		ExplainPropertyFloat("Refused Flush Saving", NULL,
							 saving + flush.search, 2, es);
	}
}
