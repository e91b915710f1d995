/*-------------------------------------------------------------------------
 *
 * localbuf_stats.c
 *	  Counting the session's pool of local buffers.
 *
 * Core counts neither how many local buffers are dirty nor whose they are, so
 * one walk over the descriptors counts both, for all relations at once.  The
 * counts are true at the moment of the walk, and nothing is pinned or changed.
 *
 * With a large pool the walk costs as much as a small query, and a statement's
 * plan is priced twice, by the planner and by the second look.  For prices, the
 * last walk's counts are therefore taken again for as long as core's own counters
 * say that no page has come into the pool, become dirty or been written.  They do
 * not count what drops pages, as DROP and TRUNCATE do: these leave no page of
 * the file, and any page that comes after is counted.
 *
 * The invariant: what is written, and what a user asks for, never depends on
 * counts that were not made for it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "utils/memutils.h"

#include "localbuf.h"

/* the counts of the last walk for a price, and core's counters at that time */
static MemoryContext last_context = NULL;
static LocalBufStats *last_stats = NULL;
static BufferUsage last_usage;

static HTAB *
make_counts(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(RelFileLocator);
	ctl.entrysize = sizeof(LocalBufCount);
	ctl.hcxt = CurrentMemoryContext;
	return hash_create("local buffers by relation", 64, &ctl,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Walk over the pool.  Returns the counts in the current memory context;
 * takes no lock and raises nothing but out of memory.
 *
 * A buffer gets its storage when it is first used, and buffers are first used
 * in the order of their numbers (see GetLocalVictimBuffer() of localbuf.c; 15:
 * LocalBufferAlloc()), so the walk ends at the first one without.
 */
LocalBufStats *
tp_localbuf_stats_collect(void)
{
	LocalBufStats *stats = palloc0(sizeof(LocalBufStats));
	LocalBufCount *count = NULL;

	stats->relations = make_counts();

	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		BufferState state;
		RelFileLocator locator;

		if (LocalBufferBlockPointers[i] == NULL)
			break;
		stats->allocated++;

		state = LocalBufferStateRead(buf);
		if ((state & BM_TAG_VALID) == 0)
			continue;

		/* neighbours mostly belong together: look up only what is new */
		locator = BufTagGetRelFileLocator(&buf->tag);
		if (count == NULL ||
			memcmp(&count->locator, &locator, sizeof(RelFileLocator)) != 0)
		{
			bool		found;

			count = hash_search(stats->relations, &locator, HASH_ENTER, &found);
			if (!found)
				count->allocated = count->dirtied = 0;
		}
		count->allocated++;
		if (state & BM_DIRTY)
		{
			count->dirtied++;
			stats->dirtied++;
		}
	}
	return stats;
}

/* Has the pool changed since last_usage, as far as a price goes? */
static bool
pool_has_changed(void)
{
	return pgBufferUsage.local_blks_dirtied != last_usage.local_blks_dirtied ||
		pgBufferUsage.local_blks_written != last_usage.local_blks_written ||
		pgBufferUsage.local_blks_read != last_usage.local_blks_read;
}

/*
 * The same for a price: walks over the pool only if it has changed since the
 * last time.
 */
LocalBufStats *
tp_localbuf_stats_for_price(void)
{
	LocalBufStats *stats;
	HASH_SEQ_STATUS seq;
	LocalBufCount *count;

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

	/* a copy, as a statement that is planned meanwhile may count anew */
	stats = palloc(sizeof(LocalBufStats));
	*stats = *last_stats;
	stats->relations = make_counts();
	hash_seq_init(&seq, last_stats->relations);
	while ((count = hash_seq_search(&seq)) != NULL)
		*(LocalBufCount *) hash_search(stats->relations, &count->locator,
									   HASH_ENTER, NULL) = *count;
	return stats;
}

/*
 * The counts of rel, all forks together; NULL when the pool holds no page of
 * it.
 */
LocalBufCount *
tp_localbuf_stats_relation(LocalBufStats *stats, Relation rel)
{
	return hash_search(stats->relations, &RelationFileLocator(rel), HASH_FIND,
					   NULL);
}

/*
 * Is buffer i of the pool pinned?  By this session's code, which core counts
 * in LocalRefCount, or by a read that is under way (from 18 on), which it
 * counts in the state word alone.  As InvalidateLocalBuffer() of localbuf.c
 * (before 18: DropRelationAllLocalBuffers()).
 */
bool
tp_local_buffer_is_pinned(int i)
{
	BufferState state = LocalBufferStateRead(GetLocalBufferDescriptor(i));

	return LocalRefCount[i] != 0 || BUF_STATE_GET_REFCOUNT(state) != 0;
}
