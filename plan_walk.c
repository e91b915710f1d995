/*-------------------------------------------------------------------------
 *
 * plan_walk.c
 *	  Finding the temporary tables and indexes that a finished plan reads.
 *
 * Core has walkers for queries and expressions and for the state of a running
 * plan, but none for a finished plan, so this file knows where each plan node
 * keeps its children and its expressions.  Expressions matter because they
 * hold subplans, which a worker runs, too.
 *
 * The invariant: a table or index that a worker may read is found, or the
 * result says that the plan has an unknown node (of a fork or a newer minor
 * release), which might read one.  The executor checks again (see
 * exec_check.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_inherits.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan.h"

typedef struct PlanSearch
{
	List	   *rtable;
	List	   *subplans;		/* of the whole statement */
	PlanContents found;			/* so far; its subplans have been searched */
} PlanSearch;

static void search_plan(Plan *plan, PlanSearch *search);

/* Is plan a node that runs its child in workers? */
static bool
is_gather(Plan *plan)
{
	return IsA(plan, Gather) || IsA(plan, GatherMerge);
}

/*
 * The highest of the numbers that set_plan_refs() of setrefs.c gave to nodes.
 */
static int
max_plan_node_id(Plan *plan)
{
	int			max;
	List	   *children;
	ListCell   *lc;

	if (plan == NULL)
		return 0;
	max = plan->plan_node_id;
	children = tp_plan_children(plan);
	foreach(lc, children)
		max = Max(max, max_plan_node_id(lfirst(lc)));
	list_free(children);
	return max;
}

/* The highest plan_node_id in stmt. */
int
tp_last_plan_node_id(PlannedStmt *stmt)
{
	int			last = max_plan_node_id(stmt->planTree);
	ListCell   *lc;

	foreach(lc, stmt->subplans)
		last = Max(last, max_plan_node_id(lfirst(lc)));
	return last;
}

/*
 * The children of plan, in a new List, without subplans: where
 * planstate_tree_walker() of nodeFuncs.c finds them in a running plan.
 */
List *
tp_plan_children(Plan *plan)
{
	List	   *children = NIL;

	if (plan->lefttree)
		children = lappend(children, plan->lefttree);
	if (plan->righttree)
		children = lappend(children, plan->righttree);

	switch (nodeTag(plan))
	{
		case T_Append:
			return list_concat(children, ((Append *) plan)->appendplans);
		case T_MergeAppend:
			return list_concat(children, ((MergeAppend *) plan)->mergeplans);
		case T_BitmapAnd:
			return list_concat(children, ((BitmapAnd *) plan)->bitmapplans);
		case T_BitmapOr:
			return list_concat(children, ((BitmapOr *) plan)->bitmapplans);
		case T_SubqueryScan:
			return lappend(children, ((SubqueryScan *) plan)->subplan);
		case T_CustomScan:
			return list_concat(children, ((CustomScan *) plan)->custom_plans);
		default:
			return children;
	}
}

static List *
gathers_of_plan(Plan *plan, List *gathers)
{
	List	   *children;
	ListCell   *lc;

	if (plan == NULL)
		return gathers;
	if (is_gather(plan))
		return lappend(gathers, plan);	/* they do not nest */
	children = tp_plan_children(plan);
	foreach(lc, children)
		gathers = gathers_of_plan(lfirst(lc), gathers);
	list_free(children);
	return gathers;
}

/*
 * The Gather and Gather Merge nodes of stmt and its subplans, in a new List.
 */
List *
tp_statement_gathers(PlannedStmt *stmt)
{
	List	   *gathers = gathers_of_plan(stmt->planTree, NIL);
	ListCell   *lc;

	foreach(lc, stmt->subplans)
		gathers = gathers_of_plan(lfirst(lc), gathers);
	return gathers;
}

/*
 * Search the subplans of an expression, or of a List of expressions, and find
 * out whether it may run user code, and what is not parallel safe.
 */
static bool
search_expression(Node *node, PlanSearch *search)
{
	if (node == NULL)
		return false;
	if (!search->found.user_code)
		search->found.user_code = tp_expression_is_user_code(node);
	if (!search->found.unsafe_check)
		search->found.unsafe_check = tp_checks_unsafe_domain(node);
	if (IsA(node, SubPlan))
	{
		int			plan_id = ((SubPlan *) node)->plan_id;

		if (!bms_is_member(plan_id, search->found.subplans))
		{
			search->found.subplans = bms_add_member(search->found.subplans,
													plan_id);
			search_plan(list_nth(search->subplans, plan_id - 1), search);
		}
	}
	return expression_tree_walker(node, search_expression, search);
}

#define SEARCH(expression) search_expression((Node *) (expression), search)

/*
 * Add the table of a scan.  Returns its OID if it is a temporary table of this
 * session, otherwise InvalidOid.
 */
static Oid
add_table(Index rti, PlanSearch *search)
{
	RangeTblEntry *rte;

	if (rti == 0)
		return InvalidOid;
	rte = rt_fetch(rti, search->rtable);
	if (rte->rtekind != RTE_RELATION || !tp_is_session_temp_table(rte->relid))
		return InvalidOid;
	search->found.temp_tables =
		list_append_unique_oid(search->found.temp_tables, rte->relid);
	return rte->relid;
}

/* Add the table and the index of a scan. */
static void
add_index(Index rti, Oid index, PlanSearch *search)
{
	if (OidIsValid(add_table(rti, search)))
		search->found.indexes =
			list_append_unique_oid(search->found.indexes, index);
}

/*
 * Add tables that another module's node scans, with all their indexes, as it
 * may use any of them.
 */
static void
add_tables(Bitmapset *rtis, PlanSearch *search)
{
	int			rti = -1;

	while ((rti = bms_next_member(rtis, rti)) >= 0)
	{
		Oid			relid = add_table(rti, search);

		if (OidIsValid(relid))
			search->found.indexes =
				list_concat_unique_oid(search->found.indexes,
									   tp_table_indexes(relid));
	}
}

/*
 * Search what the node itself scans and computes.  finalize_plan() of
 * subselect.c lists where each kind of node keeps its expressions.
 */
static void
search_node(Plan *plan, PlanSearch *search)
{
	if (!search->found.user_code)
		search->found.user_code = tp_plan_node_is_user_code(plan);
	SEARCH(plan->targetlist);
	SEARCH(plan->qual);
	SEARCH(plan->initPlan);

	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_WorkTableScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_SubqueryScan:
			add_table(((Scan *) plan)->scanrelid, search);
			break;
		case T_SampleScan:
			add_table(((Scan *) plan)->scanrelid, search);
			SEARCH(((SampleScan *) plan)->tablesample);
			break;
		case T_IndexScan:
			add_index(((Scan *) plan)->scanrelid, ((IndexScan *) plan)->indexid,
					  search);
			SEARCH(((IndexScan *) plan)->indexqualorig);
			SEARCH(((IndexScan *) plan)->indexorderbyorig);
			break;
		case T_IndexOnlyScan:
			add_index(((Scan *) plan)->scanrelid,
					  ((IndexOnlyScan *) plan)->indexid, search);
			SEARCH(((IndexOnlyScan *) plan)->indexqual);
			SEARCH(((IndexOnlyScan *) plan)->recheckqual);
			SEARCH(((IndexOnlyScan *) plan)->indexorderby);
			break;
		case T_BitmapIndexScan:
			add_index(((Scan *) plan)->scanrelid,
					  ((BitmapIndexScan *) plan)->indexid, search);
			SEARCH(((BitmapIndexScan *) plan)->indexqualorig);
			break;
		case T_BitmapHeapScan:
			add_table(((Scan *) plan)->scanrelid, search);
			SEARCH(((BitmapHeapScan *) plan)->bitmapqualorig);
			break;
		case T_TidScan:
			add_table(((Scan *) plan)->scanrelid, search);
			SEARCH(((TidScan *) plan)->tidquals);
			break;
		case T_TidRangeScan:
			add_table(((Scan *) plan)->scanrelid, search);
			SEARCH(((TidRangeScan *) plan)->tidrangequals);
			break;
		case T_FunctionScan:
			SEARCH(((FunctionScan *) plan)->functions);
			break;
		case T_TableFuncScan:
			SEARCH(((TableFuncScan *) plan)->tablefunc);
			break;
		case T_ValuesScan:
			SEARCH(((ValuesScan *) plan)->values_lists);
			break;
		case T_ForeignScan:
			add_tables(((ForeignScan *) plan)->fs_relids, search);
			SEARCH(((ForeignScan *) plan)->fdw_exprs);
			SEARCH(((ForeignScan *) plan)->fdw_recheck_quals);
			break;
		case T_CustomScan:
			if (((Scan *) plan)->scanrelid != 0)
				add_tables(bms_make_singleton(((Scan *) plan)->scanrelid),
						   search);
			add_tables(((CustomScan *) plan)->custom_relids, search);
			SEARCH(((CustomScan *) plan)->custom_exprs);
			break;
		case T_NestLoop:
			SEARCH(((Join *) plan)->joinqual);
			break;
		case T_MergeJoin:
			SEARCH(((Join *) plan)->joinqual);
			SEARCH(((MergeJoin *) plan)->mergeclauses);
			break;
		case T_HashJoin:
			SEARCH(((Join *) plan)->joinqual);
			SEARCH(((HashJoin *) plan)->hashclauses);
			SEARCH(((HashJoin *) plan)->hashkeys);
			break;
		case T_Hash:
			SEARCH(((Hash *) plan)->hashkeys);
			break;
		case T_Memoize:
			SEARCH(((Memoize *) plan)->param_exprs);
			break;
		case T_Result:
			SEARCH(((Result *) plan)->resconstantqual);
			break;
		case T_Limit:
			SEARCH(((Limit *) plan)->limitOffset);
			SEARCH(((Limit *) plan)->limitCount);
			break;
		case T_WindowAgg:
			SEARCH(((WindowAgg *) plan)->startOffset);
			SEARCH(((WindowAgg *) plan)->endOffset);
			SEARCH(((WindowAgg *) plan)->runCondition);
			break;
		case T_ModifyTable:
			if (((ModifyTable *) plan)->operation != CMD_INSERT)
				search->found.unknown = true;
			SEARCH(((ModifyTable *) plan)->withCheckOptionLists);
			SEARCH(((ModifyTable *) plan)->returningLists);
			SEARCH(((ModifyTable *) plan)->onConflictSet);
			SEARCH(((ModifyTable *) plan)->onConflictWhere);
			break;
		case T_Append:
		case T_MergeAppend:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_RecursiveUnion:
		case T_ProjectSet:
		case T_Material:
		case T_Sort:
		case T_IncrementalSort:
		case T_Group:
		case T_Agg:
		case T_Unique:
		case T_SetOp:
		case T_Gather:
		case T_GatherMerge:
			break;
		default:
			search->found.unknown = true;
	}
}

static void
search_plan(Plan *plan, PlanSearch *search)
{
	List	   *children;
	ListCell   *lc;

	if (plan == NULL)
		return;
	search_node(plan, search);
	children = tp_plan_children(plan);
	foreach(lc, children)
		search_plan(lfirst(lc), search);
	list_free(children);
}

/*
 * The OID of the temporary table that node plan scans, by itself or by an
 * index; InvalidOid if it is no such node.  rtable is its statement's.
 */
Oid
tp_scanned_temp_table(Plan *plan, List *rtable)
{
	Oid			relid;

	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapIndexScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			relid = rt_fetch(((Scan *) plan)->scanrelid, rtable)->relid;
			return tp_is_session_temp_table(relid) ? relid : InvalidOid;
		default:
			return InvalidOid;
	}
}

/*
 * What is in plan: the temporary tables of this session, and their indexes,
 * that it may read itself or through subplans, and the subplans that it runs,
 * directly or through others.  Incomplete if the plan has unknown nodes.
 * rtable and subplans are the statement's.  The result is in the current
 * memory context.
 */
PlanContents
tp_plan_contents(Plan *plan, List *rtable, List *subplans)
{
	PlanSearch	search = {0};

	search.rtable = rtable;
	search.subplans = subplans;
	search_plan(plan, &search);
	return search.found;
}

/*
 * The same for everything that stmt runs.
 */
PlanContents
tp_statement_contents(PlannedStmt *stmt)
{
	PlanSearch	search = {0};
	int			plan_id = 0;
	ListCell   *lc;

	search.rtable = stmt->rtable;
	search.subplans = stmt->subplans;
	search_plan(stmt->planTree, &search);

	/* a subplan that no known node runs may be run by an unknown one */
	foreach(lc, stmt->subplans)
	{
		if (!bms_is_member(++plan_id, search.found.subplans))
			search_plan(lfirst(lc), &search);
	}
	return search.found;
}

/*
 * Does rtable name a temporary table of this session?  A plan scans only what
 * is in its range table, even with nodes that are unknown here.
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

/* May a function be inlined, and read a temporary table thereby? */
static bool
is_sql_function(Oid function, void *context)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == SQLlanguageId;
	ReleaseSysCache(tuple);
	return result;
}

static bool
may_read_temp_table_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		return rte->rtekind == RTE_RELATION &&
			(get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP ||
			 (rte->inh && has_subclass(rte->relid)));
	}
	if (IsA(node, FuncExpr) &&
		is_sql_function(((FuncExpr *) node)->funcid, context))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, may_read_temp_table_walker,
								 context, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, may_read_temp_table_walker, context);
}

/*
 * May the plan of query, rewritten but not planned, read a temporary table?
 */
bool
tp_may_read_temp_table(Query *query)
{
	return may_read_temp_table_walker((Node *) query, NULL);
}

/*
 * Does stmt read temporary tables of this session that are not in relids?
 */
bool
tp_reads_others(PlannedStmt *stmt, List *relids)
{
	return list_difference_oid(tp_statement_contents(stmt).temp_tables,
							   relids) != NIL;
}
