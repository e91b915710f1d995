/*-------------------------------------------------------------------------
 *
 * localbuf_stats.c
 *	  Counting the session's pool of local buffers.
 *
 * Core counts neither how many local buffers are dirty nor whose they are, so
 * one walk over the descriptors counts both, for all relations at once.  The
 * counts are true at the moment of the walk, and nothing is pinned or changed.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

/*
 * Walk over the pool.  Returns the counts in the current memory context;
 * takes no lock and raises nothing but out of memory.
 *
 * A buffer gets its storage when it is first used, and buffers are first used
 * in the order of their numbers (see GetLocalVictimBuffer()), so the walk ends
 * at the first one without.
 */
LocalBufStats *
localbuf_stats_collect(void)
{
	LocalBufStats *stats = palloc0(sizeof(LocalBufStats));
	LocalBufCount *count = NULL;
	HASHCTL		ctl;

	ctl.keysize = sizeof(RelFileLocator);
	ctl.entrysize = sizeof(LocalBufCount);
	ctl.hcxt = CurrentMemoryContext;
	stats->relations = hash_create("local buffers by relation", 64, &ctl,
								   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

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

/*
 * The counts of rel, all forks together; NULL when the pool holds no page of
 * it.
 */
LocalBufCount *
localbuf_stats_relation(LocalBufStats *stats, Relation rel)
{
	return hash_search(stats->relations, &RelationFileLocator(rel), HASH_FIND,
					   NULL);
}

/*
 * Is buffer i of the pool pinned?  By this session's code, which core counts
 * in LocalRefCount, or by a read that is under way (from 18 on), which it
 * counts in the state word alone.
 */
bool
local_buffer_is_pinned(int i)
{
	BufferState state = LocalBufferStateRead(GetLocalBufferDescriptor(i));

	return LocalRefCount[i] != 0 || BUF_STATE_GET_REFCOUNT(state) != 0;
}
