/*-------------------------------------------------------------------------
 *
 * localbuf_flush.c
 *	  Writing dirty local buffers to their files.
 *
 * The invariant: a buffer is marked clean only after the whole page has been
 * handed to the kernel.  A write that fails leaves its pages and all later
 * ones dirty, so that nothing is lost, and the statement fails with the
 * storage manager's error.
 *
 * Pages are written in the order of relation, fork and block, whatever their
 * order in the pool, and consecutive blocks in one call where the server can.
 * The write itself follows FlushLocalBuffer() in localbuf.c (before 18 a part
 * of GetLocalVictimBuffer(), in 15 of LocalBufferAlloc()), except that heap
 * pages get hints first (see localbuf_hints.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "miscadmin.h"
#include "storage/bufpage.h"

#include "localbuf.h"

/* Most blocks per write call: 128 kB, the default of io_combine_limit. */
#define FLUSH_BATCH		16

/* For qsort(): by relation, fork and block. */
static int
compare_buffers(const void *a, const void *b)
{
	BufferDesc *left = GetLocalBufferDescriptor(*(const int *) a);
	BufferDesc *right = GetLocalBufferDescriptor(*(const int *) b);
	RelFileLocator l = BufTagGetRelFileLocator(&left->tag);
	RelFileLocator r = BufTagGetRelFileLocator(&right->tag);
	int			order = tp_compare_locators(&l, &r);

	if (order != 0)
		return order;
	if (BufTagGetForkNum(&left->tag) != BufTagGetForkNum(&right->tag))
		return BufTagGetForkNum(&left->tag) < BufTagGetForkNum(&right->tag) ? -1 : 1;
	if (left->tag.blockNum != right->tag.blockNum)
		return left->tag.blockNum < right->tag.blockNum ? -1 : 1;
	return 0;
}

/*
 * Does the page of next directly follow that of prev, in the same file?  A
 * fork has a file for every RELSEG_SIZE blocks, and from 18 on a write must
 * not cross from one to the next: see mdwritev() of md.c.
 */
static bool
follows(BufferDesc *prev, BufferDesc *next)
{
	RelFileLocator p = BufTagGetRelFileLocator(&prev->tag);
	RelFileLocator n = BufTagGetRelFileLocator(&next->tag);

	return next->tag.blockNum == prev->tag.blockNum + 1 &&
		next->tag.blockNum % ((BlockNumber) RELSEG_SIZE) != 0 &&
		BufTagGetForkNum(&prev->tag) == BufTagGetForkNum(&next->tag) &&
		tp_compare_locators(&p, &n) == 0;
}

/* Is locator among the nlocators ones in locators, in ascending order? */
static bool
is_one_of(RelFileLocator locator, const RelFileLocator *locators, int nlocators)
{
	return nlocators > 0 &&
		bsearch(&locator, locators, nlocators, sizeof(RelFileLocator),
				tp_compare_locators) != NULL;
}

/*
 * Write nbuffers dirty local buffers, FLUSH_BATCH at most, with consecutive
 * blocks of one file, and mark them clean.  If set_hints, their rows get hints
 * first; known is what has been looked up about transactions so far.  As
 * FlushLocalBuffer() of localbuf.c (17: GetLocalVictimBuffer(), 15:
 * LocalBufferAlloc()).  Raises an internal error if workers read one of the pages in
 * this memory.
 */
static void
write_batch(const int *buffers, int nbuffers, bool set_hints, KnownXids *known)
{
	BufferDesc *first = GetLocalBufferDescriptor(buffers[0]);
	SMgrRelation reln = smgropen(BufTagGetRelFileLocator(&first->tag),
								 TempFilesOwner());
	const void *pages[FLUSH_BATCH];
	instr_time	start;

	for (int i = 0; i < nbuffers; i++)
	{
		Page		page = (Page) LocalBufferBlockPointers[buffers[i]];

		if (tp_is_listed(buffers[i]))
			elog(ERROR, "block %u of a temporary table is about to be written while workers read it",
				 first->tag.blockNum + i);
		if (set_hints)
			tp_heap_set_hints(page, known);
		PageSetChecksum(page, first->tag.blockNum + i);
		pages[i] = page;
	}

	start = local_write_io_start();
	smgrwrite_blocks(reln, BufTagGetForkNum(&first->tag), first->tag.blockNum,
					 pages, nbuffers);
	local_write_io_count(start, nbuffers);
	pgBufferUsage.local_blks_written += nbuffers;

	for (int i = 0; i < nbuffers; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(buffers[i]);
		BufferState state = LocalBufferStateRead(buf);

		state &= ~DIRTY_FLAGS;
		LocalBufferStateWrite(buf, state);
	}
}

/* Returns an array with room for the numbers of all local buffers. */
static int *
make_buffer_list(void)
{
	return palloc_extended(Max((Size) NLocBuffer, 1) * sizeof(int),
						   MCXT_ALLOC_HUGE);
}

/*
 * Is buffer i of the pool to be written, as it is dirty, and no worker reads it in
 * the leader's memory?  If so, sets *locator to its relation's.
 */
static bool
is_to_be_written(int i, RelFileLocator *locator)
{
	BufferDesc *buf = GetLocalBufferDescriptor(i);

	if ((LocalBufferStateRead(buf) & BM_DIRTY) == 0 || tp_is_listed(i))
		return false;
	*locator = BufTagGetRelFileLocator(&buf->tag);
	return true;
}

/*
 * Write the ndirty dirty local buffers whose numbers are in dirty, in the
 * order of their files; sorts dirty.  Rows of the nheaps heaps, in ascending
 * order, get hints first: see tp_heap_takes_hints().  Can be canceled between
 * two write calls, and raises the storage manager's errors.
 */
static void
write_buffers(int *dirty, int ndirty, const RelFileLocator *heaps, int nheaps)
{
	KnownXids	known = {0};

	qsort(dirty, ndirty, sizeof(int), compare_buffers);

	for (int i = 0, n; i < ndirty; i += n)
	{
		BufferDesc *first = GetLocalBufferDescriptor(dirty[i]);
		bool		set_hints;

		CHECK_FOR_INTERRUPTS();

		for (n = 1; n < FLUSH_BATCH && i + n < ndirty; n++)
		{
			if (!follows(GetLocalBufferDescriptor(dirty[i + n - 1]),
						 GetLocalBufferDescriptor(dirty[i + n])))
				break;
		}
		set_hints = BufTagGetForkNum(&first->tag) == MAIN_FORKNUM &&
			is_one_of(BufTagGetRelFileLocator(&first->tag), heaps, nheaps);
		write_batch(dirty + i, n, set_hints, &known);
	}
}

/*
 * Write the dirty local buffers of the nlocators relations in locators, which
 * are in ascending order, with hints for those in heaps.  Returns the number
 * of pages written.
 */
static int64
flush_relations(const RelFileLocator *locators, int nlocators,
				const RelFileLocator *heaps, int nheaps)
{
	int		   *dirty = make_buffer_list();
	int			ndirty = 0;
	int			used = tp_used_buffers();
	RelFileLocator locator;

	for (int i = 0; i < used; i++)
	{
		if (is_to_be_written(i, &locator) && is_one_of(locator, locators, nlocators))
			dirty[ndirty++] = i;
	}
	write_buffers(dirty, ndirty, heaps, nheaps);
	pfree(dirty);
	return ndirty;
}

/*
 * Discard the pages of relations that another session has dropped, as a
 * superuser may.  Core keeps them, and whatever has to write one fails with
 * "could not open file", for as long as the session lasts.  relations are those
 * of this session.
 *
 * A relation without a row in pg_class that the running transaction has
 * dropped, truncated or rewritten, and may roll back to, still has its file; a
 * relation with a row but no file is an error.
 */
static void
discard_dropped_relations(HTAB *relations)
{
	LocalBufStats *stats = tp_localbuf_stats_collect();
	HASH_SEQ_STATUS seq;
	LocalBufCount *count;

	hash_seq_init(&seq, stats->relations);
	while ((count = hash_seq_search(&seq)) != NULL)
	{
		/* mdexists() closes the file first, so an unlinked one is detected */
		if (hash_search(relations, &count->locator, HASH_FIND, NULL) == NULL &&
			!smgrexists(smgropen(count->locator, TempFilesOwner()), MAIN_FORKNUM))
			DropRelationAllLocalBuffers(count->locator);
	}
}

/*
 * Write all dirty local buffers, with hints in the session's heaps.  Returns
 * the number of pages written.  Pages of tables that another session has
 * dropped are discarded.  This and the functions below can be canceled, and
 * raise the storage manager's errors; pages not written by then stay dirty.
 */
int64
tp_flush_all_local_buffers(void)
{
	HTAB	   *relations = tp_session_temp_relations();
	int		   *dirty = make_buffer_list();
	int			ndirty = 0;
	RelFileLocator locator;
	RelFileLocator *heaps;
	int			nheaps = tp_heaps_among(relations, &heaps);
	int			used = tp_used_buffers();

	discard_dropped_relations(relations);
	for (int i = 0; i < used; i++)
	{
		if (is_to_be_written(i, &locator))
			dirty[ndirty++] = i;
	}
	write_buffers(dirty, ndirty, heaps, nheaps);
	tp_account_close_all();
	pfree(heaps);
	pfree(dirty);
	return ndirty;
}

/*
 * Write the dirty local buffers of relations, a List of Relation, with hints
 * in the heaps among them.  Returns the number of pages written.
 */
int64
tp_flush_local_buffers_of(List *relations)
{
	int			length = list_length(relations);
	RelFileLocator *locators = palloc(length * sizeof(RelFileLocator));
	RelFileLocator *heaps = palloc(length * sizeof(RelFileLocator));
	int			n = 0;
	int			nheaps = 0;
	int64		written;
	ListCell   *lc;

	foreach(lc, relations)
	{
		Relation	rel = lfirst(lc);

		locators[n++] = RelationFileLocator(rel);
		if (tp_heap_takes_hints(rel))
			heaps[nheaps++] = RelationFileLocator(rel);
	}
	qsort(locators, n, sizeof(RelFileLocator), tp_compare_locators);
	qsort(heaps, nheaps, sizeof(RelFileLocator), tp_compare_locators);
	written = flush_relations(locators, n, heaps, nheaps);
	pfree(heaps);
	pfree(locators);
	return written;
}

/*
 * Write the dirty local buffers of the nlocators relations in locators, which
 * are in ascending order, without hints: for pages that are not read again
 * soon.  Returns the number of pages written.
 */
int64
tp_flush_without_hints(const RelFileLocator *locators, int nlocators)
{
	return flush_relations(locators, nlocators, NULL, 0);
}
