/*-------------------------------------------------------------------------
 *
 * exec_run.c
 *	  Execution of a statement that may launch workers, in the leader.
 *
 * If the plan has flush nodes and the executor is about to enter parallel
 * mode, the second look (exec_second_look.c) decides whether to use workers.
 * If it does, the executor runs in a read-only phase (readonly_phase.c) for the
 * nodes' tables.  An INSERT, whose rows the leader inserts, is run in parallel
 * mode only if exec_insert.c allows it.
 *
 * The invariant: workers for a plan with a flush node are launched only in a
 * read-only phase that covers the node's tables, and the phase ends when
 * ExecutorRun() does, by return or error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "exec.h"
#include "readonly.h"

/* OIDs of the tables of flush_nodes, a List of CustomScanState. */
static List *
flushed_tables(List *flush_nodes)
{
	List	   *relids = NIL;
	ListCell   *lc;

	foreach(lc, flush_nodes)
		relids = list_concat_unique_oid(relids,
										tp_flush_node_plan(lfirst(lc))->relids);
	return relids;
}

static void
run_executor(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	if (next)
		next(EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(EXECUTOR_RUN_PASS);
}

/*
 * Run the executor in a read-only phase for the tables of flush_nodes.  The
 * phase's lists are allocated in context.
 */
static void
run_in_phase(MemoryContext context, List *flush_nodes,
			 ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	ReadonlyPhase phase;

	tp_readonly_begin(&phase);
	PG_TRY();
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		tp_readonly_attach_tables(&phase, flushed_tables(flush_nodes));
		tp_readonly_attach_indexes(&phase);
		MemoryContextSwitchTo(old);
		tp_run_with_hint(next, EXECUTOR_RUN_PASS);
	}
	PG_FINALLY();
	{
		tp_readonly_end(&phase);
		tp_count_launched_workers(flush_nodes);
	}
	PG_END_TRY();
	tp_readonly_close(&phase);
}

/* Run the executor in parallel mode.  flush_nodes may be NIL. */
static void
run_in_parallel_mode(MemoryContext context, List *flush_nodes,
					 ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	if (flush_nodes != NIL)
		run_in_phase(context, flush_nodes, next, EXECUTOR_RUN_PASS);
	else
		run_executor(next, EXECUTOR_RUN_PASS);
}

/* The same for an INSERT into tables targets. */
static void
run_insert(MemoryContext context, List *targets, List *flush_nodes,
		   ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	WrittenTables tables;

	tp_begin_insert(&tables, targets);
	PG_TRY();
	{
		run_in_parallel_mode(context, flush_nodes, next, EXECUTOR_RUN_PASS);
	}
	PG_FINALLY();
	{
		tp_written_end(&tables);
	}
	PG_END_TRY();
}

/*
 * Run the executor without parallel mode.  ExecutePlan() looks at
 * parallelModeNeeded in queryDesc's statement, which may belong to a cached
 * plan.  So it gets a copy with the flag cleared, in context.
 */
static void
run_without_workers(MemoryContext context, ExecutorRun_hook_type next,
					EXECUTOR_RUN_ARGS)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	PlannedStmt *copy = MemoryContextAlloc(context, sizeof(PlannedStmt));

	*copy = *stmt;
	copy->parallelModeNeeded = false;
	queryDesc->plannedstmt = copy;
	PG_TRY();
	{
		run_executor(next, EXECUTOR_RUN_PASS);
	}
	PG_FINALLY();
	{
		queryDesc->plannedstmt = stmt;
	}
	PG_END_TRY();
}

/*
 * Run the executor on a plan that needs parallel mode.  next is the
 * ExecutorRun hook of another module, or NULL for standard_ExecutorRun().
 * Raises what that raises.
 *
 * Everything allocated here is freed at the end of the run, or after an error
 * with the query's memory context.  The caller's context may live longer, like
 * that of a function called by an SQL statement.
 */
void
tp_run_in_leader(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	MemoryContext context;
	MemoryContext old;
	List	   *gathers;
	List	   *flush_nodes;
	List	   *targets;
	FlushSaving saving;
	bool		allowed;
	bool		alone = false;

	Assert(queryDesc->plannedstmt->parallelModeNeeded);

	/* ExecutePlan() enters parallel mode only if it is to return all rows */
	if (count != 0 || queryDesc->already_executed)
	{
		run_executor(next, EXECUTOR_RUN_PASS);
		return;
	}

	context = AllocSetContextCreate(queryDesc->estate->es_query_cxt,
									"temporary tables read by workers",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	tp_find_parallel_nodes(queryDesc->planstate, &gathers, &flush_nodes);
	tp_inline_initplans(queryDesc->estate, gathers);
	allowed = tp_may_write_in_parallel_mode(queryDesc,
											flushed_tables(flush_nodes),
											&targets);
	if (allowed && flush_nodes != NIL)
		alone = tp_leader_alone_is_cheaper(queryDesc->plannedstmt, flush_nodes,
										   &saving);
	MemoryContextSwitchTo(old);

	if (!allowed)
		run_without_workers(context, next, EXECUTOR_RUN_PASS);
	else if (alone)
	{
		tp_skip_flush_nodes(flush_nodes);
		run_without_workers(context, next, EXECUTOR_RUN_PASS);
		if (tp_enabled && tp_flush_investment)
		{
			old = MemoryContextSwitchTo(context);
			(void) tp_credit_saving(&saving, queryDesc);
			MemoryContextSwitchTo(old);
		}
	}
	else if (targets != NIL)
		run_insert(context, targets, flush_nodes, next, EXECUTOR_RUN_PASS);
	else
		run_in_parallel_mode(context, flush_nodes, next, EXECUTOR_RUN_PASS);
	MemoryContextDelete(context);
}
