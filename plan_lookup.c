/*-------------------------------------------------------------------------
 *
 * plan_lookup.c
 *	  What lookups in temporary tables cost a process with few local buffers.
 *
 * A worker that scans a table once needs few local buffers, which stay in the processor's
 * cache.  But if the inner side of a nested loop looks rows up all over a table, a small
 * pool makes the worker copy a page from the operating system for nearly every row.  So a
 * worker with such a plan gets a pool for the pages that are looked up, up to the session's
 * temp_buffers: see tp_worker_begin() of exec_worker.c.
 *
 * If these are too few, the lookups cost what the planner does not know: it assumes that
 * reading a page again from a cache, of effective_cache_size, costs nothing.  So the copies
 * are added to the cost of the plan, and of the one without workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan.h"

/* The smaller of reads and the number of pages of relation relid. */
static double
distinct_pages(Oid relid, double reads)
{
	Relation	rel = tp_relation_open(relid);
	BlockNumber pages = RelationGetNumberOfBlocks(rel);

	RelationClose(rel);
	return Min(reads, pages);
}

/* How many different pages does lookup read? */
static double
pages_of_lookup(const Lookup *lookup)
{
	double		pages = 0;

	if (OidIsValid(lookup->index))
		pages = distinct_pages(lookup->index, lookup->loops);
	if (IsA(lookup->scan, SeqScan) || IsA(lookup->scan, SampleScan))
		pages += distinct_pages(lookup->table, get_float8_infinity());
	else if (!IsA(lookup->scan, BitmapIndexScan))
		pages += distinct_pages(lookup->table,
								lookup->loops * Max(lookup->scan->plan_rows, 1));
	return pages;
}

/* How many different pages do lookups, a List of Lookup, with subplans or not, read? */
double
tp_pages_of_lookups(List *lookups, bool with_subplans)
{
	double		pages = 0;
	ListCell   *lc;

	foreach(lc, lookups)
	{
		Lookup	   *lookup = lfirst(lc);

		if (with_subplans || !lookup->in_subplan)
			pages += pages_of_lookup(lookup);
	}
	return pages;
}

/* In planner cost units: to copy a page from the system's cache into a local buffer. */
#define COPY_PAGE_COST		0.7

/* The square of the correlation that ANALYZE has found of the first column of an index. */
static double
index_correlation(Oid indexid)
{
	Relation	index = tp_relation_open(indexid);
	Oid			relid = index->rd_index->indrelid;
	AttrNumber	attno = index->rd_index->indkey.values[0];
	HeapTuple	tuple;
	AttStatsSlot slot;
	double		result = 0;

	RelationClose(index);
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid),
							Int16GetDatum(attno), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return 0;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers == 1)
			result = slot.numbers[0] * slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * How often lookup reads a page, if it is by an index or a bitmap: of an index once each
 * time and, of the table, for the first row and each other row that is not next to it.
 */
static double
reads_of_lookup(const Lookup *lookup)
{
	double		others = Max(lookup->scan->plan_rows - 1, 0);

	switch (nodeTag(lookup->scan))
	{
		case T_IndexScan:
			others *= 1 - index_correlation(lookup->index);
			return lookup->loops * (2 + others);
		case T_IndexOnlyScan:
		case T_BitmapIndexScan:
			return lookup->loops;
		case T_BitmapHeapScan:
			return lookup->loops * (1 + others);
		default:
			return 0;
	}
}

/*
 * What lookups, a List of Lookup, without subplans, cost each process, in planner cost
 * units, beyond the planner's estimate, which includes reading each page once.
 */
Cost
tp_cost_of_copies(List *lookups)
{
	double		buffers = tp_pool_size();
	double		pages = tp_pages_of_lookups(lookups, false);
	double		reads = 0;
	ListCell   *lc;

	if (pages <= buffers)
		return 0;
	foreach(lc, lookups)
	{
		Lookup	   *lookup = lfirst(lc);

		if (!lookup->in_subplan)
			reads += reads_of_lookup(lookup);
	}
	return COPY_PAGE_COST * Max(reads * (1 - buffers / pages) - pages, 0);
}
