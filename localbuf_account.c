/*-------------------------------------------------------------------------
 *
 * localbuf_account.c
 *	  Accounts: what workers would have saved so far if tables had been clean.
 *
 * A single query seldom saves as much as a large flush costs, but several
 * queries together do.  If each query were charged the whole flush, the flush
 * would be refused each time, and the table would never be read by workers.
 *
 * So each temporary table has an account, in planner cost units.  A statement
 * that ran without workers only because of the flush adds to the accounts of
 * its tables what workers would have saved.  The planner charges a flush its
 * cost less the accounts of its tables.  A flush that is carried out closes
 * them: it reduces each to the cost of the writes that are left, which is 0 if
 * the table and its indexes are clean then.
 *
 * The price of a table, or of a flush, is the cost of writing the dirty pages.
 * Accounts pay for that alone.  The search of the pool is charged to each
 * statement that has workers, whether it writes anything or not.
 *
 * This is the break-even rule for the ski rental problem: buy as soon as the
 * rent paid has reached the price.  The total cost of statements that run to
 * their end is at most twice that of the best decisions in hindsight, and no
 * deterministic rule that does not know later statements guarantees less.
 *
 * An account belongs to the file of a table (RelFileLocator).  After TRUNCATE
 * the table has a new file, without an account; if the transaction is rolled
 * back, the table has the former file and its account again.  Accounts of
 * files that a transaction has removed or emptied are closed by the first
 * statement after it: before a file can be filled, or made by the same name, and
 * where an error is still possible, as it is not when a transaction ends.
 *
 * The invariant: when an account is changed, it does not exceed the price of
 * its table at that time.  Each use limits it to the price at the time of use.
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

/* may files have been removed or emptied since tp_account_close_empty()? */
static bool files_changed = false;

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
 * Returns the balance of table's account in planner cost units, but no more
 * than price; 0 if it has no account.
 */
Cost
tp_account_balance(const RelFileLocator *table, Cost price)
{
	Account    *account;

	if (accounts == NULL)
		return 0;
	account = hash_search(accounts, table, HASH_FIND, NULL);
	return account == NULL ? 0 : Min(account->saved, price);
}

/*
 * Reduce table's account to price, the cost of writing those of its pages that
 * are still dirty; remove it if that is 0.  To be called when pages of table
 * have been written.
 */
void
tp_account_cut(const RelFileLocator *table, Cost price)
{
	Account    *account;

	if (accounts == NULL)
		return;
	account = hash_search(accounts, table, HASH_FIND, NULL);
	if (account != NULL && price <= 0)
		(void) hash_search(accounts, &account->locator, HASH_REMOVE, NULL);
	else if (account != NULL)
		account->saved = Min(account->saved, price);
}

/*
 * Add saving, in planner cost units, to table's account, up to price.  An
 * account that exceeds price already is not changed.  Makes the account, in
 * TopMemoryContext, if table has none.
 */
void
tp_account_add(const RelFileLocator *table, Cost saving, Cost price)
{
	Account    *account;
	bool		found;

	if (accounts == NULL)
		make_accounts();
	account = hash_search(accounts, table, HASH_ENTER, &found);
	if (!found)
		account->saved = 0;
	account->saved = Max(account->saved, Min(account->saved + saving, price));
}

/*
 * Close the account of the table whose file locator is, if it has one.
 */
void
tp_account_close(const RelFileLocator *locator)
{
	if (accounts != NULL)
		(void) hash_search(accounts, locator, HASH_REMOVE, NULL);
}

/*
 * Close all accounts.  Called when the pool has been flushed or evicted.
 */
void
tp_account_close_all(void)
{
	if (accounts != NULL)
		hash_destroy(accounts);
	accounts = NULL;
}

/*
 * Note that files may have been removed or emptied.  Raises nothing, so that it
 * may be called when a transaction has been committed.
 */
void
tp_account_files_changed(void)
{
	files_changed = true;
}

/*
 * If files may have been removed or emptied, close the accounts of those that
 * were.  To be called at the beginning of each statement.  Raises out of memory,
 * and is then to be called again.
 */
void
tp_account_close_empty(void)
{
	HASH_SEQ_STATUS seq;
	Account    *account;

	if (!files_changed)
		return;
	if (accounts != NULL)
	{
		hash_seq_init(&seq, accounts);
		while ((account = hash_seq_search(&seq)) != NULL)
		{
			char	   *path = temp_relation_path(account->locator,
												  MAIN_FORKNUM);
			struct stat file;

			if (stat(path, &file) != 0 || file.st_size == 0)
				(void) hash_search(accounts, &account->locator, HASH_REMOVE,
								   NULL);
			pfree(path);
		}
	}
	files_changed = false;
}
