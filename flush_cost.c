/*-------------------------------------------------------------------------
 *
 * flush_cost.c
 *	  The cost model: what writing the dirty local buffers costs.
 *
 *		flush_cost = write_temp_page_cost * dirtied
 *				   + buffer_scan_cost * allocated
 *
 * in planner cost units, in which reading a page sequentially costs
 * seq_page_cost, 1 by default.  For a page in a tablespace with a
 * seq_page_cost of its own, write_temp_page_cost is multiplied by the ratio of
 * that to the general seq_page_cost.  The flush looks at every buffer that has
 * storage, whichever relation's page it holds, so allocated is the number for
 * the whole pool.
 *
 * The second term, the search of the pool, is paid each time that workers are
 * launched.  The first, the price, is paid once, and later statements gain
 * from it, so accounts (localbuf_account.c) pay for that alone.
 *
 * The formula is that of "Inventing A Cost Model for PostgreSQL Local Buffers
 * Flush", January 2026.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "optimizer/optimizer.h"
#include "utils/spccache.h"

#include "localbuf.h"

/*
 * The cost, in planner cost units, of a page that workers read in the leader's
 * memory: listing and pinning it, and a buffer of each worker's own.  Per launch.
 */
#define SHARE_PAGE_COST		0.07

/*
 * Returns the factor by which a page in tablespace is more expensive than one in a
 * tablespace without a seq_page_cost of its own; 1 for the database's, and if
 * seq_page_cost is 0.
 */
static double
tablespace_factor(Oid tablespace)
{
	double		spc_seq_page_cost;

	if (tablespace == MyDatabaseTableSpace || seq_page_cost <= 0)
		return 1.0;
	get_tablespace_page_costs(tablespace, NULL, &spc_seq_page_cost);
	return spc_seq_page_cost / seq_page_cost;
}

/* Add the writes of family, by tp_family(), to *cost, but for indexes that are left alone. */
static void
add_writes(FlushCost *cost, LocalBufStats *stats, List *family)
{
	ListCell   *lc;

	foreach(lc, family)
	{
		TempRelation *rel = lfirst(lc);
		TempRelation *count = hash_search(stats->relations, &rel->locator,
										  HASH_FIND, NULL);
		Cost		page_cost;

		if (count == NULL || rel->left_alone)
			continue;
		page_cost = tp_write_temp_page_cost * tablespace_factor(RelFileLocatorSpc(rel->locator));
		cost->dirtied += count->dirtied;
		cost->cost += page_cost * count->dirtied;
		cost->shareable += count->shareable;
		cost->rent += SHARE_PAGE_COST * count->shareable +
			page_cost * (count->dirtied - count->shareable);
	}
}

/*
 * The cost and the charge of a flush of the tables relids, a List of Oid
 * without duplicates, with their TOAST tables and those of their indexes that
 * are in indexes, by the counts in stats.  The tables are locked.  If relids
 * is NIL, all is 0.
 */
FlushCost
tp_flush_cost_of_tables(LocalBufStats *stats, List *relids, List *indexes)
{
	FlushCost	result = {0};
	Cost		saved = 0;
	ListCell   *lc;
	int			unshared;

	if (relids == NIL)
		return result;

	foreach(lc, relids)
	{
		List	   *family = tp_family(lfirst_oid(lc), indexes);
		TempRelation *table = linitial(family);
		Cost		before = result.cost;

		add_writes(&result, stats, family);
		saved += tp_account_balance(&table->locator, result.cost - before);
		list_free_deep(family);
	}
	unshared = result.shareable - stats->most_shared;
	if (unshared > 0)
	{
		result.shareable -= unshared;
		result.rent += unshared * (tp_write_temp_page_cost - SHARE_PAGE_COST);
	}
	result.allocated = stats->allocated;
	result.search = tp_buffer_scan_cost * stats->allocated;
	result.account = isinf(result.cost) ? 0 : saved;
	result.charge = result.cost - result.account;
	result.share = tp_sharing() && result.shareable > 0 &&
		result.rent < result.charge;
	if (result.share)
		result.charge = result.rent;
	result.charge += result.search;
	result.cost += result.search;
	return result;
}

/*
 * Settle the accounts of tables relids when a flush of their families has left this:
 * the counts of pages that are still dirty, and, as shareable, of those that workers read
 * in the leader's memory instead.  Reduces each account to the cost of the writes that
 * are left, and adds what the workers' reading costs, the rent.  So once that has paid for
 * the flush, the pages are written.  The tables are locked.
 */
void
tp_settle_accounts(List *relids, LocalBufStats *left)
{
	ListCell   *lc;

	foreach(lc, relids)
	{
		List	   *family = tp_family(lfirst_oid(lc),
									   tp_table_indexes(lfirst_oid(lc)));
		TempRelation *table = linitial(family);
		FlushCost	flush = {0};

		add_writes(&flush, left, family);
		tp_account_cut(&table->locator, flush.cost);
		if (flush.shareable > 0)
			tp_account_add(&table->locator, SHARE_PAGE_COST * flush.shareable,
						   flush.cost);
	}
}
