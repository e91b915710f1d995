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
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "plan.h"

/*
 * Why a statement is not run ahead, or a query has no workers, as EXPLAIN says it; by
 * RunAheadRefusal.
 */
static const char *const refusals[] = {
	[RUN_AHEAD_ALLOWED] = NULL,
	[RUN_AHEAD_PERMANENT_TARGET] = "changes rows of a permanent table",
	[RUN_AHEAD_MODIFYING_WITH] = "WITH has a statement that modifies data",
	[RUN_AHEAD_VALUES] = "inserts rows of VALUES",
	[RUN_AHEAD_UNSAFE] = "query is not parallel safe",
	[RUN_AHEAD_VOLATILE] = "query calls a volatile function",
	[RUN_AHEAD_SUBQUERY] = "subquery is evaluated as rows are changed",
	[RUN_AHEAD_CURRENT_OF] = "WHERE CURRENT OF",
	[RUN_AHEAD_UNIQUE_COLUMN] = "changes a column of a unique index",
	[RUN_AHEAD_TRIGGER] = "trigger for each row",
	[RUN_AHEAD_CONFLICT] = "ON CONFLICT depends on the order of rows",
	[RUN_AHEAD_LOCKED] = "another session has locked a partition",
	[RUN_AHEAD_TOO_WIDE] = "its rows have more than 1664 columns",
	[RUN_AHEAD_GAINS_LITTLE] = "workers would save less than 15 % of its cost",
	[RUN_AHEAD_TOO_LARGE] = "its rows may exceed temp_file_limit",
	[NO_WORKERS_MODIFYING_WITH] = "WITH has a statement that modifies data",
	[NO_WORKERS_LOCKS] = "locks rows",
	[NO_WORKERS_UNSAFE] = "query is not parallel safe",
};

/* Could workers scan the table of node, if that names one?  Its indexes do not count. */
static bool
is_large_table(Node *node)
{
	RangeTblEntry *rte = (RangeTblEntry *) node;
	Relation	rel;
	bool		result;

	if (!IsA(node, RangeTblEntry) || rte->rtekind != RTE_RELATION)
		return false;
	if (rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW)
		return rte->relkind != RELKIND_VIEW;
	if (rte->inh && has_subclass(rte->relid))
		return true;
	rel = tp_relation_open(rte->relid);
	result = RelationGetParallelWorkers(rel, 0) > 0 ||
		RelationGetNumberOfBlocks(rel) >= (BlockNumber) min_parallel_table_scan_size;
	RelationClose(rel);
	return result;
}

/* Does query read a table that is large enough for workers?  Its tables are locked. */
bool
tp_reads_large_table(Query *query)
{
	return debug_parallel_query != DEBUG_PARALLEL_OFF ||
		tp_any_range_table_entry(query, is_large_table);
}

static bool
changes_temp_table(Query *query)
{
	return get_rel_persistence(rt_fetch(query->resultRelation,
										query->rtable)->relid) == RELPERSISTENCE_TEMP;
}

/* Is query, an INSERT, one of the rows of a SELECT and nothing else? */
static bool
inserts_rows_of_query(Query *query)
{
	RangeTblRef *source;

	if (query->jointree == NULL || list_length(query->jointree->fromlist) != 1)
		return false;
	source = linitial(query->jointree->fromlist);
	return IsA(source, RangeTblRef) &&
		rt_fetch(source->rtindex, query->rtable)->rtekind == RTE_SUBQUERY;
}

/*
 * Does query, which has been rewritten and is not run ahead, insert rows of VALUES for which
 * a table may be read: by their subqueries, or because a rule inserts several for each row
 * of a SELECT?
 */
bool
tp_inserts_values(Query *query)
{
	return query->commandType == CMD_INSERT && tp_run_ahead >= RUN_AHEAD_INSERT &&
		query->jointree != NULL &&
		(query->hasSubLinks || list_length(query->jointree->fromlist) > 1) &&
		!inserts_rows_of_query(query);
}

/*
 * Does query, which has been rewritten, change a table by rows that it finds in
 * others, with a temporary one among these, and one that is large enough for workers?
 * A cheap test, for every statement.  The relations are locked.
 */
bool
tp_may_run_ahead(Query *query)
{
	switch (query->commandType)
	{
		case CMD_UPDATE:
		case CMD_DELETE:
		case CMD_MERGE:
			if (tp_run_ahead < RUN_AHEAD_MODIFY)
				return false;
			break;
		case CMD_INSERT:
			if (tp_run_ahead < RUN_AHEAD_INSERT || !inserts_rows_of_query(query))
				return false;
			break;
		default:
			return false;
	}
	return (changes_temp_table(query) || tp_reads_temp_table(query)) &&
		tp_reads_large_table(query);
}

static bool
is_current_of(Node *node)
{
	return IsA(node, CurrentOfExpr);
}

/* May query be planned for workers? */
RunAheadRefusal
tp_query_refusal(Query *query)
{
	return max_parallel_hazard(query) == PROPARALLEL_UNSAFE ?
		RUN_AHEAD_UNSAFE : RUN_AHEAD_ALLOWED;
}

/*
 * May query, for which tp_may_run_ahead() is true, be run ahead, after tp_take_defaults()
 * has taken defaults out of it?
 *
 * Other sessions may change the rows of a permanent table while they are found.
 * Core then looks for their newest version, and evaluates a part of the plan again
 * (EvalPlanQual), which the node could serve; but the order in which rows are
 * locked would be that in which workers find them, and two sessions that change the
 * same rows could deadlock.  The children of a temporary table are temporary.
 *
 * ModifyTable evaluates RETURNING, ON CONFLICT, the actions of MERGE and
 * conditions of views for each row, outside parallel mode; so they may call functions
 * that are parallel unsafe.
 */
RunAheadRefusal
tp_run_ahead_refusal(Query *query)
{
	Query		below = *query;

	below.returningList = below.mergeActionList = below.withCheckOptions = NIL;
	below.onConflict = NULL;

	if (query->commandType != CMD_INSERT && !changes_temp_table(query))
		return RUN_AHEAD_PERMANENT_TARGET;
	if (query->hasModifyingCTE)
		return RUN_AHEAD_MODIFYING_WITH;
	if (tp_contains((Node *) &below, is_current_of))
		return RUN_AHEAD_CURRENT_OF;
	return tp_query_refusal(&below);
}

static bool
is_any_subplan(Node *node)
{
	return IsA(node, SubPlan) ||
		(IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC);
}

/* Have expressions of a plan a subquery, or the result of one? */
bool
tp_have_subplan(List *expressions)
{
	return tp_contains((Node *) expressions, is_any_subplan);
}

/*
 * Do workers of one of gathers compute volatile values, as uuidv7(), before the leader merges
 * their rows into an order?  The server computes them after it has sorted the rows.
 */
static bool
merges_volatile_values(List *gathers, PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, gathers)
	{
		Plan	   *gather = lfirst(lc);

		if (IsA(gather, GatherMerge) && tp_plan_facts(gather->lefttree, stmt).calls_volatile)
			return true;
	}
	return false;
}

/*
 * May stmt, the plan of such a query that needs parallel mode, be run ahead, with defaults
 * evaluated above?  What ModifyTable evaluates for each row must have no subqueries: they are
 * planned for workers, which do not run then, even FOR UPDATE, and the workers of a CTE have
 * ended.
 */
RunAheadRefusal
tp_plan_refusal(PlannedStmt *stmt, List *defaults)
{
	ModifyTable *modify = castNode(ModifyTable, stmt->planTree);
	List	   *above = list_make5(modify->returningLists,
								   modify->withCheckOptionLists,
								   modify->onConflictSet,
								   modify->onConflictWhere,
								   modify->mergeActionLists);
	PlanFacts	facts;
	RunAheadRefusal refusal;

	/* a node above a scan may have more, but those that keep rows may not */
	if (list_length(outerPlan(modify)->targetlist) > MaxTupleAttributeNumber)
		return RUN_AHEAD_TOO_WIDE;
	above = lappend(lappend(above, merge_join_conditions(modify)), defaults);

	facts = tp_statement_facts(stmt);
	if (facts.is_volatile ||
		(facts.reads_versions && (modify->operation != CMD_INSERT ||
								  modify->onConflictAction != ONCONFLICT_NONE)))
		return RUN_AHEAD_VOLATILE;

	if (merges_volatile_values(facts.gathers, stmt))
		return RUN_AHEAD_VOLATILE;

	if (tp_have_subplan(above))
		return RUN_AHEAD_SUBQUERY;
	/* the planner adds columns that MERGE leaves out */
	if (tp_expression_facts(above, stmt).unsafe)
		return RUN_AHEAD_UNSAFE;
	refusal = tp_order_refusal(stmt, above);
	if (refusal != RUN_AHEAD_ALLOWED)
		return refusal;
	return tp_rows_exceed_file_limit(outerPlan(modify)) ?
		RUN_AHEAD_TOO_LARGE : RUN_AHEAD_ALLOWED;
}

/* ----------
 * Default values that are not parallel safe
 * ----------
 */

/*
 * Is expr, of the target list of an INSERT, evaluated as rows are inserted?  What is
 * stable, too: it may depend on what a volatile one does.
 */
static bool
must_wait(Node *expr)
{
	return contain_mutable_functions(expr) &&
		!contain_var_clause(expr) && !contain_subplans(expr);
}

/*
 * Take the values that may not be parallel safe, and are the same expression for each
 * row, out of the target list of query, an INSERT: the defaults of columns.  NULL takes
 * their place.  Returns them as a List of TargetEntry, for
 * tp_place_run_ahead_node().  Scribbles on query.
 */
List *
tp_take_defaults(Query *query)
{
	List	   *defaults = NIL;
	ListCell   *lc;

	/* what follows the target list must not change the number of rows */
	if (query->commandType != CMD_INSERT || query->hasTargetSRFs ||
		query->limitOffset != NULL || query->limitCount != NULL)
		return NIL;
	foreach(lc, query->targetList)
	{
		TargetEntry *tle = lfirst(lc);
		Node	   *expr = (Node *) tle->expr;

		if (!must_wait(expr))
			continue;
		defaults = lappend(defaults, flatCopyTargetEntry(tle));
		tle->expr = (Expr *) makeNullConst(exprType(expr), exprTypmod(expr),
										   exprCollation(expr));
	}
	return defaults;
}

/*
 * Have node, above the plan of stmt's SELECT, evaluate defaults.  stmt is made anew
 * if what they depend on changes, as with any expression in a plan.
 */
static void
give_defaults(CustomScan *node, List *defaults, PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, defaults)
	{
		TargetEntry *tle = lfirst(lc);
		TargetEntry *column = get_tle_by_resno(node->scan.plan.targetlist, tle->resno);
		List	   *relids = NIL;
		List	   *items = NIL;

		column->expr = expression_planner_with_deps(tle->expr, &relids, &items);
		stmt->relationOids = list_concat(stmt->relationOids, relids);
		/* those of plan_saving.c are the last ones */
		stmt->invalItems = list_concat(items, stmt->invalItems);
	}
}

/* ----------
 * EXPLAIN
 * ----------
 */

/* cacheId of an item in invalItems, see plan_saving.c */
#define NOT_RUN_AHEAD	(-1006)

/* Note in stmt why it is not run ahead, or has no workers, if that has been refused. */
void
tp_note_refusal(PlannedStmt *stmt, RunAheadRefusal refusal)
{
	PlanInvalItem *item;

	if (refusal == RUN_AHEAD_ALLOWED)
		return;
	item = makeNode(PlanInvalItem);
	item->cacheId = NOT_RUN_AHEAD;
	item->hashValue = refusal;
	stmt->invalItems = lcons(item, stmt->invalItems);
}

/* What tp_note_refusal() has noted in stmt. */
RunAheadRefusal
tp_refusal_of(PlannedStmt *stmt)
{
	PlanInvalItem *item = stmt->invalItems == NIL ? NULL : linitial(stmt->invalItems);

	return item == NULL || item->cacheId != NOT_RUN_AHEAD ? RUN_AHEAD_ALLOWED :
		item->hashValue;
}

/* Add refusal to the output of EXPLAIN, if it is one. */
void
tp_explain_refusal(RunAheadRefusal refusal, ExplainState *es)
{
	if (refusal >= NO_WORKERS_MODIFYING_WITH)
		ExplainPropertyText("No Workers", refusals[refusal], es);
	else if (refusal != RUN_AHEAD_ALLOWED)
		ExplainPropertyText("Not Run Ahead", refusals[refusal], es);
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
 * Give stmt, the plan of a statement that changes a table and needs parallel mode, the
 * node, numbered after all others.  It evaluates defaults, those that
 * tp_take_defaults() has taken out of its query.  Changes the plan in place.
 */
void
tp_place_run_ahead_node(PlannedStmt *stmt, List *defaults)
{
	Plan	   *modify = &castNode(ModifyTable, stmt->planTree)->plan;
	Plan	   *child = outerPlan(modify);
	CustomScan *node = tp_run_ahead_node(child,
										 tp_statement_facts(stmt).last_node_id + 1);
	Plan	   *plan = &node->scan.plan;

	give_defaults(node, defaults, stmt);
	/* the statement costs as much more as what it reads */
	modify->startup_cost += plan->startup_cost - child->startup_cost;
	modify->total_cost += plan->total_cost - child->total_cost;
	outerPlan(modify) = plan;
	stmt->parallelModeNeeded = false;
}

/*
 * Is stmt, a plan with workers to be run ahead, so much better than that without them,
 * when costs are those of ours and serial?  The charge of its flush does not count for
 * that: a statement that is refused because of it adds to the accounts of its tables
 * (flush_cost.c), and one that is refused here does not.
 */
bool
tp_gains_enough(PlannedStmt *stmt, const Plan *ours, const Plan *serial)
{
	Cost		cost = ours->total_cost;
	ListCell   *lc;

	foreach(lc, tp_statement_facts(stmt).gathers)
	{
		CustomScan *flush = tp_find_flush_node(((Plan *) lfirst(lc))->lefttree);

		if (flush != NULL)
			cost -= tp_flush_plan(flush).planned.charge;
	}
	return cost <= LARGEST_PART * serial->total_cost;
}
