/*-------------------------------------------------------------------------
 *
 * run_ahead.c
 *	  Custom Scan (ParallelSelect), which runs the SELECT of an INSERT ahead of it,
 *	  in parallel mode: whether it may, planning and execution.
 *
 * Core plans nothing but SELECT in parallel, and forbids changes in parallel mode.
 *
 * The node is the child of ModifyTable in the plan of an INSERT whose SELECT has a
 * Gather.  When its first row is asked for, it runs its child
 * to the end and keeps the rows in a tuplestore.  Parallel mode, and the read-only
 * phase of the temporary tables that workers read, last no longer than that.  So
 * rows are inserted, triggers are fired and constraints are checked as in an INSERT
 * without workers, also into a table that the SELECT has read.
 *
 * ExecutePlan() of execMain.c must not run the statement in parallel mode.  So
 * parallelModeNeeded is not set in a statement with the node.
 *
 * The invariants: a SELECT is run ahead only if nothing in it sees the rows that
 * the statement inserts, and nothing that is executed later continues a part of
 * it; no row is inserted while the process is in parallel mode or a table of the
 * statement is read-only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "exec.h"

/* Why an INSERT has no workers, as EXPLAIN says it; by InsertRefusal. */
static const char *const refusals[] = {
	[INSERT_MAY_BE_PARALLEL] = NULL,
	[INSERT_OTHER_TARGET] = NULL,	/* of no interest */
	[INSERT_MODIFIES_MORE] = "WITH has a statement that modifies data",
	[INSERT_UNSAFE_QUERY] = "query is not parallel safe",
	[INSERT_VOLATILE_QUERY] = "query calls a volatile function",
	[INSERT_SHARES_CTE] = "WITH is also used while rows are inserted",
	[INSERT_KEEPS_TOO_MUCH] = "its rows may exceed temp_file_limit",
};

/*
 * Is query, which has been rewritten, INSERT INTO ... SELECT?  A cheap test,
 * for every statement.
 */
bool
tp_is_insert_select(Query *query)
{
	RangeTblRef *source;

	if (query->commandType != CMD_INSERT ||
		query->jointree == NULL ||
		list_length(query->jointree->fromlist) != 1)
		return false;
	source = linitial(query->jointree->fromlist);
	return IsA(source, RangeTblRef) &&
		rt_fetch(source->rtindex, query->rtable)->rtekind == RTE_SUBQUERY;
}

/*
 * May the SELECT of query, for which tp_is_insert_select() is true, be run by
 * workers?  If so, sets *hazard as max_parallel_hazard() of clauses.c does.
 *
 * A CTE is executed as far as its rows are read, so what follows the SELECT must
 * not read more of it.
 */
InsertRefusal
tp_insert_refusal(Query *query, char *hazard)
{
	RangeTblEntry *target = rt_fetch(query->resultRelation, query->rtable);

	if (get_rel_persistence(target->relid) != RELPERSISTENCE_TEMP)
		return INSERT_OTHER_TARGET;
	if (query->hasModifyingCTE)
		return INSERT_MODIFIES_MORE;
	if (query->cteList != NIL &&
		(contain_subplans((Node *) query->returningList) ||
		 contain_subplans((Node *) query->onConflict)))
		return INSERT_SHARES_CTE;
	*hazard = max_parallel_hazard(query);
	if (*hazard == PROPARALLEL_UNSAFE)
		return INSERT_UNSAFE_QUERY;
	if (tp_contains((Node *) query, tp_expression_is_volatile))
		return INSERT_VOLATILE_QUERY;
	return tp_contains((Node *) query, tp_checks_domain) ?
		INSERT_UNSAFE_QUERY : INSERT_MAY_BE_PARALLEL;
}

/* ----------
 * EXPLAIN
 * ----------
 */

/* cacheId of an item in invalItems, see plan_saving.c */
#define SERIAL_INSERT	(-1006)

/* Note in stmt that its SELECT has no workers, and why. */
void
tp_note_serial_insert(PlannedStmt *stmt, InsertRefusal refusal)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = SERIAL_INSERT;
	item->hashValue = refusal;
	stmt->invalItems = lcons(item, stmt->invalItems);
}

/* What tp_note_serial_insert() has noted in stmt, as text; otherwise NULL. */
const char *
tp_serial_insert_reason(PlannedStmt *stmt)
{
	PlanInvalItem *item;

	if (stmt->invalItems == NIL)
		return NULL;
	item = linitial(stmt->invalItems);
	return item->cacheId == SERIAL_INSERT ? refusals[item->hashValue] : NULL;
}

/* ----------
 * Planning
 * ----------
 */

/*
 * The cost of keeping the rows of plan in a tuplestore, in planner cost units, as
 * cost_material() of costsize.c has it.
 */
static Cost
cost_of_keeping_rows(const Plan *plan)
{
	double		bytes = tp_bytes_of_rows(plan);
	Cost		cost = 2 * cpu_operator_cost * plan->plan_rows;

	if (bytes > work_mem * 1024.0)
		cost += seq_page_cost * ceil(bytes / BLCKSZ);
	return cost;
}

/*
 * If stmt, the plan of an INSERT, needs parallel mode, give it the node, numbered
 * after all others.  Changes the plan in place.
 */
void
tp_place_run_ahead_node(PlannedStmt *stmt)
{
	Plan	   *insert = &castNode(ModifyTable, stmt->planTree)->plan;
	Plan	   *child = outerPlan(insert);
	Cost		keeping = cost_of_keeping_rows(child);
	Plan	   *plan;

	if (!stmt->parallelModeNeeded)
		return;
	plan = &tp_custom_scan_above(child, RUN_AHEAD_NODE_NAME,
								 tp_statement_facts(stmt).last_node_id + 1)->scan.plan;
	plan->startup_cost = child->total_cost;
	plan->total_cost = child->total_cost + keeping;
	/* the INSERT costs as much more as what it reads */
	insert->startup_cost += plan->startup_cost - child->startup_cost;
	insert->total_cost += keeping;
	outerPlan(insert) = plan;
	stmt->parallelModeNeeded = false;
}

/* ----------
 * Execution
 * ----------
 */

typedef struct RunAheadState
{
	CustomScanState css;
	Tuplestorestate *rows;		/* NULL until the child has run */
	TupleTableSlot *slot;		/* for the row that is returned */
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

	if (state->rows == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(ps->state->es_query_cxt);

		state->rows = tuplestore_begin_heap(false, false, work_mem);
		MemoryContextSwitchTo(old);
		tp_run_parallel(outerPlanState(ps), NULL, run_child, state);
	}
	(void) tuplestore_gettupleslot(state->rows, true, false, state->slot);
	return state->slot;
}

/* Called at the end of ExecInitCustomScan() of nodeCustom.c. */
static void
run_ahead_begin(CustomScanState *css, EState *estate, int eflags)
{
	RunAheadState *state = (RunAheadState *) css;
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

/* The child of ModifyTable in an INSERT is executed once. */
static void
run_ahead_rescan(CustomScanState *css)
{
	elog(ERROR, "the SELECT of an INSERT cannot be executed again");
}
