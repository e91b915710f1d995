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

/* localbuf_relations.c */
typedef struct TempRelation		/* in a hash table; what is not known is 0 */
{
	RelFileLocator locator;		/* hash key */
	Oid			relid;
	Oid			owner;
	Oid			table;			/* to which an index or a TOAST relation
								 * belongs; otherwise relid */
	Oid			toastrelid;
	char		relkind;
	bool		takes_hints;	/* may hints be set in its main fork? */
	bool		left_alone;		/* when its table is flushed */
	int			allocated;		/* buffers that hold a page of it */
	int			dirtied;		/* those of them that are dirty */
	int			shareable;		/* and in memory that workers can map */
} TempRelation;

extern Relation tp_relation_open(Oid relid);
extern List *tp_table_indexes(Oid relid);
extern List *tp_family_open(Oid relid, List *indexes);
extern void tp_family_close(List *family);
extern HTAB *tp_make_relations(void);
extern TempRelation *tp_enter_relation(HTAB *relations, RelFileLocator locator);
extern TempRelation *tp_relation_of_buffer(HTAB *relations, int i,
										   TempRelation *last);
extern HTAB *tp_session_temp_relations(void);
extern bool tp_is_heap(Oid relam, char relkind);
extern int	tp_find_buffers(HTAB *relations, bool dirty, int **buffers);

/* localbuf_stats.c */
typedef struct LocalBufStats
{
	int			allocated;		/* local buffers that have been used */
	int			dirtied;		/* local buffers that are dirty */
	int			most_shared;	/* pages that may be shared at once */
	HTAB	   *relations;		/* of TempRelation, with counts */
} LocalBufStats;

extern LocalBufStats *tp_localbuf_stats_collect(void);
extern LocalBufStats *tp_localbuf_stats_for_price(void);
extern bool tp_local_buffer_is_pinned(int i);

/* localbuf_account.c */
extern Cost tp_account_balance(Relation table, Cost price);
extern void tp_account_add(Relation table, Cost saving, Cost price);
extern void tp_account_cut(Relation table, Cost price);
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
