/*-------------------------------------------------------------------------
 *
 * plan_expression.c
 *	  What queries and expressions call and read.
 *
 * User code is everything that initdb did not create: functions, and types with their
 * functions and the constraints of domains.  It may do anything, even read temporary
 * relations without the executor's knowledge.  A worker that runs none need not guard
 * against that (exec_worker_refuse.c), and more pages may be shared with it
 * (tp_most_shared_pages()).
 *
 * The constraints of domains are checked, too, where a value of a composite type, an array
 * or a range is made, as by record_in().  They may call functions that are volatile or not
 * parallel safe: max_parallel_hazard() of clauses.c looks at CoerceToDomain alone.
 *
 * The invariants: what is not known to be core's counts as user code.  A volatile
 * function is taken to look at its statement, unless it is core's and known not to.
 * What may make a value with a domain of a user in it has no workers, except in functions
 * whose result type does not depend on the call: who labels them knows what they call.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/namespace.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan.h"

/*
 * Is test true for a node of node, which is a query or an expression, or a List of
 * such?  Allocates what test does.
 */
bool
tp_contains(Node *node, bool (*test) (Node *))
{
	if (node == NULL)
		return false;
	if (test(node))
		return true;
	if (IsA(node, RangeTblEntry))
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, tp_contains, test,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, tp_contains, test);
}

/* ----------
 * User code
 * ----------
 */

/* Is function a user's, or may it run a user's? */
bool
tp_is_user_code(Oid function)
{
	/* functions of core that run queries or views of users */
	static const Oid of_core[] = {
		F_CURSOR_TO_XML, F_DATABASE_TO_XML, F_DATABASE_TO_XML_AND_XMLSCHEMA,
		F_QUERY_TO_XML, F_QUERY_TO_XML_AND_XMLSCHEMA, F_SCHEMA_TO_XML,
		F_SCHEMA_TO_XML_AND_XMLSCHEMA, F_TABLE_TO_XML,
		F_TABLE_TO_XML_AND_XMLSCHEMA, F_TS_REWRITE_TSQUERY_TEXT, F_TS_STAT_TEXT,
		F_TS_STAT_TEXT_TEXT
	};

	for (int i = 0; i < lengthof(of_core); i++)
	{
		if (function == of_core[i])
			return true;
	}
	return function >= FirstNormalObjectId;
}

static bool
is_user_function(Oid function, void *context)
{
	return tp_is_user_code(function);
}

/* Is one of oids, a List of Oid, that of a user's object? */
bool
tp_has_user_object(List *oids)
{
	ListCell   *lc;

	foreach(lc, oids)
	{
		if (lfirst_oid(lc) >= FirstNormalObjectId)
			return true;
	}
	return false;
}

/* Nodes of expressions that evaluate nothing themselves */
static const NodeTag passive[] = {
	T_List, T_TargetEntry, T_CaseWhen, T_SubPlan, T_AlternativeSubPlan
};

/* Those with a type, whose functions check_functions_in_node() finds, if any. */
static const NodeTag evaluated[] = {
	T_Var, T_Const, T_Param, T_Aggref, T_GroupingFunc, T_WindowFunc,
	T_SubscriptingRef, T_FuncExpr, T_NamedArgExpr, T_OpExpr, T_DistinctExpr,
	T_NullIfExpr, T_ScalarArrayOpExpr, T_BoolExpr, T_FieldSelect, T_RelabelType,
	T_CoerceViaIO, T_ArrayCoerceExpr, T_ConvertRowtypeExpr, T_CollateExpr,
	T_CaseExpr, T_CaseTestExpr, T_ArrayExpr, T_RowExpr, T_CoalesceExpr,
	T_MinMaxExpr, T_SQLValueFunction, T_NullTest, T_BooleanTest
};

static bool
is_one_of(Node *node, const NodeTag *tags, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (nodeTag(node) == tags[i])
			return true;
	}
	return false;
}

/*
 * May evaluating node, one node of an expression, run user code?  The kinds of
 * node are those of expression_tree_walker() of nodeFuncs.c.
 */
bool
tp_expression_is_user_code(Node *node)
{
	switch (nodeTag(node))
	{
		case T_TableSampleClause:
			return ((TableSampleClause *) node)->tsmhandler >= FirstNormalObjectId;
		case T_RangeTblFunction:
			return tp_has_user_object(((RangeTblFunction *) node)->funccoltypes);
		case T_RowCompareExpr:
			return tp_has_user_object(((RowCompareExpr *) node)->opfamilies) ||
				check_functions_in_node(node, is_user_function, NULL);
		default:
			break;
	}
	if (is_one_of(node, evaluated, lengthof(evaluated)))
		return exprType(node) >= FirstNormalObjectId ||
			check_functions_in_node(node, is_user_function, NULL);
	return !is_one_of(node, passive, lengthof(passive));
}

/* ----------
 * Volatile functions that may look at what their statement does, as at the rows inserted so
 * far: if these are inserted later, or in another order, such a function sees something else
 * ----------
 */

static bool
is_volatile_function(Oid function, void *context)
{
	return OidIsValid(function) && func_volatile(function) == PROVOLATILE_VOLATILE;
}

/*
 * Is function, if there is one, volatile, and not one of core, by any arguments, that is known
 * to look neither at tables nor at what the transaction has done?
 */
static bool
is_looking_function(Oid function, void *context)
{
	static const char *const harmless[] = {
		"clock_timestamp", "gen_random_uuid", "pg_sleep", "random", "random_normal", "uuidv4",
		"uuidv7"
	};
	const char *name;

	if (!is_volatile_function(function, context))
		return false;
	name = function < FirstNormalObjectId ? get_func_name(function) : NULL;
	for (int i = 0; name != NULL && i < lengthof(harmless); i++)
	{
		if (strcmp(name, harmless[i]) == 0)
			return false;
	}
	return true;
}

/*
 * An item of invalItems, by which a plan is made anew if function changes.  Allocates in the
 * current memory context.
 */
PlanInvalItem *
tp_dependency(Oid function)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = PROCOID;
	item->hashValue = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(function));
	return item;
}

/*
 * Does node call such a function as one of a user's aggregate?  Adds the aggregate's functions to
 * those on which facts depend, as core records the aggregate alone.
 */
static bool
aggregate_looks(Node *node, PlanFacts *facts)
{
	Oid			aggregate = IsA(node, Aggref) ? ((Aggref *) node)->aggfnoid :
		IsA(node, WindowFunc) ? ((WindowFunc *) node)->winfnoid : InvalidOid;
	HeapTuple	tuple;
	Form_pg_aggregate form;
	bool		result = false;

	if (aggregate < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	if (!HeapTupleIsValid(tuple))
		return false;			/* a window function */
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	{
		const Oid	functions[] = {
			form->aggtransfn, form->aggfinalfn, form->aggcombinefn,
			form->aggserialfn, form->aggdeserialfn, form->aggmtransfn,
			form->aggminvtransfn, form->aggmfinalfn
		};

		for (int i = 0; i < lengthof(functions); i++)
		{
			facts->depends = lappend(facts->depends, tp_dependency(functions[i]));
			result = result || is_looking_function(functions[i], NULL);
		}
	}
	ReleaseSysCache(tuple);
	return result;
}

/* ----------
 * Domains
 * ----------
 */

/*
 * May there be a domain of a user in a value of type?  Neither constraints nor columns are
 * looked at: they may change while a plan is cached.
 */
static bool
may_contain_domain(Oid type)
{
	Oid			element = get_element_type(type);

	if (OidIsValid(element))
		type = element;
	if (type < FirstNormalObjectId)
		return false;
	switch (get_typtype(type))
	{
		case TYPTYPE_BASE:
		case TYPTYPE_ENUM:
			return false;
		default:
			return true;
	}
}

/*
 * May call make such a value, by a function that does not know the type and so has a label
 * for no domain: of the type of its result, or of one that is only named, that of a row, or
 * one that only the row knows?
 */
static bool
function_makes_domain(FuncExpr *call)
{
	switch (call->funcid)
	{
		case F_PG_INPUT_IS_VALID:
		case F_PG_INPUT_ERROR_INFO:
		case F_JSONB_POPULATE_RECORD_VALID:
			return true;
		default:
			break;
	}
	if (call->funcresulttype == RECORDOID)
		return call->args != NIL && exprType(linitial(call->args)) == RECORDOID;
	return may_contain_domain(call->funcresulttype) &&
		get_func_rettype(call->funcid) != call->funcresulttype;
}

/*
 * May node itself, one node of an expression, make a value in which there is a domain of a
 * user?  The planner has removed CoerceToDomain if that has no constraints.
 */
static bool
makes_domain(Node *node)
{
	switch (nodeTag(node))
	{
		case T_RangeTblFunction:
			return tp_has_user_object(((RangeTblFunction *) node)->funccoltypes);
		case T_TableFunc:
			return tp_has_user_object(((TableFunc *) node)->coltypes);
		case T_FuncExpr:
			return function_makes_domain((FuncExpr *) node);
#ifdef HAVE_JSON_EXPR
		case T_JsonExpr:
#endif
		case T_CoerceToDomain:
		case T_CoerceViaIO:
		case T_OpExpr:
			return may_contain_domain(exprType(node));
		default:
			return false;
	}
}

/* Which command has changed a row is seen as soon as that has, whatever the snapshot. */
static bool
is_version_column(Node *node)
{
	return IsA(node, Var) &&
		((Var *) node)->varattno <= MinTransactionIdAttributeNumber &&
		((Var *) node)->varattno >= MaxCommandIdAttributeNumber;
}

/* ----------
 * Labels of functions: core looks at them before the planner adds default arguments to calls
 * ----------
 */

/*
 * May function depend on the encoding of the client, which is that of the database in a
 * worker?  What sends values in binary format returns bytea.
 */
static bool
is_client_function(Oid function, void *context)
{
	return function == F_PG_CLIENT_ENCODING || get_func_rettype(function) == BYTEAOID;
}

static bool
is_restricted_function(Oid function, void *context)
{
	/* a worker resets settings to other values than its leader */
	return func_parallel(function) != PROPARALLEL_SAFE || function == F_PG_SHOW_ALL_SETTINGS;
}

static bool
is_unsafe_function(Oid function, void *context)
{
	return func_parallel(function) == PROPARALLEL_UNSAFE;
}

/*
 * Does node look values up by a user's hash function that is not parallel safe?  Adds it to
 * those on which facts depend.
 */
static bool
hashes_unsafely(Node *node, PlanFacts *facts)
{
	Oid			function = IsA(node, ScalarArrayOpExpr) ?
		((ScalarArrayOpExpr *) node)->hashfuncid : InvalidOid;

	if (function < FirstNormalObjectId)
		return false;
	facts->depends = lappend(facts->depends, tp_dependency(function));
	return func_parallel(function) != PROPARALLEL_SAFE;
}

static bool
takes_another_sample(Node *node)
{
	return IsA(node, TableSampleClause) &&
		((TableSampleClause *) node)->repeatable == NULL;
}

/*
 * Add what evaluating node itself, one node of an expression in a plan, does to facts.
 */
void
tp_add_expression(Node *node, PlanFacts *facts)
{
	facts->user_code = facts->user_code || tp_expression_is_user_code(node);
	facts->looks_at_statement = facts->looks_at_statement ||
		check_functions_in_node(node, is_looking_function, NULL) ||
		aggregate_looks(node, facts);
	facts->calls_volatile = facts->calls_volatile || facts->looks_at_statement ||
		check_functions_in_node(node, is_volatile_function, NULL);
	facts->varies_by_run = facts->varies_by_run || facts->calls_volatile || takes_another_sample(node);
	facts->calls_restricted = facts->calls_restricted ||
		check_functions_in_node(node, is_restricted_function, NULL);
	facts->depends_on_client = facts->depends_on_client ||
		check_functions_in_node(node, is_client_function, NULL);
	facts->calls_unsafe = facts->calls_unsafe ||
		check_functions_in_node(node, is_unsafe_function, NULL);
	facts->reads_versions = facts->reads_versions || is_version_column(node);
	facts->hidden_unsafe = hashes_unsafely(node, facts) || facts->hidden_unsafe ||
		makes_domain(node);
}

/* ----------
 * Temporary tables
 * ----------
 */

/*
 * Does rtable name a temporary table of this session?  A plan scans only what
 * is in its range table, even with nodes that are unknown to plan_facts.c.
 */
bool
tp_names_temp_table(List *rtable)
{
	ListCell   *lc;

	foreach(lc, rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if (rte->rtekind == RTE_RELATION && tp_is_session_temp_table(rte->relid))
			return true;
	}
	return false;
}

/*
 * Do temporary tables of this session inherit from rte, a permanent or foreign table?  A
 * partitioned one has none.  They are not in the range table before
 * expand_inherited_rtentry() of inherit.c.
 */
bool
tp_has_temp_child(RangeTblEntry *rte)
{
	ListCell   *lc;

	if (rte->rtekind != RTE_RELATION || !rte->inh ||
		rte->relkind == RELKIND_PARTITIONED_TABLE || !has_subclass(rte->relid))
		return false;
	foreach(lc, find_all_inheritors(rte->relid, NoLock, NULL))
	{
		if (isTempNamespace(get_rel_namespace(lfirst_oid(lc))))
			return true;
	}
	return false;
}

static bool
names_temp_table(Node *node)
{
	RangeTblEntry *rte = (RangeTblEntry *) node;

	return IsA(node, RangeTblEntry) && rte->rtekind == RTE_RELATION &&
		(get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP ||
		 tp_has_temp_child(rte));
}

/*
 * Is test true for a range table entry of query, rewritten but not planned, or of a
 * part of it?  Looks at expressions only if they contain subqueries.  Not found is what
 * is in functions that will be inlined.
 */
bool
tp_any_range_table_entry(Query *query, bool (*test) (Node *))
{
	ListCell   *lc;

	if (query->hasSubLinks)
		return tp_contains((Node *) query, test);
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if (test((Node *) rte) ||
			(rte->rtekind == RTE_SUBQUERY &&
			 tp_any_range_table_entry(rte->subquery, test)))
			return true;
	}
	foreach(lc, query->cteList)
	{
		CommonTableExpr *cte = lfirst(lc);

		if (tp_any_range_table_entry(castNode(Query, cte->ctequery), test))
			return true;
	}
	return false;
}

/* Does query read or change a temporary table? */
bool
tp_reads_temp_table(Query *query)
{
	return tp_any_range_table_entry(query, names_temp_table);
}
