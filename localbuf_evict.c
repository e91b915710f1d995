/*-------------------------------------------------------------------------
 *
 * localbuf_evict.c
 *	  Evict the pages of temporary tables from the pool.
 *
 * The lookup table of local buffers is private to core's localbuf.c, so only
 * core can remove a page from the pool; otherwise the table would keep an
 * entry that leads to another page.  In all versions core does so in
 * DropRelationAllLocalBuffers(), which also drops dirty pages, and raises an
 * error for a pinned one.  It skips buffers without BM_TAG_VALID, so that flag
 * is cleared in buffers that must stay, for the duration of the call; they
 * keep their tags and their entries.
 *
 * The invariant: a page that is dropped is clean and unpinned; the relations'
 * other pages are hidden from core while it drops, and visible again on every
 * exit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/acl.h"

#include "localbuf.h"

/* May the page in buffer i of the pool be dropped? */
static bool
may_be_dropped(int i)
{
	BufferState state = LocalBufferStateRead(GetLocalBufferDescriptor(i));

	return (state & BM_DIRTY) == 0 && !tp_local_buffer_is_pinned(i);
}

/* Hide a buffer from core's loops over the pool, or show it again. */
static void
set_tag_valid(int i, bool valid)
{
	BufferDesc *buf = GetLocalBufferDescriptor(i);
	BufferState state = LocalBufferStateRead(buf);

	if (valid)
		state |= BM_TAG_VALID;
	else
		state &= ~((BufferState) BM_TAG_VALID);
	LocalBufferStateWrite(buf, state);
}

/*
 * Drop the clean and unpinned pages of the nlocators relations in locators,
 * which are in ascending order.  Adds the numbers of these, and of the pages
 * that stay, to *result.  Hides the latter from DropRelationAllLocalBuffers()
 * of localbuf.c.
 */
static void
drop_clean_pages(const RelFileLocator *locators, int nlocators,
				 LocalBufEviction *result)
{
	int		   *keep;
	volatile int nkeep = 0;

	if (NLocBuffer == 0)
		return;

	keep = palloc_extended((Size) NLocBuffer * sizeof(int), MCXT_ALLOC_HUGE);
	for (int i = tp_used_buffers() - 1; i >= 0; i--)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		RelFileLocator locator;

		if ((LocalBufferStateRead(buf) & BM_TAG_VALID) == 0)
			continue;
		locator = BufTagGetRelFileLocator(&buf->tag);
		if (bsearch(&locator, locators, nlocators, sizeof(RelFileLocator),
					tp_compare_locators) == NULL)
			continue;
		if (may_be_dropped(i))
			result->evicted++;
		else
			keep[nkeep++] = i;
	}
	result->skipped += nkeep;

	/* nothing else accesses the pool here, and there are no interrupts */
	PG_TRY();
	{
		for (int i = 0; i < nkeep; i++)
			set_tag_valid(keep[i], false);
		for (int i = 0; i < nlocators; i++)
			DropRelationAllLocalBuffers(locators[i]);
	}
	PG_FINALLY();
	{
		for (int i = 0; i < nkeep; i++)
			set_tag_valid(keep[i], true);
	}
	PG_END_TRY();
	pfree(keep);
}

/*
 * Write the dirty pages of nlocators relations, without setting hints, and
 * evict all of their pages that are not pinned from the pool.  Sorts the
 * locators.  Raises the storage manager's errors, and can be canceled.
 */
static LocalBufEviction
evict_local_buffers(RelFileLocator *locators, int nlocators)
{
	LocalBufEviction result = {0};

	qsort(locators, nlocators, sizeof(RelFileLocator), tp_compare_locators);
	result.flushed = tp_flush_without_hints(locators, nlocators);
	drop_clean_pages(locators, nlocators, &result);
	return result;
}

/*
 * The same for table relid, which is locked, and its whole family.
 */
LocalBufEviction
tp_evict_local_buffers_of_table(Oid relid)
{
	List	   *family = tp_family_open(relid, tp_table_indexes(relid));
	RelFileLocator *locators = palloc(list_length(family) *
									  sizeof(RelFileLocator));
	int			n = 0;
	ListCell   *lc;
	LocalBufEviction result;

	foreach(lc, family)
		locators[n++] = RelationFileLocator((Relation) lfirst(lc));
	result = evict_local_buffers(locators, n);
	pfree(locators);
	tp_family_close(family);
	tp_cut_accounts(list_make1_oid(relid));
	return result;
}

/*
 * The same for all temporary relations that the caller owns.  Pages of other
 * relations stay, and are counted as skipped.
 */
LocalBufEviction
tp_evict_owned_local_buffers(void)
{
	LocalBufStats *stats = tp_localbuf_stats_collect();
	HTAB	   *relations = tp_session_temp_relations();
	RelFileLocator *locators;
	int			n = 0;
	int			others = 0;
	LocalBufEviction result;
	HASH_SEQ_STATUS seq;
	LocalBufCount *count;

	locators = palloc((hash_get_num_entries(stats->relations) + 1) *
					  sizeof(RelFileLocator));
	hash_seq_init(&seq, stats->relations);
	while ((count = hash_seq_search(&seq)) != NULL)
	{
		TempRelation *relation = hash_search(relations, &count->locator,
											 HASH_FIND, NULL);

		if (relation != NULL && has_privs_of_role(GetUserId(), relation->owner))
			locators[n++] = count->locator;
		else
			others += count->allocated;
	}
	result = evict_local_buffers(locators, n);
	for (int i = 0; i < n; i++)
		tp_account_close(&locators[i]);
	result.skipped += others;
	return result;
}
