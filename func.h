/*-------------------------------------------------------------------------
 *
 * func.h
 *	  SQL functions: checks of arguments and privileges, statistics of samples.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FUNC_H
#define FUNC_H

#include "fmgr.h"

#include "localbuf.h"

/* func_checks.c */
typedef enum TempTableAccess
{
	MAY_READ_TABLE,				/* SELECT */
	MUST_OWN_TABLE
} TempTableAccess;

extern void tp_refuse_in_worker(void);
extern void tp_refuse_while_workers_read(const char *function);
extern Oid	tp_temp_table_argument(FunctionCallInfo fcinfo, int argno,
								   TempTableAccess access);

/* func_calibrate_stats.c */
typedef struct Sample
{
	int			n;
	double	   *values;			/* in ascending order, once sorted */
} Sample;

extern Sample tp_sample_make(int n);
extern void tp_sample_sort(Sample *sample);
extern double tp_sample_median(const Sample *sample);
extern double tp_sample_variation(const Sample *sample);
extern int	tp_median_interval_start(int n);
extern double tp_rounded_measurement(double value);

#endif							/* FUNC_H */
