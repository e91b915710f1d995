/*-------------------------------------------------------------------------
 *
 * exec.h
 *	  Execution: statements that may launch workers, the flush node, and plans
 *	  with a flush node in a worker.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EXEC_H
#define EXEC_H

#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/extensible.h"

#include "localbuf.h"
#include "plan.h"

/* exec_flush.c */
/* key of FlushShared in the parallel query's table of contents */
#define FLUSH_SHARED_KEY	UINT64CONST(0x7E3B000000000001)

extern void tp_register_flush_node(void);
extern List *tp_find_flush_nodes(PlanState *root);
extern const FlushPlan *tp_flush_node_plan(CustomScanState *flush_node);
extern Oid	tp_flush_node_user(CustomScanState *flush_node);
extern void tp_skip_flush_nodes(List *flush_nodes, const char *reason);
extern void tp_look_at_workers(List *flush_nodes);

/* exec_free_worker.c */
extern PGDLLEXPORT void tp_free_worker_main(Datum arg);
extern bool tp_worker_is_free(void);

/* exec_parallel_run.c */
typedef void (*ParallelRun) (bool parallel, void *arg);

extern void tp_run_parallel(PlanState *root, const char *refusal,
							bool only_ours, ParallelRun run, void *arg);

/* exec_run_ahead.c */
extern void tp_register_run_ahead_node(void);
extern void tp_run_portions_ahead(QueryDesc *queryDesc);
extern void tp_run_in_leader(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS);

/* exec_worker.c */
extern void tp_worker_open_pool(SMgrRelation file, int size);
extern shm_toc *tp_worker_toc(void);
extern void tp_worker_check_release(const char *leaders);
extern void tp_check_flushed(PlanState *ps, const FlushPlan *plan);
extern void tp_worker_begin(QueryDesc *queryDesc);
extern void tp_worker_check(QueryDesc *queryDesc);
extern void tp_worker_run(ExecutorRun_hook_type next, EXECUTOR_RUN_ARGS);
extern void tp_worker_end(void);

/* exec_worker_refuse.c */
extern void tp_worker_refuse(void);
extern void tp_worker_refuse_statement(List *rtable);
extern void tp_worker_refuse_query(Query *query);
extern void tp_worker_refuse_table(RangeTblEntry *rte);
extern void tp_worker_refuse_utility(Node *statement);
extern void tp_refuse_other_relations(List *relids, List *indexes);
extern void tp_release_other_relations(void);
extern void tp_refuse_again(Oid relid);
extern bool tp_sends_temp_toast_pointer(PlanState *gather);
extern void tp_check_sent_values(QueryDesc *queryDesc);

/* index_build.c */
extern void tp_define_index_setting(void);
extern void tp_index_build_is_planned(PlannerInfo *root, Oid relid);
extern void tp_check_index_worker(void);

#endif							/* EXEC_H */
