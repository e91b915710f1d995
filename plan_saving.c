/*-------------------------------------------------------------------------
 *
 * plan_saving.c
 *	  Savings: what workers would save in a statement if its tables were
 *	  clean.
 *
 * If the charge for a flush may have decided against workers, the statement is
 * planned a second time as if its tables were clean.  The difference between
 * the costs of the two plans is the saving.  It is divided into shares, each
 * of which workers save if the tables of that share are clean.  It is stored
 * in the plan that is run, and added to the tables' accounts
 * (localbuf_account.c) each time that plan has run to its end.  So a plan that
 * is only explained changes no account, and a cached plan does so at each
 * execution.
 *
 * A PlannedStmt has no field for other modules' data before version 19.  So
 * the saving is stored in invalItems, which are copied with a plan and not
 * sent to workers.  The cacheIds of these items are negative, and no
 * invalidation matches them.  Besides, each table has an item that does match:
 * it depends on the pg_proc row whose OID is the table's.  Such a row need not
 * exist.  tp_credit_saving() invalidates these items, so that a cached plan is
 * made again as soon as its flush is charged less than workers would save.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

#include "plan.h"

/*
 * cacheIds of the items for one share of a FlushSaving.  SAVING_LOW is the
 * last item of each.
 */
#define SAVING_HIGH		(-1001) /* halves of the saving */
#define SAVING_LOW		(-1002)
#define SAVING_TABLE	(-1003)
#define SAVING_INDEX	(-1004)
#define SAVING_PAID		(-1005)

static List *
add_item(List *items, int cacheid, uint32 value)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = cacheid;
	item->hashValue = value;
	return lappend(items, item);
}

/* Hash value of the item by which plans over table relid are invalidated. */
static uint32
replan_hash(Oid relid)
{
	return GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(relid));
}

/*
 * Append saving, which has shares, to the invalItems of stmt.  Allocates in
 * the current memory context.
 */
static void
attach_saving(PlannedStmt *stmt, const FlushSaving *saving)
{
	List	   *items = stmt->invalItems;
	ListCell   *share_lc;
	ListCell   *lc;

	foreach(lc, saving->relids)
		items = add_item(items, PROCOID, replan_hash(lfirst_oid(lc)));
	foreach(share_lc, saving->shares)
	{
		FlushSaving *share = lfirst(share_lc);
		uint64		bits;

		memcpy(&bits, &share->saving, sizeof(bits));
		foreach(lc, share->relids)
			items = add_item(items, SAVING_TABLE, lfirst_oid(lc));
		foreach(lc, share->indexes)
			items = add_item(items, SAVING_INDEX, lfirst_oid(lc));
		if (share->paid)
			items = add_item(items, SAVING_PAID, 0);
		items = add_item(items, SAVING_HIGH, (uint32) (bits >> 32));
		items = add_item(items, SAVING_LOW, (uint32) bits);
	}
	stmt->invalItems = items;
}

/* Add share to saving: its cost, tables and indexes. */
static void
add_share(FlushSaving *saving, FlushSaving *share)
{
	saving->saving += share->saving;
	saving->relids = list_concat_unique_oid(saving->relids, share->relids);
	saving->indexes = list_concat_unique_oid(saving->indexes, share->indexes);
	saving->shares = lappend(saving->shares, share);
}

/*
 * Does stmt have a saving?  Looks at its last item only.
 */
bool
tp_has_saving(PlannedStmt *stmt)
{
	return stmt->invalItems != NIL &&
		((PlanInvalItem *) llast(stmt->invalItems))->cacheId == SAVING_LOW;
}

/*
 * Returns whether stmt has a saving.  If so, sets *saving to it, with lists
 * and shares in the current memory context; otherwise leaves it alone.
 */
bool
tp_saving_of(PlannedStmt *stmt, FlushSaving *saving)
{
	FlushSaving *share = NULL;
	uint64		bits = 0;
	ListCell   *lc;

	if (!tp_has_saving(stmt))
		return false;

	memset(saving, 0, sizeof(FlushSaving));
	foreach(lc, stmt->invalItems)
	{
		PlanInvalItem *item = lfirst(lc);

		if (share == NULL)
			share = palloc0(sizeof(FlushSaving));
		switch (item->cacheId)
		{
			case SAVING_TABLE:
				share->relids = lappend_oid(share->relids, item->hashValue);
				break;
			case SAVING_INDEX:
				share->indexes = lappend_oid(share->indexes, item->hashValue);
				break;
			case SAVING_PAID:
				share->paid = true;
				break;
			case SAVING_HIGH:
				bits = (uint64) item->hashValue << 32;
				break;
			case SAVING_LOW:
				bits |= item->hashValue;
				memcpy(&share->saving, &bits, sizeof(bits));
				add_share(saving, share);
				share = NULL;
				break;
		}
	}
	return true;
}

/* What is needed to analyze the costs of the nodes below a Gather. */
typedef struct GatherCosts
{
	PlannedStmt *stmt;
	double		divisor;		/* by which CPU costs have been divided */
	bool		has_flush;		/* is there a flush node? */
	FlushPlan	flush;			/* of that, if so */
} GatherCosts;

static GatherCosts
gather_costs(Plan *gather, PlannedStmt *stmt)
{
	CustomScan *flush = tp_find_flush_node(gather->lefttree);
	GatherCosts result = {0};

	result.stmt = stmt;
	result.divisor = tp_parallel_divisor(IsA(gather, Gather) ?
										 ((Gather *) gather)->num_workers :
										 ((GatherMerge *) gather)->num_workers);
	result.has_flush = flush != NULL;
	if (flush != NULL)
		result.flush = tp_flush_plan(flush);
	return result;
}

/*
 * Number of pages of rel when the plan was made, if its flush node has it;
 * otherwise the current number.
 */
static double
planned_pages(const GatherCosts *costs, Relation rel)
{
	ListCell   *relid_lc;
	ListCell   *lc;

	if (costs->has_flush)
	{
		forboth(relid_lc, costs->flush.relids, lc, costs->flush.pages)
		{
			if (lfirst_oid(relid_lc) == RelationGetRelid(rel))
				return lfirst_int(lc);
		}
	}
	return RelationGetNumberOfBlocks(rel);
}

/*
 * Disk cost of plan, a SeqScan, as in cost_seqscan(); it does not depend on
 * the number of processes.
 */
static Cost
seqscan_disk_cost(const GatherCosts *costs, Plan *plan)
{
	RangeTblEntry *rte = rt_fetch(((Scan *) plan)->scanrelid,
								  costs->stmt->rtable);
	Relation	rel = tp_relation_open(rte->relid);
	double		page_cost;
	Cost		cost;

	get_tablespace_page_costs(rel->rd_rel->reltablespace, NULL, &page_cost);
	cost = page_cost * planned_pages(costs, rel);
	RelationClose(rel);
	return cost;
}

/*
 * The cost of plan itself, without that of its children: *whole is the part
 * that the planner does not divide among the processes, *divided the part that
 * it has divided.  Both are 0 for a flush node.
 */
static void
own_cost(const GatherCosts *costs, Plan *plan, Cost *whole, Cost *divided)
{
	List	   *children = tp_plan_children(plan);
	ListCell   *lc;

	*whole = 0;
	*divided = 0;
	if (!tp_is_flush_node(plan))	/* its own cost is the charge */
	{
		Cost		own = plan->total_cost;

		foreach(lc, children)
			own -= ((Plan *) lfirst(lc))->total_cost;
		own = Max(own, 0);
		*whole = tp_repeated_in_node(plan);
		if (IsA(plan, SeqScan))
			*whole += seqscan_disk_cost(costs, plan);
		*whole = Min(*whole, own);
		*divided = own - *whole;
	}
	list_free(children);
}

/*
 * The cost of plan, a partial plan, if one process runs all of it.  The
 * planner has divided the CPU cost of each node by divisor, so each node's own
 * cost is multiplied by it again, except what every process repeats
 * (plan_repeated.c) and the disk cost of a sequential scan.  The result is too
 * high for other nodes with disk costs, because the plan does not have these
 * separately.  Undoes what cost_seqscan() and initial_cost_hashjoin() of
 * costsize.c do.
 */
static Cost
cost_alone(const GatherCosts *costs, Plan *plan)
{
	List	   *children = tp_plan_children(plan);
	Cost		whole;
	Cost		divided;
	Cost		result;
	ListCell   *lc;

	own_cost(costs, plan, &whole, &divided);
	result = whole + divided * costs->divisor;
	foreach(lc, children)
	{
		Plan	   *child = lfirst(lc);

		result += tp_is_repeated(plan, child) ? child->total_cost :
			cost_alone(costs, child);
	}
	list_free(children);
	return result;
}

/*
 * The cost, in planner cost units, of what is below gather if the leader alone
 * runs it, without flush.  gather is a Gather or Gather Merge node of stmt.
 * Opens tables without a lock, and closes them.
 */
Cost
tp_gather_cost_alone(Plan *gather, PlannedStmt *stmt)
{
	GatherCosts costs = gather_costs(gather, stmt);

	return cost_alone(&costs, gather->lefttree);
}

/*
 * Add to saving a share for plan, a partial plan, and one for each node below
 * it that the processes divide among them: what dividing that node saves, and
 * those tables in dirty that the plan tree from that node down reads.
 */
static void
add_shares(FlushSaving *saving, const GatherCosts *costs, Plan *plan,
		   List *dirty)
{
	PlanContents contents = tp_plan_contents(plan, costs->stmt->rtable,
											 costs->stmt->subplans);
	FlushSaving *share = palloc0(sizeof(FlushSaving));
	List	   *children = tp_plan_children(plan);
	Cost		whole;
	Cost		divided;
	ListCell   *lc;

	own_cost(costs, plan, &whole, &divided);
	share->saving = divided * (costs->divisor - 1);
	share->relids = list_difference_oid(contents.temp_tables,
										list_difference_oid(contents.temp_tables,
															dirty));
	share->indexes = contents.indexes;
	if (share->saving > 0 && share->relids != NIL)
		add_share(saving, share);
	foreach(lc, children)
	{
		if (!tp_is_repeated(plan, lfirst(lc)))
			add_shares(saving, costs, lfirst(lc), dirty);
	}
	list_free(children);
}

/*
 * Divide saving into shares, one for each node of stmt that the processes
 * divide among them, so that the shares add up to it.  stmt is the plan with
 * workers.  What a node saves is lost if any table that it or a node below it
 * reads is dirty.  What a node below it saves is lost only if one of that
 * node's own tables is.  So a table that workers read, but that adds little to
 * what they save, gets little.  Otherwise, a statement over a small table and
 * a large one might add its saving to the account of the large one, although
 * all that workers save is with the small one, and that would be flushed too
 * late.
 *
 * If no node divides anything, the whole saving is the only share.  Allocates
 * in the current memory context.
 */
void
tp_divide_saving(FlushSaving *saving, PlannedStmt *stmt)
{
	FlushSaving parts = {0};
	FlushSaving *rest;
	ListCell   *lc;

	foreach(lc, tp_statement_gathers(stmt))
	{
		Plan	   *gather = lfirst(lc);
		GatherCosts costs = gather_costs(gather, stmt);

		add_shares(&parts, &costs, gather->lefttree, saving->relids);
	}
	foreach(lc, parts.shares)
	{
		FlushSaving *share = lfirst(lc);

		share->saving *= saving->saving / parts.saving;
	}
	saving->shares = parts.shares;
	if (saving->shares != NIL)
		return;
	rest = palloc(sizeof(FlushSaving));
	*rest = *saving;
	saving->shares = list_make1(rest);
}

/*
 * Add to saving the temporary tables that the Gathers of stmt would flush
 * because they have dirty pages by the counts in stats, except those in
 * flushed, and the indexes that these Gathers scan.
 */
static void
flushed_by(PlannedStmt *stmt, List *flushed, LocalBufStats *stats,
		   FlushSaving *saving)
{
	ListCell   *gather_lc;
	ListCell   *lc;

	foreach(gather_lc, tp_statement_gathers(stmt))
	{
		Plan	   *gather = lfirst(gather_lc);
		PlanContents contents = tp_plan_contents(gather->lefttree, stmt->rtable,
												 stmt->subplans);

		foreach(lc, contents.temp_tables)
		{
			List	   *table = list_make1_oid(lfirst_oid(lc));

			if (!list_member_oid(flushed, lfirst_oid(lc)) &&
				tp_flush_cost_of_tables(stats, table,
										contents.indexes).dirtied > 0)
				saving->relids = list_concat_unique_oid(saving->relids, table);
		}
		saving->indexes = list_concat_unique_oid(saving->indexes,
												 contents.indexes);
	}
}

/*
 * The cost of stmt, which has just been planned, less what its Gathers were
 * charged for writing pages.  It includes the search of the pool.
 */
static Cost
cost_without_charges(PlannedStmt *stmt)
{
	Cost		cost = stmt->planTree->total_cost;
	ListCell   *lc;

	foreach(lc, tp_statement_gathers(stmt))
	{
		CustomScan *flush = tp_find_flush_node(((Plan *) lfirst(lc))->lefttree);

		if (flush != NULL)
		{
			FlushCost	planned = tp_flush_plan(flush).planned;

			cost -= planned.charge - tp_buffer_scan_cost * planned.allocated;
		}
	}
	return cost;
}

/* Those of tables relids that still exist. */
static List *
existing_tables(List *relids)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, relids)
	{
		if (tp_is_session_temp_table(lfirst_oid(lc)))
			result = lappend_oid(result, lfirst_oid(lc));
	}
	return result;
}

/*
 * Does saving, or one share, exceed what the flush of its tables is charged
 * now by more than margin?  The search of the pool is in neither.
 */
static bool
flush_pays(const FlushSaving *saving, Cost margin, LocalBufStats *stats)
{
	FlushCost	flush = tp_flush_cost_of_tables(stats,
												existing_tables(saving->relids),
												saving->indexes);

	return flush.charge - flush.search + margin < saving->saving;
}

/*
 * The least difference in cost by which another plan is better than stmt.
 * add_path() of pathnode.c may choose by other criteria between paths that
 * differ by less than 1 percent.
 */
static Cost
margin_of(PlannedStmt *stmt)
{
	return 0.01 * stmt->planTree->total_cost;
}

/* Set paid in each share that is worth the flush of its own tables. */
static void
note_paid(FlushSaving *saving, LocalBufStats *stats)
{
	ListCell   *lc;

	foreach(lc, saving->shares)
	{
		FlushSaving *share = lfirst(lc);

		share->paid = flush_pays(share, 0, stats);
	}
}

/* May workers run a part of stmt, by what tp_place_flush_nodes() looks at? */
static bool
may_have_workers(PlannedStmt *stmt)
{
	PlanContents contents;

	if (!stmt->parallelModeNeeded)
		return false;
	contents = tp_statement_contents(stmt);
	return !contents.unknown && !contents.unsafe_check;
}

/*
 * Plan the statement of stmt again, as if its tables were clean.  The Gathers
 * of stmt have been charged; flushed is a List of Oid, the tables that it
 * flushes itself; stats are the counts that its charges are based on.  parse
 * is a copy of the Query that has not been planned yet.  next is another
 * module's planner_hook, or NULL.
 *
 * Returns true if the plan for clean tables is better even if it is charged
 * with its own flush.  Then the Gather paths were charged too much: the charge
 * of a Gather path includes tables that only the leader reads in the finished
 * plan, and, in a genetic join search, those of the whole query level.
 * Otherwise, stores the saving, if there is one, in stmt, in the current
 * memory context.  Everything else that it allocates is freed.  Raises what
 * the planner raises.
 */
bool
tp_note_saving(PlannedStmt *stmt, List *flushed, LocalBufStats *stats,
			   planner_hook_type next, PLANNER_HOOK_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "plan for clean temporary tables",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	FlushSaving saving = {0};
	bool		pays;
	FlushCharges charges = {0};
	PlannedStmt *clean;

	charges.stats = stats;
	clean = tp_planner_with_flush_cost(next, PLANNER_HOOK_PASS, CHARGE_CLEAN,
									   &charges);
	if (may_have_workers(clean))
	{
		saving.saving = cost_without_charges(stmt) - clean->planTree->total_cost;
		flushed_by(clean, flushed, stats, &saving);
	}
	pays = flush_pays(&saving, margin_of(stmt), stats);
	if (saving.saving <= 0)
		saving.relids = NIL;
	if (saving.relids != NIL)
	{
		tp_divide_saving(&saving, clean);
		note_paid(&saving, stats);
	}
	MemoryContextSwitchTo(old);
	if (saving.relids != NIL && !pays)
		attach_saving(stmt, &saving);
	MemoryContextDelete(context);
	return pays;
}

/* Has scan node ps been started? */
static bool
has_started(PlanState *ps)
{
	switch (nodeTag(ps))
	{
		case T_IndexScanState:
			return ((IndexScanState *) ps)->iss_ScanDesc != NULL;
		case T_IndexOnlyScanState:
			return ((IndexOnlyScanState *) ps)->ioss_ScanDesc != NULL;
		case T_BitmapHeapScanState:
			return ((BitmapHeapScanState *) ps)->initialized;
		default:
			return ((ScanState *) ps)->ss_currentScanDesc != NULL;
	}
}

/* Add to *relids the tables whose scans at or below ps have been started. */
static bool
collect_scanned(PlanState *ps, List **relids)
{
	switch (nodeTag(ps))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			if (((ScanState *) ps)->ss_currentRelation != NULL &&
				has_started(ps))
				*relids = list_append_unique_oid(*relids,
												 RelationGetRelid(((ScanState *) ps)->ss_currentRelation));
			break;
		default:
			break;
	}
	return planstate_tree_walker(ps, collect_scanned, relids);
}

/*
 * Remove from saving each share with a table that the plan of root, which has
 * run, has not started to scan.  Workers would have saved nothing there.
 */
static void
keep_scanned(FlushSaving *saving, PlanState *root)
{
	List	   *scanned = NIL;
	ListCell   *lc;

	(void) collect_scanned(root, &scanned);
	foreach(lc, saving->shares)
	{
		FlushSaving *share = lfirst(lc);

		if (list_difference_oid(share->relids, scanned) != NIL)
			saving->shares = foreach_delete_current(saving->shares, lc);
	}
}

/*
 * Returns what is missing in the account of table relid to pay for its flush,
 * with those of its indexes that are in indexes; sets *price to the price of
 * that.
 */
static Cost
missing_in_account(Oid relid, List *indexes, LocalBufStats *stats, Cost *price)
{
	FlushCost	flush = tp_flush_cost_of_tables(stats, list_make1_oid(relid),
												indexes);

	*price = flush.cost - flush.search;
	return flush.charge - flush.search;
}

/*
 * Add the saving of share to the accounts of its tables, in proportion to what
 * is missing in each.
 */
static void
credit_share(const FlushSaving *share, LocalBufStats *stats)
{
	List	   *relids = existing_tables(share->relids);
	Cost		missing = 0;
	Cost		price;
	ListCell   *lc;

	/* negative if workers were forced on a plan that loses by them */
	if (share->saving <= 0)
		return;
	foreach(lc, relids)
		missing += missing_in_account(lfirst_oid(lc), share->indexes, stats,
									  &price);
	foreach(lc, relids)
	{
		Cost		part = missing_in_account(lfirst_oid(lc), share->indexes,
											  stats, &price);
		Relation	table;

		if (part <= 0 || isinf(missing))
			continue;
		table = tp_relation_open(lfirst_oid(lc));
		tp_account_add(table, share->saving * (part / missing), price);
		RelationClose(table);
	}
}

/*
 * Add the shares of saving to the accounts, and invalidate cached plans, as
 * described at tp_credit_saving().
 */
static void
credit_shares(const FlushSaving *saving, PlannedStmt *stmt)
{
	LocalBufStats *stats = tp_localbuf_stats_for_price();
	bool		pays;
	ListCell   *lc;

	foreach(lc, saving->shares)
		credit_share(lfirst(lc), stats);
	pays = flush_pays(saving, margin_of(stmt), stats);
	foreach(lc, saving->shares)
	{
		FlushSaving *share = lfirst(lc);

		pays |= !share->paid && flush_pays(share, 0, stats);
	}
	if (pays)
	{
		foreach(lc, existing_tables(saving->relids))
			CallSyscacheCallbacks(PROCOID, replan_hash(lfirst_oid(lc)));
	}
}

/*
 * Add saving to the accounts of the tables that stmt has read, of whose plan root
 * is the topmost node.  The plan has run to its end without workers for these tables, and
 * would have cost less if they had been clean.  Returns false, and changes no
 * account, if it has not read them.  The tables are locked, except those that
 * the statement itself has dropped, which are left out.  Removes the shares
 * that do not count from saving.  Frees nothing of what it allocates in the
 * current memory context.
 *
 * Each share is divided among its tables in proportion to what is missing in
 * each, which is the price less the account.  In proportion to the price
 * alone, the total cost could become many times that of the best decisions.
 *
 * If the flush is worth it now, invalidates the cached plans of this session
 * that have a saving with one of these tables, so that they are made again;
 * also if the reason is that other statements have written pages.  That is so
 * if the flush of all tables is worth it, after which tp_note_saving() has the
 * plan flush them, or that of one share, which may lead to a plan that reads
 * some tables with workers.  It does not always, so a share that was worth its
 * flush when the plan was made (paid) is no reason to plan again.
 */
bool
tp_credit_saving(FlushSaving *saving, PlanState *root, PlannedStmt *stmt)
{
	keep_scanned(saving, root);
	if (saving->shares == NIL)
		return false;
	credit_shares(saving, stmt);
	return true;
}
