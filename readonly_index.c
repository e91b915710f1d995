/*-------------------------------------------------------------------------
 *
 * readonly_index.c
 *	  Index access methods that leave entries of dead rows unmarked.
 *
 * An index scan that fetches a row that is dead to all transactions marks its
 * index entry, so that later scans skip it, and dirties the page.
 * readonly_heap.c never reports a row as dead to all, but heap may have done
 * so to an older scan, that of a cursor opened before the flush.  Access
 * methods delay the marking until the scan leaves the page, goes back to an
 * earlier position, or ends.  A function run by the leader, correctly marked
 * PARALLEL RESTRICTED, may fetch from that cursor, move or close it while
 * workers read the index from its file.  So the callbacks that may mark
 * entries first discard the scan's list of entries to mark.
 *
 * Reading changes no other index pages.  Of core's access methods, btree, hash
 * and GiST mark entries.  BRIN, GIN and SP-GiST write to their pages only for
 * inserts, VACUUM, and functions that are PARALLEL UNSAFE; the same is true of
 * free space maps.  Visibility maps change only together with the heap.  A
 * parallel worker has no older scans.  Access methods of other modules that
 * mark entries are not covered.
 *
 * The invariant: while the routine made here is in an index's descriptor, no
 * scan of that index has entries to mark.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/gist_private.h"
#include "access/hash.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "catalog/pg_am.h"

#include "readonly.h"

/* An access method of core's that marks entries. */
typedef struct MarkingAm
{
	Oid			amoid;
	bool		known;			/* are the other two set? */
	IndexAmRoutine own;
	IndexAmRoutine readonly;
} MarkingAm;

static MarkingAm marking_ams[] = {
	{.amoid = BTREE_AM_OID},
	{.amoid = HASH_AM_OID},
	{.amoid = GIST_AM_OID},
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
 */
static void
forget_marks(IndexScanDesc scan)
{
	switch (scan->indexRelation->rd_rel->relam)
	{
		case BTREE_AM_OID:
			((BTScanOpaque) scan->opaque)->numKilled = 0;
			break;
		case HASH_AM_OID:
			((HashScanOpaque) scan->opaque)->numKilled = 0;
			break;
		case GIST_AM_OID:
			((GISTScanOpaque) scan->opaque)->numKilled = 0;
			break;
	}
}

/*
 * The callbacks that may mark entries: btgettuple() and others of nbtree.c,
 * hashgettuple() and others of hash.c, gistgettuple() of gistget.c, and
 * gistrescan() and gistendscan() of gistscan.c.
 */
static bool
readonly_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	forget_marks(scan);
	return marking_am(scan->indexRelation)->own.amgettuple(scan, direction);
}

static void
readonly_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
				ScanKey orderbys, int norderbys)
{
	forget_marks(scan);
	marking_am(scan->indexRelation)->own.amrescan(scan, keys, nkeys,
												  orderbys, norderbys);
}

/* Called when a merge join restores a marked position. */
static void
readonly_restrpos(IndexScanDesc scan)
{
	forget_marks(scan);
	marking_am(scan->indexRelation)->own.amrestrpos(scan);
}

static void
readonly_endscan(IndexScanDesc scan)
{
	forget_marks(scan);
	marking_am(scan->indexRelation)->own.amendscan(scan);
}

/*
 * The routine to put into the descriptor of index, in static memory, one for
 * each access method; NULL if the index needs none.
 */
IndexAmRoutine *
tp_readonly_index_routine(Relation index)
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
