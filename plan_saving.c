/*-------------------------------------------------------------------------
 *
 * plan_saving.c
 *	  Savings: what workers would save in a statement if its tables were
 *	  clean.
 *
 * When the planner charges the Gathers over a relation, it has the paths of it
 * for one process and for several.  The difference between their costs is noted
 * as the saving (tp_note_saving()).  It goes two ways:
 *
 *	- into the flush node, if a Gather over the relation is in the finished
 *	  plan; so the second look (exec_second_look.c) can compare it with what the
 *	  flush costs then;
 *	- otherwise it is lost because of the flush.  Then it is stored in the plan,
 *	  and added to the tables' accounts (localbuf_account.c) each time that plan
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
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planner.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "plan.h"

/* ----------
 * What the planner finds
 * ----------
 */

/* What workers save in the scan of table relid alone, 0 if that is not known. */
static Cost
scan_saving(List *notes, Oid relid)
{
	Cost		saving = 0;
	ListCell   *lc;

	foreach(lc, notes)
	{
		GatherSaving *note = lfirst(lc);

		if (list_length(note->saving.relids) == 1 &&
			linitial_oid(note->saving.relids) == relid)
			saving = Max(saving, note->scan);
	}
	return saving;
}

/*
 * Divide saving among its tables in proportion to what workers save in the scan of
 * each.  A table that workers read, but that adds little to what they save, gets
 * little.  Otherwise, a statement over a small table and a large one might add its
 * saving to the account of the large one, although all that workers save is with the
 * small one, and that would be flushed too late.
 */
static void
divide_saving(FlushSaving *saving, List *notes)
{
	Cost		sum = 0;
	ListCell   *lc;

	saving->parts = palloc(sizeof(Cost) * list_length(saving->relids));
	foreach(lc, saving->relids)
	{
		Cost		part = Max(scan_saving(notes, lfirst_oid(lc)), 1);

		saving->parts[foreach_current_index(lc)] = part;
		sum += part;
	}
	foreach(lc, saving->relids)
		saving->parts[foreach_current_index(lc)] *= saving->saving / sum;
}

/*
 * The saving of the Gather of a finished plan whose workers read tables relids, with
 * these indexes: that of the relation with these tables or, if none was noted, with
 * more, or of the scans of these; but no less than the charge with which the Gather was
 * chosen.  Allocates in the current memory context.
 */
FlushSaving
tp_saving_of_gather(List *notes, List *relids, List *indexes, Cost charge)
{
	FlushSaving saving = {0};
	GatherSaving *best = NULL;
	ListCell   *lc;

	foreach(lc, notes)
	{
		GatherSaving *note = lfirst(lc);
		int			more = list_length(note->saving.relids) - list_length(relids);
		int			least = best == NULL ? INT_MAX :
			list_length(best->saving.relids) - list_length(relids);

		if (list_difference_oid(relids, note->saving.relids) == NIL &&
			(more < least ||
			 (more == least && note->saving.saving > best->saving.saving)))
			best = note;
	}
	saving.relids = relids;
	saving.indexes = indexes;
	if (best != NULL)
		saving.saving = best->saving.saving;
	else
	{
		foreach(lc, relids)
			saving.saving += scan_saving(notes, lfirst_oid(lc));
	}
	saving.saving = Max(saving.saving, charge);
	divide_saving(&saving, notes);
	return saving;
}

/* Does path, of the last relation of a query level, gather the rows of its joins? */
static bool
is_gathered(Path *path)
{
	for (;;)
	{
		switch (nodeTag(path))
		{
			case T_GatherPath:
			case T_GatherMergePath:
				return true;

				/* these have the same first members */
			case T_ProjectionPath:
			case T_ProjectSetPath:
			case T_SortPath:
			case T_IncrementalSortPath:
			case T_GroupPath:
			case T_UpperUniquePath:
			case T_AggPath:
			case T_GroupingSetsPath:
			case T_WindowAggPath:
			case T_LimitPath:
				path = ((ProjectionPath *) path)->subpath;
				break;
			default:
				return false;
		}
	}
}

/* Is note, of a Gather that was not chosen, lost because of the flush? */
static bool
is_lost(GatherSaving *note, Path *chosen)
{
	return note->saving.saving > 0 && note->saving.charge > 0 &&
		note->serial <= 1.01 * chosen->total_cost;	/* paths cost the same */
}

static Cost
sum_of_savings(List *notes)
{
	Cost		sum = 0;
	ListCell   *lc;

	foreach(lc, notes)
		sum += ((GatherSaving *) lfirst(lc))->saving.saving;
	return sum;
}

/*
 * Returns those of notes that are lost in query level root and in its subqueries in
 * FROM: the Gather over the whole level, or those in its subqueries, or if workers
 * cannot run the whole, one over a join or those over its base relations, whichever
 * is more.  flushed are the tables that
 * the finished plan flushes.
 */
static List *
lost_in_level(PlannerInfo *root, List *notes, List *flushed)
{
	RelOptInfo *final = fetch_upper_rel(root, UPPERREL_FINAL, NULL);
	Path	   *chosen;
	GatherSaving *whole = NULL;
	GatherSaving *join = NULL;
	List	   *lost = NIL;
	ListCell   *lc;

	if (final->cheapest_total_path == NULL)
		return NIL;
	chosen = get_cheapest_fractional_path(final, root->tuple_fraction);

	for (int rti = 1; rti < root->simple_rel_array_size; rti++)
	{
		RelOptInfo *rel = root->simple_rel_array[rti];

		if (rel != NULL && rel->subroot != NULL)
			lost = list_concat(lost, lost_in_level(rel->subroot, notes, flushed));
	}
	foreach(lc, notes)
	{
		GatherSaving *note = lfirst(lc);

		if (note->root == root && note->whole)
			whole = note;
	}
	if (whole != NULL)
	{
		if (is_gathered(chosen))
			return NIL;
		return is_lost(whole, chosen) &&
			whole->saving.saving > sum_of_savings(lost) ? list_make1(whole) : lost;
	}
	foreach(lc, notes)
	{
		GatherSaving *note = lfirst(lc);

		if (note->root != root || !is_lost(note, chosen) ||
			list_difference_oid(note->saving.relids, flushed) == NIL)
			continue;
		if (bms_membership(note->rels) == BMS_SINGLETON)
			lost = lappend(lost, note);
		else if (join == NULL || note->saving.saving > join->saving.saving)
			join = note;
	}
	return join != NULL && join->saving.saving > sum_of_savings(lost) ?
		list_make1(join) : lost;
}

/* Is root a subquery in FROM of its parent? */
static bool
is_in_from(PlannerInfo *root)
{
	PlannerInfo *parent = root->parent_root;

	for (int rti = 1; parent != NULL && rti < parent->simple_rel_array_size; rti++)
	{
		RelOptInfo *rel = parent->simple_rel_array[rti];

		if (rel != NULL && rel->subroot == root)
			return true;
	}
	return false;
}

/* The outermost query level that reads the rows of root through FROM clauses. */
static PlannerInfo *
outermost_level(PlannerInfo *root)
{
	while (is_in_from(root))
		root = root->parent_root;
	return root;
}

/* ----------
 * Storing it in the plan
 * ----------
 */

/* cacheIds of the items for a FlushSaving, of which LOST_SAVING is the last */
#define LOST_TABLE		(-1001)
#define LOST_PART		(-1002) /* of the saving, for the table before */
#define LOST_INDEX		(-1003)
#define LOST_CHARGE		(-1004)
#define LOST_SAVING		(-1005)

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

static List *
add_cost(List *items, int cacheid, Cost cost)
{
	float4		value = (float4) cost;
	uint32		bits;

	memcpy(&bits, &value, sizeof(bits));
	return add_item(items, cacheid, bits);
}

static Cost
item_cost(PlanInvalItem *item)
{
	float4		value;

	memcpy(&value, &item->hashValue, sizeof(value));
	return value;
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
		items = add_cost(items, LOST_PART,
						 saving->parts[foreach_current_index(lc)]);
	}
	foreach(lc, saving->indexes)
		items = add_item(items, LOST_INDEX, lfirst_oid(lc));
	items = add_cost(items, LOST_CHARGE, saving->charge);
	stmt->invalItems = add_cost(items, LOST_SAVING, saving->saving);
}

/*
 * Store in stmt, a finished plan that flushes tables flushed, what is lost because it
 * does not flush others.  notes are of the planner call that has made it.  Allocates in
 * the current memory context.
 */
void
tp_attach_savings(PlannedStmt *stmt, List *flushed, List *notes)
{
	List	   *levels = NIL;
	List	   *lost = NIL;
	PlanFacts	facts;
	ListCell   *lc;

	foreach(lc, notes)
		levels = list_append_unique_ptr(levels,
										outermost_level(((GatherSaving *) lfirst(lc))->root));
	foreach(lc, levels)
		lost = list_concat(lost, lost_in_level(lfirst(lc), notes, flushed));
	if (lost == NIL)
		return;

	/* would plan_flush_node.c allow workers? */
	facts = tp_statement_facts(stmt);
	if (facts.unknown || facts.checks_domain)
		return;
	foreach(lc, lost)
	{
		FlushSaving *saving = &((GatherSaving *) lfirst(lc))->saving;

		divide_saving(saving, notes);
		attach_saving(stmt, saving);
	}
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
		int			n = list_length(saving->relids);

		switch (item->cacheId)
		{
			case LOST_TABLE:
				saving->relids = lappend_oid(saving->relids, item->hashValue);
				saving->parts = n == 0 ? palloc(sizeof(Cost)) :
					repalloc(saving->parts, (n + 1) * sizeof(Cost));
				break;
			case LOST_PART:
				saving->parts[n - 1] = item_cost(item);
				break;
			case LOST_INDEX:
				saving->indexes = lappend_oid(saving->indexes, item->hashValue);
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
flush_pays(const FlushSaving *saving, LocalBufStats *stats)
{
	FlushCost	flush = tp_flush_cost_of_tables(stats,
												existing_tables(saving->relids),
												saving->indexes);
	Cost		charge = flush.charge - flush.search;

	return charge < saving->saving &&
		(saving->charge >= saving->saving || charge <= saving->charge / 2);
}

static int
index_of_oid(List *oids, Oid oid)
{
	int			i = 0;

	while (list_nth_oid(oids, i) != oid)
		i++;
	return i;
}

/*
 * Add saving to the accounts of its tables, to each its part, but no more than is
 * missing in it to pay for its flush, and to the others what then is left.
 */
static void
credit_saving(const FlushSaving *saving, LocalBufStats *stats)
{
	int			n = list_length(saving->relids);
	Cost	   *missing = palloc0(n * sizeof(Cost));
	Cost	   *price = palloc0(n * sizeof(Cost));
	Cost	   *credit = palloc0(n * sizeof(Cost));
	Cost		left = saving->saving;
	ListCell   *lc;

	foreach(lc, existing_tables(saving->relids))
	{
		int			i = index_of_oid(saving->relids, lfirst_oid(lc));
		FlushCost	flush = tp_flush_cost_of_tables(stats,
													list_make1_oid(lfirst_oid(lc)),
													saving->indexes);

		price[i] = flush.cost - flush.search;
		if (!isinf(price[i]))
			missing[i] = flush.charge - flush.search;
	}
	/* each pass fills an account or is the last one */
	for (int pass = 0; pass < n && left > 0; pass++)
	{
		Cost		amount = left;
		Cost		parts = 0;

		for (int i = 0; i < n; i++)
			parts += credit[i] < missing[i] ? saving->parts[i] : 0;
		for (int i = 0; i < n && parts > 0; i++)
		{
			Cost		more = Min(amount * saving->parts[i] / parts,
								   missing[i] - credit[i]);

			if (credit[i] < missing[i])
			{
				credit[i] += more;
				left -= more;
			}
		}
	}
	foreach(lc, saving->relids)
	{
		int			i = foreach_current_index(lc);

		if (credit[i] > 0)
		{
			Relation	table = tp_relation_open(lfirst_oid(lc));

			tp_account_add(&RelationFileLocator(table), credit[i], price[i]);
			RelationClose(table);
		}
	}
}

/*
 * Add savings, a List of FlushSaving, to the accounts of their tables.  They are those
 * that workers would have had in the plan of which root is the topmost node, and which
 * has run to its end without workers for these tables.  Leaves those out that have a
 * table that the plan has not started to scan.  Returns whether any is left.  The tables
 * are locked, except those that the statement itself has dropped, which get nothing.
 * Frees nothing of what it allocates in the current memory context.
 *
 * If a flush is worth it now, invalidates the cached plans of this session that have
 * lost a saving with one of these tables, so that they are made again; also if the
 * reason is that other statements have written pages.
 */
bool
tp_credit_savings(List *savings, PlanState *root)
{
	LocalBufStats *stats = tp_localbuf_stats_for_price();
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
		credit_saving(saving, stats);
	}
	foreach(lc, savings)
	{
		FlushSaving *saving = lfirst(lc);
		ListCell   *relid_lc;

		if (!any || !flush_pays(saving, stats))
			continue;
		foreach(relid_lc, existing_tables(saving->relids))
			CallSyscacheCallbacks(PROCOID, replan_hash(lfirst_oid(relid_lc)));
	}
	return any;
}
