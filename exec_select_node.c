/*-------------------------------------------------------------------------
 *
 * exec_select_node.c
 *	  Execution of Custom Scan (ParallelSelect), which runs the SELECT of an
 *	  INSERT in parallel mode.
 *
 * When its first row is asked for, the node runs its child to the end and keeps
 * the rows in a tuplestore.  Parallel mode, and the read-only phase of the
 * temporary tables that workers read, last no longer than that.  So rows are
 * inserted, triggers are fired and constraints are checked as in an INSERT
 * without workers, also into a table that the SELECT has read.
 *
 * The invariant: no row is inserted while the process is in parallel mode or a
 * table of the statement is read-only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "utils/tuplestore.h"

#include "exec.h"

typedef struct SelectState
{
	CustomScanState css;
	Tuplestorestate *rows;		/* NULL until the child has run */
	TupleTableSlot *slot;		/* for the row that is returned */
} SelectState;

static Node *select_create_state(CustomScan *cscan);
static void select_begin(CustomScanState *css, EState *estate, int eflags);
static TupleTableSlot *select_exec(CustomScanState *css);
static void select_end(CustomScanState *css);
static void select_rescan(CustomScanState *css);

static const CustomScanMethods plan_methods = {
	.CustomName = SELECT_NODE_NAME,
	.CreateCustomScanState = select_create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = SELECT_NODE_NAME,
	.BeginCustomScan = select_begin,
	.ExecCustomScan = select_exec,
	.EndCustomScan = select_end,
	.ReScanCustomScan = select_rescan,
};

/* Register the node's methods. */
void
tp_register_select_node(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

static Node *
select_create_state(CustomScan *cscan)
{
	SelectState *state = palloc0(sizeof(SelectState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* Run the child to its end, and store its rows. */
static void
store_rows(SelectState *state)
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
run_select(bool parallel, void *arg)
{
	SelectState *state = arg;
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
	SelectState *state = (SelectState *) ps;

	if (state->rows == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(ps->state->es_query_cxt);

		state->rows = tuplestore_begin_heap(false, false, work_mem);
		MemoryContextSwitchTo(old);
		tp_run_parallel(outerPlanState(ps), ps->state, NULL, run_select, state);
	}
	(void) tuplestore_gettupleslot(state->rows, true, false, state->slot);
	return state->slot;
}

/* Called at the end of ExecInitCustomScan() of nodeCustom.c. */
static void
select_begin(CustomScanState *css, EState *estate, int eflags)
{
	SelectState *state = (SelectState *) css;
	PlanState  *ps = &css->ss.ps;

	outerPlanState(css) = ExecInitNode(outerPlan(ps->plan), estate, eflags);
	state->slot = ExecInitExtraTupleSlot(estate,
										 ExecGetResultType(outerPlanState(css)),
										 &TTSOpsMinimalTuple);
	ps->resultops = &TTSOpsMinimalTuple;
	ps->resultopsfixed = true;
	ps->resultopsset = true;
	ps->ExecProcNode = return_row;
}

static TupleTableSlot *
select_exec(CustomScanState *css)
{
	return css->ss.ps.ExecProcNodeReal(&css->ss.ps);
}

static void
select_end(CustomScanState *css)
{
	SelectState *state = (SelectState *) css;

	ExecEndNode(outerPlanState(css));
	if (state->rows != NULL)
		tuplestore_end(state->rows);
}

/* The child of ModifyTable in an INSERT is executed once. */
static void
select_rescan(CustomScanState *css)
{
	elog(ERROR, "the SELECT of an INSERT cannot be executed again");
}
