/*-------------------------------------------------------------------------
 *
 * exec_worker_relations.c
 *	  Temporary relations that a parallel worker must not read.
 *
 * Once a worker has local buffers, nothing in core keeps it from reading
 * temporary relations that were not flushed for it.  Statements are refused when
 * they are planned or started (see exec_worker.c); the scans of the worker's own
 * plan are checked against the flush node's lists; no TOAST pointers are sent to
 * it (see exec_sent_values.c).  That leaves functions that open a relation's storage
 * by themselves, as several of contrib do although they are marked PARALLEL
 * SAFE.  So in a worker whose plan may run code that is not core's, the
 * descriptors of all other temporary relations of the session say that they are
 * another session's: ReadBufferExtended(), PrefetchBuffer() and read streams
 * refuse these.  Sizes and names remain right.
 *
 * The descriptors are held open, so that the relation cache rebuilds them in
 * place when they are invalidated, and the callback marks them again.  They are
 * opened without a lock: they are the leader's, no statement of this session
 * changes them while it has workers, and nothing is read.
 *
 * Opening a descriptor takes some 10 us, for each relation and in each worker;
 * hence not where a worker runs core's functions alone.
 *
 * The invariant: while a worker runs a plan that has user code in it, each
 * temporary relation of the session is in its flush node's lists, belongs to the
 * TOAST table of such a one, or is marked.
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

/* open and marked; allocated in the worker's transaction */
static List *refused = NIL;

/*
 * Mark relation relid, and hold it open.  Returns the descriptor, or NULL if there
 * is no such relation, or it has no storage.  ReadBufferExtended() and
 * PrefetchBuffer() of bufmgr.c, and read_stream.c, refuse what is marked.
 */
static Relation
refuse_relation(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);

	if (rel == NULL)
		return NULL;
	if (!RELKIND_HAS_STORAGE(rel->rd_rel->relkind) || !rel->rd_islocaltemp)
	{
		RelationClose(rel);
		return NULL;
	}
	rel->rd_islocaltemp = false;
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
 * Mark relation relid, a table or sequence, with all that belongs to it; if it is
 * one of tables, only those of its indexes that are not in indexes.
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
 * relations but tables, their TOAST tables and indexes, Lists of Oid.  What hangs
 * on the temporary schema is found by its dependencies; indexes and TOAST tables
 * hang on tables.
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
 * Undo that, when the worker's plan has ended.  After an error the process ends.
 */
void
tp_release_other_relations(void)
{
	ListCell   *lc;

	foreach(lc, refused)
	{
		Relation	rel = lfirst(lc);

		rel->rd_islocaltemp = true;
		RelationClose(rel);
	}
	list_free(refused);
	refused = NIL;
}

/*
 * The descriptor of relid, or of any relation if that is InvalidOid, may have
 * been rebuilt: mark it again, if it is one of these.
 */
void
tp_refuse_again(Oid relid)
{
	ListCell   *lc;

	/* an error has released the descriptors, and ends the process */
	if (proc_exit_inprogress)
		refused = NIL;

	foreach(lc, refused)
	{
		Relation	rel = lfirst(lc);

		if (relid == InvalidOid || RelationGetRelid(rel) == relid)
			rel->rd_islocaltemp = false;
	}
}
