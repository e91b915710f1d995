/*-------------------------------------------------------------------------
 *
 * plan_note.c
 *	  What is noted in a finished plan: why it has no workers, and what workers save.
 *
 * A PlannedStmt has no field for other modules' data before version 19.  So notes are
 * items of invalItems, on all versions: these are copied with a plan, and not sent to
 * workers.  The cacheIds of the items are negative, and no invalidation matches them.
 *
 * If a saving is lost, each table has an item besides that does match: the plan depends
 * on the pg_proc row whose OID is the table's.  Such a row need not exist.
 * tp_replan_for() invalidates these items.
 *
 * The invariant: a refusal is the first item, and savings are the last ones, lost ones
 * after that of the plan, so that it takes no search to see that there are none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/inval.h"
#include "utils/syscache.h"

#include "plan.h"

/* cacheIds; one of the last three is that of the last item of a saving */
#define REFUSAL			(-1001)
#define SAVING_TABLE	(-1002)
#define SAVING_INDEX	(-1003)
#define SAVING_CHARGE	(-1004)
#define SAVING_LOST		(-1005)
#define SAVING_LOST_BESIDE	(-1006) /* searched */
#define SAVING_OF_PLAN	(-1007)

static PlanInvalItem *
make_item(int cacheid, uint32 value)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = cacheid;
	item->hashValue = value;
	return item;
}

/* Note in stmt why it is not run ahead, or has no workers, if that has been refused. */
void
tp_note_refusal(PlannedStmt *stmt, Refusal refusal)
{
	if (refusal != NOT_REFUSED)
		stmt->invalItems = lcons(make_item(REFUSAL, refusal), stmt->invalItems);
}

/* What tp_note_refusal() has noted in stmt. */
Refusal
tp_refusal_of(PlannedStmt *stmt)
{
	PlanInvalItem *item = stmt->invalItems == NIL ? NULL : linitial(stmt->invalItems);

	return item == NULL || item->cacheId != REFUSAL ? NOT_REFUSED :
		item->hashValue;
}

/* Hash value of the item by which plans over table relid are invalidated. */
static uint32
replan_hash(Oid relid)
{
	return GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(relid));
}

/* Make an item of cost, in single precision, and back. */
static PlanInvalItem *
make_cost_item(int cacheid, Cost cost)
{
	float4		value = cost;
	uint32		bits;

	memcpy(&bits, &value, sizeof(bits));
	return make_item(cacheid, bits);
}

static Cost
cost_of_item(const PlanInvalItem *item)
{
	float4		value;

	memcpy(&value, &item->hashValue, sizeof(value));
	return value;
}

/*
 * Note in stmt what workers save in it, or, if lost, would save if it was not for the flush.
 * Allocates in the current memory context.
 */
void
tp_note_saving(PlannedStmt *stmt, const FlushSaving *saving, bool lost)
{
	List	   *items = stmt->invalItems;
	ListCell   *lc;

	foreach(lc, saving->relids)
	{
		if (lost)
			items = lappend(items, make_item(PROCOID, replan_hash(lfirst_oid(lc))));
		items = lappend(items, make_item(SAVING_TABLE, lfirst_oid(lc)));
	}
	foreach(lc, saving->indexes)
		items = lappend(items, make_item(SAVING_INDEX, lfirst_oid(lc)));
	items = lappend(items, make_cost_item(SAVING_CHARGE, saving->charge));
	stmt->invalItems = lappend(items, make_cost_item(!lost ? SAVING_OF_PLAN :
													 saving->searched ? SAVING_LOST_BESIDE : SAVING_LOST,
													 saving->saving));
}

/* Has stmt a lost saving?  Looks at its last item only. */
bool
tp_has_lost_saving(PlannedStmt *stmt)
{
	PlanInvalItem *item = stmt->invalItems == NIL ? NULL : llast(stmt->invalItems);

	return item != NULL &&
		(item->cacheId == SAVING_LOST || item->cacheId == SAVING_LOST_BESIDE);
}

/*
 * The savings in stmt, of its plan or lost, in the order in which they have been noted: a List
 * of FlushSaving in the current memory context.
 */
List *
tp_savings_of(PlannedStmt *stmt, bool lost)
{
	FlushSaving saving = {0};
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, stmt->invalItems)
	{
		PlanInvalItem *item = lfirst(lc);

		switch (item->cacheId)
		{
			case SAVING_TABLE:
				saving.relids = lappend_oid(saving.relids, item->hashValue);
				break;
			case SAVING_INDEX:
				saving.indexes = lappend_oid(saving.indexes, item->hashValue);
				break;
			case SAVING_CHARGE:
				saving.charge = cost_of_item(item);
				break;
			case SAVING_LOST:
			case SAVING_LOST_BESIDE:
			case SAVING_OF_PLAN:
				saving.saving = cost_of_item(item);
				saving.searched = item->cacheId == SAVING_LOST_BESIDE;
				if (lost == (item->cacheId != SAVING_OF_PLAN))
					result = lappend(result, memcpy(palloc(sizeof(saving)), &saving, sizeof(saving)));
				memset(&saving, 0, sizeof(saving));
				break;
		}
	}
	return result;
}

/* savings, of different tables, as one */
FlushSaving
tp_sum_of_savings(List *savings)
{
	FlushSaving sum = {.searched = true};
	ListCell   *lc;

	foreach(lc, savings)
	{
		const FlushSaving *saving = lfirst(lc);

		sum.relids = list_concat(sum.relids, saving->relids);
		sum.indexes = list_concat_unique_oid(sum.indexes, saving->indexes);
		sum.saving += saving->saving;
		sum.charge += saving->charge;
		sum.searched &= saving->searched;
	}
	return sum;
}

/* What the workers of stmt save, in the current memory context; zeros if that is not noted. */
FlushSaving
tp_saving_of(PlannedStmt *stmt)
{
	FlushSaving none = {0};
	List	   *savings = tp_savings_of(stmt, false);

	return savings == NIL ? none : *(FlushSaving *) linitial(savings);
}

/* Have the cached plans of this session made again that have lost a saving with table relid. */
void
tp_replan_for(Oid relid)
{
	CallSyscacheCallbacks(PROCOID, replan_hash(relid));
}
