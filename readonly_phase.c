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
	rel->rd_tableam = readonly_heap_routine();
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
		IndexAmRoutine *routine = readonly_index_routine(index);
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

		if (!table_is_readonly(RelationGetRelid(rel)))
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
table_is_readonly(Oid relid)
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
readonly_relcache_callback(Datum arg, Oid relid)
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
				rel->rd_tableam = readonly_heap_routine();
		}
	}
}

/* ----------
 * In the leader
 * ----------
 */

/* The tables of all flush nodes in stmt. */
static List *
flushed_tables(PlannedStmt *stmt)
{
	List	   *relids = NIL;
	ListCell   *lc;

	foreach(lc, statement_gathers(stmt))
	{
		CustomScan *flush = gather_flush_node(lfirst(lc));

		if (flush != NULL)
			relids = list_concat_unique_oid(relids,
											temp_flush_plan(flush).relids);
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

static void
run_in_phase(List *relids, ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	ReadonlyPhase phase = {0};
	ListCell   *lc;

	phase.outer = phases;
	phases = &phase;
	PG_TRY();
	{
		readonly_attach_all(&phase, relids);
		foreach(lc, phase.relations)
			readonly_attach_indexes(&phase, lfirst(lc));
		run_executor(next, EXECUTOR_RUN_PASS);
	}
	PG_FINALLY();
	{
		readonly_detach(&phase);
	}
	PG_END_TRY();

	foreach(lc, phase.indexes)
		RelationClose(((ReadonlyIndex *) lfirst(lc))->index);
	foreach(lc, phase.relations)
		RelationClose((Relation) lfirst(lc));
}

/*
 * Run the executor on a plan that needs parallel mode, in a phase for the tables
 * of its flush nodes if it is going to enter that mode (see ExecutePlan()).
 */
void
run_with_readonly_tables(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	List	   *relids = NIL;

	Assert(stmt->parallelModeNeeded);
	if (count == 0 && !queryDesc->already_executed)
		relids = flushed_tables(stmt);

	if (relids == NIL)
		run_executor(next, EXECUTOR_RUN_PASS);
	else
	{
		temp_flush_find_gathers(queryDesc->planstate);
		run_in_phase(relids, next, EXECUTOR_RUN_PASS);
	}
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
readonly_begin_in_worker(List *relids)
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
readonly_end_in_worker(List *relations)
{
	ListCell   *lc;

	if (relations == NIL)
		return;
	readonly_detach(&worker_phase);
	foreach(lc, relations)
		RelationClose((Relation) lfirst(lc));
}
