/*-------------------------------------------------------------------------
 *
 * exec_parallel_run.c
 *	  The run of a plan that needs parallel mode, of a whole statement or of a part of
 *	  it.
 *
 * The second look decides whether to use workers.  If it does, the plan runs in a
 * read-only phase for the tables of its flush nodes.
 *
 * The invariants: workers that read temporary tables are launched only in a read-only
 * phase that covers these, which ends when the run of the plan does, by return or
 * error; a plan whose flush is charged no more than when it was planned runs as
 * planned, unless the caller refuses workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "exec.h"
#include "readonly.h"

/* ----------
 * The second look
 * ----------
 */

static const char leader_is_cheaper[] = "the leader alone is cheaper now";

/*
 * The second look: is it cheaper to run a parallel plan, of which these are the flush nodes,
 * without workers?  A cached plan may have been made before its tables were filled: the
 * charge is higher than it was then, and than what the workers save, of both of which saving
 * is the note in the plan (plan_note.c).  Allocates in the current memory context, and frees
 * nothing.
 */
static bool
is_leader_cheaper(List *flush_nodes, const FlushSaving *saving)
{
	FlushCost	now = tp_flush_estimate(saving->relids, saving->indexes,
										tp_flush_node_plan(linitial(flush_nodes))->any_user_code);
	Cost		charge = now.charge + now.search;

	return charge > saving->charge && charge > saving->saving;
}

/* ----------
 * The run
 * ----------
 */

/*
 * Turn synchronize_seqscans off, in the leader and its workers: where each process scans a
 * large permanent table for the first rows of a subquery, as with LIMIT, each would begin
 * with another block.  Returns the level of settings to end, which after an error the end
 * of the transaction does.  As set_transmission_modes() of postgres_fdw.c.
 */
static int
scan_from_first_block(void)
{
	int			nest_level = NewGUCNestLevel();

	(void) set_config_option("synchronize_seqscans", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return nest_level;
}

/*
 * Call run in a read-only phase for the tables of flush_nodes.  The phase's lists
 * are allocated in context.
 */
static void
run_in_phase(MemoryContext context, List *flush_nodes, ParallelRun run,
			 void *arg)
{
	ReadonlyPhase phase;
	int			listed = tp_listed_buffers();
	volatile bool done = false;

	tp_readonly_begin(&phase);
	PG_TRY();
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		List	   *relids = NIL;
		ListCell   *lc;

		foreach(lc, flush_nodes)
			relids = list_concat_unique_oid(relids,
											tp_flush_node_plan(lfirst(lc))->relids);
		tp_readonly_attach(&phase, relids, true);
		MemoryContextSwitchTo(old);
		run(true, arg);
		done = true;
	}
	PG_FINALLY();
	{
		tp_unlist_buffers(listed, done);
		tp_readonly_end(&phase, done);
		tp_look_at_workers(flush_nodes);
	}
	PG_END_TRY();
}

/*
 * Run a plan that needs parallel mode, of which root is the topmost node: call
 * run(true, arg), which has to run it in parallel mode, or run(false, arg) if it
 * is to be run without workers, because of refusal, a constant, if that is not
 * NULL, of the second look, or of a setting.  only_ours: would core run it without
 * workers?  Raises what that raises.
 *
 * Everything allocated here is freed at the end of the run, or after an error
 * with the query's memory context.  The caller's context may live longer, like
 * that of a function called by an SQL statement.
 */
void
tp_run_parallel(PlanState *root, const char *refusal, bool only_ours,
				ParallelRun run, void *arg)
{
	PlannedStmt *stmt = root->state->es_plannedstmt;
	MemoryContext context = AllocSetContextCreate(root->state->es_query_cxt,
												  "temporary tables read by workers",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	List	   *flush_nodes = tp_find_flush_nodes(root);
	FlushSaving saving = tp_saving_of(stmt);
	int			nest_level = 0;

	if (refusal == NULL && flush_nodes != NIL)
		refusal = !tp_enabled ? "temp_parallel.enabled is off" :
			is_leader_cheaper(flush_nodes, &saving) ? leader_is_cheaper : NULL;
	if (refusal == NULL && (flush_nodes != NIL || only_ours) &&
		tp_client_has_other_encoding() &&
		tp_must_run_in_leader(tp_gather_facts(stmt, tp_statement_facts(stmt).gathers), only_ours))
		refusal = "client_encoding has changed since the plan was made";
	MemoryContextSwitchTo(old);

	if (refusal != NULL)
	{
		tp_skip_flush_nodes(flush_nodes, refusal);
		run(false, arg);
		if (refusal == leader_is_cheaper)
			(void) tp_credit_savings(list_make1(&saving), root);
	}
	else
	{
		if (flush_nodes != NIL)
			tp_show_activity();

		/*
		 * If the command ID is used, by this statement or the one that calls
		 * it, the counter cannot be incremented in parallel mode, as by the
		 * end of an exception block in the leader.  To do so before changes
		 * nothing else: rows are changed with the ID that the executor has
		 * noted, and the next command would increment the counter.
		 */
		if (!IsInParallelMode())
			CommandCounterIncrement();
		if (flush_nodes != NIL || only_ours)
			nest_level = scan_from_first_block();
		run_in_phase(context, flush_nodes, run, arg);
		if (nest_level != 0)
			AtEOXact_GUC(true, nest_level);
	}
	MemoryContextDelete(context);
}
