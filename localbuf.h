/*-------------------------------------------------------------------------
 *
 * localbuf.h
 *	  The pool, which is all local buffers of this session: counting their
 *	  pages by relation, and costing, writing, reading and evicting them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LOCALBUF_H
#define LOCALBUF_H

#include <sys/types.h>

#include "nodes/pg_list.h"
#include "utils/hsearch.h"

#include "temp_parallel.h"

/* localbuf_relations.c */
typedef struct TempRelation		/* in a hash table; what is not known is 0 */
{
	RelFileLocator locator;		/* hash key */
	Oid			relid;
	Oid			owner;
	Oid			table;			/* to which an index or a TOAST relation
								 * belongs; otherwise relid */
	bool		takes_hints;	/* may hints be set in its main fork? */
	bool		left_alone;		/* when its table is flushed */
	int			allocated;		/* buffers that hold a page of it */
	int			dirtied;		/* those of them that are dirty */
	int			shareable;		/* and in memory that workers can map */
} TempRelation;

extern Relation tp_relation_open(Oid relid);
extern List *tp_table_indexes(Oid relid);
extern List *tp_family(Oid relid, List *indexes);
extern HTAB *tp_make_relations(void);
extern TempRelation *tp_enter_relation(HTAB *relations, RelFileLocator locator);
extern void tp_enter_family(HTAB *relations, Oid relid, List *indexes);
extern HTAB *tp_session_temp_relations(List *indexes);

/*
 * The entry of relations with the relation of the page in buffer i, or NULL.  last is
 * the result for another buffer, or NULL: neighbors mostly hold pages of the same
 * relation.  Inline, as it is most of a walk over the pool.
 */
static inline TempRelation *
tp_relation_of_buffer(HTAB *relations, int i, TempRelation *last)
{
	RelFileLocator locator = BufTagGetRelFileLocator(&GetLocalBufferDescriptor(i)->tag);

	if (last != NULL && memcmp(&locator, &last->locator, sizeof(locator)) == 0)
		return last;
	return hash_search(relations, &locator, HASH_FIND, NULL);
}

/* localbuf_stats.c */
typedef struct LocalBufStats
{
	int			allocated;		/* local buffers that have been used */
	int			most_shared;	/* pages that may be shared at once */
	HTAB	   *relations;		/* of TempRelation, with counts */
} LocalBufStats;

extern int	tp_find_buffers(HTAB *relations, bool dirty, int **buffers);
extern LocalBufStats *tp_localbuf_stats_collect(void);
extern LocalBufStats *tp_localbuf_stats_for_cost(bool user_code);
extern bool tp_local_buffer_is_pinned(int i);

/* localbuf_share.c */
/*
 * A buffer is shared if its memory is in the file or segment that workers can map, and listed
 * while workers that run have been told to read its page there.
 */
typedef struct SharedMemory
{
	pid_t		leader;			/* process that has made it */
	bool		is_segment;		/* System V, or a file */
	int			id;				/* of the segment; the leader's descriptor of
								 * the file */
	ino_t		inode;			/* of the file */
	Size		size;			/* of the pool */
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
	int			pool;			/* the leader's local buffers */
	SharedMemory memory;		/* where the pages are; only if there are any,
								 * or if try_map is set */
	bool		try_map;		/* is it not known if workers can map it? */
	bool		leader_runs;	/* does the leader run the plan, too? */
	bool		mapped;			/* set by a worker that has mapped it, */
	bool		failed;			/* or could not */
	int			capacity;		/* of pages */
	int			npages;
	SharedPage	pages[FLEXIBLE_ARRAY_MEMBER];
} FlushShared;

extern void tp_share_before(Node *statement);
extern bool tp_sharing(void);
extern const char *tp_sharing_failure(void);
extern char *tp_map_leader(const SharedMemory *memory);
extern void tp_note_mapping(const FlushShared *shared);
extern bool tp_workers_can_map(void);
extern int	tp_used_buffers(void);
extern int	tp_pool_size(void);
extern bool tp_buffer_is_shared(int i);
extern int	tp_most_pins(void);
extern int	tp_most_shared_pages(bool user_code);
extern int	tp_list_buffers(FlushShared *shared, int limit, int *dirty,
							int ndirty, HTAB *relations);
extern void tp_unlist_buffers(int first, bool unpin);
extern bool tp_is_listed(int i);
extern int	tp_listed_buffers(void);

/* flush_cost.c: accounts */
extern void tp_account_add(Oid table, Cost saving, Cost most);
extern void tp_account_close(Oid table);
extern void tp_account_close_all(void);

/* flush_cost.c */
typedef struct FlushCost
{
	Cost		search;			/* of the pool, besides all others */
	Cost		cost;			/* of writing the pages */
	Cost		account;		/* what the tables' accounts pay of it */
	Cost		share_cost;		/* of reading pages in the leader's memory,
								 * and of writing the others */
	Cost		charge;			/* that, or the cost less the account */
	int			allocated;		/* buffers in the pool, all relations */
	int			dirtied;		/* pages that the flush would write */
	int			shareable;		/* those pages that workers can read in the
								 * leader's memory instead */
	int			share;			/* is the share cost lower than the cost less
								 * the account?  (An int leaves no padding.) */
} FlushCost;

extern FlushCost tp_flush_cost_of_tables(LocalBufStats *stats, List *relids,
										 List *indexes);
extern FlushCost tp_flush_estimate(List *relids, List *indexes, bool user_code);
extern void tp_settle_accounts(List *relids, LocalBufStats *left);

/* localbuf_flush.c */
extern void tp_write_buffers(int *dirty, int ndirty, HTAB *relations);
extern int64 tp_flush_all_local_buffers(void);
extern int64 tp_flush_tables(List *relids, List *indexes, FlushShared *shared,
							 int limit, int most_pinned);

/* localbuf_evict.c */
typedef struct LocalBufEviction
{
	int			evicted;		/* pages removed from the pool */
	int			flushed;		/* pages written */
	int			skipped;		/* pages that stay */
} LocalBufEviction;

extern LocalBufEviction tp_evict_local_buffers_of_table(Oid relid);
extern LocalBufEviction tp_evict_owned_local_buffers(void);
extern BlockNumber tp_read_into_local_buffers(Relation rel, bool randomize);
extern int64 tp_dirty_local_buffers_of(Relation rel);

#endif							/* LOCALBUF_H */
