/*-------------------------------------------------------------------------
 *
 * share.h
 *	  Dirty pages that parallel workers read in the leader's memory: the memory
 *	  (localbuf_share.c), the leader (exec_share.c) and a worker (exec_worker.c).
 *
 * A buffer is shared if its memory is in the file that workers can map, and listed
 * while workers that run have been told to read its page there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SHARE_H
#define SHARE_H

#include <sys/types.h>

#include "nodes/plannodes.h"
#include "utils/hsearch.h"

#include "temp_parallel.h"

typedef struct SharedMemory
{
	pid_t		leader;			/* process that has the file open */
	int			fd;				/* by this descriptor */
	ino_t		inode;			/* of the file */
	Size		size;			/* of the pool and the page behind it */
	char	   *address;		/* in the leader; NULL: there is no such
								 * memory */
} SharedMemory;

typedef struct SharedPage		/* a dirty page of the leader's */
{
	Oid			relid;
	ForkNumber	fork;
	BlockNumber block;
	int			buffer;			/* its number in the leader's pool */
} SharedPage;

typedef struct FlushShared		/* in dynamic shared memory; filled by the
								 * leader before each launch */
{
	int64		tuples_needed;	/* of the Gather, see ExecSetTupleBound() */
	SharedMemory memory;		/* where the pages are; only if there are any */
	bool		failed;			/* set by a worker that could not map it */
	bool		pool_used;		/* may temp_buffers no longer be set? */
	int			capacity;		/* of pages */
	int			npages;
	SharedPage	pages[FLEXIBLE_ARRAY_MEMBER];
} FlushShared;

/* key of FlushShared in the parallel query's table of contents */
#define FLUSH_SHARED_KEY	UINT64CONST(0x7E3B000000000001)

/* localbuf_share.c */
extern bool tp_pool_is_to_be_shared(void);
extern void tp_share_pool(void);
extern bool tp_temp_buffers_may_be_set(void);
extern void tp_stop_sharing(const char *reason);
extern bool tp_sharing(void);
extern const char *tp_sharing_failure(void);
extern int	tp_used_buffers(void);
extern bool tp_buffer_was_used(int i);
extern bool tp_buffer_is_shared(int i);
extern const SharedMemory *tp_shared_memory(void);
extern int	tp_most_pins(void);
extern int	tp_most_shared_pages(bool user_code);
extern int	tp_list_buffers(FlushShared *shared, int limit, int *dirty,
							int ndirty, HTAB *relations);
extern void tp_unlist_buffers(int first, bool unpin);
extern bool tp_is_listed(int i);
extern int	tp_listed_buffers(void);

/* exec_share.c */
extern void tp_share_before(Node *statement);
extern bool tp_workers_can_map(void);

/* exec_worker.c */
extern PGDLLEXPORT void tp_map_leader_main(Datum arg);

#endif							/* SHARE_H */
