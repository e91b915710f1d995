/*-------------------------------------------------------------------------
 *
 * localbuf_read.c
 *	  SQL functions that read a temporary table into the pool, or mark what is
 *	  there as dirty.
 *
 * The means to bring the pool into a known state and to measure reading: every
 * page goes through the server's own buffer manager, so that EXPLAIN (BUFFERS)
 * counts what happened, and a page is pinned for no longer than one step.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "access/relation.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pg_read_temp_relation);
PG_FUNCTION_INFO_V1(pg_temp_buffers_dirty);

/* The numbers 0 to n - 1 in random order. */
static BlockNumber *
shuffled_blocks(BlockNumber n)
{
	BlockNumber *blocks = palloc_extended((Size) n * sizeof(BlockNumber),
										  MCXT_ALLOC_HUGE);

	for (BlockNumber i = 0; i < n; i++)
	{
		BlockNumber j = (BlockNumber)
			pg_prng_uint64_range(&pg_global_prng_state, 0, i);

		/* Fisher and Yates, filling the array while it is shuffled */
		if (j != i)
			blocks[i] = blocks[j];
		blocks[j] = i;
	}
	return blocks;
}

/*
 * Read all blocks of a temporary table's main fork into local buffers, in
 * order or in random order; return their number.
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
 * pg_read_temp_relation(relation regclass, randomize boolean) returns bigint
 *
 * Read all blocks of a temporary table's main fork into local buffers, in
 * order or in random order; return their number.  A table that is larger than
 * the pool pushes its own first pages out again.
 */
Datum
pg_read_temp_relation(PG_FUNCTION_ARGS)
{
	Oid			relid;
	Relation	rel;
	BlockNumber nblocks;

	tp_refuse_while_workers_read("pg_read_temp_relation()");
	relid = tp_temp_table_argument(fcinfo, 0, MAY_READ_TABLE);
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("randomize cannot be null"),
				 errhint("Pass false to read the blocks in order, true to read them in random order.")));

	rel = relation_open(relid, AccessShareLock);
	nblocks = tp_read_into_local_buffers(rel, PG_GETARG_BOOL(1));
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64((int64) nblocks);
}

/* Is buffer i of the pool one with a page of the relation? */
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
 * Mark every page of a temporary relation, of all its forks, that is in local
 * buffers as dirty; return their number.
 */
int64
tp_dirty_local_buffers_of(Relation rel)
{
	int64		marked = 0;

	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (!holds_page_of(i, &RelationFileLocator(rel)))
			continue;

		/* finds it in the pool, and so pushes nothing out */
		buffer = ReadBufferExtended(rel, BufTagGetForkNum(&buf->tag),
									buf->tag.blockNum, RBM_NORMAL, NULL);
		Assert(buffer == -i - 1);
		MarkBufferDirty(buffer);
		ReleaseBuffer(buffer);
		marked++;
	}
	return marked;
}

/*
 * pg_temp_buffers_dirty(relation regclass) returns bigint
 *
 * The same for a table.  Its indexes and its TOAST table stay as they are.
 */
Datum
pg_temp_buffers_dirty(PG_FUNCTION_ARGS)
{
	Oid			relid;
	Relation	rel;
	int64		marked;

	tp_refuse_while_workers_read("pg_temp_buffers_dirty()");
	relid = tp_temp_table_argument(fcinfo, 0, MUST_OWN_TABLE);

	rel = relation_open(relid, AccessShareLock);
	marked = tp_dirty_local_buffers_of(rel);
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64(marked);
}
