/*-------------------------------------------------------------------------
 *
 * exec_worker_relations.c
 *	  Temporary relations that a parallel worker must not read.
 *
 * Once a worker has local buffers, core does not keep it from reading
 * temporary relations that were not flushed for it.  Statements are refused
 * when they are planned or started (exec_worker_refuse.c), the scans of the
 * worker's own plan are checked against the flush node's lists (exec_flush.c),
 * and no TOAST pointers are sent to it (exec_sent_values.c).  What remains are
 * functions that open a relation's storage themselves, as several of contrib
 * do although they are marked PARALLEL SAFE.  So in a worker whose plan may
 * run code that is not core's, the descriptors of all other temporary
 * relations of the session are marked as another session's:
 * ReadBufferExtended(), PrefetchBuffer() and read streams refuse to read
 * these.  Sizes and names remain right.  Where core leaves another session's
 * tables out instead, exec_worker_refuse.c refuses the statement.  Functions
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
 * The invariant: while a worker runs a plan with user code, each temporary
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
#include "catalog/pg_namespace.h"
#include "storage/ipc.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "exec.h"

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
