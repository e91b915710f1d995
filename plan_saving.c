/*-------------------------------------------------------------------------
 *
 * plan_saving.c
 *	  What a plan without workers would save if its tables were clean.
 *
 * When the charge for a flush may have decided against workers, the statement is
 * planned a second time without it.  The difference of the plans' costs is what
 * workers would save once the tables have been flushed.  It is put into the plan,
 * and added to the tables' accounts each time the plan has run to its end, so that
 * a plan that is only explained changes nothing, and a cached plan counts each
 * time.
 *
 * A PlannedStmt has no room for other modules' data before version 19.  Its
 * invalItems are copied with it, and not sent to workers; a negative cacheId never
 * matches one that is invalidated.  One true item, of a cache and a hash value that
 * stand for nothing, has a cached plan made anew as soon as a flush is charged less
 * than the plan would save.
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

/* cacheIds of the items that hold a share of a FlushSaving, of which LOW is last */
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

/* What the item for invalidation of plans over table relid has. */
static uint32
replan_hash(Oid relid)
{
	return GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(relid));
}

/* Put saving, which has shares, into stmt. */
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

/* Add share to saving. */
static void
add_share(FlushSaving *saving, FlushSaving *share)
{
	saving->saving += share->saving;
	saving->relids = list_concat_unique_oid(saving->relids, share->relids);
	saving->indexes = list_concat_unique_oid(saving->indexes, share->indexes);
	saving->shares = lappend(saving->shares, share);
}

/*
 * Has stmt a saving?
 */
bool
tp_has_saving(PlannedStmt *stmt)
{
	return stmt->invalItems != NIL &&
		((PlanInvalItem *) llast(stmt->invalItems))->cacheId == SAVING_LOW;
}

/*
 * The saving of stmt, if it has one.  Its lists are in the current memory context.
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

/* A Gather whose cost is to be taken apart. */
typedef struct GatherCosts
{
	PlannedStmt *stmt;
	double		divisor;		/* by which the planner has divided */
	bool		has_flush;		/* is there a flush node, and what it says */
	FlushPlan	flush;
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
 * Pages of rel when the plan was made, if that is known, or now.
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
 * the number of processes.  At most the plan's total cost.
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
	return Min(cost, plan->total_cost);
}

/*
 * Cost of plan itself, without its children, and not divided by processes (*whole)
 * or divided.
 */
static void
own_cost(const GatherCosts *costs, Plan *plan, Cost *whole, Cost *divided)
{
	List	   *children = tp_plan_children(plan);
	ListCell   *lc;

	*whole = 0;
	*divided = 0;
	if (IsA(plan, SeqScan))
		*whole = seqscan_disk_cost(costs, plan);
	if (!tp_is_flush_node(plan))	/* whose own cost is the flush */
	{
		*divided = plan->total_cost - *whole;
		foreach(lc, children)
		{
			*divided -= ((Plan *) lfirst(lc))->total_cost;
		}
		*divided = Max(*divided, 0);
	}
	list_free(children);
}

/*
 * The cost of plan, a partial plan, if one process runs all of it.  The
 * planner has divided the CPU cost of each node by divisor, so each node's own
 * cost is multiplied by it again, but not the cost of a child that every
 * process runs completely, nor the disk cost of a sequential scan.  The result
 * is too high if the disk and CPU cost of a node cannot be told apart.  Undoes
 * what cost_seqscan() and initial_cost_hashjoin() of costsize.c do.
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
 * The cost of what is below gather if the leader alone runs it.
 */
Cost
tp_gather_cost_alone(Plan *gather, PlannedStmt *stmt)
{
	GatherCosts costs = gather_costs(gather, stmt);

	return cost_alone(&costs, gather->lefttree);
}

/*
 * Add to saving a share for plan, a partial plan, and each node below it that the
 * processes divide among them: what that saves, and the tables that it reads, of
 * those in dirty.
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
 * Divide saving into shares by the nodes of stmt that save it.  What a node saves
 * is lost if any of the tables that it reads is dirty, and what a node below it saves
 * only if that one's are.  So a table that is read by workers, but adds little to
 * what they save, gets little.  Without that, the credit for a statement over a small
 * table and a large one might go to the large one, and the small one, which is all
 * that matters, be flushed too late.
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
 * Put into saving the temporary tables, and their indexes, that the Gathers of stmt
 * would flush, as they have dirty pages, except those in flushed.
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

/* The cost of stmt, just planned, less what its Gathers were charged for writes. */
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

/* Those of tables relids that are still there. */
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
 * Is a flush for saving, or for a share of one, charged less now than it would save,
 * by more than margin?
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
 * Least difference in cost by which a plan is better than stmt; add_path() of
 * pathnode.c may choose between those that are closer by other criteria.
 */
static Cost
margin_of(PlannedStmt *stmt)
{
	return 0.01 * stmt->planTree->total_cost;
}

/* Note which shares of saving would pay for a flush of their own tables. */
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

/*
 * Plan the statement of stmt, whose Gathers have been charged, as if its tables
 * were clean.  flushed are the tables that stmt flushes itself, stats the counts that
 * its charges are of.  parse is a copy that has not been planned yet.  next is another
 * module's hook, or NULL.
 *
 * Returns true if the plan for clean tables is better even with the price of its own
 * flush: what Gathers were charged with was too much.  The charge of a Gather path
 * includes tables that only the leader reads in the end, and those of the whole query
 * level in a genetic join search.  Otherwise, puts what that plan would save into
 * stmt, which is in the current memory context, in which nothing else is left.
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
	if (clean->parallelModeNeeded && !tp_statement_contents(clean).unknown)
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

/* Has the scan that ps is, if it is one, been started? */
static bool
has_started(PlanState *ps)
{
	switch (nodeTag(ps))
	{
		case T_IndexScanState:
			return ((IndexScanState *) ps)->iss_ScanDesc != NULL;
		case T_IndexOnlyScanState:
			return ((IndexOnlyScanState *) ps)->ioss_ScanDesc != NULL;
		default:
			return ((ScanState *) ps)->ss_currentScanDesc != NULL;
	}
}

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
 * Leave in saving the shares for tables that the plan of root, which has run, has begun
 * to scan.  What it has not read, workers would not have read faster.
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

/* What writing the pages of table relid costs, and what is missing of that. */
static Cost
missing_in_account(Oid relid, List *indexes, LocalBufStats *stats, Cost *price)
{
	FlushCost	flush = tp_flush_cost_of_tables(stats, list_make1_oid(relid),
												indexes);

	*price = flush.cost - flush.search;
	return flush.charge - flush.search;
}

/* Share saving out to the accounts of its tables by what is missing in each. */
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

/* Credit the shares of saving, and have plans made anew, as tp_credit_saving() says. */
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
 * The plan of queryDesc has run, and would have cost less if its tables had been clean:
 * add saving to the accounts of those that it has read.  Returns false if there are
 * none.  Each share is shared out in proportion to what is missing in each,
 * the price less the account; shares in proportion to the price alone can make the
 * total many times that of the best decisions.  The tables are locked, but for those
 * that the statement itself has dropped.
 *
 * Has cached plans made anew when a flush has become worth it, also if that is because
 * others have written pages: that of all tables, after which tp_note_saving() has the
 * plan flush them, or that of a share, which may lead to a plan that reads some tables
 * with workers.  It need not, so a share that has paid when the plan was made is no
 * reason to plan again.
 */
bool
tp_credit_saving(FlushSaving *saving, QueryDesc *queryDesc)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "accounts of temporary tables",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool		credited;

	keep_scanned(saving, queryDesc->planstate);
	credited = saving->shares != NIL;
	if (credited)
		credit_shares(saving, queryDesc->plannedstmt);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return credited;
}
