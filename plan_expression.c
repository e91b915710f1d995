/*-------------------------------------------------------------------------
 *
 * plan_expression.c
 *	  What queries and expressions call and read.
 *
 * User code is everything that initdb did not create: functions, and types
 * with their input and comparison functions and the constraints of domains.
 * It may do anything, even read temporary relations without the executor's
 * knowledge.  A worker that runs none need not guard against that (see
 * exec_worker_refuse.c).  The price of a flush depends on it, too: pages that
 * workers read in the leader's memory stay pinned while the statement runs, and
 * functions of users may need buffers (see tp_most_shared_pages()).
 *
 * Constraints of domains are checked by what makes a value of a composite type, an
 * array or a range, too: record_in(), array_in() and jsonb_populate_record(), among
 * others.  They may call functions that are volatile or not parallel safe, of which
 * core knows nothing: max_parallel_hazard() of clauses.c looks at CoerceToDomain
 * alone.
 *
 * The invariants: what is not known to be core's counts as user code.  A volatile
 * function is taken to look at its statement, unless it is core's and known not to.
 * All domains that the type of a new value is made of are looked at, except in types
 * that the query does not name, whose values are made inside functions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "access/tupdesc.h"
#include "catalog/namespace.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/keywords.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

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
 * Volatile functions that may look at what their statement does
 *
 * Such a function sees the rows inserted so far, if it runs SQL, or the size of
 * their table, or the counters of statistics.  If workers run the SELECT, and its
 * rows are inserted later or in another order, it sees something else.  Looked at
 * are the functions in a finished plan, which has those of default arguments and of
 * functions that are inlined, and the functions of aggregates.
 * ----------
 */
/*
 * Volatile functions of core, by any arguments, that are known to look neither at
 * tables nor at what the transaction has done.
 */
static const char *const harmless[] = {
	"array_sample", "array_shuffle", "clock_timestamp", "current_query",
	"gen_random_uuid", "pg_sleep", "random", "random_normal", "setseed", "timeofday",
	"uuidv4", "uuidv7"
};

/* Has function, of core, one of the n names? */
bool
tp_is_named(Oid function, const char *const *names, int n)
{
	const char *name = get_func_name(function);

	for (int i = 0; name != NULL && i < n; i++)
	{
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* Is function, if there is one, volatile, and not one of those? */
static bool
is_volatile_function(Oid function, void *context)
{
	return OidIsValid(function) &&
		func_volatile(function) == PROVOLATILE_VOLATILE &&
		(function >= FirstNormalObjectId ||
		 !tp_is_named(function, harmless, lengthof(harmless)));
}

static bool
is_any_volatile_function(Oid function, void *context)
{
	return func_volatile(function) == PROVOLATILE_VOLATILE;
}

/*
 * An item of invalItems for the row with that OID in the system cache.  Allocates in the
 * current memory context.
 */
PlanInvalItem *
tp_dependency(int cache, Oid oid)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = cache;
	item->hashValue = GetSysCacheHashValue1(cache, ObjectIdGetDatum(oid));
	return item;
}

/* Add such an item to those of depends, if that is not NULL. */
static void
add_dependency(PlanDependencies *depends, int cache, Oid oid)
{
	if (depends != NULL)
		depends->items = lappend(depends->items, tp_dependency(cache, oid));
}

/*
 * Does node call one as a function of a user's aggregate?  Adds the aggregate's functions to
 * those on which facts depend, as core records the aggregate alone.
 */
static bool
aggregate_is_volatile(Node *node, PlanFacts *facts)
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
			add_dependency(&facts->depends, PROCOID, functions[i]);
			result = result || is_volatile_function(functions[i], NULL);
		}
	}
	ReleaseSysCache(tuple);
	return result;
}

/* ----------
 * Domains
 * ----------
 */
static bool has_checked_domain(Oid type, PlanDependencies *depends);

static bool
row_has_checked_domain(Oid type, PlanDependencies *depends)
{
	TupleDesc	tupdesc = lookup_rowtype_tupdesc(type, -1);
	bool		result = false;

	for (int i = 0; i < tupdesc->natts && !result; i++)
	{
		Form_pg_attribute column = TupleDescAttr(tupdesc, i);

		result = !column->attisdropped && has_checked_domain(column->atttypid, depends);
	}
	ReleaseTupleDesc(tupdesc);
	return result;
}

/* The type that domain is made of, which may be another domain; InvalidOid if there is none. */
static Oid
type_below_domain(Oid domain)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(domain));
	Oid			result;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	result = ((Form_pg_type) GETSTRUCT(tuple))->typbasetype;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Is there a domain with constraints in type?  Core's domains have none that call
 * functions of users.
 */
static bool
has_checked_domain(Oid type, PlanDependencies *depends)
{
	if (type < FirstNormalObjectId)
		return false;
	check_stack_depth();
	add_dependency(depends, TYPEOID, type);
	switch (get_typtype(type))
	{
		case TYPTYPE_DOMAIN:
			return domain_has_constraints(type) ||
				has_checked_domain(type_below_domain(type), depends);
		case TYPTYPE_COMPOSITE:
			if (depends != NULL)
				depends->relids = lappend_oid(depends->relids, get_typ_typrelid(type));
			return row_has_checked_domain(type, depends);
		case TYPTYPE_RANGE:
			return has_checked_domain(get_range_subtype(type), depends);
		case TYPTYPE_MULTIRANGE:
			return has_checked_domain(get_multirange_range(type), depends);
		default:
			return has_checked_domain(get_element_type(type), depends);
	}
}

static bool
have_checked_domain(List *types, PlanDependencies *depends)
{
	ListCell   *lc;

	foreach(lc, types)
	{
		if (has_checked_domain(lfirst_oid(lc), depends))
			return true;
	}
	return false;
}

/*
 * May node, an expression for the name of a type, name one that is not core's?  The name is
 * not parsed, as that raises errors which the call may not.  So what it cannot be
 * compared with is taken for one: capitals, quotes and schemas.
 */
static bool
may_name_type_of_user(Node *node)
{
	Const	   *name = (Const *) node;
	char	   *word;
	int			keyword;
	Oid			type;

	if (!IsA(node, Const) || name->constisnull)
		return true;
	word = TextDatumGetCString(name->constvalue);
	if (strchr(word, '.') != NULL)
		return true;
	if (strcmp(word, "double precision") == 0)
		return false;
	word[strcspn(word, " ([")] = '\0';
	/* as "integer", to the parser a type of core */
	keyword = ScanKeywordLookup(word, &ScanKeywords);
	if (keyword >= 0 && ScanKeywordCategories[keyword] == COL_NAME_KEYWORD)
		return false;
	type = TypenameGetTypid(word);
	return !OidIsValid(type) || type >= FirstNormalObjectId;
}

/*
 * Does call, of a function of core, make a value of a type other than that of its result:
 * one that is named, that of a row, or one that only its row knows?
 */
static bool
checks_hidden_domain(FuncExpr *call, PlanDependencies *depends)
{
	Oid			type;

	switch (call->funcid)
	{
		case F_PG_INPUT_IS_VALID:
		case F_PG_INPUT_ERROR_INFO:
			return may_name_type_of_user(lsecond(call->args));
		case F_JSONB_POPULATE_RECORD_VALID:
			type = exprType(linitial(call->args));
			return type == RECORDOID || has_checked_domain(type, depends);
		default:
			return call->funcresulttype == RECORDOID && call->args != NIL &&
				exprType(linitial(call->args)) == RECORDOID;
	}
}

static bool
checks_domain(Node *node, PlanDependencies *depends)
{
	if (IsA(node, FuncExpr) && checks_hidden_domain((FuncExpr *) node, depends))
		return true;
	switch (nodeTag(node))
	{
		case T_RangeTblFunction:
			return have_checked_domain(((RangeTblFunction *) node)->funccoltypes, depends);
		case T_TableFunc:
			return have_checked_domain(((TableFunc *) node)->coltypes, depends);
#ifdef HAVE_JSON_EXPR
		case T_JsonExpr:
#endif
		case T_ArrayCoerceExpr:
		case T_CoerceToDomain:
		case T_CoerceViaIO:
		case T_ConvertRowtypeExpr:
		case T_FuncExpr:
		case T_OpExpr:
			return has_checked_domain(exprType(node), depends);
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
 * Labels of functions
 *
 * Core looks at the query, before the planner adds default arguments to calls; and not
 * at all at REPEATABLE.
 * ----------
 */

/*
 * Does function, of core, depend on the encoding of the client, which is that of the
 * database in a worker?  So does what sends values in binary format.
 */
static bool
is_client_function(Oid function, void *context)
{
	const char *name;
	size_t		length;

	if (function == F_PG_CLIENT_ENCODING)
		return true;
	if (get_func_rettype(function) != BYTEAOID)
		return false;
	name = get_func_name(function);
	length = name == NULL ? 0 : strlen(name);
	return length > 4 && strcmp(name + length - 4, "send") == 0;
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

static bool
takes_another_sample(Node *node)
{
	return IsA(node, TableSampleClause) &&
		((TableSampleClause *) node)->repeatable == NULL;
}

/*
 * Add what evaluating node itself, one node of an expression in a plan, does to facts;
 * and what that depends on and core does not record: the plan must be made again if
 * a type of values that it makes, or a function of an aggregate, is changed.
 */
void
tp_add_expression(Node *node, PlanFacts *facts)
{
	facts->user_code = facts->user_code || tp_expression_is_user_code(node);
	facts->is_volatile = facts->is_volatile ||
		check_functions_in_node(node, is_volatile_function, NULL) ||
		aggregate_is_volatile(node, facts);
	facts->calls_volatile = facts->calls_volatile || facts->is_volatile ||
		check_functions_in_node(node, is_any_volatile_function, NULL);
	facts->varies = facts->varies || facts->calls_volatile || takes_another_sample(node);
	facts->calls_restricted = facts->calls_restricted ||
		check_functions_in_node(node, is_restricted_function, NULL);
	facts->depends_on_client = facts->depends_on_client ||
		check_functions_in_node(node, is_client_function, NULL);
	facts->calls_unsafe = facts->calls_unsafe ||
		check_functions_in_node(node, is_unsafe_function, NULL);
	facts->reads_versions = facts->reads_versions || is_version_column(node);
	facts->unsafe = facts->unsafe ||
		checks_domain(node, &facts->depends);
}

/* ----------
 * Temporary tables
 * ----------
 */

/*
 * Does rtable name a temporary table of this session?  A plan scans only what
 * is in its range table, even with nodes that are unknown to plan_walk.c.
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
