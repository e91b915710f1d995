/*-------------------------------------------------------------------------
 *
 * func_stats.c
 *	  What this session's parallel queries over temporary tables have cost.
 *
 * Plain counters of one process, each added to at the one place where the
 * thing happens: before a launch of workers, before the next one or at the end of
 * the run, when a dirty mark is taken back, when the second look decides.  They
 * count what happened, whether or not the statement failed or the transaction was
 * rolled back.
 *
 * Workers do not count: their counters go with them.
 *
 *-------------------------------------------------------------------------
 */
#include "temp_parallel.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"

PG_FUNCTION_INFO_V1(temp_parallel_stats);

SessionStats tp_session_stats;

/*
 * temp_parallel_stats() returns record
 *
 * The counters of the calling session.
 */
Datum
temp_parallel_stats(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum		values[6];
	bool		nulls[6] = {0};

	tp_refuse_in_worker();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	values[0] = Int64GetDatum(tp_session_stats.flushes);
	values[1] = Int64GetDatum(tp_session_stats.pages_flushed);
	values[2] = Float8GetDatum(tp_session_stats.flush_time);
	values[3] = Int64GetDatum(tp_session_stats.workers_launched);
	values[4] = Int64GetDatum(tp_session_stats.hints_dropped);
	values[5] = Int64GetDatum(tp_session_stats.left_to_leader);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
