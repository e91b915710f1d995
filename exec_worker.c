/*-------------------------------------------------------------------------
 *
 * exec_worker.c
 *	  Execution of a plan with a flush node in a worker.
 *
 * Before the plan is initialized, the worker begins a read-only phase for the flush
 * node's tables, allocates local buffers, and adopts the pages that the leader shares.
 * Before the plan runs, it checks what the plan reads and which values it was sent.  The
 * phase ends with the flush node.
 *
 * Core keeps workers away from temporary tables with one check, in InitLocalBuffers(),
 * when a process uses its first local buffer.  It is bypassed once.
 *
 * Each page that the leader lists (localbuf_share.c) becomes a local buffer of the worker,
 * as if it had read it, with an address in the leader's memory, so that every read finds
 * it, by whatever code.  It stays pinned, as another page would be read into the leader's
 * memory.  A worker that cannot map that memory takes no part, as if it had not been
 * launched: no part of a plan belongs to a process before it runs it.
 *
 * The invariants: a worker without a flush node in its plan has no local
 * buffers, unless it builds an index; the plan of one that has reads only the temporary
 * tables and indexes that its flush node lists; ParallelWorkerNumber is restored before
 * anything is sent to the leader; a buffer with an address in the leader's memory holds
 * the page that the leader has there, is pinned, and is never written.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"

#include "exec.h"
#include "readonly.h"

/* contents of the flush node; valid while phase_begun */
static FlushPlan flushed;
static ReadonlyPhase phase;
static bool phase_begun = false;

/* filled by the leader before each launch; valid while phase_begun */
static FlushShared *shared = NULL;

/* pages of the leader's that this worker has pinned */
static Buffer *adopted = NULL;
static int	nadopted = 0;

/* ----------
 * The pool and the setting temp_buffers
 *
 * The server uses num_temp_buffers, the variable of the setting, also as the number of
 * local buffers that may be pinned.  So in a worker that variable is the size of its own
 * pool, and the setting has another variable and check hook.
 * ----------
 */

/* the leader's temp_buffers */
static int	session_temp_buffers;

/* As check_temp_buffers() does in the leader, which has used local buffers. */
static bool
check_session_temp_buffers(int *newval, void **extra, GucSource source)
{
	if (source != PGC_S_TEST && *newval != session_temp_buffers)
	{
		GUC_check_errdetail("\"temp_buffers\" cannot be changed after any temporary tables have been accessed in the session.");
		return false;
	}
	return true;
}

/* Give the setting its own variable, until the worker exits. */
static void
separate_setting_from_pool(void)
{
	struct config_int *setting = find_int_setting("temp_buffers");

	session_temp_buffers = num_temp_buffers;
	setting->variable = &session_temp_buffers;
	setting->check_hook = check_session_temp_buffers;
}

/*
 * Error context callback: restore ParallelWorkerNumber.  InitLocalBuffers() raises FATAL
 * if there is no memory for the pool, and FATAL bypasses PG_FINALLY().
 */
static void
give_number_back(void *arg)
{
	ParallelWorkerNumber = *(int *) arg;
}

/*
 * Allocate size local buffers in this worker.  No page is read of file, that of any
 * temporary table.  Looks up nothing.  Raises FATAL if there is no memory for the pool.
 */
void
tp_worker_open_pool(SMgrRelation file, int size)
{
	int			worker_number = ParallelWorkerNumber;
	ErrorContextCallback context = {error_context_stack, give_number_back, &worker_number};

	Assert(IsParallelWorker() && NLocBuffer == 0);
	separate_setting_from_pool();
	num_temp_buffers = size;
	error_context_stack = &context;
	ParallelWorkerNumber = -1;	/* to pass the check */
	(void) PrefetchLocalBuffer(file, MAIN_FORKNUM, 0);
	ParallelWorkerNumber = worker_number;
	error_context_stack = context.previous;

	if (NLocBuffer == 0)
		elog(ERROR, "could not initialize local buffers in a parallel worker");
}

/* ----------
 * Pages in the leader's memory
 * ----------
 */

/* The table of contents that ParallelWorkerMain() of parallel.c has used. */
shm_toc *
tp_worker_toc(void)
{
	dsm_segment *seg = dsm_find_mapping(DatumGetUInt32(MyBgworkerEntry->bgw_main_arg));
	shm_toc    *toc = seg == NULL ? NULL :
		shm_toc_attach(PARALLEL_MAGIC, dsm_segment_address(seg));

	if (toc == NULL)
		elog(ERROR, "could not find the leader's dynamic shared memory");
	return toc;
}

/*
 * Map the leader's memory at *memory, if the leader shares pages or does not know whether
 * workers can map it, and say there whether it could be mapped.  Returns false if this
 * worker must take no part, and raises an error if the leader relies on it.
 */
static bool
map_leader(char **memory)
{
	if (shared->npages == 0 && !shared->try_map)
		return true;
	*memory = tp_map_leader(&shared->memory);
	if (*memory != MAP_FAILED)
	{
		shared->mapped = true;
		return true;
	}
	shared->failed = true;		/* the leader does not share again */
	if (shared->npages > 0 && !shared->leader_runs)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not map the leader's local buffers: %m"),
				 errhint("Repeat the statement. The session writes pages for workers from now on.")));
	return shared->npages == 0;
}

/*
 * Replace the plan of stmt, the worker's own copy of the statement, by one that reads
 * nothing and returns no rows.  It has the number of the topmost node, which EXPLAIN shows.
 */
static void
take_no_part(PlannedStmt *stmt)
{
	Result	   *nothing = makeNode(Result);
	ListCell   *lc;

	nothing->plan.plan_node_id = stmt->planTree->plan_node_id;
	nothing->resconstantqual = (Node *) list_make1(makeBoolConst(false, false));
	stmt->planTree = &nothing->plan;
	foreach(lc, stmt->subplans)
		lfirst(lc) = NULL;
}

/*
 * Adopt the pages that the leader has listed, which are in memory, before the pool is
 * used.  The buffer manager zeroes the memory of a new buffer, so that has to be another
 * page first.
 */
static void
adopt_pages(char *memory)
{
	char	   *scratch;
	Relation	rel = NULL;

	if (shared->npages == 0)
		return;
	adopted = MemoryContextAllocExtended(TopMemoryContext,
										 shared->npages * sizeof(Buffer),
										 MCXT_ALLOC_HUGE);
	scratch = MemoryContextAlloc(TopMemoryContext, BLCKSZ);
	for (int i = 0; i < shared->npages; i++)
		LocalBufferBlockPointers[i] = scratch;

	for (int i = 0; i < shared->npages; i++)
	{
		const SharedPage *page = &shared->pages[i];
		Buffer		buffer;

		if (rel == NULL || RelationGetRelid(rel) != page->relid)
		{
			if (rel != NULL)
				RelationClose(rel);
			rel = tp_relation_open(page->relid);
		}
		buffer = ReadBufferExtended(rel, page->fork, page->block,
									RBM_ZERO_AND_LOCK, NULL);
		if (LocalBufferBlockPointers[-buffer - 1] != scratch)
			elog(ERROR, "block %u of relation \"%s\" is in a parallel worker's pool already",
				 page->block, RelationGetRelationName(rel));
		LocalBufferBlockPointers[-buffer - 1] = memory +
			(Size) page->buffer * BLCKSZ;
		adopted[nadopted++] = buffer;
	}
	RelationClose(rel);
	allow_read_ahead(nadopted);
}

/* ----------
 * Execution
 * ----------
 */

/* The kinds of node are those of ExecInitNode() of execProcnode.c. */
static bool
check_flushed_walker(PlanState *ps, void *context)
{
	const FlushPlan *plan = context;
	Relation	rel = NULL;
	Relation	index = NULL;

	switch (nodeTag(ps))
	{
		case T_IndexScanState:
			index = ((IndexScanState *) ps)->iss_RelationDesc;
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		case T_IndexOnlyScanState:
			index = ((IndexOnlyScanState *) ps)->ioss_RelationDesc;
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		case T_BitmapIndexScanState:
			index = ((BitmapIndexScanState *) ps)->biss_RelationDesc;
			break;
		case T_SeqScanState:
		case T_SampleScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
		case T_CustomScanState:
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		default:
			break;
	}
	if (rel != NULL && RelationUsesLocalBuffers(rel) &&
		!list_member_oid(plan->relids, RelationGetRelid(rel)))
		elog(ERROR, "temporary table \"%s\" below Gather was not planned to be flushed",
			 RelationGetRelationName(rel));
	if (index != NULL && RelationUsesLocalBuffers(index) &&
		!list_member_oid(plan->indexes, RelationGetRelid(index)))
		elog(ERROR, "index \"%s\" of a temporary table below Gather was not planned to be flushed",
			 RelationGetRelationName(index));

	return planstate_tree_walker(ps, check_flushed_walker, context);
}

/*
 * Raise an internal error if ps, or a node below it, subplans included, has a
 * temporary table or an index of one open that is not in plan's lists: what plan_facts.c
 * may have missed in the plan tree causes an error, not a wrong answer.
 */
void
tp_check_flushed(PlanState *ps, const FlushPlan *plan)
{
	(void) check_flushed_walker(ps, unconstify(FlushPlan *, plan));
}

/* Raise an error if the leader has loaded another release of the module than this. */
void
tp_worker_check_release(const char *leaders)
{
	if (strcmp(leaders, TP_VERSION) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("parallel worker has loaded temp_parallel %s, its leader %s",
						TP_VERSION, leaders),
				 errhint("The library was replaced after the session had loaded it. Start a new session.")));
}

/*
 * Is queryDesc's plan the one that the leader has sent?  No other statement in a worker
 * has the receiver that ExecParallelGetReceiver() of execParallel.c creates.
 */
static bool
is_sent_by_leader(QueryDesc *queryDesc)
{
	return queryDesc->dest->mydest == DestTupleQueue;
}

/*
 * Remove the subplans that only the leader runs from stmt, the worker's own
 * copy of the statement, as ExecSerializePlan() does with unsafe ones: their tables are
 * not flushed, and some index access methods read a page when a scan is initialized.
 *
 * A node that plan_facts.c does not know may run any subplan, so then all of them stay.
 * Such a statement has no temporary tables (see tp_place_flush_nodes()).
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
 * local buffers, adopt the leader's pages, and mark other temporary relations if the plan
 * may run user code; or replace the plan, if the pages cannot be adopted.  Tables are
 * opened without a lock.  Allocates in the current memory context, which has to live as
 * long as the plan.  Raises an error if another release of the module has made the plan.
 *
 * The node is initialized too late for this: subplans, whose index scans may read a page
 * then, come first.
 */
void
tp_worker_begin(QueryDesc *queryDesc)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	CustomScan *flush;
	char	   *memory = NULL;

	Assert(IsParallelWorker());
	if (!is_sent_by_leader(queryDesc))
		return;
	if (tp_session_has_temp_tables())
		remove_other_subplans(stmt);
	flush = tp_find_flush_node(stmt->planTree);
	if (flush == NULL)
		return;
	tp_worker_check_release(tp_flush_plan_release(flush));

	flushed = tp_flush_plan(flush);
	if (flushed.relids == NIL)
		return;
	/* the plan is not initialized, so the executor has not passed it on yet */
	shared = shm_toc_lookup(tp_worker_toc(), FLUSH_SHARED_KEY, false);
	if (!map_leader(&memory))
	{
		take_no_part(stmt);
		return;
	}
	tp_readonly_begin(&phase);
	phase_begun = true;
	tp_readonly_attach(&phase, flushed.relids, false);

	/*
	 * As many buffers as the plan needs (pool_of_worker() of plan_place.c),
	 * but at most those of the leader, and those to be adopted.
	 */
	tp_worker_open_pool(RelationGetSmgr((Relation) linitial(phase.relations)),
						Min(Max(flushed.pool, LEAST_WORKER_POOL),
							shared->pool) + shared->npages);
	adopt_pages(memory);
	if (flushed.user_code)
		tp_refuse_other_relations(flushed.relids, flushed.indexes);
}

/* After queryDesc's plan is initialized: if the leader sent it, call tp_check_flushed(). */
void
tp_worker_check(QueryDesc *queryDesc)
{
	Assert(IsParallelWorker());
	if (is_sent_by_leader(queryDesc) && phase_begun)
		tp_check_flushed(queryDesc->planstate, &flushed);
}

/*
 * Run the executor in a worker, by next, an ExecutorRun hook or
 * standard_ExecutorRun().  Raises what that and tp_check_sent_values() raise.
 *
 * When workers are launched again, ExecParallelReinitialize() leaves their tuple bound at
 * that of the first launch, which with another LIMIT or OFFSET is too few rows, over
 * permanent tables too.  Here it is that of the present launch, set as by
 * ParallelQueryMain().
 */
void
tp_worker_run(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	Assert(IsParallelWorker());
	if (is_sent_by_leader(queryDesc) && phase_begun)
	{
		tp_check_sent_values(queryDesc);
		ExecSetTupleBound(shared->tuples_needed, queryDesc->planstate);
		count = Max(shared->tuples_needed, 0);	/* 0 means all */
	}
	next(EXECUTOR_RUN_PASS);
}

/*
 * When the flush node ends, undo tp_worker_begin(), but for the pool.  Scans of subplans
 * may end later, but read no more pages.  Not called after an error, which ends the
 * process.
 */
void
tp_worker_end(void)
{
	Assert(IsParallelWorker());
	if (!phase_begun)
		return;
	phase_begun = false;
	tp_readonly_end(&phase, true);
	while (nadopted > 0)
		ReleaseBuffer(adopted[--nadopted]);
	tp_release_other_relations();
}
