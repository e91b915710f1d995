/*-------------------------------------------------------------------------
 *
 * exec_worker.c
 *	  Execution of a plan with a flush node in a worker.
 *
 * Before the plan is initialized, the worker begins a read-only phase for the
 * flush node's tables and allocates local buffers.  Before the plan runs, it
 * checks what the plan reads and which values it was sent.  The phase ends
 * with the flush node.
 *
 * The invariant: the plan of a worker that has local buffers reads only the
 * temporary tables and indexes that its flush node lists.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"
#include "readonly.h"

/* contents of the flush node; valid while phase_begun */
static FlushPlan flushed;
static ReadonlyPhase phase;
static bool phase_begun = false;

/* filled by the leader before each launch; NULL without a flush node */
static FlushShared *shared = NULL;

/*
 * Is queryDesc's plan the one that the leader has sent?  Statements run by
 * functions in the worker do not use the receiver for a tuple queue that
 * ExecParallelGetReceiver() of execParallel.c creates.
 */
static bool
is_sent_by_leader(QueryDesc *queryDesc)
{
	return queryDesc->dest->mydest == DestTupleQueue;
}

/*
 * Remove the subplans that only the leader runs from stmt, the worker's own
 * copy of the statement, as ExecSerializePlan() does with unsafe ones.
 *
 * A worker is sent all parallel-safe subplans of the statement and initializes
 * all of them.  Tables read by subplans of the leader are not flushed, and
 * some index access methods read a page of the index when a scan is
 * initialized.
 *
 * An unknown node may run any subplan, so in that case all of them stay.  Such
 * a statement has no temporary tables, or the leader would not have launched
 * workers for it (see tp_place_flush_nodes()).
 */
static void
remove_other_subplans(PlannedStmt *stmt)
{
	PlanFacts	own = tp_plan_facts(stmt->planTree, stmt);
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
 * Before queryDesc's plan is initialized: if the leader has sent it, and it
 * has a flush node, begin a read-only phase for the node's tables, allocate
 * local buffers, adopt those of the leader's that it shares, and mark other
 * temporary relations if the plan may run user code.  Tables are opened without
 * a lock.  The phase's lists are allocated in
 * the current memory context, which has to live as long as the plan.  Raises an
 * error if another release of the module has made the plan.
 *
 * This cannot wait until the flush node is initialized: BRIN, SP-GiST and
 * bloom read a page of their index as soon as a scan begins, and subplans are
 * initialized before the plan that has the node.
 */
void
tp_worker_begin(QueryDesc *queryDesc)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	CustomScan *flush;
	FlushShared *pages;

	Assert(IsParallelWorker());
	if (!is_sent_by_leader(queryDesc))
		return;
	if (tp_session_has_temp_tables())
		remove_other_subplans(stmt);
	flush = tp_find_flush_node(stmt->planTree);
	if (flush == NULL)
		return;
	if (strcmp(tp_flush_plan_release(flush), TP_VERSION) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("parallel worker has loaded temp_parallel %s, its leader %s",
						TP_VERSION, tp_flush_plan_release(flush)),
				 errhint("The library was replaced after the session had loaded it. Start a new session.")));

	flushed = tp_flush_plan(flush);
	if (flushed.relids == NIL)
		return;
	tp_readonly_begin(&phase);
	phase_begun = true;
	tp_readonly_attach_tables(&phase, flushed.relids);
	pages = tp_worker_find_shared();
	tp_worker_open_local_buffers(linitial(phase.relations), flushed.pool,
								 pages != NULL ? pages->npages : 0,
								 pages == NULL || pages->pool_used);
	tp_worker_adopt_pages(pages);
	if (flushed.user_code)
		tp_refuse_other_relations(flushed.relids, flushed.indexes);
}

/*
 * After queryDesc's plan has been initialized: raise an internal error if it
 * is the one that the leader has sent and it reads a temporary table or index
 * that the flush node does not list.
 */
void
tp_worker_check(QueryDesc *queryDesc)
{
	Assert(IsParallelWorker());
	if (is_sent_by_leader(queryDesc) && phase_begun)
		tp_check_flushed(queryDesc->planstate, &flushed);
}

/*
 * Initialize the flush node in a worker: from_leader is its part of dynamic
 * shared memory.
 */
void
tp_worker_attach(FlushShared *from_leader)
{
	shared = from_leader;
}

/*
 * Run the executor in a worker.  next is the ExecutorRun hook of another
 * module, or NULL for standard_ExecutorRun().  Raises what that raises, and an
 * internal error if tp_check_sent_values() does.
 *
 * When workers are launched again, ExecParallelReinitialize() leaves their
 * tuple bound at that of the first launch.  With another LIMIT or OFFSET a
 * worker then returns too few rows, over permanent tables too.  Here the bound
 * is that of the present launch, set as by ParallelQueryMain().
 */
void
tp_worker_run(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	Assert(IsParallelWorker());
	if (is_sent_by_leader(queryDesc) && shared != NULL)
	{
		tp_check_sent_values(queryDesc);
		ExecSetTupleBound(shared->tuples_needed, queryDesc->planstate);
		count = Max(shared->tuples_needed, 0);	/* 0 means all */
	}
	if (next)
		next(EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(EXECUTOR_RUN_PASS);
}

/*
 * End the flush node in a worker: end the read-only phase and close what
 * tp_worker_begin() has opened, except local buffers.  Scans of subplans may
 * end later, but read no more pages.  Not called after an error, which ends
 * the process.
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
	tp_worker_release_pages();
	tp_release_other_relations();
}
