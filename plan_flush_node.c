/*-------------------------------------------------------------------------
 *
 * plan_flush_node.c
 *	  The flush node: the plan node Custom Scan (TempFlush).
 *
 * The node is below a Gather and returns its child's rows.  custom_private
 * holds what the Gather's workers may read and what the planner expects of
 * the flush; only this file writes and decodes it.  exec_flush.c executes the
 * node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"

#include "plan.h"

/*
 * A target list that takes each column of tlist from varno, as
 * set_customscan_references() of setrefs.c would leave it.
 */
static List *
pass_through_tlist(List *tlist, int varno)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, tlist)
	{
		TargetEntry *tle = flatCopyTargetEntry(lfirst(lc));

		tle->expr = (Expr *) makeVarFromTargetEntry(varno, lfirst(lc));
		result = lappend(result, tle);
	}
	return result;
}

/*
 * Make a flush node with the given plan_node_id above child, for the tables
 * of info, whose lists it shares; in the current memory context.  The plan is
 * finished, so references are set as by set_customscan_references() of
 * setrefs.c: the node's columns refer to its scan tuple, and the scan tuple's
 * to the child.
 */
CustomScan *
tp_make_flush_node(Plan *child, const FlushPlan *info, int plan_node_id)
{
	CustomScan *cscan = makeNode(CustomScan);
	Plan	   *plan = &cscan->scan.plan;

	plan->startup_cost = child->startup_cost + info->planned.charge;
	plan->total_cost = child->total_cost + info->planned.charge;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	plan->parallel_aware = true;	/* otherwise the callbacks for parallel
									 * query are not called */
	plan->parallel_safe = true;
	plan->plan_node_id = plan_node_id;
	plan->targetlist = pass_through_tlist(child->targetlist, INDEX_VAR);
	plan->lefttree = child;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	set_disabled_nodes(cscan, child);

	cscan->custom_scan_tlist = pass_through_tlist(child->targetlist, OUTER_VAR);

	/*
	 * The release comes first in every release, see tp_flush_plan_release().
	 *
	 * Workers get the plan as text, from which a Float without a fraction
	 * would be read back as an Integer, so costs are Strings.
	 */
	cscan->custom_private =
		list_make5(makeString(pstrdup(TP_VERSION)),
				   info->relids,
				   info->indexes,
				   makeInteger(info->planned.dirtied),
				   makeInteger(info->planned.allocated));
	cscan->custom_private = lappend(cscan->custom_private,
									makeString(psprintf("%.17g", info->planned.cost)));
	cscan->custom_private = lappend(cscan->custom_private,
									makeInteger(info->pool));
	cscan->custom_private = lappend(cscan->custom_private,
									makeInteger(info->user_code));
	cscan->custom_private = lappend(cscan->custom_private,
									makeString(psprintf("%.17g", info->planned.charge)));
	cscan->custom_private = lappend(cscan->custom_private,
									makeInteger(info->processes));
	cscan->custom_private = lappend(cscan->custom_private,
									makeString(psprintf("%.17g", info->repeated)));
	cscan->custom_private = lappend(cscan->custom_private, info->pages);
	cscan->custom_private = lappend(cscan->custom_private,
									makeInteger(info->planned.share ?
												info->planned.shareable : 0));
	cscan->methods = GetCustomScanMethods(FLUSH_NODE_NAME, false);
	return cscan;
}

/*
 * Is plan a flush node?  No other module can register that name.
 */
bool
tp_is_flush_node(Plan *plan)
{
	return IsA(plan, CustomScan) &&
		strcmp(((CustomScan *) plan)->methods->CustomName, FLUSH_NODE_NAME) == 0;
}

/*
 * The release of temp_parallel that has made the flush node cscan: part of the
 * plan.  A worker loads the library anew, and the file may have been replaced
 * since its leader did.
 */
const char *
tp_flush_plan_release(CustomScan *cscan)
{
	return strVal(linitial(cscan->custom_private));
}

/*
 * Decode what tp_make_flush_node() was given.  The lists are the plan's own.
 */
FlushPlan
tp_flush_plan(CustomScan *cscan)
{
	List	   *items = cscan->custom_private;
	FlushPlan	info = {0};

	info.relids = (List *) lsecond(items);
	info.indexes = (List *) lthird(items);
	info.planned.dirtied = intVal(lfourth(items));
	info.planned.allocated = intVal(list_nth(items, 4));
	info.planned.cost = strtod(strVal(list_nth(items, 5)), NULL);
	info.pool = intVal(list_nth(items, 6));
	info.user_code = intVal(list_nth(items, 7)) != 0;
	info.planned.charge = strtod(strVal(list_nth(items, 8)), NULL);
	info.processes = intVal(list_nth(items, 9));
	info.repeated = strtod(strVal(list_nth(items, 10)), NULL);
	info.pages = (List *) list_nth(items, 11);
	info.planned.shareable = intVal(list_nth(items, 12));
	info.planned.share = info.planned.shareable > 0;
	return info;
}
