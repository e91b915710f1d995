/*-------------------------------------------------------------------------
 *
 * processors.c
 *	  The number of processors that the session may use.
 *
 * That is temp_parallel.processors, or if that is 0, what the operating system
 * lets this process use: on Linux, the processors that it may be scheduled on,
 * but no more than the quotas of its control group and of the groups above it,
 * rounded up; elsewhere, the processors that are online.  Determined once in
 * each process, when first needed, so later changes of the affinity or of a
 * quota have no effect.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <unistd.h>

#include "storage/fd.h"

#include "temp_parallel.h"

#ifdef __linux__

/* where systemd and containers mount control groups */
#define CGROUP_V2	"/sys/fs/cgroup"
#define CGROUP_V2_HYBRID "/sys/fs/cgroup/unified"
#define CGROUP_V1	"/sys/fs/cgroup/cpu"

/*
 * Read the first line of the file at path into line.  Returns false if it
 * cannot be opened or is empty.
 */
static bool
read_line(const char *path, char *line, int size)
{
	FILE	   *file = AllocateFile(path, "r");
	bool		found;

	if (file == NULL)
		return false;
	found = fgets(line, size, file) != NULL;
	FreeFile(file);
	return found;
}

/* Quota of one control group, in processors; infinity if it has none. */
static double
quota_of_group(const char *directory)
{
	char		path[MAXPGPATH];
	char		line[64];
	double		quota;
	double		period;

	snprintf(path, sizeof(path), "%s/cpu.max", directory);
	if (read_line(path, line, sizeof(line)))
	{
		if (sscanf(line, "%lf %lf", &quota, &period) != 2)
			return INFINITY;	/* "max" */
	}
	else
	{
		snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", directory);
		if (!read_line(path, line, sizeof(line)) ||
			sscanf(line, "%lf", &quota) != 1)
			return INFINITY;
		snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", directory);
		if (!read_line(path, line, sizeof(line)) ||
			sscanf(line, "%lf", &period) != 1)
			return INFINITY;
	}
	return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/*
 * The lowest quota, in processors, of group and the groups above it, up to the
 * mount point.  In a container, /proc may show another name for the group than
 * its file system does.  Then only the mount point is found, which is the
 * container's group.
 */
static double
quota_of_groups(const char *mount, const char *group)
{
	char		path[MAXPGPATH];
	double		quota = INFINITY;

	snprintf(path, sizeof(path), "%s%s", mount, group);
	while (strlen(path) > strlen(mount))
	{
		quota = Min(quota, quota_of_group(path));
		*strrchr(path, '/') = '\0';
	}
	return Min(quota, quota_of_group(mount));
}

/* Is the controller "cpu" in list, which is separated by commas? */
static bool
controls_processors(const char *list)
{
	const char *name = list;

	while (name != NULL)
	{
		if (strncmp(name, "cpu", 3) == 0 && (name[3] == ',' || name[3] == '\0'))
			return true;
		name = strchr(name, ',');
		if (name != NULL)
			name++;
	}
	return false;
}

/*
 * Quota of this process, in processors; infinity if it has none.  The lines of
 * /proc/self/cgroup are "hierarchy:controllers:group", with no controllers in
 * version 2.
 */
static double
quota_of_process(void)
{
	FILE	   *file = AllocateFile("/proc/self/cgroup", "r");
	char		line[MAXPGPATH];
	double		quota = INFINITY;

	if (file == NULL)
		return quota;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		char	   *controllers = strchr(line, ':');
		char	   *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (group == NULL || group[1] != '/')
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (*++controllers == '\0')
		{
			quota = Min(quota, quota_of_groups(CGROUP_V2, group));
			quota = Min(quota, quota_of_groups(CGROUP_V2_HYBRID, group));
		}
		else if (controls_processors(controllers))
			quota = Min(quota, quota_of_groups(CGROUP_V1, group));
	}
	FreeFile(file);
	return quota;
}

/* Number of processors that this process may be scheduled on. */
static int
schedulable_processors(void)
{
	cpu_set_t	set;

	/* fails if the machine has more processors than fit into a cpu_set_t */
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return CPU_COUNT(&set);
	return (int) sysconf(_SC_NPROCESSORS_ONLN);
}

#else

static double
quota_of_process(void)
{
	return INFINITY;
}

static int
schedulable_processors(void)
{
	return (int) sysconf(_SC_NPROCESSORS_ONLN);
}

#endif							/* __linux__ */

/*
 * Returns the number of processors that the session may use, at least 1.
 * Raises no error except out of memory or, in AllocateFile(), too many open
 * files.
 */
int
tp_usable_processors(void)
{
	static int	found = 0;

	if (tp_processors > 0)
		return tp_processors;
	if (found == 0)
	{
		double		processors = Min(schedulable_processors(),
									 ceil(quota_of_process()));

		found = (int) Max(processors, 1);
	}
	return found;
}
