/*-------------------------------------------------------------------------
 *
 * localbuf_relations.c
 *	  The session's temporary relations, by their files and in families.
 *
 * A buffer's tag names a file, not a relation.  Core's map, RelidByRelfilenumber(), omits
 * temporary relations.  So this file makes one of the session's temporary schema.  A page
 * whose relation is not found is of a file that the running transaction has removed (DROP,
 * TRUNCATE, CLUSTER), or of a relation that another session has dropped (localbuf_flush.c).
 *
 * A family is a temporary table and its indexes, TOAST table and TOAST index: what a
 * worker that scans the table may read, of the table's own indexes those that its plan
 * scans.
 *
 * Families are opened without a lock.  The caller, or the leader of a worker, has a lock on
 * the table, which protects the rest of the family, too:
 *
 * - In this session, CheckTableNotInUse() keeps functions that the statement calls from
 *	 dropping or rewriting an open relation.
 * - In others, RELATION_IS_OTHER_TEMP() refuses commands that change storage or indexes,
 *	 and VACUUM and ANALYZE skip the relation.
 * - DROP works from another session, but index_drop() locks the index's table before it
 *	 changes anything, and a TOAST table is dropped only with its table.
 * - ALTER INDEX ... RENAME locks the index alone, but changes only its name.
 *
 * The exception is DROP INDEX on the index of a TOAST table under
 * allow_system_table_mods, which locks only the TOAST table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_namespace.h"
#include "utils/fmgroids.h"
#include "utils/relcache.h"

#include "localbuf.h"

/* ----------
 * Families
 * ----------
 */

/*
 * Open relation relid, a locked table or a member of its family, without
 * taking a lock, for RelationClose() to close.  As relation_open() of relation.c,
 * without its assertion.
 */
Relation
tp_relation_open(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);

	if (!RelationIsValid(rel))
		elog(ERROR, "could not open relation with OID %u", relid);
	return rel;
}

/* Returns the OIDs of all indexes of table relid, which is locked, as a new List. */
List *
tp_table_indexes(Oid relid)
{
	Relation	table = tp_relation_open(relid);
	List	   *indexes = RelationGetIndexList(table);

	RelationClose(table);
	return indexes;
}

/*
 * Does rel's main fork consist of heap pages on which hints may be set?  Not if the running
 * transaction has created the file: it has inserted the rows.
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
 * Append relation relid, of table's family, with its indexes and its TOAST table to
 * family; nothing that has no storage or that another session has dropped.
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
 * current memory context; NIL if there is no such table.  Those of its indexes that are not
 * in indexes, a List of Oid, are marked as left alone.
 */
List *
tp_family(Oid relid, List *indexes)
{
	return add_member(NIL, relid, relid, indexes);
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

/* The entry of relations with this locator, made if there is none, with zeros. */
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

/* Enter the family of relid, as by tp_family(), in relations. */
void
tp_enter_family(HTAB *relations, Oid relid, List *indexes)
{
	List	   *family = tp_family(relid, indexes);
	ListCell   *lc;

	foreach(lc, family)
	{
		TempRelation *member = lfirst(lc);

		*tp_enter_relation(relations, member->locator) = *member;
	}
	list_free_deep(family);
}

/*
 * Returns the OIDs of what depends on the session's temporary schema in pg_class: tables,
 * sequences, views and types.  Their indexes and TOAST tables depend on the tables instead.
 * Can be canceled.
 */
static List *
session_temp_tables(void)
{
	List	   *result = NIL;
	Oid			namespace;
	Oid			toast_namespace;
	Relation	depend;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!tp_session_has_temp_tables())
		return NIL;

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
			result = lappend_oid(result, form->objid);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return result;
}

/*
 * Returns all temporary relations of this session that have storage, by
 * tp_enter_family(), in the current memory context.  Can be canceled.
 */
HTAB *
tp_session_temp_relations(List *indexes)
{
	HTAB	   *relations = tp_make_relations();
	List	   *tables = session_temp_tables();
	ListCell   *lc;

	foreach(lc, tables)
	{
		CHECK_FOR_INTERRUPTS();
		tp_enter_family(relations, lfirst_oid(lc), indexes);
	}
	list_free(tables);
	return relations;
}
