/*-------------------------------------------------------------------------
 *
 * localbuf_hints.c
 *	  Hint bits on heap pages that are about to be written.
 *
 * A row that was just inserted does not say whether its transaction has
 * committed.  The first reader finds out and notes it in the row, so that later
 * readers need not.  Parallel workers each have a copy of the page of their own,
 * which goes when they do: every one of them would find out again, for every
 * row, at every query.  So the flush notes it for them, on pages that it writes
 * anyway.
 *
 * The invariant: a bit is set only where HeapTupleSatisfiesMVCC() would set it
 * in this session at this moment, and nothing else on the page is changed.  In
 * particular nothing is said of a transaction that is not over, this one and its
 * subtransactions included, nor of row locks.  A temporary relation is not
 * WAL-logged, so that a commit record need not be on disk before its hint (see
 * SetHintBits() in heapam_visibility.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/bufpage.h"
#include "storage/procarray.h"

#include "localbuf.h"

/*
 * Whether rel's main fork consists of heap pages that hints may be set on.
 * False also if there is nothing to say about its rows, as the transaction that
 * has made its file is still running.
 */
bool
tp_heap_takes_hints(Relation rel)
{
	return tp_is_heap(rel->rd_rel->relam, rel->rd_rel->relkind) &&
		rel->rd_createSubid == InvalidSubTransactionId &&
		rel->rd_firstRelfilelocatorSubid == InvalidSubTransactionId;
}

/*
 * Find out what a reader would note about xid now: committed, aborted, or
 * nothing.
 */
static pg_noinline uint16
look_up(TransactionId xid, uint16 committed, uint16 aborted)
{
	/* the order matters: see HeapTupleSatisfiesMVCC(), heapam_visibility.c */
	if (TransactionIdIsCurrentTransactionId(xid) ||
		TransactionIdIsInProgress(xid))
		return 0;
	return TransactionIdDidCommit(xid) ? committed : aborted;
}

/*
 * The same, knowing what was found out last: rows that lie next to each other
 * mostly are of the same transaction.
 */
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
 * Set hints on the rows of page, a page of a heap's main fork.  known is zeroed
 * before the first page of a flush, and passed on from page to page.
 * As SetHintBits() and HeapTupleSatisfiesMVCC() of heapam_visibility.c.
 *
 * The caller writes the page whether or not it has changed.  Raises what looking
 * up a transaction raises, if its status cannot be read.
 */
void
tp_heap_set_hints(Page page, KnownXids *known)
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

		/*
		 * Most rows have never been deleted.  Of one whose insertion has not
		 * committed, a reader does not ask.
		 */
		if ((mask & (HEAP_XMAX_INVALID | HEAP_XMAX_COMMITTED |
					 HEAP_XMAX_IS_MULTI)) == 0 &&
			(mask & HEAP_XMIN_COMMITTED) != 0 &&
			!HEAP_XMAX_IS_LOCKED_ONLY(mask))
			mask |= hint_about(HeapTupleHeaderGetRawXmax(tuple), &known->xmax,
							   HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID);

		tuple->t_infomask = mask;
	}
}
