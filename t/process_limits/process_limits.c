/*-------------------------------------------------------------------------
 *
 * process_limits.c
 *	  C functions that restrict the calling process, for t/061_share.pl.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(set_dumpable);
PG_FUNCTION_INFO_V1(limit_memory);

/* set_dumpable(boolean): may processes of the same user open this one's files? */
Datum
set_dumpable(PG_FUNCTION_ARGS)
{
	if (prctl(PR_SET_DUMPABLE, PG_GETARG_BOOL(0) ? 1 : 0, 0, 0, 0) != 0)
		elog(ERROR, "prctl() failed: %m");
	PG_RETURN_VOID();
}

/* limit_memory(bytes bigint): limit the address space; -1 ends that. */
Datum
limit_memory(PG_FUNCTION_ARGS)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) != 0)
		elog(ERROR, "getrlimit() failed: %m");
	limit.rlim_cur = PG_GETARG_INT64(0) < 0 ? limit.rlim_max : PG_GETARG_INT64(0);
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		elog(ERROR, "setrlimit() failed: %m");
	PG_RETURN_VOID();
}
