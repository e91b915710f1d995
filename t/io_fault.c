/*-------------------------------------------------------------------------
 *
 * io_fault.c
 *	  Makes reads or writes of temporary tables' files, or of temporary files, fail, or
 *	  take two steps, for the tests.
 *
 * A library to preload into a server (LD_PRELOAD), which replaces the calls by
 * which the server reads and writes relations.  They do what they always do
 * unless the file named by the environment variable IO_FAULT exists, with one
 * line in it:
 *
 *		SERIAL CALL HOW ERRNO SKIP TIMES FILE
 *
 * This is about calls of kind CALL (read or write) on files whose path contains
 * FILE, and, unless that is of temporary files, /pgsql_tmp, whose name begins with t
 * and a digit as those of temporary relations do.  The first SKIP of them in each process succeed.  The next TIMES fail with
 * ERRNO, except that the first of these transfers half a page if HOW is "short",
 * and nothing, as at the end of a file, if HOW is "end".  If HOW is "torn", all
 * of them succeed, after 0.1 ms in which only the first half of the first page
 * has been transferred: a write is not atomic for other readers.  SERIAL is
 * chosen by the test; a new one makes each process count again from zero.
 *
 * These calls are logged to the file IO_FAULT.log, one per line: process, kind,
 * and the bytes transferred or -1.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HALF_PAGE 4096

typedef enum Outcome
{
	PASS_UNSEEN,				/* not for this call */
	PASS,
	FAIL,
	SHORT,
	END_OF_FILE,
	TORN
} Outcome;

typedef ssize_t (*transfer_fn) (int, const struct iovec *, int, off_t);

/* Is fd a file of a temporary relation, or a temporary file, with part in its path? */
static bool
concerns(int fd, const char *part)
{
	char		link[64];
	char		path[1024];
	const char *name;
	ssize_t		len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return false;
	path[len] = '\0';
	name = strrchr(path, '/');
	if (name == NULL || strstr(path, part) == NULL)
		return false;
	return strcmp(part, "/pgsql_tmp") == 0 ||
		(name[1] == 't' && isdigit((unsigned char) name[2]));
}

/* What should happen to a call of this kind?  Sets *error for FAIL. */
static Outcome
outcome(const char *kind, int fd, int *error)
{
	static char last_serial[32];
	static int	ncalls;
	const char *order_file = getenv("IO_FAULT");
	char		line[256];
	char		serial[32];
	char		call[8];
	char		how[8];
	char		part[128];
	int			skip;
	int			times;
	int			order;
	ssize_t		len;

	if (order_file == NULL || (order = open(order_file, O_RDONLY)) < 0)
		return PASS_UNSEEN;
	len = read(order, line, sizeof(line) - 1);
	close(order);
	if (len <= 0)
		return PASS_UNSEEN;
	line[len] = '\0';
	if (sscanf(line, "%31s %7s %7s %d %d %d %127s", serial, call, how, error,
			   &skip, &times, part) != 7)
		abort();
	if (strcmp(call, kind) != 0 || !concerns(fd, part))
		return PASS_UNSEEN;

	if (strcmp(serial, last_serial) != 0)
	{
		strcpy(last_serial, serial);
		ncalls = 0;
	}
	ncalls++;
	if (ncalls <= skip || ncalls > skip + times)
		return PASS;
	if (strcmp(how, "torn") == 0)
		return TORN;
	if (ncalls == skip + 1 && strcmp(how, "short") == 0)
		return SHORT;
	if (ncalls == skip + 1 && strcmp(how, "end") == 0)
		return END_OF_FILE;
	return FAIL;
}

static void
note(const char *kind, ssize_t transferred)
{
	char		path[1024];
	char		line[64];
	int			len;
	int			log;

	snprintf(path, sizeof(path), "%s.log", getenv("IO_FAULT"));
	log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (log < 0)
		abort();
	len = snprintf(line, sizeof(line), "%d %s %zd\n", (int) getpid(), kind,
				   transferred);
	if (write(log, line, len) != len)
		abort();
	close(log);
}

/* Make the call, by the C library's function of that name. */
static ssize_t
transfer(const char *function, const char *kind, int fd,
		 const struct iovec *iov, int iovcnt, off_t offset)
{
	transfer_fn real = (transfer_fn) dlsym(RTLD_NEXT, function);
	struct iovec half = {iov[0].iov_base, HALF_PAGE};	/* iov may be longer */
	int			error = 0;
	Outcome		what = outcome(kind, fd, &error);
	const struct timespec while_torn = {0, 100 * 1000};
	ssize_t		transferred = -1;

	switch (what)
	{
		case PASS_UNSEEN:
			return real(fd, iov, iovcnt, offset);
		case PASS:
			transferred = real(fd, iov, iovcnt, offset);
			break;
		case SHORT:
			transferred = real(fd, &half, 1, offset);
			break;
		case TORN:
			if (real(fd, &half, 1, offset) < 0)
				return -1;
			nanosleep(&while_torn, NULL);
			return real(fd, iov, iovcnt, offset);
		case END_OF_FILE:
			transferred = 0;
			break;
		case FAIL:
			break;
	}
	note(kind, transferred);
	errno = error;
	return transferred;
}

ssize_t
pread(int fd, void *buf, size_t size, off_t offset)
{
	struct iovec iov = {buf, size};

	return transfer("preadv", "read", fd, &iov, 1, offset);
}

ssize_t
pwrite(int fd, const void *buf, size_t size, off_t offset)
{
	struct iovec iov = {(void *) buf, size};

	return transfer("pwritev", "write", fd, &iov, 1, offset);
}

ssize_t
preadv(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
	return transfer("preadv", "read", fd, iov, iovcnt, offset);
}

ssize_t
pwritev(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
	return transfer("pwritev", "write", fd, iov, iovcnt, offset);
}
