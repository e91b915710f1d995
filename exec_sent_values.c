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
 * They are rare, as a value has to be large for that.  So if one would be sent,
 * the flush node has no workers launched (exec_flush.c), and the leader runs the
 * plan alone.  Only the top level of a value matters: composites, arrays
 * and ranges are built of detoasted elements, expanded objects are flattened
 * by datumSerialize(), and makeConst() detoasts.
 *
 * The invariant: no worker of a plan with a flush node is sent a TOAST pointer
 * into a temporary table.  A worker with local buffers checks what it is sent.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "utils/lsyscache.h"

#include "exec.h"

/*
 * Is value, of this type, a TOAST pointer into a temporary table?  False if that
 * table no longer exists: the error is raised where the value is used.
 */
static bool
is_temp_toast_pointer(Datum value, Oid type)
{
	struct varlena *attr = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;

	if (!OidIsValid(type) || get_typlen(type) != -1 || attr == NULL ||
		!VARATT_IS_EXTERNAL_ONDISK(attr))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, attr);
	return get_rel_relkind(pointer.va_toastrelid) == RELKIND_TOASTVALUE &&
		get_rel_persistence(pointer.va_toastrelid) == RELPERSISTENCE_TEMP;
}

/* The same for external parameters; list may be NULL. */
static bool
external_params_have_pointer(ParamListInfo list)
{
	for (int i = 1; list != NULL && i <= list->numParams; i++)
	{
		ParamExternData workspace;
		ParamExternData *param = &list->params[i - 1];

		/* as SerializeParamList() of params.c */
		if (list->paramFetch != NULL)
			param = list->paramFetch(list, i, false, &workspace);
		if (!param->isnull && is_temp_toast_pointer(param->value, param->ptype))
			return true;
	}
	return false;
}

/*
 * The same for those internal parameters of estate that are in params, or for all if
 * params is NULL.  One that has not been evaluated or not been sent is zero.
 */
static bool
internal_params_have_pointer(EState *estate, Bitmapset *params)
{
	int			param = 0;
	ListCell   *lc;

	foreach(lc, estate->es_plannedstmt->paramExecTypes)
	{
		ParamExecData *data = &estate->es_param_exec_vals[param];

		if ((params == NULL || bms_is_member(param, params)) &&
			data->execPlan == NULL && !data->isnull &&
			is_temp_toast_pointer(data->value, lfirst_oid(lc)))
			return true;
		param++;
	}
	return false;
}

/*
 * Would workers of gather, a GatherState or GatherMergeState about to launch them, be
 * sent a TOAST pointer into a temporary table?  To be called when its InitPlans have
 * been evaluated, which ExecInitParallelPlan() and ExecParallelReinitialize() of
 * execParallel.c do first.
 */
bool
tp_sends_temp_toast_pointer(PlanState *gather)
{
	Bitmapset  *params = IsA(gather->plan, Gather) ?
		((Gather *) gather->plan)->initParam :
		((GatherMerge *) gather->plan)->initParam;

	return external_params_have_pointer(gather->state->es_param_list_info) ||
		(params != NULL && internal_params_have_pointer(gather->state, params));
}

/*
 * In a worker that has local buffers, before its plan runs: raise an internal
 * error if it was sent a TOAST pointer into a temporary table.
 */
void
tp_check_sent_values(QueryDesc *queryDesc)
{
	Assert(IsParallelWorker());
	if (external_params_have_pointer(queryDesc->params) ||
		internal_params_have_pointer(queryDesc->estate, NULL))
		elog(ERROR, "parallel worker was sent a pointer into a TOAST table that is temporary");
}
