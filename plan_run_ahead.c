/*-------------------------------------------------------------------------
 *
 * plan_run_ahead.c
 *	  Which statements are run ahead, why others are not, and the node in their plan.
 *
 * Core plans nothing but SELECT in parallel.  A statement that changes a table is run
 * ahead if Custom Scan (RunAhead), executed by exec_run_ahead.c, is the child of its
 * ModifyTable: all rows that are to be inserted, updated, deleted or merged are
 * found, by workers, before the first one is.
 *
 * Default values that are not parallel safe, as those of serial and identity columns,
 * are evaluated above the node, for each row when that is to be inserted.
 *
 * The invariant: a statement is run ahead only if nothing below its node sees what
 * the statement changes, nothing above the node continues a part of it, and no other
 * session can change the rows that it has found.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "storage/fd.h"
#include "utils/lsyscache.h"

#include "plan.h"

/* Why a statement is not run ahead, as EXPLAIN says it; by RunAheadRefusal. */
static const char *const refusals[] = {
	[RUN_AHEAD_ALLOWED] = NULL,
	[RUN_AHEAD_NOT_OURS] = NULL,
	[RUN_AHEAD_PERMANENT_TARGET] = "changes rows of a permanent table",
	[RUN_AHEAD_MODIFYING_WITH] = "WITH has a statement that modifies data",
	[RUN_AHEAD_UNSAFE] = "query is not parallel safe",
	[RUN_AHEAD_VOLATILE] = "query calls a volatile function",
	[RUN_AHEAD_SHARED_WITH] = "WITH is also used while rows are changed",
	[RUN_AHEAD_CURRENT_OF] = "WHERE CURRENT OF",
	[RUN_AHEAD_TOO_LARGE] = "its rows may exceed temp_file_limit",
};

/*
 * Does query, which has been rewritten, change a table by rows that it reads from
 * others?  A cheap test, for every statement.
 */
bool
tp_modifies_from_query(Query *query)
{
	RangeTblRef *source;

	switch (query->commandType)
	{
		case CMD_UPDATE:
		case CMD_DELETE:
		case CMD_MERGE:
			return tp_run_ahead >= RUN_AHEAD_MODIFY;
		case CMD_INSERT:
			if (tp_run_ahead < RUN_AHEAD_INSERT || query->jointree == NULL ||
				list_length(query->jointree->fromlist) != 1)
				return false;
			source = linitial(query->jointree->fromlist);
			return IsA(source, RangeTblRef) &&
				rt_fetch(source->rtindex, query->rtable)->rtekind == RTE_SUBQUERY;
		default:
			return false;
	}
}

static bool
is_current_of(Node *node)
{
	return IsA(node, CurrentOfExpr);
}

/*
 * May query, for which tp_modifies_from_query() is true, be run ahead?
 *
 * Other sessions may change the rows of a permanent table while they are found.
 * Core then looks for their newest version, and evaluates a part of the plan again
 * (EvalPlanQual), which the node could serve; but the order in which rows are
 * locked would be that in which workers find them, and two sessions that change the
 * same rows could deadlock.  The children of a temporary table are temporary.
 *
 * A CTE is executed as far as its rows are read, so what follows must not read more
 * of it.  ModifyTable evaluates RETURNING, ON CONFLICT, the actions of MERGE and
 * conditions of views for each row, outside parallel mode; so they may contain
 * whatever they may contain in any statement.
 */
RunAheadRefusal
tp_run_ahead_refusal(Query *query)
{
	Query		below = *query;
	bool		temporary = get_rel_persistence(rt_fetch(query->resultRelation,
														 query->rtable)->relid) ==
		RELPERSISTENCE_TEMP;

	below.returningList = below.mergeActionList = below.withCheckOptions = NIL;
	below.onConflict = NULL;

	if (!temporary && !tp_reads_temp_table(query))
		return RUN_AHEAD_NOT_OURS;
	if (!temporary && query->commandType != CMD_INSERT)
		return RUN_AHEAD_PERMANENT_TARGET;
	if (query->hasModifyingCTE)
		return RUN_AHEAD_MODIFYING_WITH;
	if (query->cteList != NIL &&
		(contain_subplans((Node *) query->returningList) ||
		 contain_subplans((Node *) query->mergeActionList) ||
		 contain_subplans((Node *) query->withCheckOptions) ||
		 contain_subplans((Node *) query->onConflict)))
		return RUN_AHEAD_SHARED_WITH;
	if (tp_contains((Node *) &below, is_current_of))
		return RUN_AHEAD_CURRENT_OF;
	if (max_parallel_hazard(&below) == PROPARALLEL_UNSAFE)
		return RUN_AHEAD_UNSAFE;
	if (tp_contains((Node *) &below, tp_expression_is_volatile))
		return RUN_AHEAD_VOLATILE;
	return tp_contains((Node *) &below, tp_checks_domain) ?
		RUN_AHEAD_UNSAFE : RUN_AHEAD_ALLOWED;
}

/* ----------
 * EXPLAIN
 * ----------
 */

/* cacheId of an item in invalItems, see plan_saving.c */
#define NOT_RUN_AHEAD	(-1006)

/* Note in stmt that it is not run ahead, and why. */
void
tp_note_refusal(PlannedStmt *stmt, RunAheadRefusal refusal)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = NOT_RUN_AHEAD;
	item->hashValue = refusal;
	stmt->invalItems = lcons(item, stmt->invalItems);
}

/* What tp_note_refusal() has noted in stmt, as text; otherwise NULL. */
const char *
tp_refusal_reason(PlannedStmt *stmt)
{
	PlanInvalItem *item;

	if (stmt->invalItems == NIL)
		return NULL;
	item = linitial(stmt->invalItems);
	return item->cacheId == NOT_RUN_AHEAD ? refusals[item->hashValue] : NULL;
}

/* ----------
 * Keeping rows
 * ----------
 */

/*
 * Bytes of the rows of plan in a tuplestore, as relation_byte_size() of costsize.c
 * estimates it.
 */
static double
bytes_of_rows(const Plan *plan)
{
	return plan->plan_rows *
		(MAXALIGN(plan->plan_width) + MAXALIGN(SizeofHeapTupleHeader));
}

/*
 * May a tuplestore with the rows of plan exceed temp_file_limit, so that the
 * statement fails?  Half the limit is left to the plan itself, which may need
 * temporary files at the same time, and for an estimate that is too low.
 */
bool
tp_rows_exceed_file_limit(const Plan *plan)
{
	double		bytes = bytes_of_rows(plan);

	return temp_file_limit >= 0 && bytes > work_mem * 1024.0 &&
		bytes > temp_file_limit * 1024.0 / 2;
}

/*
 * The cost of keeping the rows of plan in a tuplestore, in planner cost units, as
 * cost_material() of costsize.c has it.
 */
static Cost
cost_of_keeping_rows(const Plan *plan)
{
	double		bytes = bytes_of_rows(plan);
	Cost		cost = 2 * cpu_operator_cost * plan->plan_rows;

	if (bytes > work_mem * 1024.0)
		cost += seq_page_cost * ceil(bytes / BLCKSZ);
	return cost;
}

/* ----------
 * The node
 * ----------
 */

/* Make the node above child, with its costs, numbered plan_node_id. */
CustomScan *
tp_run_ahead_node(Plan *child, int plan_node_id)
{
	CustomScan *node = tp_custom_scan_above(child, RUN_AHEAD_NODE_NAME, plan_node_id);

	node->scan.plan.startup_cost = child->total_cost;
	node->scan.plan.total_cost = child->total_cost + cost_of_keeping_rows(child);
	return node;
}

/*
 * If stmt, the plan of a statement that changes a table, needs parallel mode, give it
 * the node, numbered after all others.  Changes the plan in place.
 */
void
tp_place_run_ahead_node(PlannedStmt *stmt)
{
	Plan	   *modify = &castNode(ModifyTable, stmt->planTree)->plan;
	Plan	   *child = outerPlan(modify);
	Plan	   *plan;

	plan = &tp_run_ahead_node(child, tp_statement_facts(stmt).last_node_id + 1)->scan.plan;
	/* the statement costs as much more as what it reads */
	modify->startup_cost += plan->startup_cost - child->startup_cost;
	modify->total_cost += plan->total_cost - child->total_cost;
	outerPlan(modify) = plan;
	stmt->parallelModeNeeded = false;
}
