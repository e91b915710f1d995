/*-------------------------------------------------------------------------
 *
 * exec_worker_refuse.c
 *	  Keep a parallel worker from reading other temporary relations than its plan's.
 *
 * Once a worker has local buffers, core does not keep it from reading
 * temporary relations that were not flushed for it.  The scans of the
 * worker's own plan are checked against the flush node's lists (exec_flush.c),
 * and no TOAST pointers are sent to it (exec_sent_values.c).  A statement that a
 * function starts in the worker gets core's error from here when it is planned or
 * started.  What remains are
 * functions that open a relation's storage themselves, as several of contrib
 * do although they are marked PARALLEL SAFE.  So in a worker whose plan may
 * run code that is not core's, the descriptors of all other temporary
 * relations of the session are marked as another session's:
 * ReadBufferExtended(), PrefetchBuffer() and read streams refuse to read
 * these.  Sizes and names remain right.  Where core leaves another session's
 * tables out instead, the statement is refused.  Functions
 * that show the state of a sequence return NULL for another session's, so the
 * descriptor of a sequence gets the storage of a process that does not exist
 * instead, and it is an error to read it.
 *
 * The descriptors are kept open, so that the relation cache rebuilds them in
 * place when they are invalidated, and a callback marks them again.  They are
 * opened without a lock: the leader's session owns the relations, no statement
 * of it changes them while it has workers, and nothing is read from them.
 *
 * Opening a descriptor takes about 10 us, for each relation and in each
 * worker, so it is not done if a worker runs only core's functions.
 *
 * The invariants: in a worker that has local buffers, no statement but the one
 * that the leader has sent reads temporary tables; while it runs a plan with user code, each temporary
 * relation of the session is in the flush node's lists, or is the TOAST table
 * or TOAST index of a table in them, or is marked.
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
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "nodes/nodeFuncs.h"
#include "storage/ipc.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "exec.h"

/* ----------
 * Statements
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
 * they have been marked, see below.
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

/* ----------
 * Relations
 * ----------
 */

/*
 * open and marked; the List is in the worker's transaction context
 */
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
 * Mark relation relid, and keep it open.  Returns the descriptor, or NULL if
 * there is no such relation, or it has no storage, or it is marked already.
 * ReadBufferExtended() and PrefetchBuffer() of bufmgr.c and read_stream.c
 * refuse a marked relation.
 */
static Relation
refuse_relation(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);

	if (rel == NULL)
		return NULL;
	if (!RELKIND_HAS_STORAGE(rel->rd_rel->relkind) || !rel->rd_islocaltemp ||
		(rel->rd_rel->relkind == RELKIND_SEQUENCE &&
		 list_member_ptr(refused, rel)))
	{
		RelationClose(rel);
		return NULL;
	}
	mark(rel);
	refused = lappend(refused, rel);
	return rel;
}

/* Mark the indexes of rel that are not in allowed. */
static void
refuse_indexes(Relation rel, List *allowed)
{
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		if (!list_member_oid(allowed, lfirst_oid(lc)))
			(void) refuse_relation(lfirst_oid(lc));
	}
	list_free(indexes);
}

/*
 * Mark relation relid, a table or sequence, and its indexes, TOAST table and
 * TOAST index.  If relid is one of tables, mark only those of its indexes that
 * are not in indexes.
 */
static void
refuse_with_family(Oid relid, List *tables, List *indexes)
{
	Relation	rel;
	Oid			toastrelid;

	if (list_member_oid(tables, relid))
	{
		rel = RelationIdGetRelation(relid);
		if (rel != NULL)
		{
			refuse_indexes(rel, indexes);
			RelationClose(rel);
		}
		return;
	}

	rel = refuse_relation(relid);
	if (rel == NULL)
		return;
	refuse_indexes(rel, NIL);
	toastrelid = rel->rd_rel->reltoastrelid;
	if (OidIsValid(toastrelid))
	{
		rel = refuse_relation(toastrelid);
		if (rel != NULL)
			refuse_indexes(rel, NIL);
	}
}

/*
 * In a worker, before its plan is initialized: mark the session's temporary
 * relations, except tables, their TOAST tables and TOAST indexes, and
 * indexes.  Both are Lists of Oid.  Opens relations without a lock, for
 * tp_release_other_relations() to close.
 *
 * pg_depend has what depends on the temporary schema.  Indexes and TOAST
 * tables depend on their tables instead.
 */
void
tp_refuse_other_relations(List *tables, List *indexes)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	Oid			namespace;
	Oid			toast_namespace;
	Relation	depend;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	Assert(IsParallelWorker() && refused == NIL);
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
			refuse_with_family(form->objid, tables, indexes);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	MemoryContextSwitchTo(old);
}

/*
 * Undo tp_refuse_other_relations(), when the worker's plan has ended.  Not
 * called after an error, which ends the process.
 */
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
