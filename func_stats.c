/*-------------------------------------------------------------------------
 *
 * func_stats.c
 *	  SQL function that shows the session's counters.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "func.h"

PG_FUNCTION_INFO_V1(temp_parallel_stats);

/*
 * temp_parallel_stats() returns record
 *
 * The counters of the calling session, and the processors that it may use.
 */
Datum
temp_parallel_stats(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum		values[10];
	bool		nulls[10] = {0};

	tp_refuse_in_worker();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	values[0] = Int64GetDatum(tp_session_stats.flushes);
	values[1] = Int64GetDatum(tp_session_stats.pages_flushed);
	values[2] = Float8GetDatum(tp_session_stats.flush_time);
	values[3] = Int64GetDatum(tp_session_stats.workers_launched);
	values[4] = Int64GetDatum(tp_session_stats.hints_dropped);
	values[5] = Int64GetDatum(tp_session_stats.left_to_leader);
	values[6] = Int64GetDatum(tp_session_stats.serial_by_flush);
	values[7] = Int32GetDatum(tp_usable_processors());
	values[8] = Int64GetDatum(tp_session_stats.pages_shared);
	nulls[9] = tp_sharing_failure() == NULL;
	if (!nulls[9])
		values[9] = CStringGetTextDatum(tp_sharing_failure());
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
