/*-------------------------------------------------------------------------
 *
 * plan_facts.c
 *	  What a process that runs a finished plan reads, pins, looks up and calls.
 *
 * Core has walkers for queries, for expressions and for a running plan, but none for a
 * finished plan.  The table below knows of each kind of plan node what it scans and where
 * its children and expressions are, which hold subplans.  One recursion collects from that
 * the facts about a plan.
 *
 * The invariant: a table or index that the plan may read is found, the number of
 * pins is not too small, and what is not known to be core's code counts as user
 * code; or the plan has an unknown node (of a fork or a newer minor release), and
 * the facts say so.  A worker checks the tables and indexes again (exec_worker.c).
 *
 * Not detected are support functions that a user has added to one of core's
 * operator families, for a type of core's, nor those that the server picks because
 * a user's operator family has the same operators.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/syscache.h"

#include "plan.h"

/* ----------
 * Kinds of plan nodes
 * ----------
 */

#define SCANS			0x01	/* the relation of scanrelid */
#define OTHER_MODULE	0x02	/* knows what the node does */
#define USER_CODE		0x04	/* may run code that is not core's */
#define KEEPS_ROWS		0x08	/* of its child, for its later executions */
#define PASSES_BOUND	0x10	/* ExecSetTupleBound() of execProcnode.c goes
								 * on to its only child */

/*
 * Members of a node are given by their offsets in its struct; 0 means that there is
 * none.
 */
typedef struct NodeKind
{
	NodeTag		tag;
	int			flags;
	Size		children;		/* a List of Plan or a Plan, besides lefttree
								 * and righttree */
	Size		index;			/* the OID of the index that it scans */
	Size		relids;			/* the Relids that another module's node scans */
	struct
	{
		Size		number;
		Size		oids;
	}			operators[2];	/* by which it compares values */
	Size		expressions[3]; /* besides those that each Plan has */
} NodeKind;

#define CHILDREN(type, member)		.children = offsetof(type, member)
#define INDEX(type)					.index = offsetof(type, indexid)
#define RELIDS(type, member)		.relids = offsetof(type, member)
#define OPERATORS(i, type, number, oids) \
	.operators[i] = {offsetof(type, number), offsetof(type, oids)}
#define EXPR(i, type, member)		.expressions[i] = offsetof(type, member)

#define MEMBER(node, offset, type)	(*(type *) ((char *) (node) + (offset)))

/*
 * Children are where planstate_tree_walker() of nodeFuncs.c finds them in a running plan,
 * expressions where finalize_plan() of subselect.c does, those of index scans the original
 * ones.  A node that is never below a Gather, or beside one, is not listed.
 */
static const NodeKind kinds[] = {
	{T_Result, PASSES_BOUND, EXPR(0, Result, resconstantqual)},
	{T_ProjectSet},
	{T_Append, 0, CHILDREN(Append, appendplans)},
	{
		T_MergeAppend, 0, CHILDREN(MergeAppend, mergeplans),
		OPERATORS(0, MergeAppend, numCols, sortOperators)
	},
	{
		T_RecursiveUnion, USER_CODE,
		OPERATORS(0, RecursiveUnion, numCols, dupOperators)
	},
	{T_BitmapAnd, 0, CHILDREN(BitmapAnd, bitmapplans)},
	{T_BitmapOr, 0, CHILDREN(BitmapOr, bitmapplans)},
	{T_SeqScan, SCANS},
	{T_SampleScan, SCANS, EXPR(0, SampleScan, tablesample)},
	{
		T_IndexScan, SCANS, INDEX(IndexScan),
		EXPR(0, IndexScan, indexqualorig), EXPR(1, IndexScan, indexorderbyorig)
	},
	{
		T_IndexOnlyScan, SCANS, INDEX(IndexOnlyScan),
		EXPR(0, IndexOnlyScan, indexqual), EXPR(1, IndexOnlyScan, recheckqual),
		EXPR(2, IndexOnlyScan, indexorderby)
	},
	{
		T_BitmapIndexScan, SCANS, INDEX(BitmapIndexScan),
		EXPR(0, BitmapIndexScan, indexqualorig)
	},
	{T_BitmapHeapScan, SCANS, EXPR(0, BitmapHeapScan, bitmapqualorig)},
	{T_TidScan, SCANS, EXPR(0, TidScan, tidquals)},
	{T_TidRangeScan, SCANS, EXPR(0, TidRangeScan, tidrangequals)},
	{T_SubqueryScan, PASSES_BOUND, CHILDREN(SubqueryScan, subplan)},
	{T_FunctionScan, 0, EXPR(0, FunctionScan, functions)},
	{T_ValuesScan, 0, EXPR(0, ValuesScan, values_lists)},
	{T_TableFuncScan, USER_CODE, EXPR(0, TableFuncScan, tablefunc)},
	{T_CteScan},
	{T_NamedTuplestoreScan},
	{T_WorkTableScan},
	{
		T_ForeignScan, OTHER_MODULE | USER_CODE, RELIDS(ForeignScan, fs_relids),
		EXPR(0, ForeignScan, fdw_exprs), EXPR(1, ForeignScan, fdw_recheck_quals)
	},
	{
		T_CustomScan, OTHER_MODULE | USER_CODE, CHILDREN(CustomScan, custom_plans),
		RELIDS(CustomScan, custom_relids), EXPR(0, CustomScan, custom_exprs)
	},
	{T_NestLoop, 0, EXPR(0, Join, joinqual)},
	{T_MergeJoin, 0, EXPR(0, Join, joinqual), EXPR(1, MergeJoin, mergeclauses)},
	{
		T_HashJoin, 0, EXPR(0, Join, joinqual), EXPR(1, HashJoin, hashclauses),
		EXPR(2, HashJoin, hashkeys)
	},
	{T_Material, KEEPS_ROWS},
	{
		T_Memoize, 0, OPERATORS(0, Memoize, numKeys, hashOperators),
		EXPR(0, Memoize, param_exprs)
	},
	{
		T_Sort, KEEPS_ROWS | PASSES_BOUND,
		OPERATORS(0, Sort, numCols, sortOperators)
	},
	{T_IncrementalSort, PASSES_BOUND, OPERATORS(0, Sort, numCols, sortOperators)},
	{T_Group, 0, OPERATORS(0, Group, numCols, grpOperators)},
	{T_Agg, 0, OPERATORS(0, Agg, numCols, grpOperators)},
	{
		T_WindowAgg, 0, OPERATORS(0, WindowAgg, partNumCols, partOperators),
		OPERATORS(1, WindowAgg, ordNumCols, ordOperators), EXPR(0, WindowAgg, startOffset),
		EXPR(1, WindowAgg, endOffset), EXPR(2, WindowAgg, runCondition)
	},
	{T_Unique, 0, OPERATORS(0, Unique, numCols, uniqOperators)},
	{T_Gather},
	{T_GatherMerge, 0, OPERATORS(0, GatherMerge, numCols, sortOperators)},
	{T_Hash, KEEPS_ROWS, EXPR(0, Hash, hashkeys)},
	{T_SetOp, USER_CODE, OPERATORS(0, SetOp, numCols, cmpOperators)},
	{T_Limit, 0, EXPR(0, Limit, limitOffset), EXPR(1, Limit, limitCount)},
};

/* the flush node and that of exec_run_ahead.c */
static const NodeKind own_node = {T_CustomScan};
static const NodeKind unknown_node = {T_Invalid, USER_CODE};

/* Is plan the node of this module with that name?  No other can register it. */
static bool
is_own_node(Plan *plan, const char *name)
{
	return IsA(plan, CustomScan) &&
		strcmp(((CustomScan *) plan)->methods->CustomName, name) == 0;
}

bool
tp_is_flush_node(Plan *plan)
{
	return is_own_node(plan, FLUSH_NODE_NAME);
}

static const NodeKind *
kind_of(Plan *plan)
{
	if (tp_is_flush_node(plan) || is_own_node(plan, RUN_AHEAD_NODE_NAME))
		return &own_node;
	for (int i = 0; i < lengthof(kinds); i++)
	{
		if (kinds[i].tag == nodeTag(plan))
			return &kinds[i];
	}
	return &unknown_node;
}

/* The children of plan, in a new List, without subplans. */
List *
tp_plan_children(Plan *plan)
{
	Size		offset = kind_of(plan)->children;
	Node	   *more = offset ? MEMBER(plan, offset, Node *) : NULL;
	List	   *children = NIL;

	check_stack_depth();
	if (plan->lefttree)
		children = lappend(children, plan->lefttree);
	if (plan->righttree)
		children = lappend(children, plan->righttree);
	if (more != NULL)
		children = IsA(more, List) ? list_concat(children, (List *) more) :
			lappend(children, more);
	return children;
}

/*
 * The link to the child of plan if ExecSetTupleBound() goes on to that child, otherwise NULL,
 * as of Append and Merge Append, which have several.
 */
Plan	  **
tp_tuple_bound_child(Plan *plan)
{
	const NodeKind *kind = kind_of(plan);
	Plan	  **child = kind->children ? &MEMBER(plan, kind->children, Plan *) :
		&plan->lefttree;

	return (kind->flags & PASSES_BOUND) != 0 && *child != NULL ? child : NULL;
}

/* The expressions of plan, some of them NULL, without its InitPlans, in a new List. */
List *
tp_plan_expressions(Plan *plan)
{
	const NodeKind *kind = kind_of(plan);
	List	   *expressions = list_make2(plan->targetlist, plan->qual);

	for (int i = 0; i < lengthof(kind->expressions); i++)
	{
		if (kind->expressions[i] != 0)
			expressions = lappend(expressions,
								  MEMBER(plan, kind->expressions[i], Node *));
	}
	return expressions;
}

/* ----------
 * User code
 * ----------
 */

/*
 * Add function, which compares or hashes values, to facts, if it is a user's: one that is not
 * parallel safe, at which core does not look, or on whose label the plan depends.
 */
static void
add_support_function(Oid function, PlanFacts *facts)
{
	if (function < FirstNormalObjectId)
		return;
	facts->depends = lappend(facts->depends, tp_dependency(function));
	if (func_parallel(function) != PROPARALLEL_SAFE)
		facts->hidden_unsafe = true;
}

/* The same for the function of operator, those that hash for it, and that which sorts by it. */
static void
add_operator(Oid operator, PlanFacts *facts)
{
	Oid			family;
	Oid			type;
	CompareType order;
	Oid			left = InvalidOid;
	Oid			right = InvalidOid;

	if (operator < FirstNormalObjectId)
		return;
	facts->user_code = true;
	add_support_function(get_opcode(operator), facts);
	if (get_ordering_op_properties(operator, &family, &type, &order))
		add_support_function(get_opfamily_proc(family, type, type, BTORDER_PROC), facts);
	(void) get_op_hash_functions(operator, &left, &right);
	add_support_function(left, facts);
	add_support_function(right, facts);
}

/* The same for all operators and support functions of families. */
static void
add_families(const Oid *families, int n, PlanFacts *facts)
{
	for (int i = 0; i < n; i++)
	{
		CatCList   *operators;
		CatCList   *procs;

		if (families[i] < FirstNormalObjectId)
			continue;
		facts->user_code = true;
		operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(families[i]));
		for (int j = 0; j < operators->n_members; j++)
			add_support_function(get_opcode(((Form_pg_amop) GETSTRUCT(&operators->members[j]->tuple))->amopopr),
								 facts);
		ReleaseSysCacheList(operators);
		procs = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(families[i]));
		for (int j = 0; j < procs->n_members; j++)
			add_support_function(((Form_pg_amproc) GETSTRUCT(&procs->members[j]->tuple))->amproc,
								 facts);
		ReleaseSysCacheList(procs);
	}
}

/* The same for what plan, of that kind, sorts, groups or joins by. */
static void
add_operators(Plan *plan, const NodeKind *kind, PlanFacts *facts)
{
	ListCell   *lc;

	for (int i = 0; i < lengthof(kind->operators); i++)
	{
		int			n = kind->operators[i].oids == 0 ? 0 :
			MEMBER(plan, kind->operators[i].number, int);

		for (int j = 0; j < n; j++)
			add_operator(MEMBER(plan, kind->operators[i].oids, Oid *)[j], facts);
	}
	foreach(lc, IsA(plan, HashJoin) ? ((HashJoin *) plan)->hashoperators : NIL)
		add_operator(lfirst_oid(lc), facts);
	if (IsA(plan, MergeJoin))
		add_families(((MergeJoin *) plan)->mergeFamilies,
					 list_length(((MergeJoin *) plan)->mergeclauses), facts);
	if (IsA(plan, WindowAgg))
	{
		add_support_function(((WindowAgg *) plan)->startInRangeFunc, facts);
		add_support_function(((WindowAgg *) plan)->endInRangeFunc, facts);
	}
}

/* The same for what a hashed subplan looks values up by. */
static void
add_hashed_subplan(SubPlan *subplan, PlanFacts *facts)
{
	List	   *comparisons = make_ands_implicit((Expr *) subplan->testexpr);
	ListCell   *lc;

	foreach(lc, subplan->useHashTable ? comparisons : NIL)
		add_operator(lfirst_node(OpExpr, lc)->opno, facts);
}

/* The same for the keys by which partitions of tables in rtable are found. */
static void
add_partition_keys(List *rtable, PlanFacts *facts)
{
	ListCell   *lc;

	foreach(lc, rtable)
	{
		RangeTblEntry *rte = lfirst(lc);
		Relation	table;
		PartitionKey key;

		if (rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_PARTITIONED_TABLE)
			continue;
		table = RelationIdGetRelation(rte->relid);
		if (!RelationIsValid(table))
			continue;			/* what the planner has called has dropped it */
		key = RelationGetPartitionKey(table);
		add_families(key->partopfamily, key->partnatts, facts);
		RelationClose(table);
	}
}

/* ----------
 * Pins
 * ----------
 */

/*
 * Pages that a scan may have pinned: the index's current, next and marked page, BRIN's
 * metapage and one of its revmap, a page of the table and of its visibility map, that of the
 * tuple in the node's slot, and some to spare.
 */
#define PINS_OF_SCAN	10

/* More than any session has; the sum of two is still an int. */
#define PINS_UNKNOWN	(INT_MAX / 4)

static void
add_pins(PlanFacts *facts, int pins)
{
	facts->pins = Min(facts->pins + pins, PINS_UNKNOWN);
}

/* Is it known how many pages a scan by index pins?  GIN pins one for each key. */
static bool
pins_are_known(Relation index)
{
	switch (index->rd_rel->relam)
	{
		case BTREE_AM_OID:
		case HASH_AM_OID:
		case GIST_AM_OID:
		case SPGIST_AM_OID:
		case BRIN_AM_OID:
			return true;
		default:
			return false;
	}
}

/* ----------
 * The walk
 * ----------
 */

/* How a node is run. */
typedef struct NodeRun
{
	double		loops;			/* the number of its executions */
	bool		in_subplan;
} NodeRun;

typedef struct PlanWalk
{
	PlannedStmt *stmt;
	PlanFacts	facts;			/* so far; its subplans have been walked */
} PlanWalk;

static void walk_plan(Plan *plan, NodeRun run, PlanWalk *walk);

/* Walk a subplan.  A worker executes it once: those that depend on an outer row it has not. */
static void
walk_subplan(int plan_id, PlanWalk *walk)
{
	PlanFacts  *facts = &walk->facts;
	NodeRun		run = {.loops = 1,.in_subplan = true};

	if (bms_is_member(plan_id, facts->subplans))
		return;
	facts->subplans = bms_add_member(facts->subplans, plan_id);
	walk_plan(list_nth(walk->stmt->subplans, plan_id - 1), run, walk);
}

/* Walk an expression, or a List of such. */
static bool
walk_expression(Node *node, PlanWalk *walk)
{
	PlanFacts  *facts = &walk->facts;

	if (node == NULL)
		return false;
	tp_add_expression(node, facts);
	if (IsA(node, SubPlan))
	{
		add_hashed_subplan((SubPlan *) node, facts);
		walk_subplan(((SubPlan *) node)->plan_id, walk);
	}
	else if (IsA(node, Param))
		facts->has_params |= ((Param *) node)->paramkind == PARAM_EXTERN;
	return expression_tree_walker(node, walk_expression, walk);
}

/* The facts of expressions alone, of which stmt has the subplans. */
PlanFacts
tp_expression_facts(List *expressions, PlannedStmt *stmt)
{
	PlanWalk	walk = {.stmt = stmt};

	(void) walk_expression((Node *) expressions, &walk);
	return walk.facts;
}

/* Have stmt made again if what facts depends on is changed; plan_note.c's items remain last. */
void
tp_add_dependencies(PlannedStmt *stmt, const PlanFacts *facts)
{
	stmt->invalItems = list_concat(facts->depends, stmt->invalItems);
}

/* Add the table of entry rti.  Returns its OID if it is one of temp_tables, or InvalidOid. */
static Oid
add_table(Index rti, PlanWalk *walk)
{
	RangeTblEntry *rte = rt_fetch(rti, walk->stmt->rtable);

	/* the value in a sequence changes with each row that gets one */
	if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_SEQUENCE)
		walk->facts.looks_at_statement = walk->facts.varies_by_run = true;
	if (rte->rtekind != RTE_RELATION || !tp_is_session_temp_table(rte->relid))
		return InvalidOid;
	walk->facts.temp_tables = list_append_unique_oid(walk->facts.temp_tables,
													 rte->relid);
	return rte->relid;
}

/* Add tables that another module's node scans, with all indexes, as it may use any. */
static void
add_tables(Bitmapset *rtis, PlanWalk *walk)
{
	int			rti = -1;

	while ((rti = bms_next_member(rtis, rti)) >= 0)
	{
		Oid			relid = add_table(rti, walk);

		if (OidIsValid(relid))
			walk->facts.indexes =
				list_concat_unique_oid(walk->facts.indexes,
									   tp_table_indexes(relid));
	}
}

/*
 * Add index, by which table is scanned, or InvalidOid if that is not temporary.  False
 * if there is none: in EXPLAIN, other modules have hypothetical ones.
 */
static bool
add_index(Oid indexid, Oid table, PlanWalk *walk)
{
	Relation	index = RelationIdGetRelation(indexid);

	if (!RelationIsValid(index))
		return false;
	if (index->rd_rel->relam >= FirstNormalObjectId)
		walk->facts.user_code = true;
	add_families(index->rd_opfamily, IndexRelationGetNumberOfKeyAttributes(index),
				 &walk->facts);
	if (OidIsValid(table))
	{
		walk->facts.indexes = list_append_unique_oid(walk->facts.indexes, indexid);
		if (!pins_are_known(index))
			add_pins(&walk->facts, PINS_UNKNOWN);
	}
	RelationClose(index);
	return true;
}

/* Add what plan, a scan, reads, and its pins. */
static void
add_scan(Plan *plan, const NodeKind *kind, NodeRun run, PlanWalk *walk)
{
	Oid			table = add_table(((Scan *) plan)->scanrelid, walk);
	Oid			index = kind->index ? MEMBER(plan, kind->index, Oid) : InvalidOid;

	if (OidIsValid(index) && !add_index(index, table, walk))
		return;
	if (!OidIsValid(table))
		return;
	add_pins(&walk->facts, PINS_OF_SCAN);
	if (!OidIsValid(index))
		add_pins(&walk->facts, heap_scan_read_ahead(get_rel_tablespace(table)));
	if (run.loops > 1)
	{
		Lookup	   *lookup = palloc(sizeof(Lookup));

		*lookup = (Lookup)
		{
			plan, table, index, run.loops, run.in_subplan
		};
		walk->facts.lookups = lappend(walk->facts.lookups, lookup);
	}
}

/* How plan runs its child if it is itself run like this. */
static NodeRun
run_of_child(Plan *plan, const NodeKind *kind, NodeRun run, Plan *child)
{
	if (IsA(plan, NestLoop) && child == plan->righttree)
		run.loops *= Max(plan->lefttree->plan_rows, 1);
	/* keeps the rows, unless they depend on the outer row */
	else if ((kind->flags & KEEPS_ROWS) != 0 && bms_is_empty(plan->extParam))
		run.loops = 1;
	return run;
}

/* Add plan, which is run like this, to the facts.  plan may be NULL. */
static void
walk_plan(Plan *plan, NodeRun run, PlanWalk *walk)
{
	PlanFacts  *facts = &walk->facts;
	const NodeKind *kind;
	List	   *children;
	ListCell   *lc;

	if (plan == NULL)
		return;
	check_stack_depth();
	kind = kind_of(plan);
	facts->last_node_id = Max(facts->last_node_id, plan->plan_node_id);
	facts->unknown = facts->unknown || kind == &unknown_node;
	facts->user_code = facts->user_code || (kind->flags & USER_CODE) != 0;
	add_operators(plan, kind, facts);

	(void) walk_expression((Node *) tp_plan_expressions(plan), walk);
	(void) walk_expression((Node *) plan->initPlan, walk);
	if (IsA(plan, Gather) || IsA(plan, GatherMerge))
		facts->gathers = lappend(facts->gathers, plan);
	if ((kind->flags & SCANS) != 0)
		add_scan(plan, kind, run, walk);
	if ((kind->flags & OTHER_MODULE) != 0)
	{
		if (((Scan *) plan)->scanrelid != 0)
			add_tables(bms_make_singleton(((Scan *) plan)->scanrelid), walk);
		add_tables(MEMBER(plan, kind->relids, Bitmapset *), walk);
		add_pins(facts, PINS_UNKNOWN);
		/* file_fdw converts from the client's encoding */
		if (IsA(plan, ForeignScan))
			facts->varies_by_run = facts->depends_on_client = true;
	}
	children = tp_plan_children(plan);
	foreach(lc, children)
		walk_plan(lfirst(lc), run_of_child(plan, kind, run, lfirst(lc)), walk);
	list_free(children);
}

/* How what is executed once is run. */
static const NodeRun once = {.loops = 1};

/*
 * The facts about plan, a part of stmt, and the subplans that it runs, directly or
 * through others, in a process that executes it once.  Incomplete if the plan has
 * unknown nodes.  Lists are in the current memory context.  Opens indexes without a
 * lock, and closes them.
 */
PlanFacts
tp_plan_facts(Plan *plan, PlannedStmt *stmt)
{
	PlanWalk	walk = {.stmt = stmt};

	walk_plan(plan, once, &walk);
	walk.facts.pins = local_buffers_for_pins(walk.facts.pins);
	return walk.facts;
}

/*
 * The same for all that runs while stmt may have workers: its plan without ModifyTable, and
 * all subplans, also those that no known node runs.
 */
PlanFacts
tp_statement_facts(PlannedStmt *stmt)
{
	PlanWalk	walk = {.stmt = stmt};
	Plan	   *top = stmt->planTree;

	if (IsA(top, ModifyTable))
		top = top->lefttree;
	add_partition_keys(stmt->rtable, &walk.facts);
	walk_plan(top, once, &walk);
	for (int plan_id = 1; plan_id <= list_length(stmt->subplans); plan_id++)
		walk_subplan(plan_id, &walk);
	walk.facts.pins = local_buffers_for_pins(walk.facts.pins);
	return walk.facts;
}

static bool
repeats_in_joins(Plan *plan, PlannedStmt *stmt)
{
	/* the processes share the inner side of a parallel hash join */
	Plan	   *whole = plan->parallel_aware ? NULL : plan->righttree;
	ListCell   *lc;

	if (whole != NULL && tp_plan_facts(whole, stmt).varies_by_run)
		return true;
	foreach(lc, tp_plan_children(plan))
	{
		if (lfirst(lc) != whole && repeats_in_joins(lfirst(lc), stmt))
			return true;
	}
	return false;
}

/*
 * Does plan, below a Gather of stmt and with these facts, have a part that each process runs
 * as a whole, but with another result in each?  That is the inner side of a join, or a
 * subplan, that varies by run, also if it depends on an outer row.  Core looks for neither.
 */
static bool
repeats_what_varies(Plan *plan, const PlanFacts *facts, PlannedStmt *stmt)
{
	int			plan_id = 0;

	if (!facts->varies_by_run)
		return false;
	while ((plan_id = bms_next_member(facts->subplans, plan_id)) >= 0)
	{
		if (tp_plan_facts(list_nth(stmt->subplans, plan_id - 1), stmt).varies_by_run)
			return true;
	}
	return repeats_in_joins(plan, stmt);
}

/*
 * What there is to know of each of gathers, nodes of stmt as tp_statement_facts() finds
 * them: a List of GatherFacts, in the current memory context.
 */
List *
tp_gather_facts(PlannedStmt *stmt, List *gathers)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, gathers)
	{
		GatherFacts *facts = palloc(sizeof(GatherFacts));

		facts->gather = lfirst(lc);
		facts->below = tp_plan_facts(facts->gather->lefttree, stmt);
		facts->repeats_what_varies = repeats_what_varies(facts->gather->lefttree,
														 &facts->below, stmt);
		result = lappend(result, facts);
	}
	return result;
}
