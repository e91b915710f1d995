/*-------------------------------------------------------------------------
 *
 * temp_parallel_compat.h
 *	  Every difference between server versions 15 to 19.
 *
 * The only file with PG_VERSION_NUM in it.  The rest of the module uses the
 * newest names; where an older server has another name or interface, there is
 * a macro or a small inline function here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEMP_PARALLEL_COMPAT_H
#define TEMP_PARALLEL_COMPAT_H

#include "access/amapi.h"
#include "access/heapam.h"
#include "access/htup.h"
#include "access/parallel.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "temp_parallel supports PostgreSQL 15 to 19; for a newer version, see \"Add a server version\" in CONTRIBUTING.md"
#endif

#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
#include "varatt.h"
#else
#include "storage/relfilenode.h"
#endif
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "storage/procnumber.h"
#else
#include "postmaster/postmaster.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#include "storage/read_stream.h"
#include "utils/resowner.h"
#else
#include "utils/resowner_private.h"
#endif

/* Functions that an older server does not have */
#if PG_VERSION_NUM < 160000
#define F_ARRAY_AGG_SERIALIZE	OID_MAX
#define F_PG_INPUT_ERROR_INFO	(OID_MAX - 1)
#define F_PG_INPUT_IS_VALID		(OID_MAX - 2)
#endif
#if PG_VERSION_NUM < 170000
#define F_JSONB_POPULATE_RECORD_VALID	(OID_MAX - 3)
#endif

/* Shared memory that no library has to ask for when the server starts, and a number for each backend */
#if PG_VERSION_NUM >= 190000
#define ACTIVITY_INIT_ARG	, void *arg
#define GetNamedDSMSegmentCompat(name, size, init, found) \
	GetNamedDSMSegment(name, size, init, found, NULL)
#else
#define ACTIVITY_INIT_ARG
#define GetNamedDSMSegmentCompat	GetNamedDSMSegment
#endif
#if PG_VERSION_NUM >= 170000
#define HAVE_DSM_REGISTRY
#define BACKEND_INDEX	MyProcNumber
#else
#define BACKEND_INDEX	(MyBackendId - 1)
#endif

/* 18 shows a module's name and version in pg_get_loaded_modules(). */
#if PG_VERSION_NUM >= 180000
#define TP_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "temp_parallel", .version = TP_VERSION)
#else
#define TP_MODULE_MAGIC		PG_MODULE_MAGIC
#endif

/* The process that the session's temporary files are named after; in a worker, its leader. */
#if PG_VERSION_NUM >= 170000
#define TempFilesOwner()		ProcNumberForTempRelations()
#else
#define TempFilesOwner()		BackendIdForTempRelations()
#endif

/*
 * No backend has this number, so it has no temporary files.  GetRelationPath() of
 * relpath.c prints it, from 18 on into a buffer with room for PROCNUMBER_CHARS.
 */
#define NO_PROCESS			((int) MAX_BACKENDS + 1)
#if PG_VERSION_NUM >= 180000
StaticAssertDecl(PROCNUMBER_CHARS >= 6 && NO_PROCESS <= 999999,
				 "path of a file of NO_PROCESS does not fit");
#endif

/* 16 renamed RelFileNode, and added accessors of buffer tags. */
#if PG_VERSION_NUM < 160000
typedef RelFileNode RelFileLocator;
typedef Oid RelFileNumber;

#define RelationFileLocator(rel)	((rel)->rd_node)
#define RelFileLocatorNumber(l)		((l).relNode)
#define RelFileLocatorSpc(l)		((l).spcNode)
#define RelFileLocatorDb(l)			((l).dbNode)
#define DropRelationAllLocalBuffers(l)	DropRelFileNodeAllLocalBuffers(l)
#define rd_firstRelfilelocatorSubid		rd_firstRelfilenodeSubid

static inline RelFileLocator
BufTagGetRelFileLocator(const BufferTag *tag)
{
	return tag->rnode;
}

static inline ForkNumber
BufTagGetForkNum(const BufferTag *tag)
{
	return tag->forkNum;
}
#else
#define RelationFileLocator(rel)	((rel)->rd_locator)
#define RelFileLocatorNumber(l)		((l).relNumber)
#define RelFileLocatorSpc(l)		((l).spcOid)
#define RelFileLocatorDb(l)			((l).dbOid)
#endif

/*
 * From 19 on, a buffer's state is 64 bits wide, and one flag in it says that the page has
 * to be written, instead of two.  That of a local buffer need not be changed atomically.
 */
#if PG_VERSION_NUM >= 190000
typedef uint64 BufferState;
#define DIRTY_FLAGS		((BufferState) BM_DIRTY)
#define LocalBufferStateRead(buf)		pg_atomic_read_u64(&(buf)->state)
#define LocalBufferStateWrite(buf, s)	pg_atomic_unlocked_write_u64(&(buf)->state, (s))
#else
typedef uint32 BufferState;
#define DIRTY_FLAGS		((BufferState) (BM_DIRTY | BM_JUST_DIRTIED))
#define LocalBufferStateRead(buf)		pg_atomic_read_u32(&(buf)->state)
#define LocalBufferStateWrite(buf, s)	pg_atomic_unlocked_write_u32(&(buf)->state, (s))
#endif

/*
 * In the state of a local buffer, where core does not use it: the page has, or had, hints
 * that are not in the file.  Core clears it when the buffer gets another page, 15 only such
 * flags as an error leaves.
 */
#if PG_VERSION_NUM >= 160000
#define HINTS_DROPPED	((BufferState) BM_CHECKPOINT_NEEDED)
#else
#define HINTS_DROPPED	((BufferState) BM_IO_ERROR)
#endif

/* From 18 on, how an operator orders values is of a type of its own. */
#if PG_VERSION_NUM < 180000
typedef int16 CompareType;
#endif

/* 18 renamed the operators of SetOp. */
#if PG_VERSION_NUM < 180000
#define cmpOperators dupOperators
#endif

/* From 17 on, an expression may be JSON_VALUE() and the like. */
#if PG_VERSION_NUM >= 170000
#define HAVE_JSON_EXPR
#endif

/* Sets the checksum on the page in the buffer. */
#if PG_VERSION_NUM < 190000
#define PageSetChecksum(page, block)	PageSetChecksumInplace(page, block)
#endif

/* As in parallel.c, where it is private, and the same in all versions. */
#define PARALLEL_MAGIC		0x50477c7c

/* Pin local buffer i, which holds a page, for CurrentResourceOwner. */
static inline void
pin_local_buffer(int i)
{
#if PG_VERSION_NUM >= 160000
#if PG_VERSION_NUM >= 170000
	ResourceOwnerEnlarge(CurrentResourceOwner);
#else
	ResourceOwnerEnlargeBuffers(CurrentResourceOwner);
#endif
	(void) PinLocalBuffer(GetLocalBufferDescriptor(i), false);
#else
	ResourceOwnerEnlargeBuffers(CurrentResourceOwner);
	LocalRefCount[i]++;
	ResourceOwnerRememberBuffer(CurrentResourceOwner, -i - 1);
#endif
}

/*
 * Have local buffers that are pinned for good not count against the limit of what scans
 * may read ahead: from 18 on, a quarter of num_temp_buffers, less those that are pinned.
 */
static inline void
allow_read_ahead(int pinned)
{
#if PG_VERSION_NUM >= 180000
	num_temp_buffers = NLocBuffer + 3 * pinned;
#else
	(void) pinned;
#endif
}

/* Write nblocks consecutive blocks, whose pages need not be consecutive in memory. */
static inline void
smgrwrite_blocks(SMgrRelation reln, ForkNumber fork, BlockNumber block,
				 const void **pages, int nblocks)
{
#if PG_VERSION_NUM >= 170000
	smgrwritev(reln, fork, block, pages, nblocks, false);
#else
	for (int i = 0; i < nblocks; i++)
		smgrwrite(reln, fork, block + i, unconstify(void *, pages[i]), false);
#endif
}

/* Let rel, whose storage is not open, use smgr as its storage. */
static inline void
relation_set_smgr(Relation rel, SMgrRelation smgr)
{
#if PG_VERSION_NUM >= 170000
	rel->rd_smgr = smgr;
	smgrpin(smgr);
#else
	smgrsetowner(&rel->rd_smgr, smgr);
#endif
}

/* From 16 on, one function tests the ownership of objects of all kinds. */
static inline bool
role_owns_relation(Oid relid, Oid roleid)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(RelationRelationId, relid, roleid);
#else
	return pg_class_ownercheck(relid, roleid);
#endif
}

/*
 * To be called before and after writes, to count them in pg_stat_io (16 on), as
 * FlushLocalBuffer() of localbuf.c (17: GetLocalVictimBuffer()).
 */
static inline instr_time
local_write_io_start(void)
{
	instr_time	start;

#if PG_VERSION_NUM >= 170000
	start = pgstat_prepare_io_time(track_io_timing);
#elif PG_VERSION_NUM >= 160000
	start = pgstat_prepare_io_time();
#else
	INSTR_TIME_SET_ZERO(start);
#endif
	return start;
}

static inline void
local_write_io_count(instr_time start, int nblocks)
{
#if PG_VERSION_NUM >= 180000
	pgstat_count_io_op_time(IOOBJECT_TEMP_RELATION, IOCONTEXT_NORMAL,
							IOOP_WRITE, start, 1,
							(uint64) nblocks * BLCKSZ);
#elif PG_VERSION_NUM >= 160000
	pgstat_count_io_op_time(IOOBJECT_TEMP_RELATION, IOCONTEXT_NORMAL,
							IOOP_WRITE, start, nblocks);
#else
	(void) start;
	(void) nblocks;
#endif
}

/* Prune a page of rel, a heap, if that is worth it; 19 may pin the visibility map. */
static inline void
prune_heap_page(Relation rel, BlockNumber block)
{
	Buffer		buffer = ReadBuffer(rel, block);
#if PG_VERSION_NUM >= 190000
	Buffer		vmbuffer = InvalidBuffer;

	heap_page_prune_opt(rel, buffer, &vmbuffer, false);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
#else
	heap_page_prune_opt(rel, buffer);
#endif
	ReleaseBuffer(buffer);
}

/* From 17 on: what ModifyTable looks at for NOT MATCHED BY SOURCE of MERGE. */
static inline List *
merge_join_conditions(const ModifyTable *modify)
{
#if PG_VERSION_NUM >= 170000
	return modify->mergeJoinConditions;
#else
	(void) modify;
	return NIL;
#endif
}

/* Does plan cost less than other?  Disabled nodes count first, as for paths. */
static inline bool
plan_costs_less(const Plan *plan, const Plan *other)
{
#if PG_VERSION_NUM >= 180000
	if (plan->disabled_nodes != other->disabled_nodes)
		return plan->disabled_nodes < other->disabled_nodes;
#endif
	return plan->total_cost < other->total_cost;
}

/*
 * From 18 on, EXPLAIN shows a node as disabled if it counts more disabled nodes than its
 * children.  Give node, which is not disabled, the count of child, its only child.  For a
 * CustomScan, plan_is_disabled() of explain.c examines only custom_plans, but the child is
 * in lefttree.  So add a Result with the same count, which is never executed.
 */
static inline void
set_disabled_nodes(CustomScan *node, Plan *child)
{
#if PG_VERSION_NUM >= 180000
	node->scan.plan.disabled_nodes = child->disabled_nodes;
	if (child->disabled_nodes > 0)
	{
		Result	   *stand_in = makeNode(Result);

		stand_in->plan.disabled_nodes = child->disabled_nodes;
		node->custom_plans = list_make1(stand_in);
	}
#else
	(void) node;
	(void) child;
#endif
}

/*
 * From 18 on, a hook can add to the output of EXPLAIN for a plan.  Before, a module can
 * only replace ExplainOneQuery(), and add to its output, in text alone: in other formats,
 * the group of the query has been closed.  explain_one_query() does what
 * standard_ExplainOneQuery() of explain.c does, and returns the plan.
 */
#if PG_VERSION_NUM >= 180000
#define EXPLAIN_HAS_PER_PLAN_HOOK 1
#else
static inline PlannedStmt *
explain_one_query(Query *query, int cursorOptions, IntoClause *into,
				  ExplainState *es, const char *queryString,
				  ParamListInfo params, QueryEnvironment *queryEnv)
{
	BufferUsage start = pgBufferUsage;
	BufferUsage usage = {0};
	instr_time	planstart;
	instr_time	planduration;
	PlannedStmt *plan;
#if PG_VERSION_NUM >= 170000
	MemoryContextCounters counters;
	MemoryContext context = NULL;
	MemoryContext old = CurrentMemoryContext;

	if (es->memory)
	{
		context = AllocSetContextCreate(old, "explain analyze planner context",
										ALLOCSET_DEFAULT_SIZES);
		MemoryContextSwitchTo(context);
	}
#endif

	INSTR_TIME_SET_CURRENT(planstart);
	plan = pg_plan_query(query, queryString, cursorOptions, params);
	INSTR_TIME_SET_CURRENT(planduration);
	INSTR_TIME_SUBTRACT(planduration, planstart);
	BufferUsageAccumDiff(&usage, &pgBufferUsage, &start);
#if PG_VERSION_NUM >= 170000
	MemoryContextSwitchTo(old);
	if (es->memory)
		MemoryContextMemConsumed(context, &counters);
#endif
	ExplainOnePlan(plan, into, es, queryString, params, queryEnv,
				   &planduration, es->buffers ? &usage : NULL
#if PG_VERSION_NUM >= 170000
				   ,es->memory ? &counters : NULL
#endif
		);
	return plan;
}
#endif

/* Hooks whose signature differs: their parameters, and how to pass them on. */
#if PG_VERSION_NUM >= 190000
#define PLANNER_HOOK_ARGS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams, ExplainState *es
#define PLANNER_HOOK_PASS	parse, query_string, cursorOptions, boundParams, es
#define PLANNER_HOOK_UNPACK(a) \
	(a)->parse, (a)->query_string, (a)->cursorOptions, (a)->boundParams, \
	(a)->es
#else
#define PLANNER_HOOK_ARGS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams
#define PLANNER_HOOK_PASS	parse, query_string, cursorOptions, boundParams
#define PLANNER_HOOK_UNPACK(a) \
	(a)->parse, (a)->query_string, (a)->cursorOptions, (a)->boundParams
#endif

/* The same arguments in a struct, with the function to be called. */
typedef struct PlannerCall
{
	planner_hook_type next;
	struct
	{
		Query	   *parse;
		const char *query_string;
		int			cursorOptions;
		ParamListInfo boundParams;
#if PG_VERSION_NUM >= 190000
		ExplainState *es;
#endif
	}			args;
} PlannerCall;

#if PG_VERSION_NUM >= 180000
#define EXECUTOR_RUN_ARGS \
	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define EXECUTOR_RUN_PASS	queryDesc, direction, count
#define EXECUTOR_RUN_UNPACK(a)	(a)->queryDesc, (a)->direction, (a)->count
#else
#define EXECUTOR_RUN_ARGS \
	QueryDesc *queryDesc, ScanDirection direction, uint64 count, \
	bool execute_once
#define EXECUTOR_RUN_PASS	queryDesc, direction, count, execute_once
#define EXECUTOR_RUN_UNPACK(a) \
	(a)->queryDesc, (a)->direction, (a)->count, (a)->execute_once
#endif

/* The same arguments in a struct. */
typedef struct ExecutorRunArgs
{
	QueryDesc  *queryDesc;
	ScanDirection direction;
	uint64		count;
#if PG_VERSION_NUM < 180000
	bool		execute_once;
#endif
} ExecutorRunArgs;

/*
 * Have ExecutePlan() of execMain.c do without parallel mode, as for a plan that has been
 * run in part.  Before 18, early minor releases look at execute_once instead.
 */
static inline void
avoid_parallel_mode(ExecutorRunArgs *args)
{
	args->queryDesc->already_executed = true;
#if PG_VERSION_NUM < 180000
	args->execute_once = false;
#endif
}

/* debug_parallel_query was force_parallel_mode before 16. */
#if PG_VERSION_NUM < 160000
#define debug_parallel_query force_parallel_mode
#define DEBUG_PARALLEL_OFF FORCE_PARALLEL_OFF
#define DEBUG_PARALLEL_REGRESS FORCE_PARALLEL_REGRESS
#endif

/* 16 added the trivial_pathtarget argument. */
static inline Path *
create_subqueryscan_path_compat(PlannerInfo *root, RelOptInfo *rel,
								Path *subpath, bool trivial_pathtarget,
								List *pathkeys, Relids required_outer)
{
#if PG_VERSION_NUM >= 160000
	return (Path *) create_subqueryscan_path(root, rel, subpath,
											 trivial_pathtarget, pathkeys,
											 required_outer);
#else
	(void) trivial_pathtarget;
	return (Path *) create_subqueryscan_path(root, rel, subpath, pathkeys,
											 required_outer);
#endif
}

/*
 * The hook that the planner calls for each relation, also for the table of an index
 * that is about to be built.
 */
#if PG_VERSION_NUM >= 190000
typedef build_simple_rel_hook_type rel_info_hook_type;
#define rel_info_hook		build_simple_rel_hook
#define REL_INFO_HOOK_ARGS	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define REL_INFO_HOOK_PASS	root, rel, rte
#define REL_INFO_RELID		(rte->relid)
#else
typedef get_relation_info_hook_type rel_info_hook_type;
#define rel_info_hook		get_relation_info_hook
#define REL_INFO_HOOK_ARGS \
	PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel
#define REL_INFO_HOOK_PASS	root, relid, inhparent, rel
#define REL_INFO_RELID		relid
#endif

/* Does the server build index with workers, by an access method of its own? */
static inline bool
is_built_by_workers(Relation index)
{
#if PG_VERSION_NUM >= 170000
	return index->rd_rel->relam < FirstNormalObjectId &&
		index->rd_indam->amcanbuildparallel;
#else
	return index->rd_rel->relam == BTREE_AM_OID;
#endif
}

/*
 * The grouped relation, with paths that aggregate those of rel, that the planner may make
 * from 19 on (eager aggregation), or NULL.
 */
static inline RelOptInfo *
grouped_rel_of(RelOptInfo *rel)
{
#if PG_VERSION_NUM >= 190000
	return rel->grouped_rel;
#else
	(void) rel;
	return NULL;
#endif
}

/*
 * Make the paths of rel's grouped relation, if it has one, when those of rel
 * are complete: set_grouped_rel_pathlist() of allpaths.c.
 */
static inline void
make_grouped_paths(PlannerInfo *root, RelOptInfo *rel)
{
#if PG_VERSION_NUM >= 190000
	if (rel->grouped_rel != NULL)
	{
		generate_grouped_paths(root, rel->grouped_rel, rel);
		set_cheapest(rel->grouped_rel);
	}
#else
	(void) root;
	(void) rel;
#endif
}

/* 19 added the flags argument. */
static inline void
init_scan_slot(ScanState *scan, TupleDesc tupdesc, const TupleTableSlotOps *ops)
{
	ExecInitScanTupleSlot(scan->ps.state, scan, tupdesc, ops
#if PG_VERSION_NUM >= 190000
						  ,0
#endif
		);
}

/* From 16 on, an aggregate of SQL/JSON is wrapped in what it has been parsed from. */
static inline bool
is_wrapped_aggregate(Node *node)
{
#if PG_VERSION_NUM >= 160000
	return IsA(node, JsonConstructorExpr) &&
		((JsonConstructorExpr *) node)->func != NULL &&
		IsA(((JsonConstructorExpr *) node)->func, Aggref);
#else
	(void) node;
	return false;
#endif
}

/*
 * Where a heap scan without page-at-a-time mode keeps its position in a page; and undo
 * pgstat_count_heap_getnext().
 */
#if PG_VERSION_NUM >= 160000
#define set_scan_offset(scan, offset)	((scan)->rs_coffset = (offset))
#define pgstat_uncount_heap_getnext(rel) \
	((void) (pgstat_should_count_relation(rel) && (rel)->pgstat_info->counts.tuples_returned--))
#else
#define set_scan_offset(scan, offset) \
	ItemPointerSetOffsetNumber(&(scan)->rs_ctup.t_self, offset)
#define pgstat_uncount_heap_getnext(rel) \
	((void) (pgstat_should_count_relation(rel) && (rel)->pgstat_info->t_counts.t_tuples_returned--))
#endif

/* Options of the callbacks that insert are unsigned from 19 on. */
#if PG_VERSION_NUM >= 190000
typedef uint32 InsertOptions;
#else
typedef int InsertOptions;
#endif

/*
 * Pin the page with block as the current one of fetch, so that heapam_index_fetch_tuple()
 * takes it for that of its previous call.  It recognizes the page by its buffer, from 19
 * on by its block number.
 */
static inline void
pin_page_of_fetch(IndexFetchHeapData *fetch, BlockNumber block)
{
	fetch->xs_cbuf = ReleaseAndReadBuffer(fetch->xs_cbuf, fetch->xs_base.rel, block);
#if PG_VERSION_NUM >= 190000
	fetch->xs_blk = block;
#endif
}

/* Where a scan keeps its TID range. */
#if PG_VERSION_NUM >= 180000
#define scan_min_tid(scan)	(&(scan)->st.tidrange.rs_mintid)
#define scan_max_tid(scan)	(&(scan)->st.tidrange.rs_maxtid)
#else
#define scan_min_tid(scan)	(&(scan)->rs_mintid)
#define scan_max_tid(scan)	(&(scan)->rs_maxtid)
#endif

/*
 * How many pages of a table in tablespace a heap scan may pin ahead of the one
 * that it returns: see read_stream_begin_relation() of read_stream.c (17).
 * From 18 on, all streams of a process together pin at most a quarter of its local
 * buffers (as of 18.6 and 19rc1), see GetLocalPinLimit() of localbuf.c;
 * local_buffers_for_pins() takes that into account.
 */
static inline int
heap_scan_read_ahead(Oid tablespace)
{
#if PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000
	return Max(4 * get_tablespace_io_concurrency(tablespace),
			   io_combine_limit);
#else
	(void) tablespace;
	return 0;
#endif
}

/*
 * The size of a pool in which pins pages can be pinned in addition to those
 * that read streams pin: from 18 on, GetAdditionalLocalPinLimit() of localbuf.c
 * allows these a quarter of it.  In 17, pins includes them, and
 * LimitAdditionalLocalPins() allows them all that is left.
 */
static inline int
local_buffers_for_pins(int pins)
{
#if PG_VERSION_NUM >= 180000
	return pins + pins / 3 + 1;
#else
	return pins;
#endif
}

/* The record of a setting of type integer; an error if there is none. */
static inline struct config_int *
find_int_setting(const char *name)
{
#if PG_VERSION_NUM >= 190000
	struct config_generic *setting = find_option(name, false, false, ERROR);

	Assert(setting->vartype == PGC_INT);
	return &setting->_int;
#elif PG_VERSION_NUM >= 160000
	return (struct config_int *) find_option(name, false, false, ERROR);
#else
	struct config_generic **settings = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
	{
		if (strcmp(settings[i]->name, name) == 0)
			return (struct config_int *) settings[i];
	}
	elog(ERROR, "there is no setting \"%s\"", name);
#endif
}

/* From 18 on, bitmap heap scans get their pages from a read stream. */
#if PG_VERSION_NUM >= 180000
#define BITMAP_SCANS_STREAM 1
#endif

#endif							/* TEMP_PARALLEL_COMPAT_H */
