/*-------------------------------------------------------------------------
 *
 * session.c
 *	  What belongs to a session: settings, counters, temporary tables, the library.
 *
 * The counters belong to one process.  They count what happened, even if the
 * statement failed or the transaction was rolled back.  A worker's counters are lost
 * when it exits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "temp_parallel.h"

bool		tp_enabled = true;
double		tp_write_temp_page_cost = 1.30;
double		tp_buffer_scan_cost = 0.01;
int			tp_processors = 0;
int			tp_run_ahead = RUN_AHEAD_ON;
bool		tp_share_local_buffers = true;

static const struct config_enum_entry run_ahead_options[] = {
	{"off", RUN_AHEAD_OFF, false},
	{"insert", RUN_AHEAD_INSERT, false},
	{"modify", RUN_AHEAD_MODIFY, false},
	{"on", RUN_AHEAD_ON, false},
	{"true", RUN_AHEAD_ON, true},
	{"yes", RUN_AHEAD_ON, true},
	{"1", RUN_AHEAD_ON, true},
	{"false", RUN_AHEAD_OFF, true},
	{"no", RUN_AHEAD_OFF, true},
	{"0", RUN_AHEAD_OFF, true},
	{NULL, 0, false}
};

/* Does this session have a temporary schema?  Inexpensive: for hooks to check first. */
bool
tp_session_has_temp_tables(void)
{
	Oid			namespace;
	Oid			toast_namespace;

	GetTempNamespaceState(&namespace, &toast_namespace);
	return OidIsValid(namespace);
}

/* Is name that of a temporary table?  False if it is NULL, or if there is no such table. */
bool
tp_is_name_of_temp_table(const RangeVar *name)
{
	Oid			relid;

	if (name == NULL || !tp_session_has_temp_tables())
		return false;
	relid = RangeVarGetRelid(name, NoLock, true);
	return OidIsValid(relid) &&
		get_rel_persistence(relid) == RELPERSISTENCE_TEMP;
}

/*
 * Is relid a table that this module handles: temporary, of this session, with
 * heap as its access method?  False for a relation that does not exist.
 */
bool
tp_is_session_temp_table(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	result = form->relpersistence == RELPERSISTENCE_TEMP &&
		form->relkind == RELKIND_RELATION &&
		form->relam == HEAP_TABLE_AM_OID &&
		isTempOrTempToastNamespace(form->relnamespace);
	ReleaseSysCache(tuple);
	return result;
}

/* Define the settings.  Called once, when the module is loaded. */
void
tp_define_settings(void)
{
	DefineCustomBoolVariable("temp_parallel.enabled",
							 "Enables parallel query over temporary tables.",
							 NULL,
							 &tp_enabled,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomRealVariable("temp_parallel.write_temp_page_cost",
							 "Sets the planner's estimate of the cost of writing a dirty local buffer.",
							 "The cost is on the same scale as \"seq_page_cost\".",
							 &tp_write_temp_page_cost,
							 1.30, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomRealVariable("temp_parallel.buffer_scan_cost",
							 "Sets the planner's estimate of the cost of checking whether a local buffer is dirty.",
							 "The cost is on the same scale as \"seq_page_cost\".",
							 &tp_buffer_scan_cost,
							 0.01, 0, DBL_MAX,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("temp_parallel.processors",
							"Sets the number of processors that the leader and the workers of a query can expect to use at once.",
							"Zero means as many as the operating system lets the session use.",
							&tp_processors,
							0, 0, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomEnumVariable("temp_parallel.run_ahead",
							 "Selects the statements of which workers find all rows before the first one is changed or returned.",
							 "Each value includes the former ones: INSERT ... SELECT; UPDATE, DELETE and MERGE of temporary tables; queries whose rows are fetched in portions.",
							 &tp_run_ahead,
							 RUN_AHEAD_ON, run_ahead_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("temp_parallel.share_local_buffers",
							 "Lets parallel workers read dirty local buffers in the leader's memory, where the system supports it.",
							 "If off, they are written before workers are launched.",
							 &tp_share_local_buffers,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	MarkGUCPrefixReserved("temp_parallel");
}
