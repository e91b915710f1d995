/*-------------------------------------------------------------------------
 *
 * run_ahead_refusal.c
 *	  May the SELECT of an INSERT into a temporary table run in parallel?
 *
 * Core plans nothing but SELECT in parallel, and forbids changes in parallel
 * mode.  So the plan of INSERT INTO ... SELECT gets a node below ModifyTable
 * (run_ahead.c) that runs the SELECT to its end, in parallel mode, before the
 * first row is inserted.  What is inserted, and what triggers, constraints,
 * defaults and RETURNING do, is then the same as without workers.
 *
 * The invariant: a SELECT is run ahead only if nothing in it sees the rows that
 * the statement inserts, and nothing that is executed later continues a part of
 * it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "plan.h"

/* Why an INSERT has no workers, as EXPLAIN says it; by InsertRefusal. */
static const char *const refusals[] = {
	[INSERT_MAY_BE_PARALLEL] = NULL,
	[INSERT_OTHER_TARGET] = NULL,	/* of no interest */
	[INSERT_MODIFIES_MORE] = "WITH has a statement that modifies data",
	[INSERT_UNSAFE_QUERY] = "query is not parallel safe",
	[INSERT_VOLATILE_QUERY] = "query calls a volatile function",
	[INSERT_SHARES_CTE] = "WITH is also used while rows are inserted",
	[INSERT_KEEPS_TOO_MUCH] = "its rows may exceed temp_file_limit",
};

/*
 * Is query, which has been rewritten, INSERT INTO ... SELECT?  A cheap test,
 * for every statement.
 */
bool
tp_is_insert_select(Query *query)
{
	RangeTblRef *source;

	if (query->commandType != CMD_INSERT ||
		query->jointree == NULL ||
		list_length(query->jointree->fromlist) != 1)
		return false;
	source = linitial(query->jointree->fromlist);
	return IsA(source, RangeTblRef) &&
		rt_fetch(source->rtindex, query->rtable)->rtekind == RTE_SUBQUERY;
}

/* ----------
 * The statement
 * ----------
 */

/* Does node, a query or a part of it, make values of a domain with constraints? */
static bool
checks_domain(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (tp_checks_domain(node))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, checks_domain, context, 0);
	return expression_tree_walker(node, checks_domain, context);
}

/*
 * May the SELECT of query, for which tp_is_insert_select() is true, be run by
 * workers?  If so, sets *hazard as max_parallel_hazard() of clauses.c does.
 *
 * A CTE is executed as far as its rows are read, so what follows the SELECT must
 * not read more of it.
 */
InsertRefusal
tp_insert_refusal(Query *query, char *hazard)
{
	RangeTblEntry *target = rt_fetch(query->resultRelation, query->rtable);

	if (get_rel_persistence(target->relid) != RELPERSISTENCE_TEMP)
		return INSERT_OTHER_TARGET;
	if (query->hasModifyingCTE)
		return INSERT_MODIFIES_MORE;
	if (query->cteList != NIL &&
		(contain_subplans((Node *) query->returningList) ||
		 contain_subplans((Node *) query->onConflict)))
		return INSERT_SHARES_CTE;
	*hazard = max_parallel_hazard(query);
	if (*hazard == PROPARALLEL_UNSAFE)
		return INSERT_UNSAFE_QUERY;
	if (tp_calls_volatile_function((Node *) query))
		return INSERT_VOLATILE_QUERY;
	return checks_domain((Node *) query, NULL) ?
		INSERT_UNSAFE_QUERY : INSERT_MAY_BE_PARALLEL;
}

/* ----------
 * The rows
 * ----------
 */

/*
 * Bytes of the rows of plan in a tuplestore, as relation_byte_size() of costsize.c
 * estimates it.
 */
double
tp_bytes_of_rows(const Plan *plan)
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
	double		bytes = tp_bytes_of_rows(plan);

	return temp_file_limit >= 0 && bytes > work_mem * 1024.0 &&
		bytes > temp_file_limit * 1024.0 / 2;
}

/* ----------
 * EXPLAIN
 * ----------
 */

/* cacheId of an item in invalItems, see plan_saving.c */
#define SERIAL_INSERT	(-1006)

/* Note in stmt that its SELECT has no workers, and why. */
void
tp_note_serial_insert(PlannedStmt *stmt, InsertRefusal refusal)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = SERIAL_INSERT;
	item->hashValue = refusal;
	stmt->invalItems = lcons(item, stmt->invalItems);
}

/* What tp_note_serial_insert() has noted in stmt, as text; otherwise NULL. */
const char *
tp_serial_insert_reason(PlannedStmt *stmt)
{
	PlanInvalItem *item;

	if (stmt->invalItems == NIL)
		return NULL;
	item = linitial(stmt->invalItems);
	return item->cacheId == SERIAL_INSERT ? refusals[item->hashValue] : NULL;
}
