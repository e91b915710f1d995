/*-------------------------------------------------------------------------
 *
 * func_checks.c
 *	  Checks that the SQL functions make before they do anything.
 *
 * A function that takes a table checks, in this order: is it given, does it
 * exist, is it a table, is it temporary, does it belong to this session, does
 * the caller have the privilege?  Each error has its SQLSTATE, and a hint that
 * says what is accepted.
 *
 * Ownership is required for what causes work for the owner: pages that are
 * marked dirty are written again, and pages that are evicted are read again.
 * SELECT is required for the rest, as in contrib/pg_prewarm.  A flush of the
 * whole pool requires nothing, as it reveals nothing about any table: the
 * server itself writes dirty pages of any table when it needs a buffer.
 *
 * The invariant: nothing has been read, written or evicted when one of these
 * raises an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"

#include "func.h"

/*
 * Raise an error in a parallel worker: for functions that look at the
 * session's pool, as a worker has another one.  Message and SQLSTATE are those
 * of InitLocalBuffers() of localbuf.c.
 */
void
tp_refuse_in_worker(void)
{
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot access temporary tables during a parallel operation"),
				 errhint("Mark the function that does so PARALLEL RESTRICTED or PARALLEL UNSAFE.")));
}

/*
 * Raise an error if workers may be reading temporary tables: for functions
 * that write or change pages of any table.  The server has workers only in
 * parallel mode, and leaves that after all of them have exited.  function is
 * the name for the message.
 */
void
tp_refuse_while_workers_read(const char *function)
{
	/* message and SQLSTATE of PreventCommandIfParallelMode() of utility.c */
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot execute %s during a parallel operation",
						function),
				 errhint("Mark the function that does so PARALLEL UNSAFE.")));
}

/* Raise an error unless the caller has the given access to rel. */
static void
check_access(Relation rel, TempTableAccess access)
{
	Oid			relid = RelationGetRelid(rel);

	if (access == MUST_OWN_TABLE)
	{
		if (!role_owns_relation(relid, GetUserId()))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("must be owner of table %s",
							RelationGetRelationName(rel)),
					 errhint("Only the owner of a temporary table may evict its pages or mark them dirty.")));
	}
	else
	{
		if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied for table %s",
							RelationGetRelationName(rel)),
					 errhint("This needs the SELECT privilege on the table.")));
	}
}

/*
 * Returns the OID of the table that argument argno names, if it is a temporary
 * table of this session to which the caller has the given access.  Otherwise
 * an error, see the head of this file.  Takes AccessShareLock on the table,
 * and keeps it until the end of the transaction.
 */
Oid
tp_temp_table_argument(FunctionCallInfo fcinfo, int argno, TempTableAccess access)
{
	Oid			relid;
	Relation	rel;

	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("relation cannot be null"),
				 errhint("Name a temporary table of this session.")));
	relid = PG_GETARG_OID(argno);

	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid),
				 errhint("Name a temporary table of this session.")));
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned table",
						RelationGetRelationName(rel)),
				 errhint("Name its partitions, which have the pages.")));
	if (rel->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table",
						RelationGetRelationName(rel)),
				 errhint("Name a temporary table; its indexes and its TOAST table are included.")));
	if (!RelationUsesLocalBuffers(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a temporary table",
						RelationGetRelationName(rel)),
				 errhint("Only temporary tables are in local buffers.")));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions"),
				 errhint("Each session has local buffers of its own.")));
	check_access(rel, access);
	relation_close(rel, NoLock);
	return relid;
}
