/*
 * plain_writes FILE PAGES CALL
 *
 * Reads the first PAGES pages of 8 kB of FILE, and writes them back in order, CALL
 * pages per system call. Prints how many microseconds the writing took.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 8192
#define MAX_CALL 64

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

int
main(int argc, char **argv)
{
	long		pages = argc == 4 ? atol(argv[2]) : 0;
	long		call = argc == 4 ? atol(argv[3]) : 0;
	char	   *memory;
	struct timespec start;
	struct timespec end;
	int			fd;

	if (pages < 1 || call < 1 || call > MAX_CALL)
	{
		fprintf(stderr, "usage: plain_writes FILE PAGES CALL\n");
		return 2;
	}
	if ((fd = open(argv[1], O_RDWR)) < 0)
		fail(argv[1]);
	if ((memory = aligned_alloc(PAGE, pages * PAGE)) == NULL)
		fail("memory");
	for (long i = 0; i < pages; i++)
	{
		if (pread(fd, memory + i * PAGE, PAGE, i * PAGE) != PAGE)
			fail("read");
	}

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < pages; i += call)
	{
		struct iovec iov[MAX_CALL];
		long		n = call < pages - i ? call : pages - i;
		ssize_t		written;

		if (n == 1)
			written = pwrite(fd, memory + i * PAGE, PAGE, i * PAGE);
		else
		{
			for (long j = 0; j < n; j++)
			{
				iov[j].iov_base = memory + (i + j) * PAGE;
				iov[j].iov_len = PAGE;
			}
			written = pwritev(fd, iov, n, i * PAGE);
		}
		if (written != n * PAGE)
			fail("write");
	}
	clock_gettime(CLOCK_MONOTONIC, &end);

	printf("%.1f\n", (end.tv_sec - start.tv_sec) * 1e6 +
		   (end.tv_nsec - start.tv_nsec) / 1e3);
	return 0;
}
