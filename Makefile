# temp_parallel is built with PGXS, which needs the server's headers (on Debian,
# the package postgresql-server-dev-NN). For a server other than the first one in
# PATH: make PG_CONFIG=/path/to/pg_config

MODULE_big = temp_parallel
OBJS = \
	exec_check.o \
	exec_explain.o \
	exec_flush.o \
	exec_hint.o \
	exec_run.o \
	exec_second_look.o \
	exec_select_node.o \
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
	func_tables.o \
	func_view.o \
	localbuf_account.o \
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
	plan_insert.o \
	plan_lookups.o \
	plan_paths.o \
	plan_pins.o \
	plan_placement.o \
	plan_repeated.o \
	plan_saving.o \
	plan_select_node.o \
	plan_user_code.o \
	plan_walk.o \
	processors.o \
	readonly_heap.o \
	readonly_index.o \
	readonly_phase.o \
	session.o \
	settings.o \
	temp_parallel.o

EXTENSION = temp_parallel
DATA = temp_parallel--1.0.sql
PGFILEDESC = "temp_parallel - parallel query over temporary tables"

# Every sql/NAME.sql is a regression test; sorted, so that their order does not
# depend on the file system. The test database has the C locale, so that sort
# order is the same on every server.
REGRESS = $(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql)))
REGRESS_OPTS = --no-locale --encoding=UTF8

# Every specs/NAME.spec is a test with more than one session.
ISOLATION = $(sort $(patsubst specs/%.spec,%,$(wildcard specs/*.spec)))
ISOLATION_OPTS = --no-locale --encoding=UTF8 --load-extension=temp_parallel

# t/*.pl start their own servers, for what needs a restart or a crash.
TAP_TESTS = 1

# The TAP tests that packagers run. Two are left to script/test: the TPC-H test
# needs a data generator from the network, and the test of torn pages builds the
# module twice more.
PROVE_TESTS ?= $(filter-out t/030_tpch.pl t/045_torn_pages.pl,$(wildcard t/*.pl))

# The release, of which META.json has the number.
DISTVERSION := $(shell sed -n 's/^   "version": "\(.*\)",$$/\1/p' $(dir $(firstword $(MAKEFILE_LIST)))META.json)
PG_CPPFLAGS += -DTP_VERSION='"$(DISTVERSION)"'

# make WERROR=1 is for developers and CI: a new compiler's warnings must not keep
# users from building. The server's own headers and style need the exceptions.
ifneq ($(WERROR),)
PG_CFLAGS += -Wall -Wextra -Werror \
	-Wno-unused-parameter \
	-Wno-sign-compare \
	-Wno-missing-field-initializers \
	-Wno-cast-function-type
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The time that each TAP test takes; pg_regress prints its tests' times by itself.
PROVE_FLAGS = --timer

# The zip for PGXN: what is committed, less what .gitattributes leaves out.
.PHONY: dist
dist:
	git archive --format=zip --prefix=temp_parallel-$(DISTVERSION)/ \
		--output=temp_parallel-$(DISTVERSION).zip HEAD
