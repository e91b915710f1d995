/*-------------------------------------------------------------------------
 *
 * exec_worker_share.c
 *	  Pages that a worker reads in the leader's memory.
 *
 * The leader lists dirty pages in dynamic shared memory instead of writing them
 * (exec_share.c).  Before its plan is initialized, a worker makes each of them a
 * local buffer of its own, as if it had read it, with an address in the leader's
 * memory.  So every read of the page finds it, by whatever code.
 *
 * The worker keeps these buffers pinned, as another page read into one of them
 * would be read into the leader's memory.
 *
 * The invariant: a buffer with an address in the leader's memory holds the page
 * that the leader has there, is pinned, and is never written.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/fd.h"

#include "exec.h"

/* pages that this worker has pinned */
static Buffer *adopted = NULL;
static int	nadopted = 0;

/*
 * What the leader has put into dynamic shared memory for the plan that it has
 * sent, which has a flush node; NULL if it shares nothing.  The plan is not
 * initialized yet, so the executor has not passed it on; the segment is that in
 * which ParallelWorkerMain() of parallel.c found its table of contents.
 */
FlushShared *
tp_worker_find_shared(void)
{
	dsm_segment *seg = dsm_find_mapping(DatumGetUInt32(MyBgworkerEntry->bgw_main_arg));
	shm_toc    *toc;

	if (seg == NULL)
		return NULL;
	toc = shm_toc_attach(PARALLEL_MAGIC, dsm_segment_address(seg));
	if (toc == NULL)
		return NULL;
	return shm_toc_lookup(toc, FLUSH_SHARED_KEY, true);
}

/*
 * Map a leader's memory.  Returns MAP_FAILED, with errno set, if that is not possible.
 * If the leader has ended, its number may be that of a process with other files.
 */
static char *
map_leader(const SharedMemory *memory)
{
	char		path[64];
	int			fd;
	struct stat file;
	void	   *address = MAP_FAILED;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) memory->leader,
			 memory->fd);
	fd = BasicOpenFile(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return MAP_FAILED;
	if (fstat(fd, &file) == 0 && file.st_ino == memory->inode &&
		file.st_size == memory->size)
		address = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	else
		errno = ESTALE;
	close(fd);
	return address;
}

/* The process that tp_workers_can_map() starts. */
void
tp_map_leader_main(Datum arg)
{
	SharedMemory memory;
	char	   *address;

	(void) arg;
	memcpy(&memory, MyBgworkerEntry->bgw_extra, sizeof(memory));
	address = map_leader(&memory);
	if (address != MAP_FAILED)
		address[memory.size - 1] = 1;
}

/*
 * Adopt the pages that the leader has listed in shared.  The pool has been
 * allocated for them, and has not been used.  The buffer manager zeroes the new
 * buffer's memory, so that has to be another page first.  Raises an error if the
 * leader's memory cannot be mapped, which tp_workers_can_map() has not foreseen.
 */
void
tp_worker_adopt_pages(FlushShared *shared)
{
	char	   *memory;
	char	   *scratch;
	Relation	rel = NULL;

	if (shared == NULL || shared->npages == 0)
		return;
	memory = map_leader(&shared->memory);
	if (memory == MAP_FAILED)
	{
		shared->failed = true;	/* the leader does not share again */
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not map the leader's local buffers: %m"),
				 errhint("Repeat the statement. The session writes pages for workers from now on.")));
	}
	adopted = MemoryContextAllocExtended(TopMemoryContext,
										 shared->npages * sizeof(Buffer),
										 MCXT_ALLOC_HUGE);
	scratch = MemoryContextAlloc(TopMemoryContext, BLCKSZ);
	for (int i = 0; i < shared->npages; i++)
		LocalBufferBlockPointers[i] = scratch;

	for (int i = 0; i < shared->npages; i++)
	{
		const SharedPage *page = &shared->pages[i];
		Buffer		buffer;

		if (rel == NULL || RelationGetRelid(rel) != page->relid)
		{
			if (rel != NULL)
				RelationClose(rel);
			rel = tp_relation_open(page->relid);
		}
		buffer = ReadBufferExtended(rel, page->fork, page->block,
									RBM_ZERO_AND_LOCK, NULL);
		if (LocalBufferBlockPointers[-buffer - 1] != scratch)
			elog(ERROR, "block %u of relation \"%s\" is in a parallel worker's pool already",
				 page->block, RelationGetRelationName(rel));
		LocalBufferBlockPointers[-buffer - 1] = memory +
			(Size) page->buffer * BLCKSZ;
		adopted[nadopted++] = buffer;
	}
	RelationClose(rel);
	allow_read_ahead(nadopted);
}

/*
 * Unpin the pages that have been adopted.  No page is read afterwards.
 */
void
tp_worker_release_pages(void)
{
	while (nadopted > 0)
		ReleaseBuffer(adopted[--nadopted]);
}
