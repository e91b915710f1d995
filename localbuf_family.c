/*-------------------------------------------------------------------------
 *
 * localbuf_family.c
 *	  A family: a temporary table and its indexes, TOAST table and TOAST index.
 *
 * A worker that scans a table may read its heap, its TOAST table and TOAST
 * index, and those of its own indexes that the plan scans, all forks of each.
 * The flush writes these and the cost model counts them, and both open them
 * here.
 *
 * They are opened without a lock, so that a parallel query takes no more locks
 * than the same query without this module.  The caller has a lock on the
 * table, or for a worker the leader has one: from the parser, the planner (for
 * children), AcquireExecutorLocks() (for a cached plan) or
 * tp_temp_table_argument().  That lock protects the rest of the family, too:
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
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/relcache.h"

#include "localbuf.h"

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

/* Open rel's indexes that are in wanted, and append them to family. */
static List *
append_indexes(List *family, Relation rel, List *wanted)
{
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		if (list_member_oid(wanted, lfirst_oid(lc)))
			family = lappend(family, tp_relation_open(lfirst_oid(lc)));
	}
	list_free(indexes);
	return family;
}

/*
 * Open table relid, which is locked, those of its indexes that are in indexes
 * (a List of Oid), its TOAST table and TOAST index, without taking locks.
 * Returns a List of Relation, the table first, in the current memory context;
 * to be closed by tp_family_close().
 */
List *
tp_family_open(Oid relid, List *indexes)
{
	Relation	table = tp_relation_open(relid);
	Oid			toastrelid = table->rd_rel->reltoastrelid;
	List	   *family = append_indexes(list_make1(table), table, indexes);

	if (OidIsValid(toastrelid))
	{
		Relation	toast = tp_relation_open(toastrelid);
		List	   *toast_indexes = RelationGetIndexList(toast);

		family = append_indexes(lappend(family, toast), toast, toast_indexes);
		list_free(toast_indexes);
	}
	return family;
}

/*
 * Close the relations that tp_family_open() has opened, and free the List.
 */
void
tp_family_close(List *family)
{
	ListCell   *lc;

	foreach(lc, family)
		RelationClose((Relation) lfirst(lc));
	list_free(family);
}
