/*-------------------------------------------------------------------------
 *
 * exec_worker_refuse.c
 *	  Keep a parallel worker from reading other temporary relations than its
 *	  plan's, and from being sent values in them.
 *
 * Once a worker has local buffers, core does not keep it from reading temporary relations
 * that were not flushed for it.  Its own plan is checked in exec_worker.c.  A statement that
 * a function starts in it gets core's error from here when it is planned or started.
 *
 * Functions can open a relation's storage themselves, as several of contrib do although they
 * are marked PARALLEL SAFE.  So if the worker's plan may run code that is not core's, the
 * descriptors of the session's other temporary relations are marked as another session's,
 * which core refuses to read.  Functions that show the state of a sequence return NULL for
 * another session's, so a sequence gets the storage of a process that does not exist.
 *
 * Marked descriptors are kept open, so that the relation cache rebuilds them in place,
 * and a callback marks them again.  They need no lock: nothing is read from them, and the
 * session changes no relation while it has workers.  Opening one takes a worker about 10 us.
 *
 * Workers are sent external parameters, and the outputs of InitPlans above the Gather.  A
 * large one, as a variable of PL/pgSQL or the result of a scalar subquery, may be a TOAST
 * pointer into a temporary table that is not read below the Gather.  Then the flush node has
 * no workers launched.  Only the top level of a value matters: composites, arrays and ranges
 * are built of detoasted elements, datumSerialize() flattens expanded objects, and
 * makeConst() detoasts.  A worker checks what it is sent.
 *
 * The invariants: in a worker that has local buffers, no statement but the one that
 * the leader has sent reads temporary tables; while it runs a plan with user code,
 * each temporary relation of the session is in the flush node's lists, or is the
 * TOAST table or TOAST index of a table in them, or is marked; no worker of a plan
 * with a flush node is sent a TOAST pointer into a temporary table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "storage/ipc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "exec.h"

/* ----------
 * Statements
 * ----------
 */

/* A view may be temporary without a temporary table in it. */
static bool
is_temp_table(RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION && rte->relkind != RELKIND_VIEW &&
		get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP;
}

/*
 * Raise core's error for a worker that is about to read a temporary table: message and
 * SQLSTATE are those of InitLocalBuffers() of localbuf.c.
 */
void
tp_worker_refuse(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
			 errmsg("cannot access temporary tables during a parallel operation"),
			 errhint("Mark the function that does so PARALLEL RESTRICTED or PARALLEL UNSAFE.")));
}

/*
 * Refuse a statement that is about to be executed, with range table rtable, if
 * the worker has local buffers and the statement reads a temporary table.
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
		if (is_temp_table((RangeTblEntry *) lfirst(lc)))
			tp_worker_refuse();
	}
}

static bool
names_temp_table(Node *node)
{
	return IsA(node, RangeTblEntry) && is_temp_table((RangeTblEntry *) node);
}

/*
 * Refuse such a query when it is about to be planned, because the planner reads
 * tables, too (see get_actual_variable_range()).
 */
void
tp_worker_refuse_query(Query *query)
{
	Assert(IsParallelWorker());
	if (NLocBuffer > 0 && tp_contains((Node *) query, names_temp_table))
		tp_worker_refuse();
}

/*
 * Refuse such a table when it is planned: it may be in a function that was inlined.
 * expand_inherited_rtentry() of inherit.c, which runs later, leaves out temporary children
 * that are marked, and raises an internal error for partitions.
 */
void
tp_worker_refuse_table(RangeTblEntry *rte)
{
	Assert(IsParallelWorker());
	if (NLocBuffer > 0 && (is_temp_table(rte) || tp_has_temp_child(rte)))
		tp_worker_refuse();
}

/*
 * Refuse COPY TO of such a table, which plans no query.  Other utility commands that
 * ClassifyUtilityCommandAsReadOnly() of utility.c allows in parallel mode read tables by
 * statements of their own, or not at all.
 */
void
tp_worker_refuse_utility(Node *statement)
{
	Assert(IsParallelWorker());
	if (NLocBuffer > 0 && IsA(statement, CopyStmt) &&
		tp_is_name_of_temp_table(((CopyStmt *) statement)->relation))
		tp_worker_refuse();
}

/* ----------
 * Relations
 * ----------
 */

/* open and marked; the List is in the worker's transaction context */
static List *refused = NIL;

static void
mark(Relation rel)
{
	if (rel->rd_rel->relkind == RELKIND_SEQUENCE)
	{
		RelationCloseSmgr(rel);
		relation_set_smgr(rel, smgropen(RelationFileLocator(rel), NO_PROCESS));
	}
	else
		rel->rd_islocaltemp = false;
}

static void
unmark(Relation rel)
{
	if (rel->rd_rel->relkind == RELKIND_SEQUENCE)
		RelationCloseSmgr(rel);
	else
		rel->rd_islocaltemp = true;
}

/*
 * In a worker, before its plan is initialized: mark the session's temporary
 * relations, except tables, their TOAST tables and TOAST indexes, and
 * indexes.  Both are Lists of Oid.  ReadBufferExtended() and PrefetchBuffer() of bufmgr.c
 * and read_stream.c refuse a marked relation.
 */
void
tp_refuse_other_relations(List *tables, List *indexes)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	HTAB	   *relations = tp_session_temp_relations(indexes);
	HASH_SEQ_STATUS seq;
	TempRelation *relation;

	Assert(IsParallelWorker() && refused == NIL);
	hash_seq_init(&seq, relations);
	while ((relation = hash_seq_search(&seq)) != NULL)
	{
		Relation	rel;

		if (list_member_oid(tables, relation->table) && !relation->left_alone)
			continue;
		rel = RelationIdGetRelation(relation->relid);
		if (rel == NULL)
			continue;			/* dropped by another session */
		mark(rel);
		refused = lappend(refused, rel);
	}
	hash_destroy(relations);
	MemoryContextSwitchTo(old);
}

/* Undo tp_refuse_other_relations().  Not called after an error, which ends the process. */
void
tp_release_other_relations(void)
{
	ListCell   *lc;

	foreach(lc, refused)
	{
		Relation	rel = lfirst(lc);

		unmark(rel);
		RelationClose(rel);
	}
	list_free(refused);
	refused = NIL;
}

/*
 * Relation cache callback: the descriptor of relid, or any descriptor if relid
 * is InvalidOid, may have been rebuilt.  Mark it again if it was marked.
 */
void
tp_refuse_again(Oid relid)
{
	ListCell   *lc;

	/* the descriptors were released after an error, which ends the process */
	if (proc_exit_inprogress)
		refused = NIL;

	foreach(lc, refused)
	{
		Relation	rel = lfirst(lc);

		if (relid == InvalidOid || RelationGetRelid(rel) == relid)
			mark(rel);
	}
}

/* ----------
 * Values that workers are sent
 * ----------
 */

/*
 * Is value, of this type, a TOAST pointer into a temporary table?  False if that
 * table no longer exists: the error is raised where the value is used.
 */
static bool
is_temp_toast_pointer(Datum value, Oid type)
{
	struct varlena *attr = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;

	if (!OidIsValid(type) || get_typlen(type) != -1 || attr == NULL ||
		!VARATT_IS_EXTERNAL_ONDISK(attr))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, attr);
	return get_rel_relkind(pointer.va_toastrelid) == RELKIND_TOASTVALUE &&
		get_rel_persistence(pointer.va_toastrelid) == RELPERSISTENCE_TEMP;
}

/* Is one of these external parameters such a pointer?  list may be NULL. */
static bool
external_params_have_pointer(ParamListInfo list)
{
	for (int i = 1; list != NULL && i <= list->numParams; i++)
	{
		ParamExternData workspace;
		ParamExternData *param = &list->params[i - 1];

		/* as SerializeParamList() of params.c */
		if (list->paramFetch != NULL)
			param = list->paramFetch(list, i, false, &workspace);
		if (!param->isnull && is_temp_toast_pointer(param->value, param->ptype))
			return true;
	}
	return false;
}

/*
 * Is an internal parameter of estate such a pointer, of those in params, or of all if
 * that is NULL?  One that has not been evaluated or not been sent is zero.
 */
static bool
internal_params_have_pointer(EState *estate, Bitmapset *params)
{
	int			param = 0;
	ListCell   *lc;

	foreach(lc, estate->es_plannedstmt->paramExecTypes)
	{
		ParamExecData *data = &estate->es_param_exec_vals[param];

		if ((params == NULL || bms_is_member(param, params)) &&
			data->execPlan == NULL && !data->isnull &&
			is_temp_toast_pointer(data->value, lfirst_oid(lc)))
			return true;
		param++;
	}
	return false;
}

/*
 * Would workers of gather, a GatherState or GatherMergeState about to launch them, be
 * sent a TOAST pointer into a temporary table?  ExecInitParallelPlan() and
 * ExecParallelReinitialize() of execParallel.c have evaluated its InitPlans.
 */
bool
tp_sends_temp_toast_pointer(PlanState *gather)
{
	Bitmapset  *params = IsA(gather->plan, Gather) ?
		((Gather *) gather->plan)->initParam :
		((GatherMerge *) gather->plan)->initParam;

	return external_params_have_pointer(gather->state->es_param_list_info) ||
		(params != NULL && internal_params_have_pointer(gather->state, params));
}

/*
 * In a worker that has local buffers, before its plan runs: raise an internal
 * error if it was sent a TOAST pointer into a temporary table.
 */
void
tp_check_sent_values(QueryDesc *queryDesc)
{
	Assert(IsParallelWorker());
	if (external_params_have_pointer(queryDesc->params) ||
		internal_params_have_pointer(queryDesc->estate, NULL))
		elog(ERROR, "parallel worker was sent a pointer into a TOAST table that is temporary");
}
