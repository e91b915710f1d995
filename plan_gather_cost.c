/*-------------------------------------------------------------------------
 *
 * plan_gather_cost.c
 *	  The charge for a flush, added to the cost of a Gather, and what workers would
 *	  save.
 *
 * The tables to flush for a Gather over a RelOptInfo do not depend on the path
 * below it, because every partial path reads all of them.  So the Gather is
 * charged, and nothing below it.  Paths over temporary tables then cost what
 * they would over permanent ones, a serial plan pays for no flush, no rescan
 * multiplies the charge, and a table that is joined with itself is charged
 * once.
 *
 * Core makes all Gather paths itself and adds parallel_setup_cost to each.  So
 * while a statement is planned, that variable is raised by the cost of a
 * relation's flush just before core makes the Gather paths of the relation:
 *
 *	- for a base relation, in set_rel_pathlist_hook;
 *	- for the joins of some of a query level's relations, in join_search_hook,
 *	  once for all of them;
 *	- for everything above the joins of a query level, the charge of its
 *	  topmost relation, set last, remains in effect;
 *	- for a set operation, whose Gather collects the rows of several query
 *	  levels, after each of these has been planned.
 *
 * A plan for clean tables is charged with the search of the pool.  To know the
 * charge, the pool is counted, which takes longer than a small query.  So where
 * parallel_setup_cost alone is more than all that one process has to do, there is
 * no charge.
 *
 * Charges are not exact.  A Gather over a part of a join is charged with all
 * tables of its query level that workers may read, so one that reads only clean
 * ones looks more expensive than it is, until the accounts have paid for the flush.
 * Indexes depend on the path, and are left out; and if the statement runs user code,
 * fewer pages may be shared.  The flush node of the finished plan knows both, and the
 * second look counts them.
 *
 * The invariant: a Gather that the planner chooses has been charged with all the
 * temporary tables that its workers may read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/geqo.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

#include "plan.h"

/* ----------
 * The temporary tables that a relation of the planner is made of
 * ----------
 */

typedef struct TableSearch
{
	PlannerInfo *root;
	List	   *relids;			/* of temporary tables, found so far */
} TableSearch;

static List *tables_of_level(PlannerInfo *root, List *relids);

/* Add the tables that the subplans in an expression read, as workers do. */
static bool
subplan_tables_walker(Node *node, TableSearch *search)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
	{
		SubPlan    *subplan = (SubPlan *) node;
		PlannerInfo *subroot = list_nth(search->root->glob->subroots,
										subplan->plan_id - 1);

		search->relids = tables_of_level(subroot, search->relids);
	}
	else if (IsA(node, RestrictInfo))
		return subplan_tables_walker((Node *) ((RestrictInfo *) node)->clause,
									 search);
	return expression_tree_walker(node, subplan_tables_walker, search);
}

static List *
subplan_tables(PlannerInfo *root, Node *expression, List *relids)
{
	TableSearch search;

	/* subplans come from sublinks, and most queries have none */
	if (root->glob->subplans == NIL)
		return relids;
	search.root = root;
	search.relids = relids;
	subplan_tables_walker(expression, &search);
	return search.relids;
}

/* Add the temporary tables that base relation rti and its children read. */
static List *
tables_of_base_rel(PlannerInfo *root, int rti, List *relids)
{
	RelOptInfo *rel = root->simple_rel_array[rti];
	RangeTblEntry *rte = root->simple_rte_array[rti];

	check_stack_depth();
	if (rel == NULL || IS_DUMMY_REL(rel))
		return relids;

	if (rte->inh)
	{
		ListCell   *lc;

		foreach(lc, root->append_rel_list)
		{
			AppendRelInfo *child = lfirst(lc);

			if (child->parent_relid == rti)
				relids = tables_of_base_rel(root, child->child_relid, relids);
		}
	}
	else if (rte->rtekind == RTE_RELATION && tp_is_session_temp_table(rte->relid))
		relids = list_append_unique_oid(relids, rte->relid);

	if (rel->subroot != NULL)
		relids = tables_of_level(rel->subroot, relids);

	relids = subplan_tables(root, (Node *) rel->baserestrictinfo, relids);
	relids = subplan_tables(root, (Node *) rel->joininfo, relids);
	return subplan_tables(root, (Node *) rel->reltarget->exprs, relids);
}

/* Add the temporary tables of a whole query level. */
static List *
tables_of_level(PlannerInfo *root, List *relids)
{
	check_stack_depth();
	for (int rti = 1; rti < root->simple_rel_array_size; rti++)
	{
		RelOptInfo *rel = root->simple_rel_array[rti];

		/* children are found through their parents */
		if (rel != NULL && rel->reloptkind == RELOPT_BASEREL)
			relids = tables_of_base_rel(root, rti, relids);
		else if (rel != NULL && rel->subroot != NULL)
			relids = tables_of_level(rel->subroot, relids);
	}
	relids = subplan_tables(root, (Node *) root->processed_tlist, relids);
	return subplan_tables(root, root->parse->havingQual, relids);
}

/*
 * The temporary tables of a base or join relation.  Workers may compute what is above
 * the joins of a query level, too.
 */
static List *
tables_of_rel(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *relids = NIL;
	int			rti = -1;

	if (bms_equal(rel->relids, query_level_relids(root)))
		return tables_of_level(root, NIL);
	while ((rti = bms_next_member(rel->relids, rti)) >= 0)
	{
		if (rti < root->simple_rel_array_size)
			relids = tables_of_base_rel(root, rti, relids);
	}
	return relids;
}

/* ----------
 * What workers save
 * ----------
 */

/*
 * The fraction of the rows of path, a path of rel, that is fetched, by the
 * planner's estimate: less than 1 only if the rows that are left of the query
 * level, by a LIMIT or as it is a subquery, are rel's first in that order.
 */
static double
fraction_fetched(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	Query	   *parse = root->parse;

	if (root->tuple_fraction <= 0 || rel->relids == NULL ||
		!bms_equal(rel->relids, query_level_relids(root)) ||
		parse->hasAggs || parse->groupClause != NIL ||
		parse->groupingSets != NIL || parse->distinctClause != NIL ||
		!pathkeys_contained_in(root->query_pathkeys, path->pathkeys))
		return 1;
	if (root->tuple_fraction < 1)
		return root->tuple_fraction;
	return Min(1, root->tuple_fraction / clamp_row_est(rel->rows));
}

/*
 * Returns that of paths, of rel, of which what is fetched costs least, and sets *cost
 * and *rows for that; NULL if each is disabled.  Ignores parameterized paths, which
 * cannot be run by themselves, and if alone is set, those with a Gather, which are the
 * ones that are not parallel safe.
 */
static Path *
cheapest_fetched(PlannerInfo *root, RelOptInfo *rel, List *paths, bool alone,
				 Cost *cost, double *rows)
{
	Path	   *cheapest = NULL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		double		fraction;
		Cost		fetched;

		if (path->param_info != NULL || path_disabled_nodes(path) > 0 ||
			(alone && !path->parallel_safe))
			continue;
		fraction = fraction_fetched(root, rel, path);
		fetched = path->startup_cost +
			fraction * (path->total_cost - path->startup_cost);
		if (cheapest == NULL || fetched < *cost)
		{
			cheapest = path;
			*cost = fetched;
			*rows = fraction * path->rows;
		}
	}
	return cheapest;
}

/*
 * What workers can do above the topmost relation of root for each of its rows:
 * computing columns, except those that are computed later, as in
 * make_group_input_target(), make_window_input_target() and make_sort_input_target()
 * of planner.c; aggregating; and comparing values to group them.
 */
static Cost
cost_per_row(PlannerInfo *root)
{
	Query	   *parse = root->parse;
	bool		grouped = parse->hasAggs || parse->groupClause != NIL;
	bool		sort_first = parse->sortClause != NIL &&
		(parse->limitCount != NULL || root->tuple_fraction > 0);
	AggClauseCosts aggs = {0};
	QualCost	cost;
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, root->processed_tlist)
	{
		Node	   *column = (Node *) lfirst_node(TargetEntry, lc)->expr;
		Index		ref = lfirst_node(TargetEntry, lc)->ressortgroupref;

		cost_qual_eval_node(&cost, column, root);
		if (grouped ?
			get_sortgroupref_clause_noerr(ref, parse->groupClause) != NULL :
			parse->hasWindowFuncs ? ref != 0 && !contain_window_function(column) :
			!sort_first || ref != 0 || cost.per_tuple <= 10 * cpu_operator_cost)
			columns = lappend(columns, column);
	}
	cost_qual_eval(&cost, columns, root);
	if (!is_parallel_safe(root, (Node *) columns))
		cost.per_tuple = 0;
	if (parse->hasAggs && parse->groupingSets == NIL && !root->hasNonPartialAggs)
		get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &aggs);
	return cost.per_tuple + aggs.transCost.per_tuple + cpu_operator_cost *
		list_length(grouped ? parse->groupClause : parse->distinctClause);
}

/*
 * What workers save above the topmost relation of root, of which one process
 * would run path and fetch this number of rows: cost_per_row(), or sorting, less
 * passing on what is left of the rows.
 */
static Cost
saving_above(PlannerInfo *root, Path *path, double rows, int workers)
{
	Query	   *parse = root->parse;
	List	   *clauses = parse->hasAggs || parse->groupClause != NIL ?
		parse->groupClause : parse->distinctClause;
	double		divisor = tp_parallel_divisor(workers);
	Cost		saved = (1 - 1 / divisor) * rows * cost_per_row(root);

	if ((parse->hasAggs || clauses != NIL) && parse->groupingSets == NIL &&
		!root->hasNonPartialAggs)
	{
		rows = clauses == NIL ? divisor : divisor *
			estimate_num_groups(root,
								get_sortgrouplist_exprs(clauses,
														root->processed_tlist),
								rows / divisor, NULL, NULL);
	}
	else if (!pathkeys_contained_in(root->query_pathkeys, path->pathkeys))
	{
		int			width = path->pathtarget->width;

		saved += sort_cost(rows, width, root->limit_tuples) -
			sort_cost(rows / divisor, width, root->limit_tuples);
		if (root->limit_tuples > 0)
			rows = Min(rows, root->limit_tuples * divisor);
	}
	return saved - parallel_tuple_cost * rows;
}

/*
 * Can no Gather win over rel, the topmost relation of root, or above?  True if one
 * process does all of what workers could do in this query level for less than
 * parallel_setup_cost, which is what each Gather costs before its first row.
 */
static bool
no_gather_can_win(PlannerInfo *root, RelOptInfo *rel)
{
	Path	   *one;
	Cost		cost;
	double		rows;

	/* work on other rows, or on more than a LIMIT asks for; disabled sorts */
	if (root->parse->hasTargetSRFs || root->parse->hasWindowFuncs ||
		enable_partitionwise_aggregate || !enable_sort)
		return false;
	one = cheapest_fetched(root, rel, rel->pathlist, false, &cost, &rows);
	return one != NULL &&
		cost + rows * cost_per_row(root) +
		sort_cost(rows, one->pathtarget->width, -1) < tp_setup_cost_without_charge();
}

/*
 * Note what workers save in rels of query level root, as described at
 * plan_saving.c: in one relation, in the parts of a set operation, or in
 * relations that are joined, of which one row is left.  They read tables
 * relids, whose flush costs flush.  relids is NIL if no Gather can win.
 */
static void
note_saving(PlannerInfo *root, List *rels, GatherOver over, List *relids,
			FlushCost flush)
{
	Planning   *planning = tp_planning_temp_tables();
	MemoryContext old = MemoryContextSwitchTo(root->planner_cxt);
	GatherSaving *note = palloc0(sizeof(GatherSaving));
	Cost		saved = 0;
	ListCell   *lc;

	note->root = root;
	note->over = over;
	foreach(lc, rels)
	{
		RelOptInfo *rel = lfirst(lc);
		Cost		serial;
		Cost		alone;
		Cost		partial;
		double		rows;
		double		rows_of_one;
		Path	   *several = cheapest_fetched(root, rel, rel->partial_pathlist,
											   false, &partial, &rows_of_one);
		Path	   *one = cheapest_fetched(root, rel, rel->pathlist, true,
										   &alone, &rows);

		/* core makes join paths of the cheapest ones only */
		if (one == NULL)
			one = cheapest_fetched(root, rel, rel->pathlist, false, &alone, &rows);

		if (relids == NIL || one == NULL || several == NULL)
		{
			relids = NIL;
			break;
		}
		(void) cheapest_fetched(root, rel, rel->pathlist, false, &serial, &rows);
		note->serial += serial;
		note->alone += alone;
		saved += alone - partial;
		if (over == GATHER_WHOLE)
			saved += saving_above(root, one, rows, several->parallel_workers);
		else if (over != GATHER_JOIN)
			saved -= parallel_tuple_cost * rows;
	}
	if (relids != NIL)
	{
		note->saving.saving = saved - tp_setup_cost_without_charge() - flush.search;
		note->saving.charge = flush.charge - flush.search;
		note->search = flush.search;
		note->saving.relids = list_copy(relids);
	}
	planning->savings = lappend(planning->savings, note);
	MemoryContextSwitchTo(old);
}

/* ----------
 * Charging
 * ----------
 */

/*
 * Charge the Gather paths of rel, a base relation or the topmost join of a
 * query level, and of what is made of it until the next charge.
 */
void
tp_charge_gather_of_rel(PlannerInfo *root, RelOptInfo *rel)
{
	bool		whole = bms_equal(rel->relids, query_level_relids(root));
	FlushCost	flush = {0};

	if (rel->partial_pathlist != NIL)
	{
		List	   *relids = whole && no_gather_can_win(root, rel) ? NIL :
			tables_of_rel(root, rel);

		flush = tp_flush_estimate(relids, NIL, false);
		note_saving(root, list_make1(rel), whole ? GATHER_WHOLE : GATHER_SCAN,
					relids, flush);
	}
	tp_charge_gathers(flush.charge);
}

/*
 * The last relations of those parts of a set operation that have been planned.
 * One part is query level root, of which final is the last relation.
 */
static List *
setop_parts(PlannerInfo *root, RelOptInfo *final)
{
	PlannerInfo *parent = root->parent_root;
	List	   *parts = list_make1(final);

	for (int rti = 1; rti < parent->simple_rel_array_size; rti++)
	{
		RelOptInfo *rel = parent->simple_rel_array[rti];

		if (rel != NULL && rel->subroot != NULL && rel->subroot != root)
			parts = lappend(parts, fetch_upper_rel(rel->subroot,
												   UPPERREL_FINAL, NULL));
	}
	return parts;
}

/*
 * Charge the Gather path of the set operation that query level root is a part
 * of, which generate_union_paths() of prepunion.c makes when all parts have
 * been planned, for its tables without their indexes.  To be called after
 * each part has been planned: the last call sees all of them.  final is
 * root's last relation.
 */
void
tp_charge_gather_of_setop(PlannerInfo *root, RelOptInfo *final)
{
	PlannerInfo *parent = root->parent_root;
	FlushCost	flush = {0};
	List	   *relids = NIL;
	List	   *parts;
	bool		possible;
	ListCell   *lc;

	if (parent == NULL || parent->parse->setOperations == NULL)
		return;
	possible = castNode(SetOperationStmt,
						parent->parse->setOperations)->op == SETOP_UNION;
	parts = setop_parts(root, final);
	foreach(lc, parts)
		possible &= ((RelOptInfo *) lfirst(lc))->partial_pathlist != NIL;
	if (possible)
	{
		relids = tables_of_level(root, tables_of_level(parent, NIL));
		flush = tp_flush_estimate(relids, NIL, false);
		tp_charge_gathers(flush.charge);
	}
	note_saving(parent, parts, GATHER_UNION, relids, flush);
}

/* The join search of the server, as make_rel_from_joinlist() of allpaths.c chooses it. */
RelOptInfo *
tp_standard_join_search(PlannerInfo *root, int levels_needed, List *initial_rels)
{
	if (enable_geqo && levels_needed >= geqo_threshold)
		return geqo(root, levels_needed, initial_rels);
	return standard_join_search(root, levels_needed, initial_rels);
}

/*
 * Run next, a join search, with charges.  The Gathers over a part of the join are
 * charged with the flush of all relations that workers may read.
 */
RelOptInfo *
tp_join_search_with_flush_cost(join_search_hook_type next, PlannerInfo *root,
							   int levels_needed, List *initial_rels)
{
	RelOptInfo *rel;
	List	   *partial = NIL;
	List	   *relids = NIL;
	FlushCost	flush = {0};
	ListCell   *lc;

	foreach(lc, initial_rels)
	{
		rel = lfirst(lc);
		if (rel->consider_parallel)
			relids = list_concat_unique_oid(relids, tables_of_rel(root, rel));
		if (rel->partial_pathlist != NIL)
			partial = lappend(partial, rel);
	}
	if (partial != NIL)
	{
		flush = tp_flush_estimate(relids, NIL, false);
		note_saving(root, partial, GATHER_JOIN, relids, flush);
	}
	tp_charge_gathers(flush.charge);
	rel = next(root, levels_needed, initial_rels);
	tp_charge_gather_of_rel(root, rel);
	return rel;
}
