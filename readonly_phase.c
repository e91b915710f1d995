/*-------------------------------------------------------------------------
 *
 * readonly_phase.c
 *	  Duration of the read-only phase.
 *
 * While workers read temporary tables, reads of these tables must leave their
 * pages clean.  In the leader a phase is one run of the executor: it begins before
 * the flush, and ends when ExecutorRun() has waited for the workers.  In a worker
 * it lasts as long as its flush node, and so as its plan.  Within a phase the
 * descriptors of the tables, and of their TOAST tables, carry the routine of
 * readonly_heap.c; each is held open, so that the relation cache rebuilds it in
 * place when it is invalidated, and a callback attaches the routine again.  In the
 * leader, where scans that began earlier may be open, the descriptors of the
 * tables' indexes carry the routine of readonly_index.c; the relation cache leaves
 * that of an open index as it is.
 *
 * Outside a phase the routine must be heap's own: heap_getnext(), which index
 * builds and some contrib modules use, refuses any other.
 *
 * The invariant: a descriptor carries a read-only routine if and only if a
 * phase lists it.  tp_readonly_attach_tables() and tp_readonly_attach_indexes()
 * attach, tp_readonly_end() detaches, on every way out except FATAL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"

#include "localbuf.h"
#include "readonly.h"

typedef struct ReadonlyIndex
{
	Relation	index;			/* open, and carrying the routine */
	IndexAmRoutine *own;		/* what it carried before */
} ReadonlyIndex;

/* the innermost one */
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

/* Open table's indexes and give them the read-only routine, if they need it. */
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
 * Begin a phase within that of the statement that runs this one, if any; it has no
 * relations yet.  To be ended by tp_readonly_end() on every way out.
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
 * Attach the routine to tables relids and to their TOAST tables.  The phase's list
 * is in the current memory context.
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
 * Attach the index routine to all indexes of the phase's relations.
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
 * those that an outer phase lists too, and its indexes their own.  They are not
 * closed: after an error the resource owner does that.  Raises nothing.
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
 * After tp_readonly_end(), unless there was an error: close what phase opened.
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
 * Does a phase list relation relid?
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
 * Relation cache callback: a rebuilt descriptor has heap's routine.  Called after
 * the rebuild; relid is InvalidOid when all of them may have been rebuilt.
 */
void
tp_readonly_relcache_callback(Oid relid)
{
	/*
	 * FATAL bypasses PG_FINALLY(), so that a session that is terminated within
	 * a phase does not end it.  It then aborts its transaction, to which the
	 * lists belong, and drops its temporary tables, which calls this.  Nothing
	 * is read any more.
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
