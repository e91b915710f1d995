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

#include <dlfcn.h>

#include "catalog/namespace.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"

#include "exec.h"

/* of the innermost run of the executor in a read-only phase, or NULL */
static Sharing *current = NULL;

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

/* Does stmt, whose tables are locked, write a temporary table? */
static bool
writes_temp_table(PlannedStmt *stmt)
{
	ListCell   *lc;

	if ((stmt->commandType == CMD_SELECT && !stmt->hasModifyingCTE) ||
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

/* Is relation, as named in a statement, a temporary table that exists? */
static bool
is_temp_table(RangeVar *relation)
{
	Oid			relid = RangeVarGetRelid(relation, NoLock, true);

	return OidIsValid(relid) &&
		get_rel_persistence(relid) == RELPERSISTENCE_TEMP;
}

/*
 * Have the pool's memory shared if statement, a PlannedStmt or a utility statement, may
 * fill a temporary table.
 */
void
tp_share_before(Node *statement)
{
	bool		fills = false;

	if (!tp_pool_is_to_be_shared())
		return;
	if (IsA(statement, ExplainStmt))
		statement = castNode(Query, ((ExplainStmt *) statement)->query)->utilityStmt;
	if (statement == NULL)
		return;
	if (IsA(statement, CreateTableAsStmt))
	{
		RangeVar   *table = ((CreateTableAsStmt *) statement)->into->rel;

		/* pg_temp.t is marked as temporary only when it is created */
		fills = table->relpersistence == RELPERSISTENCE_TEMP ||
			(table->schemaname != NULL && strcmp(table->schemaname, "pg_temp") == 0);
	}
	else if (IsA(statement, CopyStmt))
		fills = ((CopyStmt *) statement)->is_from &&
			((CopyStmt *) statement)->relation != NULL &&
			tp_session_has_temp_tables() &&
			is_temp_table(((CopyStmt *) statement)->relation);
	else if (IsA(statement, PlannedStmt))
		fills = writes_temp_table((PlannedStmt *) statement);
	if (fills)
		tp_share_pool();
}

/* ----------
 * Before pages are listed for the first time
 * ----------
 */

/* Set the path of this library in worker.  Returns false if it is too long. */
static bool
set_library(BackgroundWorker *worker)
{
	Dl_info		info;
	size_t		length = strlen(pkglib_path);
	size_t		size = sizeof(worker->bgw_library_name);

	if (dladdr(tp_map_leader_main, &info) == 0)
		return false;
	if (strncmp(info.dli_fname, pkglib_path, length) == 0)
		return snprintf(worker->bgw_library_name, size, "$libdir%s",
						info.dli_fname + length) < size;
	return strlcpy(worker->bgw_library_name, info.dli_fname, size) < size;
}

/*
 * Can another process of the server map this one's memory?  Security modules and
 * limits of processes decide, so one tries, which is started for that, once in a session,
 * and changes the page behind the pool.  Returns false, too, if no process can be
 * started now.  Can be canceled.  Only if tp_sharing().
 */
bool
tp_workers_can_map(void)
{
	static bool known = false;
	const SharedMemory *memory = tp_shared_memory();
	BackgroundWorker worker = {
		.bgw_name = "temp_parallel: look at a session's local buffers",
		.bgw_type = "temp_parallel",
		.bgw_flags = BGWORKER_SHMEM_ACCESS,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_function_name = "tp_map_leader_main",
	};
	BackgroundWorkerHandle *handle;

	StaticAssertStmt(sizeof(*memory) <= sizeof(worker.bgw_extra),
					 "SharedMemory does not fit");
	if (known)
		return true;
	memcpy(worker.bgw_extra, memory, sizeof(*memory));
	worker.bgw_notify_pid = MyProcPid;
	if (!set_library(&worker))
	{
		tp_stop_sharing("the path of the library temp_parallel is too long");
		return false;
	}
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		return false;
	(void) WaitForBackgroundWorkerShutdown(handle);
	pfree(handle);
	known = memory->address[memory->size - 1] != 0;
	if (!known)
		tp_stop_sharing("other processes cannot map this one's memory");
	return known;
}

/* ----------
 * While workers read
 * ----------
 */

/*
 * Begin to share pages, in a read-only phase.  *sharing must stay in place until
 * tp_share_end(), which the caller has to call on every exit that does not end the
 * process.  Raises nothing.
 */
void
tp_share_begin(Sharing *sharing)
{
	sharing->outer = current;
	sharing->owner = CurTransactionResourceOwner;
	sharing->first = tp_listed_buffers();
	current = sharing;
}

/*
 * End it.  If it has not failed, all workers have exited, and the pages are unpinned.
 * After an error the resource owner does that; nothing is written before.
 * Raises nothing then.
 */
void
tp_share_end(Sharing *sharing, bool failed)
{
	ResourceOwner old = CurrentResourceOwner;

	Assert(current == sharing);
	current = sharing->outer;
	CurrentResourceOwner = sharing->owner;
	tp_unlist_buffers(sharing->first, !failed);
	CurrentResourceOwner = old;
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
 * leader, which runs plan's statement, too: what that may have pinned at once, and at
 * least what tp_most_shared_pages() leaves?
 */
static int
pins_left(const FlushPlan *plan)
{
	int			left = Min(tp_most_shared_pages(plan->any_user_code),
						   tp_most_pins() - plan->leader_pins);

	for (int i = tp_used_buffers() - 1; i >= 0; i--)
		left -= tp_local_buffer_is_pinned(i);
	return Max(left, 0);
}

/*
 * List dirty pages of relations, a List of Relation, in shared, which has room for
 * shared->capacity of them: those that are listed already for workers that run, and
 * at most limit others, which stay pinned until the end of sharing.  plan is that of
 * the flush node.  What is not listed has to be written.  Raises an internal error if
 * there is not enough room.
 */
void
tp_share_pages(FlushShared *shared, List *relations, int limit,
			   const FlushPlan *plan)
{
	int			nrelations = list_length(relations);
	SharedRelation *sorted;
	SharedRelation *found = NULL;
	int			used = tp_used_buffers();
	ResourceOwner old = CurrentResourceOwner;

	shared->npages = 0;
	if (shared->capacity == 0 || current == NULL)
		return;

	sorted = sorted_relations(relations);
	if (limit > 0)
		limit = Min(limit, pins_left(plan));
	shared->memory = *tp_shared_memory();
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
			CurrentResourceOwner = current->owner;
			tp_list_buffer(i);
			CurrentResourceOwner = old;
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
