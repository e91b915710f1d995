/*-------------------------------------------------------------------------
 *
 * readonly_targets.c
 *	  Tables that are being written while a read-only phase may be in effect.
 *
 * An INSERT whose SELECT workers run (plan_insert.c) changes pages of its target
 * in parallel mode.  The read-only phase of its own statement, or of one that a
 * function called by it runs, must not include these tables: for workers their
 * files must not change, and the phase's flush assumes that nobody changes a
 * page afterwards.  So an INSERT lists its targets here while it runs, and a
 * phase does not begin for a table in a list.
 *
 * The invariant: no table is both in a phase (readonly_phase.c) and in a list.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "readonly.h"

/* the innermost list, or NULL */
static WrittenTables *written = NULL;

/*
 * List tables relids, a List of Oid that has to stay valid, as being written,
 * until tp_written_end(), which the caller has to call on every exit that does
 * not end the process.  *tables must stay in place until then.
 */
void
tp_written_begin(WrittenTables *tables, List *relids)
{
	tables->outer = written;
	tables->relids = relids;
	written = tables;
}

/* End the innermost list, tables.  Raises nothing. */
void
tp_written_end(WrittenTables *tables)
{
	Assert(written == tables);
	written = tables->outer;
}

/* Is table relid being written by an INSERT in parallel mode? */
bool
tp_table_is_written(Oid relid)
{
	for (WrittenTables *tables = written; tables != NULL; tables = tables->outer)
	{
		if (list_member_oid(tables->relids, relid))
			return true;
	}
	return false;
}
