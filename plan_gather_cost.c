/*-------------------------------------------------------------------------
 *
 * plan_gather_cost.c
 *	  The charge: the cost of the flush, added to the cost of a Gather.
 *
 * The tables to flush for a Gather over a RelOptInfo do not depend on the path
 * below it, because every partial path reads all of them.  The indexes do;
 * those of the cheapest partial path are charged.  So the Gather is charged,
 * and nothing below it.  Paths over temporary tables then cost what they would
 * over permanent ones, a serial plan pays for no flush, no rescan multiplies
 * the charge, and a table that is joined with itself is charged once.
 *
 * Core makes all Gather paths itself and adds parallel_setup_cost to each.  So
 * while a statement is planned, that variable is raised by the cost of a
 * relation's flush just before core makes the Gather paths of the relation:
 *
 *	- for a base relation, in set_rel_pathlist_hook, which core calls just
 *	  before;
 *	- for a join relation, in the loop over a level's relations, which
 *	  join_search_hook may replace;
 *	- for everything above the joins of a query level, the charge of its
 *	  topmost relation, set last, remains in effect;
 *	- for a set operation, whose Gather collects the rows of several query
 *	  levels, after each of these has been planned.
 *
 * Besides the flush, a Gather is charged with what it costs that there are fewer
 * processors than processes (plan_repeated.c), by the cheapest partial path.
 * Only the Gathers below the topmost relation in a join search that cannot be
 * charged relation by relation are not.  A plan for clean tables is charged with
 * that too, and with the search of the pool.
 *
 * A charge needs a walk over the pool, which may take longer than a small
 * query.  So a relation whose Gather would lose even without a charge gets
 * none, and the pool is not counted for it (see gather_may_win()).  If such a
 * Gather is chosen anyway, the plan may be suboptimal and its cost too low, but
 * its flush node is placed, costed and executed like any other.
 *
 * The invariant: when the planner returns or fails, parallel_setup_cost has
 * its former value, unless a function that the planner evaluates has set it.
 * A nested statement, planned by such a function, is planned with the former
 * value too, or with what the function has set.  Only a function that reads
 * the setting itself sees the charge.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pg_list.h"
#include "optimizer/cost.h"
#include "optimizer/geqo.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "utils/float.h"
#include "utils/guc.h"

#include "plan.h"

/* A call of the planner, possibly inside another one. */
typedef struct PlannerCall
{
	struct PlannerCall *outer;
	FlushCharging charging;
	bool		has_charged;	/* has a Gather been charged for writes? */
	double		before;			/* parallel_setup_cost to restore */
	bool		saved;			/* will the server restore it, too? */
	double		setup_cost;		/* parallel_setup_cost without a charge */
	double		charged;		/* what this file last set it to */
	Query	   *query;			/* a copy that is not being planned, or NULL */
	LocalBufStats *stats;		/* counted when first needed */
	MemoryContext context;		/* where to keep them */
} PlannerCall;

static PlannerCall *current = NULL;

/* ----------
 * Setting and restoring parallel_setup_cost
 * ----------
 */

/*
 * Have the server restore parallel_setup_cost, too, at the end and after an
 * error.  Otherwise, if a function evaluated by the planner changes the setting
 * and fails, the server would restore the value including the charge.
 */
static void
save_setup_cost(void)
{
	parallel_setup_cost = current->before;
	(void) NewGUCNestLevel();	/* not changed in this one yet */
	(void) set_config_option("parallel_setup_cost",
							 psprintf("%.17g", current->before),
							 PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	current->saved = true;
}

/*
 * Returns parallel_setup_cost without a charge.  If it was changed since the
 * last charge, the new value becomes the base for further charges.
 */
static Cost
setup_cost_without_charge(void)
{
	if (parallel_setup_cost != current->charged)
	{
		current->setup_cost = current->before = parallel_setup_cost;
		current->charged = parallel_setup_cost;
	}
	return current->setup_cost;
}

/*
 * Add the cost of a flush, and of having few processors, to every Gather path that
 * is made from now on, in place of the last charge.
 */
static void
set_charge(FlushCost flush, Cost processors)
{
	Cost		setup_cost = setup_cost_without_charge();
	Cost		charge = flush.charge + processors;

	if (charge > 0 && !current->saved)
		save_setup_cost();
	current->has_charged |= flush.charge > flush.search;
	current->charged = setup_cost + charge;
	parallel_setup_cost = current->charged;
}

/*
 * Run the planner with charges.  next is another module's hook, or NULL.
 * Returns the plan, without flush nodes, and in *charges what was charged; both
 * in the current memory context.  The pool is not counted if *charges has counts.
 */
PlannedStmt *
tp_planner_with_flush_cost(planner_hook_type next, PLANNER_HOOK_ARGS,
						   FlushCharging charging, FlushCharges *charges)
{
	PlannerCall call = {0};
	int			guc_level = NewGUCNestLevel();
	PlannedStmt *volatile result;

	call.outer = current;
	call.charging = charging;
	call.query = charges->query;
	call.stats = charges->stats;
	call.before = parallel_setup_cost;
	if (current != NULL && parallel_setup_cost == current->charged)
		call.setup_cost = current->setup_cost;
	else
		call.setup_cost = parallel_setup_cost;
	call.charged = call.setup_cost;
	call.context = CurrentMemoryContext;

	PG_TRY();
	{
		current = &call;
		parallel_setup_cost = call.setup_cost;

		result = next ? next(PLANNER_HOOK_PASS) :
			standard_planner(PLANNER_HOOK_PASS);
	}
	PG_FINALLY();
	{
		current = call.outer;
		if (parallel_setup_cost == call.charged)
			parallel_setup_cost = call.before;
	}
	PG_END_TRY();
	AtEOXact_GUC(true, guc_level);	/* after an error the abort does it */

	charges->charging = charging;
	charges->stats = call.stats;
	charges->charged = call.has_charged;
	return result;
}

/* Is a statement being planned whose workers may read temporary tables? */
bool
tp_planning_temp_tables(void)
{
	return current != NULL && current->charging != NOT_FOR_WORKERS;
}

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
static List *tables_of_rel(PlannerInfo *root, RelOptInfo *rel, List *relids);

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

/* Add the temporary tables of a base or join relation. */
static List *
tables_of_rel(PlannerInfo *root, RelOptInfo *rel, List *relids)
{
	int			rti = -1;

	while ((rti = bms_next_member(rel->relids, rti)) >= 0)
	{
		if (rti < root->simple_rel_array_size)
			relids = tables_of_base_rel(root, rti, relids);
	}

	/* workers may compute what is above the joins, too */
	if (bms_equal(rel->relids, query_level_relids(root)))
	{
		relids = subplan_tables(root, (Node *) root->processed_tlist, relids);
		relids = subplan_tables(root, root->parse->havingQual, relids);
	}
	return relids;
}

/* Add the temporary tables of a whole query level. */
static List *
tables_of_level(PlannerInfo *root, List *relids)
{
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

/* ----------
 * The indexes that a path scans
 * ----------
 */

static List *indexes_of_paths(List *paths, List *indexes);

/*
 * Add the indexes that path scans, of any tables.  Of the kinds of path in
 * create_plan_recurse() of createplan.c, only those are searched that may be
 * below a Gather, and no subplans of expressions: the charge is an estimate.
 */
static List *
indexes_of_path(Path *path, List *indexes)
{
	switch (nodeTag(path))
	{
		case T_IndexPath:
			return list_append_unique_oid(indexes,
										  ((IndexPath *) path)->indexinfo->indexoid);
		case T_BitmapHeapPath:
			return indexes_of_path(((BitmapHeapPath *) path)->bitmapqual,
								   indexes);
		case T_BitmapAndPath:
			return indexes_of_paths(((BitmapAndPath *) path)->bitmapquals,
									indexes);
		case T_BitmapOrPath:
			return indexes_of_paths(((BitmapOrPath *) path)->bitmapquals,
									indexes);
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			indexes = indexes_of_path(((JoinPath *) path)->outerjoinpath,
									  indexes);
			return indexes_of_path(((JoinPath *) path)->innerjoinpath,
								   indexes);
		case T_AppendPath:
			return indexes_of_paths(((AppendPath *) path)->subpaths, indexes);
		case T_MergeAppendPath:
			return indexes_of_paths(((MergeAppendPath *) path)->subpaths,
									indexes);
		case T_SubqueryScanPath:
			return indexes_of_path(((SubqueryScanPath *) path)->subpath,
								   indexes);
		case T_MaterialPath:
			return indexes_of_path(((MaterialPath *) path)->subpath, indexes);
		case T_MemoizePath:
			return indexes_of_path(((MemoizePath *) path)->subpath, indexes);
		case T_ProjectionPath:
			return indexes_of_path(((ProjectionPath *) path)->subpath,
								   indexes);
		case T_SortPath:
		case T_IncrementalSortPath:
			return indexes_of_path(((SortPath *) path)->subpath, indexes);
		case T_AggPath:
			return indexes_of_path(((AggPath *) path)->subpath, indexes);
		default:
			return indexes;
	}
}

static List *
indexes_of_paths(List *paths, List *indexes)
{
	ListCell   *lc;

	foreach(lc, paths)
		indexes = indexes_of_path(lfirst(lc), indexes);
	return indexes;
}

/* ----------
 * Can a Gather win?
 * ----------
 */

/*
 * Returns the lowest cost, by criterion, among the paths with the fewest
 * disabled nodes, which compare_path_costs_fuzzily() of pathnode.c prefers, and
 * sets *disabled to their number.  Ignores parameterized paths, which cannot be
 * run by themselves.  Infinity if there are no others.
 */
static Cost
least_cost(List *paths, CostSelector criterion, int *disabled)
{
	Cost		least = get_float8_infinity();
	ListCell   *lc;

	*disabled = INT_MAX;
	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Cost		cost = criterion == STARTUP_COST ?
			path->startup_cost : path->total_cost;

		if (path->param_info != NULL || path_disabled_nodes(path) > *disabled)
			continue;
		if (path_disabled_nodes(path) < *disabled)
			least = cost;
		else
			least = Min(least, cost);
		*disabled = path_disabled_nodes(path);
	}
	return least;
}

/*
 * Upper bound on the estimates of cost_tuplesort() and cost_agg() of costsize.c
 * for sorting or grouping rows of this width by a number of columns: all
 * comparisons of a sort, all hash values and lookups of a hash table, and three
 * passes through temporary files.
 */
static Cost
sort_or_group_bound(double rows, int width, int columns)
{
	double		pages = rows * (width + MAXALIGN(SizeofHeapTupleHeader)) / BLCKSZ;
	Cost		cost;

	cost = rows * (2.0 * log2(rows + 2.0) + columns + 1) * cpu_operator_cost +
		rows * 2.0 * cpu_tuple_cost;
	if (pages * BLCKSZ > work_mem * 1024.0)
		cost += 2.0 * 3.0 * pages * Max(seq_page_cost, random_page_cost);
	return cost;
}

/*
 * An upper bound of the cost, in one process, of everything that the planner
 * may have workers do with the rows of a query level's topmost relation:
 * evaluate the target list, group (see cost_agg() of costsize.c), make
 * distinct and sort.  Infinity if it is not known.
 */
static Cost
upper_bound_above(PlannerInfo *root, double rows, int width)
{
	Query	   *parse = root->parse;
	QualCost	exprs;
	Cost		cost;

	/* SRFs multiply rows, cost_qual_eval() ignores window functions */
	if (parse->hasTargetSRFs || parse->hasWindowFuncs)
		return get_float8_infinity();

	cost_qual_eval(&exprs, root->processed_tlist, root);
	cost = exprs.startup + exprs.per_tuple * rows;
	cost_qual_eval(&exprs, (List *) parse->havingQual, root);
	cost += exprs.startup + exprs.per_tuple * rows;

	if (parse->hasAggs)
	{
		AggClauseCosts aggs = {0};

		get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &aggs);
		cost += aggs.transCost.startup + aggs.transCost.per_tuple * rows +
			aggs.finalCost.startup + aggs.finalCost.per_tuple * rows;
	}

	/* at most one grouping, one DISTINCT and one ORDER BY */
	return cost + 3 * sort_or_group_bound(rows, width,
										  list_length(root->processed_tlist));
}

/*
 * Could a Gather over rel win if its flush cost nothing?
 *
 * Compare two plans that differ in that Gather alone.  One has it, over rel
 * or over what is made of rel until the next charge; it costs at least as
 * much as the partial path below and parallel_setup_cost (as in cost_gather()
 * and cost_gather_merge() of costsize.c, which add costs per row).  The other
 * has rel's cheapest path instead, and one process does what the workers
 * would do with the rows: at most a sort or, if rel is the topmost relation
 * of its query level, what upper_bound_above() counts.  A plan that reads
 * only some of the rows (LIMIT, a merge join, EXISTS) pays only part of a
 * path's cost, so of the partial path only the startup cost is certain; only
 * the topmost relation of a whole statement without LIMIT is certainly read
 * to its end.  Its rows may be grouped before the joins, so that partial path
 * counts, too.
 *
 * Paths that other modules add later are not seen.
 */
static bool
gather_may_win(PlannerInfo *root, RelOptInfo *rel)
{
	bool		topmost = bms_equal(rel->relids, query_level_relids(root));
	bool		all_rows = topmost && root->query_level == 1 &&
		root->tuple_fraction <= 0;
	List	   *partial = rel->partial_pathlist;
	int			disabled_alone;
	int			disabled;
	Cost		alone;
	Cost		gather;

	if (topmost && grouped_rel_of(rel) != NULL)
		partial = list_concat_copy(partial,
								   grouped_rel_of(rel)->partial_pathlist);
	alone = least_cost(rel->pathlist, TOTAL_COST, &disabled_alone);
	gather = least_cost(partial, all_rows ? TOTAL_COST : STARTUP_COST,
						&disabled);
	if (disabled != disabled_alone)
		return disabled < disabled_alone;
	if (!enable_sort)
		return true;			/* the workers' path may need none */

	gather += setup_cost_without_charge();
	if (gather > alone && topmost)
		alone += upper_bound_above(root, rel->rows, rel->reltarget->width);
	else if (gather > alone)
		alone += sort_or_group_bound(rel->rows, rel->reltarget->width, 0);
	return gather <= alone;
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
 * The same for the set operation with these parts, by the sums over them.
 * root is one of the query levels.
 */
static bool
setop_gather_may_win(PlannerInfo *root, List *parts)
{
	Cost		alone = 0;
	double		rows = 0;
	int			width = 0;
	ListCell   *lc;

	foreach(lc, parts)
	{
		RelOptInfo *part = lfirst(lc);
		int			disabled;

		alone += least_cost(part->pathlist, TOTAL_COST, &disabled);
		if (disabled > 0)
			alone = get_float8_infinity();
		if (part->pathlist != NIL)
		{
			Path	   *path = linitial(part->pathlist);

			rows += path->rows;
			width = Max(width, path->pathtarget->width);
		}
	}
	if (!enable_sort)
		return true;
	return setup_cost_without_charge() <= alone +
		3 * sort_or_group_bound(rows, width, list_length(root->processed_tlist));
}

/* ----------
 * Charging
 * ----------
 */

/*
 * The cost of flushing tables relids and those of their indexes that are in
 * indexes.  Counts the pool at the first call.
 */
static FlushCost
flush_cost(List *relids, List *indexes)
{
	FlushCost	result = {0};

	if (relids == NIL)
		return result;
	if (current->stats == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(current->context);

		current->stats = tp_stats_for_query(current->query);
		MemoryContextSwitchTo(old);
	}
	result = tp_flush_cost_of_tables(current->stats, relids, indexes);
	if (current->charging == CHARGE_CLEAN)
		result.charge = result.search;
	return result;
}

/*
 * Charge the Gather paths of rel, a base or join relation, and of what is made
 * of it until the next charge.  The pool is not counted if rel has no partial
 * paths, or no Gather over it can win.
 */
void
tp_charge_gather_of_rel(PlannerInfo *root, RelOptInfo *rel)
{
	FlushCost	flush = {0};
	Cost		processors = 0;

	if (rel->partial_pathlist != NIL && gather_may_win(root, rel))
	{
		Path	   *path = linitial(rel->partial_pathlist);
		List	   *relids = tables_of_rel(root, rel, NIL);

		flush = flush_cost(relids, indexes_of_path(path, NIL));
		if (relids != NIL)
			processors = tp_cost_of_few_processors(path);
	}
	set_charge(flush, processors);
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
	Cost		processors = 0;
	List	   *parts;

	if (parent == NULL || parent->parse->setOperations == NULL)
		return;
	parts = setop_parts(root, final);
	if (setop_gather_may_win(root, parts))
	{
		List	   *relids = tables_of_level(root, tables_of_level(parent, NIL));
		ListCell   *lc;

		flush = flush_cost(relids, NIL);
		foreach(lc, parts)
		{
			RelOptInfo *part = lfirst(lc);

			if (relids != NIL && part->partial_pathlist != NIL)
				processors += tp_cost_of_few_processors(linitial(part->partial_pathlist));
		}
	}
	set_charge(flush, processors);
}

/* Would make_rel_from_joinlist() of allpaths.c call geqo()? */
static bool
genetic_join_search(int levels_needed)
{
	return enable_geqo && levels_needed >= geqo_threshold;
}

/*
 * Run the join search that would run without this module: next, another
 * module's, or if that is NULL the one that make_rel_from_joinlist() of
 * allpaths.c chooses.
 */
RelOptInfo *
tp_next_join_search(join_search_hook_type next, PlannerInfo *root,
					int levels_needed, List *initial_rels)
{
	if (next != NULL)
		return next(root, levels_needed, initial_rels);
	if (genetic_join_search(levels_needed))
		return geqo(root, levels_needed, initial_rels);
	return standard_join_search(root, levels_needed, initial_rels);
}

/*
 * The same with charges: as standard_join_search() of allpaths.c, but the
 * Gather paths of each join relation are charged with the flush of that
 * relation.  Another module's join search and the genetic one cannot be
 * charged relation by relation, and are charged with the flush of the whole
 * query level.
 */
RelOptInfo *
tp_join_search_with_flush_cost(join_search_hook_type next, PlannerInfo *root,
							   int levels_needed, List *initial_rels)
{
	RelOptInfo *rel = NULL;
	bool		parallel = false;
	ListCell   *lc;

	foreach(lc, initial_rels)
		parallel |= ((RelOptInfo *) lfirst(lc))->partial_pathlist != NIL;

	if (next != NULL || genetic_join_search(levels_needed) || !parallel)
	{
		set_charge(flush_cost(parallel ? tables_of_level(root, NIL) : NIL,
							  NIL), 0);
		rel = tp_next_join_search(next, root, levels_needed, initial_rels);
	}
	else
	{
		Assert(root->join_rel_level == NULL);
		root->join_rel_level = palloc0((levels_needed + 1) * sizeof(List *));
		root->join_rel_level[1] = initial_rels;

		for (int level = 2; level <= levels_needed; level++)
		{
			join_search_one_level(root, level);

			foreach(lc, root->join_rel_level[level])
			{
				bool		topmost;

				rel = (RelOptInfo *) lfirst(lc);
				generate_partitionwise_join_paths(root, rel);
				tp_charge_gather_of_rel(root, rel);
				topmost = bms_equal(rel->relids, query_level_relids(root));
				/* the topmost is gathered with its final target list */
				if (!topmost)
					generate_useful_gather_paths(root, rel, false);
				set_cheapest(rel);
				if (!topmost)
					make_grouped_paths(root, rel);
			}
		}

		if (root->join_rel_level[levels_needed] == NIL)
			elog(ERROR, "failed to build any %d-way joins", levels_needed);
		Assert(list_length(root->join_rel_level[levels_needed]) == 1);
		rel = (RelOptInfo *) linitial(root->join_rel_level[levels_needed]);
		root->join_rel_level = NULL;
	}

	tp_charge_gather_of_rel(root, rel);
	return rel;
}
