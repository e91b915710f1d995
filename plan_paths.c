/*-------------------------------------------------------------------------
 *
 * plan_paths.c
 *	  Paths over temporary tables that parallel workers may run.
 *
 * Core keeps temporary tables out of parallel plans in one place,
 * set_rel_consider_parallel().  set_rel_pathlist_hook runs after a relation's paths have
 * been made and before they are gathered.  In that hook, this file applies core's remaining
 * rules again and rebuilds the paths with core's functions.  Core builds on them as on any
 * others, at the same costs as over permanent tables; what the flush costs is added to the
 * finished plan.
 *
 * A temporary child keeps its whole append relation (partitions, inheritance, UNION ALL)
 * out of parallel plans.  So children are left alone until the hook runs for their topmost
 * parent; then parent and children are treated together.  By then the hook has run for each
 * child, and other modules have chosen among its paths or added their own.  So it is called
 * again for a child whose paths are made anew; this module's own hook does nothing for a
 * child.
 *
 * The invariants: consider_parallel of an append relation is set if and only if it is set
 * for each of its children, and that of a grouped relation if and only if it is set for the
 * relation whose rows are grouped.  Every path list that is used has passed through the
 * other modules' hooks once.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "foreign/fdwapi.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "plan.h"

static void make_paths(PlannerInfo *root, RelOptInfo *rel, Index rti,
					   RangeTblEntry *rte);

/*
 * The children of an append relation that have not been proved empty, as in
 * set_append_rel_pathlist() of allpaths.c.  Raises an error if the stack is too deep.
 */
static List *
live_children(PlannerInfo *root, Index rti)
{
	List	   *children = NIL;
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, root->append_rel_list)
	{
		AppendRelInfo *appinfo = lfirst(lc);

		if (appinfo->parent_relid == rti)
		{
			RelOptInfo *child = root->simple_rel_array[appinfo->child_relid];

			if (child != NULL && !IS_DUMMY_REL(child))
				children = lappend(children, child);
		}
	}
	return children;
}

/* ----------
 * May workers read it?
 * ----------
 */

/* The rules of set_rel_consider_parallel() of allpaths.c for a table. */
static bool
table_may_be_parallel(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	/*
	 * Of another session: an error later; not a heap: no read-only phase; or
	 * left to the leader.
	 */
	if (!rte->inh && get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP &&
		(!tp_is_session_temp_table(rte->relid) || tp_planning_without(rte->relid)))
		return false;

	if (rte->tablesample != NULL &&
		(func_parallel(rte->tablesample->tsmhandler) != PROPARALLEL_SAFE ||
		 !is_parallel_safe(root, (Node *) rte->tablesample->args)))
		return false;

	if (rte->relkind == RELKIND_FOREIGN_TABLE &&
		(rel->fdwroutine->IsForeignScanParallelSafe == NULL ||
		 !rel->fdwroutine->IsForeignScanParallelSafe(root, rel, rte)))
		return false;

	return true;
}

/*
 * Could workers read rel if its temporary tables were permanent?  The rules of
 * set_rel_consider_parallel() and, for an append relation, those of
 * set_append_rel_size() about its children, both of allpaths.c.
 */
static bool
may_be_parallel(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	ListCell   *lc;

	switch (rte->rtekind)
	{
		case RTE_RELATION:
			if (!table_may_be_parallel(root, rel, rte))
				return false;
			break;
		case RTE_SUBQUERY:
			if (!rte->inh && limit_needed(rte->subquery))
				return false;
			break;
		case RTE_FUNCTION:
			if (!is_parallel_safe(root, (Node *) rte->functions))
				return false;
			break;
		case RTE_VALUES:
			if (!is_parallel_safe(root, (Node *) rte->values_lists))
				return false;
			break;
		case RTE_RESULT:
			break;
		default:
			return false;
	}

	if (!is_parallel_safe(root, (Node *) rel->baserestrictinfo) ||
		!is_parallel_safe(root, (Node *) rel->reltarget->exprs))
		return false;

	if (rte->inh)
	{
		foreach(lc, live_children(root, rel->relid))
		{
			RelOptInfo *child = lfirst(lc);

			if (!may_be_parallel(root, child,
								 root->simple_rte_array[child->relid]))
				return false;
		}
	}
	return true;
}

/* ----------
 * Making the paths
 * ----------
 */

/*
 * As set_plain_rel_pathlist() and create_plain_partial_paths() of allpaths.c.
 * A forced TID scan, for WHERE CURRENT OF, is not possible in a parallel plan.
 */
static void
make_table_paths(PlannerInfo *root, RelOptInfo *rel)
{
	Relids		required_outer = rel->lateral_relids;

	add_path(rel, create_seqscan_path(root, rel, required_outer, 0));
	if (required_outer == NULL)
	{
		int			workers = compute_parallel_worker(rel, rel->pages, -1,
													  max_parallel_workers_per_gather);

		if (workers > 0)
			add_partial_path(rel, create_seqscan_path(root, rel, NULL, workers));
	}
	create_index_paths(root, rel);
	create_tidscan_paths(root, rel);
}

/* A path of rel over a path of its subquery. */
static Path *
subquery_path(PlannerInfo *root, RelOptInfo *rel, Path *subpath, bool trivial)
{
	List	   *pathkeys;

	pathkeys = convert_subquery_pathkeys(root, rel, subpath->pathkeys,
										 make_tlist_from_pathtarget(subpath->pathtarget));
	return create_subqueryscan_path_compat(root, rel, subpath, trivial,
										   pathkeys, rel->lateral_relids);
}

/*
 * As the end of set_subquery_pathlist() of allpaths.c.  old is a path that this has made, if
 * it is known: if the scan is trivial, that costs no more than the subquery's.
 */
static void
make_subquery_paths(PlannerInfo *root, RelOptInfo *rel, Path *old)
{
	RelOptInfo *final = fetch_upper_rel(rel->subroot, UPPERREL_FINAL, NULL);
	bool		trivial = old != NULL && IsA(old, SubqueryScanPath) &&
		old->total_cost == ((SubqueryScanPath *) old)->subpath->total_cost;
	ListCell   *lc;

	foreach(lc, final->pathlist)
		add_path(rel, subquery_path(root, rel, lfirst(lc), trivial));
	if (rel->lateral_relids == NULL)
	{
		foreach(lc, final->partial_pathlist)
			add_partial_path(rel, subquery_path(root, rel, lfirst(lc), trivial));
	}
}

/*
 * Are the paths of this kind of relation to be made anew?  Those in set_rel_pathlist() of
 * allpaths.c that can have partial paths, except foreign tables, whose wrapper is asked once.
 */
static bool
makes_new_paths(RangeTblEntry *rte)
{
	if (rte->inh || rte->rtekind == RTE_SUBQUERY)
		return true;
	return rte->rtekind == RTE_RELATION &&
		rte->relkind != RELKIND_FOREIGN_TABLE && rte->tablesample == NULL;
}

/* Mark the paths of rel as parallel safe, but for custom ones, of which providers know. */
static void
keep_paths(RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (!IsA(path, CustomPath))
			path->parallel_safe = true;
	}
}

static void
make_child_paths(PlannerInfo *root, RelOptInfo *child)
{
	RangeTblEntry *rte = root->simple_rte_array[child->relid];
	RelOptInfo *grouped = grouped_rel_of(child);

	make_paths(root, child, child->relid, rte);
	/* as set_rel_pathlist() of allpaths.c: all modules' hooks */
	if (makes_new_paths(rte))
		set_rel_pathlist_hook(root, child, child->relid, rte);
	set_cheapest(child);

	if (grouped != NULL)
	{
		grouped->pathlist = NIL;
		grouped->partial_pathlist = NIL;
		make_grouped_paths(root, child);
	}
}

/*
 * Set consider_parallel of rel and its children, and make their paths anew where that is
 * possible, as set_rel_pathlist() and set_append_rel_pathlist() of allpaths.c.  The old
 * paths are not freed, as other relations may refer to them.
 */
static void
make_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	Path	   *old = rel->pathlist == NIL ? NULL : linitial(rel->pathlist);

	rel->consider_parallel = true;
	/* as build_grouped_rel() of relnode.c, which copies the flag */
	if (grouped_rel_of(rel) != NULL)
		grouped_rel_of(rel)->consider_parallel = true;
	if (!makes_new_paths(rte))
	{
		keep_paths(rel);
		return;
	}
	rel->pathlist = NIL;
	rel->partial_pathlist = NIL;

	if (rte->inh)
	{
		List	   *children = live_children(root, rti);
		ListCell   *lc;

		foreach(lc, children)
			make_child_paths(root, lfirst(lc));
		add_paths_to_append_rel(root, rel, children);
	}
	else if (rte->rtekind == RTE_SUBQUERY)
		make_subquery_paths(root, rel, old);
	else
		make_table_paths(root, rel);
}

/* Does rel, or one of its children, read a temporary table? */
static bool
barred_by_temp_table(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	ListCell   *lc;

	if (!rte->inh)
		return rte->rtekind == RTE_RELATION &&
			tp_is_session_temp_table(rte->relid);

	foreach(lc, live_children(root, rel->relid))
	{
		RelOptInfo *child = lfirst(lc);

		if (barred_by_temp_table(root, child,
								 root->simple_rte_array[child->relid]))
			return true;
	}
	return false;
}

/* Have rel, with its children, no partial paths. */
static void
take_partial_paths(PlannerInfo *root, RelOptInfo *rel)
{
	ListCell   *lc;

	rel->consider_parallel = false;
	rel->partial_pathlist = NIL;
	foreach(lc, live_children(root, rel->relid))
		take_partial_paths(root, lfirst(lc));
}

/*
 * Give rel the paths that it would have if its temporary tables were permanent, and the
 * statement a SELECT: the planner may have looked at rel before plan_call.c told it that the
 * statement may be parallel.  But take those of a query with FOR UPDATE, of a function that
 * has been inlined: core looks only before that.  For set_rel_pathlist_hook, whose arguments
 * these are, and a rel that is not a child.
 */
void
tp_add_worker_visible_paths(PlannerInfo *root, RelOptInfo *rel, Index rti,
							RangeTblEntry *rte)
{
	/* workers would not lock its rows */
	if (root->parse->rowMarks != NIL)
	{
		take_partial_paths(root, rel);
		return;
	}
	if (!root->glob->parallelModeOK ||
		rel->consider_parallel ||
		IS_DUMMY_REL(rel) ||
		!(barred_by_temp_table(root, rel, rte) || tp_planning_modification()) ||
		!may_be_parallel(root, rel, rte))
		return;

	make_paths(root, rel, rti, rte);
}

/*
 * If root has array_agg(), have each of its aggregates computed by one process: processes
 * would send each other values in the binary format of their type.  That converts text from
 * and to the client's encoding, and checks domains again, so that another value or an error
 * may come of it.  To be called before core makes paths for grouping.
 */
void
tp_aggregate_arrays_in_leader(PlannerInfo *root)
{
	ListCell   *lc;

	foreach(lc, root->aggtransinfos)
	{
		if (((AggTransInfo *) lfirst(lc))->serialfn_oid == F_ARRAY_AGG_SERIALIZE)
			root->hasNonSerialAggs = true;
	}
}
