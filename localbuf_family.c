/*-------------------------------------------------------------------------
 *
 * localbuf_family.c
 *	  A temporary table and its indexes, TOAST table and TOAST index.
 *
 * A worker that scans a table may read its heap, its TOAST table and that
 * table's index, and those of its own indexes that the plan scans, each with all
 * their forks.  The flush writes them, and the cost counts them, so that both
 * ask here what they are.
 *
 * They are opened without a lock: a parallel query takes no more locks than
 * the same query without this module.  The caller has a lock on the table, or
 * in a worker the leader has one: by the parser, the planner (for children),
 * AcquireExecutorLocks() (for a cached plan) or tp_temp_table_argument().  This
 * keeps all that hangs on the table as well:
 *
 * - In this session nothing runs at the same time.  What a function that the
 *	 statement calls would drop or rewrite is open, so that
 *	 CheckTableNotInUse() refuses it.
 * - A superuser in another session is refused by RELATION_IS_OTHER_TEMP() what
 *	 changes storage or indexes: ALTER TABLE and ALTER INDEX (see
 *	 CheckAlterTableIsSafe()), CREATE INDEX, REINDEX, CLUSTER, TRUNCATE;
 *	 VACUUM and ANALYZE leave the relation out.
 * - What he can do is to drop.  index_drop() has AccessExclusiveLock on the
 *	 index's table before it changes anything, whatever has led there (DROP
 *	 INDEX, with CONCURRENTLY as well, or DROP OPERATOR CLASS ... CASCADE), and a
 *	 TOAST table cannot be dropped but with its table.
 * - ALTER INDEX ... RENAME locks the index alone, and changes a name.
 *
 * The exception is DROP INDEX on the index of a TOAST table under
 * allow_system_table_mods, which locks the TOAST table only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/relcache.h"

#include "localbuf.h"

/*
 * Open relation relid, a table that is locked or what hangs on one, without
 * taking a lock; to be closed by RelationClose().  An error if there is no such
 * relation.  As relation_open() of relation.c, without its assertion.
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
 * The OIDs of the indexes of table relid, which is locked, in a new List.
 */
List *
tp_table_indexes(Oid relid)
{
	Relation	table = tp_relation_open(relid);
	List	   *indexes = RelationGetIndexList(table);

	RelationClose(table);
	return indexes;
}

/* Append those of rel's indexes that are in wanted, opened, to family. */
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
 * Open table relid, which is locked, those of its indexes that are in indexes, a
 * List of Oid, its TOAST table and the index of that, without a lock.  Returns a
 * List of Relation, the table first, in the current memory context; to be closed by
 * tp_family_close().
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
 * Close what tp_family_open() has opened, and free the List.
 */
void
tp_family_close(List *family)
{
	ListCell   *lc;

	foreach(lc, family)
		RelationClose((Relation) lfirst(lc));
	list_free(family);
}
