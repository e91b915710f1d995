/*-------------------------------------------------------------------------
 *
 * temp_parallel.c
 *	  Module entry points: hooks.
 *
 * doc/architecture.md shows how a statement passes the hooks, and what each of them
 * calls.
 *
 * Every hook calls the one that was set before it, or the server's own function, with
 * which prev_X is initialized if there is one.  Most statements of most
 * sessions have nothing to do with temporary tables, so each hook first checks
 * here, by inexpensive conditions, whether it has anything to do.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "fmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/inval.h"

#include "exec.h"
#include "readonly.h"

TP_MODULE_MAGIC;

static planner_hook_type prev_planner = NULL;
static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;
static rel_info_hook_type prev_rel_info = NULL;
static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;
#ifdef EXPLAIN_HAS_PER_PLAN_HOOK
static explain_per_plan_hook_type prev_explain_per_plan = NULL;
#else
static ExplainOneQuery_hook_type prev_ExplainOneQuery = NULL;
#endif

void		_PG_init(void);

/* ----------
 * Planner
 * ----------
 */

static PlannedStmt *
temp_parallel_planner(PLANNER_HOOK_ARGS)
{
	PlannerCall call = {prev_planner, {PLANNER_HOOK_PASS}};

	if (IsParallelWorker())
		tp_worker_refuse_query(parse);
	return tp_plan_statement(&call);
}

static void
temp_parallel_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti,
							   RangeTblEntry *rte)
{
	if (tp_planning_temp_tables())
		tp_aggregate_arrays_in_leader(root);
	/* children are treated with their topmost parent */
	if (rel->reloptkind == RELOPT_BASEREL && tp_planning_temp_tables())
		tp_add_worker_visible_paths(root, rel, rti, rte);
	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
}

static void
temp_parallel_rel_info(REL_INFO_HOOK_ARGS)
{
	if (prev_rel_info)
		prev_rel_info(REL_INFO_HOOK_PASS);
	if (IsParallelWorker())
		tp_worker_refuse_table(root->simple_rte_array[rel->relid]);
	tp_index_build_is_planned(root, REL_INFO_RELID);
	tp_allow_parallel(root);
}

/* ----------
 * Executor
 * ----------
 */
static void
temp_parallel_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (IsParallelWorker())
	{
		tp_worker_refuse_statement(queryDesc->plannedstmt->rtable);
		tp_worker_begin(queryDesc);
		prev_ExecutorStart(queryDesc, eflags);
		tp_worker_check(queryDesc);
		return;
	}

	if (tp_enabled && (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		tp_share_before((Node *) queryDesc->plannedstmt);
	prev_ExecutorStart(queryDesc, eflags);
}

static void
run_executor(EXECUTOR_RUN_ARGS)
{
	if (IsParallelWorker())
		tp_worker_run(prev_ExecutorRun, EXECUTOR_RUN_PASS);
	else if (queryDesc->plannedstmt->parallelModeNeeded &&
			 tp_session_has_temp_tables())
	{
		if (count != 0 && !queryDesc->already_executed && tp_enabled &&
			tp_run_ahead >= RUN_AHEAD_ON)
			tp_run_portions_ahead(queryDesc);
		tp_run_in_leader(prev_ExecutorRun, EXECUTOR_RUN_PASS);
	}
	else
		prev_ExecutorRun(EXECUTOR_RUN_PASS);
}

static void
temp_parallel_ExecutorRun(EXECUTOR_RUN_ARGS)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	bool		first = !queryDesc->already_executed &&
		!ScanDirectionIsNoMovement(direction);

	run_executor(EXECUTOR_RUN_PASS);
	if (!first || !tp_enabled || stmt->invalItems == NIL)
		return;

	if (tp_refusal_of(stmt) != NOT_REFUSED && tp_names_temp_table(stmt->rtable))
		tp_count_serial(tp_refusal_text(stmt));
	/* not if it was left before all was read that workers would read */
	if (tp_has_lost_saving(stmt) && (count == 0 || tp_reads_all_first(stmt)) &&
		tp_credit_savings(tp_savings_of(stmt, true), queryDesc->planstate) &&
		tp_savings_of(stmt, false) == NIL)
	{
		/* a plan with a saving of its own has workers */
		tp_session_stats->serial_by_flush++;
		tp_count_serial("the flush costs more than workers save");
	}
}

static void
temp_parallel_ProcessUtility(PlannedStmt *pstmt, const char *queryString,
							 bool readOnlyTree, ProcessUtilityContext context,
							 ParamListInfo params, QueryEnvironment *queryEnv,
							 DestReceiver *dest, QueryCompletion *qc)
{
	if (IsParallelWorker())
		tp_worker_refuse_utility(pstmt->utilityStmt);
	else if (tp_enabled)
		tp_share_before(pstmt->utilityStmt);
	prev_ProcessUtility(pstmt, queryString, readOnlyTree, context, params, queryEnv,
						dest, qc);
}

/* ----------
 * EXPLAIN
 * ----------
 */
#ifdef EXPLAIN_HAS_PER_PLAN_HOOK
static void
temp_parallel_explain_per_plan(PlannedStmt *plannedstmt, IntoClause *into,
							   ExplainState *es, const char *queryString,
							   ParamListInfo params,
							   QueryEnvironment *queryEnv)
{
	if (prev_explain_per_plan)
		prev_explain_per_plan(plannedstmt, into, es, queryString, params,
							  queryEnv);
	tp_explain_saving(plannedstmt, es);
}
#else
/*
 * Explain a query.  If another module was to do that, its output does not say
 * why there are no workers: the plan is not known here.
 */
static void
temp_parallel_ExplainOneQuery(Query *query, int cursorOptions,
							  IntoClause *into, ExplainState *es,
							  const char *queryString, ParamListInfo params,
							  QueryEnvironment *queryEnv)
{
	if (prev_ExplainOneQuery)
		prev_ExplainOneQuery(query, cursorOptions, into, es, queryString, params,
							 queryEnv);
	else
	{
		PlannedStmt *stmt = explain_one_query(query, cursorOptions, into, es,
											  queryString, params, queryEnv);

		if (es->format == EXPLAIN_FORMAT_TEXT)
			tp_explain_saving(stmt, es);
	}
}
#endif

/* ----------
 * Invalidations
 * ----------
 */
static void
temp_parallel_relcache_callback(Datum arg, Oid relid)
{
	tp_readonly_relcache_callback(relid);
	tp_refuse_again(relid);
}

/* A worker ends its transaction when it has built its part of an index. */
static void
temp_parallel_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PARALLEL_PRE_COMMIT)
		tp_check_index_worker();
}

/* ----------
 * Loading
 * ----------
 */

/*
 * The server may be another minor release than the one for which this library was built.
 * Raise an error if what the library replaces is not where it was there: the variable of
 * temp_buffers, and the callbacks of heap and btree, as far as core exports them.
 */
static void
check_layout(void)
{
	const TableAmRoutine *heap = GetHeapamTableAmRoutine();
	const IndexAmRoutine *btree = (const IndexAmRoutine *)
		DatumGetPointer(DirectFunctionCall1(bthandler, (Datum) 0));

	if (find_int_setting("temp_buffers")->variable != &num_temp_buffers ||
		heap->type != T_TableAmRoutine ||
		heap->scan_getnextslot != heap_getnextslot ||
		heap->scan_getnextslot_tidrange != heap_getnextslot_tidrange ||
		heap->multi_insert != heap_multi_insert ||
		btree->type != T_IndexAmRoutine || btree->ambuild != btbuild ||
		btree->amrescan != btrescan || btree->amgettuple != btgettuple ||
		btree->amendscan != btendscan || btree->amrestrpos != btrestrpos)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("temp_parallel was built for PostgreSQL %s, and this server differs from it",
						PG_VERSION),
				 errhint("Build temp_parallel again for this server.")));
}

void
_PG_init(void)
{
	/* settings that the session has made before could not be taken over */
	if (IsInParallelMode())
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("cannot load temp_parallel during a parallel operation"),
				errhint("Load it at the start of the session, or mark the function that loads it PARALLEL UNSAFE."));
	check_layout();

	tp_define_index_setting();
	tp_define_settings();
	tp_request_activity();
	tp_register_flush_node();
	tp_register_run_ahead_node();
	tp_readonly_heap_init();
	CacheRegisterRelcacheCallback(temp_parallel_relcache_callback, (Datum) 0);
	RegisterXactCallback(temp_parallel_xact_callback, NULL);

	prev_planner = planner_hook ? planner_hook : standard_planner;
	planner_hook = temp_parallel_planner;
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = temp_parallel_set_rel_pathlist;
	prev_rel_info = rel_info_hook;
	rel_info_hook = temp_parallel_rel_info;
	prev_ExecutorStart = ExecutorStart_hook ? ExecutorStart_hook : standard_ExecutorStart;
	ExecutorStart_hook = temp_parallel_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook ? ExecutorRun_hook : standard_ExecutorRun;
	ExecutorRun_hook = temp_parallel_ExecutorRun;
	prev_ProcessUtility = ProcessUtility_hook ? ProcessUtility_hook : standard_ProcessUtility;
	ProcessUtility_hook = temp_parallel_ProcessUtility;
#ifdef EXPLAIN_HAS_PER_PLAN_HOOK
	prev_explain_per_plan = explain_per_plan_hook;
	explain_per_plan_hook = temp_parallel_explain_per_plan;
#else
	prev_ExplainOneQuery = ExplainOneQuery_hook;
	ExplainOneQuery_hook = temp_parallel_ExplainOneQuery;
#endif
}
