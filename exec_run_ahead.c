/*-------------------------------------------------------------------------
 *
 * exec_run_ahead.c
 *	  Execution of Custom Scan (RunAhead), which runs its child to the end, in parallel
 *	  mode, before it returns the first row.
 *
 * Core forbids changes in parallel mode, and runs nothing in it of which rows are fetched in
 * portions.  The node keeps its child's rows in a tuplestore.  Parallel mode and the
 * read-only phase last no longer than the run of the child, so the rest of the statement is
 * as without workers.  Its parallelModeNeeded is not set, so that ExecutePlan() of execMain.c
 * does not run all of it in parallel mode.
 *
 * The run of each statement that needs parallel mode begins here, too, as it may turn out
 * only then that it has to be run ahead, or to do without workers.
 *
 * The invariants: no row is returned by the node while the process is in parallel mode
 * or a table of the statement is read-only; and a cached plan is never changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/tuplestore.h"

#include "exec.h"

typedef struct RunAheadState
{
	CustomScanState css;
	Tuplestorestate *rows;		/* NULL until the child has run */
	int			eflags;			/* how the rows may be fetched */
	Oid			user;			/* when the execution began */
	bool		inserts;		/* do its rows fill a new table? */
	AttrNumber	ctid;			/* of the row that is to be changed, or 0 */
	AttrNumber	tableoid;		/* of its table, or 0 if there is but one */
	Oid			pruned_table;	/* whose page pruned_block was the last */
	BlockNumber pruned_block;
	TupleTableSlot *copy;		/* NULL, or where the parent expects them */
} RunAheadState;

static const CustomExecMethods exec_methods;

static Node *
run_ahead_create_state(CustomScan *cscan)
{
	RunAheadState *state = palloc0(sizeof(RunAheadState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

static bool
changes_table(RunAheadState *state)
{
	return state->inserts ||
		state->css.ss.ps.state->es_plannedstmt->commandType != CMD_SELECT;
}

/*
 * Run the child to its end, and store its rows; in parallel mode, if parallel, as
 * ExecutePlan() of execMain.c runs a plan.  Subplans outside the child that it has
 * executed must end their workers, too.
 */
static void
run_child(bool parallel, void *arg)
{
	RunAheadState *state = arg;
	EState	   *estate = state->css.ss.ps.state;
	ListCell   *lc;

	if (parallel)
	{
		estate->es_use_parallel_mode = true;
		EnterParallelMode();
	}
	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(outerPlanState(state));

		if (TupIsNull(slot))
			break;
		tuplestore_puttupleslot(state->rows, slot);
	}
	if (!parallel)
		return;
	(void) ExecShutdownNode(outerPlanState(state));
	foreach(lc, estate->es_subplanstates)
	{
		if (lfirst(lc) != NULL)
			(void) ExecShutdownNode(lfirst(lc));
	}
	ExitParallelMode();
	estate->es_use_parallel_mode = false;
}

/* What a parent may do with the rows of a node, here with those that are kept */
#define FETCHED_AGAIN	(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)

/*
 * Do workers, which begin to execute the child now, have the same role, privileges and
 * functions as the leader when it began?  Much can be done between a cursor's opening and
 * its first row.  Commands that change something increment the command counter.
 */
static bool
nothing_has_changed(RunAheadState *state)
{
	return GetUserId() == state->user &&
		(changes_table(state) ||
		 GetCurrentCommandId(false) == state->css.ss.ps.state->es_snapshot->curcid);
}

/*
 * Run the child, and keep its rows.  It runs forward only, also in workers, which are
 * sent es_top_eflags.  After an error, the state of the query is not used again.
 */
static void
keep_rows(RunAheadState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;
	int			eflags = estate->es_top_eflags;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	state->rows = tuplestore_begin_heap((state->eflags & EXEC_FLAG_BACKWARD) != 0,
										false, work_mem);
	MemoryContextSwitchTo(old);
	estate->es_direction = ForwardScanDirection;
	estate->es_top_eflags = eflags & ~FETCHED_AGAIN;
	tp_run_parallel(outerPlanState(state), nothing_has_changed(state) ? NULL :
					"role, privileges or functions may have changed since the query began",
					true, run_child, state);
	estate->es_direction = direction;
	estate->es_top_eflags = eflags;
}

/*
 * Prune the page of the row that is to be changed, of which slot has the ctid, as without
 * workers the scan does that finds the row; otherwise the table would grow by each
 * statement.  As heap_prepare_pagescan() (before 17: heapgetpage()) of heapam.c.
 */
static void
prune_page_of_row(RunAheadState *state, TupleTableSlot *slot)
{
	EState	   *estate = state->css.ss.ps.state;
	ModifyTable *modify;
	Oid			relid;
	BlockNumber block;
	bool		isnull;
	Datum		ctid = slot_getattr(slot, state->ctid, &isnull);
	Relation	rel;

	if (isnull)
		return;					/* MERGE inserts it */
	block = ItemPointerGetBlockNumber((ItemPointer) DatumGetPointer(ctid));
	modify = castNode(ModifyTable, estate->es_plannedstmt->planTree);
	relid = state->tableoid != 0 ?
		DatumGetObjectId(slot_getattr(slot, state->tableoid, &isnull)) :
		exec_rt_fetch(linitial_int(modify->resultRelations), estate)->relid;
	if (relid == state->pruned_table && block == state->pruned_block)
		return;
	rel = tp_relation_open(relid);
	if (rel->rd_rel->relam == HEAP_TABLE_AM_OID)
		prune_heap_page(rel, block);
	RelationClose(rel);
	state->pruned_table = relid;
	state->pruned_block = block;
}

static TupleTableSlot *
return_row(PlanState *ps)
{
	RunAheadState *state = (RunAheadState *) ps;
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	if (state->rows == NULL)
		keep_rows(state);
	for (;;)
	{
		/* the nodes above leave that to the scans below them */
		CHECK_FOR_INTERRUPTS();
		if (!tuplestore_gettupleslot(state->rows,
									 !ScanDirectionIsBackward(ps->state->es_direction),
									 false, slot))
			return NULL;
		if (state->copy != NULL)
			return ExecCopySlot(state->copy, slot);
		if (state->ctid != 0)
			prune_page_of_row(state, slot);
		ResetExprContext(ps->ps_ExprContext);
		ps->ps_ExprContext->ecxt_scantuple = slot;
		if (ExecQual(ps->qual, ps->ps_ExprContext))
			return ps->ps_ProjInfo == NULL ? slot : ExecProject(ps->ps_ProjInfo);
		InstrCountFiltered1(ps, 1);
	}
}

/* Have state keep the rows of child. */
static void
set_child(CustomScanState *css, PlanState *child)
{
	PlanState  *ps = &css->ss.ps;

	outerPlanState(css) = child;
	/* in place of what ExecInitCustomScan() has made for a virtual tuple */
	init_scan_slot(&css->ss, ExecGetResultType(child), &TTSOpsMinimalTuple);
	ExecAssignScanProjectionInfoWithVarno(&css->ss, INDEX_VAR);
	ps->qual = ExecInitQual(ps->plan->qual, ps);
}

/* Called at the end of ExecInitCustomScan() of nodeCustom.c. */
static void
run_ahead_begin(CustomScanState *css, EState *estate, int eflags)
{
	RunAheadState *state = (RunAheadState *) css;
	Plan	   *child = outerPlan(css->ss.ps.plan);

	state->eflags = eflags;
	state->user = GetUserId();
	if (changes_table(state) && child != NULL)
	{
		state->ctid = ExecFindJunkAttributeInTlist(child->targetlist, "ctid");
		state->tableoid = ExecFindJunkAttributeInTlist(child->targetlist, "tableoid");
	}
	css->ss.ps.ExecProcNode = return_row;
	/* in a plan; otherwise tp_run_portions_ahead() sets it */
	if (child != NULL)
		set_child(css, ExecInitNode(child, estate, eflags & ~FETCHED_AGAIN));
}

static void
run_ahead_end(CustomScanState *css)
{
	RunAheadState *state = (RunAheadState *) css;

	ExecEndNode(outerPlanState(css));
	if (state->rows != NULL)
		tuplestore_end(state->rows);
}

/*
 * A cursor goes back to its start.  Nothing else executes the node again: the child of
 * ModifyTable is executed once, and no parameter of a query's topmost nodes changes.
 */
static void
run_ahead_rescan(CustomScanState *css)
{
	RunAheadState *state = (RunAheadState *) css;

	if (css->ss.ps.chgParam != NULL || changes_table(state))
		elog(ERROR, "rows that were run ahead cannot be found again");
	ExecScanReScan(&css->ss);
	if (state->rows != NULL)
		tuplestore_rescan(state->rows);
}

static const CustomScanMethods plan_methods = {
	.CustomName = RUN_AHEAD_NODE_NAME,
	.CreateCustomScanState = run_ahead_create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = RUN_AHEAD_NODE_NAME,
	.BeginCustomScan = run_ahead_begin,
	.EndCustomScan = run_ahead_end,
	.ReScanCustomScan = run_ahead_rescan,
};

/* Register the node's methods. */
void
tp_register_run_ahead_node(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

/* ----------
 * Queries of which the planner has not known that they are run ahead
 * ----------
 */

/*
 * Put the node above child, a part of the state of a query, at *link.  Its parent's
 * expressions have been compiled for the kind of slot in which child returns its
 * rows.  Returns the node's state.
 */
static RunAheadState *
put_above(PlanState **link, CustomScan *node)
{
	PlanState  *child = *link;
	Plan	   *plan = &node->scan.plan;
	RunAheadState *state;
	const TupleTableSlotOps *ops;
	bool		fixed;

	plan->lefttree = NULL;		/* it has been initialized */
	state = (RunAheadState *) ExecInitNode(plan, child->state,
										   child->state->es_top_eflags);
	plan->lefttree = child->plan;
	set_child(&state->css, child);
	ops = ExecGetResultSlotOps(child, &fixed);
	if (fixed && ops != &TTSOpsMinimalTuple)
		state->copy = ExecInitExtraTupleSlot(child->state, ExecGetResultType(child),
											 ops);
	*link = &state->css.ss.ps;
	return state;
}

/*
 * queryDesc's plan needs parallel mode, and is about to be run for the first time, but
 * not to its end.  If a part of it is to be run ahead, add the node to its state.
 * Allocates in the query's memory context.
 */
void
tp_run_portions_ahead(QueryDesc *queryDesc)
{
	PlannedStmt *stmt = queryDesc->plannedstmt;
	PlanState **link = &queryDesc->planstate;
	MemoryContext old = MemoryContextSwitchTo(queryDesc->estate->es_query_cxt);
	List	   *flush_nodes = tp_find_flush_nodes(queryDesc->planstate);
	CustomScan *node = NULL;
	Plan	   *place = NULL;
	FlushSaving saving = tp_saving_of(stmt);

	if (flush_nodes != NIL && stmt->commandType == CMD_SELECT && !stmt->hasModifyingCTE)
		node = tp_node_for_execution(stmt, tp_flush_node_plan(linitial(flush_nodes)),
									 saving.saving - saving.charge, &place);
	while (node != NULL && *link != NULL)
	{
		if ((*link)->plan == place)
		{
			put_above(link, node)->user = tp_flush_node_user(linitial(flush_nodes));
			break;
		}
		link = IsA(*link, SubqueryScanState) ?
			&((SubqueryScanState *) *link)->subplan : &outerPlanState(*link);
	}
	MemoryContextSwitchTo(old);
}

/*
 * queryDesc's rows fill a new table, and it is about to be run to its end: put the node
 * above all of it.  The receiver takes rows in any kind of slot.
 */
static void
run_insertion_ahead(QueryDesc *queryDesc)
{
	MemoryContext old = MemoryContextSwitchTo(queryDesc->estate->es_query_cxt);
	RunAheadState *state = put_above(&queryDesc->planstate,
									 tp_run_ahead_node(queryDesc->planstate->plan, -1));

	state->inserts = true;
	state->copy = NULL;
	MemoryContextSwitchTo(old);
}

/* ----------
 * Statements that are run in parallel mode as a whole
 * ----------
 */
typedef struct ExecutorCall
{
	ExecutorRun_hook_type next;
	ExecutorRunArgs args;
} ExecutorCall;

static void
run_statement(bool parallel, void *arg)
{
	ExecutorCall *call = arg;

	if (!parallel)
		avoid_parallel_mode(&call->args);
	call->next(EXECUTOR_RUN_UNPACK(&call->args));
}

/*
 * Are queryDesc's rows inserted into a new table, by CREATE TABLE AS, or by REFRESH
 * MATERIALIZED VIEW, of which an inlined function may read temporary tables?
 */
static bool
fills_new_table(QueryDesc *queryDesc)
{
	return queryDesc->dest->mydest == DestIntoRel ||
		queryDesc->dest->mydest == DestTransientRel;
}

/*
 * Run the executor on a plan that needs parallel mode, by next, an ExecutorRun hook or
 * standard_ExecutorRun().  Raises what that raises.
 *
 * To fill a new table, core runs the executor in parallel mode and inserts each row as it
 * comes, at which a volatile function may look.  A prepared statement may have been planned
 * for something else, so this is known only now.  An insertion marks the command ID as
 * used.  Then a function cannot begin another command in parallel mode, or, from 17 on,
 * end an exception block, an error that the function may catch and return something else,
 * as over permanent tables.  So if the statement runs functions that are not core's, it is
 * run ahead.
 */
void
tp_run_in_leader(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS)
{
	ExecutorCall call = {next, {EXECUTOR_RUN_PASS}};
	const FlushPlan *plan = NULL;
	const char *refusal = NULL;
	List	   *flush_nodes;

	Assert(queryDesc->plannedstmt->parallelModeNeeded);

	/* ExecutePlan() enters parallel mode only if it is to return all rows */
	if (count != 0 || queryDesc->already_executed)
	{
		next(EXECUTOR_RUN_PASS);
		return;
	}
	flush_nodes = fills_new_table(queryDesc) ?
		tp_find_flush_nodes(queryDesc->planstate) : NIL;
	/* each has what is said of the statement */
	if (flush_nodes != NIL)
		plan = tp_flush_node_plan(linitial(flush_nodes));
	if (plan != NULL && plan->looks_at_statement)
		refusal = "query calls a volatile function";
	else if (plan != NULL && plan->any_user_code)
	{
		if (!tp_rows_exceed_file_limit(queryDesc->planstate->plan))
		{
			run_insertion_ahead(queryDesc);
			run_statement(false, &call);
			return;
		}
		refusal = "its rows may exceed temp_file_limit";
	}
	tp_run_parallel(queryDesc->planstate, refusal, false, run_statement, &call);
}
