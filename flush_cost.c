/*-------------------------------------------------------------------------
 *
 * flush_cost.c
 *	  The cost model: what writing the dirty local buffers costs.
 *
 *		flush_cost = write_temp_page_cost * dirtied
 *				   + buffer_scan_cost * allocated
 *
 * in units of the planner, where reading a page in sequence costs
 * seq_page_cost, 1 by default.  A page in a tablespace with a seq_page_cost of
 * its own costs write_temp_page_cost in the proportion of that to the
 * server's.  The flush looks at every buffer that has storage, whoever's page
 * it holds, so allocated is the whole pool's number.
 *
 * The formula is that of "Inventing A Cost Model for PostgreSQL Local
 * Buffers Flush", January 2026.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "utils/spccache.h"

#include "localbuf.h"

/*
 * How much dearer a page of rel is than one in a tablespace that says
 * nothing.
 */
double
tp_tablespace_factor(Relation rel)
{
	double		spc_seq_page_cost;

	if (!OidIsValid(rel->rd_rel->reltablespace) || seq_page_cost <= 0)
		return 1.0;
	get_tablespace_page_costs(rel->rd_rel->reltablespace, NULL,
							  &spc_seq_page_cost);
	return spc_seq_page_cost / seq_page_cost;
}

/* Add the writes of relations, a List of Relation, to cost. */
static void
add_writes(FlushCost *cost, LocalBufStats *stats, List *relations)
{
	ListCell   *lc;

	foreach(lc, relations)
	{
		Relation	rel = (Relation) lfirst(lc);
		LocalBufCount *count = tp_localbuf_stats_relation(stats, rel);

		if (count == NULL)
			continue;
		cost->dirtied += count->dirtied;
		cost->cost += tp_write_temp_page_cost * count->dirtied *
			tp_tablespace_factor(rel);
	}
}

/*
 * What a flush of the tables relids, a List of Oid without duplicates, would
 * cost by stats, with those of their indexes that are in indexes, and what it is
 * charged.  The tables are locked.
 */
FlushCost
tp_flush_cost_of_tables(LocalBufStats *stats, List *relids, List *indexes)
{
	FlushCost	result = {0};
	Cost		scan = tp_buffer_scan_cost * stats->allocated;
	Cost		saved = 0;
	ListCell   *lc;

	if (relids == NIL)
		return result;

	foreach(lc, relids)
	{
		List	   *family = tp_family_open(lfirst_oid(lc), indexes);
		Cost		before = result.cost;

		add_writes(&result, stats, family);
		if (tp_flush_investment)
			saved += tp_account_balance(linitial(family),
										result.cost - before + scan);
		tp_family_close(family);
	}
	result.allocated = stats->allocated;
	result.cost += scan;
	result.charge = Max(result.cost - saved, 0);
	return result;
}

/*
 * What a flush of the whole pool would cost, whoever's pages it holds.
 */
FlushCost
tp_flush_cost_of_pool(LocalBufStats *stats)
{
	FlushCost	result;

	result.allocated = stats->allocated;
	result.dirtied = stats->dirtied;
	result.cost = tp_write_temp_page_cost * stats->dirtied +
		tp_buffer_scan_cost * stats->allocated;
	result.charge = result.cost;
	return result;
}
