/*-------------------------------------------------------------------------
 *
 * unknown.h
 *	  A plan node of a kind that nobody knows, while temp_parallel looks at it.
 *
 * For t/047_other_modules.pl.  unknown_inside is loaded before temp_parallel
 * and so runs inside its hooks, unknown_outside is loaded after it: each turns
 * the tag of one node into an unknown one, or back again.
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

#define UNKNOWN 10000			/* added to the tag */

/* The Gather that is nearest to plan on the left, plan itself among them. */
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
