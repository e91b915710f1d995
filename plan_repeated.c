/*-------------------------------------------------------------------------
 *
 * plan_repeated.c
 *	  Repeated work: what each process below a Gather does for itself.
 *
 * The processes of a Gather divide its partial path among them, but each of
 * them runs the inner side of a join completely, unless that is a parallel
 * hash, and fills the hash tables of subplans.  The planner counts such work
 * once.  That is the elapsed time if there are as many processors as
 * processes.  If there are fewer, the repetitions of the additional processes
 * take elapsed time, too, and these processes make the rest no faster.
 *
 * So if the processes, including the leader if it participates, exceed the
 * processors, and a large part of the cost below a Gather is repeated, no more
 * processes run the plan than there are processors: at most that many workers
 * are launched, and if all of these start, the leader only gathers.  With
 *
 *		total		the cost of the partial path
 *		repeated	the part of it that is repeated, at least
 *					REPEATED_PART of total
 *		divisor		the number of processes by which the planner has divided
 *					the rest
 *		processors	the number of processes that divide the rest now
 *
 * the elapsed time is repeated + (total - repeated) * divisor / processors.
 * The Gather is charged with the difference between that and total.  The
 * difference is too high if scans in the rest have disk costs, which the
 * planner does not divide.  Unlike the flush, this is a cost of each
 * execution, so accounts do not pay for it, and it is not part of the cost of
 * the flush node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

#include "plan.h"

/* Repeated work below this fraction of the total cost is ignored. */
#define REPEATED_PART	0.25

static Cost repeated_of_path(Path *path);

/*
 * Does each process that runs plan, a node below a Gather, run its child
 * completely?
 */
bool
tp_is_repeated(Plan *plan, Plan *child)
{
	return child == plan->righttree &&
		!(IsA(child, Hash) && child->parallel_aware);
}

/* Add to *cost the startup costs of the SubPlans in node. */
static bool
subplan_startup_walker(Node *node, Cost *cost)
{
	if (node == NULL)
		return false;
	if (IsA(node, RestrictInfo))
		return subplan_startup_walker((Node *) ((RestrictInfo *) node)->clause,
									  cost);
	if (IsA(node, SubPlan))
		*cost += ((SubPlan *) node)->startup_cost;
	return expression_tree_walker(node, subplan_startup_walker, cost);
}

/*
 * The cost that each process pays once for the subplans in expressions:
 * filling their hash tables, or sorting or materializing their rows, as
 * estimated by cost_subplan() of costsize.c.
 */
static Cost
subplan_startup(List *expressions)
{
	Cost		cost = 0;

	(void) subplan_startup_walker((Node *) expressions, &cost);
	return cost;
}

/*
 * The cost of filling a hash table that is not shared, without temporary
 * files, as estimated by initial_cost_hashjoin() of costsize.c.
 */
static Cost
hash_build_cost(List *clauses, double rows)
{
	return (cpu_operator_cost * list_length(clauses) + cpu_tuple_cost) * rows;
}

/* Number of first children of an Append, each run by one process alone. */
static int
children_run_once(Plan *plan)
{
	return IsA(plan, Append) ? ((Append *) plan)->first_partial_plan : 0;
}

/*
 * The cost that each process that runs plan, a partial plan, repeats in that
 * node itself, without its children: filling hash tables of its subplans, and
 * that of a hash join that is not a parallel hash.
 */
Cost
tp_repeated_in_node(Plan *plan)
{
	Cost		cost = subplan_startup(plan->qual) +
		subplan_startup(plan->targetlist);

	if (IsA(plan, HashJoin) && tp_is_repeated(plan, plan->righttree))
		cost += hash_build_cost(((HashJoin *) plan)->hashclauses,
								plan->righttree->plan_rows);
	return cost;
}

/* The same, with its children. */
static Cost
repeated_of_plan(Plan *plan)
{
	List	   *children = tp_plan_children(plan);
	int			once = children_run_once(plan);
	Cost		cost = tp_repeated_in_node(plan);
	ListCell   *lc;

	foreach(lc, children)
	{
		Plan	   *child = lfirst(lc);

		if (foreach_current_index(lc) >= once)
			cost += tp_is_repeated(plan, child) ? child->total_cost :
				repeated_of_plan(child);
	}
	list_free(children);
	return cost;
}

/* The same for an Append path, whose first once paths are not repeated. */
static Cost
repeated_of_paths(List *paths, int once)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, paths)
	{
		if (foreach_current_index(lc) >= once)
			cost += repeated_of_path(lfirst(lc));
	}
	return cost;
}

/* The same for a join path. */
static Cost
repeated_of_join(JoinPath *join)
{
	Path	   *inner = join->innerjoinpath;
	Cost		cost = repeated_of_path(join->outerjoinpath);

	if (join->path.parallel_aware)
		return cost;			/* a parallel hash is divided */
	if (IsA(join, HashPath))
		cost += hash_build_cost(((HashPath *) join)->path_hashclauses,
								inner->rows);
	else if (IsA(join, MergePath) && ((MergePath *) join)->innersortkeys != NIL)
		cost += sort_cost(inner->rows, inner->pathtarget->width);
	return cost + inner->total_cost;
}

/*
 * The same for a partial path.  Covers the kinds that may be below a Gather.
 */
static Cost
repeated_of_path(Path *path)
{
	switch (nodeTag(path))
	{
		case T_Path:
		case T_IndexPath:
		case T_BitmapHeapPath:
			return subplan_startup(path->parent->baserestrictinfo);
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return repeated_of_join((JoinPath *) path) +
				subplan_startup(((JoinPath *) path)->joinrestrictinfo);
		case T_AppendPath:
			return repeated_of_paths(((AppendPath *) path)->subpaths,
									 ((AppendPath *) path)->first_partial_path);
		case T_SubqueryScanPath:
			return repeated_of_path(((SubqueryScanPath *) path)->subpath);
		case T_ProjectionPath:
			return repeated_of_path(((ProjectionPath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return repeated_of_path(((SortPath *) path)->subpath);
		case T_AggPath:
			return repeated_of_path(((AggPath *) path)->subpath);
		default:
			return 0;
	}
}

/*
 * The number of processes among which the planner divides the rows of a
 * partial path: get_parallel_divisor() of costsize.c, for so many workers.
 */
double
tp_parallel_divisor(int workers)
{
	double		divisor = workers;

	if (parallel_leader_participation)
		divisor += Max(1.0 - 0.3 * workers, 0.0);
	return divisor;
}

/* Does a Gather with so many workers have more processes than processors? */
static bool
exceeds_processors(int workers)
{
	return workers + (parallel_leader_participation ? 1 : 0) >
		tp_usable_processors();
}

/*
 * By how much a Gather over path, a partial path, takes longer because there
 * are fewer processors than processes: 0 or more, in planner cost units.
 */
Cost
tp_cost_of_few_processors(Path *path)
{
	Cost		repeated;

	if (!exceeds_processors(path->parallel_workers))
		return 0;
	repeated = repeated_of_path(path);
	if (repeated < REPEATED_PART * path->total_cost)
		return 0;
	return Max(path->total_cost - repeated, 0) *
		(tp_parallel_divisor(path->parallel_workers) /
		 tp_usable_processors() - 1);
}

/*
 * The number of processes that may run plan, which is below a Gather with this
 * number of workers; 0 for no limit.  If there is one, sets *repeated to the
 * cost that each process repeats, in planner cost units; otherwise, *repeated
 * is undefined.
 */
int
tp_process_limit(Plan *plan, int workers, Cost *repeated)
{
	*repeated = 0;
	if (!exceeds_processors(workers))
		return 0;
	*repeated = repeated_of_plan(plan);
	if (*repeated < REPEATED_PART * plan->total_cost)
		return 0;
	return tp_usable_processors();
}
