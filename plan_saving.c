/*-------------------------------------------------------------------------
 *
 * plan_saving.c
 *	  Savings: what workers would save in a statement if its tables were
 *	  clean.
 *
 * When the planner charges the Gathers over a relation, it has the paths of it
 * for one process and for several.  The difference between their costs is noted
 * as the saving (plan_gather_cost.c).  It goes two ways:
 *
 *	- into the flush node, if a Gather over the relation is in the finished
 *	  plan; so the second look (exec_flush.c) can compare it with what the
 *	  flush costs then;
 *	- otherwise it is lost because of the flush.  Then it is stored in the plan,
 *	  and added to the tables' accounts (flush_cost.c) each time that plan
 *	  has run to its end.  So a plan that is only explained changes no account,
 *	  and a cached plan does so at each execution.
 *
 * The invariant: all that is lost in a statement is stored, and no more than the
 * statement costs.  So a flush is never later than the accounts promise, and what
 * is stored too much, as estimates are, is a part of what has been paid.
 *
 * A PlannedStmt has no field for other modules' data before version 19.  So
 * lost savings are stored in invalItems, which are copied with a plan and not
 * sent to workers.  The cacheIds of these items are negative, and no
 * invalidation matches them.  Besides, each table has an item that does match:
 * it depends on the pg_proc row whose OID is the table's.  Such a row need not
 * exist.  tp_credit_savings() invalidates these items, so that a cached plan is
 * made again as soon as its flush is charged less than workers would save.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "plan.h"

/* ----------
 * What the planner finds
 * ----------
 */

/*
 * The saving of the Gather of a finished plan whose workers read tables relids, with
 * these indexes: that of the relation with these tables or, if none was noted, with
 * the fewest more; but no less than the charge with which the Gather was chosen.
 */
FlushSaving
tp_saving_of_gather(List *notes, List *relids, List *indexes, Cost charge)
{
	FlushSaving saving = {.relids = relids,.indexes = indexes};
	int			least = INT_MAX;
	ListCell   *lc;

	if (relids == NIL)
		return saving;			/* it only looks at what is sent */
	foreach(lc, notes)
	{
		FlushSaving *noted = &((GatherSaving *) lfirst(lc))->saving;
		int			tables = list_length(noted->relids);

		if (tables > least || list_difference_oid(relids, noted->relids) != NIL)
			continue;
		saving.saving = tables < least ? noted->saving :
			Max(saving.saving, noted->saving);
		least = tables;
	}
	saving.saving = Max(saving.saving, charge);
	return saving;
}

/*
 * Is note lost because of the flush, in a query level that costs this much, by a plan
 * that flushes tables flushed?  Also if the search of the pool outweighs the saving,
 * which is then not positive: EXPLAIN shows it, and no account gets it.
 */
static bool
is_lost(GatherSaving *note, Cost cost, List *flushed)
{
	return note->saving.saving + note->search > 0 &&
		(note->saving.saving <= 0 || note->saving.charge > 0) &&
		list_difference_oid(note->saving.relids, flushed) != NIL &&
		note->serial <= 1.01 * cost;	/* paths cost the same */
}

/*
 * Returns those of notes that are lost in query level root and in its
 * subqueries in FROM: that of the Gather over the whole level, or those in its
 * subqueries; if workers cannot run the whole, that over a join, or also those
 * over the level's base relations, whichever is more.  flushed are the tables
 * that the finished plan flushes.
 */
static List *
lost_in_level(PlannerInfo *root, List *notes, List *flushed)
{
	Path	   *chosen = fetch_upper_rel(root, UPPERREL_FINAL,
										 NULL)->cheapest_total_path;
	List	   *lost = NIL;
	List	   *scans = NIL;
	GatherSaving *above = NULL;
	Cost		sum = 0;
	ListCell   *lc;

	if (chosen == NULL)
		return NIL;
	for (int rti = 1; rti < root->simple_rel_array_size; rti++)
	{
		RelOptInfo *rel = root->simple_rel_array[rti];

		if (rel != NULL && rel->subroot != NULL)
			lost = list_concat(lost, lost_in_level(rel->subroot, notes, flushed));
	}

	/* in the order in which they were made, that of the whole level last */
	foreach(lc, notes)
	{
		GatherSaving *note = lfirst(lc);
		Cost		least = 0.01 * note->serial;

		if (note->root != root)
			continue;
		/* a plan that gathers a part has some of it already */
		note->saving.saving -= Max(note->alone - chosen->total_cost, 0);
		/* add_path() prefers workers only if they save more than this */
		if (note->saving.saving > least && note->saving.charge > 0 &&
			note->saving.saving <= note->saving.charge + least)
			note->saving.charge = Max(note->saving.charge, note->saving.saving);
		if (note->over == GATHER_WHOLE)
			scans = NIL;
		if (note->over != GATHER_SCAN)
			above = note;
		else if (is_lost(note, chosen->total_cost, flushed))
			scans = lappend(scans, note);
	}
	lost = list_concat(lost, scans);
	foreach(lc, lost)
		sum += Max(((GatherSaving *) lfirst(lc))->saving.saving, 0);
	return above != NULL && is_lost(above, chosen->total_cost, flushed) &&
		(lost == NIL || above->saving.saving > sum) ? list_make1(above) : lost;
}

/* ----------
 * Storing it in the plan
 * ----------
 */

/* cacheIds of the items for a FlushSaving, of which LOST_SAVING is the last */
#define LOST_TABLE		(-1001)
#define LOST_CHARGE		(-1002)
#define LOST_SAVING		(-1003)

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

/* A cost as the value of an item, and back */
static uint32
cost_value(Cost cost)
{
	return DatumGetUInt32(Float4GetDatum(cost));
}

static Cost
item_cost(PlanInvalItem *item)
{
	return DatumGetFloat4(UInt32GetDatum(item->hashValue));
}

/* Append saving to the invalItems of stmt. */
static void
attach_saving(PlannedStmt *stmt, const FlushSaving *saving)
{
	List	   *items = stmt->invalItems;
	ListCell   *lc;

	foreach(lc, saving->relids)
	{
		items = add_item(items, PROCOID, replan_hash(lfirst_oid(lc)));
		items = add_item(items, LOST_TABLE, lfirst_oid(lc));
	}
	items = add_item(items, LOST_CHARGE, cost_value(saving->charge));
	stmt->invalItems = add_item(items, LOST_SAVING, cost_value(saving->saving));
}

/*
 * Store in stmt, a finished plan that flushes tables flushed, what is lost
 * because it does not flush others.  notes are of the planner call that has
 * made it.  Allocates in the current memory context.
 */
void
tp_attach_savings(PlannedStmt *stmt, List *flushed, List *notes)
{
	PlannerInfo *root;
	List	   *lost;
	PlanFacts	facts;
	ListCell   *lc;

	if (notes == NIL)
		return;
	root = ((GatherSaving *) linitial(notes))->root;
	while (root->parent_root != NULL)
		root = root->parent_root;
	lost = lost_in_level(root, notes, flushed);
	foreach(lc, root->glob->subroots)
		lost = list_concat(lost, lost_in_level(lfirst(lc), notes, flushed));
	if (lost == NIL)
		return;

	/* would plan_flush_node.c allow workers? */
	facts = tp_statement_facts(stmt);
	if (facts.unknown || facts.unsafe)
		return;
	foreach(lc, lost)
		attach_saving(stmt, &((GatherSaving *) lfirst(lc))->saving);
}

/* Store in stmt what is lost in from, a plan of the same statement. */
void
tp_copy_savings(PlannedStmt *from, PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, tp_savings_of(from))
		attach_saving(stmt, lfirst(lc));
}

/* Does stmt have lost savings?  Looks at its last item only. */
bool
tp_has_savings(PlannedStmt *stmt)
{
	return stmt->invalItems != NIL &&
		((PlanInvalItem *) llast(stmt->invalItems))->cacheId == LOST_SAVING;
}

/* The lost savings of stmt, a List of FlushSaving in the current memory context. */
List *
tp_savings_of(PlannedStmt *stmt)
{
	List	   *savings = NIL;
	FlushSaving *saving = palloc0(sizeof(FlushSaving));
	ListCell   *lc;

	foreach(lc, stmt->invalItems)
	{
		PlanInvalItem *item = lfirst(lc);

		switch (item->cacheId)
		{
			case LOST_TABLE:
				saving->relids = lappend_oid(saving->relids, item->hashValue);
				break;
			case LOST_CHARGE:
				saving->charge = item_cost(item);
				break;
			case LOST_SAVING:
				saving->saving = item_cost(item);
				savings = lappend(savings, saving);
				saving = palloc0(sizeof(FlushSaving));
				break;
		}
	}
	return savings;
}

/* ----------
 * Adding it to accounts
 * ----------
 */

/* Add to *relids the tables whose scans at or below ps have been started. */
static bool
collect_scanned(PlanState *ps, List **relids)
{
	bool		started = false;

	switch (nodeTag(ps))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			started = ((ScanState *) ps)->ss_currentScanDesc != NULL;
			break;
		case T_IndexScanState:
			started = ((IndexScanState *) ps)->iss_ScanDesc != NULL;
			break;
		case T_IndexOnlyScanState:
			started = ((IndexOnlyScanState *) ps)->ioss_ScanDesc != NULL;
			break;
		case T_BitmapHeapScanState:
			started = ((BitmapHeapScanState *) ps)->initialized;
			break;
		default:
			break;
	}
	if (started)
		*relids = list_append_unique_oid(*relids,
										 RelationGetRelid(((ScanState *) ps)->ss_currentRelation));
	return planstate_tree_walker(ps, collect_scanned, relids);
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
 * Is the flush of the tables of saving worth it now, for a plan that is made again?
 * If it was by that reckoning when the plan was made, only once it is charged no more
 * than half, so that a plan is not made again at each execution.
 */
static bool
flush_pays(const FlushSaving *saving)
{
	FlushCost	flush = tp_flush_estimate(existing_tables(saving->relids),
										  saving->indexes, false);
	Cost		charge = flush.charge - flush.search;

	return charge < saving->saving &&
		(saving->charge >= saving->saving || charge <= saving->charge / 2);
}

/* The planner's estimate of the number of rows of table relid, at least 1. */
static double
estimated_rows(Oid relid)
{
	Relation	table = tp_relation_open(relid);
	BlockNumber pages;
	double		rows;
	double		all_visible;

	estimate_rel_size(table, NULL, &pages, &rows, &all_visible);
	RelationClose(table);
	return Max(rows, 1);
}

/*
 * Add saving to the accounts of its tables, in proportion to their rows, as
 * workers save most where they read most rows.  If a large part went to a
 * table that adds little to the saving, the others would be flushed too late.
 * An account that pays for the flush of its table already gets nothing, and
 * none gets more than that.
 */
static void
credit_saving(const FlushSaving *saving)
{
	List	   *relids = existing_tables(saving->relids);
	Cost	   *price = palloc0(list_length(relids) * sizeof(Cost));
	double	   *rows = palloc0(list_length(relids) * sizeof(double));
	double		all_rows = 0;
	ListCell   *lc;

	foreach(lc, relids)
	{
		int			i = foreach_current_index(lc);
		FlushCost	flush = tp_flush_estimate(list_make1_oid(lfirst_oid(lc)),
											  saving->indexes, false);

		price[i] = flush.cost - flush.search;
		if (flush.charge > flush.search && !isinf(price[i]))
			rows[i] = estimated_rows(lfirst_oid(lc));
		all_rows += rows[i];
	}
	foreach(lc, relids)
	{
		int			i = foreach_current_index(lc);

		if (rows[i] > 0)
			tp_account_add(lfirst_oid(lc), saving->saving * rows[i] / all_rows, price[i]);
	}
}

/* tp_credit_savings() in a memory context of its own. */
static bool
credit_savings(List *savings, PlanState *root)
{
	List	   *scanned = NIL;
	bool		any = false;
	ListCell   *lc;

	(void) collect_scanned(root, &scanned);
	foreach(lc, savings)
	{
		FlushSaving *saving = lfirst(lc);

		if (saving->saving <= 0 ||
			list_difference_oid(saving->relids, scanned) != NIL)
			continue;
		any = true;
		credit_saving(saving);
	}
	foreach(lc, savings)
	{
		FlushSaving *saving = lfirst(lc);
		ListCell   *relid_lc;

		if (!any || !flush_pays(saving))
			continue;
		foreach(relid_lc, existing_tables(saving->relids))
			CallSyscacheCallbacks(PROCOID, replan_hash(lfirst_oid(relid_lc)));
	}
	return any;
}

/*
 * Add savings, a List of FlushSaving, or if that is NIL the lost ones of stmt,
 * to the accounts of their tables.  They are those that workers would have had
 * in the plan of which root is the topmost node, and which has run to its end
 * without workers for these tables.  Leaves those out that have a table that
 * the plan has not started to scan.  Returns whether any is left.  The tables
 * are locked, except those that the statement itself has dropped, which get
 * nothing.
 *
 * If a flush is worth it now, invalidates the cached plans of this session that have
 * lost a saving with one of these tables, so that they are made again; also if the
 * reason is that other statements have written pages.
 */
bool
tp_credit_savings(List *savings, PlannedStmt *stmt, PlanState *root)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "saving of a statement",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool		any = credit_savings(savings != NIL ? savings : tp_savings_of(stmt),
									 root);

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return any;
}
