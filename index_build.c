/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Workers for index builds on temporary tables.
 *
 * The workers, the scan and the sort are core's.  index_build() of index.c asks
 * plan_create_index_workers() for a number of workers, which is 0 for a temporary
 * table, and then calls the access method's ambuild.  The planner's hook is called in
 * between, with the index open.  There the number is computed as for a permanent
 * table, and the index gets a copy of its access method's routine with our ambuild.
 * That one puts the access method's routine back, prepares the table, and calls the
 * access method's ambuild with this number.
 *
 * Workers read the table's file.  heap_getnext(), with which core reads the table,
 * refuses the read-only routine (readonly_heap.c).  So instead the leader changes
 * the pages first, as far as a reader would, and writes them.  A build reads with
 * SnapshotAny, and does not prune; what it changes are hints, by
 * HeapTupleSatisfiesVacuum().  The leader calls that for each row, row locks and
 * aborted rows included.  Only its own transactions are in a temporary table, and
 * each has the same state for the workers.  Reads of a TOAST table set no hints, but
 * may prune pages that say that it is worth a try.  So these no longer say so.
 *
 * A worker has to have local buffers before core's entry point reads the first page,
 * and that calls nothing of a module's.  So the leader makes a setting for the time
 * of the build, which names the table's files.  Core restores it in the worker, where
 * its assign hook opens the pool: nothing is looked up there, as catalogs cannot be
 * read yet.
 *
 * The invariants: no process changes a page of the table or its TOAST table while
 * workers read them, which each worker and then the leader check at the end; a
 * worker opens its pool only for core's entry points of index builds, and has read
 * no temporary relation but the table and its TOAST table when its transaction ends;
 * no code but core's runs in it; the setting has a value only while core's ambuild
 * runs; a descriptor has our routine only until its ambuild is called, or, after an
 * error before that, until the end of the (sub)transaction, which has made the
 * index or its file, and whose abort discards the descriptor.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "access/genam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "nodes/execnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "postmaster/bgworker.h"
#include "utils/memutils.h"

#include "exec.h"
#include "readonly.h"

/* ----------
 * The setting
 * ----------
 */

#define SETTING_NAME	"temp_parallel.index_build"

static char *setting = NULL;

/* is the leader about to make it? */
static bool own_setting = false;

/* in a worker: the files that it may read, or all 0 if it has no pool from here */
typedef struct BuildFiles
{
	Oid			tablespace;
	Oid			table;
	Oid			toast;
	Oid			toast_index;
	int			pool;			/* local buffers of a worker */
} BuildFiles;

static BuildFiles files;

static bool
check_setting(char **newval, void **extra, GucSource source)
{
	if (*newval == NULL || (*newval)[0] == '\0' || own_setting ||
		InitializingParallelWorker)
		return true;
	GUC_check_errdetail("\"%s\" is set only while an index is built.", SETTING_NAME);
	return false;
}

/* Has core been told to call one of its entry points of index builds? */
static bool
is_index_worker(void)
{
	/* as in parallel.c, where it is private, and the same in all versions */
	const uint64 key_entrypoint = UINT64CONST(0xFFFFFFFFFFFF0009);
	static const char *const functions[] = {
		"_bt_parallel_build_main", "_brin_parallel_build_main", "_gin_parallel_build_main"
	};
	const char *library = shm_toc_lookup(tp_worker_toc(), key_entrypoint, false);
	const char *function = library + strlen(library) + 1;

	if (strcmp(library, "postgres") != 0)
		return false;
	for (int i = 0; i < lengthof(functions); i++)
	{
		if (strcmp(function, functions[i]) == 0)
			return true;
	}
	return false;
}

/*
 * In a worker, while core restores its settings: open the pool.  Whether the session
 * may set temp_buffers does not matter, as nothing here would.
 */
static void
assign_setting(const char *newval, void *extra)
{
	RelFileLocator locator;
	char		release[32] = "";

	if (!IsParallelWorker() || !InitializingParallelWorker || NLocBuffer > 0 ||
		newval == NULL || newval[0] == '\0' || !is_index_worker())
		return;
	(void) sscanf(newval, "%31s", release);
	tp_worker_check_release(release);
	if (sscanf(newval, "%*s %u/%u/%u/%u/%d", &files.tablespace, &files.table,
			   &files.toast, &files.toast_index, &files.pool) != 5)
		elog(ERROR, "invalid value of \"temp_parallel.index_build\"");
	RelFileLocatorSpc(locator) = files.tablespace;
	RelFileLocatorDb(locator) = MyDatabaseId;
	RelFileLocatorNumber(locator) = files.table;
	tp_worker_open_pool(smgropen(locator, TempFilesOwner()), files.pool, false);
}

/* Define the setting.  Called once, when the module is loaded. */
void
tp_define_index_setting(void)
{
	DefineCustomStringVariable(SETTING_NAME,
							   "Tells workers which table's index they build.",
							   NULL,
							   &setting,
							   "",
							   PGC_USERSET,
							   GUC_NO_SHOW_ALL | GUC_NO_RESET_ALL |
							   GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   check_setting, assign_setting, NULL);
}

/*
 * At the end of a worker's transaction: raise an internal error if it has changed a
 * page of the table, or read another relation.
 */
void
tp_check_index_worker(void)
{
	if (files.pool == 0)
		return;
	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		BufferState state = LocalBufferStateRead(buf);
		RelFileLocator locator = BufTagGetRelFileLocator(&buf->tag);
		Oid			file = RelFileLocatorNumber(locator);

		if ((state & BM_TAG_VALID) == 0)
			continue;
		if (file != files.table && file != files.toast && file != files.toast_index)
			elog(ERROR, "parallel worker that builds an index has read another temporary relation");
		if (state & BM_DIRTY)
			elog(ERROR, "parallel worker that builds an index has changed block %u of its table",
				 buf->tag.blockNum);
	}
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

typedef struct IndexBuild
{
	IndexAmRoutine routine;		/* must be the first: the index's rd_indam */
	const IndexAmRoutine *own;	/* its access method's */
	int			workers;		/* as for a permanent table, not 0 */
	bool		unconditional;	/* has the table a storage parameter for that? */
	double		rows;			/* of the table, estimated */
	double		toast_pages;	/* that may be read */
	bool		detoasts;		/* may TOASTed values be read? */
} IndexBuild;

static bool
is_user_object(Oid oid)
{
	return oid >= FirstNormalObjectId;
}

/*
 * Why the build of index must not have workers, or NULL if it may.  What compares,
 * hashes or summarizes keys is found by the operator class and the keys' types.
 */
static const char *
refusal_to_build(Relation heap, Relation index, IndexInfo *info)
{
	int			nsupport = index->rd_indam->amsupport;

	/* not even one that the statement which calls this one has */
	if (IsInParallelMode() || tp_listed_buffers() > 0 ||
		tp_table_is_readonly(RelationGetRelid(heap)))
		return "workers read temporary tables";
	if (tp_contains((Node *) info->ii_Expressions, tp_expression_is_user_code) ||
		tp_contains((Node *) info->ii_Predicate, tp_expression_is_user_code))
		return "user code in an expression or the predicate";
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (is_user_object(TupleDescAttr(RelationGetDescr(index), i)->atttypid) ||
			is_user_object(index->rd_opcintype[i]))
			return "type of a user's";
		if (is_user_object(index->rd_opfamily[i]))
			return "operator family of a user's";
		for (int j = 0; j < nsupport; j++)
		{
			if (is_user_object(index->rd_support[i * nsupport + j]))
				return "support function of a user's";
		}
	}
	return NULL;
}

/* May the build read values from the table's TOAST table? */
static bool
may_detoast(Relation index, IndexInfo *info)
{
	if (info->ii_Expressions != NIL || info->ii_Predicate != NIL)
		return true;
	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
	{
		if (TupleDescAttr(RelationGetDescr(index), i)->attlen == -1)
			return true;
	}
	return false;
}

/*
 * Costs, in planner cost units, from times of builds of 2 million rows.  The planner's
 * estimate for a sort is of little use here: it knows nothing of abbreviated keys and
 * of collations.
 */
/* of a comparison of keys that are passed by value, or not, in cpu_operator_cost */
#define COMPARE_BY_VALUE	0.5
#define COMPARE_BY_REFERENCE	2.0
/* of a row's key in a BRIN index, and in a GIN index */
#define SUMMARIZE_KEY		2.0
#define EXTRACT_KEYS		40.0
/* of the look at a row for hints */
#define LOOK_AT_ROW			2.0
/* what part of the rows is taken to be in a partial index */
#define PARTIAL				0.25
/* of the look at a page of the TOAST table, in seq_page_cost; of detoasting it */
#define LOOK_AT_PAGE		0.5
#define DETOAST_PAGE		2.0

/*
 * The cost of a row of the table if the leader builds alone, without writing the
 * index, which it does alone in any case.
 */
static Cost
cost_of_row(const IndexBuild *build, Relation index, IndexInfo *info)
{
	Oid			am = index->rd_rel->relam;
	QualCost	expressions;
	QualCost	predicate;
	Cost		keys = 0;

	cost_qual_eval(&expressions, info->ii_Expressions, NULL);
	cost_qual_eval(&predicate, info->ii_Predicate, NULL);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (am == BRIN_AM_OID)
			keys += SUMMARIZE_KEY;
		else if (am != BTREE_AM_OID)
			keys += EXTRACT_KEYS;
		else if (TupleDescAttr(RelationGetDescr(index), i)->attbyval)
			keys += COMPARE_BY_VALUE * log2(build->rows);
		else
			keys += COMPARE_BY_REFERENCE * log2(build->rows);
	}
	keys = keys * cpu_operator_cost + expressions.per_tuple;
	if (info->ii_Predicate != NIL)
		keys *= PARTIAL;
	return cpu_tuple_cost + predicate.per_tuple + keys;
}

/*
 * Do workers save more than it costs to prepare the table?  If not, sets *saving to
 * what the table's account is to be credited with, and *price to its limit (see
 * flush_cost.c).
 */
static bool
pays(const IndexBuild *build, Relation heap, Relation index, IndexInfo *info,
	 Cost *saving, Cost *price)
{
	FlushCost	flush = tp_flush_cost_of_tables(tp_localbuf_stats_for_price(false),
												list_make1_oid(RelationGetRelid(heap)),
												NIL);
	double		processes = Min(build->workers + 1, tp_usable_processors());
	Cost		work = build->rows * cost_of_row(build, index, info);

	if (info->ii_Expressions != NIL || info->ii_Predicate != NIL ||
		index->rd_rel->relam != BTREE_AM_OID)
		work += DETOAST_PAGE * seq_page_cost * build->toast_pages;
	*saving = work * (1 - 1 / processes) - parallel_setup_cost - flush.search;
	/* each process writes its rows to a file, of which the leader makes one */
	if (index->rd_rel->relam != BRIN_AM_OID)
		*saving -= build->rows * cpu_tuple_cost;
	*saving -= LOOK_AT_ROW * cpu_operator_cost * build->rows +
		LOOK_AT_PAGE * seq_page_cost * build->toast_pages;
	*price = flush.cost - flush.search;
	return *saving > *price - flush.account;
}

/* The process that a_worker_is_free() starts.  It is mostly stopped before it starts. */
void
tp_try_worker_main(Datum arg)
{
	(void) arg;
}

/*
 * Could a parallel worker be had now?  To prepare the table takes long, and none of
 * that is of use if not.  Can be canceled.
 */
static bool
a_worker_is_free(void)
{
	BackgroundWorker worker = {
		.bgw_name = "temp_parallel: try whether a parallel worker is free",
		.bgw_type = "temp_parallel",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_CLASS_PARALLEL,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "temp_parallel",
		.bgw_function_name = "tp_try_worker_main",
	};
	BackgroundWorkerHandle *handle;

	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		return false;
	TerminateBackgroundWorker(handle);
	(void) WaitForBackgroundWorkerShutdown(handle);
	pfree(handle);
	return true;
}

/* ----------
 * The leader: preparation, and the build
 * ----------
 */

/*
 * Change the pages of rel, the table or its TOAST table, as far as those who read
 * them for a build would.  Can be canceled.
 */
static void
change_pages_as_readers(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	HeapTupleData tuple;

	tuple.t_tableOid = RelationGetRelid(rel);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		Buffer		buffer = ReadBuffer(rel, block);
		Page		page = BufferGetPage(buffer);
		OffsetNumber maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);

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
			TransactionId dead_after;

			if (!ItemIdIsNormal(lp))
				continue;
			tuple.t_data = (HeapTupleHeader) PageGetItem(page, lp);
			if ((tuple.t_data->t_infomask & (HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID)) ==
				(HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID))
				continue;		/* nothing is left to be set */
			tuple.t_len = ItemIdGetLength(lp);
			ItemPointerSet(&tuple.t_self, block, off);
			(void) HeapTupleSatisfiesVacuumHorizon(&tuple, buffer, &dead_after);
		}
		ReleaseBuffer(buffer);
	}
}

/* Prepare heap for workers, and describe its files in *described. */
static void
prepare_table(Relation heap, bool detoasts, BuildFiles *described)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "index build",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	instr_time	start;
	instr_time	elapsed;

	INSTR_TIME_SET_CURRENT(start);
	memset(described, 0, sizeof(BuildFiles));
	described->tablespace = RelFileLocatorSpc(RelationFileLocator(heap));
	described->table = RelFileLocatorNumber(RelationFileLocator(heap));
	change_pages_as_readers(heap);
	if (detoasts && OidIsValid(heap->rd_rel->reltoastrelid))
	{
		Relation	toast = tp_relation_open(heap->rd_rel->reltoastrelid);
		Relation	index = tp_relation_open(linitial_oid(RelationGetIndexList(toast)));

		described->toast = RelFileLocatorNumber(RelationFileLocator(toast));
		described->toast_index = RelFileLocatorNumber(RelationFileLocator(index));
		change_pages_as_readers(toast);
		RelationClose(index);
		RelationClose(toast);
	}
	tp_session_stats.pages_flushed +=
		tp_flush_tables(list_make1_oid(RelationGetRelid(heap)), NIL, NULL, 0, 0);
	described->pool = Min(LEAST_WORKER_POOL,
						  NLocBuffer > 0 ? NLocBuffer : num_temp_buffers);
	INSTR_TIME_SET_CURRENT(elapsed);
	INSTR_TIME_SUBTRACT(elapsed, start);
	tp_session_stats.flushes++;
	tp_session_stats.flush_time += INSTR_TIME_GET_MILLISEC(elapsed);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* Make the setting, until the end of the innermost nest level of settings. */
static void
make_setting(const BuildFiles *described)
{
	char	   *value = psprintf("%s %u/%u/%u/%u/%d", TP_VERSION,
								 described->tablespace, described->table,
								 described->toast, described->toast_index,
								 described->pool);

	own_setting = true;
	PG_TRY();
	{
		(void) set_config_option(SETTING_NAME, value, PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	}
	PG_FINALLY();
	{
		own_setting = false;
	}
	PG_END_TRY();
	pfree(value);
}

/* Build index, an index of heap, with workers.  Raises what ambuild raises. */
static IndexBuildResult *
build_with_workers(const IndexBuild *build, Relation heap, Relation index,
				   IndexInfo *info)
{
	int			nestlevel;
	BuildFiles	described;
	IndexBuildResult *result;

	prepare_table(heap, build->detoasts, &described);
	ereport(DEBUG1,
			(errmsg_internal("building index \"%s\" of a temporary table with request for %d parallel workers",
							 RelationGetRelationName(index), build->workers)));
	info->ii_ParallelWorkers = build->workers;
	nestlevel = NewGUCNestLevel();
	make_setting(&described);
	result = build->own->ambuild(heap, index, info);
	AtEOXact_GUC(true, nestlevel);
	if (tp_flush_cost_of_tables(tp_localbuf_stats_collect(),
								list_make1_oid(RelationGetRelid(heap)), NIL).dirtied > 0)
		elog(ERROR, "a page of temporary table \"%s\" was changed while workers read it",
			 RelationGetRelationName(heap));
	return result;
}

/* The ambuild that the index gets in tp_index_build_is_planned(). */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuild *planned = (IndexBuild *) index->rd_indam;
	IndexBuild	build = *planned;
	const char *refusal;
	IndexBuildResult *result;
	Cost		saving = 0;
	Cost		price = 0;
	bool		credit = false;

	index->rd_indam = (IndexAmRoutine *) build.own;
	pfree(planned);

	refusal = refusal_to_build(heap, index, info);
	if (refusal == NULL)
	{
		build.detoasts = may_detoast(index, info);
		if (build.detoasts && OidIsValid(heap->rd_rel->reltoastrelid))
		{
			Relation	toast = tp_relation_open(heap->rd_rel->reltoastrelid);

			build.toast_pages = RelationGetNumberOfBlocks(toast);
			RelationClose(toast);
		}
		if (!build.unconditional &&
			!pays(&build, heap, index, info, &saving, &price))
		{
			refusal = "to write the table's pages costs more than workers save";
			credit = saving > 0;
		}
		else if (!a_worker_is_free())
			refusal = "no worker is free";
	}
	if (refusal == NULL)
		return build_with_workers(&build, heap, index, info);

	ereport(DEBUG1,
			(errmsg_internal("building index \"%s\" of a temporary table without workers: %s",
							 RelationGetRelationName(index), refusal)));
	result = build.own->ambuild(heap, index, info);
	if (credit)
	{
		RelFileLocator locator = RelationFileLocator(heap);

		tp_account_add(&locator, saving, price);
	}
	return result;
}

/*
 * The number of workers for index, which is about to be built, if heap were
 * permanent: as plan_create_index_workers() of planner.c.
 */
static int
workers_by_core(PlannerInfo *root, RelOptInfo *rel, Relation heap, Relation index,
				double *rows)
{
	BlockNumber pages;
	double		allvisfrac;
	int			workers;

	estimate_rel_size(heap, NULL, &pages, rows, &allvisfrac);
	if (!is_parallel_safe(root, (Node *) RelationGetIndexExpressions(index)) ||
		!is_parallel_safe(root, (Node *) RelationGetIndexPredicate(index)))
		return 0;
	if (rel->rel_parallel_workers != -1)
		return Min(rel->rel_parallel_workers, max_parallel_maintenance_workers);
	workers = compute_parallel_worker(rel, pages, -1, max_parallel_maintenance_workers);
	while (workers > 0 && maintenance_work_mem / (workers + 1) < 32 * 1024)
		workers--;
	return workers;
}

/*
 * In the planner's hook for relations: does plan_create_index_workers() ask for the
 * table of an index that is about to be built, relid?  It makes a query without a
 * join tree, as else only CLUSTER does.  The index is open, and its file is empty; if
 * relid is a temporary table of this session, and workers would be used for a
 * permanent one, have our ambuild called.
 */
void
tp_index_build_is_planned(PlannerInfo *root, Oid relid, RelOptInfo *rel)
{
	List	   *indexes;
	ListCell   *lc;

	if (root->parse->jointree != NULL || root->parse->commandType != CMD_SELECT ||
		!tp_enabled || IsParallelWorker() || max_parallel_maintenance_workers == 0 ||
		!tp_session_has_temp_tables() || !tp_is_session_temp_table(relid))
		return;
	indexes = tp_table_indexes(relid);
	foreach(lc, indexes)
	{
		Relation	index = tp_relation_open(lfirst_oid(lc));
		Relation	heap;
		IndexBuild	build = {.own = index->rd_indam};
		IndexBuild *planned;

		if (index->rd_refcnt == 1 || !is_built_by_workers(index->rd_rel->relam) ||
			build.own->ambuild == build_index || RelationGetNumberOfBlocks(index) > 0)
		{
			RelationClose(index);
			continue;
		}
		heap = tp_relation_open(relid);
		build.routine = *build.own;
		build.routine.ambuild = build_index;
		build.workers = workers_by_core(root, rel, heap, index, &build.rows);
		build.rows = Max(build.rows, 2);
		build.unconditional = rel->rel_parallel_workers != -1;
		if (build.workers > 0)
		{
			planned = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexBuild));
			*planned = build;
			index->rd_indam = &planned->routine;
		}
		RelationClose(heap);
		RelationClose(index);
	}
	list_free(indexes);
}
