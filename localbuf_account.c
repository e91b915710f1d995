/*-------------------------------------------------------------------------
 *
 * localbuf_account.c
 *	  Accounts: what workers would have saved so far, had tables been clean.
 *
 * A single query seldom pays for a large flush, but several do.  Charged to each
 * query alone, the flush would be refused each time, and the table would be read
 * by one process for ever.  So each temporary table has an account, in the units
 * of the planner.  A statement that ran without workers only because of the flush
 * adds what they would have saved; the flush is charged less the accounts of its
 * tables; and it closes them.  This is the rule for the ski rental problem: buy
 * when the rent paid has reached the price.  The total is never more than twice
 * that of the best decisions in hindsight, and no rule that does not know the
 * future guarantees less.
 *
 * An account belongs to a table's file.  DROP and TRUNCATE leave it without one;
 * a transaction that is rolled back gets the account of the former file back.
 *
 * Accounts pay for writing pages, and not for the search of the pool, which is
 * charged to each statement that has workers, whether it writes anything or not.
 *
 * The invariant: no account is more than the cost of writing the pages of its table,
 * as of the last statement that was entered.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "utils/memutils.h"

#include "localbuf.h"

typedef struct Account
{
	RelFileLocator locator;		/* hash key: the table's */
	Cost		saved;
} Account;

static HTAB *accounts = NULL;

static void
make_accounts(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(RelFileLocator);
	ctl.entrysize = sizeof(Account);
	ctl.hcxt = TopMemoryContext;
	accounts = hash_create("accounts of temporary tables", 64, &ctl,
						   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * The balance of table's account, in planner units; price at most.
 */
Cost
tp_account_balance(Relation table, Cost price)
{
	Account    *account;

	if (accounts == NULL)
		return 0;
	account = hash_search(accounts, &RelationFileLocator(table), HASH_FIND,
						  NULL);
	return account == NULL ? 0 : Min(account->saved, price);
}

/*
 * Pages of table have been written, after which a flush of all of it costs price:
 * its account is price at most.
 */
void
tp_account_cut(Relation table, Cost price)
{
	Account    *account;

	if (accounts == NULL)
		return;
	account = hash_search(accounts, &RelationFileLocator(table), HASH_FIND,
						  NULL);
	if (account != NULL && price <= 0)
		(void) hash_search(accounts, &account->locator, HASH_REMOVE, NULL);
	else if (account != NULL)
		account->saved = Min(account->saved, price);
}

/*
 * Add saving to table's account, by which it becomes price at most.
 */
void
tp_account_add(Relation table, Cost saving, Cost price)
{
	Account    *account;
	bool		found;

	if (accounts == NULL)
		make_accounts();
	account = hash_search(accounts, &RelationFileLocator(table), HASH_ENTER,
						  &found);
	if (!found)
		account->saved = 0;
	account->saved = Max(account->saved, Min(account->saved + saving, price));
}

/*
 * Close all accounts.
 */
void
tp_account_close_all(void)
{
	if (accounts != NULL)
		hash_destroy(accounts);
	accounts = NULL;
}

/*
 * Close the accounts of files that are empty or gone.  Raises nothing but out of
 * memory, so that it may be called when a transaction has ended.
 */
void
tp_account_close_empty(void)
{
	HASH_SEQ_STATUS seq;
	Account    *account;

	if (accounts == NULL)
		return;
	hash_seq_init(&seq, accounts);
	while ((account = hash_seq_search(&seq)) != NULL)
	{
		char	   *path = temp_relation_path(account->locator, MAIN_FORKNUM);
		struct stat file;

		if (stat(path, &file) != 0 || file.st_size == 0)
			(void) hash_search(accounts, &account->locator, HASH_REMOVE, NULL);
		pfree(path);
	}
}
