/*-------------------------------------------------------------------------
 *
 * memory_fault.c
 *	  Makes one allocation of a process fail, for the tests.
 *
 * A library to preload into a server (LD_PRELOAD), which replaces the calls by
 * which glibc allocates memory.  They do what they always do unless the file named
 * by the environment variable MEMORY_FAULT, an Order, is about this process: then
 * the n-th of them returns no memory, or if the server cannot survive that, the next.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* dladdr() */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct Order
{
	int32_t		serial;			/* chosen by the test, a new one each time */
	int32_t		pid;			/* 0: all processes forked with this serial */
	int32_t		nth;			/* of these allocations fails; 0: none */
	int32_t		count;			/* of the allocations */
} Order;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static volatile Order *order;
static int32_t born;			/* the serial when this process was forked */

static void
note_birth(void)
{
	born = order->serial;
}

__attribute__((constructor))
static void
read_order(void)
{
	const char *path = getenv("MEMORY_FAULT");
	int			fd = path != NULL ? open(path, O_RDWR) : -1;
	void	   *address;

	if (fd < 0)
		return;
	backtrace(&address, 1);		/* the first call allocates memory */
	address = mmap(NULL, sizeof(Order), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (address == MAP_FAILED || pthread_atfork(NULL, NULL, note_birth) != 0)
		abort();
	order = address;
}

/*
 * Whether the allocation is for a reference to statistics, of which the server keeps the
 * entry in its hash table if there is no memory for the reference itself.  With
 * assertions, the process then fails one at its exit (pgstat_get_entry_ref_cached() and
 * pgstat_release_matching_entry_refs() in pgstat_shmem.c), whatever modules are loaded.
 */
static bool
crashes_the_server(void)
{
	void	   *frames[64];
	int			n = backtrace(frames, 64);
	Dl_info		info;

	for (int i = 0; i < n; i++)
		if (dladdr(frames[i], &info) != 0 && info.dli_sname != NULL &&
			strcmp(info.dli_sname, "pgstat_get_entry_ref") == 0)
			return true;
	return false;
}

static bool
fails(void)
{
	int32_t		count;

	if (order == NULL || order->serial == 0 ||
		(order->pid != 0 ? order->pid != getpid() : order->serial != born))
		return false;
	count = __atomic_add_fetch(&order->count, 1, __ATOMIC_SEQ_CST);
	if (count != order->nth)
		return false;
	if (crashes_the_server())
	{
		order->nth = count + 1;
		return false;
	}
	errno = ENOMEM;
	return true;
}

void *
malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}
