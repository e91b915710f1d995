/*-------------------------------------------------------------------------
 *
 * plan_portions.c
 *	  Which part of a query is run ahead if its rows are fetched in portions.
 *
 * Core runs a query without workers if it is not asked for all its rows at once, as for a
 * cursor, a loop of PL/pgSQL or SELECT INTO.  Such a query is run ahead if Custom Scan
 * (RunAhead), executed by exec_run_ahead.c, stands above the topmost node that has read all
 * its input before it returns a row: a sort or an aggregation.  Workers find the node's rows
 * when the first one is asked for.  What is above the node is evaluated as rows are asked
 * for, as by core.
 *
 * If the planner is told that not all rows will be asked for, the node is part of the plan;
 * if only the executor is, the node is added to the state of that execution.
 *
 * The invariant: what is run ahead would be evaluated before the first row without the
 * node, too; and it costs less with the node, to its end, than without it to the first row.
 * So the answer does not depend on what happens between two fetches, an error is raised
 * only where it is without the node, and who stops early has not waited longer.  Exceptions
 * are what an aggregation computes of its input in groups that it returns one by one, sorts
 * that one plan needs, subqueries whose result workers are sent, and estimates.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"

#include "plan.h"

/* ----------
 * Where
 * ----------
 */

/* What of a plan can be run ahead. */
typedef struct Portions
{
	Plan	  **place;			/* link to it in the plan; NULL if there is
								 * none */
	List	   *above;			/* the nodes above */
	List	   *lazy;			/* expressions that are evaluated when a row
								 * is asked for */
	bool		splits;			/* are some of them those of the place itself? */
	bool		computes;		/* do they compute anything? */
	bool		one_row;		/* at most one, for certain? */
} Portions;

/* The link to the child of plan, if it reads only that and as its own rows are asked for. */
static Plan **
lazily_read_child(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Group:
		case T_Limit:
		case T_Material:
		case T_ProjectSet:
		case T_Result:
		case T_Unique:
		case T_WindowAgg:
			return plan->lefttree != NULL ? &plan->lefttree : NULL;
		case T_SubqueryScan:
			return &((SubqueryScan *) plan)->subplan;
		default:
			return NULL;
	}
}

/* Is anything computed in node, an expression or a List of such, of aggregates? */
static bool
computes(Node *node, void *context)
{
	if (node == NULL || IsA(node, Aggref) || is_wrapped_aggregate(node))
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_TargetEntry:
		case T_Var:
		case T_Const:
		case T_Param:
		case T_GroupingFunc:
		case T_RelabelType:
			return expression_tree_walker(node, computes, context);
		default:
			return true;
	}
}

static bool
is_of_computed_values(Node *node)
{
	return IsA(node, Aggref) &&
		(computes((Node *) ((Aggref *) node)->args, NULL) ||
		 computes((Node *) ((Aggref *) node)->aggfilter, NULL) ||
		 computes((Node *) ((Aggref *) node)->aggdirectargs, NULL));
}

/*
 * Is node an aggregate whose final function may do anything, or fail?  Those of users; of
 * core's, ordered-set aggregates (a wrong fraction), and those of jsonb (a key that is not
 * unique) and of intervals (infinite ones).
 */
static bool
may_fail_in_the_end(Node *node)
{
	Aggref	   *aggref = (Aggref *) node;

	return IsA(node, Aggref) &&
		(aggref->aggfnoid >= FirstNormalObjectId || aggref->aggkind != AGGKIND_NORMAL ||
		 aggref->aggtype == JSONBOID || aggref->aggtype == INTERVALOID);
}

/* Is test true for a node of an expression of plan, an aggregation? */
static bool
agg_contains(Plan *plan, bool (*test) (Node *))
{
	return tp_contains((Node *) plan->targetlist, test) ||
		tp_contains((Node *) plan->qual, test);
}

/*
 * Has plan computed all that there is to compute below it, and in it of its input,
 * when it returns its first row?
 */
static bool
computes_all_first(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Sort:
			return true;
		case T_Agg:
			if (((Agg *) plan)->aggstrategy == AGG_PLAIN)
				return true;
			if (agg_contains(plan, may_fail_in_the_end))
				return false;
			return ((Agg *) plan)->aggstrategy == AGG_HASHED ||
				(computes_all_first(plan->lefttree) &&
				 !agg_contains(plan, is_of_computed_values));
		case T_GatherMerge:
			return computes_all_first(plan->lefttree) &&
				!computes((Node *) plan->targetlist, NULL);
		case T_CustomScan:
			return tp_is_flush_node(plan) && computes_all_first(plan->lefttree);
		case T_Result:
			return plan->lefttree == NULL;
		default:
			return false;
	}
}

/* Does plan, for which computes_all_first() is true, return at most one row? */
static bool
returns_one_row(Plan *plan)
{
	return IsA(plan, Result) ||
		(IsA(plan, Agg) && ((Agg *) plan)->aggstrategy == AGG_PLAIN &&
		 ((Agg *) plan)->groupingSets == NIL);
}

/* Does plan compute something of the groups that it returns? */
static bool
computes_of_groups(Plan *plan)
{
	return IsA(plan, Agg) && !returns_one_row(plan) &&
		(plan->qual != NIL || computes((Node *) plan->targetlist, NULL));
}

static bool
is_subplan(Node *node)
{
	return IsA(node, SubPlan);
}

/*
 * Do expressions, evaluated as rows of stmt are asked for, have a subquery whose workers
 * have ended then?  Those of a CTE end with the part that is run ahead.
 */
static bool
need_ended_workers(PlannedStmt *stmt, List *expressions)
{
	ListCell   *lc;

	if (tp_contains((Node *) expressions, is_subplan))
		return true;
	foreach(lc, stmt->rtable)
	{
		if (((RangeTblEntry *) lfirst(lc))->rtekind == RTE_CTE)
			return tp_have_subplan(expressions);
	}
	return false;
}

/*
 * Is there a Gather in plan, of stmt, whose rows are not all read, as by LIMIT or EXISTS, so
 * that workers read more than one process would?  early: is that so of plan itself?
 */
static bool
gathers_stop_early(PlannedStmt *stmt, Plan *plan, bool early)
{
	ListCell   *lc;

	early = early && !computes_all_first(plan);
	if (early && (IsA(plan, Gather) || IsA(plan, GatherMerge)))
		return true;
	early = early || IsA(plan, Limit);
	foreach(lc, tp_plan_children(plan))
	{
		if (gathers_stop_early(stmt, lfirst(lc), early))
			return true;
	}
	foreach(lc, plan->initPlan)
	{
		SubPlan    *subplan = lfirst(lc);

		if (gathers_stop_early(stmt, list_nth(stmt->subplans, subplan->plan_id - 1),
							   subplan->subLinkType == EXISTS_SUBLINK))
			return true;
	}
	return false;
}

/*
 * Find what of stmt can be run ahead.  A Limit directly above goes with it, so that no more
 * rows are sorted and kept than it returns.
 */
static Portions
find_portions(PlannedStmt *stmt)
{
	Portions	result = {.place = &stmt->planTree};
	Plan	   *plan;
	Plan	  **child;

	while ((child = lazily_read_child(*result.place)) != NULL)
	{
		if (IsA(*result.place, Limit) && computes_all_first(*child) &&
			!computes_of_groups(*child))
			break;
		result.above = lappend(result.above, *result.place);
		result.lazy = list_concat(result.lazy, tp_plan_expressions(*result.place));
		result.place = child;
	}
	plan = child != NULL ? *child : *result.place;
	result.one_row = returns_one_row(plan);
	result.splits = computes_of_groups(plan);
	if (result.splits)
		result.lazy = list_concat(result.lazy, tp_plan_expressions(plan));
	result.computes = computes((Node *) result.lazy, NULL);
	if (need_ended_workers(stmt, result.lazy) ||
		!computes_all_first(plan) || gathers_stop_early(stmt, stmt->planTree, false))
		result.place = NULL;
	return result;
}

/* Has stmt read all its input when it returns its first row? */
bool
tp_reads_all_first(PlannedStmt *stmt)
{
	return find_portions(stmt).place != NULL;
}

/* ----------
 * Queries of which the planner knows that they are fetched in portions
 * ----------
 */

/* May query, which has been rewritten, be run ahead?  A cheap test, for every query. */
bool
tp_may_run_portions_ahead(Query *query)
{
	return tp_run_ahead >= RUN_AHEAD_ON && query->commandType == CMD_SELECT &&
		query->rowMarks == NIL && !query->hasModifyingCTE &&
		tp_reads_temp_table(query) && tp_reads_large_table(query);
}

/*
 * Does it cost more to find the first row of serial, a plan without workers, than to
 * start workers, in a part that can be run ahead?
 */
bool
tp_finds_first_row_late(PlannedStmt *serial)
{
	Plan	   *top = serial->planTree;
	Portions	portions;

	if (top->total_cost <= parallel_setup_cost)
		return false;
	portions = find_portions(serial);
	return portions.place != NULL &&
		(portions.one_row || top->startup_cost > parallel_setup_cost);
}

/*
 * Replace parts of node, an expression of an aggregation, by references to *columns, a
 * target list of what only the aggregation itself can evaluate.
 */
static Node *
take_from_column(Node *node, List **columns)
{
	TargetEntry *tle;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var) && !IsA(node, Aggref) && !IsA(node, GroupingFunc) &&
		!is_wrapped_aggregate(node))
		return expression_tree_mutator(node, take_from_column, columns);
	tle = tlist_member((Expr *) node, *columns);
	if (tle == NULL)
	{
		tle = makeTargetEntry((Expr *) node, list_length(*columns) + 1, NULL, false);
		*columns = lappend(*columns, tle);
	}
	return (Node *) makeVarFromTargetEntry(INDEX_VAR, tle);
}

/*
 * Make the node above the place of portions, from which it takes the InitPlans and, of an
 * aggregation, what is computed of the groups.
 */
static CustomScan *
make_node(const Portions *portions, int plan_node_id)
{
	Plan	   *child = *portions->place;
	List	   *tlist = NIL;
	List	   *qual = NIL;
	CustomScan *node;

	if (portions->splits)
	{
		List	   *columns = NIL;

		tlist = (List *) take_from_column((Node *) child->targetlist, &columns);
		qual = (List *) take_from_column((Node *) child->qual, &columns);
		child->targetlist = columns;
		child->qual = NIL;
	}
	node = tp_run_ahead_node(child, plan_node_id);
	if (portions->splits)
	{
		node->scan.plan.targetlist = tlist;
		node->scan.plan.qual = qual;
	}
	node->scan.plan.initPlan = child->initPlan;
	child->initPlan = NIL;
	return node;
}

/*
 * Are expressions evaluated at the same time in plans of the same query with these
 * portions, of which alone is without workers?  If that computes nothing after its first
 * row, has everything of portions run ahead, down from *top.
 */
static bool
computes_at_the_same_time(Portions *portions, const Portions *alone, Plan **top)
{
	ListCell   *lc1;
	ListCell   *lc2;

	if (!alone->computes)
	{
		portions->place = top;
		portions->above = NIL;
		portions->splits = false;
		return true;
	}
	if (portions->splits != alone->splits ||
		list_length(portions->above) != list_length(alone->above))
		return false;
	forboth(lc1, portions->above, lc2, alone->above)
	{
		if (nodeTag(lfirst(lc1)) != nodeTag(lfirst(lc2)))
			return false;
	}
	return true;
}

/*
 * Give stmt, a plan that needs parallel mode, with facts all, the node, if it computes the
 * same as serial, the plan without workers, when the first row is asked for; otherwise it
 * must not be used, and needs parallel mode as before.  Returns why it is refused, and in
 * *ours and *first_row what the two plans cost to their first row.  Changes stmt in place.
 * A cursor can move backward if serial can, as core decides that by the plan.
 */
Refusal
tp_place_for_portions(PlannedStmt *stmt, PlannedStmt *serial, const PlanFacts *all,
					  Plan *ours, Plan *first_row)
{
	Portions	alone = find_portions(serial);
	Portions	portions = find_portions(stmt);
	bool		backward = ExecSupportsBackwardScan(serial->planTree);
	CustomScan *node;
	Cost		later;
	Cost		keeping;
	ListCell   *lc;

	if (portions.place == NULL || alone.place == NULL ||
		portions.one_row != alone.one_row ||
		!computes_at_the_same_time(&portions, &alone, &stmt->planTree))
		return NOT_REFUSED;
	/* a clock, too, would be asked for all rows when the first one is fetched */
	if (all->looks_at_statement || (all->calls_volatile && !portions.one_row))
		return RUN_AHEAD_VOLATILE;
	if (tp_rows_exceed_file_limit(*portions.place))
		return RUN_AHEAD_TOO_LARGE;

	later = (*portions.place)->total_cost - (*portions.place)->startup_cost;
	node = make_node(&portions, all->last_node_id + 1);
	keeping = node->scan.plan.total_cost - node->scan.plan.startup_cost;
	if (backward)
		node->flags |= CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	*portions.place = &node->scan.plan;
	foreach(lc, portions.above)
	{
		Plan	   *plan = lfirst(lc);

		plan->startup_cost += later;
		plan->total_cost = Max(plan->total_cost + keeping, plan->startup_cost);
	}

	*ours = *stmt->planTree;
	*first_row = *serial->planTree;
	if (!portions.one_row)
	{
		ours->total_cost = ours->startup_cost + keeping;
		first_row->total_cost = first_row->startup_cost;
	}
	stmt->parallelModeNeeded = ExecSupportsBackwardScan(stmt->planTree) != backward;
	return NOT_REFUSED;
}

/* ----------
 * Queries that turn out to be fetched in portions when they are run
 * ----------
 */

/* Does an aggregation in plan, above any join or Gather, compute something of groups? */
static bool
groups_compute(Plan *plan)
{
	List	   *children = tp_plan_children(plan);

	return computes_of_groups(plan) ||
		(list_length(children) == 1 && groups_compute(linitial(children)));
}

/*
 * The node for an execution of stmt, which has been planned with workers, of which not all
 * rows are asked for; and in *place what it is to be put above.  NULL if the statement is
 * not to be run ahead.  first is the plan of one of its flush nodes, and saving what workers
 * save.  The plan, which may be cached, is not changed.  The query is not known here, so
 * what core would do without workers is estimated, and nothing may be computed of groups.
 */
CustomScan *
tp_node_for_execution(PlannedStmt *stmt, const FlushPlan *first, Cost saving,
					  Plan **place)
{
	Portions	portions = find_portions(stmt);
	CustomScan *node;
	Cost		serial;

	if (portions.place == NULL || first->looks_at_statement ||
		tp_must_run_in_leader(tp_gather_facts(stmt, tp_statement_facts(stmt).gathers), true))
		return NULL;
	*place = *portions.place;
	node = tp_run_ahead_node(*place, -1);
	if (portions.one_row)
		serial = (*place)->total_cost + saving;
	else if (first->calls_volatile || portions.computes || groups_compute(*place) ||
			 tp_rows_exceed_file_limit(*place))
		return NULL;
	else
		serial = (*place)->startup_cost * (1 + saving / (*place)->total_cost);
	return node->scan.plan.total_cost > LARGEST_PART * serial ? NULL : node;
}
