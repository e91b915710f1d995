/*-------------------------------------------------------------------------
 *
 * localbuf_share.c
 *	  The pool's memory, where parallel workers can read it.
 *
 * Core allocates the memory of a local buffer when the buffer is first used,
 * unless LocalBufferBlockPointers has its address already.  So the entries that
 * are still empty get addresses in a mapping of an anonymous file
 * (memfd_create()).  A worker, which is another process of the same user, opens
 * that file as /proc/PID/fd/N and maps it, too.  The file is sparse: a page of it
 * takes no memory before its buffer is used.
 *
 * This is done before the first statement that writes temporary tables, not
 * when a table is created: temp_buffers may be set until the pool is used.
 * Buffers that are in use by then keep their private memory.
 *
 * Where it cannot be done, or has failed once, the pool stays private, and its
 * dirty pages are written for workers (localbuf_flush.c).
 *
 * A page that workers have been told to read there is listed until they have exited
 * (exec_share.c).
 *
 * The invariants: the address of a buffer does not change once it has one, so
 * whether a buffer is shared depends on its address alone; the page of a buffer
 * that is listed is not written, whoever flushes, as a worker may set hints in it
 * between the computation of its checksum and the write.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "access/table.h"
#include "catalog/pg_class.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "localbuf.h"

/*
 * Buffers of the smallest pool that is shared.  A smaller one has no room for
 * pages that stay pinned while the leader runs its own part of the plan.
 */
#define LEAST_POOL		256

/*
 * Buffers that are not pinned for workers if the statement runs code that is not
 * core's: what functions need that the leader calls is not known.  So many are as good
 * as the default pool.
 */
#define USER_CODE_PINS	1024

static SharedMemory memory = {.fd = -1};
static char *mapping = NULL;	/* of that file in this process, or NULL */
static const char *failure = NULL;	/* why the pool is not shared */

static bool *listed = NULL;		/* by number of buffer; or NULL */
static int	nlisted = 0;		/* how many are */

/*
 * Does the kernel promise only as much memory as it has?  Then an access to a
 * page of a sparse file may raise SIGBUS.
 */
static bool
kernel_never_overcommits(void)
{
	FILE	   *file = fopen("/proc/sys/vm/overcommit_memory", "r");
	int			mode = 2;

	if (file != NULL)
	{
		if (fscanf(file, "%d", &mode) != 1)
			mode = 2;
		fclose(file);
	}
	return mode == 2;
}

/* Can other processes of the same user open this one's files? */
static bool
files_can_be_opened(int fd)
{
#ifdef __linux__
	char		path[64];
	int			again;

	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) getpid(), fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	if (again < 0)
		return false;
	close(again);
	return true;
#else
	(void) fd;
	return false;
#endif
}

/* Make the file for size bytes and map it.  Returns why not, or NULL. */
static const char *
map_memory(Size size)
{
#ifdef MFD_CLOEXEC
	int			fd;
	void	   *address;

	if (kernel_never_overcommits())
		return "vm.overcommit_memory is 2, or /proc cannot be read";
	fd = memfd_create("temp_parallel local buffers", MFD_CLOEXEC);
	if (fd < 0)
		return "memfd_create() failed";
	if (!files_can_be_opened(fd))
	{
		close(fd);
		return "other processes cannot open this one's files in /proc";
	}
	if (ftruncate(fd, size) != 0)
	{
		close(fd);
		return "ftruncate() failed";
	}
	address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (address == MAP_FAILED)
	{
		close(fd);
		return "mmap() failed";
	}
	mapping = address;
	memory.leader = getpid();
	memory.fd = fd;
	memory.size = size;
	return NULL;
#else
	(void) size;
	return "the system has no memfd_create()";
#endif
}

/*
 * Have core allocate the descriptors, if it has not yet: PrefetchLocalBuffer()
 * of localbuf.c looks for the page in the pool, which may be of any relation.
 */
static void
open_pool(void)
{
	Relation	rel;

	if (NLocBuffer > 0)
		return;
	rel = table_open(RelationRelationId, AccessShareLock);
	(void) PrefetchLocalBuffer(RelationGetSmgr(rel), MAIN_FORKNUM, 0);
	table_close(rel, AccessShareLock);
}

/* Is the pool, as it is or will be when it is first used, too small? */
static bool
is_too_small(void)
{
	return (NLocBuffer > 0 ? NLocBuffer : num_temp_buffers) < LEAST_POOL;
}

/*
 * Is it time to share the pool when temporary tables are written?  Not if that has
 * been done, has failed, is turned off, or the pool is small.
 */
bool
tp_pool_may_be_shared(void)
{
	return mapping == NULL && failure == NULL &&
		tp_share_local_buffers != SHARE_OFF && !is_too_small();
}

/*
 * Share the memory of all buffers that have none yet.  From then on temp_buffers
 * cannot be set.  To be called in a transaction, by the leader, when temporary
 * tables are about to be written and tp_pool_may_be_shared().
 */
void
tp_share_pool(void)
{
	open_pool();
	(void) tp_used_buffers();	/* those with private memory */
	listed = MemoryContextAllocExtended(TopMemoryContext, NLocBuffer * sizeof(bool),
										MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	failure = map_memory((Size) NLocBuffer * BLCKSZ);
	if (failure != NULL)
		return;
	for (int i = 0; i < NLocBuffer; i++)
	{
		if (LocalBufferBlockPointers[i] == NULL)
			LocalBufferBlockPointers[i] = mapping + (Size) i * BLCKSZ;
	}
}

/*
 * Share no more pages in this session, because of reason, a constant.  Buffers
 * keep their memory.
 */
void
tp_stop_sharing(const char *reason)
{
	failure = reason;
}

/* May pages be shared by the statement that is planned or run? */
bool
tp_sharing(void)
{
	return mapping != NULL && failure == NULL &&
		tp_share_local_buffers != SHARE_OFF;
}

/*
 * How many buffers may be pinned?  Mostly the pool's size, but the server limits
 * what may be read ahead to temp_buffers, which RESET can make lower.
 */
int
tp_most_pins(void)
{
	return Min(NLocBuffer, num_temp_buffers);
}

/*
 * How many pages may be shared at once by a statement that runs user code (see
 * plan_user_code.c), or none?  A quarter of the pool is left for the leader, and for
 * user code USER_CODE_PINS.
 */
int
tp_most_shared_pages(bool user_code)
{
	int			left = tp_most_pins() / 4;

	if (user_code)
		left = Max(left, USER_CODE_PINS);
	return Max(tp_most_pins() - left, 0);
}

/* List buffer i, or no more.  Raises nothing. */
void
tp_set_listed(int i, bool is_listed)
{
	Assert(listed != NULL && listed[i] != is_listed);
	listed[i] = is_listed;
	nlisted += is_listed ? 1 : -1;
}

/* Do workers read the page of buffer i in the leader's memory now? */
bool
tp_is_listed(int i)
{
	return nlisted > 0 && listed[i];
}

/* Of how many buffers do they? */
int
tp_listed_pages(void)
{
	return nlisted;
}

/*
 * Why the pool, or a part of it, is not shared; or NULL if it is, or nothing is known
 * yet.
 */
const char *
tp_sharing_failure(void)
{
	if (tp_share_local_buffers == SHARE_OFF)
		return "temp_parallel.share_local_buffers is off";
	if (failure != NULL)
		return failure;
	if (is_too_small())
		return "temp_buffers is too small";
	if (NLocBuffer > 0 && !tp_buffer_is_shared(0))
		return "local buffers were in use before";
	return NULL;
}

/* The shared memory, for workers; only if tp_sharing(). */
SharedMemory
tp_shared_memory(void)
{
	Assert(mapping != NULL);
	return memory;
}

/* Can other processes map the memory of buffer i? */
bool
tp_buffer_is_shared(int i)
{
	return mapping != NULL &&
		(char *) LocalBufferBlockPointers[i] == mapping + (Size) i * BLCKSZ;
}

/*
 * The number of buffers, from the first one on, after which no buffer has ever been
 * used.  Core uses buffers for the first time in the order of their numbers (see
 * GetLocalVictimBuffer(), in 15 LocalBufferAlloc(), of localbuf.c).  Before that, it
 * allocates memory to the buffer, and passes over it for good if it cannot, so there
 * may be buffers in between that have none.  In the shared file, the used ones are the
 * pages that exist.
 */
int
tp_used_buffers(void)
{
	static int	used = 0;		/* never decreases */

	if (mapping == NULL)
	{
		for (int i = NLocBuffer - 1; i >= used; i--)
		{
			if (LocalBufferBlockPointers[i] != NULL)
				used = i + 1;
		}
		return used;
	}
#ifdef MFD_CLOEXEC
	while (used < NLocBuffer)
	{
		off_t		begin = lseek(memory.fd, (off_t) used * BLCKSZ, SEEK_DATA);
		off_t		end;

		if (begin < 0)
			return errno == ENXIO ? used : NLocBuffer;
		end = lseek(memory.fd, begin, SEEK_HOLE);
		if (end < 0)
			return NLocBuffer;
		used = Min((end + BLCKSZ - 1) / BLCKSZ, NLocBuffer);
	}
#endif
	return NLocBuffer;
}
