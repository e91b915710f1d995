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
 * to a relation that another session has dropped (see localbuf_dropped.c).
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

#include "localbuf.h"

/* The table to which a TOAST table belongs. */
typedef struct ToastOwner
{
	Oid			toastrelid;		/* hash key */
	Oid			relid;
} ToastOwner;

static HTAB *
make_hash(const char *name, Size keysize, Size entrysize)
{
	HASHCTL		ctl;

	ctl.keysize = keysize;
	ctl.entrysize = entrysize;
	ctl.hcxt = CurrentMemoryContext;
	return hash_create(name, 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Add the relation that form describes, if it has storage, with the locator
 * that RelationInitPhysicalAddr() of relcache.c would compute.
 */
static void
add_relation(HTAB *relations, HTAB *toast_owners, Form_pg_class form)
{
	RelFileLocator locator = {0};
	TempRelation *entry;

	if (OidIsValid(form->reltoastrelid))
	{
		ToastOwner *owner = hash_search(toast_owners, &form->reltoastrelid,
										HASH_ENTER, NULL);

		owner->relid = form->oid;
	}
	if (!RELKIND_HAS_STORAGE(form->relkind))
		return;

	RelFileLocatorSpc(locator) = OidIsValid(form->reltablespace) ?
		form->reltablespace : MyDatabaseTableSpace;
	RelFileLocatorDb(locator) = MyDatabaseId;
	RelFileLocatorNumber(locator) = form->relfilenode;
	entry = hash_search(relations, &locator, HASH_ENTER, NULL);
	entry->relid = form->oid;
	entry->owner = form->relowner;
	entry->relkind = form->relkind;
	entry->relam = form->relam;
	entry->table = InvalidOid;
	entry->of_toast = false;
}

/* Set the table to which the relation belongs. */
static void
set_table(TempRelation *relation, HTAB *toast_owners)
{
	ToastOwner *owner;

	relation->table = relation->relid;
	if (relation->relkind == RELKIND_INDEX)
		relation->table = IndexGetRelation(relation->relid, true);

	owner = hash_search(toast_owners, &relation->table, HASH_FIND, NULL);
	if (owner != NULL)
	{
		relation->of_toast = true;
		relation->table = owner->relid;
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
	HTAB	   *relations = make_hash("temporary relations",
									  sizeof(RelFileLocator),
									  sizeof(TempRelation));
	HTAB	   *toast_owners = make_hash("owners of TOAST tables", sizeof(Oid),
										 sizeof(ToastOwner));
	Relation	pg_class;
	SysScanDesc scan;
	HeapTuple	tuple;
	HASH_SEQ_STATUS seq;
	TempRelation *relation;

	if (!tp_session_has_temp_tables())
		return relations;

	pg_class = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(pg_class, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		CHECK_FOR_INTERRUPTS();
		if (form->relpersistence == RELPERSISTENCE_TEMP &&
			isTempOrTempToastNamespace(form->relnamespace))
			add_relation(relations, toast_owners, form);
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);

	hash_seq_init(&seq, relations);
	while ((relation = hash_seq_search(&seq)) != NULL)
		set_table(relation, toast_owners);
	hash_destroy(toast_owners);
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
 * Get the heaps of all temporary tables of this session, and of their TOAST
 * tables.  Sets *heaps to their locators in ascending order, in the current
 * memory context, and returns their number.
 */
int
tp_session_heaps(RelFileLocator **heaps)
{
	HTAB	   *relations = tp_session_temp_relations();
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
	hash_destroy(relations);
	return n;
}
