/*-------------------------------------------------------------------------
 *
 * localbuf_relations.c
 *	  The relations to which pages in the pool belong.
 *
 * A buffer's tag names a file, not a relation.  Core's map from the one to the
 * other (RelidByRelfilenumber()) omits temporary relations, because their
 * relfilenumbers are not unique across sessions.  So this file builds its own
 * map from one scan of pg_class.
 *
 * A page whose relation is not found belongs to a file that the running
 * transaction has removed (DROP, TRUNCATE, CLUSTER) and may roll back to, or
 * to a relation that another session has dropped (see localbuf_flush.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/syscache.h"

#include "localbuf.h"

/* The file of the relation, as RelationInitPhysicalAddr() of relcache.c. */
static RelFileLocator
locator_of(Form_pg_class form)
{
	RelFileLocator locator = {0};

	RelFileLocatorSpc(locator) = OidIsValid(form->reltablespace) ?
		form->reltablespace : MyDatabaseTableSpace;
	RelFileLocatorDb(locator) = MyDatabaseId;
	RelFileLocatorNumber(locator) = form->relfilenode;
	return locator;
}

/* Find relation relid, or return NULL. */
static TempRelation *
find_relation(HTAB *relations, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	RelFileLocator locator;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	locator = locator_of((Form_pg_class) GETSTRUCT(tuple));
	ReleaseSysCache(tuple);
	return hash_search(relations, &locator, HASH_FIND, NULL);
}

/* Set the tables of TOAST tables and indexes, those of TOAST tables included. */
static void
set_tables(HTAB *relations)
{
	HASH_SEQ_STATUS seq;
	TempRelation *relation;
	TempRelation *other;

	hash_seq_init(&seq, relations);
	while ((relation = hash_seq_search(&seq)) != NULL)
	{
		if (OidIsValid(relation->toastrelid) &&
			(other = find_relation(relations, relation->toastrelid)) != NULL)
			other->table = relation->relid;
	}
	hash_seq_init(&seq, relations);
	while ((relation = hash_seq_search(&seq)) != NULL)
	{
		if (relation->relkind == RELKIND_INDEX &&
			(other = find_relation(relations,
								   IndexGetRelation(relation->relid, true))) != NULL)
			relation->table = other->table;
	}
}

/*
 * Returns all temporary relations of this session that have storage: a hash
 * table of TempRelation by RelFileLocator, in the current memory context.  Can
 * be canceled.  See RelidByRelfilenumber() of relfilenumbermap.c (15:
 * RelidByRelfilenode() of relfilenodemap.c).
 */
HTAB *
tp_session_temp_relations(void)
{
	HASHCTL		ctl;
	HTAB	   *relations;
	Relation	pg_class;
	SysScanDesc scan;
	HeapTuple	tuple;

	ctl.keysize = sizeof(RelFileLocator);
	ctl.entrysize = sizeof(TempRelation);
	ctl.hcxt = CurrentMemoryContext;
	relations = hash_create("temporary relations", 64, &ctl,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	if (!tp_session_has_temp_tables())
		return relations;

	pg_class = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(pg_class, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		RelFileLocator locator = locator_of(form);
		TempRelation *entry;

		CHECK_FOR_INTERRUPTS();
		if (form->relpersistence != RELPERSISTENCE_TEMP ||
			!RELKIND_HAS_STORAGE(form->relkind) ||
			!isTempOrTempToastNamespace(form->relnamespace))
			continue;
		entry = hash_search(relations, &locator, HASH_ENTER, NULL);
		entry->relid = entry->table = form->oid;
		entry->owner = form->relowner;
		entry->toastrelid = form->reltoastrelid;
		entry->relkind = form->relkind;
		entry->relam = form->relam;
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	set_tables(relations);
	return relations;
}

/*
 * Does a relation with this access method and kind consist of heap pages, as a
 * table or TOAST table with the access method heap does?
 */
bool
tp_is_heap(Oid relam, char relkind)
{
	return relam == HEAP_TABLE_AM_OID &&
		(relkind == RELKIND_RELATION || relkind == RELKIND_TOASTVALUE);
}

/*
 * For qsort() and bsearch(): an arbitrary order of locators.
 */
int
tp_compare_locators(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(RelFileLocator));
}

/*
 * Get the heaps among relations, TOAST tables included.  Sets *heaps to their
 * locators in ascending order, in the current memory context, and returns
 * their number.
 */
int
tp_heaps_among(HTAB *relations, RelFileLocator **heaps)
{
	HASH_SEQ_STATUS seq;
	TempRelation *relation;
	int			n = 0;

	*heaps = palloc((hash_get_num_entries(relations) + 1) *
					sizeof(RelFileLocator));
	hash_seq_init(&seq, relations);
	while ((relation = hash_seq_search(&seq)) != NULL)
	{
		if (tp_is_heap(relation->relam, relation->relkind))
			(*heaps)[n++] = relation->locator;
	}
	qsort(*heaps, n, sizeof(RelFileLocator), tp_compare_locators);
	return n;
}
