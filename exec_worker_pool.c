/*-------------------------------------------------------------------------
 *
 * exec_worker_pool.c
 *	  A parallel worker's pool of local buffers.
 *
 * Core keeps workers away from temporary tables with one check, in
 * InitLocalBuffers(), when a process uses its first local buffer.  A worker
 * with a flush node in its plan bypasses this check once.
 *
 * The invariants: a worker without a flush node in its plan has no local
 * buffers; ParallelWorkerNumber is restored before anything is sent to the
 * leader.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/guc.h"

#include "exec.h"

/*
 * Error context callback: restore ParallelWorkerNumber before an error is sent
 * to the leader.  InitLocalBuffers() raises FATAL if there is no memory for
 * the pool, and FATAL bypasses PG_FINALLY().
 */
static void
give_number_back(void *arg)
{
	ParallelWorkerNumber = *(int *) arg;
}

/* ----------
 * The pool and the setting temp_buffers
 *
 * The server uses num_temp_buffers, the variable of the setting, as the size
 * of the pool when it is allocated, and later as the number of local buffers
 * that may be pinned.  So in a worker that variable is the size of its own
 * pool, and the setting gets another variable, and a check hook for it.
 * ----------
 */

/* the leader's temp_buffers, and whether it has used local buffers */
static int	session_temp_buffers;
static bool session_pool_used;

/* As check_temp_buffers() does in the leader. */
static bool
check_session_temp_buffers(int *newval, void **extra, GucSource source)
{
	if (source != PGC_S_TEST && session_pool_used &&
		*newval != session_temp_buffers)
	{
		GUC_check_errdetail("\"temp_buffers\" cannot be changed after any temporary tables have been accessed in the session.");
		return false;
	}
	return true;
}

/* Give the setting its own variable, until the worker exits. */
static void
separate_setting_from_pool(bool pool_used)
{
	struct config_int *setting = find_int_setting("temp_buffers");

	Assert(setting->variable == &num_temp_buffers);
	session_temp_buffers = num_temp_buffers;
	session_pool_used = pool_used;
	setting->variable = &session_temp_buffers;
	setting->check_hook = check_session_temp_buffers;
}

/*
 * Allocate the worker's local buffers, if it has none.  rel is any temporary
 * table; no page of it is read.  pool is the number of buffers that the plan
 * needs, see pool_of_worker() of plan_flush_node.c.  The worker gets as
 * many, or LEAST_WORKER_POOL if that is more, but at most the session's temp_buffers,
 * with which the leader runs the same plan; and as many as it is to adopt besides.  pool_used says whether the leader has used local buffers.  Raises FATAL if
 * there is no memory for the pool.
 */
void
tp_worker_open_local_buffers(Relation rel, int pool, int adopted, bool pool_used)
{
	int			worker_number = ParallelWorkerNumber;
	ErrorContextCallback context;

	Assert(IsParallelWorker());
	if (NLocBuffer > 0)
		return;

	separate_setting_from_pool(pool_used);
	num_temp_buffers = Min(Max(pool, LEAST_WORKER_POOL),
						   session_temp_buffers) + adopted;
	context.callback = give_number_back;
	context.arg = &worker_number;
	context.previous = error_context_stack;
	error_context_stack = &context;
	PG_TRY();
	{
		ParallelWorkerNumber = -1;	/* to pass the check */
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
