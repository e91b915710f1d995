/*-------------------------------------------------------------------------
 *
 * chooses_paths.c
 *	  A module that chooses among a relation's paths, and a foreign-data
 *	  wrapper.
 *
 * For t/047_other_modules.pl.  chooses_paths.relation names the relation: a
 * table without its children, or "subquery" for every subquery.  chooses_paths.keep
 * says which paths are kept: 'sequential', 'index', or 'whole', which are
 * those that are not partial.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/tuptable.h"
#include "fmgr.h"
#include "foreign/fdwapi.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(three_rows_handler);
PG_FUNCTION_INFO_V1(foreign_paths_calls);

void		_PG_init(void);

static char *relation;
static char *keep;
static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;

/* ----------
 * Choosing
 * ----------
 */
static void
choose_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	const char *name = rte->rtekind == RTE_RELATION ?
		get_rel_name(rte->relid) :
		rte->rtekind == RTE_SUBQUERY ? "subquery" : NULL;

	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);

	if (rte->inh || name == NULL || strcmp(name, relation) != 0)
		return;
	rel->partial_pathlist = NIL;
	if (strcmp(keep, "whole") == 0)
		return;

	/* add_path() has removed the more expensive ones: create them again */
	rel->pathlist = NIL;
	if (strcmp(keep, "index") == 0)
		create_index_paths(root, rel);
	else
		add_path(rel, create_seqscan_path(root, rel, rel->lateral_relids, 0));
}

/* ----------
 * A foreign-data wrapper whose tables hold 1, 2 and 3
 * ----------
 */
static int	paths_calls = 0;

static void
three_rows_size(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	rel->rows = 3;
}

static void
three_rows_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	ForeignPath *path = makeNode(ForeignPath);

	paths_calls++;
	path->path.pathtype = T_ForeignScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.parallel_safe = rel->consider_parallel;
	path->path.rows = rel->rows;
	path->path.total_cost = 3;
	add_path(rel, &path->path);
}

static ForeignScan *
three_rows_plan(PlannerInfo *root, RelOptInfo *rel, Oid relid,
				ForeignPath *path, List *tlist, List *clauses, Plan *outer)
{
	return make_foreignscan(tlist, extract_actual_clauses(clauses, false),
							rel->relid, NIL, NIL, NIL, NIL, outer);
}

static void
three_rows_begin(ForeignScanState *node, int eflags)
{
	node->fdw_state = palloc0(sizeof(int));
}

static TupleTableSlot *
three_rows_iterate(ForeignScanState *node)
{
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	int		   *row = node->fdw_state;

	ExecClearTuple(slot);
	if (*row == 3)
		return slot;
	slot->tts_values[0] = Int32GetDatum(++*row);
	slot->tts_isnull[0] = false;
	return ExecStoreVirtualTuple(slot);
}

static void
three_rows_rescan(ForeignScanState *node)
{
	*(int *) node->fdw_state = 0;
}

static void
three_rows_end(ForeignScanState *node)
{
}

static bool
three_rows_parallel_safe(PlannerInfo *root, RelOptInfo *rel,
						 RangeTblEntry *rte)
{
	return true;
}

Datum
three_rows_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = three_rows_size;
	routine->GetForeignPaths = three_rows_paths;
	routine->GetForeignPlan = three_rows_plan;
	routine->BeginForeignScan = three_rows_begin;
	routine->IterateForeignScan = three_rows_iterate;
	routine->ReScanForeignScan = three_rows_rescan;
	routine->EndForeignScan = three_rows_end;
	routine->IsForeignScanParallelSafe = three_rows_parallel_safe;
	PG_RETURN_POINTER(routine);
}

/* The number of calls of three_rows_paths() since the last call of this. */
Datum
foreign_paths_calls(PG_FUNCTION_ARGS)
{
	int			calls = paths_calls;

	paths_calls = 0;
	PG_RETURN_INT32(calls);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("chooses_paths.relation",
							   "Relation whose paths are chosen.",
							   NULL, &relation, "", PGC_USERSET, 0,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("chooses_paths.keep",
							   "Which of its paths stay.",
							   NULL, &keep, "sequential", PGC_USERSET, 0,
							   NULL, NULL, NULL);
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = choose_paths;
}
