/*-------------------------------------------------------------------------
 *
 * localbuf_dropped.c
 *	  Local buffers of tables that another session has dropped.
 *
 * A superuser, and the owner of a table in a session of his, may drop a temporary
 * table of another session.  Its files are gone then, but that session's pool
 * keeps the pages, and core takes them for good: whatever needs a buffer and
 * meets a dirty one of them fails with "could not open file", buffer for buffer,
 * for as long as the session lasts, and so would a flush of the whole pool.
 *
 * Such pages are discarded here: by the functions that write the whole pool,
 * and, when a statement has failed for want of a file, before the next one
 * begins.  So the first statement fails as it does without this module, and the
 * session goes on.
 *
 * The invariant: pages are discarded only of a relation that no row in pg_class
 * describes and whose file does not exist.  A relation of this session whose
 * file is missing has a row, and stays an error; what the running transaction
 * has dropped, truncated or rewritten, and may roll back to, has its file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "localbuf.h"

/* Has a statement failed for want of a file since the pool was looked through? */
bool		tp_file_was_missing = false;

/* As error context: remember what the error says. */
static void
note_missing_file(void *arg)
{
	if (geterrcode() == ERRCODE_UNDEFINED_FILE)
		tp_file_was_missing = true;
}

/*
 * For the length of a hook's call: notice errors for want of a file, also those
 * that are caught within.  An error leaves error_context_stack to who catches it.
 */
void
tp_begin_noting_missing_files(ErrorContextCallback *context)
{
	context->callback = note_missing_file;
	context->arg = NULL;
	context->previous = error_context_stack;
	error_context_stack = context;
}

void
tp_end_noting_missing_files(ErrorContextCallback *context)
{
	error_context_stack = context->previous;
}

/* Is a page of the relation pinned? */
static bool
is_pinned(RelFileLocator locator)
{
	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		RelFileLocator tag = BufTagGetRelFileLocator(&buf->tag);

		if ((LocalBufferStateRead(buf) & BM_TAG_VALID) != 0 &&
			memcmp(&tag, &locator, sizeof(RelFileLocator)) == 0 &&
			tp_local_buffer_is_pinned(i))
			return true;
	}
	return false;
}

/*
 * Discard the pages of relations that another session has dropped.  Not while
 * workers may be reading.  Leaves nothing in the current memory context; raises
 * what the storage manager raises, and honours a cancel.
 */
void
tp_discard_dropped_relations(void)
{
	MemoryContext context;
	MemoryContext old;
	LocalBufStats *stats;
	HTAB	   *relations;
	HASH_SEQ_STATUS seq;
	LocalBufCount *count;

	Assert(!IsInParallelMode());
	tp_file_was_missing = false;
	if (NLocBuffer == 0)
		return;

	context = AllocSetContextCreate(CurrentMemoryContext,
									"dropped temporary tables",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	stats = tp_localbuf_stats_collect();
	relations = tp_session_temp_relations();

	hash_seq_init(&seq, stats->relations);
	while ((count = hash_seq_search(&seq)) != NULL)
	{
		if (hash_search(relations, &count->locator, HASH_FIND, NULL) != NULL)
			continue;

		/* mdexists() of md.c closes it first, to notice that it is gone */
		if (smgrexists(smgropen(count->locator, TempFilesOwner()), MAIN_FORKNUM))
			continue;

		/* would be an error; nothing can be reading it */
		if (is_pinned(count->locator))
			continue;
		DropRelationAllLocalBuffers(count->locator);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * Do so at the beginning of a statement, if one before it has failed for want of
 * a file.  In an aborted transaction, or in parallel mode, a later statement
 * will.
 */
void
tp_discard_after_missing_file(void)
{
	if (tp_file_was_missing && IsTransactionState() && !IsInParallelMode())
		tp_discard_dropped_relations();
}
