/*-------------------------------------------------------------------------
 *
 * readonly_phase.c
 *	  For how long reads of which tables leave nothing behind.
 *
 * In the leader that is one run of the executor: it begins before the flush,
 * and ends when ExecutorRun() has waited for the workers.  In a worker it is
 * the life of the flush node, and so of the worker.  Within a phase the
 * descriptors of the tables concerned, and of their TOAST tables, carry the
 * routine of readonly_heap.c; each is held open, so that the relation cache
 * rebuilds it in place when it is invalidated, and a callback puts the routine
 * in again.  In the leader, where scans of an earlier time may be open, the
 * descriptors of the tables' indexes carry the routine of readonly_index.c;
 * the relation cache leaves that of an open index as it is.
 *
 * Outside a phase the routine must be heap's own: heap_getnext(), which index
 * builds and some contrib modules use, refuses any other.
 *
 * The invariant: a descriptor carries a read-only routine if and only if a
 * phase lists it; readonly_attach(), readonly_attach_indexes() and
 * readonly_detach() are the only ones to change either, the last on every way
 * out but the end of the process.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/pg_list.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

typedef struct ReadonlyIndex
{
	Relation	index;			/* open, and carrying the routine */
	IndexAmRoutine *own;		/* what it carried before */
} ReadonlyIndex;

typedef struct ReadonlyPhase
{
	struct ReadonlyPhase *outer;	/* of a statement that runs this one */
	List	   *relations;		/* open, and carrying the routine */
	List	   *indexes;		/* of ReadonlyIndex, but for those that an
								 * outer phase has */
} ReadonlyPhase;

static ReadonlyPhase *phases = NULL;

/* a worker has one, that nothing ends but its exit or temp_flush_end() */
static ReadonlyPhase worker_phase;

/* ----------
 * Attaching and detaching the routine
 * ----------
 */

/* Open a heap relation, without a lock, and give it the read-only routine. */
static void
readonly_attach(ReadonlyPhase *phase, Oid relid)
{
	Relation	rel = tp_relation_open(relid);

	Assert(RelationUsesLocalBuffers(rel));
	phase->relations = lappend(phase->relations, rel);
	rel->rd_tableam = tp_readonly_heap_routine();
}

/* Open table's indexes and give them the read-only routine, if they need it. */
static void
readonly_attach_indexes(ReadonlyPhase *phase, Relation table)
{
	List	   *indexes = RelationGetIndexList(table);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = tp_relation_open(lfirst_oid(lc));
		IndexAmRoutine *routine = tp_readonly_index_routine(index);
		ReadonlyIndex *entry;

		if (routine == NULL || index->rd_indam == routine)
		{
			RelationClose(index);
			continue;
		}
		entry = palloc(sizeof(ReadonlyIndex));
		entry->index = index;
		entry->own = (IndexAmRoutine *) index->rd_indam;
		phase->indexes = lappend(phase->indexes, entry);
		index->rd_indam = routine;
	}
	list_free(indexes);
}

/*
 * End phase, the innermost one.  Its relations get heap's routine back, but
 * for those that an outer phase lists too, and its indexes their own.  They
 * are not closed: after an error that is the resource owner's work.
 */
static void
readonly_detach(ReadonlyPhase *phase)
{
	ListCell   *lc;

	Assert(phases == phase);
	phases = phase->outer;
	foreach(lc, phase->indexes)
	{
		ReadonlyIndex *entry = lfirst(lc);

		entry->index->rd_indam = entry->own;
	}
	foreach(lc, phase->relations)
	{
		Relation	rel = lfirst(lc);

		if (!tp_table_is_readonly(RelationGetRelid(rel)))
			rel->rd_tableam = GetHeapamTableAmRoutine();
	}
}

/* Attach the routine to tables relids and to their TOAST tables. */
static void
readonly_attach_all(ReadonlyPhase *phase, List *relids)
{
	ListCell   *lc;

	foreach(lc, relids)
	{
		Oid			toastrelid;

		readonly_attach(phase, lfirst_oid(lc));
		toastrelid = ((Relation) llast(phase->relations))->rd_rel->reltoastrelid;
		if (OidIsValid(toastrelid))
			readonly_attach(phase, toastrelid);
	}
}

/* Is relid in a phase now? */
bool
tp_table_is_readonly(Oid relid)
{
	for (ReadonlyPhase *phase = phases; phase != NULL; phase = phase->outer)
	{
		ListCell   *lc;

		foreach(lc, phase->relations)
		{
			if (RelationGetRelid((Relation) lfirst(lc)) == relid)
				return true;
		}
	}
	return false;
}

/*
 * A rebuilt descriptor has heap's routine.  Called after the rebuild; relid is
 * InvalidOid when all of them may have been rebuilt.
 */
void
tp_readonly_relcache_callback(Datum arg, Oid relid)
{
	/*
	 * A session that is terminated within a phase leaves it without
	 * readonly_detach(): FATAL does not come by PG_FINALLY().  It then aborts
	 * its transaction, to which the lists belong, and drops its temporary
	 * tables, which leads here.  Nothing is read any more.
	 */
	if (proc_exit_inprogress)
		phases = NULL;

	for (ReadonlyPhase *phase = phases; phase != NULL; phase = phase->outer)
	{
		ListCell   *lc;

		foreach(lc, phase->relations)
		{
			Relation	rel = lfirst(lc);

			if (relid == InvalidOid || RelationGetRelid(rel) == relid)
				rel->rd_tableam = tp_readonly_heap_routine();
		}
	}
}

/* ----------
 * In the leader
 * ----------
 */

/* The tables of flush_nodes, a List of CustomScanState. */
static List *
flushed_tables(List *flush_nodes)
{
	List	   *relids = NIL;
	ListCell   *lc;

	foreach(lc, flush_nodes)
	{
		Plan	   *plan = ((CustomScanState *) lfirst(lc))->ss.ps.plan;

		relids = list_concat_unique_oid(relids,
										tp_flush_plan((CustomScan *) plan).relids);
	}
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
 * As error context: heap_getnext(), with which several functions of contrib read
 * tables, takes the read-only routine for another access method than heap, and
 * descriptors marked by exec_worker_relations.c look like another session's.  Say what
 * to do about these errors.
 */
static void
add_hint(void *arg)
{
	MemoryContext old;
	ErrorData  *error;

	if (geterrcode() != ERRCODE_FEATURE_NOT_SUPPORTED)
		return;
	old = MemoryContextSwitchTo(CurTransactionContext);
	error = CopyErrorData();
	MemoryContextSwitchTo(old);
	if (error->elevel >= ERROR && error->message != NULL &&
		error->hint == NULL)
	{
		if (strcmp(error->message, "only heap AM is supported") == 0)
			errhint("A temporary table cannot be read in this way while parallel workers read it; call the function in a statement of its own.");
		else if (IsParallelWorker() &&
				 strcmp(error->message, _("cannot access temporary tables of other sessions")) == 0)
			errhint("A parallel worker can access only those temporary tables that its query reads; mark the function that does so PARALLEL RESTRICTED.");
	}
	FreeErrorData(error);
}

/*
 * Run the executor while tables are read-only, in the leader or in a worker.
 */
void
tp_run_with_hint(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	ErrorContextCallback context;

	context.callback = add_hint;
	context.arg = NULL;
	context.previous = error_context_stack;
	error_context_stack = &context;
	run_executor(next, EXECUTOR_RUN_PASS);
	error_context_stack = context.previous;
}

/*
 * Run the executor in a phase for the tables of flush_nodes.  The lists of the
 * phase are in context.
 */
static void
run_in_phase(MemoryContext context, List *flush_nodes,
			 ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	ReadonlyPhase phase = {0};
	ListCell   *lc;

	phase.outer = phases;
	phases = &phase;
	PG_TRY();
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		readonly_attach_all(&phase, flushed_tables(flush_nodes));
		foreach(lc, phase.relations)
			readonly_attach_indexes(&phase, lfirst(lc));
		MemoryContextSwitchTo(old);
		tp_run_with_hint(next, EXECUTOR_RUN_PASS);
	}
	PG_FINALLY();
	{
		readonly_detach(&phase);
		tp_count_launched_workers(flush_nodes);
	}
	PG_END_TRY();

	foreach(lc, phase.indexes)
		RelationClose(((ReadonlyIndex *) lfirst(lc))->index);
	foreach(lc, phase.relations)
		RelationClose((Relation) lfirst(lc));
}

/*
 * Run the executor without parallel mode.  ExecutePlan() decides by the statement
 * in queryDesc, which may be a cached one, so that it gets a copy to look at.
 */
static void
run_without_workers(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	PlannedStmt copy = *stmt;

	copy.parallelModeNeeded = false;
	queryDesc->plannedstmt = &copy;
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
 * Run the executor on a plan that needs parallel mode.  If the plan has flush
 * nodes and is going to enter that mode (see ExecutePlan()), the second look
 * decides whether it does, and if so it runs in a phase for the nodes' tables.
 * What is allocated for that is gone at the end of the run, or with the query's
 * memory context after an error; the caller's context may be one that lives on,
 * as that of a function in a SQL statement does.
 */
void
tp_run_with_readonly_tables(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	MemoryContext context;
	MemoryContext old;
	List	   *flush_nodes;
	bool		alone = false;

	Assert(queryDesc->plannedstmt->parallelModeNeeded);
	if (count != 0 || queryDesc->already_executed)
	{
		run_executor(next, EXECUTOR_RUN_PASS);
		return;
	}

	context = AllocSetContextCreate(queryDesc->estate->es_query_cxt,
									"temporary tables read by workers",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	flush_nodes = tp_find_flush_nodes(queryDesc->planstate);
	if (flush_nodes != NIL)
		alone = tp_leader_alone_is_cheaper(queryDesc->plannedstmt, flush_nodes);
	MemoryContextSwitchTo(old);

	if (alone)
	{
		tp_skip_flush_nodes(flush_nodes);
		run_without_workers(next, EXECUTOR_RUN_PASS);
	}
	else if (flush_nodes != NIL)
		run_in_phase(context, flush_nodes, next, EXECUTOR_RUN_PASS);
	else
		run_executor(next, EXECUTOR_RUN_PASS);
	MemoryContextDelete(context);
}

/* ----------
 * In a worker
 * ----------
 */

/*
 * Make tables relids, and their TOAST tables, read-only for the rest of the
 * worker's statement.  Returns the open relations.
 */
List *
tp_readonly_begin_in_worker(List *relids)
{
	Assert(IsParallelWorker() && phases == NULL);
	worker_phase.outer = NULL;
	worker_phase.relations = NIL;
	phases = &worker_phase;
	readonly_attach_all(&worker_phase, relids);
	return worker_phase.relations;
}

/*
 * End that, after the last scan has ended.  relations is NIL in the leader,
 * where there is nothing to do.
 */
void
tp_readonly_end_in_worker(List *relations)
{
	ListCell   *lc;

	if (relations == NIL)
		return;
	readonly_detach(&worker_phase);
	foreach(lc, relations)
		RelationClose((Relation) lfirst(lc));
}
