/*-------------------------------------------------------------------------
 *
 * localbuf_flush.c
 *	  Writing dirty local buffers to their files.
 *
 * Pages are written in the order of relation, fork and block, consecutive blocks in one
 * call where the server can.
 *
 * The first reader of a row looks up whether the row's transaction has committed, and sets
 * a hint bit for later readers.  What a worker sets in its copy of a page is lost when it
 * exits: every worker would look up every row's transaction in every query.  So the flush
 * sets the bits on heap pages, which it writes anyway.
 *
 * The invariants: a buffer is marked clean only when the whole page has been handed to the
 * kernel.  A write that fails leaves its pages and all later ones dirty, and raises the
 * storage manager's error.  A hint bit is set only where HeapTupleSatisfiesMVCC() would
 * set it in this session at this moment, not for a transaction in progress, including this
 * one, or for row locks, and nothing else on the page is changed.  (A temporary relation is
 * not WAL-logged, so a hint may reach the disk before the commit record does, see
 * SetHintBits() in heapam_visibility.c.)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "storage/bufpage.h"
#include "storage/procarray.h"

#include "localbuf.h"

/* Most blocks per write call: 128 kB, the default of io_combine_limit. */
#define FLUSH_BATCH		16

/* ----------
 * Hints
 * ----------
 */

typedef struct KnownXid
{
	TransactionId xid;
	uint16		hint;			/* to set in t_infomask, or 0 */
} KnownXid;

typedef struct KnownXids		/* zeroed: nothing is known */
{
	KnownXid	xmin;
	KnownXid	xmax;
} KnownXids;

/* The hint that a reader would set for xid now: committed, aborted, or none, which is 0. */
static pg_noinline uint16
look_up(TransactionId xid, uint16 committed, uint16 aborted)
{
	/* in the order of HeapTupleSatisfiesMVCC() of heapam_visibility.c */
	if (TransactionIdIsCurrentTransactionId(xid) ||
		TransactionIdIsInProgress(xid))
		return 0;
	return TransactionIdDidCommit(xid) ? committed : aborted;
}

/* look_up(), with its last result in *known: adjacent rows mostly have the same xid. */
static inline uint16
hint_about(TransactionId xid, KnownXid *known, uint16 committed, uint16 aborted)
{
	if (xid != known->xid)
	{
		known->hint = look_up(xid, committed, aborted);
		known->xid = xid;
	}
	return known->hint;
}

/*
 * Set hints on the rows of page, which is of a heap's main fork and is written next.
 * *known is zeroed before the first page of a flush.  As SetHintBits() and
 * HeapTupleSatisfiesMVCC() of heapam_visibility.c.  Raises an error if the status of a
 * transaction cannot be read.
 */
static void
heap_set_hints(Page page, KnownXids *known)
{
	OffsetNumber maxoff = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		HeapTupleHeader tuple;
		uint16		mask;

		if (!ItemIdIsNormal(lp))
			continue;
		tuple = (HeapTupleHeader) PageGetItem(page, lp);
		mask = tuple->t_infomask;

		if ((mask & (HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID |
					 HEAP_MOVED)) == 0)
			mask |= hint_about(HeapTupleHeaderGetRawXmin(tuple), &known->xmin,
							   HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID);

		/* a reader looks up the deletion only if the insertion has committed */
		if ((mask & (HEAP_XMAX_INVALID | HEAP_XMAX_COMMITTED |
					 HEAP_XMAX_IS_MULTI)) == 0 &&
			(mask & HEAP_XMIN_COMMITTED) != 0 &&
			!HEAP_XMAX_IS_LOCKED_ONLY(mask))
			mask |= hint_about(HeapTupleHeaderGetRawXmax(tuple), &known->xmax,
							   HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID);

		tuple->t_infomask = mask;
	}
}

/* ----------
 * Writing
 * ----------
 */

/* For qsort(): by relation, fork and block. */
static int
compare_buffers(const void *a, const void *b)
{
	BufferDesc *left = GetLocalBufferDescriptor(*(const int *) a);
	BufferDesc *right = GetLocalBufferDescriptor(*(const int *) b);
	RelFileLocator l = BufTagGetRelFileLocator(&left->tag);
	RelFileLocator r = BufTagGetRelFileLocator(&right->tag);
	int			order = memcmp(&l, &r, sizeof(RelFileLocator));

	if (order != 0)
		return order;
	if (BufTagGetForkNum(&left->tag) != BufTagGetForkNum(&right->tag))
		return BufTagGetForkNum(&left->tag) < BufTagGetForkNum(&right->tag) ? -1 : 1;
	if (left->tag.blockNum != right->tag.blockNum)
		return left->tag.blockNum < right->tag.blockNum ? -1 : 1;
	return 0;
}

/*
 * Does the page of next directly follow that of prev, in the same segment?  From 18 on, a
 * write must not cross from one to the next: see mdwritev() of md.c.
 */
static bool
follows(BufferDesc *prev, BufferDesc *next)
{
	BufferTag	following = prev->tag;

	following.blockNum++;
	return memcmp(&next->tag, &following, sizeof(BufferTag)) == 0 &&
		following.blockNum % ((BlockNumber) RELSEG_SIZE) != 0;
}

/*
 * Write nbuffers dirty local buffers, FLUSH_BATCH at most, with consecutive blocks of one
 * file, and mark them clean.  If set_hints, their rows get hints first; for known, see
 * heap_set_hints().  As FlushLocalBuffer() of localbuf.c (17: GetLocalVictimBuffer(), 15:
 * LocalBufferAlloc()).  Raises an internal error if one of the pages is listed.
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
			heap_set_hints(page, known);
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

		state &= ~(DIRTY_FLAGS | HINTS_DROPPED);
		LocalBufferStateWrite(buf, state);
	}
}

/*
 * Write the ndirty dirty local buffers whose numbers are in dirty, in the
 * order of their files; sorts dirty.  Rows of those of relations that take hints
 * get them first; relations may be NULL.  Can be canceled between two write
 * calls, and raises the storage manager's errors.
 */
void
tp_write_buffers(int *dirty, int ndirty, HTAB *relations)
{
	KnownXids	known = {0};
	TempRelation *relation = NULL;

	qsort(dirty, ndirty, sizeof(int), compare_buffers);

	for (int i = 0, n; i < ndirty; i += n)
	{
		BufferDesc *first = GetLocalBufferDescriptor(dirty[i]);

		CHECK_FOR_INTERRUPTS();

		for (n = 1; n < FLUSH_BATCH && i + n < ndirty; n++)
		{
			if (!follows(GetLocalBufferDescriptor(dirty[i + n - 1]),
						 GetLocalBufferDescriptor(dirty[i + n])))
				break;
		}
		if (relations != NULL)
			relation = tp_relation_of_buffer(relations, dirty[i], relation);
		write_batch(dirty + i, n,
					relation != NULL && relation->takes_hints &&
					BufTagGetForkNum(&first->tag) == MAIN_FORKNUM, &known);
	}
}

/*
 * Discard the pages of relations that another session has dropped, as a superuser may.
 * Core keeps them, and whatever has to write one fails with "could not open file".
 * relations are those of this session, of which one without a file is an error.  A file that
 * the running transaction has dropped, and may roll back to, still exists.
 */
static void
discard_dropped_relations(HTAB *relations)
{
	LocalBufStats *stats = tp_localbuf_stats_collect();
	HASH_SEQ_STATUS seq;
	TempRelation *count;

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
 * Write all dirty local buffers, but discard pages of tables that another session has
 * dropped.  Returns the number of pages written.
 */
int64
tp_flush_all_local_buffers(void)
{
	HTAB	   *relations = tp_session_temp_relations(NIL);
	int		   *dirty;
	int			ndirty;

	discard_dropped_relations(relations);
	ndirty = tp_find_buffers(NULL, true, &dirty);
	tp_write_buffers(dirty, ndirty, relations);
	tp_account_close_all();
	pfree(dirty);
	return ndirty;
}

/*
 * Write the dirty pages of tables relids, their TOAST tables and those of their
 * indexes that are in indexes, and settle the tables' accounts.  The tables are
 * locked.  Returns the number of pages written.
 *
 * If shared is not NULL, pages whose memory is shared are listed in it
 * instead: those that are listed for other workers, and at most limit others,
 * as long as no more than most_pinned buffers are pinned.  If it has no room for those that
 * are listed for other workers, nothing is listed or written, and the result is -1.  If it is
 * NULL, these pages stay as they are.
 *
 * Allocates in the current memory context, and frees nothing.
 */
int64
tp_flush_tables(List *relids, List *indexes, FlushShared *shared, int limit,
				int most_pinned)
{
	LocalBufStats left = {.relations = tp_make_relations()};
	TempRelation *relation = NULL;
	int			used = tp_used_buffers();
	int		   *dirty = palloc_extended(Max((Size) used, 1) * sizeof(int),
										MCXT_ALLOC_HUGE);
	int			ndirty = 0;
	ListCell   *lc;

	foreach(lc, relids)
		tp_enter_family(left.relations, lfirst_oid(lc), indexes);
	for (int i = 0; i < used; i++)
	{
		most_pinned -= tp_local_buffer_is_pinned(i);
		if ((LocalBufferStateRead(GetLocalBufferDescriptor(i)) & BM_DIRTY) == 0)
			continue;
		relation = tp_relation_of_buffer(left.relations, i, relation);
		if (relation == NULL)
			continue;
		if (relation->left_alone || (shared == NULL && tp_is_listed(i)))
			relation->dirtied++;
		else
			dirty[ndirty++] = i;
	}
	if (shared != NULL)
		ndirty = tp_list_buffers(shared, Min(limit, most_pinned), dirty, ndirty,
								 left.relations);
	if (ndirty < 0)
		return -1;
	tp_write_buffers(dirty, ndirty, left.relations);
	tp_settle_accounts(relids, &left);
	return ndirty;
}
