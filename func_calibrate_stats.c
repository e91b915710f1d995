/*-------------------------------------------------------------------------
 *
 * func_calibrate_stats.c
 *	  Statistics of the measurements of temp_parallel_calibrate().
 *
 * Order statistics only, so that a few outliers do not count.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "func.h"

/*
 * Returns a sample of n values, which the caller sets and then sorts.
 * Allocated in the current memory context.
 */
Sample
tp_sample_make(int n)
{
	Sample		sample;

	sample.n = n;
	sample.values = palloc(n * sizeof(double));
	return sample;
}

static int
compare_doubles(const void *a, const void *b)
{
	double		left = *(const double *) a;
	double		right = *(const double *) b;

	return left < right ? -1 : left > right;
}

/*
 * Sort the values of sample in ascending order, as all functions below expect.
 */
void
tp_sample_sort(Sample *sample)
{
	qsort(sample->values, sample->n, sizeof(double), compare_doubles);
}

/* The q quantile, 0 <= q <= 1, by linear interpolation. */
static double
quantile(const Sample *sample, double q)
{
	double		position = q * (sample->n - 1);
	int			below = (int) position;
	int			above = Min(below + 1, sample->n - 1);

	return sample->values[below] +
		(position - below) * (sample->values[above] - sample->values[below]);
}

/*
 * The median.
 */
double
tp_sample_median(const Sample *sample)
{
	return quantile(sample, 0.5);
}

/*
 * The coefficient of variation, estimated from the quartiles: the standard
 * deviation of a normal distribution is its interquartile range divided by
 * 1.349.
 */
double
tp_sample_variation(const Sample *sample)
{
	return (quantile(sample, 0.75) - quantile(sample, 0.25)) / 1.349 /
		tp_sample_median(sample);
}

/*
 * Index of the value where the 95 % confidence interval of the median of n
 * values begins; it ends at the same distance from the last value.  By order
 * statistics: the median lies below the k-th smallest of n values with the
 * probability that fewer than k of n tossed coins show heads.
 */
int
tp_median_interval_start(int n)
{
	double		probability = pow(0.5, n);
	double		tail = probability;
	int			k = 0;

	while (k < n / 2)
	{
		probability = probability * (n - k) / (k + 1);
		if (tail + probability > 0.025)
			break;
		tail += probability;
		k++;
	}
	return k;
}

/*
 * Round value to three significant digits, which exceeds the precision of the
 * measurements.
 */
double
tp_rounded_measurement(double value)
{
	return strtod(psprintf("%.3g", value), NULL);
}
