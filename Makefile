MODULE_big = temp_parallel
OBJS = \
	flush_cost.o \
	flush_placement.o \
	func_checks.o \
	gather_cost.o \
	localbuf_evict.o \
	localbuf_flush.o \
	localbuf_funcs.o \
	localbuf_read.o \
	localbuf_stats.o \
	localbuf_view.o \
	oscache.o \
	plan_tables.o \
	readonly_heap.o \
	readonly_phase.o \
	second_look.o \
	session_stats.o \
	temp_family.o \
	temp_flush.o \
	temp_parallel.o \
	temp_paths.o \
	temp_relations.o \
	temp_worker.o

EXTENSION = temp_parallel
DATA = temp_parallel--1.0.sql
PGFILEDESC = "temp_parallel - parallel query over temporary tables"

PG_CONFIG = pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
