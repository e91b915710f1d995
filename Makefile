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

# Every sql/NAME.sql is a regression test; sorted, so that the order does not
# depend on the file system. The test database has the C locale whatever the
# server's own is, so that the sort order is the same on every server.
REGRESS = $(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql)))
REGRESS_OPTS = --no-locale --encoding=UTF8

# Every specs/NAME.spec is a test with more than one session.
ISOLATION = $(sort $(patsubst specs/%.spec,%,$(wildcard specs/*.spec)))
ISOLATION_OPTS = --no-locale --encoding=UTF8 --load-extension=temp_parallel

PG_CONFIG = pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
