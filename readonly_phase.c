/*-------------------------------------------------------------------------
 *
 * readonly_phase.c
 *	  The read-only phase: its duration, and the routine of indexes in it.
 *
 * In the leader, a phase lasts from before the flush until workers have ended, in a worker
 * from before the plan is initialized until the flush node ends.  In a phase, the descriptors
 * of the tables and of their TOAST tables have the routine of readonly_heap.c.  They are kept
 * open, so that the relation cache rebuilds them in place, and a callback attaches the
 * routine again.  In the leader, where older scans may be open, the tables' indexes have a
 * routine, too; the relation cache does not change that of an open index.
 *
 * Outside a phase the routine must be heap's own: heap_getnext(), which index
 * builds and some contrib modules use, refuses any other.
 *
 * The invariants: a descriptor has a read-only routine if and only if a phase
 * lists it; while an index has it, no scan of that index has entries to mark.  Exceptions
 * are exits that end the process: FATAL, for which see tp_readonly_relcache_callback(),
 * and an error in a worker.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/gist_private.h"
#include "access/hash.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "storage/ipc.h"

#include "localbuf.h"
#include "readonly.h"

/* ----------
 * Indexes
 *
 * An index scan marks the entry of a row that is dead to all transactions, and dirties the
 * page, when it leaves it, goes back to an earlier position, or ends.  readonly_heap.c never
 * reports a row as such, but heap may have done so to an older scan, that of a cursor, which
 * a PARALLEL RESTRICTED function in the leader may fetch from, move or close.  So the
 * callbacks that may mark entries first discard the list of them.
 *
 * Of core's access methods, btree, hash and GiST mark entries.  Nothing else that only
 * reads changes pages of indexes, free space maps, or, without the heap, visibility maps.
 * Access methods of other modules that mark entries are not covered.
 * ----------
 */

/* An access method of core's that marks entries. */
typedef struct MarkingAm
{
	Oid			amoid;
	Size		to_mark;		/* offset in a scan's opaque data: how many
								 * entries it is going to mark, an int */
	bool		known;			/* are the other two set? */
	IndexAmRoutine own;
	IndexAmRoutine readonly;
} MarkingAm;

static MarkingAm marking_ams[] = {
	{.amoid = BTREE_AM_OID,.to_mark = offsetof(BTScanOpaqueData, numKilled)},
	{.amoid = HASH_AM_OID,.to_mark = offsetof(HashScanOpaqueData, numKilled)},
	{.amoid = GIST_AM_OID,.to_mark = offsetof(GISTScanOpaqueData, numKilled)},
};

/* The access method of index, or NULL if it marks no entries. */
static MarkingAm *
marking_am(Relation index)
{
	for (int i = 0; i < lengthof(marking_ams); i++)
	{
		if (marking_ams[i].amoid == index->rd_rel->relam)
			return &marking_ams[i];
	}
	return NULL;
}

/*
 * Discard the list of entries that scan was going to mark: by _bt_killitems()
 * of nbtutils.c, _hash_kill_items() of hashutil.c, gistkillitems() of gistget.c.
 * Returns the access method's own routine.
 */
static const IndexAmRoutine *
forget_marks(IndexScanDesc scan)
{
	MarkingAm  *am = marking_am(scan->indexRelation);

	*(int *) ((char *) scan->opaque + am->to_mark) = 0;
	return &am->own;
}

/*
 * The callbacks that may mark entries: btgettuple() and others of nbtree.c,
 * hashgettuple() and others of hash.c, gistgettuple() of gistget.c, and
 * gistrescan() and gistendscan() of gistscan.c.
 */
static bool
readonly_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	return forget_marks(scan)->amgettuple(scan, direction);
}

static void
readonly_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
				ScanKey orderbys, int norderbys)
{
	forget_marks(scan)->amrescan(scan, keys, nkeys, orderbys, norderbys);
}

/* Called when a merge join restores a marked position. */
static void
readonly_restrpos(IndexScanDesc scan)
{
	forget_marks(scan)->amrestrpos(scan);
}

static void
readonly_endscan(IndexScanDesc scan)
{
	forget_marks(scan)->amendscan(scan);
}

/*
 * The routine to put into the descriptor of index, in static memory, one for
 * each access method; NULL if the index needs none.
 */
static IndexAmRoutine *
readonly_index_routine(Relation index)
{
	MarkingAm  *am = marking_am(index);

	if (am == NULL)
		return NULL;
	if (!am->known)
	{
		am->own = *index->rd_indam;
		am->readonly = am->own;
		am->readonly.amgettuple = readonly_gettuple;
		am->readonly.amrescan = readonly_rescan;
		if (am->own.amrestrpos != NULL)
			am->readonly.amrestrpos = readonly_restrpos;
		am->readonly.amendscan = readonly_endscan;
		am->known = true;
	}
	return &am->readonly;
}

/* ----------
 * The phase
 * ----------
 */

typedef struct ReadonlyIndex
{
	Relation	index;			/* open, with the read-only routine */
	IndexAmRoutine *own;		/* its own routine */
} ReadonlyIndex;

/* the innermost phase, or NULL */
static ReadonlyPhase *phases = NULL;

/* Open table's indexes, without a lock, and attach the routine to those that need it. */
static void
attach_indexes(ReadonlyPhase *phase, Relation table)
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
 * Open a heap relation, without a lock, and give it and its TOAST table the read-only
 * routine; if with_indexes, also the indexes of both.
 */
static void
attach_table(ReadonlyPhase *phase, Oid relid, bool with_indexes)
{
	Relation	rel = tp_relation_open(relid);

	Assert(RelationUsesLocalBuffers(rel));
	phase->relations = lappend(phase->relations, rel);
	rel->rd_tableam = tp_readonly_heap_routine();
	if (with_indexes)
		attach_indexes(phase, rel);
	if (OidIsValid(rel->rd_rel->reltoastrelid))
		attach_table(phase, rel->rd_rel->reltoastrelid, with_indexes);
}

/*
 * Begin phase within that of the statement that runs this one, if any.  *phase must stay in
 * place until tp_readonly_end(), which the caller has to call on every exit that does not
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
 * tables; if with_indexes, also the index routine to all of their indexes.  phase is the
 * innermost one.  Its lists are allocated in the current memory context.
 */
void
tp_readonly_attach(ReadonlyPhase *phase, List *relids, bool with_indexes)
{
	ListCell   *lc;

	Assert(phases == phase);
	foreach(lc, relids)
		attach_table(phase, lfirst_oid(lc), with_indexes);
}

/*
 * End phase, the innermost one.  Its relations get heap's routine back, except
 * those that an outer phase lists too, and its indexes get their own.  close says
 * whether to close them: after an error the resource owner does.  Raises nothing.
 */
void
tp_readonly_end(ReadonlyPhase *phase, bool close)
{
	ListCell   *lc;

	Assert(phases == phase);
	phases = phase->outer;
	foreach(lc, phase->indexes)
	{
		ReadonlyIndex *entry = lfirst(lc);

		entry->index->rd_indam = entry->own;
		if (close)
			RelationClose(entry->index);
	}
	foreach(lc, phase->relations)
	{
		Relation	rel = lfirst(lc);

		if (!tp_table_is_readonly(RelationGetRelid(rel)))
			rel->rd_tableam = GetHeapamTableAmRoutine();
		if (close)
			RelationClose(rel);
	}
}

/* Is table or TOAST table relid in a phase? */
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
	 * FATAL bypasses PG_FINALLY(), and a worker does not end its phase after
	 * an error.  The end of the transaction has freed the lists.  No page is
	 * read any more.
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
