/*-------------------------------------------------------------------------
 *
 * plan.h
 *	  Planning: paths over temporary tables, the charge for the flush, and the
 *	  flush node in a finished plan.
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

/* plan_gather_cost.c */
typedef enum FlushCharging
{
	NOT_FOR_WORKERS,			/* no worker may read temporary tables */
	CHARGE_FLUSH,				/* Gather is charged with the flush */
	CHARGE_CLEAN				/* the same as if all tables were clean */
} FlushCharging;

typedef struct FlushCharges
{
	FlushCharging charging;
	Query	   *query;			/* a copy of what is planned, or NULL */
	LocalBufStats *stats;		/* what the charges are of, or NULL if not
								 * counted yet */
	bool		charged;		/* was a Gather charged for writing pages? */
} FlushCharges;

extern PlannedStmt *tp_planner_with_flush_cost(planner_hook_type next,
											   PLANNER_HOOK_ARGS,
											   FlushCharging charging,
											   FlushCharges *charges);
extern bool tp_planning_temp_tables(void);
extern void tp_charge_gather_of_rel(PlannerInfo *root, RelOptInfo *rel);
extern void tp_charge_gather_of_setop(PlannerInfo *root, RelOptInfo *final);
extern RelOptInfo *tp_next_join_search(join_search_hook_type next,
									   PlannerInfo *root, int levels_needed,
									   List *initial_rels);
extern RelOptInfo *tp_join_search_with_flush_cost(join_search_hook_type next,
												  PlannerInfo *root,
												  int levels_needed,
												  List *initial_rels);

/* plan_saving.c */
typedef struct FlushSaving
{
	Cost		saving;			/* of a plan with workers, if tables are clean */
	List	   *relids;			/* the tables that it would flush */
	List	   *indexes;		/* the same of their indexes */
	List	   *shares;			/* of FlushSaving without shares: its parts by
								 * the tables that they take to be clean */
	bool		paid;			/* of a share: was it more than the charge of
								 * its tables when the plan was made? */
} FlushSaving;

extern Cost tp_gather_cost_alone(Plan *gather, PlannedStmt *stmt);
extern void tp_divide_saving(FlushSaving *saving, PlannedStmt *stmt);
extern bool tp_note_saving(PlannedStmt *stmt, List *flushed,
						   LocalBufStats *stats, planner_hook_type next,
						   PLANNER_HOOK_ARGS);
extern bool tp_has_saving(PlannedStmt *stmt);
extern bool tp_saving_of(PlannedStmt *stmt, FlushSaving *saving);
extern bool tp_credit_saving(FlushSaving *saving, PlanState *root,
							 PlannedStmt *stmt);

/* plan_insert.c */
typedef enum InsertRefusal
{
	INSERT_MAY_BE_PARALLEL,
	INSERT_OTHER_TARGET,
	INSERT_MODIFIES_MORE,
	INSERT_UNSAFE_QUERY,
	INSERT_VOLATILE_QUERY,
	INSERT_SHARES_CTE
} InsertRefusal;

typedef struct InsertPlanning	/* a call of the planner */
{
	struct InsertPlanning *outer;
	char		hazard;			/* see tp_begin_planning_insert() */
} InsertPlanning;

extern bool tp_is_insert_select(Query *query);
extern InsertRefusal tp_insert_refusal(Query *query, char *hazard);
extern void tp_begin_planning_insert(InsertPlanning *call, char hazard);
extern void tp_end_planning_insert(InsertPlanning *call);
extern bool tp_planning_insert(void);
extern void tp_allow_parallel_insert(PlannerGlobal *glob, Query *parse);
extern void tp_note_serial_insert(PlannedStmt *stmt, InsertRefusal refusal);
extern const char *tp_serial_insert_reason(PlannedStmt *stmt);

/* plan_select_node.c */
#define SELECT_NODE_NAME	"ParallelSelect"

extern void tp_place_select_node(PlannedStmt *stmt);
extern Plan *tp_parallel_part(PlannedStmt *stmt);
extern bool tp_needs_parallel_mode(PlannedStmt *stmt);

/* plan_repeated.c */
extern bool tp_is_repeated(Plan *plan, Plan *child);
extern Cost tp_repeated_in_node(Plan *plan);
extern double tp_parallel_divisor(int workers);
extern Cost tp_cost_of_few_processors(Path *path);
extern int	tp_process_limit(Plan *plan, int workers, Cost *repeated);

/* plan_walk.c */
typedef struct PlanContents
{
	List	   *temp_tables;	/* OIDs of this session's, without duplicates */
	List	   *indexes;		/* the same for indexes that are scanned */
	Bitmapset  *subplans;		/* plan_ids */
	bool		user_code;		/* may run functions that are not core's */
	bool		unsafe_check;	/* a domain's constraint is not parallel safe */
	bool		unknown;		/* has nodes that plan_walk.c does not know */
} PlanContents;

extern List *tp_plan_children(Plan *plan);
extern int	tp_last_plan_node_id(PlannedStmt *stmt);
extern Oid	tp_scanned_temp_table(Plan *plan, List *rtable);
extern PlanContents tp_plan_contents(Plan *plan, List *rtable, List *subplans);
extern PlanContents tp_statement_contents(PlannedStmt *stmt);
extern bool tp_names_temp_table(List *rtable);
extern bool tp_may_read_temp_table(Query *query);
extern bool tp_reads_others(PlannedStmt *stmt, List *relids);
extern List *tp_statement_gathers(PlannedStmt *stmt);

/* plan_user_code.c */
extern bool tp_expression_is_user_code(Node *node);
extern bool tp_plan_node_is_user_code(Plan *node);

/* plan_domains.c */
typedef bool (*ExpressionWalker) (Node *node, void *context);

extern bool tp_walk_domains(Node *node, ExpressionWalker walker, void *context);
extern bool tp_checks_unsafe_domain(Node *node);

/* plan_price.c */
extern bool tp_runs_user_code(PlannedStmt *stmt);
extern LocalBufStats *tp_stats_for_query(Query *query);
extern LocalBufStats *tp_stats_for_statement(PlannedStmt *stmt);

/* plan_pins.c */
extern int	tp_plan_pins(Plan *plan, Bitmapset *plan_ids, PlannedStmt *stmt);

/* plan_lookups.c */
extern Cost tp_cost_of_copies_in_worker(PlannedStmt *stmt);
extern bool tp_costs_less_with_copies(PlannedStmt *stmt, Cost other);
extern int	tp_plan_lookup_pages(Plan *plan, Bitmapset *plan_ids,
								 PlannedStmt *stmt);

/* plan_flush_node.c */
#define FLUSH_NODE_NAME	"TempFlush"

typedef struct FlushPlan
{
	List	   *relids;			/* temporary tables that the workers may read */
	List	   *pages;			/* of the tables when planned, in that order */
	List	   *indexes;		/* those of their indexes that they may read */
	FlushCost	planned;		/* the planner's estimate */
	int			pool;			/* size of the pool that a worker needs */
	bool		user_code;		/* may workers run functions that are not
								 * core's? */
	int			processes;		/* that may run the plan below; 0: no limit */
	Cost		repeated;		/* what of its cost each of them repeats, if
								 * limited */
} FlushPlan;

extern CustomScan *tp_make_flush_node(Plan *child, const FlushPlan *info,
									  int plan_node_id);
extern bool tp_is_flush_node(Plan *plan);
extern const char *tp_flush_plan_release(CustomScan *cscan);
extern FlushPlan tp_flush_plan(CustomScan *cscan);

/* plan_placement.c */
extern List *tp_place_flush_nodes(PlannedStmt *stmt,
								  const FlushCharges *charges);
extern CustomScan *tp_find_flush_node(Plan *top);

#endif							/* PLAN_H */
