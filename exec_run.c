/*-------------------------------------------------------------------------
 *
 * exec_run.c
 *	  Execution of a statement that may launch workers, in the leader.
 *
 * If the plan has flush nodes and is about to be run in parallel mode, the
 * second look decides whether to use workers.  If it does, the plan runs in a
 * read-only phase (readonly_phase.c) for the nodes' tables.  That is the plan
 * of a whole statement, or of a part of it (exec_run_ahead.c).
 *
 * The query of CREATE TABLE AS may have to do without workers whatever its flush
 * costs, or have its rows kept until they have exited.
 *
 * The invariants: any other plan whose flush is charged no more than when it was
 * planned runs as planned, and a cached plan is never changed.  Workers for a
 * plan with a flush node are launched only in a read-only phase that covers
 * the node's tables, and the phase ends when the run of the plan does, by
 * return or error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/tstoreReceiver.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

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
	const FlushPlan *first = tp_flush_node_plan(linitial(flush_nodes));
	LocalBufStats *stats = tp_localbuf_stats_for_price(first->any_user_code);
	Cost		planned = 0;	/* the charge when planned */
	Cost		charge = 0;		/* the charge now, without the search */
	Cost		search = 0;
	Cost		saving = 0;
	ListCell   *lc;

	foreach(lc, flush_nodes)
	{
		const FlushPlan *plan = tp_flush_node_plan(lfirst(lc));
		FlushCost	now = tp_flush_cost_of_tables(stats, plan->relids,
												  plan->indexes);

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

/* ----------
 * Statements that are run in parallel mode as a whole
 * ----------
 */

typedef struct ExecutorCall
{
	ExecutorRun_hook_type next;
	ExecutorRunArgs args;
	bool		keep;			/* insert rows after parallel mode? */
} ExecutorCall;

static void
run_executor(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	if (next)
		next(EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(EXECUTOR_RUN_PASS);
}

/*
 * Run the executor without parallel mode.  ExecutePlan() looks at
 * parallelModeNeeded in queryDesc's statement, which may belong to a cached
 * plan.  So it gets a copy with the flag cleared, in the query's memory context.
 */
static void
run_without_workers(ExecutorCall *call)
{
	QueryDesc  *queryDesc = call->args.queryDesc;
	PlannedStmt *stmt = queryDesc->plannedstmt;
	PlannedStmt *copy = MemoryContextAlloc(queryDesc->estate->es_query_cxt,
										   sizeof(PlannedStmt));

	*copy = *stmt;
	copy->parallelModeNeeded = false;
	queryDesc->plannedstmt = copy;
	PG_TRY();
	{
		run_executor(call->next, EXECUTOR_RUN_UNPACK(&call->args));
	}
	PG_FINALLY();
	{
		queryDesc->plannedstmt = stmt;
	}
	PG_END_TRY();
}

/*
 * Does queryDesc's statement read temporary tables in workers, and the receiver of
 * its rows insert them into a table?  If so, sets *plan to that of a flush node.
 */
static bool
inserts_rows(QueryDesc *queryDesc, FlushPlan *plan)
{
	ListCell   *lc;

	if (queryDesc->dest->mydest != DestIntoRel)
		return false;
	foreach(lc, tp_statement_gathers(queryDesc->plannedstmt))
	{
		CustomScan *flush = tp_find_flush_node(((Plan *) lfirst(lc))->lefttree);

		if (flush != NULL)
		{
			*plan = tp_flush_plan(flush);
			return true;
		}
	}
	return false;
}

/*
 * CREATE TABLE AS: core runs the executor in parallel mode and inserts each
 * row as it comes.  From 17 on, the end of a function's exception block is an
 * error then, which that block itself may catch, so that the function returns
 * something else.  (Over permanent tables it does so without this module,
 * too.)  So if the statement of plan runs functions that are not core's, its
 * rows are kept, and inserted when parallel mode has ended.
 */
static bool
keeps_rows(const FlushPlan *plan)
{
	return PARALLEL_MODE_ALLOWS_SUBTRANSACTIONS && plan->any_user_code;
}

/*
 * Why CREATE TABLE AS, with stmt as its query, must not use workers; NULL if it may.
 * A prepared statement may have been planned for something else.
 */
static const char *
refusal_to_insert(PlannedStmt *stmt, const FlushPlan *plan)
{
	if (plan->any_volatile)
		return "query calls a volatile function";
	if (tp_rows_exceed_file_limit(stmt->planTree) && keeps_rows(plan))
		return "its rows may exceed temp_file_limit";
	return NULL;
}

/*
 * Pass the rows of a tuplestore to queryDesc's receiver, which has been started, as
 * ExecutePlan() of execMain.c does, and shut it down.
 */
static void
pass_on_rows(QueryDesc *queryDesc, Tuplestorestate *rows)
{
	DestReceiver *dest = queryDesc->dest;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(queryDesc->tupDesc,
													&TTSOpsMinimalTuple);

	while (tuplestore_gettupleslot(rows, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (!dest->receiveSlot(slot, dest))
			break;
	}
	dest->rShutdown(dest);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Run the executor in parallel mode, and pass its rows to their receiver when that
 * has ended, as in an INSERT (exec_run_ahead.c).
 */
static void
run_and_insert(ExecutorCall *call)
{
	QueryDesc  *queryDesc = call->args.queryDesc;
	DestReceiver *dest = queryDesc->dest;
	MemoryContext context = queryDesc->estate->es_query_cxt;
	MemoryContext old = MemoryContextSwitchTo(context);
	Tuplestorestate *rows = tuplestore_begin_heap(false, false, work_mem);

	MemoryContextSwitchTo(old);

	/* creates the table, and marks the command ID as used: see run_child() */
	dest->rStartup(dest, queryDesc->operation, queryDesc->tupDesc);
	CommandCounterIncrement();
	PG_TRY();
	{
		queryDesc->dest = CreateDestReceiver(DestTuplestore);
		SetTuplestoreDestReceiverParams(queryDesc->dest, rows, context, false,
										NULL, NULL);
		run_executor(call->next, EXECUTOR_RUN_UNPACK(&call->args));
		queryDesc->dest->rDestroy(queryDesc->dest);
	}
	PG_FINALLY();
	{
		queryDesc->dest = dest;
	}
	PG_END_TRY();
	pass_on_rows(queryDesc, rows);
	tuplestore_end(rows);
}

static void
run_statement(bool parallel, void *arg)
{
	ExecutorCall *call = arg;

	if (!parallel)
		run_without_workers(call);
	else if (call->keep)
		run_and_insert(call);
	else
		run_executor(call->next, EXECUTOR_RUN_UNPACK(&call->args));
}

/*
 * Run the executor on a plan that needs parallel mode.  next is the
 * ExecutorRun hook of another module, or NULL for standard_ExecutorRun().
 * Raises what that raises.
 */
void
tp_run_in_leader(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	ExecutorCall call = {next, EXECUTOR_RUN_PACK, false};
	PlannedStmt *stmt = queryDesc->plannedstmt;
	FlushPlan	plan;
	const char *refusal = NULL;

	Assert(queryDesc->plannedstmt->parallelModeNeeded);

	/* ExecutePlan() enters parallel mode only if it is to return all rows */
	if (count != 0 || queryDesc->already_executed)
	{
		run_executor(next, EXECUTOR_RUN_PASS);
		return;
	}
	if (inserts_rows(queryDesc, &plan))
	{
		refusal = refusal_to_insert(stmt, &plan);
		call.keep = keeps_rows(&plan);
	}
	tp_run_parallel(queryDesc->planstate, refusal, run_statement, &call);
}
