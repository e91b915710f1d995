/*-------------------------------------------------------------------------
 *
 * unknown.h
 *	  A plan node with an unknown tag while temp_parallel looks at it.
 *
 * For t/047_other_modules.pl.  unknown_inside is loaded before temp_parallel,
 * so that its hooks are called by temp_parallel's; unknown_outside is loaded
 * after it.  Each makes the tag of a node unknown, or restores it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef UNKNOWN_H
#define UNKNOWN_H

#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/plannodes.h"
#include "optimizer/planner.h"
#include "utils/guc.h"

#include "temp_parallel_compat.h"

#define UNKNOWN 10000			/* added to the tag */

/* The first Gather or Gather Merge on the way down the outer children. */
static inline Plan *
left_gather(Plan *plan)
{
	while (plan != NULL && !IsA(plan, Gather) && !IsA(plan, GatherMerge))
		plan = plan->lefttree;
	return plan;
}

static inline void
make_unknown(Plan *plan)
{
	plan->type = (NodeTag) (plan->type + UNKNOWN);
}

static inline void
make_known(Plan *plan)
{
	if (plan != NULL && plan->type >= UNKNOWN)
		plan->type = (NodeTag) (plan->type - UNKNOWN);
}

#endif							/* UNKNOWN_H */
