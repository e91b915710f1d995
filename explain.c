/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  Lines that EXPLAIN adds, in each of its formats.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "lib/stringinfo.h"
#include "utils/lsyscache.h"

#include "temp_parallel.h"

/* Add n numbers: in text in a line with that label, in other formats as properties. */
void
tp_explain_numbers(const char *label, const ExplainNumber *numbers, int n,
				   ExplainState *es)
{
	StringInfoData line;

	initStringInfo(&line);
	for (const ExplainNumber *number = numbers; number < numbers + n; number++)
	{
		/* JSON has no number for that */
		if (es->format != EXPLAIN_FORMAT_TEXT && isinf(number->value))
			ExplainPropertyText(number->property, "Infinity", es);
		else if (es->format != EXPLAIN_FORMAT_TEXT)
			ExplainPropertyFloat(number->property, number->unit, number->value,
								 number->digits, es);
		else
			appendStringInfo(&line, "%s%s=%.*f%s%s", line.len > 0 ? " " : "",
							 number->in_text, number->digits, number->value,
							 number->unit ? " " : "",
							 number->unit ? number->unit : "");
	}
	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText(label, line.data, es);
}

/* Add the names of relations relids, if there are any. */
void
tp_explain_names(const char *label, List *relids, ExplainState *es)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, relids)
		names = lappend(names, get_rel_name(lfirst_oid(lc)));
	if (names != NIL)
		ExplainPropertyList(label, names, es);
}
