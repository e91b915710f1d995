/*-------------------------------------------------------------------------
 *
 * exec_run_ahead.c
 *	  Execution of Custom Scan (RunAhead), which runs its child to the end, in parallel
 *	  mode, before it returns the first row.
 *
 * Core forbids changes in parallel mode, and runs nothing in it of which rows are
 * fetched in portions.  The node keeps its child's rows in a tuplestore.  Parallel
 * mode, and the read-only phase of the temporary tables that workers read, last no
 * longer than the run of the child.  So what the node's statement changes, and what
 * is executed between two of its rows, is as without workers.
 *
 * ExecutePlan() of execMain.c must not run the statement in parallel mode.  So
 * parallelModeNeeded is not set in a statement with the node.
 *
 * The invariant: no row is returned while the process is in parallel mode or a table
 * of the statement is read-only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "utils/tuplestore.h"

#include "exec.h"

typedef struct RunAheadState
{
	CustomScanState css;
	Tuplestorestate *rows;		/* NULL until the child has run */
} RunAheadState;

static Node *run_ahead_create_state(CustomScan *cscan);
static void run_ahead_begin(CustomScanState *css, EState *estate, int eflags);
static TupleTableSlot *run_ahead_exec(CustomScanState *css);
static void run_ahead_end(CustomScanState *css);
static void run_ahead_rescan(CustomScanState *css);

static const CustomScanMethods plan_methods = {
	.CustomName = RUN_AHEAD_NODE_NAME,
	.CreateCustomScanState = run_ahead_create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = RUN_AHEAD_NODE_NAME,
	.BeginCustomScan = run_ahead_begin,
	.ExecCustomScan = run_ahead_exec,
	.EndCustomScan = run_ahead_end,
	.ReScanCustomScan = run_ahead_rescan,
};

/* Register the node's methods. */
void
tp_register_run_ahead_node(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

static Node *
run_ahead_create_state(CustomScan *cscan)
{
	RunAheadState *state = palloc0(sizeof(RunAheadState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* Run the child to its end, and store its rows. */
static void
store_rows(RunAheadState *state)
{
	PlanState  *child = outerPlanState(state);

	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(child);

		if (TupIsNull(slot))
			break;
		tuplestore_puttupleslot(state->rows, slot);
	}
}

/*
 * The same in parallel mode, if parallel, as ExecutePlan() of execMain.c.
 * Subplans outside the child that it has executed must end their workers, too.
 *
 * The start of the INSERT has marked its command ID as used, and in parallel mode
 * the command counter cannot be incremented in that state.  Functions that
 * the SELECT calls in the leader may increment it, if only by the end of an
 * exception block.  So it is incremented before.  That changes nothing else: rows
 * are inserted with the ID that the executor has noted, and the next command, of
 * a trigger for example, would increment the counter.
 */
static void
run_child(bool parallel, void *arg)
{
	RunAheadState *state = arg;
	EState	   *estate = state->css.ss.ps.state;
	ListCell   *lc;

	if (!parallel)
	{
		store_rows(state);
		return;
	}
	CommandCounterIncrement();
	estate->es_use_parallel_mode = true;
	EnterParallelMode();
	store_rows(state);
	(void) ExecShutdownNode(outerPlanState(state));
	foreach(lc, estate->es_subplanstates)
	{
		if (lfirst(lc) != NULL)
			(void) ExecShutdownNode(lfirst(lc));
	}
	ExitParallelMode();
	estate->es_use_parallel_mode = false;
}

static TupleTableSlot *
return_row(PlanState *ps)
{
	RunAheadState *state = (RunAheadState *) ps;
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	if (state->rows == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(ps->state->es_query_cxt);

		state->rows = tuplestore_begin_heap(false, false, work_mem);
		MemoryContextSwitchTo(old);
		tp_run_parallel(outerPlanState(ps), NULL, run_child, state);
	}
	if (!tuplestore_gettupleslot(state->rows, true, false, slot))
		return NULL;
	if (ps->ps_ProjInfo == NULL)
		return slot;
	ResetExprContext(ps->ps_ExprContext);
	ps->ps_ExprContext->ecxt_scantuple = slot;
	return ExecProject(ps->ps_ProjInfo);
}

/* Called at the end of ExecInitCustomScan() of nodeCustom.c. */
static void
run_ahead_begin(CustomScanState *css, EState *estate, int eflags)
{
	PlanState  *ps = &css->ss.ps;

	outerPlanState(css) = ExecInitNode(outerPlan(ps->plan), estate, eflags);
	/* in place of what ExecInitCustomScan() has made for a virtual tuple */
	ExecInitScanTupleSlot(estate, &css->ss,
						  ExecGetResultType(outerPlanState(css)),
						  &TTSOpsMinimalTuple);
	ExecAssignScanProjectionInfoWithVarno(&css->ss, INDEX_VAR);
	ps->ExecProcNode = return_row;
}

static TupleTableSlot *
run_ahead_exec(CustomScanState *css)
{
	return css->ss.ps.ExecProcNodeReal(&css->ss.ps);
}

static void
run_ahead_end(CustomScanState *css)
{
	RunAheadState *state = (RunAheadState *) css;

	ExecEndNode(outerPlanState(css));
	if (state->rows != NULL)
		tuplestore_end(state->rows);
}

/* The child of ModifyTable is executed once. */
static void
run_ahead_rescan(CustomScanState *css)
{
	elog(ERROR, "rows that were run ahead cannot be found again");
}
