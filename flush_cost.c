/*-------------------------------------------------------------------------
 *
 * flush_cost.c
 *	  What it costs to let workers see dirty local buffers, and the accounts that
 *	  pay for it.
 *
 *		flush_cost = write_temp_page_cost * dirtied
 *				   + buffer_scan_cost * allocated
 *
 * in planner cost units ("Inventing A Cost Model for PostgreSQL Local Buffers Flush",
 * January 2026).  For a page in a tablespace with a seq_page_cost of its own,
 * write_temp_page_cost is multiplied by the ratio of that to the general one.
 *
 * The second term, the search of the pool, is for every buffer that has storage, and is
 * paid each time that workers are launched.  The first, the cost of the writes, is paid
 * once, and later statements gain from it, so accounts pay for that alone.
 *
 * Pages whose memory is shared may be listed instead of written (localbuf_share.c).  That
 * costs SHARE_PAGE_COST for each and at each launch: the share cost.  It is chosen where it
 * is less than what is charged for the writes.
 *
 * A single query seldom saves as much as a large flush costs, but several together do.  So
 * each temporary table has an account, in planner cost units.  A statement that ran without
 * workers only because of the flush adds to the accounts of its tables what workers would
 * have saved if these had been clean.  The planner charges a flush its cost less the
 * accounts.  A flush that is carried out reduces each to the cost of the writes that are
 * left.  An account outlives the rows, so that a table that is filled and emptied again and
 * again gets workers in the end.
 *
 * This is the break-even rule for the ski rental problem: buy as soon as the rent paid has
 * reached the price.  The total cost of statements that run to their end is at most twice
 * that of the best decisions in hindsight, and no deterministic rule guarantees less.  A
 * decision is to have workers for all tables of a statement, for those that are clean
 * (plan_statement.c), or for none.
 *
 * The invariant: when an account is changed, it does not exceed the cost of writing its
 * table at that time.  Each use limits it to that cost at the time of use.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "optimizer/optimizer.h"
#include "utils/memutils.h"

#include "localbuf.h"

/* ----------
 * Accounts
 * ----------
 */

typedef struct Account
{
	Oid			table;			/* hash key */
	Cost		saved;
} Account;

static HTAB *accounts = NULL;

/* each time that there are so many more accounts, those of dropped tables are closed */
#define MORE_ACCOUNTS	256

/* table's account, or NULL */
static Account *
account_of(Oid table)
{
	return accounts == NULL ? NULL :
		hash_search(accounts, &table, HASH_FIND, NULL);
}

/* Close the accounts of tables that have been dropped. */
static void
close_dropped(void)
{
	HASH_SEQ_STATUS seq;
	Account    *account;

	hash_seq_init(&seq, accounts);
	while ((account = hash_seq_search(&seq)) != NULL)
	{
		if (!tp_is_session_temp_table(account->table))
			tp_account_close(account->table);
	}
}

/*
 * Add saving, in planner cost units, to table's account, up to most; one that exceeds that
 * already is not changed.  Makes the account, in TopMemoryContext, if table has none.
 */
void
tp_account_add(Oid table, Cost saving, Cost most)
{
	Account    *account;
	bool		found;

	if (accounts == NULL)
	{
		HASHCTL		ctl = {
			.keysize = sizeof(Oid),
			.entrysize = sizeof(Account),
			.hcxt = TopMemoryContext
		};

		accounts = hash_create("accounts of temporary tables", 64, &ctl,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	if (hash_get_num_entries(accounts) % MORE_ACCOUNTS == MORE_ACCOUNTS - 1 &&
		account_of(table) == NULL)
		close_dropped();
	account = hash_search(accounts, &table, HASH_ENTER, &found);
	if (!found)
		account->saved = 0;
	account->saved = Max(account->saved, Min(account->saved + saving, most));
}

/* Close table's account, if it has one. */
void
tp_account_close(Oid table)
{
	if (accounts != NULL)
		(void) hash_search(accounts, &table, HASH_REMOVE, NULL);
}

/* Close all accounts. */
void
tp_account_close_all(void)
{
	if (accounts != NULL)
		hash_destroy(accounts);
	accounts = NULL;
}

/* ----------
 * Costs
 * ----------
 */

/*
 * The cost, in planner cost units and for each launch, of a page that workers read in the
 * leader's memory: listing and pinning it, and a buffer of each worker's own.
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
		cost->share_cost += SHARE_PAGE_COST * count->shareable +
			page_cost * (count->dirtied - count->shareable);
	}
}

/*
 * The cost and the charge of a flush of the tables relids, without duplicates and locked,
 * with their TOAST tables and those of their indexes that are in indexes, by stats.
 */
FlushCost
tp_flush_cost_of_tables(LocalBufStats *stats, List *relids, List *indexes)
{
	FlushCost	result = {0};
	Cost		saved = 0;
	ListCell   *lc;
	int			unshared;

	foreach(lc, relids)
	{
		List	   *family = tp_family(lfirst_oid(lc), indexes);
		Account    *account = account_of(lfirst_oid(lc));
		Cost		before = result.cost;

		add_writes(&result, stats, family);
		if (account != NULL)
			saved += Min(account->saved, result.cost - before);
		list_free_deep(family);
	}
	unshared = result.shareable - stats->most_shared;
	if (unshared > 0)
	{
		result.shareable -= unshared;
		result.share_cost += unshared * (tp_write_temp_page_cost - SHARE_PAGE_COST);
	}
	result.allocated = stats->allocated;
	result.search = tp_buffer_scan_cost * stats->allocated;
	result.account = isinf(result.cost) ? 0 : saved;
	result.charge = result.cost - result.account;
	result.share = tp_sharing() && result.shareable > 0 &&
		result.share_cost < result.charge;
	if (result.share)
		result.charge = result.share_cost;
	return result;
}

/*
 * The same for a decision about a statement, which runs user code or not, by counts
 * that may be old (localbuf_stats.c); all 0 if relids is NIL.
 */
FlushCost
tp_flush_estimate(List *relids, List *indexes, bool user_code)
{
	FlushCost	none = {0};

	return relids == NIL ? none :
		tp_flush_cost_of_tables(tp_localbuf_stats_for_cost(user_code), relids, indexes);
}

/*
 * Settle the accounts of tables relids, which are locked, when a flush of their families has
 * left this: the counts of pages that are still dirty, and, as shareable, of those that
 * workers read in the leader's memory instead.  Reduces each account to the cost of the
 * writes that are left, and adds the share cost.  So once that has paid for the flush, the
 * pages are written.
 */
void
tp_settle_accounts(List *relids, LocalBufStats *left)
{
	ListCell   *lc;

	foreach(lc, relids)
	{
		List	   *family = tp_family(lfirst_oid(lc),
									   tp_table_indexes(lfirst_oid(lc)));
		Account    *account = account_of(lfirst_oid(lc));
		FlushCost	flush = {0};

		add_writes(&flush, left, family);
		if (account != NULL)
			account->saved = Min(account->saved, flush.cost);
		if (flush.shareable > 0)
			tp_account_add(lfirst_oid(lc), SHARE_PAGE_COST * flush.shareable,
						   flush.cost);
	}
}
