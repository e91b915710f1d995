/*-------------------------------------------------------------------------
 *
 * localbuf_share.c
 *	  The pool's memory, where parallel workers can read it.
 *
 * Core allocates the memory of a local buffer when that is first used, unless
 * LocalBufferBlockPointers has its address already.  So the entries that are still empty
 * get addresses in a mapping of an anonymous file (memfd_create()).  A worker, which is
 * another process of the same user, opens that file as /proc/PID/fd/N and maps it, too.
 * The file is sparse: a page of it takes no memory before its buffer is used.  Where it
 * cannot be opened, or memory is never overcommitted, a System V segment takes its place.
 *
 * This is done before the first statement that may fill a temporary table, a sequence or
 * an index.  From then on core lets nobody set temp_buffers.  Buffers that are in use before
 * keep their private memory.  Where sharing cannot be done, or has failed once, the pool's
 * dirty pages are written for workers (localbuf_flush.c).
 *
 * Instead of writing a dirty page whose memory is shared, the flush node lists it, for
 * workers to use it as a local buffer of their own.  A page that is listed stays pinned
 * until the workers have exited.  In the read-only phase nobody changes it, except for
 * hints, which processes set concurrently as they do in shared buffers.
 *
 * The pins belong to the resource owner of the (sub)transaction, which releases them after an
 * error when core has ended the workers (AtEOXact_Parallel(), AtEOSubXact_Parallel()).  A
 * function that the leader calls meanwhile may run a statement with workers of its own.  They
 * get the pages that are listed already, too, which must not be written.
 *
 * The invariants: the address of a buffer does not change once it has been used, so
 * whether a buffer is shared depends on its address alone; a page is listed for running
 * workers only while it is pinned, and is not written then, whoever flushes, as a worker
 * may set hints in it between the computation of its checksum and the write.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "storage/fd.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"

#include "localbuf.h"

/*
 * Buffers of the smallest pool that is shared: a smaller one has no room for pages that stay
 * pinned while the leader runs the plan.
 */
#define LEAST_POOL		256

/*
 * Buffers that are not pinned for workers if the statement runs user code, whose needs are
 * not known: as many as the default pool has.
 */
#define USER_CODE_PINS	1024

/* Of the memory that processes can still reserve, at most this part for one pool. */
#define RESERVED_PART	4

/* Address space is limited if less is left for queries than this many times the pool. */
#define ADDRESS_SPACE_FACTOR	4

static SharedMemory memory;
static const char *failure = NULL;	/* why the pool is not shared */
static bool workers_can_map = false;

/*
 * The buffers that are listed: by their numbers, and in the order in which they have been
 * listed.  A statement within another one ends first, so it unlists its own.
 */
static bool *is_listed = NULL;
static int *listed = NULL;
static int	nlisted = 0;

/* Returns the number after label, or the first one, in a file of /proc; -1 if there is none. */
static int64
number_after(const char *path, const char *label)
{
	char		content[8192];
	int			fd = BasicOpenFile(path, O_RDONLY | O_CLOEXEC);
	ssize_t		length;
	char	   *found;

	if (fd < 0)
		return -1;
	length = read(fd, content, sizeof(content) - 1);
	close(fd);
	content[Max(length, 0)] = '\0';
	found = strstr(content, label);
	return length <= 0 || found == NULL ? -1 : strtoll(found + strlen(label), NULL, 10);
}

/* Does a mapping of size bytes leave too little address space for queries? */
static bool
address_space_is_limited(Size size)
{
	struct rlimit limit;
	int64		present;

	if (getrlimit(RLIMIT_AS, &limit) != 0)
		return true;
	if (limit.rlim_cur == RLIM_INFINITY)
		return false;
	present = number_after("/proc/self/statm", "") * sysconf(_SC_PAGESIZE);
	return present < 0 || limit.rlim_cur < present ||
		(limit.rlim_cur - present) / ADDRESS_SPACE_FACTOR < size;
}

#ifdef __linux__
/*
 * Does the kernel never overcommit memory?  Then it ignores MAP_NORESERVE, which is tried
 * where /proc/sys is hidden.
 */
static bool
never_overcommits(void)
{
	int64		mode = number_after("/proc/sys/vm/overcommit_memory", "");
	Size		size = (Size) 1 << (sizeof(Size) * 8 - 20); /* 16 TB */
	void	   *address;

	if (mode >= 0)
		return mode == 2;
	address = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return address == MAP_FAILED || munmap(address, size) != 0;
}

/*
 * Make a System V segment, and attach it.  It is marked for removal at once, so that it goes
 * with the last process that has it attached, however that ends; Linux lets others attach
 * it nevertheless.  Returns why there is none, or NULL.
 */
static const char *
make_segment(bool reserved)
{
	void	   *address;

	if (reserved && (int64) memory.size >
		(number_after("/proc/meminfo", "CommitLimit:") -
		 number_after("/proc/meminfo", "Committed_AS:")) * 1024 / RESERVED_PART)
		return "vm.overcommit_memory is 2, and temp_buffers too large for what is left to reserve";
	memory.id = shmget(IPC_PRIVATE, memory.size, IPC_CREAT | SHM_NORESERVE | 0600);
	if (memory.id < 0)
		return "shmget() failed";
	address = shmat(memory.id, NULL, 0);
	(void) shmctl(memory.id, IPC_RMID, NULL);
	if (address == MAP_FAILED)
		return "shmat() failed";
	memory.is_segment = true;
	memory.address = address;
	return NULL;
}
#endif

/* Make the file or segment for npages buffers, and map it.  Returns why there is none, or NULL. */
static const char *
map_memory(int npages)
{
#ifdef __linux__
	bool		reserved = never_overcommits();
	struct stat file;
	void	   *address = MAP_FAILED;
	char		files[64];

	memory.leader = getpid();
	memory.size = (Size) npages * BLCKSZ;
	/* a pool's size may exceed them, or leave queries none */
	if (sizeof(void *) < 8)
		return "addresses have 32 bits";
	if (address_space_is_limited(memory.size))
		return "the process's address space is limited";

	/*
	 * Workers map a file by fewer faults.  But without overcommitting, an
	 * access to a sparse one may raise SIGBUS, and files of a process that is
	 * not dumpable belong to root.
	 */
	snprintf(files, sizeof(files), "/proc/%d/fd", (int) memory.leader);
	if (reserved || prctl(PR_GET_DUMPABLE) != 1 || access(files, X_OK) != 0)
		return make_segment(reserved);
	if (!AcquireExternalFD())
		return "too many files are open";
	memory.id = memfd_create("temp_parallel local buffers", MFD_CLOEXEC);
	if (memory.id < 0)
	{
		ReleaseExternalFD();
		return "memfd_create() failed";
	}
	if (fstat(memory.id, &file) == 0 && ftruncate(memory.id, memory.size) == 0)
		address = mmap(NULL, memory.size, PROT_READ | PROT_WRITE, MAP_SHARED,
					   memory.id, 0);
	if (address == MAP_FAILED)
	{
		close(memory.id);
		ReleaseExternalFD();
		return "ftruncate() or mmap() failed";
	}
	memory.inode = file.st_ino;
	memory.address = address;
	return NULL;
#else
	(void) npages;
	return "the system is not Linux";
#endif
}

/* How many buffers the pool has, or will have.  RESET changes temp_buffers alone. */
int
tp_pool_size(void)
{
	return NLocBuffer > 0 ? NLocBuffer : num_temp_buffers;
}

/* Share the memory of all buffers that have none yet, or note why not. */
static void
share_buffers(void)
{
	(void) tp_used_buffers();	/* those with private memory */
	failure = map_memory(NLocBuffer);
	if (failure != NULL)
		return;
	for (int i = 0; i < NLocBuffer; i++)
	{
		if (LocalBufferBlockPointers[i] == NULL)
			LocalBufferBlockPointers[i] = memory.address + (Size) i * BLCKSZ;
	}
}

/* ----------
 * Sharing it
 * ----------
 */

/*
 * Have core allocate the descriptors: PrefetchLocalBuffer() of localbuf.c looks for
 * the page in the pool, which may be of any relation.
 */
static void
open_pool(void)
{
	Relation	rel = table_open(RelationRelationId, AccessShareLock);

	(void) PrefetchLocalBuffer(RelationGetSmgr(rel), MAIN_FORKNUM, 0);
	table_close(rel, AccessShareLock);
}

/*
 * Does stmt, whose tables are locked, write a temporary table?  As long as no buffer has
 * been used, there is nothing to update or delete.
 */
static bool
writes_temp_table(PlannedStmt *stmt)
{
	ListCell   *lc;

	if ((NLocBuffer == 0 && stmt->commandType != CMD_INSERT &&
		 stmt->commandType != CMD_MERGE && !stmt->hasModifyingCTE) ||
		!tp_session_has_temp_tables())
		return false;
	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if (rte->rtekind == RTE_RELATION &&
			rte->rellockmode == RowExclusiveLock &&
			get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP)
			return true;
	}
	return false;
}

/* Is the relation that name is given to a temporary one? */
static bool
is_made_temporary(const RangeVar *name)
{
	/* pg_temp.t is marked as temporary only when it is created */
	return name->relpersistence == RELPERSISTENCE_TEMP ||
		(name->schemaname != NULL && strcmp(name->schemaname, "pg_temp") == 0);
}

/* May statement, a PlannedStmt or a utility statement, fill a temporary relation? */
static bool
fills_temp_relation(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_PlannedStmt:
			return writes_temp_table((PlannedStmt *) statement);
		case T_CreateTableAsStmt:
			return !((CreateTableAsStmt *) statement)->into->skipData &&
				is_made_temporary(((CreateTableAsStmt *) statement)->into->rel);
		case T_CreateSeqStmt:
			return is_made_temporary(((CreateSeqStmt *) statement)->sequence);
		case T_IndexStmt:
			/* not btree: has a first page even if the table is empty */
			return strcmp(((IndexStmt *) statement)->accessMethod, DEFAULT_INDEX_TYPE) != 0 &&
				tp_is_name_of_temp_table(((IndexStmt *) statement)->relation);
		case T_CopyStmt:
			return ((CopyStmt *) statement)->is_from &&
				tp_is_name_of_temp_table(((CopyStmt *) statement)->relation);
		default:
			return false;
	}
}

/*
 * Have the pool's memory shared, if that has not been tried and statement, a PlannedStmt or
 * a utility statement, may fill a temporary relation.  To be called in a transaction.
 */
void
tp_share_before(Node *statement)
{
	if (memory.address != NULL || failure != NULL || !tp_share_local_buffers ||
		tp_pool_size() < LEAST_POOL || !fills_temp_relation(statement))
		return;
	if (NLocBuffer == 0)
		open_pool();
	share_buffers();
}

/* May pages be shared by the statement that is planned or run? */
bool
tp_sharing(void)
{
	return memory.address != NULL && failure == NULL &&
		tp_share_local_buffers;
}

/* ----------
 * Mapping it in other processes
 * ----------
 */

/*
 * Map a leader's memory.  Returns MAP_FAILED, with errno set, if that is not possible.
 * If the leader has ended, its number may be that of a process with other files.
 */
char *
tp_map_leader(const SharedMemory *memory)
{
	char		path[64];
	int			fd;
	struct stat file;
	struct shmid_ds segment;
	void	   *address = MAP_FAILED;

	if (memory->is_segment)
	{
		errno = ESTALE;
		if (shmctl(memory->id, IPC_STAT, &segment) != 0 ||
			segment.shm_cpid != memory->leader || segment.shm_segsz != memory->size)
			return MAP_FAILED;
		return shmat(memory->id, NULL, 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) memory->leader,
			 memory->id);
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

/*
 * Note, in the leader, what workers that were given shared say of that.  If one of them
 * could not map the memory, no more pages are shared in this session.
 */
void
tp_note_mapping(const FlushShared *shared)
{
	if (shared->failed)
		failure = "a worker could not map the leader's memory";
	workers_can_map = !shared->failed && (shared->mapped || workers_can_map);
}

/* Has a worker of this session mapped the memory, and none failed to? */
bool
tp_workers_can_map(void)
{
	return workers_can_map;
}

/* ----------
 * Listing pages
 * ----------
 */

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
 * How many pages may be shared at once by a statement, which runs user code, or does not?
 * A quarter of the pool is left for the leader, and for user code USER_CODE_PINS.
 */
int
tp_most_shared_pages(bool user_code)
{
	int			left = tp_most_pins() / 4;

	if (user_code)
		left = Max(left, USER_CODE_PINS);
	return Max(tp_most_pins() - left, 0);
}

/*
 * List those of the ndirty dirty buffers whose numbers are in dirty that are listed already
 * for workers that run, and at most limit others that are shared, as far as there is room, in
 * shared.  relations are theirs, and count the pages that are listed.  Returns the number of
 * buffers that are not listed, which have to be written, and are the first in dirty then; or
 * -1, and lists none, if there is no room for those that are listed already.
 */
int
tp_list_buffers(FlushShared *shared, int limit, int *dirty, int ndirty,
				HTAB *relations)
{
	ResourceOwner old = CurrentResourceOwner;
	TempRelation *relation = NULL;
	int			room = shared->capacity;
	int			left = 0;

	shared->npages = 0;
	shared->memory = memory;
	for (int n = 0; n < ndirty; n++)
		room -= tp_is_listed(dirty[n]);
	if (room < 0)
		return -1;
	limit = Min(limit, room);
	if (limit > 0 && listed == NULL)
	{
		listed = MemoryContextAllocExtended(TopMemoryContext,
											(Size) NLocBuffer * (sizeof(int) + sizeof(bool)),
											MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		is_listed = (bool *) (listed + NLocBuffer);
	}
	for (int n = 0; n < ndirty; n++)
	{
		int			i = dirty[n];
		BufferTag	tag = GetLocalBufferDescriptor(i)->tag;
		SharedPage *page;

		if (!tp_is_listed(i) && (limit <= 0 || !tp_buffer_is_shared(i)))
		{
			dirty[left++] = i;
			continue;
		}
		Assert(shared->npages < shared->capacity);
		if (!tp_is_listed(i))
		{
			CurrentResourceOwner = CurTransactionResourceOwner;
			pin_local_buffer(i);
			CurrentResourceOwner = old;
			listed[nlisted++] = i;
			is_listed[i] = true;
			limit--;
		}
		relation = tp_relation_of_buffer(relations, i, relation);
		relation->dirtied++;
		relation->shareable++;
		page = &shared->pages[shared->npages++];
		page->relid = relation->relid;
		page->fork = BufTagGetForkNum(&tag);
		page->block = tag.blockNum;
		page->buffer = i;
	}
	return left;
}

/*
 * Unlist all buffers but the first ones that were listed, of that number, when the workers
 * that read the others have exited.  unpin is not set after an error, when the resource
 * owner unpins them; then this raises nothing.
 */
void
tp_unlist_buffers(int first, bool unpin)
{
	ResourceOwner old = CurrentResourceOwner;

	CurrentResourceOwner = CurTransactionResourceOwner;
	while (nlisted > first)
	{
		int			i = listed[--nlisted];

		is_listed[i] = false;
		if (unpin)
			ReleaseBuffer(-i - 1);
	}
	CurrentResourceOwner = old;
}

/* Is buffer i listed? */
bool
tp_is_listed(int i)
{
	return nlisted > 0 && is_listed[i];
}

/* How many buffers are listed? */
int
tp_listed_buffers(void)
{
	return nlisted;
}

/* Why the pool, or a part of it, is not shared; NULL if it is, or nothing is known yet. */
const char *
tp_sharing_failure(void)
{
	if (!tp_share_local_buffers)
		return "temp_parallel.share_local_buffers is off";
	if (failure != NULL)
		return failure;
	if (tp_pool_size() < LEAST_POOL)
		return "temp_buffers is too small";
	if (tp_used_buffers() > 0 && !tp_buffer_is_shared(0))
		return "local buffers were in use before";
	return NULL;
}

/* Is the memory of buffer i shared? */
bool
tp_buffer_is_shared(int i)
{
	return memory.address != NULL &&
		(char *) LocalBufferBlockPointers[i] == memory.address + (Size) i * BLCKSZ;
}

/*
 * Has buffer i been used?  Core sets the tag of a buffer when it uses that for the first
 * time, and clears the block number to InvalidBlockNumber.
 */
static bool
was_used(int i)
{
	BufferDesc *buf = GetLocalBufferDescriptor(i);

	if (!tp_buffer_is_shared(i))
		return LocalBufferBlockPointers[i] != NULL;
	return buf->tag.blockNum != 0 ||
		RelFileLocatorNumber(BufTagGetRelFileLocator(&buf->tag)) != InvalidOid;
}

/*
 * The number of buffers after which no buffer has ever been used.  Core uses buffers for the
 * first time in the order of their numbers (see GetLocalVictimBuffer(), in 15
 * LocalBufferAlloc(), of localbuf.c), but may pass over some.  In the shared file, the used
 * ones are the pages that exist.
 */
int
tp_used_buffers(void)
{
	static int	used = 0;		/* never decreases */

	/* as InitLocalBuffers() of localbuf.c has numbered them */
	if (NLocBuffer > 0 && GetLocalBufferDescriptor(NLocBuffer - 1)->buf_id != -NLocBuffer - 1)
		elog(ERROR, "descriptors of local buffers have another size than in PostgreSQL %s", PG_VERSION);
	if (memory.address == NULL || memory.is_segment)
	{
		for (int i = NLocBuffer - 1; i >= used; i--)
		{
			if (was_used(i))
				used = i + 1;
		}
		return used;
	}
#ifdef __linux__
	while (used < NLocBuffer)
	{
		off_t		begin = lseek(memory.id, (off_t) used * BLCKSZ, SEEK_DATA);
		off_t		end;

		if (begin < 0 && errno != ENXIO)
			return NLocBuffer;
		if (begin < 0 || begin >= (off_t) NLocBuffer * BLCKSZ)
			return used;
		end = lseek(memory.id, begin, SEEK_HOLE);
		if (end < 0)
			return NLocBuffer;
		used = Min((end + BLCKSZ - 1) / BLCKSZ, NLocBuffer);
	}
#endif
	return NLocBuffer;
}
