/*-------------------------------------------------------------------------
 *
 * readonly.h
 *	  The read-only phase, in which reads of temporary tables leave their pages
 *	  clean.
 *
 *-------------------------------------------------------------------------
 */
#ifndef READONLY_H
#define READONLY_H

#include "access/amapi.h"
#include "access/tableam.h"
#include "nodes/pg_list.h"

#include "temp_parallel.h"

/* readonly_phase.c */
typedef struct ReadonlyPhase
{
	struct ReadonlyPhase *outer;	/* of the statement that runs this one */
	List	   *relations;		/* open, with the read-only routine */
	List	   *indexes;		/* of ReadonlyIndex, except those that an
								 * outer phase has */
} ReadonlyPhase;

extern void tp_readonly_begin(ReadonlyPhase *phase);
extern void tp_readonly_attach(ReadonlyPhase *phase, List *relids, bool with_indexes);
extern void tp_readonly_end(ReadonlyPhase *phase, bool close);
extern bool tp_table_is_readonly(Oid relid);
extern void tp_readonly_relcache_callback(Oid relid);

/* readonly_heap.c */
extern void tp_readonly_heap_init(void);
extern const TableAmRoutine *tp_readonly_heap_routine(void);

#endif							/* READONLY_H */
