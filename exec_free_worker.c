/*-------------------------------------------------------------------------
 *
 * exec_free_worker.c
 *	  Is a parallel worker free?
 *
 * To write a table's pages, or to prepare it for an index build, may take long, and is
 * for nobody if no worker can be launched then.  How many are in use is private to
 * bgworker.c, so one is registered, as by LaunchParallelWorkers(), which ends at once.
 *
 * The invariant: the worker has ended, and its slot is free again, when the answer is
 * given.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "postmaster/bgworker.h"

#include "exec.h"

/* What the worker runs: nothing. */
void
tp_free_worker_main(Datum arg)
{
	(void) arg;
}

/*
 * Could a parallel worker be launched now?  Others may take it before the caller does.
 * Takes the time of a process's start, some milliseconds.  Allocates in the current
 * memory context, and frees nothing.  Can be canceled.
 */
bool
tp_worker_is_free(void)
{
	BackgroundWorker worker = {
		.bgw_name = "temp_parallel: is a parallel worker free?",
		.bgw_type = "temp_parallel",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_CLASS_PARALLEL,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "temp_parallel",
		.bgw_function_name = "tp_free_worker_main",
	};
	BackgroundWorkerHandle *handle;

	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		return false;
	(void) WaitForBackgroundWorkerShutdown(handle);
	return true;
}
