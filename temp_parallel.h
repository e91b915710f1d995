/*-------------------------------------------------------------------------
 *
 * temp_parallel.h
 *	  What the files of temp_parallel offer each other.
 *
 * One section per file, in the order in which a statement meets them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEMP_PARALLEL_H
#define TEMP_PARALLEL_H

#include "postgres.h"

#include "access/amapi.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "temp_parallel_compat.h"

/* temp_parallel.c: the module's door */
extern bool tp_enabled;
extern double tp_write_temp_page_cost;
extern double tp_buffer_scan_cost;
extern int	tp_worker_temp_buffers;

extern bool tp_session_has_temp_tables(void);
extern bool tp_is_session_temp_table(Oid relid);

/* localbuf_family.c: a temporary table with all that hangs on it */
extern Relation tp_relation_open(Oid relid);
extern List *tp_family_open(Oid relid);
extern List *tp_family_open_part(Oid relid, List *indexes);
extern void tp_family_close(List *family);

/* localbuf_relations.c: whose pages are in the pool? */
typedef struct TempRelation
{
	RelFileLocator locator;		/* hash key */
	Oid			relid;
	Oid			owner;
	Oid			table;			/* that it hangs on; itself, if a table */
	char		relkind;
	Oid			relam;
	bool		of_toast;		/* TOAST table, or that one's index */
} TempRelation;

extern HTAB *tp_session_temp_relations(void);

/* localbuf_stats.c: counting the pool */
typedef struct LocalBufCount
{
	RelFileLocator locator;		/* hash key */
	int			allocated;		/* buffers that hold a page of it */
	int			dirtied;		/* those of them that are dirty */
} LocalBufCount;

typedef struct LocalBufStats
{
	int			allocated;		/* local buffers that have storage */
	int			dirtied;		/* local buffers that are dirty */
	HTAB	   *relations;		/* of LocalBufCount */
} LocalBufStats;

extern LocalBufStats *tp_localbuf_stats_collect(void);
extern LocalBufStats *tp_localbuf_stats_for_price(void);
extern LocalBufCount *tp_localbuf_stats_relation(LocalBufStats *stats,
											  Relation rel);
extern bool tp_local_buffer_is_pinned(int i);

/* localbuf_read.c: pages into the pool, and dirty there */
extern BlockNumber tp_read_into_local_buffers(Relation rel, bool randomize);
extern int64 tp_dirty_local_buffers_of(Relation rel);

/* flush_cost.c: the cost model */
typedef struct FlushCost
{
	int			allocated;		/* buffers in the pool, all relations */
	int			dirtied;		/* pages the flush would write */
	Cost		cost;			/* what that costs */
} FlushCost;

extern double tp_tablespace_factor(Relation rel);
extern FlushCost tp_flush_cost_of_table(LocalBufStats *stats, Oid relid);
extern FlushCost tp_flush_cost_of_tables(LocalBufStats *stats, List *relids,
									  List *indexes);
extern FlushCost tp_flush_cost_of_pool(LocalBufStats *stats);

/* plan_gather_cost.c: who pays for the flush */
extern PlannedStmt *tp_planner_with_flush_cost(planner_hook_type next,
											PLANNER_HOOK_ARGS,
											bool consider_temp);
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

/* plan_paths.c: worker-visible paths */
extern void tp_add_worker_visible_paths(PlannerInfo *root, RelOptInfo *rel,
									 Index rti, RangeTblEntry *rte);

/* plan_walk.c: which temporary tables a finished plan reads */
typedef struct PlanContents
{
	List	   *temp_tables;	/* OIDs of this session's, without duplicates */
	List	   *indexes;		/* the same of their indexes that are scanned */
	Bitmapset  *subplans;		/* plan_ids */
	bool		user_code;		/* may run functions that are not core's */
	bool		unknown;		/* there are nodes that hide what they read */
} PlanContents;

extern List *tp_plan_children(Plan *plan);
extern PlanContents tp_plan_contents(Plan *plan, List *rtable, List *subplans);
extern PlanContents tp_statement_contents(PlannedStmt *stmt);
extern bool tp_names_temp_table(List *rtable);
extern List *tp_statement_gathers(PlannedStmt *stmt);

/* plan_user_code.c: may a plan run code that is not core's? */
extern bool tp_expression_is_user_code(Node *node);
extern bool tp_plan_node_is_user_code(Plan *node);

/* plan_pins.c: how many local buffers a plan may have pinned */
extern int	tp_plan_pins(Plan *plan, Bitmapset *plan_ids, PlannedStmt *stmt);

/* plan_placement.c: the flush node's place in a finished plan */
extern void tp_place_flush_nodes(PlannedStmt *stmt, LocalBufStats *stats);

/* exec_flush.c: Custom Scan (TempFlush) */
typedef struct TempFlushPlan
{
	List	   *relids;			/* temporary tables that the workers may read */
	List	   *indexes;		/* those of their indexes that they may read */
	FlushCost	planned;		/* what the planner reckoned with */
	int			pins;			/* local buffers that a worker may have pinned */
	bool		user_code;		/* may workers run functions that are not
								 * core's? */
} TempFlushPlan;

extern void tp_flush_register(void);
extern CustomScan *tp_make_flush_node(Plan *child, const TempFlushPlan *info,
								   int plan_node_id);
extern CustomScan *tp_find_flush_node(Plan *top);
extern void tp_flush_enter_worker(QueryDesc *queryDesc);
extern void tp_flush_check_worker(QueryDesc *queryDesc);
extern void tp_flush_run_in_worker(ExecutorRun_hook_type next,
								   EXECUTOR_RUN_ARGS);
extern bool tp_is_flush_node(Plan *plan);
extern List *tp_find_flush_nodes(PlanState *root);
extern void tp_skip_flush_nodes(List *flush_nodes);
extern void tp_count_launched_workers(List *flush_nodes);
extern TempFlushPlan tp_flush_plan(CustomScan *cscan);

/* localbuf_hints.c: hint bits on pages that are about to be written */
typedef struct KnownXid
{
	TransactionId xid;
	uint16		hint;			/* what to set in t_infomask, if anything */
} KnownXid;

typedef struct KnownXids		/* zeroes: nothing is known */
{
	KnownXid	xmin;
	KnownXid	xmax;
} KnownXids;

extern bool tp_heap_takes_hints(Relation rel);
extern int	tp_session_heaps(RelFileLocator **heaps);
extern void tp_heap_set_hints(Page page, KnownXids *known);

/* localbuf_flush.c: writing dirty local buffers */
extern int	tp_compare_locators(const void *a, const void *b);
extern int64 tp_flush_local_buffers(const RelFileLocator *locators, int nlocators,
								 const RelFileLocator *heaps, int nheaps);
extern int64 tp_flush_local_buffers_of(List *relations);

/* exec_second_look.c: is the parallel plan still worth its flush? */
extern bool tp_leader_alone_is_cheaper(PlannedStmt *stmt, List *flush_nodes);

/* readonly_phase.c: for how long reads leave nothing behind */
extern void tp_run_with_readonly_tables(ExecutorRun_hook_type next,
									 EXECUTOR_RUN_ARGS);
extern void tp_run_with_hint(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS);
extern bool tp_table_is_readonly(Oid relid);
extern List *tp_readonly_begin_in_worker(List *relids);
extern void tp_readonly_end_in_worker(List *relations);
extern void tp_readonly_relcache_callback(Datum arg, Oid relid);

/* readonly_heap.c: heap's access method, leaving nothing behind */
extern void tp_readonly_heap_init(void);
extern const TableAmRoutine *tp_readonly_heap_routine(void);

/* readonly_index.c: the same for indexes */
extern IndexAmRoutine *tp_readonly_index_routine(Relation index);

/* exec_sent_values.c: values that the leader sends to workers */
extern ParamListInfo tp_wrap_params(QueryDesc *queryDesc);
extern void tp_unwrap_params(QueryDesc *queryDesc, ParamListInfo original);
extern void tp_inline_initplans(QueryDesc *queryDesc);
extern void tp_check_sent_values(QueryDesc *queryDesc);

/* exec_worker_relations.c: temporary relations that a worker must not read */
extern void tp_refuse_other_relations(List *relids, List *indexes);
extern void tp_release_other_relations(void);
extern void tp_refuse_again(Oid relid);

/* exec_worker.c: a worker's entrance to local buffers */
extern void tp_worker_open_local_buffers(Relation rel, int pins);
extern void tp_worker_refuse_utility(Node *statement);
extern void tp_worker_refuse_statement(List *rtable);
extern void tp_worker_refuse_query(Query *query);

/* func_checks.c: what SQL functions ask of their caller */
typedef enum TempTableAccess
{
	MAY_READ_TABLE,				/* SELECT */
	MUST_OWN_TABLE
} TempTableAccess;

extern void tp_refuse_in_worker(void);
extern void tp_refuse_while_workers_read(const char *function);
extern Oid	tp_temp_table_argument(FunctionCallInfo fcinfo, int argno,
								TempTableAccess access);

/* localbuf_evict.c: pages out of the pool */
typedef struct LocalBufEviction
{
	int			evicted;		/* pages taken out of the pool */
	int			flushed;		/* pages written */
	int			skipped;		/* pages that stay */
} LocalBufEviction;

extern LocalBufEviction tp_evict_local_buffers(RelFileLocator *locators,
											int nlocators);
extern LocalBufEviction tp_evict_local_buffers_of_table(Oid relid);

/* localbuf_dropped.c: pages of tables that another session has dropped */
extern bool tp_file_was_missing;

extern void tp_begin_noting_missing_files(ErrorContextCallback *context);
extern void tp_end_noting_missing_files(ErrorContextCallback *context);
extern void tp_discard_dropped_relations(void);
extern void tp_discard_after_missing_file(void);

/* func_stats.c: what it has cost so far */
typedef struct SessionStats
{
	int64		flushes;		/* before a launch of workers */
	int64		pages_flushed;	/* by these */
	double		flush_time;		/* milliseconds they took */
	int64		workers_launched;	/* for plans with a flush node */
	int64		hints_dropped;	/* pages, in the leader */
	int64		left_to_leader; /* statements, by the second look */
} SessionStats;

extern SessionStats tp_session_stats;

#endif							/* TEMP_PARALLEL_H */
