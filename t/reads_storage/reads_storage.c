/*-------------------------------------------------------------------------
 *
 * reads_storage.c
 *	  C functions that read a relation's storage themselves, as some in
 *	  contrib do.
 *
 * For t/058_worker_refuses.pl.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(read_pages);
PG_FUNCTION_INFO_V1(count_rows);

/*
 * read_pages(relation regclass, invalidate boolean) returns integer: read all
 * pages of the relation's main fork; return their number.  With invalidate,
 * all descriptors are rebuilt first.
 */
Datum
read_pages(PG_FUNCTION_ARGS)
{
	Relation	rel;
	BlockNumber nblocks;

	if (PG_GETARG_BOOL(1))
		InvalidateSystemCaches();
	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	nblocks = RelationGetNumberOfBlocks(rel);
	for (BlockNumber i = 0; i < nblocks; i++)
		ReleaseBuffer(ReadBuffer(rel, i));
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT32((int32) nblocks);
}

/* count_rows(table regclass) returns integer: by heap_getnext() */
Datum
count_rows(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	TableScanDesc scan = heap_beginscan(rel, GetActiveSnapshot(), 0, NULL, NULL,
										SO_TYPE_SEQSCAN | SO_ALLOW_PAGEMODE);
	int			count = 0;

	while (heap_getnext(scan, ForwardScanDirection) != NULL)
		count++;
	heap_endscan(scan);
	table_close(rel, AccessShareLock);
	PG_RETURN_INT32(count);
}
