/*-------------------------------------------------------------------------
 *
 * exec_share.c
 *	  Pages that workers read in the leader's memory, in the leader.
 *
 * Instead of writing a dirty page whose memory is shared (localbuf_share.c), the
 * flush node lists it, for workers to use it as a local buffer of their own
 * (exec_worker.c).  A page that is listed stays pinned until the workers
 * have exited, so that its buffer is neither evicted nor used for another page.
 * In the read-only phase nobody changes it, except for hints, which processes
 * set concurrently as they do in shared buffers.
 *
 * The pins belong to the resource owner of the (sub)transaction.  After an error
 * that one releases them, when core has ended the workers: AbortTransaction()
 * and AbortSubTransaction() of xact.c call AtEOXact_Parallel() first.
 *
 * A function that the leader calls meanwhile may run a statement with workers of its
 * own.  They get the pages that are listed already, too, which must not be written.
 *
 * The invariants: a page is listed for running workers only while it is pinned; at a
 * launch, every dirty page of what the workers may read is listed or written.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>

#include "catalog/namespace.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"

#include "exec.h"

/* ----------
 * Before temporary tables are written
 * ----------
 */

/* Does stmt, whose tables are locked, write a temporary table? */
static bool
writes_temp_table(PlannedStmt *stmt)
{
	ListCell   *lc;

	if ((stmt->commandType == CMD_SELECT && !stmt->hasModifyingCTE) ||
		!tp_session_has_temp_tables())
		return false;
	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if (rte->rtekind == RTE_RELATION &&
			rte->rellockmode == RowExclusiveLock &&
			get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP)
			return true;
	}
	return false;
}

/* Is relation, as named in a statement, a temporary table that exists? */
static bool
is_temp_table(RangeVar *relation)
{
	Oid			relid = RangeVarGetRelid(relation, NoLock, true);

	return OidIsValid(relid) &&
		get_rel_persistence(relid) == RELPERSISTENCE_TEMP;
}

/*
 * Have the pool's memory shared if statement, a PlannedStmt or a utility statement, may
 * fill a temporary table.
 */
void
tp_share_before(Node *statement)
{
	bool		fills = false;

	if (!tp_pool_is_to_be_shared())
		return;
	if (IsA(statement, ExplainStmt))
		statement = castNode(Query, ((ExplainStmt *) statement)->query)->utilityStmt;
	if (statement == NULL)
		return;
	if (IsA(statement, CreateTableAsStmt))
	{
		RangeVar   *table = ((CreateTableAsStmt *) statement)->into->rel;

		/* pg_temp.t is marked as temporary only when it is created */
		fills = table->relpersistence == RELPERSISTENCE_TEMP ||
			(table->schemaname != NULL && strcmp(table->schemaname, "pg_temp") == 0);
	}
	else if (IsA(statement, CopyStmt))
		fills = ((CopyStmt *) statement)->is_from &&
			((CopyStmt *) statement)->relation != NULL &&
			tp_session_has_temp_tables() &&
			is_temp_table(((CopyStmt *) statement)->relation);
	else if (IsA(statement, PlannedStmt))
		fills = writes_temp_table((PlannedStmt *) statement);
	if (fills)
		tp_share_pool();
}

/* ----------
 * Before pages are listed for the first time
 * ----------
 */

/* Set the path of this library in worker.  Returns false if it is too long. */
static bool
set_library(BackgroundWorker *worker)
{
	Dl_info		info;
	size_t		length = strlen(pkglib_path);
	size_t		size = sizeof(worker->bgw_library_name);

	if (dladdr(tp_map_leader_main, &info) == 0)
		return false;
	if (strncmp(info.dli_fname, pkglib_path, length) == 0)
		return snprintf(worker->bgw_library_name, size, "$libdir%s",
						info.dli_fname + length) < size;
	return strlcpy(worker->bgw_library_name, info.dli_fname, size) < size;
}

/*
 * Can another process of the server map this one's memory?  Security modules and
 * limits of processes decide, so one tries, which is started for that, once in a session,
 * and changes the page behind the pool.  Returns false, too, if no process can be
 * started now.  Can be canceled.  Only if tp_sharing().
 */
bool
tp_workers_can_map(void)
{
	static bool known = false;
	const SharedMemory *memory = tp_shared_memory();
	BackgroundWorker worker = {
		.bgw_name = "temp_parallel: look at a session's local buffers",
		.bgw_type = "temp_parallel",
		.bgw_flags = BGWORKER_SHMEM_ACCESS,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_function_name = "tp_map_leader_main",
	};
	BackgroundWorkerHandle *handle;

	StaticAssertStmt(sizeof(*memory) <= sizeof(worker.bgw_extra),
					 "SharedMemory does not fit");
	if (known)
		return true;
	memcpy(worker.bgw_extra, memory, sizeof(*memory));
	worker.bgw_notify_pid = MyProcPid;
	if (!set_library(&worker))
	{
		tp_stop_sharing("the path of the library temp_parallel is too long");
		return false;
	}
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		return false;
	(void) WaitForBackgroundWorkerShutdown(handle);
	pfree(handle);
	known = memory->address[memory->size - 1] != 0;
	if (!known)
		tp_stop_sharing("other processes cannot map this one's memory");
	return known;
}
