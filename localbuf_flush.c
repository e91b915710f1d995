/*-------------------------------------------------------------------------
 *
 * localbuf_flush.c
 *	  Writing dirty local buffers to their files.
 *
 * A buffer is marked clean only after its page has been handed to the kernel
 * whole.  A write that fails leaves this page and all later ones dirty, so
 * that nothing is lost, and the statement fails with the error of the storage
 * manager.
 *
 * Pages are written in the order of relation, fork and block, whatever their
 * order in the pool, and neighbours with one call where the server has one.
 * The write itself does what FlushLocalBuffer() of localbuf.c does, but for the
 * hints that heap pages get on the way (see localbuf_hints.c).
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"

/* Blocks to write with one call: 128 kB, the server's io_combine_limit. */
#define FLUSH_BATCH		16

/* For qsort() and bsearch(): an order of locators, no matter which. */
int
tp_compare_locators(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(RelFileLocator));
}

/* By relation, fork and block. */
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
 * Does the page of next lie just behind that of prev, in the same file?  A
 * fork has a file for every RELSEG_SIZE blocks, and from 18 on a write must not
 * cross from one to the next.
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

/* Is locator one of nlocators, which are in ascending order? */
static bool
is_one_of(RelFileLocator locator, const RelFileLocator *locators, int nlocators)
{
	return nlocators > 0 &&
		bsearch(&locator, locators, nlocators, sizeof(RelFileLocator),
				tp_compare_locators) != NULL;
}

/*
 * Write nbuffers dirty local buffers with consecutive blocks of one file, and
 * mark them clean.  Their rows get hints if known is not NULL.
 */
static void
write_batch(const int *buffers, int nbuffers, KnownXids *known)
{
	BufferDesc *first = GetLocalBufferDescriptor(buffers[0]);
	SMgrRelation reln = smgropen(BufTagGetRelFileLocator(&first->tag),
								 TempFilesOwner());
	const void *pages[FLUSH_BATCH];
	instr_time	start;

	for (int i = 0; i < nbuffers; i++)
	{
		Page		page = (Page) LocalBufferBlockPointers[buffers[i]];

		if (known != NULL)
			tp_heap_set_hints(page, known);
		PageSetChecksumInplace(page, first->tag.blockNum + i);
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

		state &= ~((BufferState) (BM_DIRTY | BM_JUST_DIRTIED));
		LocalBufferStateWrite(buf, state);
	}
}

/*
 * Write the dirty local buffers of nlocators relations, given by their
 * locators in ascending order; of all relations if locators is NULL.  Rows of
 * heaps, nheaps of them in ascending order, get hints on the way: see
 * tp_heap_takes_hints().  Returns the number of pages written.  Can be cancelled
 * between two calls of the kernel; raises what the storage manager raises.
 */
int64
tp_flush_local_buffers(const RelFileLocator *locators, int nlocators,
					const RelFileLocator *heaps, int nheaps)
{
	int		   *dirty;
	int			ndirty = 0;
	KnownXids	known = {0};

	if (NLocBuffer == 0)
		return 0;

	dirty = palloc_extended((Size) NLocBuffer * sizeof(int), MCXT_ALLOC_HUGE);
	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		RelFileLocator locator;

		if (LocalBufferBlockPointers[i] == NULL)
			break;				/* see tp_localbuf_stats_collect() */
		if ((LocalBufferStateRead(buf) & BM_DIRTY) == 0)
			continue;
		locator = BufTagGetRelFileLocator(&buf->tag);
		if (locators == NULL || is_one_of(locator, locators, nlocators))
			dirty[ndirty++] = i;
	}

	qsort(dirty, ndirty, sizeof(int), compare_buffers);

	for (int i = 0, n; i < ndirty; i += n)
	{
		BufferDesc *first = GetLocalBufferDescriptor(dirty[i]);
		bool		heap;

		CHECK_FOR_INTERRUPTS();

		for (n = 1; n < FLUSH_BATCH && i + n < ndirty; n++)
		{
			if (!follows(GetLocalBufferDescriptor(dirty[i + n - 1]),
						 GetLocalBufferDescriptor(dirty[i + n])))
				break;
		}
		heap = BufTagGetForkNum(&first->tag) == MAIN_FORKNUM &&
			is_one_of(BufTagGetRelFileLocator(&first->tag), heaps, nheaps);
		write_batch(dirty + i, n, heap ? &known : NULL);
	}

	pfree(dirty);
	return ndirty;
}

/*
 * The same for a List of Relation, the heaps among which get hints.
 */
int64
tp_flush_local_buffers_of(List *relations)
{
	RelFileLocator *locators = palloc(list_length(relations) *
									  sizeof(RelFileLocator));
	RelFileLocator *heaps = palloc(list_length(relations) *
								   sizeof(RelFileLocator));
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
	written = tp_flush_local_buffers(locators, n, heaps, nheaps);
	pfree(heaps);
	pfree(locators);
	return written;
}
