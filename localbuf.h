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

#include "nodes/pg_list.h"
#include "utils/hsearch.h"

#include "share.h"

/* localbuf_family.c */
extern Relation tp_relation_open(Oid relid);
extern List *tp_table_indexes(Oid relid);
extern List *tp_family_open(Oid relid, List *indexes);
extern void tp_family_close(List *family);

/* localbuf_relations.c */
typedef struct TempRelation
{
	RelFileLocator locator;		/* hash key */
	Oid			relid;
	Oid			owner;
	Oid			table;			/* to which an index or a TOAST relation
								 * belongs; otherwise relid */
	Oid			toastrelid;
	char		relkind;
	Oid			relam;
} TempRelation;

extern HTAB *tp_session_temp_relations(void);
extern bool tp_is_heap(Oid relam, char relkind);
extern int	tp_heaps_among(HTAB *relations, RelFileLocator **heaps);
extern int	tp_compare_locators(const void *a, const void *b);

/* localbuf_stats.c */
typedef struct LocalBufCount
{
	RelFileLocator locator;		/* hash key */
	int			allocated;		/* buffers that hold a page of it */
	int			dirtied;		/* those of them that are dirty */
	int			shareable;		/* and in memory that workers can map */
} LocalBufCount;

typedef struct LocalBufStats
{
	int			allocated;		/* local buffers that have been used */
	int			dirtied;		/* local buffers that are dirty */
	int			most_shared;	/* pages that may be shared at once */
	HTAB	   *relations;		/* of LocalBufCount */
} LocalBufStats;

extern LocalBufStats *tp_localbuf_stats_collect(void);
extern LocalBufStats *tp_localbuf_stats_for_price(void);
extern LocalBufCount *tp_localbuf_stats_relation(LocalBufStats *stats,
												 Relation rel);
extern bool tp_local_buffer_is_pinned(int i);

/* flush_cost.c: accounts */
extern void tp_account_add(Relation table, Cost saving, Cost price);
extern void tp_account_close(const RelFileLocator *locator);
extern void tp_account_close_all(void);
extern void tp_account_files_changed(void);
extern void tp_account_close_empty(void);

/* flush_cost.c */
typedef struct FlushCost
{
	int			allocated;		/* buffers in the pool, all relations */
	int			dirtied;		/* pages that the flush would write */
	Cost		cost;			/* of the flush */
	Cost		account;		/* what the tables' accounts pay of it */
	int			shareable;		/* those pages that workers can read in the
								 * leader's memory instead */
	Cost		rent;			/* of that, and of writing the others */
	bool		share;			/* is the rent lower than the cost less the
								 * account? */
	Cost		charge;			/* the lower one of these, with the search */
	Cost		search;			/* what remains of both once all pages are
								 * clean */
} FlushCost;

extern FlushCost tp_flush_cost_of_tables(LocalBufStats *stats, List *relids,
										 List *indexes);
extern void tp_credit_rent(List *relids, List *indexes);
extern void tp_cut_accounts(List *relids);

/* localbuf_hints.c */
typedef struct KnownXid
{
	TransactionId xid;
	uint16		hint;			/* to set in t_infomask, or 0 */
} KnownXid;

typedef struct KnownXids		/* zeroed: nothing is known */
{
	KnownXid	xmin;
	KnownXid	xmax;
} KnownXids;

extern bool tp_heap_takes_hints(Relation rel);
extern void tp_heap_set_hints(Page page, KnownXids *known);

/* localbuf_flush.c */
extern int64 tp_flush_all_local_buffers(void);
extern int64 tp_flush_local_buffers_of(List *relations);
extern int64 tp_flush_without_hints(const RelFileLocator *locators,
									int nlocators);

/* localbuf_read.c */
extern BlockNumber tp_read_into_local_buffers(Relation rel, bool randomize);
extern int64 tp_dirty_local_buffers_of(Relation rel);

/* localbuf_evict.c */
typedef struct LocalBufEviction
{
	int			evicted;		/* pages removed from the pool */
	int			flushed;		/* pages written */
	int			skipped;		/* pages that stay */
} LocalBufEviction;

extern LocalBufEviction tp_evict_local_buffers_of_table(Oid relid);
extern LocalBufEviction tp_evict_owned_local_buffers(void);

#endif							/* LOCALBUF_H */
