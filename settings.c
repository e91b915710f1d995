/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The module's settings (GUCs).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>

#include "temp_parallel.h"
#include "utils/guc.h"

bool		tp_enabled = true;
double		tp_write_temp_page_cost = 1.30;
double		tp_buffer_scan_cost = 0.01;
int			tp_processors = 0;
bool		tp_insert_select = true;
bool		tp_share_local_buffers = true;

/*
 * Define the settings.  Called once, when the module is loaded.
 */
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
	DefineCustomBoolVariable("temp_parallel.insert_select",
							 "Enables parallel query for the SELECT of an INSERT into a temporary table.",
							 "This includes queries that read permanent tables only.",
							 &tp_insert_select,
							 true,
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
