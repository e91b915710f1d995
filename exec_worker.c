/*-------------------------------------------------------------------------
 *
 * exec_worker.c
 *	  A parallel worker's entrance to local buffers.
 *
 * Core keeps workers away from temporary tables with one check, in
 * InitLocalBuffers(), when a process touches its first local buffer.  A worker
 * below a flush node is let past it, once.  From then on nothing of core's
 * would stop it from reading any temporary table, flushed or not, so that a
 * statement which starts in a worker gets core's error from here; for other ways
 * to a table see exec_worker_relations.c.
 *
 * The invariant: a worker without a flush node in its plan has no local
 * buffers, and in a worker with one no statement but the node's own reads a
 * temporary table.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

/*
 * As error context: the worker has its number back before anything is sent to
 * the leader.  InitLocalBuffers() ends the process when there is no memory for
 * the pool, and what ends a process does not come by PG_FINALLY().
 */
static void
give_number_back(void *arg)
{
	ParallelWorkerNumber = *(int *) arg;
}

/* ----------
 * The pool and the setting temp_buffers
 *
 * The server takes num_temp_buffers, the variable behind the setting, both for
 * the size of the pool when it is made and for the number of local buffers that
 * may be pinned later on.  So in a worker that variable is the size of the pool,
 * and the setting, with its check, gets a variable of its own.
 * ----------
 */

/* temp_buffers, as the leader has it */
static int	session_temp_buffers;

/* As check_temp_buffers(): the session has used temporary tables. */
static bool
check_session_temp_buffers(int *newval, void **extra, GucSource source)
{
	if (source != PGC_S_TEST && *newval != session_temp_buffers)
	{
		GUC_check_errdetail("\"temp_buffers\" cannot be changed after any temporary tables have been accessed in the session.");
		return false;
	}
	return true;
}

/* For the rest of the worker's life. */
static void
separate_setting_from_pool(void)
{
	struct config_int *setting = find_int_setting("temp_buffers");

	Assert(setting->variable == &num_temp_buffers);
	session_temp_buffers = num_temp_buffers;
	setting->variable = &session_temp_buffers;
	setting->check_hook = check_session_temp_buffers;
}

/*
 * Make the worker's pool of local buffers.  rel is any of the tables that it
 * is going to read; nothing of it is read yet.  The pool has
 * temp_parallel.worker_temp_buffers, or more if the plan may have more pinned;
 * but not for that more than the session's own pool, in which the leader runs the
 * same plan.
 */
void
tp_worker_open_local_buffers(Relation rel, int pins)
{
	int			worker_number = ParallelWorkerNumber;
	ErrorContextCallback context;

	Assert(IsParallelWorker());
	if (NLocBuffer > 0)
		return;

	separate_setting_from_pool();
	num_temp_buffers = Max(tp_worker_temp_buffers,
						   Min(pins, session_temp_buffers));
	context.callback = give_number_back;
	context.arg = &worker_number;
	context.previous = error_context_stack;
	error_context_stack = &context;
	PG_TRY();
	{
		ParallelWorkerNumber = -1;	/* what InitLocalBuffers() looks at */
		(void) PrefetchBuffer(rel, MAIN_FORKNUM, 0);
	}
	PG_FINALLY();
	{
		ParallelWorkerNumber = worker_number;
	}
	PG_END_TRY();
	error_context_stack = context.previous;

	if (NLocBuffer == 0)
		elog(ERROR, "could not initialize local buffers in a parallel worker");
}

/* ----------
 * Statements that start in a worker
 * ----------
 */

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
	/* message and SQLSTATE of InitLocalBuffers() */
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
			 errmsg("cannot access temporary tables during a parallel operation")));
}

/*
 * Refuse a statement with range table rtable if it starts in a worker that has
 * local buffers and reads a temporary table.
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

static bool
refuse_query_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		if (is_temp_storage((RangeTblEntry *) node))
			refuse();
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, refuse_query_walker, context,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, refuse_query_walker, context);
}

/*
 * The same for a query that is about to be planned: the planner, too, reads
 * tables (see get_actual_variable_range()).
 */
void
tp_worker_refuse_query(Query *query)
{
	Assert(IsParallelWorker());
	if (NLocBuffer > 0)
		(void) refuse_query_walker((Node *) query, NULL);
}

/*
 * The same for a utility command.  COPY TO reads a table without planning
 * anything; the others that may run in parallel mode read tables by statements of
 * their own, or not at all.
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
