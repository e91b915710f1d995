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
 * temporary table is read below it.  A statement over temporary tables
 * launches no workers if its plan has unknown nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan.h"

/* ----------
 * The node
 * ----------
 */

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

/* size bytes at data, as a Const: custom_private consists of nodes. */
static Const *
bytes_of(const void *data, Size size)
{
	bytea	   *bytes = palloc(VARHDRSZ + size);

	SET_VARSIZE(bytes, VARHDRSZ + size);
	memcpy(VARDATA(bytes), data, size);
	return makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(bytes), false,
					 false);
}

/*
 * Make a flush node with the given plan_node_id above child, for the tables
 * of info, whose lists it shares; in the current memory context.  The plan is
 * finished, so references are set as by set_customscan_references() of
 * setrefs.c: the node's columns refer to its scan tuple, and the scan tuple's
 * to the child.
 */
static CustomScan *
make_flush_node(Plan *child, const FlushPlan *info, int plan_node_id)
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

	/* the release comes first in every release, see tp_flush_plan_release() */
	cscan->custom_private = list_make5(makeString(pstrdup(TP_VERSION)),
									   info->relids, info->indexes,
									   bytes_of(info->saving.parts,
												list_length(info->relids) * sizeof(Cost)),
									   bytes_of(info, sizeof(FlushPlan)));
	cscan->methods = GetCustomScanMethods(FLUSH_NODE_NAME, false);
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
	Const	   *parts = list_nth_node(Const, items, 3);
	Const	   *bytes = list_nth_node(Const, items, 4);
	FlushPlan	info;

	memcpy(&info, VARDATA(DatumGetPointer(bytes->constvalue)), sizeof(FlushPlan));
	info.relids = lsecond(items);
	info.indexes = lthird(items);
	info.saving.relids = info.relids;
	info.saving.indexes = info.indexes;
	info.saving.parts = palloc(list_length(info.relids) * sizeof(Cost));
	memcpy(info.saving.parts, VARDATA(DatumGetPointer(parts->constvalue)),
		   list_length(info.relids) * sizeof(Cost));
	return info;
}

/* ----------
 * Lookups
 *
 * A worker that scans a table once needs few local buffers, and those stay in
 * the processor's cache.  But if the inner side of a nested loop looks rows up
 * all over a table, a small pool makes the worker copy a page from the
 * operating system for nearly every row.
 * The leader, in whose pool the table may be, would not, nor would a backend
 * that has it in shared buffers.  So a worker with such a plan gets a pool for
 * the pages that are looked up, see open_local_buffers().
 *
 * It gets no more than the session's temp_buffers.  If these are too few, the
 * lookups cost what the planner does not know: it assumes that a page that has
 * been read is in a cache, of effective_cache_size, from which reading it costs
 * nothing.  So if a plan has such lookups in workers, the copies are added to its
 * cost, and it is compared with the plan without workers.
 *
 * All numbers are estimates; only the choice of the plan and the speed of a worker
 * depend on them.
 * ----------
 */

/* The smaller of reads and the number of pages of relation relid. */
static double
distinct_pages(Oid relid, double reads)
{
	Relation	rel = tp_relation_open(relid);
	BlockNumber pages = RelationGetNumberOfBlocks(rel);

	RelationClose(rel);
	return Min(reads, pages);
}

/* How many different pages does lookup read? */
static double
pages_of_lookup(const Lookup *lookup)
{
	double		pages = 0;

	if (OidIsValid(lookup->index))
		pages = distinct_pages(lookup->index, lookup->loops);
	if (IsA(lookup->scan, SeqScan) || IsA(lookup->scan, SampleScan))
		pages += distinct_pages(lookup->table, get_float8_infinity());
	else if (!IsA(lookup->scan, BitmapIndexScan))
		pages += distinct_pages(lookup->table,
								lookup->loops * Max(lookup->scan->plan_rows, 1));
	return pages;
}

/*
 * How many different pages do lookups, a List of Lookup, read, each in its scan?
 * Those in subplans are left out unless with_subplans is set.
 */
static double
pages_of_lookups(List *lookups, bool with_subplans)
{
	double		pages = 0;
	ListCell   *lc;

	foreach(lc, lookups)
	{
		Lookup	   *lookup = lfirst(lc);

		if (with_subplans || !lookup->in_subplan)
			pages += pages_of_lookup(lookup);
	}
	return pages;
}

/*
 * The cost, in planner cost units, of copying a page from the operating system's
 * cache into a local buffer, and of evicting another one.
 */
#define COPY_PAGE_COST		0.7

/*
 * How closely the order of a table's rows is that of the first column of its index
 * indexid: between 0 and 1, the square of the correlation that ANALYZE has found.
 */
static double
index_correlation(Oid indexid)
{
	Relation	index = tp_relation_open(indexid);
	Oid			relid = index->rd_index->indrelid;
	AttrNumber	attno = index->rd_index->indkey.values[0];
	HeapTuple	tuple;
	AttStatsSlot slot;
	double		result = 0;

	RelationClose(index);
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid),
							Int16GetDatum(attno), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return 0;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers == 1)
			result = slot.numbers[0] * slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * How many pages lookup reads, each as often as it is read, if it is by an index or
 * a bitmap: of an index one each time and, of the table, one for the first row and
 * one for each other row that is not next to it.
 */
static double
reads_of_lookup(const Lookup *lookup)
{
	double		others = Max(lookup->scan->plan_rows - 1, 0);

	switch (nodeTag(lookup->scan))
	{
		case T_IndexScan:
			others *= 1 - index_correlation(lookup->index);
			return lookup->loops * (2 + others);
		case T_IndexOnlyScan:
		case T_BitmapIndexScan:
			return lookup->loops;
		case T_BitmapHeapScan:
			return lookup->loops * (1 + others);
		default:
			return 0;
	}
}

/*
 * What stmt's lookups in temporary tables cost a process with this number of local
 * buffers beyond the planner's estimate, which includes reading each page once: 0 or
 * more, in planner cost units.  Subplans are not counted.
 */
static Cost
cost_of_copies(PlannedStmt *stmt, double buffers)
{
	List	   *lookups = tp_statement_facts(stmt).lookups;
	double		pages = pages_of_lookups(lookups, false);
	double		reads = 0;
	ListCell   *lc;

	if (pages <= buffers)
		return 0;
	foreach(lc, lookups)
	{
		Lookup	   *lookup = lfirst(lc);

		if (!lookup->in_subplan)
			reads += reads_of_lookup(lookup);
	}
	return COPY_PAGE_COST * Max(reads * (1 - buffers / pages) - pages, 0);
}

/*
 * The same for a worker of stmt, a plan with flush nodes.
 */
Cost
tp_cost_of_copies_in_worker(PlannedStmt *stmt)
{
	return cost_of_copies(stmt, num_temp_buffers);
}

/*
 * Is stmt, a plan without flush nodes, better than one with them, which costs this
 * much, if copies are counted?  The leader copies pages, too, and more of them if it
 * looks up as many rows.
 */
bool
tp_costs_less_with_copies(PlannedStmt *stmt, Cost other)
{
	return stmt->planTree->total_cost + cost_of_copies(stmt, num_temp_buffers) <
		other;
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
 * Number of workers that divide the plan below gather with the leader; 0 if
 * one process runs all of it.
 */
static int
planned_workers(Plan *gather)
{
	if (IsA(gather, GatherMerge))
		return ((GatherMerge *) gather)->num_workers;
	return ((Gather *) gather)->single_copy ? 0 :
		((Gather *) gather)->num_workers;
}

/*
 * The number of local buffers that a worker needs to run a plan with these facts:
 * for the pages that it may have pinned at once, or for those that it looks rows up
 * in and what it reads besides.
 */
static int
pool_of_worker(const PlanFacts *facts)
{
	double		lookups = pages_of_lookups(facts->lookups, true);

	if (lookups == 0)
		return facts->pins;
	return Max(facts->pins, (int) Min(lookups, INT_MAX / 4) + LEAST_WORKER_POOL);
}

/*
 * Give a flush node to each Gather of stmt that needs one, numbered after the
 * nodes that set_plan_refs() of setrefs.c has numbered.  Changes the plan in
 * place.  charges are those of the planner call that made stmt.  They have no
 * counts if no Gather seemed able to win (plan_gather_cost.c), or if
 * debug_parallel_query made the plan parallel; then the pool is counted here.  In
 * the first case nothing was charged, and the second look decides.  Returns the
 * OIDs of the tables that the plan flushes.
 *
 * An unknown node, anywhere in the plan, may read temporary tables or have a
 * Gather below it.  A domain's constraint, which core does not look at, may call
 * functions that fail in a worker, or in parallel mode.  Then all Gathers of the
 * statement run their plans in the leader, as when no worker is available:
 * ExecGather() and ExecGatherMerge() launch none without parallel mode, and a
 * parallel-aware node without shared state works alone.
 */
List *
tp_place_flush_nodes(PlannedStmt *stmt, const FlushCharges *charges)
{
	LocalBufStats *stats = charges->stats;
	PlanFacts	all = tp_statement_facts(stmt);
	List	   *flushed = NIL;
	int			last_id = all.last_node_id;
	ListCell   *lc;

	if ((all.unknown && tp_names_temp_table(stmt->rtable)) ||
		(all.checks_domain && all.temp_tables != NIL))
	{
		stmt->parallelModeNeeded = false;
		return NIL;
	}
	if (all.temp_tables == NIL)
		return NIL;

	foreach(lc, tp_statement_gathers(stmt))
	{
		Plan	   *gather = lfirst(lc);
		PlanFacts	below = tp_plan_facts(gather->lefttree, stmt);
		FlushPlan	info = {0};

		if (below.temp_tables == NIL)
			continue;
		if (stats == NULL)
			stats = tp_stats_for_price(all.user_code);
		info.relids = below.temp_tables;
		info.indexes = below.indexes;
		info.planned = tp_flush_cost_of_tables(stats, info.relids, info.indexes);
		if (charges->stats == NULL && debug_parallel_query == DEBUG_PARALLEL_OFF)
			info.planned.charge = 0;
		info.saving = tp_saving_of_gather(charges->savings, info.relids,
										  info.indexes,
										  info.planned.charge - info.planned.search);
		info.pool = pool_of_worker(&below);
		info.user_code = below.user_code;
		info.leader_pins = all.pins;
		info.any_user_code = all.user_code;
		info.any_volatile = all.is_volatile;
		info.processes = tp_process_limit(gather->lefttree,
										  planned_workers(gather));
		insert_flush_node(gather, &info, ++last_id);
		flushed = list_concat_unique_oid(flushed, info.relids);
	}
	return flushed;
}
