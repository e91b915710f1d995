/*-------------------------------------------------------------------------
 *
 * plan_flush_node.c
 *	  The flush node, Custom Scan (TempFlush), in a finished plan.
 *
 * Each Gather whose workers may read temporary tables gets one flush node
 * below it, as close to the Gather as possible, where the fewest rows pass.
 * But the node goes below those through which ExecSetTupleBound() reaches a
 * Sort: that function stops at a node that it does not know, and every
 * worker's top-N sort would become a full one.
 *
 * The node returns its child's rows.  custom_private holds the facts about the
 * plan (plan_walk.c) on which its execution depends, and what the planner expects
 * of the flush; only this file writes and decodes it.  exec_flush.c executes the
 * node.
 *
 * The invariant: a Gather that may launch workers has a flush node if a
 * temporary table is read below it, and also if it sends values, in a statement
 * that is run ahead or that reads a temporary table elsewhere.  A statement over
 * temporary tables launches no workers if its plan has unknown nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "optimizer/optimizer.h"

#include "plan.h"

/* ----------
 * The node
 * ----------
 */

/*
 * A target list that takes each column of tlist from varno, except constants:
 * ExecCheckPlanOutput() of nodeModifyTable.c expects those of dropped columns.
 */
static List *
columns_of(List *tlist, int varno)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, tlist)
	{
		TargetEntry *tle = flatCopyTargetEntry(lfirst(lc));

		if (!IsA(tle->expr, Const))
			tle->expr = (Expr *) makeVarFromTargetEntry(varno, lfirst(lc));
		result = lappend(result, tle);
	}
	return result;
}

/*
 * Make a node of this module, with that name and plan_node_id, which passes on the
 * rows of child and costs as much; in the current memory context.  The plan is
 * finished, so references are set as by set_customscan_references() of setrefs.c:
 * the node's columns refer to its scan tuple, and the scan tuple's to the child.
 */
CustomScan *
tp_custom_scan_above(Plan *child, const char *name, int plan_node_id)
{
	CustomScan *cscan = makeNode(CustomScan);
	Plan	   *plan = &cscan->scan.plan;

	plan->startup_cost = child->startup_cost;
	plan->total_cost = child->total_cost;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	plan->plan_node_id = plan_node_id;
	plan->targetlist = columns_of(child->targetlist, INDEX_VAR);
	plan->lefttree = child;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	set_disabled_nodes(cscan, child);
	cscan->custom_scan_tlist = columns_of(child->targetlist, OUTER_VAR);
	cscan->methods = GetCustomScanMethods(name, false);
	return cscan;
}

/*
 * Make a flush node with the given plan_node_id above child, for the tables of info,
 * whose lists it shares.
 */
static CustomScan *
make_flush_node(Plan *child, const FlushPlan *info, int plan_node_id)
{
	CustomScan *cscan = tp_custom_scan_above(child, FLUSH_NODE_NAME, plan_node_id);
	Plan	   *plan = &cscan->scan.plan;
	bytea	   *bytes = palloc(VARHDRSZ + sizeof(FlushPlan));

	plan->startup_cost += info->planned.charge;
	plan->total_cost += info->planned.charge;
	plan->parallel_aware = true;	/* otherwise the callbacks for parallel
									 * query are not called */
	plan->parallel_safe = true;

	SET_VARSIZE(bytes, VARHDRSZ + sizeof(FlushPlan));
	memcpy(VARDATA(bytes), info, sizeof(FlushPlan));
	/* the release comes first in every release, see tp_flush_plan_release() */
	cscan->custom_private = list_make4(makeString(pstrdup(TP_VERSION)),
									   info->relids, info->indexes,
									   makeConst(BYTEAOID, -1, InvalidOid, -1,
												 PointerGetDatum(bytes), false,
												 false));
	return cscan;
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
 * What make_flush_node() was given, in the current memory context.  The Lists are the
 * plan's own: it may be a copy, or that of a worker, for which it has been text.
 */
FlushPlan
tp_flush_plan(CustomScan *cscan)
{
	List	   *items = cscan->custom_private;
	Const	   *bytes = list_nth_node(Const, items, 3);
	FlushPlan	info;

	memcpy(&info, VARDATA(DatumGetPointer(bytes->constvalue)), sizeof(FlushPlan));
	info.relids = lsecond(items);
	info.indexes = lthird(items);
	info.saving.relids = info.relids;
	info.saving.indexes = info.indexes;
	return info;
}

/* ----------
 * Placing it
 * ----------
 */

/*
 * Insert a flush node below gather, and add its charge to the costs of the
 * nodes between the two.  The cost of gather itself includes it already.
 */
static void
insert_flush_node(Plan *gather, const FlushPlan *info, int plan_node_id)
{
	Plan	  **place = &gather->lefttree;
	Plan	  **child;
	CustomScan *flush;

	while ((child = tp_tuple_bound_child(*place)) != NULL)
	{
		(*place)->startup_cost += info->planned.charge;
		(*place)->total_cost += info->planned.charge;
		place = child;
	}

	flush = make_flush_node(*place, info, plan_node_id);
	*place = &flush->scan.plan;
}

/*
 * The flush node in top, the plan below a Gather, which its workers run.
 * NULL if there is none.
 */
CustomScan *
tp_find_flush_node(Plan *top)
{
	Plan	  **place = &top;
	Plan	  **child;

	while ((child = tp_tuple_bound_child(*place)) != NULL)
		place = child;
	return tp_is_flush_node(*place) ? (CustomScan *) *place : NULL;
}

/*
 * Does the leader send workers of gather values, which may be TOAST pointers into a
 * temporary table (exec_worker_refuse.c)?  facts are those of the plan below.
 */
static bool
sends_values(Plan *gather, const PlanFacts *facts)
{
	return facts->has_params ||
		(IsA(gather, Gather) ? ((Gather *) gather)->initParam :
		 ((GatherMerge *) gather)->initParam) != NULL;
}

/*
 * The number of local buffers that a worker needs to run a plan with these facts:
 * for the pages that it may have pinned at once, or for those that it looks rows up
 * in and what it reads besides.
 */
static int
pool_of_worker(const PlanFacts *facts)
{
	double		lookups = tp_pages_of_lookups(facts->lookups, true);

	if (lookups == 0)
		return facts->pins;
	return Max(facts->pins, (int) Min(lookups, INT_MAX / 4) + LEAST_WORKER_POOL);
}

/* Is the client's encoding another one than the database's, which is that of workers? */
bool
tp_client_has_other_encoding(void)
{
	return pg_get_client_encoding() != GetDatabaseEncoding();
}

/*
 * Would workers of stmt run what core would have kept out of them if it had seen it: a
 * function that is not parallel safe, or what would have another result in each?
 * Looks at the Gathers of temporary tables, and if only_ours, because core would run
 * stmt without workers, at those of permanent tables, too.
 */
bool
tp_must_run_in_leader(PlannedStmt *stmt, bool only_ours)
{
	ListCell   *lc;

	foreach(lc, tp_statement_facts(stmt).gathers)
	{
		Plan	   *plan = ((Plan *) lfirst(lc))->lefttree;
		PlanFacts	below = tp_plan_facts(plan, stmt);

		if ((only_ours || below.temp_tables != NIL) &&
			(below.calls_restricted || tp_repeats_what_varies(plan, &below, stmt) ||
			 (below.depends_on_client && tp_client_has_other_encoding())))
			return true;
	}
	return false;
}

/*
 * Give a flush node to each Gather of stmt that needs one, numbered after the
 * nodes that set_plan_refs() of setrefs.c has numbered.  Changes the plan in
 * place.  planning is the call of the planner that made stmt.  What a Gather
 * is charged is that of its tables (plan_gather_cost.c), unless
 * debug_parallel_query made it without regard to costs.  Returns the OIDs of
 * the tables that the plan flushes.
 *
 * An unknown node, anywhere in the plan, may read temporary tables, have a
 * Gather below it, or lock rows, which parallel mode forbids.  A domain's
 * constraint, which core does not look at, may call functions that fail in a
 * worker, or in parallel mode; so may default arguments.  Then, and for what each
 * process would find something else in, the statement is to be planned without
 * workers.  If it cannot be, all its Gathers run their plans in the leader, as when
 * no worker is available: ExecGather() and ExecGatherMerge() launch none without
 * parallel mode, and a parallel-aware node without shared state works alone.
 */
List *
tp_place_flush_nodes(PlannedStmt *stmt, const Planning *planning)
{
	PlanFacts	all = tp_statement_facts(stmt);
	List	   *flushed = NIL;
	int			last_id = all.last_node_id;
	ListCell   *lc;

	/* without a Gather, parallel mode is debug_parallel_query's */
	if ((planning->temp_tables || planning->modifies || all.gathers == NIL) &&
		((all.unknown && (stmt->rowMarks != NIL || tp_names_temp_table(stmt->rtable))) ||
		 ((planning->modifies || all.temp_tables != NIL) &&
		  (all.unsafe || all.calls_unsafe || tp_must_run_in_leader(stmt, planning->modifies)))))
	{
		stmt->parallelModeNeeded = false;
		return NIL;
	}
	if (all.temp_tables == NIL && stmt->commandType == CMD_SELECT)
		return NIL;
	tp_add_dependencies(stmt, &all);
	foreach(lc, all.gathers)
	{
		Plan	   *gather = lfirst(lc);
		PlanFacts	below = tp_plan_facts(gather->lefttree, stmt);
		FlushPlan	info = {0};
		Cost		charged;

		if (below.temp_tables == NIL && !sends_values(gather, &below))
			continue;
		info.relids = below.temp_tables;
		info.indexes = below.indexes;
		charged = tp_flush_estimate(info.relids, NIL, false).charge;
		info.planned = tp_flush_estimate(info.relids, info.indexes, all.user_code);
		if (debug_parallel_query == DEBUG_PARALLEL_OFF)
			info.planned.charge = charged;
		info.saving = tp_saving_of_gather(planning->savings, info.relids,
										  info.indexes,
										  info.planned.charge - info.planned.search);
		info.pool = pool_of_worker(&below);
		info.user_code = below.user_code;
		info.leader_pins = all.pins;
		info.any_user_code = all.user_code;
		info.any_volatile = all.is_volatile;
		info.calls_volatile = all.calls_volatile;
		if (info.relids != NIL)
			info.processes = tp_process_limit(gather->lefttree, IsA(gather, Gather) ?
											  ((Gather *) gather)->num_workers :
											  ((GatherMerge *) gather)->num_workers);
		insert_flush_node(gather, &info, ++last_id);
		flushed = list_concat_unique_oid(flushed, info.relids);
	}
	return flushed;
}
