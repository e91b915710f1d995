/*-------------------------------------------------------------------------
 *
 * plan_gather_cost.c
 *	  The charge: the cost of the flush, added to the cost of a Gather.
 *
 * The tables to flush for a Gather over a RelOptInfo do not depend on the path
 * below it, because every partial path reads all of them.  So the Gather is
 * charged, and nothing below it.  Paths over temporary tables then cost what they would
 * over permanent ones, a serial plan pays for no flush, no rescan multiplies
 * the charge, and a table that is joined with itself is charged once.
 *
 * Core makes all Gather paths itself and adds parallel_setup_cost to each.  So
 * while a statement is planned, that variable is raised by the cost of a
 * relation's flush just before core makes the Gather paths of the relation:
 *
 *	- for a base relation, in set_rel_pathlist_hook, which core calls just
 *	  before;
 *	- for the joins of some of a query level's relations, in join_search_hook,
 *	  once for all of them;
 *	- for everything above the joins of a query level, the charge of its
 *	  topmost relation, set last, remains in effect;
 *	- for a set operation, whose Gather collects the rows of several query
 *	  levels, after each of these has been planned.
 *
 * Two charges are not exact.  A Gather over a part of a join is charged with the
 * flush of all tables of its query level that workers may read, so one that reads
 * only clean ones looks more expensive than it is.  That matters where the whole
 * join cannot be gathered, and only until the accounts have paid for the flush.
 * Indexes depend on the path, and are left out.  The flush node of the finished plan
 * knows them, and the second look counts them.
 *
 * A plan for clean tables is charged with the search of the pool.
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
#include "optimizer/tlist.h"
#include "utils/guc.h"
#include "utils/selfuncs.h"

#include "plan.h"

/* A call of the planner, possibly inside another one. */
typedef struct PlannerCall
{
	struct PlannerCall *outer;
	FlushCharges *charges;		/* NULL if no worker may read temporary tables */
	double		before;			/* parallel_setup_cost to restore */
	bool		saved;			/* will the server restore it, too? */
	double		setup_cost;		/* parallel_setup_cost without a charge */
	double		charged;		/* what this file last set it to */
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
 * Add the cost of a flush to every Gather path that is made from now on, in place
 * of the last charge.
 */
static void
set_charge(FlushCost flush)
{
	Cost		setup_cost = setup_cost_without_charge();

	if (flush.charge > 0 && !current->saved)
		save_setup_cost();
	current->charged = setup_cost + flush.charge;
	parallel_setup_cost = current->charged;
}

/*
 * Run the planner with charges.  next is another module's hook, or NULL.
 * Returns the plan, without flush nodes, and in *charges, unless that is NULL, what was
 * charged; both in the current memory context.
 */
PlannedStmt *
tp_planner_with_flush_cost(planner_hook_type next, PLANNER_HOOK_ARGS,
						   FlushCharges *charges)
{
	PlannerCall call = {0};
	int			guc_level = NewGUCNestLevel();
	PlannedStmt *volatile result;

	call.outer = current;
	call.charges = charges;
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
	return result;
}

/* Is a statement being planned whose workers may read temporary tables? */
bool
tp_planning_temp_tables(void)
{
	return current != NULL && current->charges != NULL;
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

/* ----------
 * Can a Gather win?
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
 * cannot be run by themselves.
 */
static Path *
cheapest_fetched(PlannerInfo *root, RelOptInfo *rel, List *paths, Cost *cost,
				 double *rows)
{
	Path	   *cheapest = NULL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		double		fraction;
		Cost		fetched;

		if (path->param_info != NULL || path_disabled_nodes(path) > 0)
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
 * An upper bound of the cost, in one process, of what the planner may have
 * workers do with this number of rows of query level root: evaluate the target
 * list, group, make distinct and sort, each once and in memory, as estimated by
 * cost_agg() and cost_tuplesort() of costsize.c.
 */
static Cost
cost_above(PlannerInfo *root, double rows)
{
	AggClauseCosts aggs = {0};
	QualCost	target;
	QualCost	having;
	Cost		sort;

	cost_qual_eval(&target, root->processed_tlist, root);
	cost_qual_eval(&having, (List *) root->parse->havingQual, root);
	if (root->parse->hasAggs)
		get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &aggs);
	sort = 2.0 * cpu_tuple_cost + cpu_operator_cost *
		(2.0 * log2(rows + 2.0) + list_length(root->processed_tlist) + 1);
	return target.startup + having.startup + aggs.transCost.startup +
		aggs.finalCost.startup +
		rows * (target.per_tuple + having.per_tuple +
				aggs.transCost.per_tuple + aggs.finalCost.per_tuple + 3 * sort);
}

/*
 * Could a Gather over rels win if its flush cost nothing?  rels are a base or
 * join relation of query level root, or the last relations of the parts of a set
 * operation.
 *
 * A Gather costs at least parallel_setup_cost.  So none wins if one process does
 * everything that is done with rels until the next charge for less.  What is
 * above a relation that is joined is at most a sort, so that cost_above() exceeds
 * it.
 *
 * Paths that other modules add later are not seen.
 */
static bool
gather_may_win(PlannerInfo *root, List *rels)
{
	Cost		alone = 0;
	double		all_rows = 0;
	double		bytes = 0;
	ListCell   *lc;

	foreach(lc, rels)
	{
		Cost		cost;
		double		rows;
		RelOptInfo *rel = lfirst(lc);
		Path	   *path = cheapest_fetched(root, rel, rel->pathlist, &cost, &rows);

		if (path == NULL)
			return true;
		alone += cost;
		all_rows += rows;
		bytes += rows * (path->pathtarget->width +
						 MAXALIGN(SizeofHeapTupleHeader));
	}
	if (alone > setup_cost_without_charge())
		return true;

	/*
	 * Not covered by cost_above(): a sort in temporary files or one that is
	 * disabled; set-returning functions, which make more rows; window
	 * functions, which cost_qual_eval() ignores.
	 */
	if (bytes > work_mem * 1024.0 || !enable_sort ||
		root->parse->hasTargetSRFs || root->parse->hasWindowFuncs)
		return true;
	return alone + cost_above(root, all_rows) > setup_cost_without_charge();
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

/* ----------
 * Charging
 * ----------
 */

/* The cost of flushing tables relids.  Counts the pool at the first call. */
static FlushCost
flush_cost(List *relids)
{
	FlushCharges *charges = current->charges;
	FlushCost	none = {0};

	if (relids == NIL)
		return none;
	if (charges->stats == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(current->context);

		charges->stats = tp_stats_for_price(charges->user_code);
		MemoryContextSwitchTo(old);
	}
	return tp_flush_cost_of_tables(charges->stats, relids, NIL);
}

/*
 * What workers save above the topmost relation of root, of which one process would run
 * path and fetch this number of rows: grouping, making distinct or sorting, less passing
 * on what is left of the rows.
 */
static Cost
saving_above(PlannerInfo *root, Path *path, double rows, int workers)
{
	Query	   *parse = root->parse;
	List	   *clauses = parse->hasAggs || parse->groupClause != NIL ?
		parse->groupClause : parse->distinctClause;
	double		divisor = tp_parallel_divisor(workers);
	AggClauseCosts aggs = {0};
	Cost		saved = 0;

	if ((parse->hasAggs || clauses != NIL) && parse->groupingSets == NIL &&
		!root->hasNonPartialAggs)
	{
		if (parse->hasAggs)
			get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &aggs);
		saved = (1 - 1 / divisor) * rows *
			(aggs.transCost.per_tuple + cpu_operator_cost * list_length(clauses));
		rows = clauses == NIL ? divisor : divisor *
			estimate_num_groups(root,
								get_sortgrouplist_exprs(clauses,
														root->processed_tlist),
								rows / divisor, NULL, NULL);
	}
	else if (!pathkeys_contained_in(root->query_pathkeys, path->pathkeys))
	{
		int			width = path->pathtarget->width;

		saved = sort_cost(rows, width, root->limit_tuples) -
			sort_cost(rows / divisor, width, root->limit_tuples);
		if (root->limit_tuples > 0)
			rows = Min(rows, root->limit_tuples * divisor);
	}
	return saved - parallel_tuple_cost * rows;
}

/*
 * Note what workers save in rels of query level root, as described at plan_saving.c: in
 * one relation, in the parts of a set operation, or in relations that are joined, of
 * which one row is left.  They read tables relids, whose flush costs flush.  relids is
 * NIL if no Gather can win.
 */
static void
note_saving(PlannerInfo *root, List *rels, GatherOver over, List *relids,
			FlushCost flush)
{
	MemoryContext old = MemoryContextSwitchTo(current->context);
	GatherSaving *note = palloc0(sizeof(GatherSaving));
	bool		setop = list_length(rels) > 1 && over == GATHER_WHOLE;
	Cost		saved = 0;
	ListCell   *lc;

	note->root = root;
	note->over = over;
	foreach(lc, rels)
	{
		RelOptInfo *rel = lfirst(lc);
		Cost		alone;
		Cost		partial;
		double		rows;
		double		rows_of_one;
		Path	   *one = cheapest_fetched(root, rel, rel->pathlist, &alone, &rows);
		Path	   *several = cheapest_fetched(root, rel, rel->partial_pathlist,
											   &partial, &rows_of_one);

		if (relids == NIL || one == NULL || several == NULL)
		{
			relids = NIL;
			break;
		}
		note->serial += alone;
		saved += alone - partial;
		if (over == GATHER_WHOLE && !setop)
			saved += saving_above(root, one, rows, several->parallel_workers);
		else if (over != GATHER_JOIN)
			saved -= parallel_tuple_cost * rows;
	}
	if (relids != NIL)
	{
		note->saving.saving = saved - setup_cost_without_charge() - flush.search;
		note->saving.charge = flush.charge - flush.search;
		note->saving.relids = list_copy(relids);
	}
	current->charges->savings = lappend(current->charges->savings, note);
	MemoryContextSwitchTo(old);
}

/*
 * Charge the Gather paths of rel, a base relation or the topmost join of a query level,
 * and of what is made of it until the next charge.  The pool is not counted if rel has
 * no partial paths, or no Gather over it can win.
 */
void
tp_charge_gather_of_rel(PlannerInfo *root, RelOptInfo *rel)
{
	bool		whole = bms_equal(rel->relids, query_level_relids(root));
	List	   *rels = list_make1(rel);
	List	   *relids = NIL;
	FlushCost	flush = {0};

	if (rel->partial_pathlist != NIL)
	{
		if (gather_may_win(root, rels))
		{
			relids = tables_of_rel(root, rel, NIL);
			flush = flush_cost(relids);
		}
		note_saving(root, rels, whole ? GATHER_WHOLE : GATHER_SCAN, relids,
					flush);
	}
	set_charge(flush);
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
	if (!possible)
	{
		note_saving(parent, parts, GATHER_WHOLE, NIL, flush);
		return;
	}
	if (gather_may_win(root, parts))
	{
		relids = tables_of_level(root, tables_of_level(parent, NIL));
		flush = flush_cost(relids);
	}
	note_saving(parent, parts, GATHER_WHOLE, relids, flush);
	set_charge(flush);
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
 * The same with charges.  The Gathers over a part of the join are charged with the flush
 * of all relations that workers may read.
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
			relids = tables_of_rel(root, rel, relids);
		if (rel->partial_pathlist != NIL)
			partial = lappend(partial, rel);
	}
	if (partial != NIL)
	{
		flush = flush_cost(relids);
		note_saving(root, partial, GATHER_JOIN, relids, flush);
	}
	set_charge(flush);
	rel = tp_next_join_search(next, root, levels_needed, initial_rels);
	tp_charge_gather_of_rel(root, rel);
	return rel;
}
