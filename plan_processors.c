/*-------------------------------------------------------------------------
 *
 * plan_processors.c
 *	  How many processes may run a plan where there are fewer processors.
 *
 * The processes of a Gather divide its partial plan among them, but each of them runs the
 * inner side of a join completely, unless that is a parallel hash.  The planner counts such
 * work once, which is the elapsed time if there are as many processors as processes.  If
 * there are fewer, the repetitions take elapsed time, too, and the additional processes make
 * the rest no faster.
 *
 * So if the processes, with the leader, exceed the processors, and a large part of the cost
 * below a Gather is repeated, no more processes run the plan than there are processors: at
 * most that many workers are launched, and if all of these start, the leader only gathers;
 * none, if that is slower than one process, as processes also slow each other down.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __linux__
#include <sched.h>
#endif
#include <unistd.h>

#include "optimizer/optimizer.h"
#include "storage/fd.h"

#include "plan.h"

/* Repeated work below this fraction of the total cost is ignored. */
#define REPEATED_PART	0.25

/* By how much work that is repeated at the same time takes longer: q18 of TPC-H. */
#define SLOWDOWN		0.25

/* The launch of workers, at parallel_setup_cost, counts above this part of the cost. */
#define LAUNCH_PART		0.01

/*
 * Returns the number of processors that the session may use, at least 1:
 * temp_parallel.processors, or if that is 0, those that this process could be scheduled on
 * when this was first called, or if that is not known, those that are online.
 */
int
tp_usable_processors(void)
{
	static int	found = 0;

	if (tp_processors > 0)
		return tp_processors;
#ifdef __linux__
	if (found == 0)
	{
		cpu_set_t	set;

		/* fails if the machine has more processors than fit into a cpu_set_t */
		if (sched_getaffinity(0, sizeof(set), &set) == 0)
			found = CPU_COUNT(&set);
	}
#endif
	if (found == 0)
		found = (int) sysconf(_SC_NPROCESSORS_ONLN);
	return Max(found, 1);
}

/*
 * Would workers for what costs that much only take time from other processes?  So if with this
 * one at least as many are running as the machine has processors, and the launch counts.  False
 * where temp_parallel.processors says otherwise, or the system does not tell.
 */
bool
tp_processors_are_busy(Cost cost)
{
	int			running = 0;
	FILE	   *file = tp_processors == 0 && cost < parallel_setup_cost / LAUNCH_PART ?
		AllocateFile("/proc/loadavg", "r") : NULL;

	if (file != NULL)
	{
		if (fscanf(file, "%*f %*f %*f %d", &running) != 1)
			running = 0;
		FreeFile(file);
	}
	return running >= Max(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

/*
 * The cost that each process that runs plan, a partial plan, repeats: the inner sides of
 * joins; of a hash join with its hash table, for which the join waits before its first
 * row.  The first children of an Append are each run by one process alone.
 */
static Cost
repeated_cost(Plan *plan)
{
	List	   *children = tp_plan_children(plan);
	int			once = IsA(plan, Append) ? ((Append *) plan)->first_partial_plan : 0;
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, children)
	{
		Plan	   *child = lfirst(lc);

		if (foreach_current_index(lc) < once)
			continue;
		if (child != plan->righttree || (IsA(child, Hash) && child->parallel_aware))
			cost += repeated_cost(child);
		else
			cost += IsA(child, Hash) ?
				plan->startup_cost - plan->lefttree->startup_cost : child->total_cost;
	}
	list_free(children);
	return cost;
}

/* get_parallel_divisor() of costsize.c, for so many workers. */
static double
parallel_divisor(int workers)
{
	double		divisor = workers;

	if (parallel_leader_participation)
		divisor += Max(1.0 - 0.3 * workers, 0.0);
	return divisor;
}

/*
 * The number of processes that may run plan, which is below a Gather with this
 * number of workers: 0 for no limit, 1 for the leader alone.
 */
int
tp_process_limit(Plan *plan, int workers)
{
	int			processors = tp_usable_processors();
	Cost		repeated;
	Cost		divided;

	if (workers + (parallel_leader_participation ? 1 : 0) <= processors)
		return 0;
	repeated = repeated_cost(plan);
	divided = (plan->total_cost - repeated) * parallel_divisor(workers);
	if (repeated < REPEATED_PART * plan->total_cost)
		return 0;
	return SLOWDOWN * repeated < divided * (1 - 1.0 / processors) ? processors : 1;
}
