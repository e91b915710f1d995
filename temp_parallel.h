/*-------------------------------------------------------------------------
 *
 * temp_parallel.h
 *	  Used by every part of temp_parallel: settings, tests for the session's
 *	  temporary tables, the session's counters, and lines of EXPLAIN.
 *
 * Each part has a header of its own, and calls only the parts below it: see
 * doc/architecture.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEMP_PARALLEL_H
#define TEMP_PARALLEL_H

#include "temp_parallel_compat.h"

/* session.c: settings */
typedef enum RunAhead			/* each includes those before it */
{
	RUN_AHEAD_OFF,
	RUN_AHEAD_INSERT,			/* INSERT ... SELECT */
	RUN_AHEAD_MODIFY,			/* UPDATE, DELETE, MERGE */
	RUN_AHEAD_ON				/* queries whose rows are fetched in portions */
} RunAhead;

extern bool tp_enabled;
extern double tp_write_temp_page_cost;
extern double tp_buffer_scan_cost;
extern int	tp_processors;
extern int	tp_run_ahead;
extern bool tp_share_local_buffers;

extern void tp_define_settings(void);

/* session.c: temporary tables */
extern bool tp_session_has_temp_tables(void);
extern bool tp_is_name_of_temp_table(const RangeVar *name);
extern bool tp_is_session_temp_table(Oid relid);

/* session_activity.c: counters of this session, and of all */
#define MOST_REASONS	8		/* of a session */

typedef struct SerialReason
{
	char		name[64];
	int64		statements;
} SerialReason;

typedef struct SessionStats
{
	int64		flushes;		/* before a launch of workers */
	int64		pages_flushed;	/* written by these */
	int64		pages_shared;	/* not written, but read by workers in the
								 * leader's memory */
	double		flush_time;		/* of these, in milliseconds */
	int64		workers_launched;	/* for plans with a flush node */
	int64		hints_dropped;	/* pages, in the leader */
	int64		left_to_leader; /* statements with "Flush Skipped", but for
								 * parameters */
	int64		serial_by_flush;	/* statements that ran without workers
									 * only because of the flush */
	int64		serial;			/* statements that ran without workers */
	SerialReason reasons[MOST_REASONS]; /* of these */
} SessionStats;

typedef struct ActivitySlot
{
	volatile int pid;			/* 0: not in use */
	Oid			database;
	SessionStats stats;
} ActivitySlot;

extern SessionStats *tp_session_stats;

extern void tp_request_activity(void);
extern ActivitySlot *tp_activity(void);
extern void tp_show_activity(void);
extern void tp_count_serial(const char *reason);

/* explain.c */
typedef struct ExplainNumber
{
	const char *in_text;		/* name in a line of text */
	const char *property;		/* in other formats */
	double		value;
	int			digits;			/* after the decimal point */
	const char *unit;
} ExplainNumber;

extern void tp_explain_numbers(const char *label, const ExplainNumber *numbers,
							   int n, ExplainState *es);
extern void tp_explain_names(const char *label, List *relids, ExplainState *es);

#endif							/* TEMP_PARALLEL_H */
