/*-------------------------------------------------------------------------
 *
 * plan_statement.c
 *	  Planning of a statement: with and without workers, and the choice.
 *
 * A statement is planned first with no thought of temporary tables.  That plan is core's
 * own.  If it costs more than the start of workers, and the statement reads a temporary
 * table, and one that is large enough, a copy of the Query is planned as if workers could
 * read temporary tables as they read permanent ones.  That plan gets the nodes of this
 * module (plan_place.c), and its cost what the planner does not know: the flush, and the
 * rows that are kept if it is run ahead.  Either may cost more for lookups in more pages
 * than the session has local buffers (plan_lookup.c).  The cheaper one is taken.  Where some
 * tables are expensive to flush, a third plan leaves these to the leader, and is taken as
 * core's if it is the cheaper one of these.
 *
 * What workers save without the flush is the difference of the two costs.  It is noted in
 * the plan (plan_note.c): a cached plan may be executed when the tables that were clean
 * have become dirty, or the other way round.
 *
 * The invariant: a plan with a Gather that reads temporary tables has been given its
 * flush nodes when it leaves this file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "optimizer/optimizer.h"

#include "plan.h"

/* ----------
 * What a statement may be planned for
 * ----------
 */

/* Is node a function in FROM?  The planner may inline it, with the tables that it reads. */
static bool
is_function(Node *node)
{
	return IsA(node, RangeTblEntry) && ((RangeTblEntry *) node)->rtekind == RTE_FUNCTION;
}

/* What call is to be planned for, besides core's plan; PLAN_AS_CORE for nothing. */
static PlanFor
purpose_of(const PlannerCall *call)
{
	Query	   *parse = call->args.parse;

	if (parse->commandType == CMD_SELECT &&
		(call->args.cursorOptions & CURSOR_OPT_PARALLEL_OK) != 0)
		return (tp_reads_temp_table(parse) && tp_reads_large_table(parse)) ||
			tp_any_range_table_entry(parse, is_function) ? PLAN_QUERY : PLAN_AS_CORE;

	/* the server's own queries for foreign keys change a few rows at a time */
	if (InNoForceRLSOperation())
		return PLAN_AS_CORE;
	return tp_may_run_ahead(parse) ? PLAN_MODIFICATION :
		tp_may_run_portions_ahead(parse) ? PLAN_PORTIONS : PLAN_AS_CORE;
}

/* Has a plan with workers, which have to be started, a chance against core's? */
static bool
may_cost_less(PlannedStmt *core, PlanFor purpose)
{
	if (purpose == PLAN_QUERY && debug_parallel_query != DEBUG_PARALLEL_OFF)
		return true;
	return core->planTree->total_cost > parallel_setup_cost &&
		(purpose != PLAN_PORTIONS || tp_finds_first_row_late(core));
}

/*
 * Milliseconds of processor time that planning may always take; those that a unit of planner
 * cost stands for; and the part of these that planning may take besides.
 */
#define SHORT_PLANNING		10.0
#define TIME_OF_COST		0.01
#define PART_FOR_PLANNING	0.25

/*
 * Did planning take so long, from start by clock() of <time.h>, that it is not worth to be
 * done twice for a plan with this cost?  With the number of tables that are joined, it grows
 * faster than what they cost.  Who sets parallel_setup_cost to zero wants workers whatever it
 * takes to have them, as most tests do.
 */
static bool
took_too_long(clock_t start, Cost cost)
{
	double		ms = (clock() - start) * 1000.0 / CLOCKS_PER_SEC;

	return ms > SHORT_PLANNING && ms > PART_FOR_PLANNING * TIME_OF_COST * cost &&
		parallel_setup_cost > 0;
}

/* ----------
 * The choice
 * ----------
 */

/* What is compared: topmost nodes, or copies of these with other costs */
typedef struct Choice
{
	Plan		core;
	Plan		ours;			/* without the flush */
	FlushCost	flush;
	FlushSaving saving;
	bool		user_code;		/* may a process run functions that are not
								 * core's? */
} Choice;

/*
 * The cost of the subplans of stmt.  Which alternative an expression uses is found out when
 * the plan is complete, so that they are all of which two plans may differ.
 */
static Cost
cost_of_subplans(PlannedStmt *stmt)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, stmt->subplans)
		cost += lfirst(lc) == NULL ? 0 : ((Plan *) lfirst(lc))->total_cost;
	return cost;
}

/* Add what lookups of core's plan and of ours, with facts all, cost, where that is known. */
static void
add_copies(Choice *choice, PlannedStmt *core, const PlanFacts *all)
{
	/* tables have more pages than the pool only if all buffers were used */
	if (tp_used_buffers() < tp_pool_size())
		return;
	choice->ours.total_cost += tp_cost_of_copies(all->lookups);
	choice->core.total_cost += tp_cost_of_copies(tp_statement_facts(core).lookups);
}

/*
 * Does our plan cost less than core's without the flush?  If not, of a statement that is to be
 * run ahead, *refusal says why: such a plan has to cost LARGEST_PART of core's, or less.
 * Completes choice->saving.
 */
static bool
gains(Choice *choice, PlanFor purpose, Refusal *refusal)
{
	choice->saving.charge = choice->flush.charge + choice->flush.search;
	choice->saving.saving = choice->core.total_cost - choice->ours.total_cost;
	if (purpose == PLAN_QUERY)
		return plan_costs_less(&choice->ours, &choice->core);
	if (plan_costs_less(&choice->ours, &choice->core) &&
		choice->ours.total_cost <= LARGEST_PART * choice->core.total_cost)
		return true;
	*refusal = RUN_AHEAD_GAINS_LITTLE;
	return false;
}

/* Does our plan cost less with the flush, too? */
static bool
pays(const Choice *choice)
{
	Plan		charged = choice->ours;

	charged.total_cost += choice->saving.charge;
	return plan_costs_less(&charged, &choice->core);
}

/*
 * Plan the statement of call, for purpose, with the temporary tables without left to the
 * leader.  Returns the plan with its flush nodes, and in *choice how it compares with core's,
 * but for gains(); or NULL if it has no workers for temporary tables, and in *refusal why, if
 * that is not by its costs.
 */
static PlannedStmt *
plan_with_workers(const PlannerCall *call, PlanFor purpose, List *without,
				  PlannedStmt *core, Choice *choice, Refusal *refusal)
{
	PlannerCall again = *call;
	Query	   *parse = copyObject(call->args.parse);	/* the planner modifies
														 * it */
	bool		only_ours = purpose != PLAN_QUERY;
	List	   *defaults = tp_take_defaults(parse);
	PlannedStmt *stmt;
	PlanFacts	all;
	List	   *gathers;

	*refusal = tp_query_refusal(parse, purpose);
	if (*refusal != NOT_REFUSED)
		return NULL;
	again.args.parse = parse;
	again.args.cursorOptions |= CURSOR_OPT_PARALLEL_OK;
	stmt = tp_call_planner(&again, purpose, without);
	if (!stmt->parallelModeNeeded)
		return NULL;

	all = tp_statement_facts(stmt);
	gathers = tp_gather_facts(stmt, all.gathers);
	if (!tp_workers_may_run(stmt, &all, gathers, only_ours))
		*refusal = only_ours ? RUN_AHEAD_UNSAFE :
			stmt->rowMarks != NIL ? NO_WORKERS_LOCKS : NO_WORKERS_UNSAFE;
	else if (purpose == PLAN_MODIFICATION)
		*refusal = tp_modification_refusal(stmt, &all, gathers, defaults);
	if (*refusal != NOT_REFUSED)
		return NULL;

	tp_add_dependencies(stmt, &all);
	choice->user_code = all.user_code;
	choice->flush = tp_place_flush_nodes(stmt, &all, gathers, &choice->saving);
	if (purpose == PLAN_QUERY && choice->saving.relids == NIL)
		return NULL;
	if (purpose == PLAN_MODIFICATION)
		tp_place_run_ahead_node(stmt, defaults, all.last_node_id + 1);
	if (purpose == PLAN_PORTIONS)
	{
		*refusal = tp_place_for_portions(stmt, core, &all, &choice->ours, &choice->core);
		if (stmt->parallelModeNeeded)
			return NULL;
	}
	else
	{
		choice->ours = *stmt->planTree;
		choice->core = *core->planTree;
		if (without == NIL && choice->ours.total_cost == choice->core.total_cost)
		{
			choice->ours.total_cost += cost_of_subplans(stmt);
			choice->core.total_cost += cost_of_subplans(core);
		}
	}
	add_copies(choice, core, &all);
	return stmt;
}

/*
 * A flush is expensive above the first part of what workers save, and of it, tables at or above
 * the second part of what is charged for the most expensive one.
 */
#define EXPENSIVE_FLUSH	0.1
#define EXPENSIVE_TABLE	0.5

/* The tables that are expensive to flush, and that workers read in choice, if not all are. */
static List *
expensive_tables(const Choice *choice)
{
	List	   *relids = choice->saving.relids;
	Cost	   *charge = palloc(list_length(relids) * sizeof(Cost));
	Cost		most = 0;
	List	   *result = NIL;
	ListCell   *lc;

	if (choice->flush.charge <= EXPENSIVE_FLUSH * choice->saving.saving)
		return NIL;
	foreach(lc, relids)
	{
		FlushCost	flush = tp_flush_estimate(list_make1_oid(lfirst_oid(lc)),
											  choice->saving.indexes, choice->user_code);

		charge[foreach_current_index(lc)] = flush.charge;
		most = Max(most, flush.charge);
	}
	foreach(lc, relids)
	{
		/* infinite ones are equal */
		if (charge[foreach_current_index(lc)] >= EXPENSIVE_TABLE * most)
			result = lappend_oid(result, lfirst_oid(lc));
	}
	return list_length(result) < list_length(relids) ? result : NIL;
}

/* Take stmt: add the flush to its costs, and note what its workers save, both by choice. */
static PlannedStmt *
take(PlannedStmt *stmt, const Choice *choice)
{
	tp_charge_flush(stmt, choice->saving.charge);
	tp_note_saving(stmt, &choice->saving, false);
	return stmt;
}

/* Note in stmt that workers for the tables of saving would save that, but for the flush. */
static void
note_lost(PlannedStmt *stmt, const FlushSaving *saving)
{
	if (saving->relids != NIL && saving->saving > 0)
		tp_note_saving(stmt, saving, true);
}

/*
 * The plan with workers that is to be taken for the statement of call, or NULL for core, core's
 * plan, and then in *refusal why, or NOT_REFUSED if that is only cheaper.  The planning of core
 * began at start, by clock().
 *
 * Where some tables are expensive to flush, there is a third plan, in which workers leave these
 * to the leader.  That takes the place of core's if it costs less.  What is not taken only
 * because of the flush is noted as lost: for the accounts of the tables that the third plan leaves
 * to the leader what it costs more than ours, and for those of the others what it would save.
 */
static PlannedStmt *
choose(const PlannerCall *call, PlanFor purpose, PlannedStmt *core, clock_t start,
	   Refusal *refusal)
{
	Choice		choice = {0};
	Choice		part = {0};
	PlannedStmt *ours = plan_with_workers(call, purpose, NIL, core, &choice, refusal);
	PlannedStmt *other = core;
	PlannedStmt *third = NULL;
	bool		gain = ours != NULL && gains(&choice, purpose, refusal);
	List	   *expensive;
	FlushSaving lost;
	Refusal		ignored;

	/* the server's tests want workers whatever they cost */
	if (ours != NULL && purpose == PLAN_QUERY && debug_parallel_query != DEBUG_PARALLEL_OFF)
	{
		choice.saving.saving = Max(choice.saving.saving, choice.saving.charge);
		return take(ours, &choice);
	}
	if (!gain)
		return NULL;

	lost = choice.saving;
	expensive = purpose == PLAN_PORTIONS || took_too_long(start, core->planTree->total_cost) ?
		NIL : expensive_tables(&choice);
	if (expensive != NIL)
		third = plan_with_workers(call, purpose, expensive, core, &part, &ignored);
	/* if it does not pay for the search of the pool, it never will */
	if (third != NULL && gains(&part, purpose, &ignored) &&
		part.saving.saving > part.flush.search)
	{
		FlushCost	flush;

		/* a partition that it leaves to the leader leaves all of its table */
		lost.relids = list_difference_oid(choice.saving.relids, part.saving.relids);
		flush = tp_flush_estimate(lost.relids, lost.indexes, choice.user_code);
		lost.searched = part.saving.relids != NIL;
		lost.charge = flush.charge + (lost.searched ? 0 : flush.search);
		lost.saving = part.ours.total_cost - choice.ours.total_cost;
		if (pays(&part))
		{
			other = take(third, &part);
			choice.core = part.ours;
			choice.core.total_cost += part.saving.charge;
		}
		else
			note_lost(core, &part.saving);
	}
	if (pays(&choice))
		return take(ours, &choice);
	note_lost(other, &lost);
	return other == core ? NULL : other;
}

/*
 * Core's plan stmt needs parallel mode: place flush nodes for the values that its workers
 * are sent.  Without a Gather, parallel mode is debug_parallel_query's.
 */
static void
place_in_core_plan(PlannedStmt *stmt)
{
	PlanFacts	all = tp_statement_facts(stmt);
	List	   *gathers = tp_gather_facts(stmt, all.gathers);
	FlushSaving saving = {0};

	if (gathers == NIL && !tp_workers_may_run(stmt, &all, gathers, false))
		stmt->parallelModeNeeded = false;
	else if (all.temp_tables != NIL)
		(void) tp_place_flush_nodes(stmt, &all, gathers, &saving);
}

/* Plan a statement: what planner_hook has to do. */
PlannedStmt *
tp_plan_statement(const PlannerCall *call)
{
	PlannerCall again = *call;
	PlanFor		purpose;
	Refusal		refusal = NOT_REFUSED;
	PlannedStmt *core;
	clock_t		start;

	/*
	 * With "regress", which is for the server's tests, EXPLAIN hides the
	 * Gather, as if there were no workers, but would show the flush node.
	 */
	if (!tp_enabled || !tp_session_has_temp_tables() ||
		debug_parallel_query == DEBUG_PARALLEL_REGRESS ||
		max_parallel_workers_per_gather == 0 || IsParallelWorker())
		return tp_call_planner(call, PLAN_AS_CORE, NIL);

	purpose = purpose_of(call);
	if (purpose == PLAN_AS_CORE)
	{
		if (tp_inserts_values(call->args.parse))
			refusal = RUN_AHEAD_VALUES;
		core = tp_call_planner(call, PLAN_AS_CORE, NIL);
	}
	else
	{
		/* the planner modifies its Query */
		again.args.parse = copyObject(call->args.parse);
		start = clock();
		core = tp_call_planner(call, PLAN_AS_CORE, NIL);
		if (may_cost_less(core, purpose))
		{
			PlannedStmt *ours = NULL;

			if (took_too_long(start, core->planTree->total_cost))
				refusal = NO_WORKERS_PLANNING;
			else
				ours = choose(&again, purpose, core, start, &refusal);
			if (ours != NULL)
				return ours;
		}
		else if (purpose == PLAN_PORTIONS && core->planTree->total_cost > parallel_setup_cost)
			refusal = RUN_AHEAD_NO_PART;
	}

	if (core->parallelModeNeeded)
		place_in_core_plan(core);
	else
		tp_note_refusal(core, refusal);
	return core;
}
