/*-------------------------------------------------------------------------
 *
 * plan_refuse.c
 *	  Which statements may have workers over temporary tables, and why others may not.
 *
 * Core plans nothing but SELECT in parallel.  A statement that changes a table is run
 * ahead: workers find all rows before the first one is changed.  Default values that are not
 * parallel safe, as of serial and identity columns, are evaluated above the node.
 *
 * What has to hold before planning is asked of the Query, and everything else of the facts
 * about the plan (plan_facts.c).
 *
 * The invariant: a statement is run ahead only if nothing below its node sees what the
 * statement changes, nothing above the node continues a part of it, and no other session
 * can change the rows that it has found.  No worker runs what core would have kept out of
 * it if it had seen it, nor a plan with unknown nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "plan.h"

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

/* Rows of a foreign table in the session's temporary schema are as permanent as others. */
static bool
changes_temp_table(Query *query)
{
	RangeTblEntry *target = rt_fetch(query->resultRelation, query->rtable);

	return target->relkind != RELKIND_FOREIGN_TABLE &&
		get_rel_persistence(target->relid) == RELPERSISTENCE_TEMP;
}

/* Is query, an INSERT, one of the rows of a SELECT and nothing else? */
static bool
inserts_rows_of_query(Query *query)
{
	RangeTblRef *source;

	if (query->jointree == NULL || list_length(query->jointree->fromlist) != 1)
		return false;
	source = linitial(query->jointree->fromlist);
	return IsA(source, RangeTblRef) &&
		rt_fetch(source->rtindex, query->rtable)->rtekind == RTE_SUBQUERY;
}

/*
 * Does query, which is not run ahead, insert rows of VALUES for which a table may be read: by
 * their subqueries, or because a rule inserts several for each row of a SELECT?
 */
bool
tp_inserts_values(Query *query)
{
	return query->commandType == CMD_INSERT && tp_run_ahead >= RUN_AHEAD_INSERT &&
		query->jointree != NULL &&
		(query->hasSubLinks || list_length(query->jointree->fromlist) > 1) &&
		!inserts_rows_of_query(query);
}

/*
 * Does query change a table by rows that it finds in others, with a temporary one among
 * these, and one that is large enough for workers?  A cheap test, for every statement.
 */
bool
tp_may_run_ahead(Query *query)
{
	switch (query->commandType)
	{
		case CMD_UPDATE:
		case CMD_DELETE:
		case CMD_MERGE:
			if (tp_run_ahead < RUN_AHEAD_MODIFY)
				return false;
			break;
		case CMD_INSERT:
			if (tp_run_ahead < RUN_AHEAD_INSERT || !inserts_rows_of_query(query))
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

static bool
locks_rows(Node *node)
{
	return IsA(node, Query) && ((Query *) node)->rowMarks != NIL;
}

/*
 * What has to hold before query is planned for purpose, after tp_take_defaults().
 *
 * Other sessions may change the rows of a permanent table while they are found.
 * Core then looks for their newest version, and evaluates a part of the plan again
 * (EvalPlanQual), which the node could serve; but the order in which rows are
 * locked would be that in which workers find them, and two sessions that change the
 * same rows could deadlock.  The children of a temporary table are temporary.
 *
 * ModifyTable evaluates RETURNING, ON CONFLICT, the actions of MERGE and
 * conditions of views for each row, outside parallel mode; so they may call functions
 * that are parallel unsafe.
 */
Refusal
tp_query_refusal(Query *query, PlanFor purpose)
{
	Query		below = *query;

	below.returningList = below.mergeActionList = below.withCheckOptions = NIL;
	below.onConflict = NULL;
	if (purpose == PLAN_MODIFICATION)
	{
		if (query->commandType != CMD_INSERT && !changes_temp_table(query))
			return RUN_AHEAD_PERMANENT_TARGET;
		if (query->hasModifyingCTE)
			return RUN_AHEAD_MODIFYING_WITH;
		if (tp_contains((Node *) &below, is_current_of))
			return RUN_AHEAD_CURRENT_OF;
	}
	else if (query->hasModifyingCTE)
		return NO_WORKERS_MODIFYING_WITH;
	else if (tp_contains((Node *) query, locks_rows))
		return NO_WORKERS_LOCKS;
	return max_parallel_hazard(&below) != PROPARALLEL_UNSAFE ? NOT_REFUSED :
		purpose == PLAN_QUERY ? NO_WORKERS_UNSAFE : RUN_AHEAD_UNSAFE;
}

static bool
is_any_subplan(Node *node)
{
	return IsA(node, SubPlan) ||
		(IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC);
}

/* Have expressions of a plan a subquery, or the result of one? */
bool
tp_have_subplan(List *expressions)
{
	return tp_contains((Node *) expressions, is_any_subplan);
}

/*
 * Do workers of one of gathers, a List of GatherFacts, compute volatile values, as uuidv7(),
 * before the leader merges their rows?  Core computes them for rows that are in order.
 */
static bool
merges_volatile_values(List *gathers)
{
	ListCell   *lc;

	foreach(lc, gathers)
	{
		GatherFacts *facts = lfirst(lc);

		if (IsA(facts->gather, GatherMerge) && facts->below.calls_volatile)
			return true;
	}
	return false;
}

/* Is the client's encoding another one than the database's, which is that of workers? */
bool
tp_client_has_other_encoding(void)
{
	return pg_get_client_encoding() != GetDatabaseEncoding();
}

/*
 * Would workers of one of gathers, a List of GatherFacts, run what core would have kept out
 * of them if it had seen it: a function that is not parallel safe, or what has another result
 * in each?  only_ours: would core run it without workers?  Otherwise only Gathers over
 * temporary tables matter.
 */
bool
tp_must_run_in_leader(List *gathers, bool only_ours)
{
	ListCell   *lc;

	foreach(lc, gathers)
	{
		GatherFacts *facts = lfirst(lc);
		PlanFacts  *below = &facts->below;

		if ((only_ours || below->temp_tables != NIL) &&
			(below->calls_restricted || facts->repeats_what_varies ||
			 (below->depends_on_client && tp_client_has_other_encoding())))
			return true;
	}
	return false;
}

/*
 * May workers run stmt, a plan with these facts of it and of its Gathers?  only_ours: as
 * above.  An unknown node may read temporary tables, have a Gather below it, or lock rows,
 * which parallel mode forbids.  A domain's constraint and default arguments, at which core
 * does not look, may call functions that fail in parallel mode.
 */
bool
tp_workers_may_run(PlannedStmt *stmt, const PlanFacts *all, List *gathers, bool only_ours)
{
	if (all->unknown && (stmt->rowMarks != NIL || tp_names_temp_table(stmt->rtable)))
		return false;
	return (!only_ours && all->temp_tables == NIL) ||
		!(all->hidden_unsafe || all->calls_unsafe || tp_must_run_in_leader(gathers, only_ours));
}

/*
 * May stmt, a plan of a statement that changes a table, be run ahead, with defaults evaluated
 * above?  What ModifyTable evaluates for each row must have no subqueries: these are planned
 * for workers, even with FOR UPDATE, and the workers of a CTE have ended then.
 */
Refusal
tp_modification_refusal(PlannedStmt *stmt, const PlanFacts *all, List *gathers,
						List *defaults)
{
	ModifyTable *modify = castNode(ModifyTable, stmt->planTree);
	List	   *above = list_make5(modify->returningLists,
								   modify->withCheckOptionLists,
								   modify->onConflictSet,
								   modify->onConflictWhere,
								   modify->mergeActionLists);
	Refusal		refusal;

	/* a node above a scan may have more, but those that keep rows may not */
	if (list_length(outerPlan(modify)->targetlist) > MaxTupleAttributeNumber)
		return RUN_AHEAD_TOO_WIDE;
	above = lappend(lappend(above, merge_join_conditions(modify)), defaults);

	if (all->looks_at_statement || merges_volatile_values(gathers) ||
		(all->reads_versions && (modify->operation != CMD_INSERT ||
								 modify->onConflictAction != ONCONFLICT_NONE)))
		return RUN_AHEAD_VOLATILE;
	if (tp_have_subplan(above))
		return RUN_AHEAD_SUBQUERY;
	/* the planner adds columns that MERGE leaves out */
	if (tp_expression_facts(above, stmt).hidden_unsafe)
		return RUN_AHEAD_UNSAFE;
	refusal = tp_order_refusal(stmt, above);
	if (refusal != NOT_REFUSED)
		return refusal;
	return tp_rows_exceed_file_limit(outerPlan(modify)) ?
		RUN_AHEAD_TOO_LARGE : NOT_REFUSED;
}

/* ----------
 * Default values that are not parallel safe
 * ----------
 */

/*
 * Is expr, of the target list of an INSERT, evaluated as rows are inserted?  Also if it is
 * stable: it may depend on what a volatile one does.
 */
static bool
must_wait(Node *expr)
{
	return contain_mutable_functions(expr) &&
		!contain_var_clause(expr) && !contain_subplans(expr);
}

/*
 * Take the defaults of columns that may not be parallel safe, the same expression for each
 * row, out of the target list of query, an INSERT, which is changed: NULL takes their place.
 * Returns them as a List of TargetEntry, for tp_place_run_ahead_node().
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
