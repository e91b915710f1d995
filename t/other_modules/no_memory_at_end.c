/*-------------------------------------------------------------------------
 *
 * no_memory_at_end.c
 *	  A module that has the callbacks of other modules at the end of a transaction
 *	  find no memory.
 *
 * For t/053_out_of_memory.pl.  It is loaded before the other modules, so its first
 * callback is called after theirs; the function registers another one, which is
 * called before theirs.  Between the two, any allocation in the current memory
 * context is a crash.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(no_memory_at_end);

void		_PG_init(void);

static MemoryContext hidden = NULL;

static void
hide_memory(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		hidden = MemoryContextSwitchTo(NULL);
}

static void
show_memory(XactEvent event, void *arg)
{
	if (hidden != NULL)
		(void) MemoryContextSwitchTo(hidden);
	hidden = NULL;
}

/* From now on, in this session. */
Datum
no_memory_at_end(PG_FUNCTION_ARGS)
{
	RegisterXactCallback(hide_memory, NULL);
	PG_RETURN_VOID();
}

void
_PG_init(void)
{
	RegisterXactCallback(show_memory, NULL);
}
