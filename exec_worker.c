/*-------------------------------------------------------------------------
 *
 * exec_worker.c
 *	  What a worker does before and while it runs its part of a plan.
 *
 * Before its plan is initialized, a worker with a flush node in its plan makes the
 * node's tables read-only and gets local buffers; all that ends with the node.
 * Before the plan runs, the worker checks what it reads and what it was sent.
 *
 * The invariant: a worker that has local buffers reads only the temporary tables
 * and indexes that its flush node lists.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"
#include "readonly.h"

/* the flush node's lists; valid while phase_begun */
static FlushPlan flushed;
static ReadonlyPhase phase;
static bool phase_begun = false;

/* what the leader has told at the launch; NULL if the plan has no flush node */
static FlushShared *shared = NULL;

/*
 * Is queryDesc what the leader has sent?  A statement that a function runs in the
 * worker has another destination than ExecParallelGetReceiver() of
 * execParallel.c gives it.
 */
static bool
is_sent_by_leader(QueryDesc *queryDesc)
{
	return queryDesc->dest->mydest == DestTupleQueue;
}

/*
 * A worker is sent every subplan of the statement that is parallel safe, and
 * initializes them all, also those that only the leader runs.  Remove these, as
 * ExecSerializePlan() of execParallel.c does with unsafe ones:
 * the tables that they read are not flushed,
 * and some index access methods read a page of the index when a scan is
 * initialized.  stmt is the worker's own copy.
 *
 * An unknown node may run any of them, so that all stay.  No temporary table is
 * in that statement, or the leader would have launched no workers for it (see
 * tp_place_flush_nodes()).
 */
static void
remove_other_subplans(PlannedStmt *stmt)
{
	PlanContents own = tp_plan_contents(stmt->planTree, stmt->rtable,
										stmt->subplans);
	int			plan_id = 0;
	ListCell   *lc;

	if (own.unknown)
		return;
	foreach(lc, stmt->subplans)
	{
		if (!bms_is_member(++plan_id, own.subplans))
			lfirst(lc) = NULL;
	}
}

/*
 * Before the worker's plan is initialized, which is early enough: BRIN, SP-GiST
 * and bloom read a page of their index as soon as a scan begins, and subplans are
 * initialized before the plan that has the node.
 */
void
tp_worker_begin(QueryDesc *queryDesc)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	CustomScan *flush;

	Assert(IsParallelWorker());
	if (!is_sent_by_leader(queryDesc))
		return;
	if (tp_session_has_temp_tables())
		remove_other_subplans(stmt);
	flush = tp_find_flush_node(stmt->planTree);
	if (flush == NULL)
		return;

	flushed = tp_flush_plan(flush);
	tp_readonly_begin(&phase);
	phase_begun = true;
	tp_readonly_attach_tables(&phase, flushed.relids);
	tp_worker_open_local_buffers(linitial(phase.relations), flushed.pins);
	if (flushed.user_code)
		tp_refuse_other_relations(flushed.relids, flushed.indexes);
}

/*
 * When the worker's plan has been initialized: check that it reads nothing but
 * what the flush node lists.
 */
void
tp_worker_check(QueryDesc *queryDesc)
{
	Assert(IsParallelWorker());
	if (is_sent_by_leader(queryDesc) && phase_begun)
		tp_check_flushed(queryDesc->planstate, &flushed);
}

/*
 * The flush node of the worker's plan has found what the leader has told.
 */
void
tp_worker_attach(FlushShared *from_leader)
{
	Assert(phase_begun);
	shared = from_leader;
}

/*
 * Run the executor in a worker; next is the hook of another module, or NULL.
 * The bound of rows is set as by ParallelQueryMain() of execParallel.c.
 *
 * When workers are launched again, ExecParallelReinitialize() leaves their tuple
 * bound at that of the first launch.  With another LIMIT or OFFSET a worker then
 * returns too few rows, over permanent tables too.  Here the bound is that of this
 * launch.
 */
void
tp_worker_run(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	Assert(IsParallelWorker());
	if (is_sent_by_leader(queryDesc) && shared != NULL)
	{
		tp_check_sent_values(queryDesc);
		ExecSetTupleBound(shared->tuples_needed, queryDesc->planstate);
		count = Max(shared->tuples_needed, 0);	/* 0 stands for all */
	}
	tp_run_with_hint(next, EXECUTOR_RUN_PASS);
}

/*
 * End of the flush node, and so of all scans, in a worker.  After an error the
 * process exits.
 */
void
tp_worker_end(void)
{
	Assert(IsParallelWorker());
	if (!phase_begun)
		return;
	phase_begun = false;
	tp_readonly_end(&phase);
	tp_readonly_close(&phase);
	tp_release_other_relations();
}
