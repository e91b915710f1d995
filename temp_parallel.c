/*-------------------------------------------------------------------------
 *
 * temp_parallel.c
 *	  Module entry points: GUCs and hooks.
 *
 * A statement passes the hooks in this order: the planner (plan_insert.c allows
 * workers for the SELECT of an INSERT, plan_paths.c makes paths that workers may
 * run, plan_gather_cost.c charges the Gather with the flush, plan_flush_node.c
 * puts the flush node into the finished plan), the start of the executor
 * (exec_sent_values.c), and its run (exec_run.c, exec_select_node.c).  There
 * exec_second_look.c may leave the plan to the leader; otherwise the flush node
 * (exec_flush.c) writes the tables out, and the workers read them
 * (exec_worker.c).
 *
 * Every hook calls the one that was set before it.  Most statements of most
 * sessions have nothing to do with temporary tables, so each hook first checks
 * here, by inexpensive conditions, whether it has anything to do.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "storage/bufmgr.h"
#include "tcop/utility.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "exec.h"
#include "readonly.h"

TP_MODULE_MAGIC;

static planner_hook_type prev_planner = NULL;
static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;
#ifdef PLANNER_HAS_SETUP_HOOK
static planner_setup_hook_type prev_planner_setup = NULL;
#else
static get_relation_info_hook_type prev_get_relation_info = NULL;
#endif
static join_search_hook_type prev_join_search = NULL;
static create_upper_paths_hook_type prev_create_upper_paths = NULL;
static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;
#ifdef EXPLAIN_HAS_PER_PLAN_HOOK
static explain_per_plan_hook_type prev_explain_per_plan = NULL;
#else
static ExplainOneQuery_hook_type prev_ExplainOneQuery = NULL;

/* the query that is being explained, and its plan once it has one */
typedef struct Explained
{
	Query	   *query;
	PlannedStmt *stmt;
} Explained;

static Explained explained = {NULL, NULL};
#endif

void		_PG_init(void);

/* ----------
 * Planner
 * ----------
 */

/*
 * stmt, a plan of parse, flushes tables, and its workers would look rows up in more
 * pages than they have local buffers, which costs copies.  Returns a plan that
 * flushes none if that is better; otherwise stmt.
 */
static PlannedStmt *
plan_without_copies(PlannedStmt *stmt, Cost copies, PLANNER_HOOK_ARGS)
{
	PlannedStmt *other;

	other = tp_planner_with_flush_cost(prev_planner, PLANNER_HOOK_PASS, NULL);
	return tp_costs_less_with_copies(other, stmt->planTree->total_cost + copies) ?
		other : stmt;
}

/*
 * Plan a statement whose workers may read temporary tables.  The planner modifies its
 * Query, so a second planning gets a copy.  That can be needed only if tables have more
 * pages than there are local buffers, and then all of these have been used.
 */
static PlannedStmt *
plan_with_workers(PLANNER_HOOK_ARGS)
{
	Query	   *copy = tp_buffer_was_used(num_temp_buffers - 1) &&
		tp_may_read_temp_table(parse) ? copyObject(parse) : NULL;
	FlushCharges charges = {0};
	List	   *flushed = NIL;
	PlannedStmt *stmt;

	charges.user_code = tp_user_code_matters(parse);
	stmt = tp_planner_with_flush_cost(prev_planner, PLANNER_HOOK_PASS, &charges);
	if (stmt->parallelModeNeeded)
		flushed = tp_place_flush_nodes(stmt, &charges);
	if (copy != NULL && flushed != NIL)
	{
		Cost		copies = tp_cost_of_copies_in_worker(stmt);

		parse = copy;
		if (copies > 0)
		{
			PlannedStmt *other = plan_without_copies(stmt, copies,
													 PLANNER_HOOK_PASS);

			if (other != stmt)
				return other;
		}
	}
	tp_attach_savings(stmt, flushed, charges.savings);
	return stmt;
}

/* Note stmt, the plan of parse, if parse is the query being explained. */
static void
note_explained(Query *parse, PlannedStmt *stmt)
{
#ifndef EXPLAIN_HAS_PER_PLAN_HOOK
	if (parse == explained.query)
		explained.stmt = stmt;
#endif
}

/* Plan a statement whose workers do without temporary tables, if it has any. */
static PlannedStmt *
plan_without_temp_tables(PLANNER_HOOK_ARGS)
{
	/* a nested planner call must not inherit the outer call's charge */
	if (tp_planning_temp_tables())
		return tp_planner_with_flush_cost(prev_planner, PLANNER_HOOK_PASS, NULL);
	if (prev_planner)
		return prev_planner(PLANNER_HOOK_PASS);
	return standard_planner(PLANNER_HOOK_PASS);
}

/*
 * Plan a statement with workers, an INSERT if hazard is not 0, or without.  A
 * nested planner call must not inherit the hazard of the outer one either.
 */
static PlannedStmt *
plan_with_hazard(char hazard, bool with_workers, PLANNER_HOOK_ARGS)
{
	PlannedStmt *volatile result;
	InsertPlanning call;

	tp_begin_planning_insert(&call, hazard);
	PG_TRY();
	{
		result = with_workers ? plan_with_workers(PLANNER_HOOK_PASS) :
			plan_without_temp_tables(PLANNER_HOOK_PASS);
	}
	PG_FINALLY();
	{
		tp_end_planning_insert(&call);
	}
	PG_END_TRY();
	return result;
}

static PlannedStmt *
plan_statement(bool with_workers, PLANNER_HOOK_ARGS)
{
	if (tp_planning_insert())
		return plan_with_hazard(0, with_workers, PLANNER_HOOK_PASS);
	return with_workers ? plan_with_workers(PLANNER_HOOK_PASS) :
		plan_without_temp_tables(PLANNER_HOOK_PASS);
}

/*
 * Plan INSERT INTO ... SELECT, with workers unless plan_insert.c refuses them, or
 * it is not better with the cost of keeping the rows, which depends on their number
 * and is not known before they have been planned.
 */
static PlannedStmt *
plan_insert_select(PLANNER_HOOK_ARGS)
{
	char		hazard;
	InsertRefusal refusal = tp_insert_refusal(parse, &hazard);
	PlannedStmt *parallel = NULL;
	PlannedStmt *stmt;

	if (refusal == INSERT_MAY_BE_PARALLEL)
	{
		Query	   *copy = copyObject(parse);

		parallel = plan_with_hazard(hazard, true, PLANNER_HOOK_PASS);
		if (!parallel->parallelModeNeeded)
			return parallel;
		if (tp_rows_exceed_file_limit(outerPlan(parallel->planTree)))
			refusal = INSERT_KEEPS_TOO_MUCH;
		tp_place_select_node(parallel);
		parse = copy;
	}
	stmt = plan_statement(false, PLANNER_HOOK_PASS);
	if (refusal == INSERT_MAY_BE_PARALLEL)
		return plan_costs_less(stmt->planTree, parallel->planTree) ?
			stmt : parallel;
	if (refusal != INSERT_OTHER_TARGET)
		tp_note_serial_insert(stmt, refusal);
	return stmt;
}

static PlannedStmt *
temp_parallel_planner(PLANNER_HOOK_ARGS)
{
	Query	   *query = parse;	/* which the planner modifies */
	bool		consider_temp;
	PlannedStmt *stmt;

	tp_account_close_empty();
	if (IsParallelWorker())
		tp_worker_refuse_query(parse);

	/*
	 * With "regress", which is for the server's tests, EXPLAIN hides the
	 * Gather, as if there were no workers, but would show the flush node.
	 */
	consider_temp = tp_enabled &&
		tp_session_has_temp_tables() &&
		debug_parallel_query != DEBUG_PARALLEL_REGRESS &&
		(cursorOptions & CURSOR_OPT_PARALLEL_OK) != 0 &&
		max_parallel_workers_per_gather > 0 &&
		!IsParallelWorker();

	if (consider_temp && tp_insert_select && tp_is_insert_select(parse))
		stmt = plan_insert_select(PLANNER_HOOK_PASS);
	else
		stmt = plan_statement(consider_temp &&
							  parse->commandType == CMD_SELECT,
							  PLANNER_HOOK_PASS);
	if (consider_temp)
		note_explained(query, stmt);
	return stmt;
}

static void
temp_parallel_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti,
							   RangeTblEntry *rte)
{
	/* children are treated with their topmost parent */
	if (rel->reloptkind == RELOPT_BASEREL && tp_planning_temp_tables())
	{
		tp_add_worker_visible_paths(root, rel, rti, rte);
		tp_charge_gather_of_rel(root, rel);
	}
	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
}

#ifdef PLANNER_HAS_SETUP_HOOK
static void
temp_parallel_planner_setup(PLANNER_SETUP_HOOK_ARGS)
{
	tp_allow_parallel_insert(glob, parse);
	if (prev_planner_setup)
		prev_planner_setup(PLANNER_SETUP_HOOK_PASS);
}
#else
static void
temp_parallel_get_relation_info(PlannerInfo *root, Oid relid, bool inhparent,
								RelOptInfo *rel)
{
	if (prev_get_relation_info)
		prev_get_relation_info(root, relid, inhparent, rel);
	if (tp_planning_insert())
	{
		PlannerInfo *top = root;

		while (top->parent_root != NULL)
			top = top->parent_root;
		tp_allow_parallel_insert(root->glob, top->parse);
	}
}
#endif

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
	if (stage == UPPERREL_FINAL && tp_planning_temp_tables())
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

/* Start the executor for a statement that may send parameters to workers. */
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
}

static void
temp_parallel_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (IsParallelWorker())
	{
		tp_worker_refuse_statement(queryDesc->plannedstmt->rtable);
		tp_worker_begin(queryDesc);
		start_executor(queryDesc, eflags);
		tp_worker_check(queryDesc);
		return;
	}

	tp_account_close_empty();
	if (tp_enabled && (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		tp_share_before((Node *) queryDesc->plannedstmt);
	if (tp_needs_parallel_mode(queryDesc->plannedstmt) &&
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
		tp_worker_run(prev_ExecutorRun, EXECUTOR_RUN_PASS);
	else if (queryDesc->plannedstmt->parallelModeNeeded &&
			 tp_session_has_temp_tables())
		tp_run_in_leader(prev_ExecutorRun, EXECUTOR_RUN_PASS);
	else if (prev_ExecutorRun)
		prev_ExecutorRun(EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(EXECUTOR_RUN_PASS);
}

/*
 * Add the saving of queryDesc's plan, which has one and has run to its end, to
 * the accounts of its tables.
 */
static void
credit_statement(QueryDesc *queryDesc)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "saving of a statement",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	if (tp_credit_savings(tp_savings_of(queryDesc->plannedstmt),
						  queryDesc->planstate))
		tp_session_stats.serial_by_flush++;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

static void
temp_parallel_ExecutorRun(EXECUTOR_RUN_ARGS)
{
	bool		complete = count == 0 && !queryDesc->already_executed &&
		!ScanDirectionIsNoMovement(direction);

	run_executor(EXECUTOR_RUN_PASS);
	if (complete && tp_enabled && tp_has_savings(queryDesc->plannedstmt))
		credit_statement(queryDesc);
}

static void
temp_parallel_ProcessUtility(PROCESS_UTILITY_ARGS)
{
	bool		truncates = IsA(pstmt->utilityStmt, TruncateStmt);

	tp_account_close_empty();
	if (IsParallelWorker())
		tp_worker_refuse_utility(pstmt->utilityStmt);
	else if (tp_enabled)
		tp_share_before(pstmt->utilityStmt);

	if (prev_ProcessUtility)
		prev_ProcessUtility(PROCESS_UTILITY_PASS);
	else
		standard_ProcessUtility(PROCESS_UTILITY_PASS);

	/* may have truncated a new table's file in place; pstmt may be freed */
	if (truncates)
		tp_account_files_changed();
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
/* ExplainOneQuery_hook's arguments, as one for a function with PG_TRY() */
typedef struct ExplainCall
{
	Query	   *query;
	int			cursorOptions;
	IntoClause *into;
	ExplainState *es;
	const char *queryString;
	ParamListInfo params;
	QueryEnvironment *queryEnv;
} ExplainCall;

/* Explain a query, and its saving if it has one. */
static void
explain_with_saving(const ExplainCall *call)
{
	explained.query = call->query;
	explained.stmt = NULL;
	if (prev_ExplainOneQuery)
		prev_ExplainOneQuery(call->query, call->cursorOptions, call->into,
							 call->es, call->queryString, call->params,
							 call->queryEnv);
	else
		explain_one_query(call->query, call->cursorOptions, call->into,
						  call->es, call->queryString, call->params,
						  call->queryEnv);
	if (explained.stmt != NULL && call->es->format == EXPLAIN_FORMAT_TEXT)
		tp_explain_saving(explained.stmt, call->es);
}

/*
 * The same, and restore the state of an outer EXPLAIN.  The query may execute
 * functions that explain other queries, and catch their errors.  Not with
 * PG_FINALLY(): gcc warns that longjmp() might clobber a variable of that
 * macro.
 */
static void
explain_nested(const ExplainCall *call)
{
	Explained	outer = explained;

	PG_TRY();
	{
		explain_with_saving(call);
	}
	PG_CATCH();
	{
		explained = outer;
		PG_RE_THROW();
	}
	PG_END_TRY();
	explained = outer;
}

static void
temp_parallel_ExplainOneQuery(Query *query, int cursorOptions,
							  IntoClause *into, ExplainState *es,
							  const char *queryString, ParamListInfo params,
							  QueryEnvironment *queryEnv)
{
	ExplainCall call = {query, cursorOptions, into, es, queryString, params,
	queryEnv};

	explain_nested(&call);
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

/*
 * A transaction with an ID may have removed or emptied files, or will when this
 * callback returns.  An error here would be a PANIC, so nothing that can fail is
 * done before the next statement.
 */
static void
temp_parallel_xact_callback(XactEvent event, void *arg)
{
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		tp_account_files_changed();
}

/* ----------
 * Loading
 * ----------
 */
void
_PG_init(void)
{
	/* settings that the session has made before could not be taken over */
	if (IsInParallelMode())
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("cannot load temp_parallel during a parallel operation"),
				errhint("Load it at the start of the session, or mark the function that loads it PARALLEL UNSAFE."));

	tp_define_settings();
	tp_register_flush_node();
	tp_register_select_node();
	tp_readonly_heap_init();
	CacheRegisterRelcacheCallback(temp_parallel_relcache_callback, (Datum) 0);
	RegisterXactCallback(temp_parallel_xact_callback, NULL);

	prev_planner = planner_hook;
	planner_hook = temp_parallel_planner;
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = temp_parallel_set_rel_pathlist;
#ifdef PLANNER_HAS_SETUP_HOOK
	prev_planner_setup = planner_setup_hook;
	planner_setup_hook = temp_parallel_planner_setup;
#else
	prev_get_relation_info = get_relation_info_hook;
	get_relation_info_hook = temp_parallel_get_relation_info;
#endif
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
#ifdef EXPLAIN_HAS_PER_PLAN_HOOK
	prev_explain_per_plan = explain_per_plan_hook;
	explain_per_plan_hook = temp_parallel_explain_per_plan;
#else
	prev_ExplainOneQuery = ExplainOneQuery_hook;
	ExplainOneQuery_hook = temp_parallel_ExplainOneQuery;
#endif
}
