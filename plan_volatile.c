/*-------------------------------------------------------------------------
 *
 * plan_volatile.c
 *	  Volatile functions that may look at what their statement does.
 *
 * Such a function sees the rows inserted so far, if it runs SQL, or the size of
 * their table, or the counters of statistics.  If workers run the SELECT, and its
 * rows are inserted later or in another order, it sees something else.  Looked at
 * are the functions in a query or a plan, the default arguments that the planner
 * adds to a query, and the functions of aggregates.  What makes values of domains
 * with constraints has no workers anyway (plan_expression.c).
 *
 * The invariant: a volatile function is taken to look, unless it is core's and
 * known not to.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan.h"

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

/*
 * Does evaluating node itself, one node of a query or of an expression, call one?
 * Allocates in the current memory context.
 */
bool
tp_expression_is_volatile(Node *node)
{
	if (check_functions_in_node(node, is_volatile_function, NULL))
		return true;
	if (IsA(node, Aggref) && aggregate_is_volatile(((Aggref *) node)->aggfnoid))
		return true;
	if (IsA(node, WindowFunc) &&
		aggregate_is_volatile(((WindowFunc *) node)->winfnoid))
		return true;
	return IsA(node, FuncExpr) && defaults_are_volatile((FuncExpr *) node);
}

static bool
calls_volatile_function(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (tp_expression_is_volatile(node))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, calls_volatile_function,
								 context, 0);
	return expression_tree_walker(node, calls_volatile_function, context);
}

/*
 * Does node, a query or an expression, or a List of such, call one?  Allocates in
 * the current memory context.
 */
bool
tp_calls_volatile_function(Node *node)
{
	return calls_volatile_function(node, NULL);
}
