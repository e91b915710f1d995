/*-------------------------------------------------------------------------
 *
 * exec_worker_refuse.c
 *	  Refuse statements that start in a worker and read temporary tables.
 *
 * Once a worker has local buffers, core does not stop it from reading any
 * temporary table, flushed or not.  A statement that a function starts in the
 * worker gets core's error from here; for other ways to read a table see
 * exec_worker_relations.c.
 *
 * The invariant: in a worker that has local buffers, no statement but the one
 * that the leader has sent reads temporary tables.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

#include "exec.h"

static bool
is_temp_storage(RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION &&
		RELKIND_HAS_STORAGE(rte->relkind) &&
		get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP;
}

static void
refuse(void)
{
	/* message and SQLSTATE of InitLocalBuffers() of localbuf.c */
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
			 errmsg("cannot access temporary tables during a parallel operation"),
			 errhint("Mark the function that does so PARALLEL RESTRICTED or PARALLEL UNSAFE.")));
}

/*
 * Refuse a statement that is about to be executed, with range table rtable, if
 * the worker has local buffers and the statement reads a temporary table.  The
 * error is ERRCODE_INVALID_TRANSACTION_STATE, as in core.
 */
void
tp_worker_refuse_statement(List *rtable)
{
	ListCell   *lc;

	Assert(IsParallelWorker());
	if (NLocBuffer == 0)
		return;
	foreach(lc, rtable)
	{
		if (is_temp_storage((RangeTblEntry *) lfirst(lc)))
			refuse();
	}
}

/*
 * Does the scan of rte, a permanent table, include temporary tables of this
 * session that inherit from it?  They are not in the range table before
 * expand_inherited_rtentry() of inherit.c, which leaves them out if
 * exec_worker_relations.c has marked them.
 */
static bool
has_temp_children(RangeTblEntry *rte)
{
	ListCell   *lc;

	if (rte->rtekind != RTE_RELATION || !rte->inh ||
		rte->relkind != RELKIND_RELATION || !has_subclass(rte->relid))
		return false;
	foreach(lc, find_all_inheritors(rte->relid, NoLock, NULL))
	{
		if (isTempNamespace(get_rel_namespace(lfirst_oid(lc))))
			return true;
	}
	return false;
}

static bool
refuse_query_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		if (is_temp_storage((RangeTblEntry *) node) ||
			has_temp_children((RangeTblEntry *) node))
			refuse();
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, refuse_query_walker, context,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, refuse_query_walker, context);
}

/*
 * The same for a query that is about to be planned, because the planner reads
 * tables, too (see get_actual_variable_range()).
 */
void
tp_worker_refuse_query(Query *query)
{
	Assert(IsParallelWorker());
	if (NLocBuffer > 0)
		(void) refuse_query_walker((Node *) query, NULL);
}

/*
 * The same for a utility command.  COPY TO reads a table without planning a
 * query.  Other commands that are allowed in parallel mode, for which see
 * ClassifyUtilityCommandAsReadOnly() of utility.c, read tables by statements
 * of their own, or not at all.
 */
void
tp_worker_refuse_utility(Node *statement)
{
	Oid			relid;

	Assert(IsParallelWorker());
	if (NLocBuffer == 0 || !IsA(statement, CopyStmt) ||
		((CopyStmt *) statement)->relation == NULL)
		return;
	relid = RangeVarGetRelid(((CopyStmt *) statement)->relation, NoLock, true);
	if (OidIsValid(relid) &&
		get_rel_persistence(relid) == RELPERSISTENCE_TEMP)
		refuse();
}
