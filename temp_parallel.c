/*-------------------------------------------------------------------------
 *
 * temp_parallel.c
 *	  The module's door: settings and hooks.
 *
 * A statement passes the hooks in this order: the planner (plan_paths.c makes
 * paths that workers may run, plan_gather_cost.c charges the Gather with the flush,
 * plan_placement.c puts the flush node into the finished plan), and the run of
 * the executor (readonly_phase.c), where exec_second_look.c may leave the plan to the
 * leader, and in which the node (exec_flush.c) writes the tables out and lets the
 * workers in (exec_worker.c).
 *
 * Every hook calls the one that was there before.  Most statements of most
 * sessions have nothing to do with temporary tables, so each hook finds out
 * here, without a call, whether it has anything to do.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include <float.h>

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/syscache.h"

PG_MODULE_MAGIC;

/* settings */
bool		tp_enabled = true;
double		tp_write_temp_page_cost = 1.30;
double		tp_buffer_scan_cost = 0.01;
int			tp_worker_temp_buffers = 1024;

static planner_hook_type prev_planner = NULL;
static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;
static join_search_hook_type prev_join_search = NULL;
static create_upper_paths_hook_type prev_create_upper_paths = NULL;
static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;

void		_PG_init(void);

/*
 * Has this session made a temporary table yet?  The first question of every
 * hook, and for most sessions the last.
 */
bool
tp_session_has_temp_tables(void)
{
	Oid			namespace;
	Oid			toast_namespace;

	GetTempNamespaceState(&namespace, &toast_namespace);
	return OidIsValid(namespace);
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

/* ----------
 * Planner
 * ----------
 */
static PlannedStmt *
run_planner(PLANNER_HOOK_ARGS)
{
	bool		consider_temp;

	if (IsParallelWorker())
		tp_worker_refuse_query(parse);

	/*
	 * The server's tests expect plans as if there were no workers with
	 * "regress", which makes EXPLAIN hide the Gather, but not the flush node
	 * below it.
	 */
	consider_temp = tp_enabled &&
		tp_session_has_temp_tables() &&
		debug_parallel_query != DEBUG_PARALLEL_REGRESS &&
		(cursorOptions & CURSOR_OPT_PARALLEL_OK) != 0 &&
		max_parallel_workers_per_gather > 0 &&
		!IsParallelWorker();

	/* inside another call this one must not see that one's charge */
	if (consider_temp || tp_planning_temp_tables())
		return tp_planner_with_flush_cost(prev_planner, PLANNER_HOOK_PASS,
									   consider_temp);
	if (prev_planner)
		return prev_planner(PLANNER_HOOK_PASS);
	return standard_planner(PLANNER_HOOK_PASS);
}

static PlannedStmt *
temp_parallel_planner(PLANNER_HOOK_ARGS)
{
	ErrorContextCallback noting;
	PlannedStmt *result;

	if (tp_file_was_missing)
		tp_discard_after_missing_file();

	/* the planner reads the ends of indexes */
	tp_begin_noting_missing_files(&noting);
	result = run_planner(PLANNER_HOOK_PASS);
	tp_end_noting_missing_files(&noting);
	return result;
}

static void
temp_parallel_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti,
							   RangeTblEntry *rte)
{
	/* children's turn comes with their topmost parent's */
	if (rel->reloptkind == RELOPT_BASEREL && tp_planning_temp_tables())
	{
		tp_add_worker_visible_paths(root, rel, rti, rte);
		tp_charge_gather_of_rel(root, rel);
	}
	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
}

static RelOptInfo *
temp_parallel_join_search(PlannerInfo *root, int levels_needed,
						  List *initial_rels)
{
	if (tp_planning_temp_tables())
		return tp_join_search_with_flush_cost(prev_join_search, root,
										   levels_needed, initial_rels);
	return tp_next_join_search(prev_join_search, root, levels_needed,
							initial_rels);
}

static void
temp_parallel_create_upper_paths(PlannerInfo *root, UpperRelationKind stage,
								 RelOptInfo *input_rel, RelOptInfo *output_rel,
								 void *extra)
{
	if (prev_create_upper_paths)
		prev_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_FINAL && output_rel->partial_pathlist != NIL &&
		tp_planning_temp_tables())
		tp_charge_gather_of_setop(root, output_rel);
}

/* ----------
 * Executor
 * ----------
 */
static void
start_executor(QueryDesc *queryDesc, int eflags)
{
	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

/* A statement that may launch workers, which may be sent values. */
static void
start_parallel_executor(QueryDesc *queryDesc, int eflags)
{
	ParamListInfo params = tp_wrap_params(queryDesc);

	PG_TRY();
	{
		start_executor(queryDesc, eflags);
	}
	PG_FINALLY();
	{
		tp_unwrap_params(queryDesc, params);
	}
	PG_END_TRY();
	tp_inline_initplans(queryDesc);
}

static void
temp_parallel_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (IsParallelWorker())
	{
		tp_worker_refuse_statement(queryDesc->plannedstmt->rtable);
		tp_flush_enter_worker(queryDesc);
		start_executor(queryDesc, eflags);
		tp_flush_check_worker(queryDesc);
		return;
	}

	if (tp_file_was_missing)
		tp_discard_after_missing_file();
	if (queryDesc->plannedstmt->parallelModeNeeded &&
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		tp_session_has_temp_tables())
		start_parallel_executor(queryDesc, eflags);
	else
		start_executor(queryDesc, eflags);
}

static void
run_executor(EXECUTOR_RUN_ARGS)
{
	if (IsParallelWorker())
		tp_flush_run_in_worker(prev_ExecutorRun, EXECUTOR_RUN_PASS);
	else if (queryDesc->plannedstmt->parallelModeNeeded &&
			 tp_session_has_temp_tables())
		tp_run_with_readonly_tables(prev_ExecutorRun, EXECUTOR_RUN_PASS);
	else if (prev_ExecutorRun)
		prev_ExecutorRun(EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(EXECUTOR_RUN_PASS);
}

static void
temp_parallel_ExecutorRun(EXECUTOR_RUN_ARGS)
{
	ErrorContextCallback noting;

	tp_begin_noting_missing_files(&noting);
	run_executor(EXECUTOR_RUN_PASS);
	tp_end_noting_missing_files(&noting);
}

static void
temp_parallel_ProcessUtility(PROCESS_UTILITY_ARGS)
{
	ErrorContextCallback noting;

	if (IsParallelWorker())
		tp_worker_refuse_utility(pstmt->utilityStmt);
	else if (tp_file_was_missing)
		tp_discard_after_missing_file();

	tp_begin_noting_missing_files(&noting);
	if (prev_ProcessUtility)
		prev_ProcessUtility(PROCESS_UTILITY_PASS);
	else
		standard_ProcessUtility(PROCESS_UTILITY_PASS);
	tp_end_noting_missing_files(&noting);
}

/* ----------
 * Invalidations
 * ----------
 */
static void
temp_parallel_relcache_callback(Datum arg, Oid relid)
{
	tp_readonly_relcache_callback(arg, relid);
	tp_refuse_again(relid);
}

/* ----------
 * Loading
 * ----------
 */
static void
define_settings(void)
{
	DefineCustomBoolVariable("temp_parallel.enabled",
							 "Enables parallel query over temporary tables.",
							 NULL,
							 &tp_enabled,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomRealVariable("temp_parallel.write_temp_page_cost",
							 "Sets the planner's estimate of the cost of writing a dirty local buffer.",
							 "On the scale of seq_page_cost.",
							 &tp_write_temp_page_cost,
							 1.30, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomRealVariable("temp_parallel.buffer_scan_cost",
							 "Sets the planner's estimate of the cost of looking at a local buffer for a dirty page.",
							 "On the scale of seq_page_cost.",
							 &tp_buffer_scan_cost,
							 0.01, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("temp_parallel.worker_temp_buffers",
							"Sets the number of temporary buffers used by each parallel worker.",
							"A worker whose plan may have more pages pinned at once gets more, up to the session's \"temp_buffers\".",
							&tp_worker_temp_buffers,
							1024, 100, INT_MAX / 2,
							PGC_USERSET, GUC_UNIT_BLOCKS | GUC_EXPLAIN,
							NULL, NULL, NULL);
	MarkGUCPrefixReserved("temp_parallel");
}

void
_PG_init(void)
{
	define_settings();
	tp_flush_register();
	tp_readonly_heap_init();
	CacheRegisterRelcacheCallback(temp_parallel_relcache_callback, (Datum) 0);

	prev_planner = planner_hook;
	planner_hook = temp_parallel_planner;
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = temp_parallel_set_rel_pathlist;
	prev_join_search = join_search_hook;
	join_search_hook = temp_parallel_join_search;
	prev_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = temp_parallel_create_upper_paths;
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = temp_parallel_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = temp_parallel_ExecutorRun;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = temp_parallel_ProcessUtility;
}
