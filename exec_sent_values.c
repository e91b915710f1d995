/*-------------------------------------------------------------------------
 *
 * exec_sent_values.c
 *	  Values that the leader sends to parallel workers as parameters.
 *
 * The executor sends workers the statement's external parameters, and the
 * outputs of the InitPlans that are evaluated above a Gather and used below
 * it.  Such a value may be a TOAST pointer into a temporary table that is not
 * read below the Gather, so that its pages are not written for the workers.
 * Sources of such values are a variable of PL/pgSQL, an argument of a function
 * or of EXECUTE, a column of a trigger's row, and the result of a scalar
 * subquery.  Core sends such pointers, because a worker that follows one gets
 * an error.
 *
 * Therefore such pointers are replaced by the values that they point to before
 * they are sent.  Only the top level of a value matters: composites, arrays
 * and ranges are built of detoasted elements, expanded objects are flattened
 * by datumSerialize(), and makeConst() detoasts.
 *
 * The leader, too, runs its share of the plan with the replaced values: what
 * it computes may reach workers in the shared hash table of a parallel hash
 * join.
 *
 * The invariant: no worker is sent a TOAST pointer into a temporary table, and
 * the leader has none as a parameter of a plan that it shares with workers.  A
 * worker with local buffers checks what it is sent.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "lib/ilist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "exec.h"

/* What is known about an external parameter. */
typedef struct InlineParam
{
	Oid			type;
	int16		typlen;			/* of that type */
	struct varlena *pointer;	/* the TOAST pointer replaced, or NULL */
	struct varlena *value;		/* the replacement */
} InlineParam;

/* External parameters, with TOAST pointers into temporary tables replaced. */
typedef struct InlineParams
{
	ParamListInfo original;
	MemoryContext context;		/* of all this and the replacements */
	InlineParam *params;		/* numParams of them */
	ParamListInfoData list;		/* what the executor sees; must be last */
} InlineParams;

/* The topmost node of an InitPlan whose output is sent to workers. */
typedef struct InlineOutput
{
	dlist_node	link;
	PlanState  *ps;
	ExecProcNodeMtd own;		/* its ExecProcNode before */
	TupleTableSlot *slot;		/* for rows with replaced values */
	MemoryContext context;		/* of the values of the last such row */
	MemoryContextCallback at_end;
} InlineOutput;

static dlist_head inline_outputs = DLIST_STATIC_INIT(inline_outputs);

/*
 * Is value, of a type of variable length, a TOAST pointer into a temporary
 * table, *toastrelid?  False if that table no longer exists: the error is
 * raised where the value is used.
 */
static bool
is_temp_toast_pointer(Datum value, Oid *toastrelid)
{
	struct varlena *attr = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;
	HeapTuple	tuple;
	bool		result = false;

	if (attr == NULL || !VARATT_IS_EXTERNAL_ONDISK(attr))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, attr);
	*toastrelid = pointer.va_toastrelid;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(pointer.va_toastrelid));
	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_class) GETSTRUCT(tuple))->relpersistence ==
			RELPERSISTENCE_TEMP;
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * Does the TOAST table have a row of the value, dead or alive?  If not, the
 * value's own table has been emptied since the pointer was fetched.
 * As toastrel_valueid_exists() of toast_internals.c, without a lock.
 */
static bool
toast_value_exists(struct varatt_external *pointer)
{
	Relation	toast = tp_relation_open(pointer->va_toastrelid);
	List	   *indexes = RelationGetIndexList(toast);
	ScanKeyData key;
	SysScanDesc scan;
	bool		found;

	ScanKeyInit(&key, (AttrNumber) 1, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(pointer->va_valueid));
	scan = systable_beginscan(toast, linitial_oid(indexes), true, SnapshotAny,
							  1, &key);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	list_free(indexes);
	RelationClose(toast);
	return found;
}

/*
 * The value that attr, a TOAST pointer into a temporary table, points to, in
 * the current memory context.  If the value no longer exists, an error would
 * be wrong, because the plan may never use it.  In that case the result is a
 * TOAST pointer that raises an error when it is followed.
 */
static struct varlena *
inline_value(struct varlena *attr)
{
	struct varatt_external pointer;
	struct varlena *nowhere;

	VARATT_EXTERNAL_GET_POINTER(pointer, attr);
	if (toast_value_exists(&pointer))
		return detoast_external_attr(attr);

	nowhere = palloc(VARSIZE_EXTERNAL(attr));
	memcpy(nowhere, attr, VARSIZE_EXTERNAL(attr));
	pointer.va_toastrelid = InvalidOid;
	memcpy(VARDATA_EXTERNAL(nowhere), &pointer, sizeof(pointer));
	return nowhere;
}

/* ----------
 * External parameters
 * ----------
 */

/* The wrapper of list, which is the part that the executor sees. */
static InlineParams *
inline_params(ParamListInfo list)
{
	return (InlineParams *) ((char *) list - offsetof(InlineParams, list));
}

/*
 * The replacement of value, that of param, in params' memory context, or NULL
 * if it stays.  A pointer is followed only once, because the executor asks for
 * a parameter at least twice per launch, and for each row in the leader.
 */
static struct varlena *
inline_param_value(InlineParams *params, InlineParam *param, Datum value)
{
	struct varlena *attr = (struct varlena *) DatumGetPointer(value);
	MemoryContext old;
	Oid			toastrelid;

	if (!VARATT_IS_EXTERNAL_ONDISK(attr))
		return NULL;
	if (param->pointer != NULL &&
		memcmp(param->pointer, attr, VARSIZE_EXTERNAL(attr)) == 0)
		return param->value;
	if (!is_temp_toast_pointer(value, &toastrelid))
		return NULL;

	old = MemoryContextSwitchTo(params->context);
	param->value = inline_value(attr);
	param->pointer = palloc(VARSIZE_EXTERNAL(attr));
	memcpy(param->pointer, attr, VARSIZE_EXTERNAL(attr));
	MemoryContextSwitchTo(old);
	return param->value;
}

/*
 * paramFetch of the list that the executor sees: SerializeParamList() of
 * params.c and ExecEvalParamExtern() of execExprInterp.c call it.
 */
static ParamExternData *
fetch_inline_param(ParamListInfo list, int paramid, bool speculative,
				   ParamExternData *workspace)
{
	InlineParams *params = inline_params(list);
	ParamListInfo original = params->original;
	InlineParam *known = &params->params[paramid - 1];
	ParamExternData *param;
	struct varlena *value;

	if (original->paramFetch != NULL)
		param = original->paramFetch(original, paramid, speculative, workspace);
	else
		param = &original->params[paramid - 1];

	if (!OidIsValid(param->ptype) || param->isnull)
		return param;
	if (known->type != param->ptype)
	{
		known->type = param->ptype;
		known->typlen = get_typlen(param->ptype);
	}
	if (known->typlen != -1)
		return param;
	value = inline_param_value(params, known, param->value);
	if (value == NULL)
		return param;

	*workspace = *param;
	workspace->value = PointerGetDatum(value);
	return workspace;
}

/*
 * Before the executor is started: wrap queryDesc's external parameters, if it
 * has any, so that neither the workers nor the leader get TOAST pointers into
 * temporary tables.  The wrapper is in a child of the current memory context.
 * Returns the original parameters, for tp_unwrap_params().
 */
ParamListInfo
tp_wrap_params(QueryDesc *queryDesc)
{
	ParamListInfo original = queryDesc->params;
	MemoryContext context;
	InlineParams *params;

	if (original == NULL || original->numParams == 0)
		return original;

	context = AllocSetContextCreate(CurrentMemoryContext, "inline parameters",
									ALLOCSET_SMALL_SIZES);
	params = MemoryContextAllocZero(context, sizeof(InlineParams));
	params->original = original;
	params->context = context;
	params->params = MemoryContextAllocZero(context, original->numParams *
											sizeof(InlineParam));
	/* the callbacks find their arguments in the list that they are given */
	memcpy(&params->list, original, offsetof(ParamListInfoData, params));
	params->list.paramFetch = fetch_inline_param;
	/* expression steps of the original's own would bypass paramFetch */
	params->list.paramCompile = NULL;
	queryDesc->params = &params->list;
	return original;
}

/*
 * After the executor has been started, or has failed to: restore queryDesc's
 * original parameters.  The wrapper then belongs to the executor's state, or
 * if there is none, to the memory context in which it was made.  Raises
 * nothing.
 */
void
tp_unwrap_params(QueryDesc *queryDesc, ParamListInfo original)
{
	if (queryDesc->params == original)
		return;
	if (queryDesc->estate != NULL)
		MemoryContextSetParent(inline_params(queryDesc->params)->context,
							   queryDesc->estate->es_query_cxt);
	queryDesc->params = original;
}

/* ----------
 * Outputs of InitPlans
 * ----------
 */

static InlineOutput *
find_output(PlanState *ps)
{
	dlist_iter	iter;

	dlist_foreach(iter, &inline_outputs)
	{
		InlineOutput *output = dlist_container(InlineOutput, link, iter.cur);

		if (output->ps == ps)
			return output;
	}
	return NULL;
}

/* Memory context callback: the query has ended, with or without an error. */
static void
forget_output(void *arg)
{
	dlist_delete(&((InlineOutput *) arg)->link);
}

/*
 * ExecProcNode of an InitPlan's topmost node: returns the row that the node's
 * own function returns, with TOAST pointers into temporary tables replaced.
 * The replacements are in output->context, and live until the next such row.
 */
static TupleTableSlot *
exec_inline_output(PlanState *ps)
{
	InlineOutput *output = find_output(ps);
	TupleTableSlot *slot = output->own(ps);
	TupleDesc	desc;
	Oid			toastrelid;
	bool		found = false;

	if (TupIsNull(slot))
		return slot;

	desc = slot->tts_tupleDescriptor;
	slot_getallattrs(slot);
	for (int i = 0; i < desc->natts; i++)
	{
		MemoryContext old;

		if (TupleDescAttr(desc, i)->attlen != -1 || slot->tts_isnull[i] ||
			!is_temp_toast_pointer(slot->tts_values[i], &toastrelid))
			continue;

		if (output->slot == NULL)
		{
			old = MemoryContextSwitchTo(ps->state->es_query_cxt);
			output->slot = ExecInitExtraTupleSlot(ps->state, desc,
												  &TTSOpsVirtual);
			output->context = AllocSetContextCreate(CurrentMemoryContext,
													"inline InitPlan output",
													ALLOCSET_SMALL_SIZES);
			MemoryContextSwitchTo(old);
		}
		if (!found)
		{
			found = true;
			ExecClearTuple(output->slot);
			MemoryContextReset(output->context);
			memcpy(output->slot->tts_values, slot->tts_values,
				   desc->natts * sizeof(Datum));
			memcpy(output->slot->tts_isnull, slot->tts_isnull,
				   desc->natts * sizeof(bool));
		}
		old = MemoryContextSwitchTo(output->context);
		output->slot->tts_values[i] =
			PointerGetDatum(inline_value((struct varlena *)
										 DatumGetPointer(slot->tts_values[i])));
		MemoryContextSwitchTo(old);
	}
	return found ? ExecStoreVirtualTuple(output->slot) : slot;
}

/*
 * Have the InitPlans of estate that set params, the initParam of a Gather,
 * return values without TOAST pointers into temporary tables.  Done once, for
 * all launches of workers and all Gathers.  ExecSetParamPlan() of
 * nodeSubplan.c copies what they return.
 */
static void
inline_initplan_outputs(EState *estate, Bitmapset *params)
{
	int			param = -1;

	while ((param = bms_next_member(params, param)) >= 0)
	{
		SubPlanState *subplan = estate->es_param_exec_vals[param].execPlan;
		InlineOutput *output;

		/* ARRAY() and EXISTS() return values that they have built */
		if (subplan == NULL ||
			subplan->subplan->subLinkType == ARRAY_SUBLINK ||
			subplan->subplan->subLinkType == EXISTS_SUBLINK ||
			find_output(subplan->planstate) != NULL)
			continue;

		output = MemoryContextAllocZero(estate->es_query_cxt,
										sizeof(InlineOutput));
		output->ps = subplan->planstate;
		output->own = output->ps->ExecProcNodeReal;
		dlist_push_head(&inline_outputs, &output->link);
		output->at_end.func = forget_output;
		output->at_end.arg = output;
		MemoryContextRegisterResetCallback(estate->es_query_cxt,
										   &output->at_end);
		ExecSetExecProcNode(output->ps, exec_inline_output);
	}
}

/*
 * In the leader, before the executor runs: the same for all InitPlans whose
 * outputs gathers, a List of GatherState and GatherMergeState, send to
 * workers.  A value is detoasted when its InitPlan is evaluated, which raises
 * what detoasting raises.  What this allocates and changes belongs to the
 * executor's state, and is freed with it.
 */
void
tp_inline_initplans(EState *estate, List *gathers)
{
	ListCell   *lc;

	Assert(!IsParallelWorker());
	foreach(lc, gathers)
	{
		Plan	   *gather = ((PlanState *) lfirst(lc))->plan;

		inline_initplan_outputs(estate, IsA(gather, Gather) ?
								((Gather *) gather)->initParam :
								((GatherMerge *) gather)->initParam);
	}
}

/* ----------
 * In a worker
 * ----------
 */

static void
check_sent_value(Datum value, Oid type)
{
	Oid			toastrelid;

	if (OidIsValid(type) && get_typlen(type) == -1 &&
		is_temp_toast_pointer(value, &toastrelid))
		elog(ERROR, "parallel worker was sent a pointer into TOAST table %u, which is temporary",
			 toastrelid);
}

/*
 * In a worker that has local buffers, before its plan runs: raise an internal
 * error if it was sent a TOAST pointer into a temporary table.  What
 * RestoreParamExecParams() of execParallel.c has not set is zero.
 */
void
tp_check_sent_values(QueryDesc *queryDesc)
{
	ParamListInfo external = queryDesc->params;
	List	   *types = queryDesc->plannedstmt->paramExecTypes;
	int			param = 0;
	ListCell   *lc;

	Assert(IsParallelWorker());
	for (int i = 0; external != NULL && i < external->numParams; i++)
	{
		if (!external->params[i].isnull)
			check_sent_value(external->params[i].value,
							 external->params[i].ptype);
	}

	/* those that were not sent are zero, or an InitPlan sets them later */
	foreach(lc, types)
	{
		ParamExecData *data = &queryDesc->estate->es_param_exec_vals[param++];

		if (data->execPlan == NULL && !data->isnull)
			check_sent_value(data->value, lfirst_oid(lc));
	}
}
