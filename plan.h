/*-------------------------------------------------------------------------
 *
 * plan.h
 *	  Planning: two plans of a statement and the choice between them, paths over
 *	  temporary tables, and the nodes in a finished plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PLAN_H
#define PLAN_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"

#include "executor/execdesc.h"
#include "localbuf.h"

/* plan_paths.c */
extern void tp_add_worker_visible_paths(PlannerInfo *root, RelOptInfo *rel,
										Index rti, RangeTblEntry *rte);
extern void tp_aggregate_arrays_in_leader(PlannerInfo *root);

/* plan_call.c */
/* What the planner is called for */
typedef enum PlanFor
{
	PLAN_AS_CORE,				/* a plan with no thought of temporary tables */
	PLAN_QUERY,					/* workers may read temporary tables */
	PLAN_MODIFICATION,			/* the same, to find the rows that are changed */
	PLAN_PORTIONS				/* or those that are fetched in portions */
} PlanFor;

extern bool tp_planning_temp_tables(void);
extern bool tp_planning_without(Oid relid);
extern bool tp_planning_modification(void);
extern void tp_allow_parallel(PlannerInfo *root);
extern PlannedStmt *tp_call_planner(const PlannerCall *call, PlanFor purpose,
									List *without);

/* plan_processors.c */
extern int	tp_usable_processors(void);
extern bool tp_processors_are_busy(Cost cost);
extern int	tp_process_limit(Plan *plan, int workers);

/* plan_facts.c */
#define FLUSH_NODE_NAME		"TempFlush"
#define RUN_AHEAD_NODE_NAME	"RunAhead"

typedef struct PlanFacts
{
	List	   *temp_tables;	/* OIDs of this session's, without duplicates */
	List	   *indexes;		/* the same for their indexes that are scanned */
	Bitmapset  *subplans;		/* plan_ids */
	List	   *gathers;		/* Gather and Gather Merge nodes */
	List	   *lookups;		/* of Lookup, in temporary tables */
	int			pins;			/* number of local buffers for all pages that
								 * may be pinned at once */
	int			last_node_id;	/* the highest plan_node_id */
	bool		user_code;		/* may run code that is not core's */
	bool		looks_at_statement; /* calls a volatile function that may look
									 * at its statement, or reads a sequence */
	bool		calls_volatile; /* calls any volatile function */
	bool		varies_by_run;	/* may have another result each time that it
								 * is run: the same, a sample, a sequence or a
								 * foreign table */
	bool		reads_versions; /* xmin, xmax, cmin or cmax of a table */
	bool		hidden_unsafe;	/* makes values in which there may be a
								 * domain, or compares values by functions
								 * that are not parallel safe */
	bool		calls_restricted;	/* a function that is not parallel safe */
	bool		calls_unsafe;	/* one that is parallel unsafe */
	bool		depends_on_client;	/* on the encoding of the client */
	bool		has_params;		/* uses external parameters */
	bool		unknown;		/* has nodes that plan_facts.c does not know */
	List	   *depends;		/* of PlanInvalItem, for functions of
								 * aggregates, which core does not record */
} PlanFacts;

typedef struct GatherFacts
{
	Plan	   *gather;
	PlanFacts	below;			/* what each process runs */
	bool		repeats_what_varies;	/* does it run a part as a whole that
										 * has another result each time? */
} GatherFacts;

typedef struct Lookup			/* a scan that is executed more than once */
{
	Plan	   *scan;
	Oid			table;
	Oid			index;			/* or InvalidOid */
	double		loops;			/* number of executions */
	bool		in_subplan;
} Lookup;

extern bool tp_is_flush_node(Plan *plan);
extern List *tp_plan_children(Plan *plan);
extern Plan **tp_tuple_bound_child(Plan *plan);
extern List *tp_plan_expressions(Plan *plan);
extern PlanFacts tp_plan_facts(Plan *plan, PlannedStmt *stmt);
extern PlanFacts tp_statement_facts(PlannedStmt *stmt);
extern List *tp_gather_facts(PlannedStmt *stmt, List *gathers);
extern PlanFacts tp_expression_facts(List *expressions, PlannedStmt *stmt);
extern void tp_add_dependencies(PlannedStmt *stmt, const PlanFacts *facts);

/* plan_expression.c */
extern bool tp_contains(Node *node, bool (*test) (Node *));
extern bool tp_is_user_code(Oid function);
extern bool tp_has_user_object(List *oids);
extern bool tp_expression_is_user_code(Node *node);
extern void tp_add_expression(Node *node, PlanFacts *facts);
extern bool tp_names_temp_table(List *rtable);
extern bool tp_has_temp_child(RangeTblEntry *rte);
extern bool tp_any_range_table_entry(Query *query, bool (*test) (Node *));
extern bool tp_reads_temp_table(Query *query);

extern PlanInvalItem *tp_dependency(Oid function);

/* plan_lookup.c */
extern double tp_pages_of_lookups(List *lookups, bool with_subplans);
extern Cost tp_cost_of_copies(List *lookups);

/* plan_note.c */
typedef enum Refusal
{
	NOT_REFUSED,
	RUN_AHEAD_PERMANENT_TARGET,
	RUN_AHEAD_MODIFYING_WITH,
	RUN_AHEAD_VALUES,
	RUN_AHEAD_UNSAFE,
	RUN_AHEAD_VOLATILE,
	RUN_AHEAD_SUBQUERY,
	RUN_AHEAD_CURRENT_OF,
	RUN_AHEAD_UNIQUE_COLUMN,
	RUN_AHEAD_TRIGGER,
	RUN_AHEAD_CONFLICT,
	RUN_AHEAD_LOCKED,
	RUN_AHEAD_TOO_WIDE,
	RUN_AHEAD_GAINS_LITTLE,
	RUN_AHEAD_TOO_LARGE,
	RUN_AHEAD_NO_PART,
	NO_WORKERS_MODIFYING_WITH,	/* from here on, of a query */
	NO_WORKERS_LOCKS,
	NO_WORKERS_UNSAFE,
	NO_WORKERS_PLANNING
} Refusal;

/* what workers save in a statement if its tables are clean, or would save */
typedef struct FlushSaving
{
	Cost		saving;			/* without the flush */
	Cost		charge;			/* of the flush, with the search, when planned */
	bool		searched;		/* does the plan without these workers, which
								 * has others, search the pool, too?  Then
								 * charge is without that. */
	List	   *relids;			/* temporary tables that they read */
	List	   *indexes;		/* those of their indexes that they scan */
} FlushSaving;

extern void tp_note_refusal(PlannedStmt *stmt, Refusal refusal);
extern Refusal tp_refusal_of(PlannedStmt *stmt);
extern void tp_note_saving(PlannedStmt *stmt, const FlushSaving *saving, bool lost);
extern bool tp_has_lost_saving(PlannedStmt *stmt);
extern List *tp_savings_of(PlannedStmt *stmt, bool lost);
extern FlushSaving tp_sum_of_savings(List *savings);
extern FlushSaving tp_saving_of(PlannedStmt *stmt);
extern void tp_replan_for(Oid relid);

/* plan_saving.c */
extern bool tp_credit_savings(List *savings, PlanState *root);

/* plan_place.c */
/* A worker has so many local buffers, or the session's temp_buffers if that is less. */
#define LEAST_WORKER_POOL	1024

typedef struct FlushPlan
{
	FlushCost	planned;		/* the planner's estimate for this Gather */
	Cost		charge;			/* what it adds to those before it */
	int			pool;			/* size of the pool that a worker needs */
	int			leader_pins;	/* local buffers that the leader needs for the
								 * whole statement */
	int			processes;		/* that may run the plan below; 0: no limit */
	bool		user_code;		/* may workers run functions that are not
								 * core's? */
	bool		any_user_code;	/* may any process run such functions while
								 * there are workers? */
	bool		looks_at_statement; /* or a volatile function that may look at
									 * its statement? */
	bool		calls_volatile; /* or any volatile function? */
	List	   *relids;			/* temporary tables that the workers may read */
	List	   *indexes;		/* those of their indexes that they may read */
} FlushPlan;

extern const char *tp_flush_plan_release(CustomScan *cscan);
extern FlushPlan tp_flush_plan(CustomScan *cscan);
extern CustomScan *tp_find_flush_node(Plan *top);
extern FlushCost tp_place_flush_nodes(PlannedStmt *stmt, PlanFacts *all,
									  List *gathers, FlushSaving *saving);
extern void tp_charge_flush(PlannedStmt *stmt, Cost charge);
extern bool tp_rows_exceed_file_limit(const Plan *plan);
extern CustomScan *tp_run_ahead_node(Plan *child, int plan_node_id);
extern void tp_place_run_ahead_node(PlannedStmt *stmt, List *defaults,
									int plan_node_id);

/* plan_refuse.c */
/*
 * A plan that is run ahead has to cost this part of the one without workers, or less.
 * Core has no such plan for any table, so where an estimate is wrong it is a loss that
 * only this module makes; and most plans that the planner takes to be slightly better
 * are not (bench/planner_choice --kinds insert).
 */
#define LARGEST_PART	0.85

extern bool tp_reads_large_table(Query *query);
extern bool tp_may_run_ahead(Query *query);
extern bool tp_inserts_values(Query *query);
extern Refusal tp_query_refusal(Query *query, PlanFor purpose);
extern bool tp_have_subplan(List *expressions);
extern bool tp_client_has_other_encoding(void);
extern bool tp_must_run_in_leader(List *gathers, bool only_ours);
extern bool tp_workers_may_run(PlannedStmt *stmt, const PlanFacts *all,
							   List *gathers, bool only_ours);
extern Refusal tp_modification_refusal(PlannedStmt *stmt, const PlanFacts *all,
									   List *gathers, List *defaults);
extern List *tp_take_defaults(Query *query);

/* plan_row_order.c */
extern Refusal tp_order_refusal(PlannedStmt *stmt, List *above);

/* plan_portions.c */
extern bool tp_reads_all_first(PlannedStmt *stmt);
extern bool tp_may_run_portions_ahead(Query *query);
extern bool tp_finds_first_row_late(PlannedStmt *serial);
extern Refusal tp_place_for_portions(PlannedStmt *stmt, PlannedStmt *serial,
									 const PlanFacts *all, Plan *ours,
									 Plan *first_row);
extern CustomScan *tp_node_for_execution(PlannedStmt *stmt, const FlushPlan *first,
										 Cost saving, Plan **place);

/* plan_explain.c */
extern const char *tp_refusal_text(PlannedStmt *stmt);
extern void tp_explain_saving(PlannedStmt *stmt, ExplainState *es);

/* plan_statement.c */
extern PlannedStmt *tp_plan_statement(const PlannerCall *call);

#endif							/* PLAN_H */
