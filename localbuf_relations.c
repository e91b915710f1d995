/*-------------------------------------------------------------------------
 *
 * localbuf_relations.c
 *	  Relations whose pages are in the pool: families, and counts of pages.
 *
 * A buffer's tag names a file, not a relation.  Core's map from the one to the
 * other (RelidByRelfilenumber()) omits temporary relations, because their
 * relfilenumbers are not unique across sessions.  So this file builds its own
 * map from the relations in the session's temporary schema.
 *
 * A page whose relation is not found belongs to a file that the running
 * transaction has removed (DROP, TRUNCATE, CLUSTER) and may roll back to, or
 * to a relation that another session has dropped (see localbuf_flush.c).
 *
 * A family is a temporary table and its indexes, TOAST table and TOAST index.
 * A worker that scans a table may read its heap, its TOAST table and TOAST
 * index, and those of its own indexes that the plan scans, all forks of each.
 * The flush writes these and the cost model counts them, and both open them
 * here.
 *
 * They are opened without a lock, so that a parallel query takes no more locks
 * than the same query without this module.  The caller has a lock on the
 * table, or for a worker the leader has one: from the parser, the planner (for
 * children), AcquireExecutorLocks() (for a cached plan) or
 * temp_table_argument().  That lock protects the rest of the family, too:
 *
 * - In this session nothing runs concurrently, and a function that the
 *	 statement calls cannot drop or rewrite an open relation, which
 *	 CheckTableNotInUse() refuses.
 * - In another session, even a superuser's, RELATION_IS_OTHER_TEMP() refuses
 *	 commands that change storage or indexes: ALTER TABLE and ALTER INDEX (see
 *	 CheckAlterTableIsSafe()), CREATE INDEX, REINDEX, CLUSTER and TRUNCATE;
 *	 VACUUM and ANALYZE skip the relation.
 * - Another session can drop the relation.  index_drop() takes
 *	 AccessExclusiveLock on the index's table before it changes anything,
 *	 whichever command calls it (DROP INDEX, also CONCURRENTLY, or DROP
 *	 OPERATOR CLASS ... CASCADE), and a TOAST table is dropped only with its
 *	 table.
 * - ALTER INDEX ... RENAME locks the index alone, but changes only its name.
 *
 * The exception is DROP INDEX on the index of a TOAST table under
 * allow_system_table_mods, which locks only the TOAST table.
 *
 * The invariant: only cost estimates use counts of an earlier walk; what is
 * written, and what is shown to the user, does not depend on these.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_namespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/relcache.h"

#include "localbuf.h"

/* ----------
 * Families
 * ----------
 */

/*
 * Open relation relid, a locked table or a member of its family, without
 * taking a lock.  To be closed by RelationClose().  An error if there is no
 * such relation.  As relation_open() of relation.c, without its assertion.
 */
Relation
tp_relation_open(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);

	if (!RelationIsValid(rel))
		elog(ERROR, "could not open relation with OID %u", relid);
	return rel;
}

/*
 * Returns the OIDs of all indexes of table relid, which is locked, as a new
 * List in the current memory context.
 */
List *
tp_table_indexes(Oid relid)
{
	Relation	table = tp_relation_open(relid);
	List	   *indexes = RelationGetIndexList(table);

	RelationClose(table);
	return indexes;
}

/*
 * Does rel's main fork consist of heap pages on which hints may be set?  Also
 * false if the running transaction has created the file, as then no hint can
 * be set for the rows that it has inserted.
 */
static bool
takes_hints(Relation rel)
{
	return rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
		(rel->rd_rel->relkind == RELKIND_RELATION ||
		 rel->rd_rel->relkind == RELKIND_TOASTVALUE) &&
		rel->rd_createSubid == InvalidSubTransactionId &&
		rel->rd_firstRelfilelocatorSubid == InvalidSubTransactionId;
}

/*
 * Append relation relid, of table's family, its indexes and its TOAST table to family, a
 * List of TempRelation; nothing that another session has dropped or that has no storage.
 */
static List *
add_member(List *family, Oid relid, Oid table, List *indexes)
{
	Relation	rel = RelationIdGetRelation(relid);
	List	   *parts;
	ListCell   *lc;

	if (rel == NULL)
		return family;
	if (RELKIND_HAS_STORAGE(rel->rd_rel->relkind))
	{
		TempRelation *member = palloc0(sizeof(TempRelation));

		member->locator = RelationFileLocator(rel);
		member->relid = relid;
		member->table = table;
		member->owner = rel->rd_rel->relowner;
		member->takes_hints = takes_hints(rel);
		member->left_alone = rel->rd_index != NULL &&
			rel->rd_index->indrelid == table && !list_member_oid(indexes, relid);
		family = lappend(family, member);
	}
	parts = RelationGetIndexList(rel);
	if (OidIsValid(rel->rd_rel->reltoastrelid))
		parts = lappend_oid(parts, rel->rd_rel->reltoastrelid);
	RelationClose(rel);
	foreach(lc, parts)
		family = add_member(family, lfirst_oid(lc), table, indexes);
	list_free(parts);
	return family;
}

/*
 * Returns the family of table relid, which is locked, as a List of TempRelation in the
 * current memory context, the table first.  Those of its indexes that are not in indexes, a
 * List of Oid, are marked as left alone.  Takes no locks.
 */
List *
tp_family(Oid relid, List *indexes)
{
	List	   *family = add_member(NIL, relid, relid, indexes);

	if (family == NIL)
		elog(ERROR, "could not open relation with OID %u", relid);
	return family;
}

/* ----------
 * Relations by their files
 * ----------
 */

/* Returns an empty hash table of TempRelation in the current memory context. */
HTAB *
tp_make_relations(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(RelFileLocator);
	ctl.entrysize = sizeof(TempRelation);
	ctl.hcxt = CurrentMemoryContext;
	return hash_create("temporary relations", 64, &ctl,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * The entry of relations with this locator, made if there is none: all else in it is
 * 0 then.
 */
TempRelation *
tp_enter_relation(HTAB *relations, RelFileLocator locator)
{
	bool		found;
	TempRelation *relation = hash_search(relations, &locator, HASH_ENTER, &found);

	if (!found)
	{
		memset(relation, 0, sizeof(TempRelation));
		relation->locator = locator;
	}
	return relation;
}

/*
 * The entry of relations with the relation of the page in buffer i, or NULL.  last is
 * the result for another buffer, or NULL: neighbors mostly hold pages of the same
 * relation.
 */
TempRelation *
tp_relation_of_buffer(HTAB *relations, int i, TempRelation *last)
{
	RelFileLocator locator = BufTagGetRelFileLocator(&GetLocalBufferDescriptor(i)->tag);

	if (last != NULL && memcmp(&locator, &last->locator, sizeof(locator)) == 0)
		return last;
	return hash_search(relations, &locator, HASH_FIND, NULL);
}

/*
 * Enter the family of relid, as by tp_family(), in relations; nothing if there is no such
 * relation.
 */
void
tp_enter_family(HTAB *relations, Oid relid, List *indexes)
{
	List	   *family = add_member(NIL, relid, relid, indexes);
	ListCell   *lc;

	foreach(lc, family)
	{
		TempRelation *member = lfirst(lc);

		*tp_enter_relation(relations, member->locator) = *member;
	}
	list_free_deep(family);
}

/*
 * Returns all temporary relations of this session that have storage, by
 * tp_enter_family(), in the current memory context.  Takes no lock on them.  Can be
 * canceled.
 *
 * pg_depend has what depends on the temporary schema.  Indexes and TOAST tables depend on
 * their tables instead.
 */
HTAB *
tp_session_temp_relations(List *indexes)
{
	HTAB	   *relations = tp_make_relations();
	Oid			namespace;
	Oid			toast_namespace;
	Relation	depend;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!tp_session_has_temp_tables())
		return relations;

	GetTempNamespaceState(&namespace, &toast_namespace);
	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(NamespaceRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(namespace));

	depend = table_open(DependRelationId, AccessShareLock);
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL,
							  2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		CHECK_FOR_INTERRUPTS();
		if (form->classid == RelationRelationId && form->objsubid == 0)
			tp_enter_family(relations, form->objid, indexes);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return relations;
}

/*
 * Set *buffers to the numbers of the buffers that hold a page of relations, a hash table
 * of TempRelation, or of any relation if that is NULL; if dirty is set, only of those
 * that are dirty and that workers do not read in the leader's memory.  Returns their
 * number.  The array is allocated in the current memory context.
 */
int
tp_find_buffers(HTAB *relations, bool dirty, int **buffers)
{
	int			used = tp_used_buffers();
	int			n = 0;
	TempRelation *relation = NULL;

	*buffers = palloc_extended(Max((Size) used, 1) * sizeof(int), MCXT_ALLOC_HUGE);
	for (int i = 0; i < used; i++)
	{
		BufferState state = LocalBufferStateRead(GetLocalBufferDescriptor(i));

		if ((state & BM_TAG_VALID) == 0 ||
			(dirty && ((state & BM_DIRTY) == 0 || tp_is_listed(i))))
			continue;
		if (relations != NULL)
		{
			relation = tp_relation_of_buffer(relations, i, relation);
			if (relation == NULL)
				continue;
		}
		(*buffers)[n++] = i;
	}
	return n;
}

/* ----------
 * Counts
 *
 * Core counts neither the dirty local buffers nor the buffers of each
 * relation, so one walk over the descriptors counts both, for all relations at
 * once.  The counts are those at the moment of the walk, and nothing is pinned
 * or changed.
 *
 * The walk over a large pool costs more than a small query, and the flush of
 * a statement is costed twice, by the planner and by the second look.  For
 * cost estimates, the counts of the last walk are therefore reused as long as
 * core's own counters show that so few pages have been read into the pool,
 * dirtied or written since that it would cost little to write them, compared
 * with the cost of the search of the pool, which is in every charge.  That is one
 * page in a thousand by default, so what changed the pages has taken longer than
 * the walk.  Dropped pages are not counted, but that is harmless: DROP and
 * TRUNCATE remove all pages of the file, and reading a page later changes a
 * counter.
 * ----------
 */

/* by what part of the cost of the search may old counts be wrong? */
#define TOLERANCE	0.125

/* counts of the last walk for a cost estimate, and core's counters then */
static MemoryContext last_context = NULL;
static LocalBufStats *last_stats = NULL;
static BufferUsage last_usage;

/*
 * Walk over the pool.  Returns the counts in the current memory context; takes
 * no lock and raises no error except out of memory.
 */
LocalBufStats *
tp_localbuf_stats_collect(void)
{
	LocalBufStats *stats = palloc0(sizeof(LocalBufStats));
	TempRelation *count = NULL;

	stats->relations = tp_make_relations();
	stats->allocated = tp_used_buffers();
	stats->most_shared = tp_most_shared_pages(false);

	for (int i = 0; i < stats->allocated; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		BufferState state = LocalBufferStateRead(buf);

		if ((state & BM_TAG_VALID) == 0)
			continue;
		count = tp_relation_of_buffer(stats->relations, i, count);
		if (count == NULL)
			count = tp_enter_relation(stats->relations,
									  BufTagGetRelFileLocator(&buf->tag));
		count->allocated++;
		if (state & BM_DIRTY)
		{
			count->dirtied++;
			count->shareable += tp_buffer_is_shared(i);
			stats->dirtied++;
		}
	}
	return stats;
}

/*
 * Have so many pages changed since last_usage that the counts of last_stats are to
 * be made again?  Any, if the search of the pool costs nothing.
 */
static bool
pool_has_changed(void)
{
	int64		changes =
		pgBufferUsage.local_blks_dirtied - last_usage.local_blks_dirtied +
		pgBufferUsage.local_blks_written - last_usage.local_blks_written +
		pgBufferUsage.local_blks_read - last_usage.local_blks_read;

	return changes > 0 && changes * Max(tp_write_temp_page_cost, 1.0) >
		TOLERANCE * tp_buffer_scan_cost * last_stats->allocated;
}

/*
 * The same for a cost estimate: walks over the pool only if enough of it has
 * changed since the last time.
 */
LocalBufStats *
tp_localbuf_stats_for_price(void)
{
	LocalBufStats *stats;
	HASH_SEQ_STATUS seq;
	TempRelation *count;

	if (last_stats == NULL || pool_has_changed())
	{
		MemoryContext old;

		last_stats = NULL;
		if (last_context == NULL)
			last_context = AllocSetContextCreate(TopMemoryContext,
												 "local buffer counts",
												 ALLOCSET_SMALL_SIZES);
		MemoryContextReset(last_context);
		old = MemoryContextSwitchTo(last_context);
		last_stats = tp_localbuf_stats_collect();
		MemoryContextSwitchTo(old);
		last_usage = pgBufferUsage;
	}

	/* a copy, as a nested planner call may walk again */
	stats = palloc(sizeof(LocalBufStats));
	*stats = *last_stats;
	stats->most_shared = tp_most_shared_pages(false);
	stats->relations = tp_make_relations();
	hash_seq_init(&seq, last_stats->relations);
	while ((count = hash_seq_search(&seq)) != NULL)
		*tp_enter_relation(stats->relations, count->locator) = *count;
	return stats;
}

/*
 * Is buffer i of the pool pinned?  Core counts pins of this session's code in
 * LocalRefCount, and those of a read in progress (from 18 on) in the state
 * word alone.  As InvalidateLocalBuffer() of localbuf.c (before 18:
 * DropRelationAllLocalBuffers()).
 */
bool
tp_local_buffer_is_pinned(int i)
{
	BufferState state = LocalBufferStateRead(GetLocalBufferDescriptor(i));

	return LocalRefCount[i] != 0 || BUF_STATE_GET_REFCOUNT(state) != 0;
}
