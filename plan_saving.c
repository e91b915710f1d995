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
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "plan.h"

/* cacheIds of the items that hold a FlushSaving, in this order */
#define SAVING_HIGH		(-1001)	/* halves of the saving */
#define SAVING_LOW		(-1002)
#define SAVING_TABLE	(-1003)
#define SAVING_INDEX	(-1004)

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

/* Put saving into stmt. */
static void
attach_saving(PlannedStmt *stmt, const FlushSaving *saving)
{
	List	   *items = stmt->invalItems;
	uint64		bits;
	ListCell   *lc;

	memcpy(&bits, &saving->saving, sizeof(bits));
	foreach(lc, saving->relids)
		items = add_item(items, PROCOID, replan_hash(lfirst_oid(lc)));
	foreach(lc, saving->relids)
		items = add_item(items, SAVING_TABLE, lfirst_oid(lc));
	foreach(lc, saving->indexes)
		items = add_item(items, SAVING_INDEX, lfirst_oid(lc));
	items = add_item(items, SAVING_HIGH, (uint32) (bits >> 32));
	items = add_item(items, SAVING_LOW, (uint32) bits);
	stmt->invalItems = items;
}

/*
 * Has stmt a saving?  Its lists are in the current memory context.
 */
bool
tp_saving_of(PlannedStmt *stmt, FlushSaving *saving)
{
	uint64		bits = 0;
	ListCell   *lc;

	if (stmt->invalItems == NIL ||
		((PlanInvalItem *) llast(stmt->invalItems))->cacheId != SAVING_LOW)
		return false;

	saving->relids = NIL;
	saving->indexes = NIL;
	foreach(lc, stmt->invalItems)
	{
		PlanInvalItem *item = lfirst(lc);

		switch (item->cacheId)
		{
			case SAVING_TABLE:
				saving->relids = lappend_oid(saving->relids, item->hashValue);
				break;
			case SAVING_INDEX:
				saving->indexes = lappend_oid(saving->indexes,
											  item->hashValue);
				break;
			case SAVING_HIGH:
				bits |= (uint64) item->hashValue << 32;
				break;
			case SAVING_LOW:
				bits |= item->hashValue;
				break;
		}
	}
	memcpy(&saving->saving, &bits, sizeof(bits));
	return true;
}

/* The temporary tables and indexes that the Gathers of stmt would flush. */
static void
flushed_by(PlannedStmt *stmt, FlushSaving *saving)
{
	ListCell   *lc;

	if (tp_statement_contents(stmt).unknown)
		return;
	foreach(lc, tp_statement_gathers(stmt))
	{
		Plan	   *gather = lfirst(lc);
		PlanContents contents = tp_plan_contents(gather->lefttree, stmt->rtable,
												 stmt->subplans);

		saving->relids = list_concat_unique_oid(saving->relids,
												contents.temp_tables);
		saving->indexes = list_concat_unique_oid(saving->indexes,
												 contents.indexes);
	}
}

/*
 * Plan the statement of stmt, whose Gathers have been charged, as if its tables
 * were clean, and put what that would save into stmt; flushed are the tables that
 * stmt flushes itself.  parse is a copy that has not been planned yet; stmt is in
 * the current memory context, in which nothing else is left.  Runs core's planner
 * rather than another module's, which might count the statement twice.
 */
void
tp_note_saving(PlannedStmt *stmt, List *flushed, PLANNER_HOOK_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "plan for clean temporary tables",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	FlushSaving saving = {0};
	FlushCharges charges;
	PlannedStmt *clean = tp_planner_with_flush_cost(NULL, PLANNER_HOOK_PASS,
													CHARGE_NOTHING, &charges);

	saving.saving = stmt->planTree->total_cost - clean->planTree->total_cost;
	if (clean->parallelModeNeeded && saving.saving > 0)
		flushed_by(clean, &saving);
	saving.relids = list_difference_oid(saving.relids, flushed);
	MemoryContextSwitchTo(old);
	if (saving.relids != NIL)
		attach_saving(stmt, &saving);
	MemoryContextDelete(context);
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
 * Has the plan of root, which has run, begun to scan all tables relids?  What it
 * has not read, workers would not have read faster.
 */
bool
tp_has_scanned(PlanState *root, List *relids)
{
	List	   *scanned = NIL;
	bool		result;

	(void) collect_scanned(root, &scanned);
	result = list_difference_oid(relids, scanned) == NIL;
	list_free(scanned);
	return result;
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
 * A statement has run that would have cost less if its tables had been clean: add
 * that to their accounts.  It is shared out in proportion to what is missing in
 * each, the price less the account; shares in proportion to the price alone can make
 * the total many times that of the best decisions.  The tables are locked, but for
 * those that the statement itself has dropped.  Has cached plans made anew when a
 * flush has become less expensive than what the statement would save.
 */
void
tp_credit_saving(const FlushSaving *saving)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "accounts of temporary tables",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	List	   *relids = existing_tables(saving->relids);
	LocalBufStats *stats = tp_localbuf_stats_for_price();
	Cost		before = tp_flush_cost_of_tables(stats, relids,
												 saving->indexes).charge;
	Cost		missing = 0;
	ListCell   *lc;

	foreach(lc, relids)
		missing += tp_flush_cost_of_tables(stats, list_make1_oid(lfirst_oid(lc)),
										   saving->indexes).charge;
	foreach(lc, relids)
	{
		FlushCost	price = tp_flush_cost_of_tables(stats,
													list_make1_oid(lfirst_oid(lc)),
													saving->indexes);
		Relation	table;

		if (price.charge <= 0 || isinf(missing))
			continue;
		table = tp_relation_open(lfirst_oid(lc));
		tp_account_add(table, saving->saving * (price.charge / missing),
					   price.cost);
		RelationClose(table);
	}
	if (before >= saving->saving &&
		tp_flush_cost_of_tables(stats, relids, saving->indexes).charge <
		saving->saving)
	{
		foreach(lc, relids)
			CallSyscacheCallbacks(PROCOID, replan_hash(lfirst_oid(lc)));
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
