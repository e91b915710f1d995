/*-------------------------------------------------------------------------
 *
 * exec_hint.c
 *	  Hints for errors that arise only while workers read temporary tables.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "exec.h"

/*
 * Error context callback: add a hint to three of the server's errors.
 * heap_getnext(), with which several contrib functions read tables, does not
 * recognize the read-only routine as heap's, and descriptors marked by
 * exec_worker_relations.c look like those of another session's tables, or of
 * sequences without a file.
 */
static void
add_hint(void *arg)
{
	MemoryContext old;
	ErrorData  *error;

	if (geterrcode() != ERRCODE_FEATURE_NOT_SUPPORTED &&
		geterrcode() != ERRCODE_UNDEFINED_FILE)
		return;
	old = MemoryContextSwitchTo(CurTransactionContext);
	error = CopyErrorData();
	MemoryContextSwitchTo(old);
	if (error->elevel >= ERROR && error->message != NULL &&
		error->hint == NULL)
	{
		if (strcmp(error->message, "only heap AM is supported") == 0)
			errhint("A temporary table cannot be read in this way while parallel workers read it; call the function in a statement of its own.");
		else if (IsParallelWorker() &&
				 (strcmp(error->message, _("cannot access temporary tables of other sessions")) == 0 ||
				  tp_names_refused_file(error->message)))
			errhint("A parallel worker can access only those temporary tables that its query reads; mark the function that does so PARALLEL RESTRICTED.");
	}
	FreeErrorData(error);
}

/*
 * Call run(true, arg) with hints for errors as above: for the leader in a read-only
 * phase, and for workers.  Raises what that raises.
 */
void
tp_run_with_hint(ParallelRun run, void *arg)
{
	ErrorContextCallback context;

	context.callback = add_hint;
	context.arg = NULL;
	context.previous = error_context_stack;
	error_context_stack = &context;
	run(true, arg);
	error_context_stack = context.previous;
}
