/*-------------------------------------------------------------------------
 *
 * temp_family.c
 *	  A temporary table with all that hangs on it.
 *
 * A worker that scans a table may read its heap, its indexes, its TOAST table
 * and that table's index, each with all their forks.  The flush writes them
 * all, and the cost counts them all, so that both ask here what they are.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "access/genam.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "nodes/pg_list.h"

/*
 * Append rel's indexes, opened with lockmode, to family.
 */
static List *
append_indexes(List *family, Relation rel, LOCKMODE lockmode)
{
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, indexes)
		family = lappend(family, relation_open(lfirst_oid(lc), lockmode));
	list_free(indexes);
	return family;
}

/*
 * Open table relid, its indexes, its TOAST table and that one's index with
 * lockmode.  Returns a List of Relation, the table first, in the current
 * memory context; to be closed by temp_family_close().
 */
List *
temp_family_open(Oid relid, LOCKMODE lockmode)
{
	Relation	table = relation_open(relid, lockmode);
	List	   *family = list_make1(table);

	family = append_indexes(family, table, lockmode);
	if (OidIsValid(table->rd_rel->reltoastrelid))
	{
		Relation	toast = relation_open(table->rd_rel->reltoastrelid,
										  lockmode);

		family = lappend(family, toast);
		family = append_indexes(family, toast, lockmode);
	}
	return family;
}

/*
 * Close what temp_family_open() has opened; lockmode is the lock to release,
 * NoLock to keep it.
 */
void
temp_family_close(List *family, LOCKMODE lockmode)
{
	ListCell   *lc;

	foreach(lc, family)
		relation_close((Relation) lfirst(lc), lockmode);
	list_free(family);
}
