/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Workers for index builds on temporary tables.
 *
 * The workers, the scan and the sort are core's.  index_build() of index.c asks
 * plan_create_index_workers() for a number of workers, 0 for a temporary table, which calls a
 * hook of the planner.  There the index gets a copy of its access method's routine with our
 * ambuild, which puts the routine back, computes the number as for a permanent table,
 * prepares the table, and calls the access method's ambuild with this number.
 *
 * Workers read the table's file.  heap_getnext(), with which core reads the table, refuses
 * the read-only routine (readonly_heap.c).  So instead the leader changes the pages first,
 * as far as a reader would, and writes them.  A build reads with SnapshotAny, and does not
 * prune; what it changes are hints, by HeapTupleSatisfiesVacuum(), which the leader calls for
 * each row.  Only its own transactions are in a temporary table, and each has the same state
 * for the workers.  So the leader also finds the HOT chains that are broken, of which core's
 * workers for BRIN and GIN indexes (18.6) do not tell.  Reads of a TOAST table set no hints,
 * but may prune pages that say that it is worth a try.  So these no longer say so.
 *
 * A worker has to have local buffers before core's entry point reads the first page, and
 * that calls nothing of a module's.  So the leader makes a setting for the time of the
 * build, which names the table's file.  Core restores it in the worker, where its assign
 * hook opens the pool without a look at the catalogs, which cannot be read yet.
 *
 * The invariants: no process changes a page of the table or its TOAST table while workers
 * read them, which each worker and then the leader check at the end; a worker opens its
 * pool only for core's entry points of index builds, and runs no code but core's, which
 * reads no temporary relation but the table and its TOAST table; the setting has a value
 * only while core's ambuild runs; a descriptor has our routine only until its ambuild is
 * called, or, after an error before that, until the next build of the index, if it lives so
 * long.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "nodes/execnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "exec.h"
#include "readonly.h"

/* ----------
 * The setting, and what it does in a worker
 * ----------
 */

#define SETTING_NAME	"temp_parallel.index_build"

static char *setting = NULL;

/* in a worker: has it a pool from here? */
static bool has_pool = false;

/* Has core been told to call one of its entry points of index builds? */
static bool
is_index_worker(void)
{
	/* as in parallel.c, where it is private, and the same in all versions */
	const uint64 key_entrypoint = UINT64CONST(0xFFFFFFFFFFFF0009);
	const char *library = shm_toc_lookup(tp_worker_toc(), key_entrypoint, false);
	const char *function = library + strlen(library) + 1;

	return strcmp(library, "postgres") == 0 &&
		strstr(function, "_parallel_build_main") != NULL;
}

/* In a worker, while core restores its settings: open the pool. */
static void
assign_setting(const char *newval, void *extra)
{
	RelFileLocator locator;
	char		release[32] = "";
	int			pool;

	if (!InitializingParallelWorker || NLocBuffer > 0 ||
		newval == NULL || newval[0] == '\0' || !is_index_worker())
		return;
	(void) sscanf(newval, "%31s", release);
	tp_worker_check_release(release);
	if (sscanf(newval, "%*s %u/%u/%d", &RelFileLocatorSpc(locator),
			   &RelFileLocatorNumber(locator), &pool) != 3)
		elog(ERROR, "invalid value of \"temp_parallel.index_build\"");
	RelFileLocatorDb(locator) = MyDatabaseId;
	tp_worker_open_pool(smgropen(locator, TempFilesOwner()), pool);
	has_pool = true;
}

/* Define the setting, once.  Users cannot set what is PGC_SIGHUP. */
void
tp_define_index_setting(void)
{
	DefineCustomStringVariable(SETTING_NAME,
							   "Tells workers which table's index they build.",
							   NULL,
							   &setting,
							   "",
							   PGC_SIGHUP,
							   GUC_NO_SHOW_ALL | GUC_NO_RESET_ALL |
							   GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, assign_setting, NULL);
}

/* At the end of a worker's transaction: an error if it has changed a page of the table. */
void
tp_check_index_worker(void)
{
	if (!has_pool)
		return;
	if (pgBufferUsage.local_blks_dirtied > 0)
		elog(ERROR, "parallel worker that builds an index has changed its table");
	ereport(DEBUG2,
			(errmsg_internal("parallel worker has read %ld pages for an index of a temporary table",
							 (long) pgBufferUsage.local_blks_read)));
}

/* ----------
 * The leader: is the index to be built by workers?
 * ----------
 */

/*
 * Is there user code in the expressions or the predicate of index in the catalog?  A
 * relation's descriptor keeps what a function was when it was inlined; each worker inlines
 * what it is now.
 */
static bool
has_user_code(Relation index)
{
	const AttrNumber columns[] = {Anum_pg_index_indexprs, Anum_pg_index_indpred};
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(RelationGetRelid(index)));
	bool		result = false;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", RelationGetRelid(index));
	for (int i = 0; i < lengthof(columns); i++)
	{
		bool		isnull;
		Datum		nodes = SysCacheGetAttr(INDEXRELID, tuple, columns[i], &isnull);

		result = result || (!isnull && tp_contains(stringToNode(TextDatumGetCString(nodes)),
												   tp_expression_is_user_code));
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Why the build of index must not have workers, or NULL if it may.  What compares, hashes or
 * summarizes keys is found by the operator class and the keys' types, for enums core's.
 */
static const char *
refusal_to_build(Relation heap, Relation index)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	List	   *objects = NIL;

	/* not even one that the statement which calls this one has */
	if (IsInParallelMode() || tp_listed_buffers() > 0 ||
		tp_table_is_readonly(RelationGetRelid(heap)))
		return "workers read temporary tables";
	/* one process alone may do without files */
	if (temp_file_limit >= 0)
		return "the rows to sort may exceed temp_file_limit";
	if (has_user_code(index))
		return "user code in an expression or the predicate";
	for (int i = 0; i < nkeys; i++)
	{
		Oid			type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;

		if (!type_is_enum(type))
			objects = lappend_oid(objects, type);
		objects = lappend_oid(objects, index->rd_opcintype[i]);
		objects = lappend_oid(objects, index->rd_opfamily[i]);
	}
	for (int i = 0; i < nkeys * index->rd_indam->amsupport; i++)
		objects = lappend_oid(objects, index->rd_support[i]);
	return tp_has_user_object(objects) ? "type or operator class of a user's" : NULL;
}

/*
 * The cost of a comparison of keys that are passed by value, or not, in cpu_operator_cost,
 * from times of builds of 2 million rows.  The planner's estimate for a sort knows nothing of
 * abbreviated keys and collations.
 */
#define COMPARE_BY_VALUE	0.65
#define COMPARE_BY_REFERENCE	2.0
/* of the look at a page before, in seq_page_cost */
#define LOOK_AT_PAGE		0.5

/*
 * The number of rows of heap, by the page in its middle: before the first ANALYZE, the
 * planner knows only the types of its columns.
 */
static double
rows_by_a_page(Relation heap)
{
	double		pages = RelationGetNumberOfBlocks(heap);
	Buffer		buffer = ReadBuffer(heap, pages / 2);
	double		rows = pages * PageGetMaxOffsetNumber(BufferGetPage(buffer));

	ReleaseBuffer(buffer);
	return Max(rows, 2);
}

/*
 * Why workers save less than it costs to prepare heap, with a TOAST table of toast_pages, or
 * NULL.  If only the writing of dirty pages costs too much, heap's account gets what they would
 * save.
 */
static const char *
does_not_pay(Relation heap, Relation index, IndexInfo *info, double toast_pages)
{
	FlushCost	flush = tp_flush_estimate(list_make1_oid(RelationGetRelid(heap)), NIL, false);
	double		pages = RelationGetNumberOfBlocks(heap);
	double		rows = rows_by_a_page(heap);
	double		processes = Min(info->ii_ParallelWorkers + 1, tp_usable_processors());
	QualCost	expressions;
	double		comparison = 0;
	Cost		saving;
	const char *too_expensive = "to write the table's pages costs more than workers save";

	/* reads more than it sorts, or nobody knows how many rows it has */
	if (index->rd_rel->relam == BRIN_AM_OID || info->ii_Predicate != NIL)
		return too_expensive;
	cost_qual_eval(&expressions, info->ii_Expressions, NULL);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		comparison += TupleDescAttr(RelationGetDescr(index), i)->attbyval ?
			COMPARE_BY_VALUE : COMPARE_BY_REFERENCE;

	/* of an expression, reading the TOAST table by workers saves as much */
	if (info->ii_Expressions == NIL)
		pages += toast_pages;
	saving = rows * (expressions.per_tuple + comparison * cpu_operator_cost * log2(rows)) *
		(1 - 1 / processes) - LOOK_AT_PAGE * seq_page_cost * pages -
		parallel_setup_cost - flush.search;
	if (saving > flush.cost - flush.account)
		return tp_processors_are_busy(saving) ? "other processes use the processors" : NULL;
	if (saving > 0 && !tp_processors_are_busy(saving))
		tp_account_add(RelationGetRelid(heap), saving, flush.cost);
	return too_expensive;
}

/* ----------
 * The leader: preparation, and the build
 * ----------
 */

/*
 * Change the pages of rel, the table or its TOAST table, as far as reading them for a build
 * would.  Returns whether a HOT chain is broken, so that the index lacks rows that older
 * snapshots see: as heapam_index_build_range_scan() of heapam_handler.c.  Can be canceled.
 */
static bool
change_pages_as_readers(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	TransactionId oldest = GetOldestNonRemovableTransactionId(rel);
	bool		broken = false;
	HeapTupleData tuple;

	tuple.t_tableOid = RelationGetRelid(rel);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		Buffer		buffer = ReadBuffer(rel, block);
		Page		page = BufferGetPage(buffer);
		OffsetNumber maxoff = PageGetMaxOffsetNumber(page);

		CHECK_FOR_INTERRUPTS();
		if (rel->rd_rel->relkind == RELKIND_TOASTVALUE)
		{
			/* a later deletion sets it again, and VACUUM does without it */
			if (TransactionIdIsValid(((PageHeader) page)->pd_prune_xid))
			{
				((PageHeader) page)->pd_prune_xid = InvalidTransactionId;
				MarkBufferDirty(buffer);
			}
			maxoff = 0;
		}
		for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
		{
			ItemId		lp = PageGetItemId(page, off);
			HTSV_Result state;

			if (!ItemIdIsNormal(lp))
				continue;
			tuple.t_data = (HeapTupleHeader) PageGetItem(page, lp);
			tuple.t_len = ItemIdGetLength(lp);
			ItemPointerSet(&tuple.t_self, block, off);
			state = HeapTupleSatisfiesVacuum(&tuple, oldest, buffer);
			broken = broken || (HeapTupleIsHotUpdated(&tuple) &&
								(state == HEAPTUPLE_RECENTLY_DEAD ||
								 state == HEAPTUPLE_DELETE_IN_PROGRESS));
		}
		if (LocalBufferStateRead(GetLocalBufferDescriptor(-buffer - 1)) & HINTS_DROPPED)
			MarkBufferDirty(buffer);
		ReleaseBuffer(buffer);
	}
	return broken;
}

/* Prepare heap for info->ii_ParallelWorkers.  Returns why not, or NULL. */
static const char *
prepare_table(Relation heap, Relation index, IndexInfo *info)
{
	const char *refusal = refusal_to_build(heap, index);
	Relation	toast = OidIsValid(heap->rd_rel->reltoastrelid) ?
		tp_relation_open(heap->rd_rel->reltoastrelid) : NULL;
	instr_time	start;
	instr_time	elapsed;

	if (refusal == NULL && RelationGetParallelWorkers(heap, -1) == -1)
		refusal = does_not_pay(heap, index, info, toast == NULL ? 0 : RelationGetNumberOfBlocks(toast));
	if (refusal == NULL && !tp_worker_is_free())
		refusal = "no worker is free";
	if (refusal == NULL)
	{
		INSTR_TIME_SET_CURRENT(start);
		info->ii_BrokenHotChain = change_pages_as_readers(heap);
		if (toast != NULL)
			(void) change_pages_as_readers(toast);
		tp_session_stats->pages_flushed +=
			tp_flush_tables(list_make1_oid(RelationGetRelid(heap)), NIL, NULL, 0, 0);
		INSTR_TIME_SET_CURRENT(elapsed);
		INSTR_TIME_SUBTRACT(elapsed, start);
		tp_session_stats->flushes++;
		tp_session_stats->flush_time += INSTR_TIME_GET_MILLISEC(elapsed);
	}
	if (toast != NULL)
		RelationClose(toast);
	return refusal;
}

/*
 * The number of workers for an index of heap if that were permanent, as by
 * plan_create_index_workers() of planner.c, but none if heap is empty.  What is not parallel
 * safe is refused as user code: core's functions that are immutable all are.
 */
static int
workers_by_core(Relation heap)
{
	RelOptInfo	rel = {
		.reloptkind = RELOPT_BASEREL,
		.rel_parallel_workers = RelationGetParallelWorkers(heap, -1)
	};
	BlockNumber pages = RelationGetNumberOfBlocks(heap);
	int			workers;

	if (pages == 0)
		return 0;
	if (rel.rel_parallel_workers != -1)
		return Min(rel.rel_parallel_workers, max_parallel_maintenance_workers);
	workers = compute_parallel_worker(&rel, pages, -1, max_parallel_maintenance_workers);
	while (workers > 0 && maintenance_work_mem / (workers + 1) < 32 * 1024)
		workers--;
	return workers;
}

typedef struct PlannedIndex
{
	IndexAmRoutine routine;		/* must be the first: the index's rd_indam */
	const IndexAmRoutine *own;	/* its access method's */
} PlannedIndex;

/* The ambuild that the index gets.  Raises what the access method's raises. */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	PlannedIndex *planned = (PlannedIndex *) index->rd_indam;
	const IndexAmRoutine *own = planned->own;
	const char *refusal;
	int			nestlevel;
	IndexBuildResult *result;

	index->rd_indam = (IndexAmRoutine *) own;
	pfree(planned);

	info->ii_ParallelWorkers = workers_by_core(heap);
	if (info->ii_ParallelWorkers == 0)
		return own->ambuild(heap, index, info);

	refusal = prepare_table(heap, index, info);
	if (refusal != NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("building index \"%s\" of a temporary table without workers: %s",
								 RelationGetRelationName(index), refusal)));
		info->ii_ParallelWorkers = 0;
		return own->ambuild(heap, index, info);
	}

	ereport(DEBUG1,
			(errmsg_internal("building index \"%s\" of a temporary table with request for %d parallel workers",
							 RelationGetRelationName(index), info->ii_ParallelWorkers)));
	nestlevel = NewGUCNestLevel();
	(void) set_config_option(SETTING_NAME,
							 psprintf("%s %u/%u/%d", TP_VERSION,
									  RelFileLocatorSpc(RelationFileLocator(heap)),
									  RelFileLocatorNumber(RelationFileLocator(heap)),
									  Min(LEAST_WORKER_POOL, tp_pool_size())),
							 PGC_SIGHUP, PGC_S_SESSION, GUC_ACTION_SAVE, true, ERROR, false);
	result = own->ambuild(heap, index, info);
	AtEOXact_GUC(true, nestlevel);
	if (tp_flush_cost_of_tables(tp_localbuf_stats_collect(),
								list_make1_oid(RelationGetRelid(heap)), NIL).dirtied > 0)
		elog(ERROR, "a page of temporary table \"%s\" was changed while workers read it",
			 RelationGetRelationName(heap));
	return result;
}

/*
 * In the planner's hook for relations: if plan_create_index_workers() asks for relid, a
 * temporary table of this session, an index of which is about to be built, have our ambuild
 * called.  It makes a query without a join tree, as else only CLUSTER does.  The index is
 * open, and its file is empty.
 */
void
tp_index_build_is_planned(PlannerInfo *root, Oid relid)
{
	ListCell   *lc;

	if (root->parse->jointree != NULL || !tp_enabled ||
		!tp_session_has_temp_tables() || !tp_is_session_temp_table(relid))
		return;
	foreach(lc, tp_table_indexes(relid))
	{
		Relation	index = tp_relation_open(lfirst_oid(lc));

		if (index->rd_refcnt > 1 && is_built_by_workers(index) &&
			index->rd_indam->ambuild != build_index &&
			RelationGetNumberOfBlocks(index) == 0)
		{
			PlannedIndex *planned = MemoryContextAlloc(index->rd_indexcxt,
													   sizeof(PlannedIndex));

			planned->own = index->rd_indam;
			planned->routine = *planned->own;
			planned->routine.ambuild = build_index;
			index->rd_indam = &planned->routine;
		}
		RelationClose(index);
	}
}
