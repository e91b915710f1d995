/*-------------------------------------------------------------------------
 *
 * exec_explain.c
 *	  EXPLAIN of a statement that has no workers because of the flush.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"

/*
 * If stmt has no workers only because of the flush, say so: what the flush costs
 * now, what the tables' accounts have of it, and what workers would save.  Costs
 * are those of the planner.
 */
void
tp_explain_saving(PlannedStmt *stmt, ExplainState *es)
{
	FlushSaving saving;
	FlushCost	flush;
	bool		as_text = es->format == EXPLAIN_FORMAT_TEXT;

	if (!tp_saving_of(stmt, &saving))
		return;
	if (!es->costs)
	{
		ExplainPropertyText("Not Parallel", "flush", es);
		return;
	}

	flush = tp_flush_cost_of_tables(tp_localbuf_stats_for_price(),
									saving.relids, saving.indexes);
	if (as_text)
		ExplainPropertyText("Not Parallel",
							psprintf("flush cost=%.2f account=%.2f saving=%.2f",
									 flush.cost, flush.cost - flush.charge,
									 saving.saving), es);
	else
	{
		ExplainPropertyText("Not Parallel", "flush", es);
		ExplainPropertyFloat("Flush Cost", NULL, flush.cost, 2, es);
		ExplainPropertyFloat("Flush Account", NULL,
							 flush.cost - flush.charge, 2, es);
		ExplainPropertyFloat("Flush Saving", NULL, saving.saving, 2, es);
	}
}
