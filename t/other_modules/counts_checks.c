/*-------------------------------------------------------------------------
 *
 * counts_checks.c
 *	  A module that counts how often it is asked for permission to read tables,
 *	  as one that logs what is read.
 *
 * For t/047_other_modules.pl.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(checks);

void		_PG_init(void);

static int64 count = 0;

/* 16 added a parameter */
#if PG_VERSION_NUM >= 160000
#define CHECK_ARGS	List *rtable, List *perminfos, bool raise
#else
#define CHECK_ARGS	List *rtable, bool raise
#endif

static bool
count_check(CHECK_ARGS)
{
	count++;
	return true;
}

/* checks() returns bigint: how often, so far in this session. */
Datum
checks(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(count);
}

void
_PG_init(void)
{
	ExecutorCheckPerms_hook = count_check;
}
