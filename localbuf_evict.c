/*-------------------------------------------------------------------------
 *
 * localbuf_evict.c
 *	  Bring the pool into a known state, to measure reads and writes: evict the pages of
 *	  temporary tables from it, read them into it, or mark them as dirty.
 *
 * Every page that is read goes through the server's own buffer manager, so that EXPLAIN
 * (BUFFERS) counts it, and is pinned one at a time.
 *
 * The lookup table of local buffers is private to core's localbuf.c, so only core can
 * remove a page from the pool.  In all versions DropRelationAllLocalBuffers() does so, which
 * also drops dirty pages, and raises an error for a pinned one.  It skips buffers without
 * BM_TAG_VALID, so that flag is cleared in buffers that must stay, for the duration of the
 * call.
 *
 * The invariant: a page that is dropped is clean and unpinned; the relations' other pages
 * are hidden from core while it drops, and visible again on every exit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "localbuf.h"

/* ----------
 * Evicting
 * ----------
 */

/* Hide a buffer from core's loops over the pool, or show it again. */
static void
set_tag_valid(int i, bool valid)
{
	BufferDesc *buf = GetLocalBufferDescriptor(i);
	BufferState state = LocalBufferStateRead(buf);

	if (valid)
		state |= BM_TAG_VALID;
	else
		state &= ~((BufferState) BM_TAG_VALID);
	LocalBufferStateWrite(buf, state);
}

/*
 * Drop the clean and unpinned pages of relations, a hash table of TempRelation, by
 * DropRelationAllLocalBuffers() of localbuf.c, and close the accounts of tables among them.
 * Adds the numbers of these pages, and of those that stay, to *result.
 */
static void
drop_clean_pages(HTAB *relations, LocalBufEviction *result)
{
	int		   *buffers;
	int			n = tp_find_buffers(relations, false, &buffers);
	volatile int nkeep = 0;
	TempRelation *relation = NULL;
	HASH_SEQ_STATUS seq;

	for (int i = 0; i < n; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(buffers[i]);

		relation = tp_relation_of_buffer(relations, buffers[i], relation);
		relation->allocated++;
		if ((LocalBufferStateRead(buf) & BM_DIRTY) == 0 &&
			!tp_local_buffer_is_pinned(buffers[i]))
			result->evicted++;
		else
			buffers[nkeep++] = buffers[i];
	}
	result->skipped += nkeep;

	/* nothing else accesses the pool here, and there are no interrupts */
	PG_TRY();
	{
		for (int i = 0; i < nkeep; i++)
			set_tag_valid(buffers[i], false);
		hash_seq_init(&seq, relations);
		while ((relation = hash_seq_search(&seq)) != NULL)
		{
			if (relation->allocated > 0)
				DropRelationAllLocalBuffers(relation->locator);
			tp_account_close(relation->relid);
		}
	}
	PG_FINALLY();
	{
		for (int i = 0; i < nkeep; i++)
			set_tag_valid(buffers[i], true);
	}
	PG_END_TRY();
	pfree(buffers);
}

/*
 * Write the dirty pages of relations, a hash table of TempRelation, without setting hints,
 * and evict those of their pages that are not pinned.  Raises the storage manager's errors,
 * and can be canceled.
 */
static LocalBufEviction
evict_local_buffers(HTAB *relations)
{
	LocalBufEviction result = {0};
	int		   *dirty;

	result.flushed = tp_find_buffers(relations, true, &dirty);
	tp_write_buffers(dirty, result.flushed, NULL);
	pfree(dirty);
	drop_clean_pages(relations, &result);
	return result;
}

/* Evict the pages of the family of table relid, which is locked. */
LocalBufEviction
tp_evict_local_buffers_of_table(Oid relid)
{
	HTAB	   *relations = tp_make_relations();

	tp_enter_family(relations, relid, NIL);
	return evict_local_buffers(relations);
}

/* The same for all that the caller owns.  Pages of others stay, and count as skipped. */
LocalBufEviction
tp_evict_owned_local_buffers(void)
{
	HTAB	   *relations = tp_session_temp_relations(NIL);
	int		   *buffers;
	int			all = tp_find_buffers(NULL, false, &buffers);
	LocalBufEviction result;
	HASH_SEQ_STATUS seq;
	TempRelation *relation;

	hash_seq_init(&seq, relations);
	while ((relation = hash_seq_search(&seq)) != NULL)
	{
		if (!has_privs_of_role(GetUserId(), relation->owner))
			(void) hash_search(relations, &relation->locator, HASH_REMOVE, NULL);
	}
	result = evict_local_buffers(relations);
	result.skipped = all - result.evicted;
	return result;
}

/* ----------
 * Reading and dirtying
 * ----------
 */

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
 * Read all blocks of the main fork of rel, a temporary table, into local buffers, in order
 * or, if randomize, in random order; return their number.  Can be canceled.
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

/*
 * Mark as dirty all pages of rel, a temporary relation, that are in local
 * buffers, of all forks; return their number.  Can be canceled.
 */
int64
tp_dirty_local_buffers_of(Relation rel)
{
	HTAB	   *relations = tp_make_relations();
	int		   *buffers;
	int			n;
	int64		marked = 0;

	(void) tp_enter_relation(relations, RelationFileLocator(rel));
	n = tp_find_buffers(relations, false, &buffers);
	for (int i = 0; i < n; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(buffers[i]);
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if ((LocalBufferStateRead(buf) & BM_VALID) == 0)
			continue;

		/* a hit, so that no page is evicted */
		buffer = ReadBufferExtended(rel, BufTagGetForkNum(&buf->tag),
									buf->tag.blockNum, RBM_NORMAL, NULL);
		Assert(buffer == -buffers[i] - 1);
		MarkBufferDirty(buffer);
		ReleaseBuffer(buffer);
		marked++;
	}
	return marked;
}
