/*-------------------------------------------------------------------------
 *
 * exec_share.c
 *	  Pages that workers read in the leader's memory, in the leader.
 *
 * Instead of writing a dirty page whose memory is shared (localbuf_share.c), the
 * flush node lists it, for workers to use it as a local buffer of their own
 * (exec_worker_share.c).  A page that is listed stays pinned until the workers
 * have exited, so that its buffer is neither evicted nor used for another page.
 * In the read-only phase nobody changes it, except for hints, which processes
 * set concurrently as they do in shared buffers.
 *
 * The pins belong to the resource owner of the (sub)transaction.  After an error
 * that one releases them, when core has ended the workers: AbortTransaction()
 * and AbortSubTransaction() of xact.c call AtEOXact_Parallel() first.
 *
 * A function that the leader calls meanwhile may run a statement with workers of its
 * own.  They get the pages that are listed already, too, which must not be written.
 *
 * The invariants: a page is listed for running workers only while it is pinned; at a
 * launch, every dirty page of what the workers may read is listed or written.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "commands/defrem.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"

#include "exec.h"

/* of the innermost run of the executor in a read-only phase, or NULL */
static SharedPages *current = NULL;

/* A relation whose pages may be listed. */
typedef struct SharedRelation
{
	RelFileLocator locator;
	Oid			relid;
} SharedRelation;

/* ----------
 * Before temporary tables are written
 * ----------
 */

/* Is relation, as named in a statement, a temporary table that exists? */
static bool
is_temporary(RangeVar *relation)
{
	Oid			relid = RangeVarGetRelid(relation, NoLock, true);

	return OidIsValid(relid) &&
		get_rel_persistence(relid) == RELPERSISTENCE_TEMP;
}

/*
 * If stmt writes a temporary table, have the pool's memory shared.  Its tables
 * are locked.
 */
void
tp_share_before_statement(PlannedStmt *stmt)
{
	ListCell   *lc;

	if (!tp_pool_may_be_shared() ||
		(stmt->commandType == CMD_SELECT && !stmt->hasModifyingCTE))
		return;
	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if (rte->rtekind == RTE_RELATION &&
			rte->rellockmode == RowExclusiveLock &&
			get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP)
		{
			tp_share_pool();
			return;
		}
	}
}

/* The utility statement that EXPLAIN ANALYZE would run, or NULL. */
static Node *
explained_statement(ExplainStmt *explain)
{
	ListCell   *lc;

	foreach(lc, explain->options)
	{
		DefElem    *option = lfirst(lc);

		if (strcmp(option->defname, "analyze") == 0 && defGetBoolean(option))
			return castNode(Query, explain->query)->utilityStmt;
	}
	return NULL;
}

/* The same for a utility statement that fills tables. */
void
tp_share_before_utility(Node *statement)
{
	if (!tp_pool_may_be_shared())
		return;
	if (IsA(statement, ExplainStmt))
		statement = explained_statement((ExplainStmt *) statement);
	if (statement == NULL)
		return;
	if (IsA(statement, CreateTableAsStmt))
	{
		RangeVar   *table = ((CreateTableAsStmt *) statement)->into->rel;

		/* pg_temp.t is marked as temporary only when it is created */
		if (table->relpersistence == RELPERSISTENCE_TEMP ||
			(table->schemaname != NULL && strcmp(table->schemaname, "pg_temp") == 0))
			tp_share_pool();
	}
	else if (IsA(statement, CopyStmt))
	{
		CopyStmt   *copy = (CopyStmt *) statement;

		if (copy->is_from && copy->relation != NULL &&
			is_temporary(copy->relation))
			tp_share_pool();
	}
}

/* ----------
 * While workers read
 * ----------
 */

/*
 * Begin to share pages, in a read-only phase in which the plan of root is run.
 * *pages must stay in place until tp_share_end() or tp_share_abandon(), one of
 * which the caller has to call on every exit that does not end the process.
 * What pages needs is allocated in context.  Raises nothing.
 */
void
tp_share_begin(SharedPages *pages, PlanState *root, MemoryContext context)
{
	memset(pages, 0, sizeof(SharedPages));
	pages->outer = current;
	pages->root = root;
	pages->context = context;
	pages->owner = CurTransactionResourceOwner;
	current = pages;
}

/* End it when all workers have exited: the pages are unpinned. */
void
tp_share_end(SharedPages *pages)
{
	ResourceOwner old = CurrentResourceOwner;

	Assert(current == pages);
	current = pages->outer;
	CurrentResourceOwner = pages->owner;
	for (int i = pages->npinned - 1; i >= 0; i--)
	{
		tp_set_listed(pages->pinned[i], false);
		ReleaseBuffer(-pages->pinned[i] - 1);
	}
	CurrentResourceOwner = old;
}

/*
 * End it after an error.  The resource owner unpins the pages; nothing is written
 * before that.  Raises nothing.
 */
void
tp_share_abandon(SharedPages *pages)
{
	Assert(current == pages);
	current = pages->outer;
	for (int i = 0; i < pages->npinned; i++)
		tp_set_listed(pages->pinned[i], false);
}

/* Pin buffer i until the end of pages, and list it. */
static void
pin_page(SharedPages *pages, int i)
{
	ResourceOwner old = CurrentResourceOwner;

	if (pages->pinned == NULL)
		pages->pinned = MemoryContextAllocExtended(pages->context,
												   (Size) NLocBuffer * sizeof(int),
												   MCXT_ALLOC_HUGE);
	CurrentResourceOwner = pages->owner;
	pin_local_buffer(i);
	CurrentResourceOwner = old;
	pages->pinned[pages->npinned++] = i;
	tp_set_listed(i, true);
}

static int
compare_relations(const void *a, const void *b)
{
	return tp_compare_locators(&((const SharedRelation *) a)->locator,
							   &((const SharedRelation *) b)->locator);
}

/* An array of relations, a List of Relation, in the order of their files. */
static SharedRelation *
sorted_relations(List *relations)
{
	SharedRelation *result = palloc(list_length(relations) *
									sizeof(SharedRelation));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, relations)
	{
		Relation	rel = lfirst(lc);

		result[n].locator = RelationFileLocator(rel);
		result[n++].relid = RelationGetRelid(rel);
	}
	qsort(result, n, sizeof(SharedRelation), compare_relations);
	return result;
}

/*
 * How many more buffers may be pinned, so that enough of the pool is left for the
 * leader, which runs the statement, too: what its plan may have pinned at once, and at
 * least what tp_most_shared_pages() leaves?
 */
static int
pins_left(PlanState *root)
{
	PlannedStmt *stmt = root->state->es_plannedstmt;
	Bitmapset  *subplans = NULL;
	int			left;

	for (int id = 1; id <= list_length(stmt->subplans); id++)
	{
		if (list_nth(stmt->subplans, id - 1) != NULL)
			subplans = bms_add_member(subplans, id);
	}
	left = Min(tp_most_shared_pages(tp_runs_user_code(stmt)),
			   tp_most_pins() - tp_plan_pins(root->plan, subplans, stmt));
	bms_free(subplans);
	for (int i = tp_used_buffers() - 1; i >= 0; i--)
		left -= tp_local_buffer_is_pinned(i);
	return Max(left, 0);
}

/*
 * List dirty pages of relations, a List of Relation, in shared, which has room for
 * shared->capacity of them: those that are listed already for workers that run, and
 * at most limit others, which stay pinned until the end of sharing.  What is not
 * listed has to be written.  Raises an internal error if there is not enough room.
 */
void
tp_share_pages(FlushShared *shared, List *relations, int limit)
{
	int			nrelations = list_length(relations);
	SharedRelation *sorted;
	SharedRelation *found = NULL;
	int			used = tp_used_buffers();

	shared->npages = 0;
	if (shared->capacity == 0 || current == NULL)
		return;

	sorted = sorted_relations(relations);
	if (limit > 0)
		limit = Min(limit, pins_left(current->root));
	shared->memory = tp_shared_memory();
	for (int i = 0; i < used; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		BufferState state = LocalBufferStateRead(buf);
		SharedRelation key;
		SharedPage *page;

		if ((state & BM_DIRTY) == 0 || (state & BM_VALID) == 0 ||
			!tp_buffer_is_shared(i) || (limit == 0 && !tp_is_listed(i)))
			continue;
		/* neighbors mostly hold pages of the same relation */
		key.locator = BufTagGetRelFileLocator(&buf->tag);
		if (found == NULL || compare_relations(found, &key) != 0)
			found = bsearch(&key, sorted, nrelations, sizeof(SharedRelation),
							compare_relations);
		if (found == NULL)
			continue;

		if (shared->npages == shared->capacity)
			elog(ERROR, "no room to list block %u of a temporary table, which workers are reading",
				 buf->tag.blockNum);
		if (!tp_is_listed(i))
		{
			pin_page(current, i);
			limit--;
		}
		page = &shared->pages[shared->npages++];
		page->relid = found->relid;
		page->fork = BufTagGetForkNum(&buf->tag);
		page->block = buf->tag.blockNum;
		page->buffer = i;
	}
	pfree(sorted);
}
