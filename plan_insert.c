/*-------------------------------------------------------------------------
 *
 * plan_insert.c
 *	  May the SELECT of an INSERT into a temporary table run in parallel?
 *
 * Core plans nothing but SELECT in parallel, and forbids changes in parallel
 * mode.  So the plan of INSERT INTO ... SELECT gets a node below ModifyTable
 * (plan_select_node.c) that runs the SELECT to its end, in parallel mode,
 * before the first row is inserted.  What is inserted, and what triggers,
 * constraints, defaults and RETURNING do, is then the same as without workers.
 *
 * standard_planner() decides by the kind of statement.  From 19 on, it calls
 * planner_setup_hook next, which changes the decision.  Before, the first hook
 * that it calls is get_relation_info_hook, for each table of the query; the
 * first call changes the decision.  Relations that the planner has looked at by
 * then, which are subqueries and unions of subqueries, are looked at again by
 * plan_paths.c.
 *
 * The invariant: a SELECT is run ahead only if nothing in it sees the rows that
 * the statement inserts, and nothing that is executed later continues a part of
 * it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "plan.h"

/* Why an INSERT has no workers, as EXPLAIN says it; by InsertRefusal. */
static const char *const refusals[] = {
	[INSERT_MAY_BE_PARALLEL] = NULL,
	[INSERT_OTHER_TARGET] = NULL,	/* of no interest */
	[INSERT_MODIFIES_MORE] = "WITH has a statement that modifies data",
	[INSERT_UNSAFE_QUERY] = "query is not parallel safe",
	[INSERT_VOLATILE_QUERY] = "query calls a volatile function",
	[INSERT_SHARES_CTE] = "WITH is also used while rows are inserted",
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

/*
 * Volatile functions
 *
 * Such a function sees the rows inserted so far, if it runs SQL, or their table's
 * size, or the counters of statistics; if the SELECT is run ahead, there are none.
 * Looked at are the functions in the query, the default arguments that the planner
 * adds, the functions of aggregates, and the constraints of domains.
 */

static bool calls_volatile_function(Node *node, void *context);

/*
 * Volatile functions of core, by any arguments, that are known to look neither at
 * tables nor at what the transaction has done.
 */
static const char *const harmless[] = {
	"array_sample", "array_shuffle", "clock_timestamp", "current_query",
	"gen_random_uuid", "pg_sleep", "random", "random_normal", "setseed", "timeofday",
	"uuidv4", "uuidv7"
};

/* Is function, if there is one, volatile, and not one of those? */
static bool
is_volatile_function(Oid function, void *context)
{
	const char *name;

	if (!OidIsValid(function) || func_volatile(function) != PROVOLATILE_VOLATILE)
		return false;
	if (function >= FirstNormalObjectId)
		return true;
	name = get_func_name(function);
	for (int i = 0; name != NULL && i < lengthof(harmless); i++)
	{
		if (strcmp(name, harmless[i]) == 0)
			return false;
	}
	return true;
}

/* Is one of the functions that user's aggregate calls? */
static bool
aggregate_is_volatile(Oid aggregate)
{
	HeapTuple	tuple;
	Form_pg_aggregate form;
	bool		result;

	if (aggregate < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	if (!HeapTupleIsValid(tuple))
		return false;			/* a window function */
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = is_volatile_function(form->aggtransfn, NULL) ||
		is_volatile_function(form->aggfinalfn, NULL) ||
		is_volatile_function(form->aggcombinefn, NULL) ||
		is_volatile_function(form->aggserialfn, NULL) ||
		is_volatile_function(form->aggdeserialfn, NULL) ||
		is_volatile_function(form->aggmtransfn, NULL) ||
		is_volatile_function(form->aggminvtransfn, NULL) ||
		is_volatile_function(form->aggmfinalfn, NULL);
	ReleaseSysCache(tuple);
	return result;
}

/* Do the default values call one, if the planner has to add any to call? */
static bool
defaults_are_volatile(FuncExpr *call)
{
	HeapTuple	tuple;
	Datum		defaults;
	bool		isnull;
	bool		result;

	if (call->funcid < FirstNormalObjectId ||
		list_length(call->args) >= get_func_nargs(call->funcid))
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(call->funcid));
	if (!HeapTupleIsValid(tuple))
		return false;
	defaults = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargdefaults,
							   &isnull);
	result = !isnull &&
		calls_volatile_function(stringToNode(TextDatumGetCString(defaults)),
								NULL);
	ReleaseSysCache(tuple);
	return result;
}

/* Does node, a query or an expression, or a List of such, call one? */
static bool
calls_volatile_function(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_volatile_function, context))
		return true;
	if (IsA(node, Aggref) && aggregate_is_volatile(((Aggref *) node)->aggfnoid))
		return true;
	if (IsA(node, WindowFunc) &&
		aggregate_is_volatile(((WindowFunc *) node)->winfnoid))
		return true;
	if (IsA(node, FuncExpr) && defaults_are_volatile((FuncExpr *) node))
		return true;
	if (tp_walk_domains(node, calls_volatile_function, context))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, calls_volatile_function,
								 context, 0);
	return expression_tree_walker(node, calls_volatile_function, context);
}

/* ----------
 * The statement
 * ----------
 */

/* Is there a subquery in node, an expression or a List of expressions? */
static bool
has_sublink(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		return true;
	return expression_tree_walker(node, has_sublink, context);
}

/* Does node, a query or a part of it, check a domain that is not parallel safe? */
static bool
checks_unsafe_domain(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (tp_checks_unsafe_domain(node))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, checks_unsafe_domain, context, 0);
	return expression_tree_walker(node, checks_unsafe_domain, context);
}

/* tp_insert_refusal() in a memory context of its own. */
static InsertRefusal
query_refusal(Query *query, char *hazard)
{
	RangeTblEntry *target = rt_fetch(query->resultRelation, query->rtable);

	if (get_rel_persistence(target->relid) != RELPERSISTENCE_TEMP)
		return INSERT_OTHER_TARGET;
	if (query->hasModifyingCTE)
		return INSERT_MODIFIES_MORE;
	if (query->cteList != NIL &&
		(has_sublink((Node *) query->returningList, NULL) ||
		 has_sublink((Node *) query->onConflict, NULL)))
		return INSERT_SHARES_CTE;
	*hazard = max_parallel_hazard(query);
	if (*hazard == PROPARALLEL_UNSAFE)
		return INSERT_UNSAFE_QUERY;
	if (calls_volatile_function((Node *) query, NULL))
		return INSERT_VOLATILE_QUERY;
	return checks_unsafe_domain((Node *) query, NULL) ?
		INSERT_UNSAFE_QUERY : INSERT_MAY_BE_PARALLEL;
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
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "parallel safety of an INSERT",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	InsertRefusal refusal = query_refusal(query, hazard);

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return refusal;
}

/* ----------
 * Planning
 * ----------
 */

/* the innermost call of the planner that was announced, or NULL */
static InsertPlanning *planning = NULL;

/*
 * Announce a call of the planner: for an INSERT whose SELECT workers may run,
 * with the hazard of tp_insert_refusal(), or for any other statement, with 0.
 * *call must stay in place until tp_end_planning_insert(), which the caller has
 * to call on every exit.
 */
void
tp_begin_planning_insert(InsertPlanning *call, char hazard)
{
	call->outer = planning;
	call->hazard = hazard;
	planning = call;
}

void
tp_end_planning_insert(InsertPlanning *call)
{
	Assert(planning == call);
	planning = call->outer;
}

/* Is an INSERT being planned whose SELECT workers may run? */
bool
tp_planning_insert(void)
{
	return planning != NULL && planning->hazard != 0;
}

/*
 * If glob belongs to the INSERT that was announced, of which parse is the Query
 * that the planner works on, have it consider parallel paths from now on, as
 * standard_planner() of planner.c does for SELECT.  To be called before the
 * planner looks at the first relation.
 */
void
tp_allow_parallel_insert(PlannerGlobal *glob, Query *parse)
{
	if (!tp_planning_insert() || glob->parallelModeOK ||
		parse->commandType != CMD_INSERT)
		return;
	glob->maxParallelHazard = planning->hazard;
	glob->parallelModeOK = true;
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
