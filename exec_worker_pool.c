/*-------------------------------------------------------------------------
 *
 * exec_worker_pool.c
 *	  A parallel worker's pool of local buffers.
 *
 * Core keeps workers away from temporary tables with one check, in
 * InitLocalBuffers(), when a process touches its first local buffer.  A worker
 * below a flush node is let past it, once.
 *
 * The invariants: a worker without a flush node in its plan has no local buffers;
 * ParallelWorkerNumber has its value back before anything is sent to the leader.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/guc.h"

#include "exec.h"

/*
 * Error context callback: the worker has its number back before anything is sent
 * to the leader.  InitLocalBuffers() raises FATAL when there is no memory for the
 * pool, and FATAL bypasses PG_FINALLY().
 */
static void
give_number_back(void *arg)
{
	ParallelWorkerNumber = *(int *) arg;
}

/* ----------
 * The pool and the setting temp_buffers
 *
 * The server takes num_temp_buffers, the variable behind the setting, both for
 * the size of the pool when it is made and for the number of local buffers that
 * may be pinned later on.  So in a worker that variable is the size of the pool,
 * and the setting, with its check, gets a variable of its own.
 * ----------
 */

/* temp_buffers, as the leader has it */
static int	session_temp_buffers;

/* As check_temp_buffers() of localbuf.c (15: guc.c), once there is a pool. */
static bool
check_session_temp_buffers(int *newval, void **extra, GucSource source)
{
	if (source != PGC_S_TEST && *newval != session_temp_buffers)
	{
		GUC_check_errdetail("\"temp_buffers\" cannot be changed after any temporary tables have been accessed in the session.");
		return false;
	}
	return true;
}

/* For the rest of the worker's life. */
static void
separate_setting_from_pool(void)
{
	struct config_int *setting = find_int_setting("temp_buffers");

	Assert(setting->variable == &num_temp_buffers);
	session_temp_buffers = num_temp_buffers;
	setting->variable = &session_temp_buffers;
	setting->check_hook = check_session_temp_buffers;
}

/*
 * Make the worker's pool of local buffers.  rel is any of the tables that it
 * is going to read; nothing of it is read yet.  The pool has
 * temp_parallel.worker_temp_buffers, or more if the plan may have more pinned;
 * but not for that more than the session's own pool, in which the leader runs the
 * same plan.
 */
void
tp_worker_open_local_buffers(Relation rel, int pins)
{
	int			worker_number = ParallelWorkerNumber;
	ErrorContextCallback context;

	Assert(IsParallelWorker());
	if (NLocBuffer > 0)
		return;

	separate_setting_from_pool();
	num_temp_buffers = Max(tp_worker_temp_buffers,
						   Min(pins, session_temp_buffers));
	context.callback = give_number_back;
	context.arg = &worker_number;
	context.previous = error_context_stack;
	error_context_stack = &context;
	PG_TRY();
	{
		ParallelWorkerNumber = -1;	/* for InitLocalBuffers() of localbuf.c */
		(void) PrefetchBuffer(rel, MAIN_FORKNUM, 0);
	}
	PG_FINALLY();
	{
		ParallelWorkerNumber = worker_number;
	}
	PG_END_TRY();
	error_context_stack = context.previous;

	if (NLocBuffer == 0)
		elog(ERROR, "could not initialize local buffers in a parallel worker");
}
