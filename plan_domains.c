/*-------------------------------------------------------------------------
 *
 * plan_domains.c
 *	  Constraints of domains that an expression checks.
 *
 * What makes a value of a composite type, an array or a range checks the
 * constraints of the domains in it: record_in(), array_in() and
 * jsonb_populate_record() do, among others.  These constraints may call functions
 * that are volatile or not parallel safe.  Core knows nothing of them:
 * max_parallel_hazard() of clauses.c looks at CoerceToDomain alone, and takes the
 * functions that its constraints call for parallel restricted.
 *
 * The invariant: all constraints of all domains that the type of a new value is
 * made of are looked at.  Not seen are values of types that the query does not
 * name, made inside functions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/tupdesc.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "plan.h"

static bool walk_type(Oid type, ExpressionWalker walker, void *context);

/* The constraints of domain type include those of the domains that it is over. */
static bool
walk_domain(Oid type, ExpressionWalker walker, void *context)
{
	DomainConstraintRef *ref = palloc(sizeof(DomainConstraintRef));
	ListCell   *lc;

	/* released with the memory context */
	InitDomainConstraintRef(type, ref, CurrentMemoryContext, false);
	foreach(lc, ref->constraints)
	{
		DomainConstraintState *constraint = lfirst(lc);

		if (walker((Node *) constraint->check_expr, context))
			return true;
	}
	return walk_type(getBaseType(type), walker, context);
}

static bool
walk_columns(Oid type, ExpressionWalker walker, void *context)
{
	TupleDesc	tupdesc = lookup_rowtype_tupdesc(type, -1);
	bool		result = false;

	for (int i = 0; i < tupdesc->natts && !result; i++)
	{
		Form_pg_attribute column = TupleDescAttr(tupdesc, i);

		result = !column->attisdropped &&
			walk_type(column->atttypid, walker, context);
	}
	ReleaseTupleDesc(tupdesc);
	return result;
}

/*
 * Call walker for the constraints of the domains in type, until it returns true.
 * Types of core have none that call functions of users.
 */
static bool
walk_type(Oid type, ExpressionWalker walker, void *context)
{
	if (type < FirstNormalObjectId)
		return false;
	check_stack_depth();
	switch (get_typtype(type))
	{
		case TYPTYPE_DOMAIN:
			return walk_domain(type, walker, context);
		case TYPTYPE_COMPOSITE:
			return walk_columns(type, walker, context);
		case TYPTYPE_RANGE:
			return walk_type(get_range_subtype(type), walker, context);
		case TYPTYPE_MULTIRANGE:
			return walk_type(get_multirange_range(type), walker, context);
		default:
			return walk_type(get_element_type(type), walker, context);
	}
}

static bool
walk_types(List *types, ExpressionWalker walker, void *context)
{
	ListCell   *lc;

	foreach(lc, types)
	{
		if (walk_type(lfirst_oid(lc), walker, context))
			return true;
	}
	return false;
}

/*
 * Call walker for the constraints of the domains in values that node itself, a node
 * of a query or of an expression, makes.  Returns true as soon as walker does.  What
 * it allocates is in the current memory context.
 */
bool
tp_walk_domains(Node *node, ExpressionWalker walker, void *context)
{
	switch (nodeTag(node))
	{
		case T_RangeTblFunction:
			return walk_types(((RangeTblFunction *) node)->funccoltypes, walker,
							  context);
		case T_TableFunc:
			return walk_types(((TableFunc *) node)->coltypes, walker, context);
#ifdef HAVE_JSON_EXPR
		case T_JsonExpr:
#endif
		case T_ArrayCoerceExpr:
		case T_CoerceToDomain:
		case T_CoerceViaIO:
		case T_ConvertRowtypeExpr:
		case T_FuncExpr:
		case T_OpExpr:
			return walk_type(exprType(node), walker, context);
		default:
			return false;
	}
}

static bool
is_unsafe_user_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId &&
		func_parallel(function) != PROPARALLEL_SAFE;
}

static bool
calls_unsafe_function(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, is_unsafe_user_function, context) ||
		tp_walk_domains(node, calls_unsafe_function, context) ||
		expression_tree_walker(node, calls_unsafe_function, context);
}

/*
 * Does node itself make values of domains with a constraint that calls a user's
 * function that is not parallel safe?
 */
bool
tp_checks_unsafe_domain(Node *node)
{
	return tp_walk_domains(node, calls_unsafe_function, NULL);
}
