/*-------------------------------------------------------------------------
 *
 * localbuf_stats.c
 *	  Finding and counting the pages in the session's pool of local buffers.
 *
 * Core counts neither the dirty local buffers nor those of each relation, so one walk
 * over the descriptors counts both.  Nothing is pinned or changed.
 *
 * The walk over a large pool costs more than a small query, and the flush of a statement is
 * costed twice.  So cost estimates use the counts of the last walk again as long as core's
 * counters show that few pages have been read into the pool, dirtied or written since: one in
 * a thousand by default, so what changed them has taken longer than the walk.
 *
 * The invariant: only cost estimates use counts of an earlier walk; what is written, and
 * what is shown to the user, does not depend on these.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "utils/memutils.h"

#include "localbuf.h"

/*
 * Set *buffers to the numbers of the buffers that hold a page of relations, a hash table of
 * TempRelation, or if that is NULL, of any relation; if dirty is set, only of those that are
 * dirty and not listed.  Returns their number.
 */
int
tp_find_buffers(HTAB *relations, bool dirty, int **buffers)
{
	int			used = tp_used_buffers();
	int			n = 0;
	TempRelation *relation = NULL;

	*buffers = palloc_extended(Max((Size) used, 1) * sizeof(int), MCXT_ALLOC_HUGE);
	for (int i = 0; i < used; i++)
	{
		BufferState state = LocalBufferStateRead(GetLocalBufferDescriptor(i));

		if ((state & BM_TAG_VALID) == 0 ||
			(dirty && ((state & BM_DIRTY) == 0 || tp_is_listed(i))))
			continue;
		if (relations != NULL)
		{
			relation = tp_relation_of_buffer(relations, i, relation);
			if (relation == NULL)
				continue;
		}
		(*buffers)[n++] = i;
	}
	return n;
}

/* by what part of the cost of the search may old counts be wrong? */
#define TOLERANCE	0.125

/* counts of the last walk for a cost estimate, and core's counters then */
static MemoryContext last_context = NULL;
static LocalBufStats *last_stats = NULL;
static BufferUsage last_usage;

/* Walk over the pool.  Returns the counts in the current memory context. */
LocalBufStats *
tp_localbuf_stats_collect(void)
{
	LocalBufStats *stats = palloc0(sizeof(LocalBufStats));
	TempRelation *count = NULL;

	stats->relations = tp_make_relations();
	stats->allocated = tp_used_buffers();
	stats->most_shared = tp_most_shared_pages(false);

	for (int i = 0; i < stats->allocated; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		BufferState state = LocalBufferStateRead(buf);

		if ((state & BM_TAG_VALID) == 0)
			continue;
		count = tp_relation_of_buffer(stats->relations, i, count);
		if (count == NULL)
			count = tp_enter_relation(stats->relations,
									  BufTagGetRelFileLocator(&buf->tag));
		count->allocated++;
		if (state & BM_DIRTY)
		{
			count->dirtied++;
			count->shareable += tp_buffer_is_shared(i);
		}
	}
	return stats;
}

/* Have so many pages changed since last_usage that the pool is to be walked again? */
static bool
pool_has_changed(void)
{
	int64		changes =
		pgBufferUsage.local_blks_dirtied - last_usage.local_blks_dirtied +
		pgBufferUsage.local_blks_written - last_usage.local_blks_written +
		pgBufferUsage.local_blks_read - last_usage.local_blks_read;

	return changes > 0 && changes * Max(tp_write_temp_page_cost, 1.0) >
		TOLERANCE * tp_buffer_scan_cost * last_stats->allocated;
}

/*
 * Returns the counts for a cost estimate, valid until the next call.  user_code: may the
 * statement run user code while workers read (see tp_most_shared_pages())?
 */
LocalBufStats *
tp_localbuf_stats_for_cost(bool user_code)
{
	if (last_stats == NULL || pool_has_changed())
	{
		MemoryContext old;

		last_stats = NULL;
		if (last_context == NULL)
			last_context = AllocSetContextCreate(TopMemoryContext,
												 "local buffer counts",
												 ALLOCSET_SMALL_SIZES);
		MemoryContextReset(last_context);
		old = MemoryContextSwitchTo(last_context);
		last_stats = tp_localbuf_stats_collect();
		MemoryContextSwitchTo(old);
		last_usage = pgBufferUsage;
	}

	last_stats->most_shared = tp_most_shared_pages(user_code);
	return last_stats;
}

/*
 * Is buffer i of the pool pinned?  From 18 on, core counts the pins of a read in progress
 * in the state word alone.  As InvalidateLocalBuffer() of localbuf.c (before 18:
 * DropRelationAllLocalBuffers()).
 */
bool
tp_local_buffer_is_pinned(int i)
{
	BufferState state = LocalBufferStateRead(GetLocalBufferDescriptor(i));

	return LocalRefCount[i] != 0 || BUF_STATE_GET_REFCOUNT(state) != 0;
}
