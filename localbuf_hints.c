/*-------------------------------------------------------------------------
 *
 * localbuf_hints.c
 *	  Hint bits on heap pages that are about to be written.
 *
 * A row that was just inserted does not show whether its transaction has
 * committed.  The first reader looks that up and sets a hint bit in the row,
 * so that later readers need not.  Each parallel worker has its own copy of
 * the page, which is lost when the worker exits: every worker would look up
 * the transaction again, for every row, in every query.  So the flush sets the
 * bits, on pages that it writes anyway.
 *
 * The invariant: a bit is set only where HeapTupleSatisfiesMVCC() would set it
 * in this session at this moment, and nothing else on the page is changed.  In
 * particular no bit is set for a transaction in progress, including this one
 * and its subtransactions, or for row locks.  A temporary relation is not
 * WAL-logged, so a hint may reach the disk before the commit record does (see
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
 * Does rel's main fork consist of heap pages on which hints may be set?  Also
 * false if the running transaction has created the file, as then no hint can
 * be set for the rows that it has inserted.
 */
bool
tp_heap_takes_hints(Relation rel)
{
	return tp_is_heap(rel->rd_rel->relam, rel->rd_rel->relkind) &&
		rel->rd_createSubid == InvalidSubTransactionId &&
		rel->rd_firstRelfilelocatorSubid == InvalidSubTransactionId;
}

/*
 * Look up which hint a reader would set for xid now: committed, aborted, or
 * none, which is 0.
 */
static pg_noinline uint16
look_up(TransactionId xid, uint16 committed, uint16 aborted)
{
	/* in the order of HeapTupleSatisfiesMVCC() of heapam_visibility.c */
	if (TransactionIdIsCurrentTransactionId(xid) ||
		TransactionIdIsInProgress(xid))
		return 0;
	return TransactionIdDidCommit(xid) ? committed : aborted;
}

/*
 * The same, remembering the last result in *known: adjacent rows mostly have
 * the same transaction.
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
 * Set hints on the rows of page, which is of a heap's main fork.  *known is
 * zeroed before the first page of a flush, and passed on from page to page.
 * As SetHintBits() and HeapTupleSatisfiesMVCC() of heapam_visibility.c.
 *
 * The caller writes the page whether or not it has changed.  Raises an error
 * if the status of a transaction cannot be read.
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
		 * Most rows have never been deleted.  A reader looks up the deletion
		 * only if the insertion has committed.
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
