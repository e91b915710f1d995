/*-------------------------------------------------------------------------
 *
 * changes_in_phase.c
 *	  A C function that changes a table in parallel mode.
 *
 * For t/046_changes_in_phase.pl.  Core rejects SQL statements that write in
 * parallel mode, but heap_insert() itself fails only in a worker.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(insert_row);

/*
 * insert_row(table regclass, how text): insert a row of NULLs through the
 * table's access method ('single', 'multi'), or by heap_insert() ('heap').
 */
Datum
insert_row(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	char	   *how = text_to_cstring(PG_GETARG_TEXT_PP(1));
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	CommandId	cid = GetCurrentCommandId(false);

	ExecStoreAllNullTuple(slot);
	if (strcmp(how, "single") == 0)
		table_tuple_insert(rel, slot, cid, 0, NULL);
	else if (strcmp(how, "multi") == 0)
		table_multi_insert(rel, &slot, 1, cid, 0, NULL);
	else
		heap_insert(rel, ExecFetchSlotHeapTuple(slot, true, NULL), cid, 0,
					NULL);

	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, RowExclusiveLock);
	PG_RETURN_VOID();
}
