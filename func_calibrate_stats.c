/*-------------------------------------------------------------------------
 *
 * func_calibrate_stats.c
 *	  Statistics of what temp_parallel_calibrate() has measured.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "func.h"

/*
 * A sample of n values, which the caller sets, in the current memory context.
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

void
tp_sample_sort(Sample *sample)
{
	qsort(sample->values, sample->n, sizeof(double), compare_doubles);
}

/* Interpolates between neighbours. */
static double
quantile(const Sample *sample, double q)
{
	double		position = q * (sample->n - 1);
	int			below = (int) position;
	int			above = Min(below + 1, sample->n - 1);

	return sample->values[below] +
		(position - below) * (sample->values[above] - sample->values[below]);
}

double
tp_sample_median(const Sample *sample)
{
	return quantile(sample, 0.5);
}

/*
 * The coefficient of variation, from the quartiles: the standard deviation of
 * a normal distribution is its interquartile range by 1.349.  A few outliers,
 * which do not move the median, do not count here either.
 */
double
tp_sample_variation(const Sample *sample)
{
	return (quantile(sample, 0.75) - quantile(sample, 0.25)) / 1.349 /
		tp_sample_median(sample);
}

/*
 * Where the 95 % confidence interval of the median begins; it ends as far from
 * the other end.  By order statistics, for which no distribution is assumed:
 * the median lies below the k-th smallest of n values with the probability that
 * fewer than k of n coins show heads.
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

/* Three digits are more than a measurement is good for. */
double
tp_rounded_measurement(double value)
{
	return strtod(psprintf("%.3g", value), NULL);
}
