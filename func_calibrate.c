/*-------------------------------------------------------------------------
 *
 * func_calibrate.c
 *	  SQL function that measures the constants of the cost model.
 *
 * A flush pays off if workers gain more time than it takes, so its cost must
 * be on the scale on which the planner sees that gain.  The planner assumes
 * that workers share all of the CPU cost and none of the I/O cost, and that a
 * page in memory is as expensive as one on disk; the machine may differ.  So
 * the gain itself is measured, and compared with the planner's estimate of it:
 * the gain of workers over the leader alone, scanning and aggregating a clean
 * table that is in the leader's pool.  The launch of the workers is left out,
 * since it has a cost of its own.
 *
 *		unit = time gained by workers / cost gained, as the planner estimates
 *		write_temp_page_cost = time to write a page / unit
 *		buffer_scan_cost = time to look at a buffer / unit
 *
 * With these constants the planner switches to workers at the point where they
 * become faster.
 *
 * Each iteration does all steps, so that a temporary slowdown of the machine
 * affects all of them, and the results are medians over the iterations.
 *
 * The invariant: everything happens in a subtransaction that is rolled back on
 * every exit.  That undoes the table, its files and pages, settings, and the
 * session's temporary schema if it had none.  Two things remain: the pool
 * stays allocated, and pages of other tables may have been written or evicted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "portability/instr_time.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "func.h"
#include "plan.h"

PG_FUNCTION_INFO_V1(temp_parallel_calibrate);

#define MIN_PAGES			16
#define DEFAULT_PAGES		16384	/* if the pool has room for them */
#define SPARE_BUFFERS		32	/* left in the pool for pins of others */
#define MIN_ITERATIONS		6	/* fewest for a 95 % interval of the median */
#define MAX_ITERATIONS		1000
#define WARM_UP_ITERATIONS	2
#define DESCRIPTORS_TO_SCAN	100000	/* per iteration, in repeated scans */
#define PAD_LENGTH			55	/* makes rows 104 bytes long */
#define TABLE_COLUMNS		5

/* The arguments. */
typedef struct CalibrationTask
{
	int			pages;
	bool		fewer_than_default; /* as the pool has no room for more */
	int			iterations;
	char	   *tablespace;		/* NULL: where temporary tables go */
	double		max_cv;			/* more variation: no recommendation */
} CalibrationTask;

/* The measurements of one iteration, in microseconds. */
typedef struct Iteration
{
	double		write_page;
	double		read_page;
	double		process_page;	/* by the leader alone */
	double		gain_page;		/* workers save, of that */
	double		scan_buffer;
} Iteration;

/* The measurements of all iterations. */
typedef struct Samples
{
	Sample		write_page;
	Sample		read_page;
	Sample		process_page;
	Sample		gain_page;
	Sample		scan_buffer;
	Sample		ratio;			/* write_page / read_page */
} Samples;

/* The result of all iterations. */
typedef struct Calibration
{
	int			pages;
	double		planned_gain;	/* planner cost per page */
	double		page_factor;	/* see tp_tablespace_factor() */
	Iteration  *iterations;
} Calibration;

/* The columns of the result. */
enum ResultColumn
{
	COL_MEASURED_PAGES,
	COL_MEASURED_ITERATIONS,
	COL_WRITE_PAGE_US,
	COL_READ_PAGE_US,
	COL_SCAN_BUFFER_US,
	COL_PROCESS_PAGE_US,
	COL_GAIN_PAGE_US,
	COL_GAIN_LOW,
	COL_GAIN_HIGH,
	COL_WRITE_READ_RATIO,
	COL_RATIO_LOW,
	COL_RATIO_HIGH,
	COL_WRITE_CV,
	COL_GAIN_CV,
	COL_PLANNER_UNIT_US,

	/* null if the measurements are not good enough to recommend settings */
	COL_WRITE_TEMP_PAGE_COST,
	COL_BUFFER_SCAN_COST,
	COL_SET_COMMANDS,
	COL_ALTER_SYSTEM_COMMANDS,

	NUM_COLUMNS
};

/* A table to measure with, and its queries. */
typedef struct CalibrationTable
{
	Relation	rel;
	int			pages;
	SPIPlanPtr	alone;			/* by the leader */
	SPIPlanPtr	parallel;
	int			workers;		/* planned for parallel */
} CalibrationTable;

/* ----------
 * The table
 * ----------
 */

/* Change a setting until the end of the subtransaction. */
static void
set_locally(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}

static void
execute_utility(const char *command)
{
	if (SPI_execute(command, false, 0) < 0)
		elog(ERROR, "could not execute: %s", command);
}

/* A name that no temporary relation of the session has. */
static char *
unused_table_name(void)
{
	Oid			namespace;
	Oid			toast_namespace;

	GetTempNamespaceState(&namespace, &toast_namespace);
	for (int i = 0;; i++)
	{
		char	   *name = psprintf("temp_parallel_calibrate_%d", i);

		if (!OidIsValid(namespace) ||
			!OidIsValid(get_relname_relid(name, namespace)))
			return name;
	}
}

/*
 * Create an empty table, in the default tablespace if that is NULL.  Returns
 * it opened with AccessShareLock.
 */
static Relation
create_table(const char *name, const char *tablespace)
{
	StringInfoData command;
	Oid			namespace;
	Oid			toast_namespace;

	initStringInfo(&command);
	/* rows are too short for a TOAST table; as many workers as allowed */
	appendStringInfo(&command,
					 "CREATE TEMPORARY TABLE %s (id bigint, class integer,"
					 " number integer, amount float8, pad char(%d))"
					 " USING heap WITH (parallel_workers = %d)"
					 " ON COMMIT PRESERVE ROWS",
					 name, PAD_LENGTH, max_parallel_workers_per_gather);
	if (tablespace != NULL)
		appendStringInfo(&command, " TABLESPACE %s",
						 quote_identifier(tablespace));
	execute_utility(command.data);

	GetTempNamespaceState(&namespace, &toast_namespace);
	return relation_open(get_relname_relid(name, namespace), AccessShareLock);
}

static HeapTuple
make_row(TupleDesc tupdesc, int64 i, Datum pad)
{
	Datum		values[TABLE_COLUMNS];
	bool		nulls[TABLE_COLUMNS] = {0};

	values[0] = Int64GetDatum(i);
	values[1] = Int32GetDatum((int32) (i % 100));
	values[2] = Int32GetDatum((int32) (i * 7919 % 1000003));
	values[3] = Float8GetDatum((double) (i % 1000) / 100);
	values[4] = pad;
	return heap_form_tuple(tupdesc, values, nulls);
}

/*
 * Fill the table with the given number of pages.  The rows are frozen, so that
 * a scan looks up no transactions, just as in a table that has been scanned
 * before.  As for COPY FREEZE, that is safe since the table has been created
 * in the same subtransaction, which nobody else sees.
 */
static void
fill_table(Relation rel, int pages)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);
	char	   *text = palloc(PAD_LENGTH);
	Datum		pad;
	CommandId	cid = GetCurrentCommandId(true);
	int64		rows = 1;

	memset(text, 'x', PAD_LENGTH);
	pad = PointerGetDatum(cstring_to_text_with_len(text, PAD_LENGTH));

	for (int64 i = 0; i < rows; i++)
	{
		HeapTuple	tuple = make_row(tupdesc, i, pad);

		CHECK_FOR_INTERRUPTS();
		if (i == 0)				/* all rows have the same length */
			rows = (int64) pages *
				((BLCKSZ - SizeOfPageHeaderData) /
				 (MAXALIGN(tuple->t_len) + sizeof(ItemIdData)));
		heap_insert(rel, tuple, cid,
					HEAP_INSERT_FROZEN | HEAP_INSERT_SKIP_FSM, NULL);
		heap_freetuple(tuple);
	}
	CommandCounterIncrement();
}

static SPIPlanPtr
prepare(const char *query, int cursor_options)
{
	SPIPlanPtr	plan = SPI_prepare_cursor(query, 0, NULL, cursor_options);

	if (plan == NULL)
		elog(ERROR, "could not prepare the query: %s",
			 SPI_result_code_string(SPI_result));
	return plan;
}

/*
 * Returns the planner's total cost of the query, and sets *workers to the
 * number of workers planned.
 */
static Cost
planned_cost(SPIPlanPtr query, int *workers)
{
	CachedPlan *plan = SPI_plan_get_cached_plan(query);
	PlannedStmt *stmt;
	List	   *gathers;
	Cost		cost;

	if (plan == NULL)
		elog(ERROR, "the query has no plan");
	stmt = linitial_node(PlannedStmt, plan->stmt_list);
	cost = stmt->planTree->total_cost;
	gathers = tp_statement_gathers(stmt);
	*workers = gathers == NIL ? 0 : linitial_node(Gather, gathers)->num_workers;
	ReleaseCachedPlan(plan, NULL);	/* not saved, so not owned */
	return cost;
}

/* Make a table with the given number of pages, and prepare its queries. */
static CalibrationTable
make_table(const char *tablespace, int pages)
{
	CalibrationTable table;
	char	   *name = unused_table_name();
	char	   *query;

	table.rel = create_table(name, tablespace);
	fill_table(table.rel, pages);
	table.pages = (int) RelationGetNumberOfBlocks(table.rel);
	execute_utility(psprintf("ANALYZE pg_temp.%s", name));

	query = psprintf("SELECT count(*), sum(number), max(amount)"
					 " FROM pg_temp.%s WHERE class >= 0", name);
	table.alone = prepare(query, 0);
	table.parallel = prepare(query, CURSOR_OPT_PARALLEL_OK);
	(void) planned_cost(table.parallel, &table.workers);
	return table;
}

/*
 * The cost per page that workers save, as the planner estimates it; an error
 * if they save none.  Launching them costs nothing here, see measure().
 */
static double
planned_gain(const CalibrationTable *table)
{
	int			workers;
	Cost		alone = planned_cost(table->alone, &workers);
	Cost		parallel = planned_cost(table->parallel, &workers);

	if (workers == 0 || parallel >= alone)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the planner expects no gain from parallel workers"),
				 errdetail("The cost of a flush is measured relative to that gain."),
				 errhint("Check \"max_parallel_workers_per_gather\" and the planner's cost settings.")));
	return (alone - parallel) / table->pages;
}

/* ----------
 * Measuring
 * ----------
 */

/* The microseconds since start. */
static double
microseconds_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_DOUBLE(now) * 1e6;
}

/*
 * Microseconds per page for reading the table into the pool from its file,
 * which is in the operating system's cache.  An error if the pool does not
 * hold all of it then.
 */
static double
measure_read(const CalibrationTable *table)
{
	RelFileLocator locator = RelationFileLocator(table->rel);
	instr_time	start;
	double		time;
	LocalBufCount *count;

	(void) tp_evict_local_buffers(&locator, 1);
	INSTR_TIME_SET_CURRENT(start);
	(void) tp_read_into_local_buffers(table->rel, false);
	time = microseconds_since(start);

	count = tp_localbuf_stats_relation(tp_localbuf_stats_collect(), table->rel);
	if (count == NULL || count->allocated < table->pages)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("local buffers do not hold the %d pages of the measurement",
						table->pages),
				 errhint("Close cursors over temporary tables, ask for fewer pages, or raise \"temp_buffers\" in a new session.")));
	return time / table->pages;
}

/* Microseconds for a query over a table whose pages are in the pool. */
static double
measure_query(SPIPlanPtr query)
{
	instr_time	start;
	double		time;
	int			result;

	INSTR_TIME_SET_CURRENT(start);
	result = SPI_execute_plan(query, NULL, NULL, false, 0);
	time = microseconds_since(start);
	if (result != SPI_OK_SELECT)
		elog(ERROR, "could not execute the query: %s",
			 SPI_result_code_string(result));
	SPI_freetuptable(SPI_tuptable);
	return time;
}

/* The same with workers; an error unless all that are planned are launched. */
static double
measure_parallel_query(const CalibrationTable *table)
{
	int64		before = tp_session_stats.workers_launched;
	double		time = measure_query(table->parallel);
	int			launched = (int) (tp_session_stats.workers_launched - before);

	if (launched < table->workers)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not launch the workers of the measurement"),
				 errdetail("%d of %d workers were launched.", launched, table->workers),
				 errhint("Repeat the calibration while fewer parallel queries run, lower \"max_parallel_workers_per_gather\", or raise \"max_parallel_workers\" and \"max_worker_processes\".")));
	return time;
}

/*
 * Microseconds per buffer for scanning a pool with nothing to write, as each
 * execution of a parallel plan does: for the second look, and for the flush.
 */
static double
measure_buffer_scan(const CalibrationTable *table)
{
	List	   *relations = list_make1(table->rel);
	int			allocated = tp_localbuf_stats_collect()->allocated;
	int			rounds = Max(DESCRIPTORS_TO_SCAN / allocated, 1);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "buffer scan",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	double		time = 0;

	for (int i = 0; i < rounds; i++)
	{
		instr_time	start;

		CHECK_FOR_INTERRUPTS();
		INSTR_TIME_SET_CURRENT(start);
		(void) tp_localbuf_stats_collect();
		(void) tp_flush_local_buffers_of(relations);
		time += microseconds_since(start);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return time / rounds / allocated;
}

/*
 * Microseconds per page for writing the table, all of whose pages are in the
 * pool and are made dirty first.
 */
static double
measure_write(const CalibrationTable *table)
{
	List	   *relations = list_make1(table->rel);
	instr_time	start;
	int64		written;
	double		time;

	(void) tp_dirty_local_buffers_of(table->rel);
	INSTR_TIME_SET_CURRENT(start);
	written = tp_flush_local_buffers_of(relations);
	time = microseconds_since(start);
	return time / Max(written, 1);
}

/*
 * Do one iteration.  one_page is a table with a single page, so that its
 * parallel query takes hardly longer than the launch of the workers.
 */
static Iteration
measure_all(const CalibrationTable *table, const CalibrationTable *one_page)
{
	Iteration	result;
	double		launch;
	double		parallel;

	result.read_page = measure_read(table);
	result.process_page = measure_query(table->alone) / table->pages;
	result.write_page = measure_write(table);
	result.scan_buffer = measure_buffer_scan(table);
	launch = measure_parallel_query(one_page);
	parallel = measure_parallel_query(table);
	result.gain_page = result.process_page -
		(parallel - launch) / table->pages;
	return result;
}

/* Say what is measured, and how to measure better. */
static void
announce(const CalibrationTask *task)
{
	ereport(NOTICE,
			(errmsg("calibrating with %d pages, %d iterations",
					task->pages, task->iterations),
			 task->fewer_than_default ?
			 errhint("The measurement is better with %d pages. Set \"temp_buffers\" to '256MB' before the session's first use of a temporary table.",
					 DEFAULT_PAGES) : 0));
}

/* Report progress, at most every five seconds. */
static void
show_progress(int done, int total, TimestampTz start, TimestampTz *last)
{
	TimestampTz now = GetCurrentTimestamp();

	if (done > 0 && done < total &&
		TimestampDifferenceExceeds(*last, now, 5000))
	{
		*last = now;
		ereport(NOTICE,
				(errmsg("calibrating: %d of %d iterations done, %.0f s left",
						done, total,
						(double) (now - start) / USECS_PER_SEC *
						(total - done) / done)));
	}
}

/*
 * Do all measurements, in the caller's subtransaction.  Fills in *result,
 * whose iterations are an array that the caller has allocated.
 */
static void
measure(const CalibrationTask *task, Calibration *result)
{
	CalibrationTable table;
	CalibrationTable one_page;
	MemoryContext context;
	MemoryContext old;
	TimestampTz start;
	TimestampTz last;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");

	/*
	 * Make plans independent of the session's settings, and parallel where
	 * possible.  The costs of the launch and the flush are not part of the
	 * gain.
	 */
	set_locally("search_path", "pg_catalog, pg_temp");
	set_locally("enable_seqscan", "on");
	set_locally("jit", "off");
	set_locally("temp_parallel.enabled", "on");
	set_locally("temp_parallel.write_temp_page_cost", "0");
	set_locally("temp_parallel.buffer_scan_cost", "0");
	set_locally("parallel_setup_cost", "0");
	set_locally("parallel_tuple_cost", "0");

	/* timed steps must not write pages of the session's own tables */
	(void) tp_flush_all_local_buffers();

	table = make_table(task->tablespace, task->pages);
	one_page = make_table(task->tablespace, 1);
	result->pages = table.pages;
	result->planned_gain = planned_gain(&table);
	result->page_factor = tp_tablespace_factor(table.rel);
	announce(task);

	context = AllocSetContextCreate(CurrentMemoryContext, "calibration",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	for (int i = 0; i < WARM_UP_ITERATIONS; i++)
		(void) measure_all(&table, &one_page);

	start = last = GetCurrentTimestamp();
	for (int i = 0; i < task->iterations; i++)
	{
		show_progress(i, task->iterations, start, &last);
		result->iterations[i] = measure_all(&table, &one_page);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);

	relation_close(one_page.rel, NoLock);
	relation_close(table.rel, NoLock);
	SPI_finish();
}

/*
 * Call measure() in a subtransaction, and roll that back.  An error is
 * rethrown after the rollback, as the caller's error handling does not know
 * about the subtransaction.
 */
static void
measure_and_roll_back(const CalibrationTask *task, Calibration *result)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		measure(task, result);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();

	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error != NULL)
		ReThrowError(error);
}

/* ----------
 * The SQL function
 * ----------
 */

/* The number of pages that the pool has room for. */
static int
pages_that_fit(void)
{
	return (NLocBuffer > 0 ? NLocBuffer : num_temp_buffers) - SPARE_BUFFERS;
}

static void
refuse_null(FunctionCallInfo fcinfo, int argno, const char *name)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s cannot be null", name),
				 errhint("Leave the argument out for its default.")));
}

/* Get the arguments, or their defaults; an error if they are not valid. */
static CalibrationTask
task_of_arguments(FunctionCallInfo fcinfo)
{
	CalibrationTask task;
	int			most = pages_that_fit();

	refuse_null(fcinfo, 1, "iterations");
	refuse_null(fcinfo, 3, "max_cv");

	task.pages = PG_ARGISNULL(0) ? Min(DEFAULT_PAGES, most) : PG_GETARG_INT32(0);
	task.fewer_than_default = PG_ARGISNULL(0) && task.pages < DEFAULT_PAGES;
	task.iterations = PG_GETARG_INT32(1);
	task.tablespace = PG_ARGISNULL(2) ? NULL : NameStr(*PG_GETARG_NAME(2));
	task.max_cv = PG_GETARG_FLOAT8(3);

	if (task.pages < MIN_PAGES || task.pages > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pages must be between %d and %d", MIN_PAGES, most),
				 errdetail("They have to fit into the session's local buffers, less %d for other uses.",
						   SPARE_BUFFERS),
				 errhint("\"temp_buffers\" can be raised before the session's first use of a temporary table.")));
	if (task.iterations < MIN_ITERATIONS || task.iterations > MAX_ITERATIONS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("iterations must be between %d and %d",
						MIN_ITERATIONS, MAX_ITERATIONS)));
	if (isnan(task.max_cv) || task.max_cv < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 isnan(task.max_cv) ? errmsg("max_cv cannot be NaN") :
				 errmsg("max_cv must not be negative"),
				 errhint("0.25 stands for 25 percent.")));
	return task;
}

/* Do the measurements vary little enough?  Raises a warning if not. */
static bool
is_steady(double write_cv, double gain_cv, double max_cv)
{
	if (write_cv <= max_cv && gain_cv <= max_cv)
		return true;
	ereport(WARNING,
			(errmsg("the measurements vary too much to recommend settings"),
			 errdetail("The coefficient of variation is %.1f %% for writing and %.1f %% for the gain from workers, while %.1f %% is allowed.",
					   write_cv * 100, gain_cv * 100, max_cv * 100),
			 errhint("Repeat the calibration while the machine is less busy, with more pages, or with a larger max_cv.")));
	return false;
}

/*
 * Do workers save time?  least_gain is the lower bound of what they save.
 * Raises a warning if not.
 */
static bool
is_gain(double least_gain)
{
	if (least_gain > 0)
		return true;
	ereport(WARNING,
			(errmsg("parallel workers save no time on this machine according to the measurements"),
			 errdetail("No settings can be recommended."),
			 errhint("Repeat the calibration while the machine is less busy, or with more pages; check whether parallel queries over unlogged tables are faster than serial ones on this machine.")));
	return false;
}

/* Collect the measurements of n iterations, in the current memory context. */
static Samples
collect_samples(const Iteration *iterations, int n)
{
	Samples		result;

	result.write_page = tp_sample_make(n);
	result.read_page = tp_sample_make(n);
	result.process_page = tp_sample_make(n);
	result.gain_page = tp_sample_make(n);
	result.scan_buffer = tp_sample_make(n);
	result.ratio = tp_sample_make(n);

	for (int i = 0; i < n; i++)
	{
		const Iteration *it = &iterations[i];

		result.write_page.values[i] = it->write_page;
		result.read_page.values[i] = it->read_page;
		result.process_page.values[i] = it->process_page;
		result.gain_page.values[i] = it->gain_page;
		result.scan_buffer.values[i] = it->scan_buffer;
		result.ratio.values[i] = it->write_page / it->read_page;
	}

	tp_sample_sort(&result.write_page);
	tp_sample_sort(&result.read_page);
	tp_sample_sort(&result.process_page);
	tp_sample_sort(&result.gain_page);
	tp_sample_sort(&result.scan_buffer);
	tp_sample_sort(&result.ratio);
	return result;
}

/* The bounds of the 95 % confidence interval of the sample's median. */
static double
interval_low(const Sample *sample)
{
	return sample->values[tp_median_interval_start(sample->n)];
}

static double
interval_high(const Sample *sample)
{
	return sample->values[sample->n - 1 - tp_median_interval_start(sample->n)];
}

/* Microseconds per unit of planner cost. */
static double
planner_unit(const Calibration *measured, const Samples *samples)
{
	return tp_sample_median(&samples->gain_page) / measured->planned_gain;
}

/* Set the result columns that hold measurements. */
static void
set_measurements(Datum *values, const Calibration *measured,
				 const Samples *samples)
{
	values[COL_MEASURED_PAGES] = Int32GetDatum(measured->pages);
	values[COL_MEASURED_ITERATIONS] = Int32GetDatum(samples->gain_page.n);
	values[COL_WRITE_PAGE_US] =
		Float8GetDatum(tp_sample_median(&samples->write_page));
	values[COL_READ_PAGE_US] =
		Float8GetDatum(tp_sample_median(&samples->read_page));
	values[COL_SCAN_BUFFER_US] =
		Float8GetDatum(tp_sample_median(&samples->scan_buffer));
	values[COL_PROCESS_PAGE_US] =
		Float8GetDatum(tp_sample_median(&samples->process_page));
	values[COL_GAIN_PAGE_US] =
		Float8GetDatum(tp_sample_median(&samples->gain_page));
	values[COL_GAIN_LOW] = Float8GetDatum(interval_low(&samples->gain_page));
	values[COL_GAIN_HIGH] = Float8GetDatum(interval_high(&samples->gain_page));
	values[COL_WRITE_READ_RATIO] =
		Float8GetDatum(tp_sample_median(&samples->ratio));
	values[COL_RATIO_LOW] = Float8GetDatum(interval_low(&samples->ratio));
	values[COL_RATIO_HIGH] = Float8GetDatum(interval_high(&samples->ratio));
	values[COL_WRITE_CV] =
		Float8GetDatum(tp_sample_variation(&samples->write_page));
	values[COL_GAIN_CV] =
		Float8GetDatum(tp_sample_variation(&samples->gain_page));
	values[COL_PLANNER_UNIT_US] =
		Float8GetDatum(planner_unit(measured, samples));
}

/*
 * The array of commands that change the settings, and last, unless it is NULL.
 * Not one string, as ALTER SYSTEM is refused in one with other commands.
 */
static Datum
commands(const char *verb, double write_temp, double buffer_scan,
		 const char *last)
{
	Datum		elems[3];
	int			n = 0;

	elems[n++] = CStringGetTextDatum(psprintf("%s temp_parallel.write_temp_page_cost = %.3g",
											  verb, write_temp));
	elems[n++] = CStringGetTextDatum(psprintf("%s temp_parallel.buffer_scan_cost = %.3g",
											  verb, buffer_scan));
	if (last != NULL)
		elems[n++] = CStringGetTextDatum(last);
	return PointerGetDatum(construct_array(elems, n, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

/* Set the result columns that recommend settings. */
static void
set_recommendation(Datum *values, const Calibration *measured,
				   const Samples *samples)
{
	double		unit = planner_unit(measured, samples);
	double		write_temp;
	double		buffer_scan;

	/* the cost model multiplies the setting by the factor */
	write_temp = tp_rounded_measurement(tp_sample_median(&samples->write_page) /
										unit / measured->page_factor);
	buffer_scan = tp_rounded_measurement(tp_sample_median(&samples->scan_buffer) /
										 unit);

	values[COL_WRITE_TEMP_PAGE_COST] = Float8GetDatum(write_temp);
	values[COL_BUFFER_SCAN_COST] = Float8GetDatum(buffer_scan);
	values[COL_SET_COMMANDS] =
		commands("SET", write_temp, buffer_scan, NULL);
	values[COL_ALTER_SYSTEM_COMMANDS] =
		commands("ALTER SYSTEM SET", write_temp, buffer_scan,
				 "SELECT pg_reload_conf()");
}

/*
 * temp_parallel_calibrate(pages integer default null,
 *						   iterations integer default 30,
 *						   tablespace name default null,
 *						   max_cv float8 default 0.25) returns record
 *
 * Measure the constants of the cost model, and recommend settings, which are
 * null after a warning if the measurements vary too much or workers save no
 * time.
 */
Datum
temp_parallel_calibrate(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	CalibrationTask task;
	Calibration measured;
	Samples		samples;
	Datum		values[NUM_COLUMNS] = {0};
	bool		nulls[NUM_COLUMNS] = {0};

	tp_refuse_in_worker();
	tp_refuse_while_workers_read("temp_parallel_calibrate()");
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	task = task_of_arguments(fcinfo);

	measured.iterations = palloc(task.iterations * sizeof(Iteration));
	measure_and_roll_back(&task, &measured);
	samples = collect_samples(measured.iterations, task.iterations);

	set_measurements(values, &measured, &samples);
	if (is_steady(tp_sample_variation(&samples.write_page),
				  tp_sample_variation(&samples.gain_page), task.max_cv) &&
		is_gain(interval_low(&samples.gain_page)))
		set_recommendation(values, &measured, &samples);
	else
	{
		for (int i = COL_WRITE_TEMP_PAGE_COST; i < NUM_COLUMNS; i++)
			nulls[i] = true;
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
