/*-------------------------------------------------------------------------
 *
 * session.c
 *	  Temporary tables of this session, and counters of the module's actions.
 *
 * The counters belong to one process, and each is incremented in one function.
 * They count what happened, even if the statement failed or the transaction was
 * rolled back.  A worker's counters are lost when it exits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "temp_parallel.h"

SessionStats tp_session_stats;

/*
 * Does this session have a temporary schema?  Every hook checks this first,
 * and in most sessions nothing else.
 */
bool
tp_session_has_temp_tables(void)
{
	Oid			namespace;
	Oid			toast_namespace;

	GetTempNamespaceState(&namespace, &toast_namespace);
	return OidIsValid(namespace);
}

/* Is statement a COPY that names a temporary table? */
bool
tp_is_copy_of_temp_table(Node *statement)
{
	RangeVar   *relation = IsA(statement, CopyStmt) ?
		((CopyStmt *) statement)->relation : NULL;
	Oid			relid;

	if (relation == NULL || !tp_session_has_temp_tables())
		return false;
	relid = RangeVarGetRelid(relation, NoLock, true);
	return OidIsValid(relid) &&
		get_rel_persistence(relid) == RELPERSISTENCE_TEMP;
}

/*
 * Is relid a table that this module handles: temporary, of this session, with
 * heap as its access method?  False for a relation that does not exist.
 */
bool
tp_is_session_temp_table(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	result = form->relpersistence == RELPERSISTENCE_TEMP &&
		form->relkind == RELKIND_RELATION &&
		form->relam == HEAP_TABLE_AM_OID &&
		isTempOrTempToastNamespace(form->relnamespace);
	ReleaseSysCache(tuple);
	return result;
}
