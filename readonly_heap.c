/*-------------------------------------------------------------------------
 *
 * readonly_heap.c
 *	  The heap table access method, with reads that leave pages clean.
 *
 * Reading a heap page may set hint bits and prune, and both mark the buffer dirty.  While
 * workers read a temporary table from its files, none of its pages may be written, so none
 * may be dirty, not even during one call: a scan of a long run of dead rows evicts pages
 * from a small pool.  The routine made here is a copy of heap's whose reading callbacks
 * clear the flag again page by page, while the page is still pinned.
 *
 * The invariant: a dirty flag is cleared only by the call that has set it.
 * Each callback looks at the flag before heap reads the page, and clears it
 * afterwards only if it was clear before and the session is in parallel mode,
 * where only a hint can have set it in between.  Therefore a page with a real
 * change stays dirty, whichever relation this routine is attached to.
 *
 * Pruning is avoided, because every process that reads the page would repeat it, and
 * because from 19 on clearing a flag would not undo it: where pruning finds all rows
 * visible to all, it sets this in the page's header and in the visibility map, and the two
 * must not differ.
 *
 * The state in the scan descriptor is that of heapgettup_pagemode() of heapam.c, and of
 * heapam_scan_sample_next_block() and BitmapHeapScanNextBlock() of heapam_handler.c, so
 * that a scan may switch between heap's routine and this one at any tuple.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/instrument.h"
#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"

#include "readonly.h"

static TableAmRoutine readonly_routine;

static const TableAmRoutine *heap;	/* heap's own routine */

static bool
local_buffer_is_dirty(Buffer buffer)
{
	Assert(BufferIsLocal(buffer));
	return (LocalBufferStateRead(GetLocalBufferDescriptor(-buffer - 1)) &
			BM_DIRTY) != 0;
}

/* A pinned page, before heap reads it. */
typedef struct PageBefore
{
	bool		droppable;		/* may hints be dropped after the read? */
	char		header[SizeOfPageHeaderData];
} PageBefore;

static PageBefore
look_before_read(Buffer buffer)
{
	PageBefore	before;

	before.droppable = IsInParallelMode() && !local_buffer_is_dirty(buffer);
	memcpy(before.header, BufferGetPage(buffer), SizeOfPageHeaderData);
	return before;
}

/*
 * Clear the dirty flag of buffer, which is still pinned, if only the read has
 * set it.  before is the result of look_before_read().  The hints stay in the
 * buffer until the page is evicted.  An error if the page's header has changed, as by
 * pruning, which may have changed the visibility map or an index, too.
 */
static void
drop_hints(Buffer buffer, const PageBefore *before)
{
	BufferDesc *desc;
	BufferState state;

	if (!before->droppable || !local_buffer_is_dirty(buffer))
		return;
	if (memcmp(before->header, BufferGetPage(buffer), SizeOfPageHeaderData) != 0)
		elog(ERROR, "reading block %u of a temporary table has changed more than hints",
			 BufferGetBlockNumber(buffer));

	desc = GetLocalBufferDescriptor(-buffer - 1);
	state = LocalBufferStateRead(desc);
	state &= ~DIRTY_FLAGS;
	LocalBufferStateWrite(desc, state | HINTS_DROPPED);

	/* MarkLocalBufferDirty() of localbuf.c counted it for EXPLAIN (BUFFERS) */
	pgBufferUsage.local_blks_dirtied--;
	tp_session_stats->hints_dropped++;
}

/* ----------
 * Sequential, TID range and sample scans
 * ----------
 */

/*
 * Store the visible tuples of the scan's current page, rs_cbuf, in rs_vistuples; for a TID
 * range scan, only those in the range, so that heap's callback does not go to another page
 * in search of one.  As heap_prepare_pagescan() of heapam.c (heapgetpage() before 17), but
 * without pruning and without the checks for serializable transactions, which do not
 * concern temporary tables.
 */
static void
collect_visible_tuples(HeapScanDesc scan)
{
	TableScanDesc sscan = &scan->rs_base;
	Snapshot	snapshot = sscan->rs_snapshot;
	Buffer		buffer = scan->rs_cbuf;
	Page		page = BufferGetPage(buffer);
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	bool		all_visible = PageIsAllVisible(page) && !snapshot->takenDuringRecovery;
	PageBefore	before = look_before_read(buffer);
	int			ntuples = 0;

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		HeapTupleData tuple;

		if (!ItemIdIsNormal(lp))
			continue;
		tuple.t_tableOid = RelationGetRelid(sscan->rs_rd);
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, lp);
		tuple.t_len = ItemIdGetLength(lp);
		ItemPointerSet(&tuple.t_self, scan->rs_cblock, off);
		if ((sscan->rs_flags & SO_TYPE_TIDRANGESCAN) &&
			(ItemPointerCompare(&tuple.t_self, scan_min_tid(sscan)) < 0 ||
			 ItemPointerCompare(&tuple.t_self, scan_max_tid(sscan)) > 0))
			continue;
		if (all_visible || HeapTupleSatisfiesVisibility(&tuple, snapshot, buffer))
			scan->rs_vistuples[ntuples++] = off;
	}
	scan->rs_ntuples = ntuples;

	drop_hints(buffer, &before);
}

/* Does rs_vistuples have another row of the current page, in this direction? */
static bool
page_has_next_row(HeapScanDesc scan, ScanDirection dir)
{
	int			last = scan->rs_cindex;

	return scan->rs_inited &&
		(ScanDirectionIsForward(dir) ? last + 1 < (int) scan->rs_ntuples : last > 0);
}

/*
 * Leave the scan's current page, pin the next one that has rows, dead or alive, and
 * store the visible ones.  Heap pins it: without page-at-a-time mode it does not prune,
 * and with SnapshotAny it takes the first row of a page without a look at its hints.
 * Returns false at the end of the scan, with slot empty and nothing pinned.  After an
 * error the scan is not used again.
 */
static bool
pin_next_page(HeapScanDesc scan, ScanDirection dir, TupleTableSlot *slot)
{
	TableScanDesc sscan = &scan->rs_base;
	Snapshot	snapshot = sscan->rs_snapshot;
	bool		found;

	if (scan->rs_inited)
		set_scan_offset(scan, ScanDirectionIsForward(dir) ? MaxOffsetNumber : FirstOffsetNumber);
	sscan->rs_flags &= ~SO_ALLOW_PAGEMODE;
	sscan->rs_snapshot = SnapshotAny;
	found = heap->scan_getnextslot(sscan, dir, slot);
	sscan->rs_snapshot = snapshot;
	sscan->rs_flags |= SO_ALLOW_PAGEMODE;
	if (!found)
		return false;
	pgstat_uncount_heap_getnext(sscan->rs_rd);
	collect_visible_tuples(scan);
	scan->rs_cindex = ScanDirectionIsForward(dir) ? -1 : scan->rs_ntuples;
	return true;
}

/*
 * Store the scan's next row in slot, by heap's callback next, which takes it from
 * rs_vistuples.  Returns false at the end of the scan.
 */
static bool
next_row(TableScanDesc sscan, ScanDirection dir, TupleTableSlot *slot,
		 bool (*next) (TableScanDesc, ScanDirection, TupleTableSlot *))
{
	HeapScanDesc scan = (HeapScanDesc) sscan;

	if (IsInParallelMode())
	{
		if ((sscan->rs_flags & SO_ALLOW_PAGEMODE) == 0 || sscan->rs_nkeys > 0)
			elog(ERROR, "read-only scan of temporary table \"%s\" must be in page-at-a-time mode and without keys",
				 RelationGetRelationName(sscan->rs_rd));
		while (!page_has_next_row(scan, dir))
		{
			if (!pin_next_page(scan, dir, slot))
				return false;
		}
	}
	return next(sscan, dir, slot);
}

static bool
readonly_getnextslot(TableScanDesc sscan, ScanDirection dir, TupleTableSlot *slot)
{
	return next_row(sscan, dir, slot, heap->scan_getnextslot);
}

static bool
readonly_getnextslot_tidrange(TableScanDesc sscan, ScanDirection dir,
							  TupleTableSlot *slot)
{
	return next_row(sscan, dir, slot, heap->scan_getnextslot_tidrange);
}

/*
 * Without page-at-a-time mode, heapam_scan_sample_next_block() of heapam_handler.c only
 * pins the block.
 */
static bool
readonly_sample_next_block(TableScanDesc sscan, SampleScanState *scanstate)
{
	bool		page_mode = (sscan->rs_flags & SO_ALLOW_PAGEMODE) != 0;
	bool		found;

	if (!IsInParallelMode() || !page_mode)
		return heap->scan_sample_next_block(sscan, scanstate);

	sscan->rs_flags &= ~SO_ALLOW_PAGEMODE;
	found = heap->scan_sample_next_block(sscan, scanstate);
	sscan->rs_flags |= SO_ALLOW_PAGEMODE;
	if (found)
		collect_visible_tuples((HeapScanDesc) sscan);
	return found;
}

/*
 * Without page-at-a-time mode, heapam_scan_sample_next_tuple() of
 * heapam_handler.c tests visibility, on the page that scan_sample_next_block
 * has pinned.
 */
static bool
readonly_sample_next_tuple(TableScanDesc sscan, SampleScanState *scanstate,
						   TupleTableSlot *slot)
{
	Buffer		buffer = ((HeapScanDesc) sscan)->rs_cbuf;
	PageBefore	before = look_before_read(buffer);
	bool		found;

	found = heap->scan_sample_next_tuple(sscan, scanstate, slot);
	drop_hints(buffer, &before);
	return found;
}

/* ----------
 * Bitmap heap scans
 * ----------
 */
#ifdef BITMAP_SCANS_STREAM

/*
 * Pin the next block of the bitmap and store its visible tuples, as
 * BitmapHeapScanNextBlock() of heapam_handler.c does.  False when the bitmap
 * is exhausted.
 */
static bool
bitmap_next_block(HeapScanDesc scan, bool *recheck,
				  uint64 *lossy_pages, uint64 *exact_pages)
{
	Relation	rel = scan->rs_base.rs_rd;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	void	   *per_buffer_data;
	TBMIterateResult *result;
	PageBefore	before;
	OffsetNumber offsets[TBM_MAX_TUPLES_PER_PAGE];
	int			noffsets;
	int			ntuples = 0;

	scan->rs_cindex = 0;
	scan->rs_ntuples = 0;
	if (BufferIsValid(scan->rs_cbuf))
		ReleaseBuffer(scan->rs_cbuf);
	scan->rs_cbuf = read_stream_next_buffer(scan->rs_read_stream,
											&per_buffer_data);
	if (!BufferIsValid(scan->rs_cbuf))
		return false;

	result = per_buffer_data;
	scan->rs_cblock = result->blockno;
	*recheck = result->recheck;
	before = look_before_read(scan->rs_cbuf);

	if (result->lossy)
	{
		/* the bitmap has the whole page */
		collect_visible_tuples(scan);
		(*lossy_pages)++;
		return true;
	}

	/* the bitmap has the roots of HOT chains */
	noffsets = tbm_extract_page_tuple(result, offsets, TBM_MAX_TUPLES_PER_PAGE);
	for (int i = 0; i < noffsets; i++)
	{
		ItemPointerData tid;
		HeapTupleData tuple;

		ItemPointerSet(&tid, scan->rs_cblock, offsets[i]);
		if (heap_hot_search_buffer(&tid, rel, scan->rs_cbuf, snapshot,
								   &tuple, NULL, true))
			scan->rs_vistuples[ntuples++] = ItemPointerGetOffsetNumber(&tid);
	}
	scan->rs_ntuples = ntuples;
	(*exact_pages)++;
	drop_hints(scan->rs_cbuf, &before);
	return true;
}

/*
 * While the current page has tuples left, heapam_scan_bitmap_next_tuple() of
 * heapam_handler.c only returns the next one.
 */
static bool
readonly_bitmap_next_tuple(TableScanDesc sscan, TupleTableSlot *slot,
						   bool *recheck, uint64 *lossy_pages,
						   uint64 *exact_pages)
{
	HeapScanDesc scan = (HeapScanDesc) sscan;

	if (IsInParallelMode())
	{
		while (scan->rs_cindex >= scan->rs_ntuples)
		{
			if (!bitmap_next_block(scan, recheck, lossy_pages, exact_pages))
				return false;
			CHECK_FOR_INTERRUPTS();
		}
	}
	return heap->scan_bitmap_next_tuple(sscan, slot, recheck, lossy_pages,
										exact_pages);
}

#else

/*
 * Heap's callback reads one page per call.  Pin the page as rs_cbuf first, to
 * examine its dirty flag.  A second pin prevents pruning, which needs a cleanup
 * lock (heap_page_prune_opt() of pruneheap.c).
 */
static bool
readonly_bitmap_next_block(TableScanDesc sscan, TBMIterateResult *tbmres)
{
	HeapScanDesc scan = (HeapScanDesc) sscan;
	Buffer		buffer;
	PageBefore	before;
	bool		found;

	/* reads no page: heapam_scan_bitmap_next_block() of heapam_handler.c */
	if (!IsInParallelMode() ||
		(!IsolationIsSerializable() && tbmres->blockno >= scan->rs_nblocks))
		return heap->scan_bitmap_next_block(sscan, tbmres);

	scan->rs_cbuf = ReleaseAndReadBuffer(scan->rs_cbuf, sscan->rs_rd,
										 tbmres->blockno);
	buffer = scan->rs_cbuf;
	before = look_before_read(buffer);
	IncrBufferRefCount(buffer);
	found = heap->scan_bitmap_next_block(sscan, tbmres);
	drop_hints(buffer, &before);
	ReleaseBuffer(buffer);
	return found;
}

#endif							/* BITMAP_SCANS_STREAM */

/* ----------
 * Fetching by TID
 * ----------
 */

/*
 * tuple_satisfies_snapshot and tuple_get_latest_tid stay heap's own.  They may set hints,
 * too, but core calls them only for statements that change rows (ON CONFLICT, foreign
 * keys, WHERE CURRENT OF), which it refuses in parallel mode, and in currtid2(), which is
 * PARALLEL UNSAFE.
 */

/*
 * Pin the page as xs_cbuf beforehand, to look at its dirty flag.
 * heapam_index_fetch_tuple() of heapam_handler.c then takes it for the page of
 * the previous call, and neither pins nor prunes it again.
 *
 * Never reports all_dead: the index would mark its entry, and nothing would
 * clear the dirty flag of the index page.
 */
static bool
readonly_index_fetch_tuple(struct IndexFetchTableData *scan, ItemPointer tid,
						   Snapshot snapshot, TupleTableSlot *slot,
						   bool *call_again, bool *all_dead)
{
	IndexFetchHeapData *hscan = (IndexFetchHeapData *) scan;
	PageBefore	before;
	bool		found;

	if (!IsInParallelMode())
		return heap->index_fetch_tuple(scan, tid, snapshot, slot, call_again,
									   all_dead);

	pin_page_of_fetch(hscan, ItemPointerGetBlockNumber(tid));
	before = look_before_read(hscan->xs_cbuf);
	found = heap->index_fetch_tuple(scan, tid, snapshot, slot, call_again,
									all_dead);
	drop_hints(hscan->xs_cbuf, &before);
	if (all_dead)
		*all_dead = false;
	return found;
}

/* Calls heapam_fetch_row_version() of heapam_handler.c. */
static bool
readonly_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
						   TupleTableSlot *slot)
{
	Buffer		buffer;
	PageBefore	before;
	bool		found;

	if (!IsInParallelMode())
		return heap->tuple_fetch_row_version(rel, tid, snapshot, slot);

	buffer = ReadBuffer(rel, ItemPointerGetBlockNumber(tid));
	before = look_before_read(buffer);
	found = heap->tuple_fetch_row_version(rel, tid, snapshot, slot);
	drop_hints(buffer, &before);
	ReleaseBuffer(buffer);
	return found;
}

/* ----------
 * Writes
 * ----------
 */

/*
 * Raise an error in parallel mode, in which heap_update(), heap_delete(), and core's
 * statements that write do so.  The rest is refused here: SELECT FOR UPDATE in a function,
 * and inserts by a C function.
 */
static void
refuse_write(Relation rel)
{
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot modify temporary table \"%s\" during a parallel operation",
						RelationGetRelationName(rel)),
				 errhint("Mark the function that does so PARALLEL UNSAFE.")));
}

static void
readonly_tuple_insert(Relation rel, TupleTableSlot *slot, CommandId cid,
					  InsertOptions options,
					  struct BulkInsertStateData *bistate)
{
	refuse_write(rel);
	heap->tuple_insert(rel, slot, cid, options, bistate);
}

static void
readonly_multi_insert(Relation rel, TupleTableSlot **slots, int nslots,
					  CommandId cid, InsertOptions options,
					  struct BulkInsertStateData *bistate)
{
	refuse_write(rel);
	heap->multi_insert(rel, slots, nslots, cid, options, bistate);
}

static TM_Result
readonly_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot,
					TupleTableSlot *slot, CommandId cid, LockTupleMode mode,
					LockWaitPolicy wait_policy, uint8 flags,
					TM_FailureData *tmfd)
{
	refuse_write(rel);
	return heap->tuple_lock(rel, tid, snapshot, slot, cid, mode, wait_policy,
							flags, tmfd);
}

/* Fill the routine, when the module is loaded. */
void
tp_readonly_heap_init(void)
{
	heap = GetHeapamTableAmRoutine();
	readonly_routine = *heap;

	readonly_routine.scan_getnextslot = readonly_getnextslot;
	readonly_routine.scan_getnextslot_tidrange = readonly_getnextslot_tidrange;
	readonly_routine.scan_sample_next_block = readonly_sample_next_block;
	readonly_routine.scan_sample_next_tuple = readonly_sample_next_tuple;
#ifdef BITMAP_SCANS_STREAM
	readonly_routine.scan_bitmap_next_tuple = readonly_bitmap_next_tuple;
#else
	readonly_routine.scan_bitmap_next_block = readonly_bitmap_next_block;
#endif
	readonly_routine.index_fetch_tuple = readonly_index_fetch_tuple;
	readonly_routine.tuple_fetch_row_version = readonly_fetch_row_version;
	readonly_routine.tuple_insert = readonly_tuple_insert;
	readonly_routine.multi_insert = readonly_multi_insert;
	readonly_routine.tuple_lock = readonly_tuple_lock;
}

/*
 * The routine for the descriptor of a heap relation, in static memory.  Outside parallel
 * mode its callbacks only call heap's own.
 */
const TableAmRoutine *
tp_readonly_heap_routine(void)
{
	return &readonly_routine;
}
