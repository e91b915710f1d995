/*-------------------------------------------------------------------------
 *
 * plan_row_order.c
 *	  May the order in which a statement changes rows decide whether it fails?
 *
 * Without workers, rows mostly are changed in the order in which they were inserted, and
 * statements rely on that.  The order decides whether a row has the same unique value as
 * another one that is still to be changed, as in SET n = n - 1; or to be deleted, by MERGE
 * or by moving to another partition.  It decides what ON CONFLICT does about a row, if that
 * may also have the value of another one in an index that is not its arbiter, or if a
 * condition decides which of several rows with a key counts as the one change that is
 * allowed.  And a trigger that is called for each row, or a volatile function, sees which
 * rows have been changed before, and may change others.
 *
 * The invariant: a statement is run ahead only if it fails in all orders of its rows or in
 * none.  What SQL leaves open does not count: which of several rows that differ is taken,
 * even if only some of them can be; and which of them gets which number of a sequence.  (But
 * ON CONFLICT decides by other values which numbers are inserted.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan.h"

typedef struct RowChanges
{
	int16		events;			/* those of triggers, as TRIGGER_TYPE_INSERT */
	List	   *updated;		/* names of columns that get other values */
	int			arbiters;		/* indexes of ON CONFLICT; 0: none, or any */
} RowChanges;

/* A column of a table, or 0 for a whole row, as pull_varattnos() of var.c numbers it */
#define ATTR(column)	((column) - FirstLowInvalidHeapAttributeNumber)

/*
 * What changes in rows of table if the columns do that are named in updated, a List of
 * names, as columns have other numbers in other partitions: these, whole rows, and columns
 * that are generated.
 */
static Bitmapset *
changed_columns(Relation table, List *updated)
{
	TupleDesc	tupdesc = RelationGetDescr(table);
	Bitmapset  *changed = NULL;
	ListCell   *lc;

	if (updated == NIL)
		return NULL;
	foreach(lc, updated)
		changed = bms_add_member(changed, ATTR(get_attnum(RelationGetRelid(table),
														  strVal(lfirst(lc)))));
	for (int i = 0; i < tupdesc->natts; i++)
	{
		if (TupleDescAttr(tupdesc, i)->attgenerated)
			changed = bms_add_member(changed, ATTR(i + 1));
	}
	return bms_add_member(changed, ATTR(0));
}

/* Does index depend on one of columns? */
static bool
index_has(Relation index, const Bitmapset *columns)
{
	Form_pg_index form = index->rd_index;
	Bitmapset  *attrs = NULL;

	pull_varattnos((Node *) RelationGetIndexExpressions(index), 1, &attrs);
	pull_varattnos((Node *) RelationGetIndexPredicate(index), 1, &attrs);
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		if (form->indkey.values[i] != 0)
			attrs = bms_add_member(attrs, ATTR(form->indkey.values[i]));
	}
	return bms_overlap(attrs, columns);
}

/*
 * Refuse for a unique index or exclusion constraint of table that is checked as each row is
 * changed, or is not one of the arbiters.
 */
static Refusal
refusal_by_indexes(Relation table, const RowChanges *changes)
{
	const int16 both = TRIGGER_TYPE_DELETE | TRIGGER_TYPE_INSERT;
	Bitmapset  *columns = changed_columns(table, changes->updated);
	bool		changed = false;
	int			indexes = 0;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index = tp_relation_open(lfirst_oid(lc));
		Form_pg_index form = index->rd_index;

		if (form->indisunique || form->indisexclusion)
		{
			changed = changed || (form->indimmediate &&
								  ((changes->events & both) == both ||
								   index_has(index, columns)));
			indexes++;
		}
		RelationClose(index);
	}
	if (changed)
		return RUN_AHEAD_UNIQUE_COLUMN;
	return changes->arbiters > 0 && indexes > changes->arbiters ?
		RUN_AHEAD_CONFLICT : NOT_REFUSED;
}

/*
 * Does table have a trigger that is called for each row of events, and changes or sees
 * other rows?  Of those of the server, what foreign keys do to the rows that reference a
 * deleted one: two keys may do what only one order allows.  (The columns that are
 * referenced are unique, so their UPDATE is refused.)
 */
static bool
has_row_trigger(Relation table, int16 events)
{
	for (int i = 0; table->trigdesc != NULL && i < table->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &table->trigdesc->triggers[i];

		if (trigger->tgenabled != TRIGGER_DISABLED && TRIGGER_FOR_ROW(trigger->tgtype) &&
			(trigger->tgtype & events) != 0 &&
			(!trigger->tgisinternal || TRIGGER_FOR_DELETE(trigger->tgtype)))
			return true;
	}
	return false;
}

/*
 * May function look at rows, or change what the query returns for the next one, as
 * set_config() and random() do?  Of core's, what is parallel safe changes nothing in the
 * session; of the others, defaults call nextval().  Of users', those in C mostly do neither,
 * as uuid_generate_v4() of contrib.  context: a PlannedStmt that is made anew if function
 * changes.
 */
static bool
function_depends_on_order(Oid function, void *context)
{
	PlannedStmt *stmt = context;
	HeapTuple	tuple;
	bool		result;

	if (function < FirstNormalObjectId)
		return tp_is_user_code(function) ||
			(func_volatile(function) == PROVOLATILE_VOLATILE &&
			 func_parallel(function) != PROPARALLEL_SAFE && function != F_NEXTVAL);
	/* those of plan_note.c are the last ones */
	stmt->invalItems = lcons(tp_dependency(function), stmt->invalItems);
	if (func_volatile(function) != PROVOLATILE_VOLATILE)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return true;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang != ClanguageId;
	ReleaseSysCache(tuple);
	return result;
}

/* Does node leave out arguments of a user's function?  Their defaults may call others. */
static bool
leaves_arguments_out(Node *node)
{
	FuncExpr   *call = (FuncExpr *) node;

	return IsA(node, FuncExpr) && call->funcid >= FirstNormalObjectId &&
		list_length(call->args) < get_func_nargs(call->funcid);
}

/* May a function in node, an expression or a List of such, do so? */
static bool
calls_by_order(Node *node, PlannedStmt *stmt)
{
	if (node == NULL)
		return false;
	return leaves_arguments_out(node) ||
		check_functions_in_node(node, function_depends_on_order, stmt) ||
		expression_tree_walker(node, calls_by_order, stmt);
}

/*
 * Does a CHECK constraint or a generated column of table call such a function, or check a
 * domain?  stmt is made anew if what they call changes.
 */
static bool
checks_by_function(Relation table, PlannedStmt *stmt)
{
	TupleDesc	tupdesc = RelationGetDescr(table);
	TupleConstr *constr = tupdesc->constr;
	List	   *expressions = NIL;

	if (constr == NULL)
		return false;
	for (int i = 0; i < constr->num_check; i++)
		expressions = lappend(expressions, stringToNode(constr->check[i].ccbin));
	for (int i = 0; i < constr->num_defval; i++)
	{
		if (TupleDescAttr(tupdesc, constr->defval[i].adnum - 1)->attgenerated)
			expressions = lappend(expressions, stringToNode(constr->defval[i].adbin));
	}
	return tp_expression_facts(expressions, stmt).hidden_unsafe ||
		calls_by_order((Node *) expressions, stmt);
}

/* Refuse for what the definition of table does with changes of its rows. */
static Refusal
refusal_by_table(Relation table, const RowChanges *changes, PlannedStmt *stmt)
{
	if (has_row_trigger(table, changes->events))
		return RUN_AHEAD_TRIGGER;
	if ((changes->events & (TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE)) != 0 &&
		checks_by_function(table, stmt))
		return RUN_AHEAD_VOLATILE;
	return refusal_by_indexes(table, changes);
}

/* What modify changes in the rows of table. */
static RowChanges
row_changes(ModifyTable *modify, Oid table)
{
	RowChanges	changes = {.arbiters = list_length(modify->arbiterIndexes)};
	List	   *updated = list_copy(modify->onConflictCols);
	ListCell   *lc;

	if (modify->operation == CMD_INSERT)
		changes.events = TRIGGER_TYPE_INSERT;
	if (modify->operation == CMD_DELETE)
		changes.events = TRIGGER_TYPE_DELETE;
	if (modify->updateColnosLists != NIL)
		updated = list_concat(updated, linitial(modify->updateColnosLists));
	foreach(lc, modify->mergeActionLists == NIL ? NIL :
			(List *) linitial(modify->mergeActionLists))
	{
		MergeAction *action = lfirst(lc);

		updated = list_concat(updated, action->updateColnos);
		if (action->commandType == CMD_INSERT)
			changes.events |= TRIGGER_TYPE_INSERT;
		if (action->commandType == CMD_DELETE)
			changes.events |= TRIGGER_TYPE_DELETE;
	}
	if (updated != NIL)
		changes.events |= TRIGGER_TYPE_UPDATE;
	foreach(lc, updated)
		changes.updated = lappend(changes.updated,
								  makeString(get_attname(table, lfirst_int(lc), false)));
	return changes;
}

/*
 * May the order in which stmt changes rows decide whether it fails?  above is what is
 * evaluated for each row as that is changed, defaults among them.
 *
 * Looks at all partitions of a table into which INSERT inserts, of which the server locks
 * only those that get a row.  So each is locked only for the look: locks on all of them could
 * block or deadlock others, or fill the lock table.  stmt is made anew if one changes.
 */
Refusal
tp_order_refusal(PlannedStmt *stmt, List *above)
{
	ModifyTable *modify = castNode(ModifyTable, stmt->planTree);
	Oid			first = rt_fetch(linitial_int(modify->resultRelations), stmt->rtable)->relid;
	Oid			root = modify->rootRelation == 0 ? first :
		rt_fetch(modify->rootRelation, stmt->rtable)->relid;
	RowChanges	changes = row_changes(modify, first);
	List	   *tables;
	Refusal		result = NOT_REFUSED;
	ListCell   *lc;

	if (calls_by_order((Node *) above, stmt))
		return RUN_AHEAD_VOLATILE;
	if (modify->onConflictWhere != NULL)
		return RUN_AHEAD_CONFLICT;

	/* INSERT reaches partitions, but not the children of a table */
	if (modify->operation == CMD_INSERT && get_rel_relkind(root) == RELKIND_RELATION)
		tables = list_make1_oid(root);
	else
		tables = find_all_inheritors(root, NoLock, NULL);
	stmt->relationOids = list_concat_unique_oid(stmt->relationOids, tables);
	/* it may move rows to other partitions */
	if ((changes.events & TRIGGER_TYPE_UPDATE) != 0 && modify->operation != CMD_INSERT &&
		get_rel_relkind(root) == RELKIND_PARTITIONED_TABLE)
		changes.events |= TRIGGER_TYPE_DELETE | TRIGGER_TYPE_INSERT;
	foreach(lc, tables)
	{
		Oid			relid = lfirst_oid(lc);
		Relation	table;

		if (relid != root && !ConditionalLockRelationOid(relid, AccessShareLock))
			return RUN_AHEAD_LOCKED;
		table = RelationIdGetRelation(relid);
		/* otherwise a partition that has been dropped */
		if (RelationIsValid(table))
		{
			result = refusal_by_table(table, &changes, stmt);
			RelationClose(table);
		}
		if (relid != root)
			UnlockRelationOid(relid, AccessShareLock);
		if (result != NOT_REFUSED)
			break;
	}
	return result;
}
