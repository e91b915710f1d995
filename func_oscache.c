/*-------------------------------------------------------------------------
 *
 * func_oscache.c
 *	  SQL function that evicts a temporary table from the operating system's
 *	  page cache.
 *
 * For measuring cold reads.  It does to each file what
 *		dd oflag=nocache conv=notrunc,fdatasync count=0 of=FILE
 * does: the kernel is asked to write what it has cached of the file, and
 * advised that this is not needed any more.
 *
 * Reads need not be cold afterwards: the kernel may ignore the advice and keep
 * pages, a file system in memory (tmpfs) has no other place for them, and some
 * file systems and all storage devices have caches of their own.  Where the
 * kernel reports what is still cached, that is returned.
 *
 * The invariant: the contents of the files do not change, so no page can be
 * lost here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "func.h"

PG_FUNCTION_INFO_V1(pg_temp_os_cache_evict);

typedef struct OsCacheEviction
{
	int64		pages;			/* blocks in the files */
	int64		still_cached;	/* of these, as the kernel reports */
	bool		known;			/* did it report that for all files? */
} OsCacheEviction;

#ifdef POSIX_FADV_DONTNEED

/*
 * The number of blocks of file fd, size bytes long, that the kernel has in
 * memory; -1 if it does not report that.
 */
static int64
blocks_in_memory(int fd, off_t size)
{
#ifdef __linux__
	Size		page_size = (Size) sysconf(_SC_PAGESIZE);
	Size		npages = ((Size) size + page_size - 1) / page_size;
	unsigned char *resident;
	void	   *map;
	int64		count = 0;

	resident = palloc_extended(npages, MCXT_ALLOC_HUGE);
	map = mmap(NULL, (size_t) size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -1;
	if (mincore(map, (size_t) size, resident) != 0)
		count = -1;
	munmap(map, (size_t) size);

	if (count == 0)
	{
		for (Size i = 0; i < npages; i++)
			count += resident[i] & 1;
		count = (count * (int64) page_size + BLCKSZ - 1) / BLCKSZ;
	}
	pfree(resident);
	return count;
#else
	return -1;
#endif
}

/*
 * Evict the file named path, and add its blocks to *result.  Returns false if
 * there is no such file.
 */
static bool
evict_file(const char *path, OsCacheEviction *result)
{
	int			fd = OpenTransientFile(path, O_RDWR | PG_BINARY);
	struct stat st;
	int64		still_cached;
	int			error;

	if (fd < 0)
	{
		if (errno == ENOENT)
			return false;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", path)));
	}
	/* not pg_fdatasync(), which does nothing when fsync is off */
	if (fstat(fd, &st) != 0 || fdatasync(fd) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not synchronize file \"%s\": %m", path)));
	error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (error != 0)
	{
		errno = error;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not evict file \"%s\" from the operating system's cache: %m",
						path)));
	}

	result->pages += st.st_size / BLCKSZ;
	still_cached = st.st_size == 0 ? 0 : blocks_in_memory(fd, st.st_size);
	if (still_cached < 0)
		result->known = false;
	else
		result->still_cached += still_cached;
	CloseTransientFile(fd);
	return true;
}

/*
 * Evict all files of rel: every segment of every fork, with the names that
 * _mdfd_segpath() of md.c gives them.
 */
static void
evict_files_of_relation(Relation rel, OsCacheEviction *result)
{
	for (ForkNumber fork = MAIN_FORKNUM; fork <= MAX_FORKNUM; fork++)
	{
		char	   *path = temp_relation_path(RelationFileLocator(rel), fork);

		for (int segment = 0;; segment++)
		{
			CHECK_FOR_INTERRUPTS();
			if (!evict_file(segment == 0 ? path :
							psprintf("%s.%d", path, segment), result))
				break;
		}
	}
}

#else

static void
evict_files_of_relation(Relation rel, OsCacheEviction *result)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("evicting files from the operating system's cache is not supported on this platform"),
			 errdetail("This platform has no posix_fadvise().")));
}

#endif

/*
 * pg_temp_os_cache_evict(relation regclass) returns record
 *
 * Evict a temporary table, its indexes and its TOAST table from the pool, and
 * their files from the operating system's cache.  Returns the number of pages
 * in the files, and how many of them the kernel reports as still cached.
 */
Datum
pg_temp_os_cache_evict(PG_FUNCTION_ARGS)
{
	Oid			relid;
	List	   *family;
	ListCell   *lc;
	TupleDesc	tupdesc;
	OsCacheEviction result = {.known = true};
	Datum		values[2];
	bool		nulls[2] = {0};

	tp_refuse_while_workers_read("pg_temp_os_cache_evict()");
	relid = tp_temp_table_argument(fcinfo, 0, MUST_OWN_TABLE);
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	(void) tp_evict_local_buffers_of_table(relid);
	family = tp_family_open(relid, tp_table_indexes(relid));
	foreach(lc, family)
		evict_files_of_relation((Relation) lfirst(lc), &result);
	tp_family_close(family);

	values[0] = Int64GetDatum(result.pages);
	values[1] = Int64GetDatum(result.still_cached);
	nulls[1] = !result.known;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
