/*-------------------------------------------------------------------------
 *
 * localbuf_dropped.c
 *	  Local buffers of tables that another session has dropped.
 *
 * A superuser, or the owner of the table, may drop a temporary table of
 * another session.  This removes its files, but that session's pool keeps the
 * pages, and core regards them as valid: whatever needs a buffer and picks a
 * dirty one of them fails with "could not open file", buffer after buffer, for
 * as long as the session lasts, and so would a flush of the whole pool.
 *
 * Such pages are discarded here: by the functions that write the whole pool,
 * and, after a statement has failed because of a missing file, before the next
 * one begins.  So the first statement fails as it does without this module,
 * but the session remains usable.
 *
 * The invariant: pages are discarded only if no row in pg_class describes
 * their relation and its file does not exist.  A relation of this session
 * whose file is missing has a row, and remains an error; a relation that the
 * running transaction has dropped, truncated or rewritten, and may roll back
 * to, still has its file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "localbuf.h"

/* Has a file been missing since dropped relations were last discarded? */
bool		tp_file_was_missing = false;

/* Error context callback: remember that a file was missing. */
static void
note_missing_file(void *arg)
{
	if (geterrcode() == ERRCODE_UNDEFINED_FILE)
		tp_file_was_missing = true;
}

/*
 * Note errors about missing files until tp_end_noting_missing_files(),
 * including those that are caught in between.  *context is the caller's, and
 * lives until then.  After an error, whoever catches it restores
 * error_context_stack.
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
	for (int i = tp_used_buffers() - 1; i >= 0; i--)
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
 * Discard the pages of relations that another session has dropped.  Must not
 * be called while workers may be reading.  Leaves nothing in the current
 * memory context.  Raises the storage manager's errors, and can be canceled.
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

		/* mdexists() closes the file first, so an unlinked one is detected */
		if (smgrexists(smgropen(count->locator, TempFilesOwner()), MAIN_FORKNUM))
			continue;

		/* not expected, as a reader has a lock; dropping would be an error */
		if (is_pinned(count->locator))
			continue;
		DropRelationAllLocalBuffers(count->locator);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * Call tp_discard_dropped_relations() at the start of a statement if a file was
 * missing in an earlier one.  Does nothing in an aborted transaction or in
 * parallel mode; a later statement will.
 */
void
tp_discard_after_missing_file(void)
{
	if (tp_file_was_missing && IsTransactionState() && !IsInParallelMode())
		tp_discard_dropped_relations();
}
