# temp_parallel: built with PGXS, so the server's headers (on Debian the
# package postgresql-server-dev-NN) have to be there. Another server than the
# first one in PATH: make PG_CONFIG=/path/to/pg_config

MODULE_big = temp_parallel
OBJS = \
	exec_check.o \
	exec_flush.o \
	exec_hint.o \
	exec_run.o \
	exec_second_look.o \
	exec_sent_values.o \
	exec_worker.o \
	exec_worker_pool.o \
	exec_worker_refuse.o \
	exec_worker_relations.o \
	flush_cost.o \
	func_calibrate.o \
	func_calibrate_stats.o \
	func_checks.o \
	func_localbuf.o \
	func_oscache.o \
	func_stats.o \
	func_view.o \
	localbuf_dropped.o \
	localbuf_evict.o \
	localbuf_family.o \
	localbuf_flush.o \
	localbuf_hints.o \
	localbuf_read.o \
	localbuf_relations.o \
	localbuf_stats.o \
	plan_flush_node.o \
	plan_gather_cost.o \
	plan_paths.o \
	plan_pins.o \
	plan_placement.o \
	plan_user_code.o \
	plan_walk.o \
	readonly_heap.o \
	readonly_index.o \
	readonly_phase.o \
	session.o \
	settings.o \
	temp_parallel.o

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

# t/*.pl start servers of their own, for what needs a restart or a crash.
TAP_TESTS = 1

# Packagers run these. The TPC-H test needs a data generator from the network,
# and the one of torn pages builds the module twice more; script/test runs them.
PROVE_TESTS ?= $(filter-out t/030_tpch.pl t/045_torn_pages.pl,$(wildcard t/*.pl))

# make WERROR=1, for developers and CI: a new compiler's new warning must not
# keep a user from building. The exceptions are what the server's own headers
# and style need.
ifneq ($(WERROR),)
PG_CFLAGS += -Wall -Wextra -Werror \
	-Wno-unused-parameter \
	-Wno-sign-compare \
	-Wno-missing-field-initializers \
	-Wno-cast-function-type \
	-Wno-clobbered
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The zip for PGXN: what is committed, less what .gitattributes leaves out.
DISTVERSION = $(shell sed -n 's/^   "version": "\(.*\)",$$/\1/p' META.json)
.PHONY: dist
dist:
	git archive --format=zip --prefix=temp_parallel-$(DISTVERSION)/ \
		--output=temp_parallel-$(DISTVERSION).zip HEAD
