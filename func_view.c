/*-------------------------------------------------------------------------
 *
 * func_view.c
 *	  SQL functions that show the session's local buffers.
 *
 * Like contrib/pg_buffercache, for the pool of the calling session.  Each
 * function makes one walk over the descriptors; no buffer is pinned, locked or
 * changed, so that it shows the pool as the walk finds it.
 *
 * That extension shows nothing to PUBLIC, since all sessions share the
 * buffers.  Local buffers belong to the session, so every role may count them,
 * also by relation, as the server's statistics do.  Single pages are shown to
 * roles that may read them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "common/relpath.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "func.h"

PG_FUNCTION_INFO_V1(pg_local_buffers_pages);
PG_FUNCTION_INFO_V1(pg_local_buffers_summary);
PG_FUNCTION_INFO_V1(pg_local_buffers_relations);

/* A fork of a relation, and its pages in the pool. */
typedef struct ForkKey
{
	RelFileLocator locator;
	ForkNumber	fork;
} ForkKey;

typedef struct ForkCount
{
	ForkKey		key;			/* hash key */
	int			allocated;
	int			dirty;
	int			pinned;
} ForkCount;

/* Does a buffer with this state hold a page? */
static bool
holds_page(BufferState state)
{
	return (state & BM_VALID) != 0 && (state & BM_TAG_VALID) != 0;
}

/*
 * May the caller see which pages of the relation are in the pool?  These are
 * recently used pages; for an index, they may reveal which keys were looked up.
 * Roles that may read the table may see them, and so may those to which
 * pg_buffercache shows all tables.
 */
static bool
may_see_pages(const RelFileLocator *locator, HTAB *relations)
{
	TempRelation *relation;

	if (has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		return true;
	relation = hash_search(relations, locator, HASH_FIND, NULL);
	return relation != NULL &&
		pg_class_aclcheck(relation->table, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/*
 * pg_local_buffers_pages() returns setof record
 *
 * One row per buffer of the pool.  For a buffer that holds no page, only its
 * number; for a page that the caller may not see, nothing that identifies the
 * page.  No row before the session's first use of a temporary table.
 * As pg_buffercache_pages() of contrib's pg_buffercache_pages.c.
 */
Datum
pg_local_buffers_pages(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HTAB	   *relations;
	RelFileLocator last = {0};
	bool		visible = false;

	tp_refuse_in_worker();
	InitMaterializedSRF(fcinfo, 0);

	relations = tp_session_temp_relations();
	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		BufferState state = LocalBufferStateRead(buf);
		Datum		values[9] = {0};
		bool		nulls[9];

		CHECK_FOR_INTERRUPTS();

		memset(nulls, true, sizeof(nulls));
		values[0] = Int32GetDatum(i + 1);
		nulls[0] = false;
		if (holds_page(state))
		{
			RelFileLocator locator = BufTagGetRelFileLocator(&buf->tag);

			/* neighbors mostly hold pages of the same relation */
			if (memcmp(&locator, &last, sizeof(RelFileLocator)) != 0)
			{
				last = locator;
				visible = may_see_pages(&locator, relations);
			}
			values[1] = ObjectIdGetDatum(RelFileLocatorNumber(locator));
			values[2] = ObjectIdGetDatum(RelFileLocatorSpc(locator));
			values[3] = ObjectIdGetDatum(RelFileLocatorDb(locator));
			values[4] = Int16GetDatum((int16) BufTagGetForkNum(&buf->tag));
			values[5] = Int64GetDatum((int64) buf->tag.blockNum);
			values[6] = BoolGetDatum((state & BM_DIRTY) != 0);
			values[7] = Int16GetDatum((int16) BUF_STATE_GET_USAGECOUNT(state));
			values[8] = Int32GetDatum(LocalRefCount[i]);
			memset(nulls, false, sizeof(nulls));
			if (!visible)
				memset(&nulls[1], true, 5 * sizeof(bool));
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * pg_local_buffers_summary() returns record
 *
 * The numbers of buffers that hold a page, that hold none, that are dirty,
 * that are pinned and that have storage; and the mean usage count of those
 * that hold a page.  As pg_buffercache_summary() of contrib's
 * pg_buffercache_pages.c.
 */
Datum
pg_local_buffers_summary(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum		values[6];
	bool		nulls[6] = {0};
	int			used = 0;
	int			dirty = 0;
	int			pinned = 0;
	int64		usagecount = 0;

	tp_refuse_in_worker();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferState state = LocalBufferStateRead(GetLocalBufferDescriptor(i));

		CHECK_FOR_INTERRUPTS();

		if (tp_local_buffer_is_pinned(i))
			pinned++;
		if (!holds_page(state))
			continue;
		used++;
		usagecount += BUF_STATE_GET_USAGECOUNT(state);
		if (state & BM_DIRTY)
			dirty++;
	}

	values[0] = Int32GetDatum(used);
	values[1] = Int32GetDatum(NLocBuffer - used);
	values[2] = Int32GetDatum(dirty);
	values[3] = Int32GetDatum(pinned);
	values[4] = Float8GetDatum(used == 0 ? 0 : (double) usagecount / used);
	nulls[4] = used == 0;
	values[5] = Int32GetDatum(tp_used_buffers());
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/* Count the pool's pages by fork.  Returns a hash table of ForkCount. */
static HTAB *
count_by_fork(void)
{
	HASHCTL		ctl;
	HTAB	   *forks;

	ctl.keysize = sizeof(ForkKey);
	ctl.entrysize = sizeof(ForkCount);
	ctl.hcxt = CurrentMemoryContext;
	forks = hash_create("local buffers by fork", 64, &ctl,
						HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	for (int i = 0; i < NLocBuffer; i++)
	{
		BufferDesc *buf = GetLocalBufferDescriptor(i);
		BufferState state = LocalBufferStateRead(buf);
		ForkCount  *count;
		ForkKey		key;
		bool		found;

		CHECK_FOR_INTERRUPTS();
		if (!holds_page(state))
			continue;

		memset(&key, 0, sizeof(key));
		key.locator = BufTagGetRelFileLocator(&buf->tag);
		key.fork = BufTagGetForkNum(&buf->tag);
		count = hash_search(forks, &key, HASH_ENTER, &found);
		if (!found)
			count->allocated = count->dirty = count->pinned = 0;
		count->allocated++;
		if (state & BM_DIRTY)
			count->dirty++;
		if (tp_local_buffer_is_pinned(i))
			count->pinned++;
	}
	return forks;
}

/* What the relation is to its table. */
static const char *
kind_of_relation(const TempRelation *relation)
{
	switch (relation->relkind)
	{
		case RELKIND_INDEX:
			return relation->of_toast ? "TOAST index" : "index";
		case RELKIND_TOASTVALUE:
			return "TOAST table";
		case RELKIND_SEQUENCE:
			return "sequence";
		default:
			return "table";
	}
}

/*
 * pg_local_buffers_relations() returns setof record
 *
 * One row per relation and fork that has pages in the pool.  Pages of a file
 * that the running transaction has dropped have no relation: NULL.
 */
Datum
pg_local_buffers_relations(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HTAB	   *relations;
	HASH_SEQ_STATUS seq;
	ForkCount  *count;

	tp_refuse_in_worker();
	InitMaterializedSRF(fcinfo, 0);

	relations = tp_session_temp_relations();
	hash_seq_init(&seq, count_by_fork());
	while ((count = hash_seq_search(&seq)) != NULL)
	{
		TempRelation *relation = hash_search(relations, &count->key.locator,
											 HASH_FIND, NULL);
		Datum		values[7] = {0};
		bool		nulls[7] = {0};

		if (relation != NULL)
		{
			values[0] = ObjectIdGetDatum(relation->table);
			values[1] = ObjectIdGetDatum(relation->relid);
			values[2] = CStringGetTextDatum(kind_of_relation(relation));
		}
		else
			nulls[0] = nulls[1] = nulls[2] = true;
		values[3] = CStringGetTextDatum(forkNames[count->key.fork]);
		values[4] = Int32GetDatum(count->allocated);
		values[5] = Int32GetDatum(count->dirty);
		values[6] = Int32GetDatum(count->pinned);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
