/*-------------------------------------------------------------------------
 *
 * readonly_phase.c
 *	  Duration of the read-only phase.
 *
 * While workers read temporary tables, reads of these tables must leave their
 * pages clean.  In the leader, a read-only phase is one run of the executor:
 * it begins before the flush, and ends after ExecutorRun() has waited for the
 * workers.  In a worker it lasts from before the plan is initialized until the
 * flush node ends.  Within a phase, the descriptors of the tables and of their TOAST
 * tables have the routine of readonly_heap.c.  Each is kept open, so that the
 * relation cache rebuilds it in place when it is invalidated, and a callback
 * attaches the routine again.  In the leader, where scans that began earlier
 * may be open, the descriptors of the tables' indexes have the routine of
 * readonly_index.c; the relation cache does not change that of an open index.
 *
 * Outside a phase the routine must be heap's own: heap_getnext(), which index
 * builds and some contrib modules use, refuses any other.
 *
 * The invariant: a descriptor has a read-only routine if and only if a phase
 * lists it.  tp_readonly_attach_tables() and tp_readonly_attach_indexes()
 * attach; tp_readonly_end() detaches on every exit except those that end the
 * process: FATAL, for which see tp_readonly_relcache_callback(), and an error
 * in a worker.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"

#include "localbuf.h"
#include "readonly.h"

typedef struct ReadonlyIndex
{
	Relation	index;			/* open, with the read-only routine */
	IndexAmRoutine *own;		/* its own routine */
} ReadonlyIndex;

/* the innermost phase, or NULL */
static ReadonlyPhase *phases = NULL;

/* Open a heap relation, without a lock, and give it the read-only routine. */
static Relation
attach_table(ReadonlyPhase *phase, Oid relid)
{
	Relation	rel = tp_relation_open(relid);

	Assert(RelationUsesLocalBuffers(rel));
	phase->relations = lappend(phase->relations, rel);
	rel->rd_tableam = tp_readonly_heap_routine();
	return rel;
}

/* Open table's indexes and attach the index routine to those that need it. */
static void
attach_indexes_of(ReadonlyPhase *phase, Relation table)
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
 * Begin phase, which has no relations yet, within the phase of the statement
 * that runs this one, if any.  *phase must stay in place until
 * tp_readonly_end(), which the caller has to call on every exit that does not
 * end the process.  Raises nothing.
 */
void
tp_readonly_begin(ReadonlyPhase *phase)
{
	phase->outer = phases;
	phase->relations = NIL;
	phase->indexes = NIL;
	phases = phase;
}

/*
 * Attach the routine to the tables relids, a List of Oid, and to their TOAST
 * tables.  phase is the innermost one.  Opens the tables without a lock; its
 * list is allocated in the current memory context.
 */
void
tp_readonly_attach_tables(ReadonlyPhase *phase, List *relids)
{
	ListCell   *lc;

	Assert(phases == phase);
	foreach(lc, relids)
	{
		Relation	rel = attach_table(phase, lfirst_oid(lc));

		if (OidIsValid(rel->rd_rel->reltoastrelid))
			(void) attach_table(phase, rel->rd_rel->reltoastrelid);
	}
}

/*
 * Attach the index routine to all indexes of the phase's relations.  Opens
 * them without a lock; the list is allocated in the current memory context.
 */
void
tp_readonly_attach_indexes(ReadonlyPhase *phase)
{
	ListCell   *lc;

	Assert(phases == phase);
	foreach(lc, phase->relations)
		attach_indexes_of(phase, lfirst(lc));
}

/*
 * End phase, the innermost one.  Its relations get heap's routine back, except
 * those that an outer phase lists too, and its indexes get their own.  Does
 * not close them: after an error the resource owner does.  Raises nothing.
 */
void
tp_readonly_end(ReadonlyPhase *phase)
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

/*
 * Close what phase has opened.  To be called after tp_readonly_end(), but not
 * after an error.
 */
void
tp_readonly_close(ReadonlyPhase *phase)
{
	ListCell   *lc;

	foreach(lc, phase->indexes)
		RelationClose(((ReadonlyIndex *) lfirst(lc))->index);
	foreach(lc, phase->relations)
		RelationClose((Relation) lfirst(lc));
}

/*
 * Is table or TOAST table relid in a phase?
 */
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
 * Relation cache callback, called after the rebuild: the descriptor of relid,
 * or any descriptor if relid is InvalidOid, may have been rebuilt.  If a phase
 * lists it, attach the routine again.
 */
void
tp_readonly_relcache_callback(Oid relid)
{
	/*
	 * FATAL bypasses PG_FINALLY(), so a session that is terminated within a
	 * phase does not end it, nor does a worker after an error.  It then
	 * aborts its transaction, which frees the lists, and drops its temporary
	 * tables, which calls this.  No page is read any more.
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
