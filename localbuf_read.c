/*-------------------------------------------------------------------------
 *
 * localbuf_read.c
 *	  Read a temporary table into the pool, or mark its pages there as dirty.
 *
 * This brings the pool into a known state, and allows for measuring reads.
 * Every page goes through the server's own buffer manager, so that EXPLAIN
 * (BUFFERS) counts it, and is pinned one at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"

#include "localbuf.h"

/* Returns an array of the numbers 0 to n - 1 in random order. */
static BlockNumber *
shuffled_blocks(BlockNumber n)
{
	BlockNumber *blocks = palloc_extended((Size) n * sizeof(BlockNumber),
										  MCXT_ALLOC_HUGE);

	for (BlockNumber i = 0; i < n; i++)
	{
		BlockNumber j = (BlockNumber)
			pg_prng_uint64_range(&pg_global_prng_state, 0, i);

		/* Fisher-Yates, filling the array while shuffling it */
		if (j != i)
			blocks[i] = blocks[j];
		blocks[j] = i;
	}
	return blocks;
}

/*
 * Read all blocks of the main fork of rel, a temporary table, into local
 * buffers, in order or in random order; return their number.  Can be canceled.
 */
BlockNumber
tp_read_into_local_buffers(Relation rel, bool randomize)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BlockNumber *order = NULL;

	if (randomize && nblocks > 0)
		order = shuffled_blocks(nblocks);

	for (BlockNumber i = 0; i < nblocks; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ReleaseBuffer(ReadBuffer(rel, order == NULL ? i : order[i]));
	}

	if (order != NULL)
		pfree(order);
	return nblocks;
}

/* Does buffer i of the pool hold a page of the relation? */
static bool
holds_page_of(int i, const RelFileLocator *locator)
{
	BufferDesc *buf = GetLocalBufferDescriptor(i);
	BufferState state = LocalBufferStateRead(buf);
	RelFileLocator held;

	if ((state & BM_TAG_VALID) == 0 || (state & BM_VALID) == 0)
		return false;
	held = BufTagGetRelFileLocator(&buf->tag);
	return memcmp(&held, locator, sizeof(RelFileLocator)) == 0;
}

/*
 * Mark as dirty all pages of rel, a temporary relation, that are in local
 * buffers, of all forks; return their number.  Can be canceled.
 */
int64
tp_dirty_local_buffers_of(Relation rel)
{
	int64		marked = 0;

	for (int i = tp_used_buffers() - 1; i >= 0; i--)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (!holds_page_of(i, &RelationFileLocator(rel)))
			continue;

		/* a hit, so that no page is evicted */
		buffer = ReadBufferExtended(rel, BufTagGetForkNum(&buf->tag),
									buf->tag.blockNum, RBM_NORMAL, NULL);
		Assert(buffer == -i - 1);
		MarkBufferDirty(buffer);
		ReleaseBuffer(buffer);
		marked++;
	}
	return marked;
}
