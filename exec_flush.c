/*-------------------------------------------------------------------------
 *
 * exec_flush.c
 *	  Custom Scan (TempFlush): write the tables out before workers read them.
 *
 * A node below Gather that passes on what its child returns.  Its work is done
 * in the callbacks that the leader runs before it launches workers, and only
 * when it does: a cursor, a partial fetch or a statement that the second look
 * left to the leader never comes there, and nothing is written for it.  In a
 * worker, a plan with the node in it opens the door to the tables.
 *
 * The invariant: when a worker starts, every page of every table and index that
 * it may read is in its files as the leader sees it.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "executor/executor.h"
#include "executor/nodeCustom.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pg_list.h"
#include "nodes/value.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

typedef struct TempFlushState
{
	CustomScanState css;
	TempFlushPlan plan;
	PlanState  *gather;			/* in the leader: the node that launches */
	bool		skipped;		/* the second look left it to the leader */
	bool		launched;		/* a launch that is not counted yet */
	int64		written;		/* pages, by all launches of this execution */
	double		time;			/* milliseconds it took */
} TempFlushState;

static Node *temp_flush_create_state(CustomScan *cscan);
static void temp_flush_begin(CustomScanState *css, EState *estate, int eflags);
static void temp_flush_end(CustomScanState *css);
static void temp_flush_rescan(CustomScanState *css);
static TupleTableSlot *temp_flush_exec(CustomScanState *css);
static Size temp_flush_estimate_dsm(CustomScanState *css,
									ParallelContext *pcxt);
static void temp_flush_before_launch(CustomScanState *css,
									 ParallelContext *pcxt, void *coordinate);
static void temp_flush_initialize_worker(CustomScanState *css, shm_toc *toc,
										 void *coordinate);
static void temp_flush_explain(CustomScanState *css, List *ancestors,
							   ExplainState *es);

/* What the leader tells workers at each launch; in dynamic shared memory. */
typedef struct TempFlushShared
{
	int64		tuples_needed;	/* of the Gather, see ExecSetTupleBound() */
} TempFlushShared;

/* in a worker: relations made read-only, and what the leader has told */
static List *worker_relations = NIL;
static TempFlushShared *worker_shared = NULL;

static const CustomScanMethods plan_methods = {
	.CustomName = "TempFlush",
	.CreateCustomScanState = temp_flush_create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = "TempFlush",
	.BeginCustomScan = temp_flush_begin,
	.ExecCustomScan = temp_flush_exec,
	.EndCustomScan = temp_flush_end,
	.ReScanCustomScan = temp_flush_rescan,
	.EstimateDSMCustomScan = temp_flush_estimate_dsm,
	.InitializeDSMCustomScan = temp_flush_before_launch,
	.ReInitializeDSMCustomScan = temp_flush_before_launch,
	.InitializeWorkerCustomScan = temp_flush_initialize_worker,
	.ExplainCustomScan = temp_flush_explain,
};

/* Workers find the node's methods by its name. */
void
tp_flush_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

/* ----------
 * The plan node
 * ----------
 */

/* A target list that takes each column of tlist from varno. */
static List *
pass_through_tlist(List *tlist, int varno)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, tlist)
	{
		TargetEntry *tle = flatCopyTargetEntry(lfirst(lc));

		tle->expr = (Expr *) makeVarFromTargetEntry(varno, lfirst(lc));
		result = lappend(result, tle);
	}
	return result;
}

/*
 * A flush node above child, for the tables of info.  References are set as
 * set_customscan_references() would: the node's columns come from its scan
 * tuple, and that one's from the child.
 */
CustomScan *
tp_make_flush_node(Plan *child, const TempFlushPlan *info, int plan_node_id)
{
	CustomScan *cscan = makeNode(CustomScan);
	Plan	   *plan = &cscan->scan.plan;

	plan->startup_cost = child->startup_cost + info->planned.cost;
	plan->total_cost = child->total_cost + info->planned.cost;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	plan->parallel_aware = true;	/* or the callbacks below Gather are not
									 * called */
	plan->parallel_safe = true;
	plan->plan_node_id = plan_node_id;
	plan->targetlist = pass_through_tlist(child->targetlist, INDEX_VAR);
	plan->lefttree = child;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	set_disabled_nodes(cscan, child);

	cscan->custom_scan_tlist = pass_through_tlist(child->targetlist, OUTER_VAR);

	/*
	 * A worker gets all this as text, in which a Float without a fraction
	 * would come back as an Integer: hence a String for the cost.
	 */
	cscan->custom_private =
		list_make5(info->relids,
				   info->indexes,
				   makeInteger(info->planned.dirtied),
				   makeInteger(info->planned.allocated),
				   makeString(psprintf("%.17g", info->planned.cost)));
	cscan->custom_private = lappend(cscan->custom_private,
									makeInteger(info->pins));
	cscan->custom_private = lappend(cscan->custom_private,
									makeInteger(info->user_code));
	cscan->methods = &plan_methods;
	return cscan;
}

bool
tp_is_flush_node(Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((CustomScan *) plan)->methods == &plan_methods;
}

/* What tp_make_flush_node() was given. */
TempFlushPlan
tp_flush_plan(CustomScan *cscan)
{
	TempFlushPlan info;

	info.relids = (List *) linitial(cscan->custom_private);
	info.indexes = (List *) lsecond(cscan->custom_private);
	info.planned.dirtied = intVal(lthird(cscan->custom_private));
	info.planned.allocated = intVal(lfourth(cscan->custom_private));
	info.planned.cost = strtod(strVal(list_nth(cscan->custom_private, 4)),
							   NULL);
	info.pins = intVal(list_nth(cscan->custom_private, 5));
	info.user_code = intVal(list_nth(cscan->custom_private, 6)) != 0;
	return info;
}

/* ----------
 * Execution: passing rows on
 * ----------
 */

/* Where the node's Gather keeps the number of workers of its last launch. */
static int *
nworkers_launched(TempFlushState *state)
{
	return IsA(state->gather, GatherState) ?
		&((GatherState *) state->gather)->nworkers_launched :
		&((GatherMergeState *) state->gather)->nworkers_launched;
}

/* Count the workers of the last launch. */
static void
count_launched_workers(TempFlushState *state)
{
	if (state->launched)
		tp_session_stats.workers_launched += *nworkers_launched(state);
	state->launched = false;
}

static Node *
temp_flush_create_state(CustomScan *cscan)
{
	TempFlushState *state = palloc0(sizeof(TempFlushState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	state->plan = tp_flush_plan(cscan);
	return (Node *) state;
}

/* The child's row is this node's row: no copy, no projection. */
static TupleTableSlot *
temp_flush_pass_on(PlanState *ps)
{
	return ExecProcNode(outerPlanState(ps));
}

static void
temp_flush_begin(CustomScanState *css, EState *estate, int eflags)
{
	PlanState  *ps = &css->ss.ps;

	outerPlanState(css) = ExecInitNode(outerPlan(ps->plan), estate, eflags);

	/* what the parent sees are the child's slots, of whatever kind */
	ps->resultops = ExecGetResultSlotOps(outerPlanState(css),
										 &ps->resultopsfixed);
	ps->resultopsset = true;

	/* skip nodeCustom.c, one indirect call is enough for every row */
	ps->ExecProcNode = temp_flush_pass_on;
}

static TupleTableSlot *
temp_flush_exec(CustomScanState *css)
{
	return temp_flush_pass_on(&css->ss.ps);
}

static void
temp_flush_rescan(CustomScanState *css)
{
	/* a child with changed parameters is rescanned when it is next executed */
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static void
temp_flush_end(CustomScanState *css)
{
	ExecEndNode(outerPlanState(css));
	tp_readonly_end_in_worker(worker_relations);
	worker_relations = NIL;
	tp_release_other_relations();
}

/* ----------
 * Before and after the launch of workers
 * ----------
 */

/*
 * Cross-check plan_walk.c: whatever temporary table or index the running plan
 * has open below Gather must be among those to flush.  A worker would read the
 * rest from files that nobody has written.
 */
static bool
check_all_found(PlanState *ps, TempFlushPlan *plan)
{
	Relation	rel = NULL;
	Relation	index = NULL;

	switch (nodeTag(ps))
	{
		case T_IndexScanState:
			index = ((IndexScanState *) ps)->iss_RelationDesc;
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		case T_IndexOnlyScanState:
			index = ((IndexOnlyScanState *) ps)->ioss_RelationDesc;
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		case T_BitmapIndexScanState:
			index = ((BitmapIndexScanState *) ps)->biss_RelationDesc;
			break;
		case T_SeqScanState:
		case T_SampleScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
		case T_CustomScanState:
			rel = ((ScanState *) ps)->ss_currentRelation;
			break;
		default:
			break;
	}
	if (rel != NULL && RelationUsesLocalBuffers(rel) &&
		!list_member_oid(plan->relids, RelationGetRelid(rel)))
		elog(ERROR, "temporary table \"%s\" below Gather was not planned to be flushed",
			 RelationGetRelationName(rel));
	if (index != NULL && RelationUsesLocalBuffers(index) &&
		!list_member_oid(plan->indexes, RelationGetRelid(index)))
		elog(ERROR, "index \"%s\" of a temporary table below Gather was not planned to be flushed",
			 RelationGetRelationName(index));

	return planstate_tree_walker(ps, check_all_found, plan);
}

typedef struct NodeSearch
{
	PlanState  *gather;			/* the nearest one above */
	List	   *nodes;			/* found so far */
} NodeSearch;

static bool
search_flush_nodes(PlanState *ps, NodeSearch *search)
{
	PlanState  *gather = search->gather;

	if (IsA(ps, GatherState) || IsA(ps, GatherMergeState))
		search->gather = ps;
	else if (tp_is_flush_node(ps->plan))
	{
		((TempFlushState *) ps)->gather = search->gather;
		/* a subplan can be run by more than one expression */
		search->nodes = list_append_unique_ptr(search->nodes, ps);
	}
	(void) planstate_tree_walker(ps, search_flush_nodes, search);
	search->gather = gather;
	return false;
}

/*
 * The flush nodes, each of which now knows its Gather, of a plan that is about to
 * run: a List of CustomScanState in the current memory context, made only if
 * there are any.
 */
List *
tp_find_flush_nodes(PlanState *root)
{
	NodeSearch	search = {0};
	ListCell   *lc;

	(void) search_flush_nodes(root, &search);

	/*
	 * A subplan need not be linked into the tree yet: ExecWorkTableScan()
	 * initializes its target list when it is first called.
	 */
	foreach(lc, root->state->es_subplanstates)
	{
		if (lfirst(lc) != NULL)
			(void) search_flush_nodes(lfirst(lc), &search);
	}
	return search.nodes;
}

/*
 * For EXPLAIN: the statement runs without parallel mode, for the second look has
 * found that cheaper.
 */
void
tp_skip_flush_nodes(List *flush_nodes)
{
	ListCell   *lc;

	foreach(lc, flush_nodes)
		((TempFlushState *) lfirst(lc))->skipped = true;
	tp_session_stats.left_to_leader++;
}

/*
 * Count the workers that the nodes' Gathers have launched last.  Raises nothing,
 * so that it may be called on the way out of an error.
 */
void
tp_count_launched_workers(List *flush_nodes)
{
	ListCell   *lc;

	foreach(lc, flush_nodes)
		count_launched_workers(lfirst(lc));
}

static Size
temp_flush_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	return sizeof(TempFlushShared);
}

/*
 * In the leader, before each launch of workers: write the tables out.
 */
static void
temp_flush_before_launch(CustomScanState *css, ParallelContext *pcxt,
						 void *coordinate)
{
	TempFlushState *state = (TempFlushState *) css;
	TempFlushShared *shared = coordinate;
	List	   *relations = NIL;
	instr_time	start;
	instr_time	elapsed;
	int64		written;
	ListCell   *lc;

	if (state->gather == NULL)
		elog(ERROR, "flush node does not know its Gather");
	(void) check_all_found(&css->ss.ps, &state->plan);
	if (state->launched)
	{
		count_launched_workers(state);
		/* or they would be counted again if this launch fails */
		*nworkers_launched(state) = 0;
	}
	shared->tuples_needed = IsA(state->gather, GatherState) ?
		((GatherState *) state->gather)->tuples_needed :
		((GatherMergeState *) state->gather)->tuples_needed;

	INSTR_TIME_SET_CURRENT(start);
	foreach(lc, state->plan.relids)
	{
		if (!tp_table_is_readonly(lfirst_oid(lc)))
			elog(ERROR, "temporary table \"%s\" is about to be read by workers but is not read-only",
				 get_rel_name(lfirst_oid(lc)));
		relations = list_concat(relations,
								tp_family_open_part(lfirst_oid(lc),
													  state->plan.indexes));
	}
	written = tp_flush_local_buffers_of(relations);
	tp_family_close(relations);

	INSTR_TIME_SET_CURRENT(elapsed);
	INSTR_TIME_SUBTRACT(elapsed, start);
	state->written += written;
	state->time += INSTR_TIME_GET_MILLISEC(elapsed);
	state->launched = true;

	tp_session_stats.flushes++;
	tp_session_stats.pages_flushed += written;
	tp_session_stats.flush_time += INSTR_TIME_GET_MILLISEC(elapsed);
}

/*
 * A worker is sent every subplan of the statement that is parallel safe, and
 * initializes them all, also those that only the leader runs.  Take these out,
 * as the server does with unsafe ones: the tables that they read are not
 * flushed, and some index access methods read a page of the index when a scan
 * is initialized.  stmt is the worker's own copy.
 *
 * An unknown node may run any of them, so that all stay.  No temporary table is
 * in that statement, or the leader would have launched no workers for it (see
 * tp_place_flush_nodes()).
 */
static void
leave_out_other_subplans(PlannedStmt *stmt)
{
	PlanContents own = tp_plan_contents(stmt->planTree, stmt->rtable,
									 stmt->subplans);
	int			plan_id = 0;
	ListCell   *lc;

	if (own.unknown)
		return;
	foreach(lc, stmt->subplans)
	{
		if (!bms_is_member(++plan_id, own.subplans))
			lfirst(lc) = NULL;
	}
}

/*
 * In a worker, before its plan is initialized: BRIN, SP-GiST and bloom read a
 * page of their index as soon as a scan begins, and subplans begin theirs
 * before the plan that has the node.
 */
void
tp_flush_enter_worker(QueryDesc *queryDesc)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	CustomScan *flush;
	TempFlushPlan plan;

	Assert(IsParallelWorker());

	/* a statement that a function runs has another destination */
	if (queryDesc->dest->mydest != DestTupleQueue)
		return;
	if (tp_session_has_temp_tables())
		leave_out_other_subplans(stmt);
	flush = tp_find_flush_node(stmt->planTree);
	if (flush == NULL)
		return;
	plan = tp_flush_plan(flush);
	worker_relations = tp_readonly_begin_in_worker(plan.relids);
	tp_worker_open_local_buffers(linitial(worker_relations), plan.pins);
	if (plan.user_code)
		tp_refuse_other_relations(plan.relids, plan.indexes);
}

/*
 * In a worker, when its plan has been initialized: check that it reads nothing
 * but what the flush node lists.
 */
void
tp_flush_check_worker(QueryDesc *queryDesc)
{
	CustomScan *flush;
	TempFlushPlan plan;

	Assert(IsParallelWorker());
	if (queryDesc->dest->mydest != DestTupleQueue || worker_relations == NIL)
		return;
	flush = tp_find_flush_node(queryDesc->plannedstmt->planTree);
	plan = tp_flush_plan(flush);
	(void) check_all_found(queryDesc->planstate, &plan);
}

static void
temp_flush_initialize_worker(CustomScanState *css, shm_toc *toc,
							 void *coordinate)
{
	/* tp_flush_enter_worker() has been here */
	Assert(worker_relations != NIL);
	worker_shared = coordinate;
}

/*
 * In a worker: run the executor.
 *
 * When workers are launched again, ExecParallelReinitialize() leaves their tuple
 * bound at that of the first launch.  With another LIMIT or OFFSET a worker then
 * returns too few rows, over permanent tables too.  Here the bound is that of this
 * launch.
 */
void
tp_flush_run_in_worker(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	Assert(IsParallelWorker());
	if (queryDesc->dest->mydest == DestTupleQueue && worker_shared != NULL)
	{
		tp_check_sent_values(queryDesc);
		ExecSetTupleBound(worker_shared->tuples_needed, queryDesc->planstate);
		count = Max(worker_shared->tuples_needed, 0);	/* 0 stands for all */
	}
	tp_run_with_hint(next, EXECUTOR_RUN_PASS);
}

/* ----------
 * EXPLAIN
 * ----------
 */
static void
temp_flush_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	TempFlushState *state = (TempFlushState *) css;
	FlushCost  *planned = &state->plan.planned;
	bool		as_text = es->format == EXPLAIN_FORMAT_TEXT;

	if (es->verbose)
	{
		List	   *names = NIL;
		ListCell   *lc;

		foreach(lc, state->plan.relids)
			names = lappend(names, get_rel_name(lfirst_oid(lc)));
		ExplainPropertyList("Flushed Tables", names, es);

		names = NIL;
		foreach(lc, state->plan.indexes)
			names = lappend(names, get_rel_name(lfirst_oid(lc)));
		if (names != NIL)
			ExplainPropertyList("Flushed Indexes", names, es);
	}

	if (es->costs && as_text)
		ExplainPropertyText("Flush Planned",
							psprintf("dirtied=%d allocated=%d cost=%.2f",
									 planned->dirtied, planned->allocated,
									 planned->cost), es);
	else if (es->costs)
	{
		ExplainPropertyInteger("Planned Dirtied Buffers", NULL,
							   planned->dirtied, es);
		ExplainPropertyInteger("Planned Allocated Buffers", NULL,
							   planned->allocated, es);
		ExplainPropertyFloat("Planned Flush Cost", NULL, planned->cost, 2, es);
	}

	if (!es->analyze)
		return;

	if (state->skipped)
	{
		ExplainPropertyText("Flush Skipped", "the leader alone is cheaper now",
							es);
		return;
	}
	if (as_text)
		ExplainPropertyText("Flushed",
							es->timing ?
							psprintf("written=" INT64_FORMAT " time=%.3f ms",
									 state->written, state->time) :
							psprintf("written=" INT64_FORMAT, state->written),
							es);
	else
	{
		ExplainPropertyInteger("Flush Written Buffers", NULL,
							   state->written, es);
		if (es->timing)
			ExplainPropertyFloat("Flush Time", "ms", state->time, 3, es);
	}
}
