/*-------------------------------------------------------------------------
 *
 * plan_user_code.c
 *	  May a plan run code that is not core's?
 *
 * User code is everything that initdb did not create: functions, and types
 * with their input and comparison functions and the constraints of domains.
 * It may do anything, even read temporary relations without the executor's
 * knowledge.  A worker that runs none need not guard against that (see
 * exec_worker_relations.c).
 *
 * The invariant: what is not known to be core's counts as user code.  This file
 * does not detect support functions that a user has added to one of core's
 * operator families, for a type of core's, nor those that the server picks
 * because a user's operator family has the same operators.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"

#include "plan.h"

static bool
is_user_function(Oid function, void *context)
{
	switch (function)
	{
			/* functions of core that run queries or views of users */
		case F_CURSOR_TO_XML:
		case F_DATABASE_TO_XML:
		case F_DATABASE_TO_XML_AND_XMLSCHEMA:
		case F_QUERY_TO_XML:
		case F_QUERY_TO_XML_AND_XMLSCHEMA:
		case F_SCHEMA_TO_XML:
		case F_SCHEMA_TO_XML_AND_XMLSCHEMA:
		case F_TABLE_TO_XML:
		case F_TABLE_TO_XML_AND_XMLSCHEMA:
		case F_TS_REWRITE_TSQUERY_TEXT:
		case F_TS_STAT_TEXT:
		case F_TS_STAT_TEXT_TEXT:
			return true;
		default:
			return function >= FirstNormalObjectId;
	}
}

static bool
has_user_object(const Oid *oids, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (oids[i] >= FirstNormalObjectId)
			return true;
	}
	return false;
}

static bool
list_has_user_object(List *oids)
{
	ListCell   *lc;

	foreach(lc, oids)
	{
		if (lfirst_oid(lc) >= FirstNormalObjectId)
			return true;
	}
	return false;
}

/*
 * May evaluating node, one node of an expression, run user code?  The kinds of
 * node are those of expression_tree_walker() of nodeFuncs.c, and functions are
 * where check_functions_in_node() finds them.
 */
bool
tp_expression_is_user_code(Node *node)
{
	switch (nodeTag(node))
	{
			/* these evaluate nothing themselves */
		case T_List:
		case T_TargetEntry:
		case T_CaseWhen:
		case T_TableSampleClause:
		case T_SubPlan:
		case T_AlternativeSubPlan:
			return false;
		case T_RangeTblFunction:
			return list_has_user_object(((RangeTblFunction *) node)->funccoltypes);
		case T_RowCompareExpr:
			return list_has_user_object(((RowCompareExpr *) node)->opfamilies) ||
				check_functions_in_node(node, is_user_function, NULL);
		case T_MinMaxExpr:
		case T_Var:
		case T_Const:
		case T_Param:
		case T_Aggref:
		case T_GroupingFunc:
		case T_WindowFunc:
		case T_SubscriptingRef:
		case T_FuncExpr:
		case T_NamedArgExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_FieldSelect:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_ArrayCoerceExpr:
		case T_ConvertRowtypeExpr:
		case T_CollateExpr:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_ArrayExpr:
		case T_RowExpr:
		case T_CoalesceExpr:
		case T_SQLValueFunction:
		case T_NullTest:
		case T_BooleanTest:
			return exprType(node) >= FirstNormalObjectId ||
				check_functions_in_node(node, is_user_function, NULL);
		default:
			return true;
	}
}

/*
 * Is the access method of an index, or a column's operator family, a user's?
 */
static bool
index_is_user_code(Oid indexid)
{
	Relation	index = tp_relation_open(indexid);
	bool		result;

	result = has_user_object(index->rd_opfamily,
							 IndexRelationGetNumberOfKeyAttributes(index)) ||
		index->rd_rel->relam >= FirstNormalObjectId;
	RelationClose(index);
	return result;
}

/*
 * May node itself, without its expressions and children, run user code: by
 * the operators with which it compares values, or by what it scans?  The
 * kinds of node are those of ExecInitNode() of execProcnode.c.
 */
bool
tp_plan_node_is_user_code(Plan *node)
{
	switch (nodeTag(node))
	{
		case T_Result:
		case T_ProjectSet:
		case T_Append:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_SeqScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_NestLoop:
		case T_Material:
		case T_Hash:			/* the join has the operators */
		case T_Limit:
		case T_Gather:
			return false;
		case T_SampleScan:
			return ((SampleScan *) node)->tablesample->tsmhandler >= FirstNormalObjectId;
		case T_IndexScan:
			return index_is_user_code(((IndexScan *) node)->indexid);
		case T_IndexOnlyScan:
			return index_is_user_code(((IndexOnlyScan *) node)->indexid);
		case T_BitmapIndexScan:
			return index_is_user_code(((BitmapIndexScan *) node)->indexid);
		case T_MergeAppend:
			return has_user_object(((MergeAppend *) node)->sortOperators,
								   ((MergeAppend *) node)->numCols);
		case T_GatherMerge:
			return has_user_object(((GatherMerge *) node)->sortOperators,
								   ((GatherMerge *) node)->numCols);
		case T_Sort:
		case T_IncrementalSort:
			return has_user_object(((Sort *) node)->sortOperators,
								   ((Sort *) node)->numCols);
		case T_Group:
			return has_user_object(((Group *) node)->grpOperators,
								   ((Group *) node)->numCols);
		case T_Agg:
			return has_user_object(((Agg *) node)->grpOperators,
								   ((Agg *) node)->numCols);
		case T_Unique:
			return has_user_object(((Unique *) node)->uniqOperators,
								   ((Unique *) node)->numCols);
		case T_WindowAgg:
			return has_user_object(((WindowAgg *) node)->partOperators,
								   ((WindowAgg *) node)->partNumCols) ||
				has_user_object(((WindowAgg *) node)->ordOperators,
								((WindowAgg *) node)->ordNumCols);
		case T_MergeJoin:
			return has_user_object(((MergeJoin *) node)->mergeFamilies,
								   list_length(((MergeJoin *) node)->mergeclauses));
		case T_HashJoin:
			return list_has_user_object(((HashJoin *) node)->hashoperators);
		case T_Memoize:
			return has_user_object(((Memoize *) node)->hashOperators,
								   ((Memoize *) node)->numKeys);
		case T_CustomScan:
			return !tp_is_flush_node(node);
		default:
			return true;
	}
}
