/*-------------------------------------------------------------------------
 *
 * plan_run_ahead.c
 *	  Which statements are run ahead, why others are not, and the node in their plan.
 *
 * Core plans nothing but SELECT in parallel.  A statement that changes a table is run
 * ahead if Custom Scan (RunAhead), executed by exec_run_ahead.c, is the child of its
 * ModifyTable: all rows that are to be inserted, updated, deleted or merged are
 * found, by workers, before the first one is.
 *
 * Default values that are not parallel safe, as those of serial and identity columns,
 * are evaluated above the node, for each row when that is to be inserted.
 *
 * The invariant: a statement is run ahead only if nothing below its node sees what
 * the statement changes, nothing above the node continues a part of it, and no other
 * session can change the rows that it has found.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "plan.h"

/* Why a statement is not run ahead, as EXPLAIN says it; by RunAheadRefusal. */
static const char *const refusals[] = {
	[RUN_AHEAD_ALLOWED] = NULL,
	[RUN_AHEAD_PERMANENT_TARGET] = "changes rows of a permanent table",
	[RUN_AHEAD_MODIFYING_WITH] = "WITH has a statement that modifies data",
	[RUN_AHEAD_UNSAFE] = "query is not parallel safe",
	[RUN_AHEAD_VOLATILE] = "query calls a volatile function",
	[RUN_AHEAD_SHARED_WITH] = "WITH is also used while rows are changed",
	[RUN_AHEAD_CURRENT_OF] = "WHERE CURRENT OF",
	[RUN_AHEAD_UNIQUE_COLUMN] = "changes a column of a unique index",
	[RUN_AHEAD_TRIGGER] = "trigger for each row",
	[RUN_AHEAD_CONFLICT] = "ON CONFLICT depends on the order of rows",
	[RUN_AHEAD_GAINS_LITTLE] = "workers would save less than 15 % of its cost",
	[RUN_AHEAD_TOO_LARGE] = "its rows may exceed temp_file_limit",
};

/* Could workers scan the table of node, if that names one?  Its indexes do not count. */
static bool
is_large_table(Node *node)
{
	RangeTblEntry *rte = (RangeTblEntry *) node;
	Relation	rel;
	bool		result;

	if (!IsA(node, RangeTblEntry) || rte->rtekind != RTE_RELATION)
		return false;
	if (rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW)
		return rte->relkind != RELKIND_VIEW;
	if (rte->inh && has_subclass(rte->relid))
		return true;
	rel = tp_relation_open(rte->relid);
	result = RelationGetParallelWorkers(rel, 0) > 0 ||
		RelationGetNumberOfBlocks(rel) >= (BlockNumber) min_parallel_table_scan_size;
	RelationClose(rel);
	return result;
}

/* Does query read a table that is large enough for workers?  Its tables are locked. */
bool
tp_reads_large_table(Query *query)
{
	return debug_parallel_query != DEBUG_PARALLEL_OFF ||
		tp_any_range_table_entry(query, is_large_table);
}

static bool
changes_temp_table(Query *query)
{
	return get_rel_persistence(rt_fetch(query->resultRelation,
										query->rtable)->relid) == RELPERSISTENCE_TEMP;
}

/*
 * Does query, which has been rewritten, change a table by rows that it finds in
 * others, with a temporary one among these, and one that is large enough for workers?
 * A cheap test, for every statement.  The relations are locked.
 */
bool
tp_may_run_ahead(Query *query)
{
	RangeTblRef *source;

	switch (query->commandType)
	{
		case CMD_UPDATE:
		case CMD_DELETE:
		case CMD_MERGE:
			if (tp_run_ahead < RUN_AHEAD_MODIFY)
				return false;
			break;
		case CMD_INSERT:
			if (tp_run_ahead < RUN_AHEAD_INSERT || query->jointree == NULL ||
				list_length(query->jointree->fromlist) != 1)
				return false;
			source = linitial(query->jointree->fromlist);
			if (!IsA(source, RangeTblRef) ||
				rt_fetch(source->rtindex, query->rtable)->rtekind != RTE_SUBQUERY)
				return false;
			break;
		default:
			return false;
	}
	return (changes_temp_table(query) || tp_reads_temp_table(query)) &&
		tp_reads_large_table(query);
}

static bool
is_current_of(Node *node)
{
	return IsA(node, CurrentOfExpr);
}

/*
 * May workers run query, and the leader run it ahead of what would happen between its
 * rows?
 */
RunAheadRefusal
tp_query_refusal(Query *query)
{
	if (max_parallel_hazard(query) == PROPARALLEL_UNSAFE)
		return RUN_AHEAD_UNSAFE;
	if (tp_contains((Node *) query, tp_expression_is_volatile))
		return RUN_AHEAD_VOLATILE;
	return tp_contains((Node *) query, tp_checks_domain) ?
		RUN_AHEAD_UNSAFE : RUN_AHEAD_ALLOWED;
}

static bool
is_volatile_user_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId &&
		func_volatile(function) == PROVOLATILE_VOLATILE;
}

static bool
calls_volatile_user_function(Node *node)
{
	return check_functions_in_node(node, is_volatile_user_function, NULL);
}

/*
 * May query, for which tp_may_run_ahead() is true, be run ahead?
 *
 * Other sessions may change the rows of a permanent table while they are found.
 * Core then looks for their newest version, and evaluates a part of the plan again
 * (EvalPlanQual), which the node could serve; but the order in which rows are
 * locked would be that in which workers find them, and two sessions that change the
 * same rows could deadlock.  The children of a temporary table are temporary.
 *
 * ModifyTable evaluates RETURNING, ON CONFLICT, the actions of MERGE and
 * conditions of views for each row, outside parallel mode; so they may contain
 * whatever they may contain in any statement, but functions that may look at the rows
 * changed so far.
 */
RunAheadRefusal
tp_run_ahead_refusal(Query *query)
{
	Query		below = *query;
	List	   *above = list_make4(query->returningList, query->mergeActionList,
								   query->withCheckOptions, query->onConflict);

	below.returningList = below.mergeActionList = below.withCheckOptions = NIL;
	below.onConflict = NULL;

	if (query->commandType != CMD_INSERT && !changes_temp_table(query))
		return RUN_AHEAD_PERMANENT_TARGET;
	if (query->hasModifyingCTE)
		return RUN_AHEAD_MODIFYING_WITH;
	if (tp_contains((Node *) &below, is_current_of))
		return RUN_AHEAD_CURRENT_OF;
	if (tp_contains((Node *) above, calls_volatile_user_function))
		return RUN_AHEAD_VOLATILE;
	return tp_query_refusal(&below);
}

static bool
is_any_subplan(Node *node)
{
	return IsA(node, SubPlan) ||
		(IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC);
}

/*
 * May expressions, evaluated above the node in stmt, read rows of a CTE?  A CTE is
 * executed only as far as its rows are read, and its workers are ended with the part
 * below the node.  Where the planner has put a subquery is known only now: it may have
 * pulled it up into RETURNING.
 */
bool
tp_may_read_cte(PlannedStmt *stmt, List *expressions)
{
	ListCell   *lc;

	foreach(lc, stmt->rtable)
	{
		if (((RangeTblEntry *) lfirst(lc))->rtekind == RTE_CTE)
			return tp_contains((Node *) expressions, is_any_subplan);
	}
	return false;
}

/* ----------
 * The order of rows
 *
 * Without workers, rows mostly are changed in the order in which they were inserted, and
 * statements rely on that.  Whether a row has the same unique value as another one that is
 * still to be changed depends on it, as in SET n = n - 1; or as one that is still to be
 * deleted, if rows are deleted and inserted, by MERGE or by moving to another partition.
 * So does what ON CONFLICT does about a row, if that may also have the value of another one
 * in an index that is not its arbiter, or if a condition decides whether the first of
 * several rows with the same key counts as the change that is allowed.  And a trigger that
 * is called for each row, or a function, sees which rows have been changed before, and may
 * change others.
 * ----------
 */
typedef struct RowChanges
{
	int16		events;			/* those of triggers, as TRIGGER_TYPE_INSERT */
	List	   *updated;		/* names of columns that get other values */
	List	   *distinct;		/* names of those with a volatile default
								 * value */
	bool		replaces;		/* may a row that is inserted have the unique
								 * value of one that is deleted? */
	int			arbiters;		/* indexes of ON CONFLICT; 0: none, or any */
} RowChanges;

/* Names of the columns of table, given a List of their numbers. */
static List *
names_of_columns(Oid table, List *numbers)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, numbers)
		names = lappend(names, makeString(get_attname(table, lfirst_int(lc), false)));
	return names;
}

/*
 * Does index of table depend on one of columns, a List of their names?  Columns that are
 * generated, and whole rows, do if by_others.
 */
static bool
index_has(Relation index, Relation table, List *columns, bool by_others)
{
	Form_pg_index form = index->rd_index;
	Bitmapset  *attrs = NULL;
	bool		result = false;
	int			attr = -1;

	if (columns == NIL)
		return false;
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		if (form->indkey.values[i] != 0)
			attrs = bms_add_member(attrs, form->indkey.values[i] -
								   FirstLowInvalidHeapAttributeNumber);
	}
	pull_varattnos((Node *) RelationGetIndexExpressions(index), 1, &attrs);
	pull_varattnos((Node *) RelationGetIndexPredicate(index), 1, &attrs);
	while ((attr = bms_next_member(attrs, attr)) >= 0)
	{
		int			column = attr + FirstLowInvalidHeapAttributeNumber;
		Form_pg_attribute form_attr = column <= 0 ? NULL :
			TupleDescAttr(RelationGetDescr(table), column - 1);

		/* 0 is a whole row */
		if (form_attr == NULL || form_attr->attgenerated)
			result = result || by_others;
		else
			result = result || list_member(columns, makeString(NameStr(form_attr->attname)));
	}
	return result;
}

/*
 * Refuse for the unique indexes and exclusion constraints of table: one that is checked as
 * each row is changed, or any one beside the arbiters.
 */
static RunAheadRefusal
refusal_by_indexes(Relation table, const RowChanges *changes)
{
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
								  (changes->replaces ||
								   index_has(index, table, changes->updated, true)));
			indexes += !index_has(index, table, changes->distinct, false);
		}
		RelationClose(index);
	}
	if (changed)
		return RUN_AHEAD_UNIQUE_COLUMN;
	return changes->arbiters > 0 && indexes > changes->arbiters ?
		RUN_AHEAD_CONFLICT : RUN_AHEAD_ALLOWED;
}

/* Does table have a user's trigger that is called for each row of events? */
static bool
has_row_trigger(Relation table, int16 events)
{
	for (int i = 0; table->trigdesc != NULL && i < table->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &table->trigdesc->triggers[i];

		if (!trigger->tgisinternal && trigger->tgenabled != TRIGGER_DISABLED &&
			TRIGGER_FOR_ROW(trigger->tgtype) && (trigger->tgtype & events) != 0)
			return true;
	}
	return false;
}

/* Does a CHECK constraint of table call a function that may look at other rows? */
static bool
checks_by_function(Relation table)
{
	TupleConstr *constr = RelationGetDescr(table)->constr;

	for (int i = 0; constr != NULL && i < constr->num_check; i++)
	{
		if (tp_contains(stringToNode(constr->check[i].ccbin), calls_volatile_user_function))
			return true;
	}
	return false;
}

/* Is table partitioned by one of columns, a List of their names? */
static bool
is_partitioned_by(Relation table, List *columns)
{
	Bitmapset  *attrs = NULL;
	ListCell   *lc;

	if (table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return false;
	foreach(lc, columns)
		attrs = bms_add_member(attrs, get_attnum(RelationGetRelid(table), strVal(lfirst(lc))) -
							   FirstLowInvalidHeapAttributeNumber);
	return has_partition_attrs(table, attrs, NULL);
}

/* What modify changes in the rows of table, given the defaults of tp_take_defaults(). */
static RowChanges
row_changes(ModifyTable *modify, Oid table, List *defaults)
{
	RowChanges	changes = {.arbiters = list_length(modify->arbiterIndexes)};
	List	   *updated = list_copy(modify->onConflictCols);
	List	   *distinct = NIL;
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
	changes.updated = names_of_columns(table, updated);
	foreach(lc, defaults)
	{
		TargetEntry *tle = lfirst(lc);

		if (contain_volatile_functions((Node *) tle->expr))
			distinct = lappend_int(distinct, tle->resno);
	}
	changes.distinct = names_of_columns(table, distinct);
	return changes;
}

/*
 * May the order in which modify, of stmt, changes rows decide whether it fails?
 *
 * Takes ACCESS SHARE on the partitions of a table into which INSERT inserts, which are
 * locked only when they get a row; stmt is made anew if one of them changes.
 */
static RunAheadRefusal
refusal_by_order(PlannedStmt *stmt, ModifyTable *modify, List *defaults)
{
	Oid			first = rt_fetch(linitial_int(modify->resultRelations), stmt->rtable)->relid;
	Oid			root = modify->rootRelation == 0 ? first :
		rt_fetch(modify->rootRelation, stmt->rtable)->relid;
	RowChanges	changes = row_changes(modify, first, defaults);
	List	   *tables;
	RunAheadRefusal result = RUN_AHEAD_ALLOWED;
	ListCell   *lc;

	if (modify->onConflictWhere != NULL)
		return RUN_AHEAD_CONFLICT;

	/* INSERT reaches partitions, but not the children of a table */
	if (modify->operation == CMD_INSERT && get_rel_relkind(root) == RELKIND_RELATION)
		tables = list_make1_oid(root);
	else
		tables = find_all_inheritors(root, AccessShareLock, NULL);
	stmt->relationOids = list_concat_unique_oid(stmt->relationOids, tables);
	foreach(lc, tables)
	{
		Relation	table = tp_relation_open(lfirst_oid(lc));

		/* a partitioned table comes before its partitions */
		if (is_partitioned_by(table, changes.updated))
			changes.events |= TRIGGER_TYPE_DELETE | TRIGGER_TYPE_INSERT;
		changes.replaces = (changes.events & TRIGGER_TYPE_DELETE) != 0 &&
			(changes.events & TRIGGER_TYPE_INSERT) != 0;
		if (has_row_trigger(table, changes.events))
			result = RUN_AHEAD_TRIGGER;
		else if ((changes.events & (TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE)) != 0 &&
				 checks_by_function(table))
			result = RUN_AHEAD_VOLATILE;
		else
			result = refusal_by_indexes(table, &changes);
		RelationClose(table);
		if (result != RUN_AHEAD_ALLOWED)
			break;
	}
	return result;
}

/*
 * Is query an INSERT whose rows have an order?  If it fails in another one of rows that
 * are equal by it, that is not for us to avoid.
 */
bool
tp_inserts_in_order(Query *query)
{
	RangeTblRef *source;

	if (query->commandType != CMD_INSERT)
		return false;
	source = linitial_node(RangeTblRef, query->jointree->fromlist);
	return rt_fetch(source->rtindex, query->rtable)->subquery->sortClause != NIL;
}

/*
 * May stmt, the plan of such a query that needs parallel mode, be run ahead?  defaults are
 * those that tp_take_defaults() has taken out of the query; in_order is what
 * tp_inserts_in_order() has said of it.
 */
RunAheadRefusal
tp_plan_refusal(PlannedStmt *stmt, List *defaults, bool in_order)
{
	ModifyTable *modify = castNode(ModifyTable, stmt->planTree);
	List	   *above = list_make5(modify->returningLists,
								   modify->withCheckOptionLists,
								   modify->onConflictSet,
								   modify->onConflictWhere,
								   modify->mergeActionLists);
	RunAheadRefusal refusal = RUN_AHEAD_ALLOWED;

	above = lappend(above, merge_join_conditions(modify));
	if (tp_may_read_cte(stmt, above))
		return RUN_AHEAD_SHARED_WITH;
	if (!in_order)
		refusal = refusal_by_order(stmt, modify, defaults);
	if (refusal != RUN_AHEAD_ALLOWED)
		return refusal;
	return tp_rows_exceed_file_limit(outerPlan(modify)) ?
		RUN_AHEAD_TOO_LARGE : RUN_AHEAD_ALLOWED;
}

/* ----------
 * Default values that are not parallel safe
 * ----------
 */

/*
 * Is expr, of the target list of an INSERT, evaluated as rows are inserted?  What is
 * stable, too: it may depend on what a volatile one does.
 */
static bool
must_wait(Node *expr)
{
	return (contain_mutable_functions(expr) ||
			tp_contains(expr, tp_checks_domain)) &&
		!contain_var_clause(expr) && !contain_subplans(expr);
}

/*
 * Take the values that may not be parallel safe, and are the same expression for each
 * row, out of the target list of query, an INSERT: the defaults of columns.  NULL takes
 * their place.  Returns them as a List of TargetEntry, for
 * tp_place_run_ahead_node().  Scribbles on query.
 */
List *
tp_take_defaults(Query *query)
{
	List	   *defaults = NIL;
	ListCell   *lc;

	/* what follows the target list must not change the number of rows */
	if (query->commandType != CMD_INSERT || query->hasTargetSRFs ||
		query->limitOffset != NULL || query->limitCount != NULL)
		return NIL;
	foreach(lc, query->targetList)
	{
		TargetEntry *tle = lfirst(lc);
		Node	   *expr = (Node *) tle->expr;

		if (!must_wait(expr))
			continue;
		defaults = lappend(defaults, flatCopyTargetEntry(tle));
		tle->expr = (Expr *) makeNullConst(exprType(expr), exprTypmod(expr),
										   exprCollation(expr));
	}
	return defaults;
}

/*
 * Have node, above the plan of stmt's SELECT, evaluate defaults.  stmt is made anew
 * if what they depend on changes, as with any expression in a plan.
 */
static void
give_defaults(CustomScan *node, List *defaults, PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, defaults)
	{
		TargetEntry *tle = lfirst(lc);
		TargetEntry *column = get_tle_by_resno(node->scan.plan.targetlist, tle->resno);
		List	   *relids = NIL;
		List	   *items = NIL;

		column->expr = expression_planner_with_deps(tle->expr, &relids, &items);
		stmt->relationOids = list_concat(stmt->relationOids, relids);
		/* those of plan_saving.c are the last ones */
		stmt->invalItems = list_concat(items, stmt->invalItems);
	}
}

/* ----------
 * EXPLAIN
 * ----------
 */

/* cacheId of an item in invalItems, see plan_saving.c */
#define NOT_RUN_AHEAD	(-1006)

/* Note in stmt that it is not run ahead, and why, if that has been refused. */
void
tp_note_refusal(PlannedStmt *stmt, RunAheadRefusal refusal)
{
	PlanInvalItem *item;

	if (refusal == RUN_AHEAD_ALLOWED)
		return;
	item = makeNode(PlanInvalItem);
	item->cacheId = NOT_RUN_AHEAD;
	item->hashValue = refusal;
	stmt->invalItems = lcons(item, stmt->invalItems);
}

/* What tp_note_refusal() has noted in stmt, as text; otherwise NULL. */
const char *
tp_refusal_reason(PlannedStmt *stmt)
{
	PlanInvalItem *item;

	if (stmt->invalItems == NIL)
		return NULL;
	item = linitial(stmt->invalItems);
	return item->cacheId == NOT_RUN_AHEAD ? refusals[item->hashValue] : NULL;
}

/* ----------
 * Keeping rows
 * ----------
 */

/*
 * Bytes of the rows of plan in a tuplestore, as relation_byte_size() of costsize.c
 * estimates it.
 */
static double
bytes_of_rows(const Plan *plan)
{
	return plan->plan_rows *
		(MAXALIGN(plan->plan_width) + MAXALIGN(SizeofHeapTupleHeader));
}

/*
 * May a tuplestore with the rows of plan exceed temp_file_limit, so that the
 * statement fails?  Half the limit is left to the plan itself, which may need
 * temporary files at the same time, and for an estimate that is too low.
 */
bool
tp_rows_exceed_file_limit(const Plan *plan)
{
	double		bytes = bytes_of_rows(plan);

	return temp_file_limit >= 0 && bytes > work_mem * 1024.0 &&
		bytes > temp_file_limit * 1024.0 / 2;
}

/*
 * The cost of keeping the rows of plan in a tuplestore, in planner cost units, as
 * cost_material() of costsize.c has it.
 */
static Cost
cost_of_keeping_rows(const Plan *plan)
{
	double		bytes = bytes_of_rows(plan);
	Cost		cost = 2 * cpu_operator_cost * plan->plan_rows;

	if (bytes > work_mem * 1024.0)
		cost += seq_page_cost * ceil(bytes / BLCKSZ);
	return cost;
}

/* ----------
 * The node
 * ----------
 */

/* Make the node above child, with its costs, numbered plan_node_id. */
CustomScan *
tp_run_ahead_node(Plan *child, int plan_node_id)
{
	CustomScan *node = tp_custom_scan_above(child, RUN_AHEAD_NODE_NAME, plan_node_id);

	node->scan.plan.startup_cost = child->total_cost;
	node->scan.plan.total_cost = child->total_cost + cost_of_keeping_rows(child);
	return node;
}

/*
 * Give stmt, the plan of a statement that changes a table and needs parallel mode, the
 * node, numbered after all others.  It evaluates defaults, those that
 * tp_take_defaults() has taken out of its query.  Changes the plan in place.
 */
void
tp_place_run_ahead_node(PlannedStmt *stmt, List *defaults)
{
	Plan	   *modify = &castNode(ModifyTable, stmt->planTree)->plan;
	Plan	   *child = outerPlan(modify);
	CustomScan *node = tp_run_ahead_node(child,
										 tp_statement_facts(stmt).last_node_id + 1);
	Plan	   *plan = &node->scan.plan;

	give_defaults(node, defaults, stmt);
	/* the statement costs as much more as what it reads */
	modify->startup_cost += plan->startup_cost - child->startup_cost;
	modify->total_cost += plan->total_cost - child->total_cost;
	outerPlan(modify) = plan;
	stmt->parallelModeNeeded = false;
}

/*
 * Is stmt, a plan with workers to be run ahead, so much better than that without them,
 * when costs are those of ours and serial?  The charge of its flush does not count for
 * that: a statement that is refused because of it adds to the accounts of its tables
 * (flush_cost.c), and one that is refused here does not.
 */
bool
tp_gains_enough(PlannedStmt *stmt, const Plan *ours, const Plan *serial)
{
	Cost		cost = ours->total_cost;
	ListCell   *lc;

	foreach(lc, tp_statement_facts(stmt).gathers)
	{
		CustomScan *flush = tp_find_flush_node(((Plan *) lfirst(lc))->lefttree);

		if (flush != NULL)
			cost -= tp_flush_plan(flush).planned.charge;
	}
	return cost <= LARGEST_PART * serial->total_cost;
}
