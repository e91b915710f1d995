/*-------------------------------------------------------------------------
 *
 * temp_family.c
 *	  A temporary table with all that hangs on it.
 *
 * A worker that scans a table may read its heap, its TOAST table and that
 * table's index, and those of its own indexes that the plan scans, each with all
 * their forks.  The flush writes them, and the cost counts them, so that both
 * ask here what they are.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "access/genam.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "nodes/pg_list.h"

/*
 * Append rel's indexes, all or those in wanted, to family, opened with lockmode.
 */
static List *
append_indexes(List *family, Relation rel, bool all, List *wanted,
			   LOCKMODE lockmode)
{
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		if (all || list_member_oid(wanted, lfirst_oid(lc)))
			family = lappend(family, relation_open(lfirst_oid(lc), lockmode));
	}
	list_free(indexes);
	return family;
}

static List *
open_family(Oid relid, bool all, List *indexes, LOCKMODE lockmode)
{
	Relation	table = relation_open(relid, lockmode);
	List	   *family = list_make1(table);

	family = append_indexes(family, table, all, indexes, lockmode);
	if (OidIsValid(table->rd_rel->reltoastrelid))
	{
		Relation	toast = relation_open(table->rd_rel->reltoastrelid,
										  lockmode);

		family = lappend(family, toast);
		family = append_indexes(family, toast, true, NIL, lockmode);
	}
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
	return open_family(relid, true, NIL, lockmode);
}

/*
 * The same without those of the table's own indexes that are not in indexes, a
 * List of Oid.
 */
List *
temp_family_open_part(Oid relid, List *indexes, LOCKMODE lockmode)
{
	return open_family(relid, false, indexes, lockmode);
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
