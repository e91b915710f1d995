/*-------------------------------------------------------------------------
 *
 * exec_run.c
 *	  Execution of a plan that may launch workers, in the leader.
 *
 * If the plan has flush nodes and is about to be run in parallel mode, the
 * second look decides whether to use workers.  If it does, the plan runs in a
 * read-only phase (readonly_phase.c) for the nodes' tables.  That is the plan
 * of a whole statement, or of a part of it (exec_run_ahead.c).
 *
 * The invariants: a plan whose flush is charged no more than when it was planned runs
 * as planned, unless exec_run_ahead.c refuses workers.  Workers for a
 * plan with a flush node are launched only in a read-only phase that covers
 * the node's tables, and the phase ends when the run of the plan does, by
 * return or error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "exec.h"
#include "readonly.h"

/*
 * The second look: is a parallel plan, of which these are the flush nodes, no
 * longer worth its flush, so that it is cheaper if the leader runs it alone?
 * A cached plan may have been made when the tables were clean, and be executed
 * after a gigabyte has been loaded; and the planner has not charged the
 * indexes that it scans.  If the charge is higher than when the plan was made,
 * and than what the workers save, which is in the flush nodes (plan_saving.c),
 * the plan runs without parallel mode, and nothing is written.  Allocates in
 * the current memory context, and frees nothing.
 */
static bool
leader_alone_is_cheaper(List *flush_nodes)
{
	Cost		planned = 0;	/* the charge when planned */
	Cost		charge = 0;		/* the charge now, without the search */
	Cost		search = 0;
	Cost		saving = 0;
	ListCell   *lc;

	foreach(lc, flush_nodes)
	{
		const FlushPlan *plan = tp_flush_node_plan(lfirst(lc));
		FlushCost	now = tp_flush_estimate(plan->relids, plan->indexes,
											plan->any_user_code);

		planned += plan->planned.charge;
		charge += now.charge - now.search;
		search += now.search;
		saving += plan->saving.saving;
	}
	return charge + search > planned && charge > saving;
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
		tp_readonly_attach_tables(&phase, relids);
		tp_readonly_attach_indexes(&phase);
		MemoryContextSwitchTo(old);
		run(true, arg);
		done = true;
	}
	PG_FINALLY();
	{
		tp_unlist_buffers(listed, done);
		tp_readonly_end(&phase);
		tp_look_at_workers(flush_nodes);
	}
	PG_END_TRY();
	tp_readonly_close(&phase);
}

/*
 * Add what workers would have saved in a plan that has run, of which these are
 * the flush nodes, to the accounts.
 */
static void
credit(List *flush_nodes, PlanState *root)
{
	List	   *savings = NIL;
	ListCell   *lc;

	foreach(lc, flush_nodes)
		savings = lappend(savings,
						  unconstify(FlushSaving *, &tp_flush_node_plan(lfirst(lc))->saving));
	(void) tp_credit_savings(savings, NULL, root);
	list_free(savings);
}

/*
 * Run a plan that needs parallel mode, of which root is the topmost node: call
 * run(true, arg), which has to run it in parallel mode, or run(false, arg) if it
 * is to be run without workers, because of refusal, a constant, if that is not
 * NULL, or of the second look.  Raises what that raises.
 *
 * Everything allocated here is freed at the end of the run, or after an error
 * with the query's memory context.  The caller's context may live longer, like
 * that of a function called by an SQL statement.
 */
void
tp_run_parallel(PlanState *root, const char *refusal, ParallelRun run,
				void *arg)
{
	MemoryContext context = AllocSetContextCreate(root->state->es_query_cxt,
												  "temporary tables read by workers",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	List	   *flush_nodes = tp_find_flush_nodes(root);
	bool		alone;

	alone = refusal == NULL && flush_nodes != NIL &&
		leader_alone_is_cheaper(flush_nodes);
	MemoryContextSwitchTo(old);

	if (refusal != NULL || alone)
	{
		tp_skip_flush_nodes(flush_nodes,
							alone ? "the leader alone is cheaper now" : refusal);
		run(false, arg);
		if (alone && tp_enabled)
			credit(flush_nodes, root);
	}
	else if (flush_nodes != NIL)
		run_in_phase(context, flush_nodes, run, arg);
	else
		run(true, arg);
	MemoryContextDelete(context);
}
