/*-------------------------------------------------------------------------
 *
 * exec_flush.c
 *	  Execution of the flush node, Custom Scan (TempFlush), which has the dirty pages
 *	  of temporary tables written, or listed, before workers read them.
 *
 * The node stands below a Gather and returns its child's rows.  It flushes in the callbacks
 * that the executor calls in the leader before it launches workers, not for a cursor, a
 * partial fetch, or a plan that is left to the leader.  A worker with the node in its plan
 * gets access to the node's tables (exec_worker.c).
 *
 * Where the planner has limited the number of processes (plan_processors.c), the node has no
 * more workers launched, and in the leader returns no rows once there are that many.
 *
 * The invariant: when a worker starts, its plan's tables are read-only, and every page
 * of each table and index that it may read is in the files as the leader sees it, or
 * listed for the worker.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "portability/instr_time.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "exec.h"
#include "readonly.h"

typedef struct TempFlushState
{
	CustomScanState css;
	FlushPlan	plan;
	Oid			user;			/* when the execution began */
	PlanState  *gather;			/* in the leader: the Gather above */
	const char *skipped;		/* why it was left to the leader, or NULL */
	int			limit;			/* pages to list that are not listed yet */
	int			capacity;		/* pages for which shared has room */
	bool		many_to_write;	/* besides, in the next launch? */
	FlushShared *shared;		/* in the leader, while the Gather has it */
	int64		pages_shared;	/* by all launches of this execution */
	int64		written;		/* pages, by the same */
	double		time;			/* of these, milliseconds */
} TempFlushState;

/* Writing more pages than this takes longer than to ask whether a worker is free. */
#define MANY_TO_WRITE	1024

static const CustomExecMethods exec_methods;

/* ----------
 * Execution: passing rows on
 * ----------
 */

/* A field that Gather and Gather Merge have in common, of the node's. */
#define GATHER_FIELD(state, field) \
	(*(IsA((state)->gather, GatherState) ? \
	   &((GatherState *) (state)->gather)->field : \
	   &((GatherMergeState *) (state)->gather)->field))

static Node *
temp_flush_create_state(CustomScan *cscan)
{
	TempFlushState *state = palloc0(sizeof(TempFlushState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	state->plan = tp_flush_plan(cscan);
	return (Node *) state;
}

/*
 * Has the last launch got as many workers as processes may run the plan below?  False in
 * a worker.
 */
static bool
leader_only_gathers(TempFlushState *state)
{
	return state->plan.processes > 0 && state->gather != NULL &&
		GATHER_FIELD(state, nworkers_launched) >= state->plan.processes;
}

/*
 * The child's row is this node's row: no copy, no projection.  To the Gather, no row
 * means that the leader has no more rows to add to those of the workers.  In a run without
 * parallel mode, the Gather still says how many workers it had in the one before.
 * Replaces ExecCustomScan() of nodeCustom.c.
 */
static TupleTableSlot *
temp_flush_pass_on(PlanState *ps)
{
	if (leader_only_gathers((TempFlushState *) ps) && ps->state->es_use_parallel_mode)
		return NULL;
	return ExecProcNode(outerPlanState(ps));
}

/* Called at the end of ExecInitCustomScan() of nodeCustom.c. */
static void
temp_flush_begin(CustomScanState *css, EState *estate, int eflags)
{
	PlanState  *ps = &css->ss.ps;

	((TempFlushState *) css)->user = GetUserId();
	outerPlanState(css) = ExecInitNode(outerPlan(ps->plan), estate, eflags);

	/* the parent gets the child's slots, of whatever kind */
	ps->resultops = ExecGetResultSlotOps(outerPlanState(css),
										 &ps->resultopsfixed);
	ps->resultopsset = true;

	/* bypass nodeCustom.c: one indirect call for each row is enough */
	ps->ExecProcNode = temp_flush_pass_on;
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
	if (IsParallelWorker())
		tp_worker_end();
}

/* ----------
 * Before and after the launch of workers
 * ----------
 */

typedef struct NodeSearch
{
	PlanState  *gather;			/* the nearest one above */
	List	   *flush_nodes;	/* found so far */
} NodeSearch;

static bool
search_nodes(PlanState *ps, NodeSearch *search)
{
	PlanState  *gather = search->gather;

	if (IsA(ps, GatherState) || IsA(ps, GatherMergeState))
		search->gather = ps;
	else if (tp_is_flush_node(ps->plan))
	{
		/* several expressions can share a subplan: it may be found again */
		((TempFlushState *) ps)->gather = search->gather;
		search->flush_nodes = list_append_unique_ptr(search->flush_nodes, ps);
	}
	(void) planstate_tree_walker(ps, search_nodes, search);
	search->gather = gather;
	return false;
}

/*
 * The flush nodes of the plan whose topmost node is root, and which is about to
 * run, without duplicates, in a List in the current memory context.  Tells each its
 * Gather or Gather Merge.
 */
List *
tp_find_flush_nodes(PlanState *root)
{
	NodeSearch	search = {0};
	ListCell   *lc;

	(void) search_nodes(root, &search);

	/*
	 * A subplan may not be linked into the tree yet: ExecWorkTableScan()
	 * initializes its projection when it is first called.
	 */
	foreach(lc, root->state->es_subplanstates)
	{
		if (lfirst(lc) != NULL)
			(void) search_nodes(lfirst(lc), &search);
	}
	return search.flush_nodes;
}

/* Returns flush_node's FlushPlan, a part of the node's state. */
const FlushPlan *
tp_flush_node_plan(CustomScanState *flush_node)
{
	return &((TempFlushState *) flush_node)->plan;
}

/* Returns the role that began the execution of flush_node's plan. */
Oid
tp_flush_node_user(CustomScanState *flush_node)
{
	return ((TempFlushState *) flush_node)->user;
}

/*
 * Note, for EXPLAIN and the session's counters, that the statement of flush_nodes
 * is left to the leader, because of reason, a constant.
 */
void
tp_skip_flush_nodes(List *flush_nodes, const char *reason)
{
	ListCell   *lc;

	foreach(lc, flush_nodes)
		((TempFlushState *) lfirst(lc))->skipped = reason;
	if (flush_nodes == NIL)
		return;
	tp_session_stats->left_to_leader++;
	tp_count_serial(reason);
}

/*
 * Note, in the leader, whether workers of the last launch could map its memory.  The
 * Gather calls this before it releases the dynamic shared memory.  Raises nothing.
 */
static void
temp_flush_note_mapping(CustomScanState *css)
{
	TempFlushState *state = (TempFlushState *) css;

	if (state->shared != NULL && GATHER_FIELD(state, pei) != NULL)
		tp_note_mapping(state->shared);
}

/*
 * When the statement of flush_nodes has ended, also by an error: count the workers that
 * their Gathers launched last, and note what these report.  Raises nothing.
 */
void
tp_look_at_workers(List *flush_nodes)
{
	ListCell   *lc;

	foreach(lc, flush_nodes)
	{
		TempFlushState *state = lfirst(lc);

		tp_session_stats->workers_launched += GATHER_FIELD(state, nworkers_launched);
		temp_flush_note_mapping(&state->css);
	}
}

/* Does the leader run the plan, too, whether workers do or not? */
static bool
leader_runs(TempFlushState *state)
{
	return parallel_leader_participation && state->plan.processes == 0 &&
		!(IsA(state->gather, GatherState) &&
		  ((Gather *) state->gather->plan)->single_copy);
}

/*
 * Are there pages that must not be written, as other workers read them in the leader's
 * memory, without a leader that runs the plan if new workers cannot map that memory?
 */
static bool
may_lack_pages(TempFlushState *state)
{
	return tp_listed_buffers() > 0 && !tp_workers_can_map() && !leader_runs(state);
}

static Size
temp_flush_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	TempFlushState *state = (TempFlushState *) css;
	FlushCost	cost;

	if (state->gather == NULL)
		elog(ERROR, "flush node does not know its Gather");

	/*
	 * Workers should read dirty pages in the leader's memory, unless it is
	 * cheaper to write them.  Workers that cannot do not run the plan, so the
	 * leader has to, or it must be known that they can.
	 */
	cost = tp_flush_estimate(state->plan.relids, state->plan.indexes,
							 state->plan.any_user_code);
	state->limit = 0;
	if (cost.share && (tp_workers_can_map() || leader_runs(state)))
		state->limit = cost.shareable;
	state->many_to_write = cost.dirtied - state->limit > MANY_TO_WRITE;
	/* a launch before which others have listed more has no workers */
	state->capacity = state->limit + tp_listed_buffers();
	/* for the key under which a worker finds it before it knows the node */
	shm_toc_estimate_keys(&pcxt->estimator, 1);
	return add_size(offsetof(FlushShared, pages),
					mul_size(state->capacity, sizeof(SharedPage)));
}

/*
 * In the leader, before each launch of workers: list the dirty pages of the
 * node's tables, TOAST tables and listed indexes for them, or write these pages,
 * which settles the tables' accounts; tell the workers the tuple bound, and have no
 * more workers launched than there may be processes.  Raises an internal error if a table
 * is not in a read-only phase or the plan reads one that is not in the node's lists, and
 * what the storage manager raises.  ExecGather() of nodeGather.c and ExecGatherMerge() of
 * nodeGatherMerge.c call it through execParallel.c.
 */
static void
temp_flush_before_launch(CustomScanState *css, ParallelContext *pcxt,
						 void *coordinate)
{
	TempFlushState *state = (TempFlushState *) css;
	const FlushPlan *plan = &state->plan;
	FlushShared *shared = coordinate;
	MemoryContext context;
	MemoryContext old;
	instr_time	start;
	instr_time	elapsed;
	int64		written;
	ListCell   *lc;

	tp_check_flushed(&css->ss.ps, plan);
	foreach(lc, plan->relids)
	{
		if (!tp_table_is_readonly(lfirst_oid(lc)))
			elog(ERROR, "temporary table \"%s\" is about to be read by workers but is not read-only",
				 get_rel_name(lfirst_oid(lc)));
	}
	temp_flush_note_mapping(css);
	if (!tp_sharing())
		state->limit = 0;
	/* those of the last launch, which are not counted again if this one fails */
	tp_session_stats->workers_launched += GATHER_FIELD(state, nworkers_launched);
	GATHER_FIELD(state, nworkers_launched) = 0;
	if (plan->processes == 1)
		state->skipped = "too few processors for work that each process repeats";
	else if (tp_sends_temp_toast_pointer(state->gather))
		state->skipped = "a parameter is a value in a temporary table's TOAST table";
	else if (may_lack_pages(state))
		state->skipped = "it is not known whether workers can read the leader's memory";
	else if (pcxt->nworkers == 0)
		state->skipped = "no dynamic shared memory is left for workers";
	else if (tp_processors_are_busy(state->gather->plan->total_cost))
		state->skipped = "other processes use the processors";
	else if (state->many_to_write && !tp_worker_is_free())
		state->skipped = "no worker is free";
	else
		state->skipped = NULL;
	if (state->skipped != NULL)
	{
		ReinitializeParallelWorkers(pcxt, 0);
		return;
	}
	ReinitializeParallelWorkers(pcxt, plan->processes > 0 ?
								Min(plan->processes, pcxt->nworkers) :
								pcxt->nworkers);
	shared->tuples_needed = GATHER_FIELD(state, tuples_needed);
	shared->pool = tp_pool_size();
	shared->leader_runs = leader_runs(state);
	if (plan->relids == NIL)
		return;

	/* there may be many launches in a statement */
	context = AllocSetContextCreate(CurrentMemoryContext, "launch of workers",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	INSTR_TIME_SET_CURRENT(start);
	/* the leader needs buffers for the whole statement meanwhile */
	written = tp_flush_tables(plan->relids, plan->indexes, shared, state->limit,
							  Min(tp_most_shared_pages(plan->any_user_code),
								  tp_most_pins() - plan->leader_pins));
	INSTR_TIME_SET_CURRENT(elapsed);
	INSTR_TIME_SUBTRACT(elapsed, start);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	if (written < 0)
	{
		state->skipped = "workers of another Gather read more pages than it can list";
		ReinitializeParallelWorkers(pcxt, 0);
		return;
	}
	state->many_to_write = false;

	state->pages_shared += shared->npages;
	state->written += written;
	state->time += INSTR_TIME_GET_MILLISEC(elapsed);

	tp_session_stats->flushes++;
	tp_session_stats->pages_flushed += written;
	tp_session_stats->pages_shared += shared->npages;
	tp_session_stats->flush_time += INSTR_TIME_GET_MILLISEC(elapsed);
}

/* The first launch of workers by pcxt. */
static void
temp_flush_initialize_dsm(CustomScanState *css, ParallelContext *pcxt,
						  void *coordinate)
{
	TempFlushState *state = (TempFlushState *) css;

	state->shared = coordinate;
	memset(state->shared, 0, offsetof(FlushShared, pages));
	state->shared->capacity = state->capacity;
	state->shared->try_map = tp_sharing() && !tp_workers_can_map();
	shm_toc_insert(pcxt->toc, FLUSH_SHARED_KEY, state->shared);
	temp_flush_before_launch(css, pcxt, coordinate);
}

/* ----------
 * EXPLAIN
 * ----------
 */

static void
temp_flush_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	TempFlushState *state = (TempFlushState *) css;
	const FlushCost *planned = &state->plan.planned;
	const ExplainNumber flush[] = {
		{"dirtied", "Planned Dirtied Buffers", planned->dirtied},
		{"allocated", "Planned Allocated Buffers", planned->allocated},
		{"cost", "Planned Flush Cost", planned->cost + planned->search, 2}
	};
	const ExplainNumber share[] = {
		{"pages", "Planned Pages Shared", planned->shareable},
		{"cost", "Planned Share Cost", planned->charge + planned->search, 2}
	};
	const ExplainNumber shared[] = {{"pages", "Pages Shared", state->pages_shared}};
	const ExplainNumber flushed[] = {
		{"written", "Flush Written Buffers", state->written},
		{"time", "Flush Time", state->time, 3, "ms"}
	};

	if (es->verbose)
	{
		tp_explain_names("Flushed Tables", state->plan.relids, es);
		tp_explain_names("Flushed Indexes", state->plan.indexes, es);
	}
	if (es->costs)
		tp_explain_numbers("Flush Planned", flush, lengthof(flush), es);
	if (es->costs && planned->share)
		tp_explain_numbers("Share Planned", share, lengthof(share), es);
	if (state->plan.processes > 0 && (!es->analyze || leader_only_gathers(state)))
	{
		ExplainPropertyText("Leader", state->plan.processes == 1 ? "alone" : "gathers only", es);
		ExplainPropertyInteger("Processes", NULL, state->plan.processes, es);
	}
	if (es->analyze && state->skipped != NULL)
		ExplainPropertyText("Flush Skipped", state->skipped, es);
	else if (es->analyze)
	{
		if (state->pages_shared > 0 || es->format != EXPLAIN_FORMAT_TEXT)
			tp_explain_numbers("Shared", shared, 1, es);
		tp_explain_numbers("Flushed", flushed, es->timing ? 2 : 1, es);
	}
}

/* ----------
 * The node's methods
 * ----------
 */
static const CustomScanMethods plan_methods = {
	.CustomName = FLUSH_NODE_NAME,
	.CreateCustomScanState = temp_flush_create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = FLUSH_NODE_NAME,
	.BeginCustomScan = temp_flush_begin,
	.EndCustomScan = temp_flush_end,
	.ReScanCustomScan = temp_flush_rescan,
	.ShutdownCustomScan = temp_flush_note_mapping,
	.EstimateDSMCustomScan = temp_flush_estimate_dsm,
	.InitializeDSMCustomScan = temp_flush_initialize_dsm,
	.ReInitializeDSMCustomScan = temp_flush_before_launch,
	.ExplainCustomScan = temp_flush_explain,
};

/* Register the node's methods, by whose name workers find them. */
void
tp_register_flush_node(void)
{
	RegisterCustomScanMethods(&plan_methods);
}
