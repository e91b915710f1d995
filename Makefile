# temp_parallel is built with PGXS, which needs the server's headers (on Debian,
# the package postgresql-server-dev-NN). For a server other than the first one in
# PATH: make PG_CONFIG=/path/to/pg_config
#
# It can be built in another directory (make -f /path/to/Makefile), and tested before it
# is installed (make installcheck DESTDIR=...); doc/packaging.md has both.

# The directory of this file, which is not the current one if another is built in.
top := $(patsubst %/,%,$(realpath $(dir $(firstword $(MAKEFILE_LIST)))))

MODULE_big = temp_parallel
OBJS = \
	exec_flush.o \
	exec_free_worker.o \
	exec_parallel_run.o \
	exec_run_ahead.o \
	exec_worker.o \
	exec_worker_refuse.o \
	explain.o \
	flush_cost.o \
	func.o \
	index_build.o \
	localbuf_evict.o \
	localbuf_flush.o \
	localbuf_relations.o \
	localbuf_share.o \
	localbuf_stats.o \
	plan_call.o \
	plan_explain.o \
	plan_expression.o \
	plan_facts.o \
	plan_lookup.o \
	plan_note.o \
	plan_paths.o \
	plan_place.o \
	plan_portions.o \
	plan_processors.o \
	plan_refuse.o \
	plan_row_order.o \
	plan_saving.o \
	plan_statement.o \
	readonly_heap.o \
	readonly_phase.o \
	session.o \
	session_activity.o \
	temp_parallel.o

EXTENSION = temp_parallel
DATA = $(notdir $(wildcard $(top)/temp_parallel--*.sql))
PGFILEDESC = "temp_parallel - parallel query over temporary tables"

# Every sql/NAME.sql is a regression test; sorted, so that their order does not
# depend on the file system. The test database has the C locale, so that sort
# order is the same on every server.
REGRESS = $(sort $(patsubst $(top)/sql/%.sql,%,$(wildcard $(top)/sql/*.sql)))
REGRESS_OPTS = --no-locale --encoding=UTF8

# Every specs/NAME.spec is a test with more than one session.
ISOLATION = $(sort $(patsubst $(top)/specs/%.spec,%,$(wildcard $(top)/specs/*.spec)))
ISOLATION_OPTS = --no-locale --encoding=UTF8 --load-extension=temp_parallel

# t/*.pl start their own servers, for what needs a restart or a crash.
TAP_TESTS = 1

# The TAP tests that users and packagers run, so that installcheck takes less than five
# minutes: all that depend on the server, the compiler or the system. What looks for
# rare errors at random, or needs Python and a network, is left to script/test; all
# tests: make installcheck PROVE_TESTS='t/*.pl'
PROVE_TESTS ?= $(filter-out $(DEVELOPER_TESTS),$(sort $(patsubst $(top)/%,%,$(wildcard $(top)/t/*.pl))))
DEVELOPER_TESTS = $(addprefix t/,030_tpch.pl 040_fuzz.pl 042_core_oracle.pl 043_replaced_library.pl \
	045_torn_pages.pl 048_flush_account.pl 050_killed.pl 051_canceled.pl 059_insert_select.pl \
	062_run_ahead.pl 064_index_build.pl 065_every_allocation.pl)

# The release, of which META.json has the number.
DISTVERSION := $(shell sed -n 's/^   "version": "\(.*\)",$$/\1/p' $(top)/META.json)
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

# Made by the rules below; sql is a link if another directory is built in.
EXTRA_CLEAN = destdir.conf $(if $(filter-out $(CURDIR),$(top)),$(CURDIR)/sql)

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PGXS knows no dependencies on headers, unless the server was built with --enable-depend.
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(top)/*.h $(top)/META.json)

# The time that each TAP test takes; pg_regress prints its tests' times by itself.
PROVE_FLAGS = --timer

# psql includes files by names relative to the directory in which it is started.
ifneq ($(top),$(CURDIR))
installcheck: $(CURDIR)/sql
$(CURDIR)/sql:
	ln -s $(top)/sql $@
endif

# Before installation, the servers that the TAP tests start find the extension below
# DESTDIR. The server of the regression tests needs the same settings: make destdir.conf
ifneq ($(DESTDIR),)
installcheck: destdir.conf
installcheck: export TEMP_CONFIG = $(CURDIR)/destdir.conf
endif
.PHONY: destdir.conf
destdir.conf:
	@if grep -qs extension_control_path $(datadir)/postgresql.conf.sample; then \
		echo "extension_control_path = '$(abspath $(DESTDIR))$(datadir):\$$system'"; \
	elif grep -qs extension_destdir $(datadir)/postgresql.conf.sample; then \
		echo "extension_destdir = '$(abspath $(DESTDIR))'"; \
	else \
		echo "this server finds extensions only where they are installed: make install first" >&2; \
		exit 1; \
	fi >$@
	@echo "dynamic_library_path = '$(abspath $(DESTDIR))$(pkglibdir):\$$libdir'" >>$@

# Tests that are not run are named, with the reason: all TAP tests, and regression tests
# that need a module of contrib. (A TAP test names what it skips itself.)
no_tap = $(if $(filter yes,$(enable_tap_tests)),$(shell \
	if [ "$$(id -u)" = 0 ]; then echo "root cannot start their servers; run them as another user"; \
	elif ! perl -e 1 2>/dev/null; then echo "perl is not installed"; \
	elif ! perl -MIPC::Run -e 1 2>/dev/null; then echo "perl has no IPC::Run (Debian: libipc-run-perl)"; \
	elif ! command -v $(PROVE) >/dev/null; then echo "there is no program $(PROVE)"; \
	fi),the server was built without --enable-tap-tests)
ifneq ($(filter installcheck,$(MAKECMDGOALS)),)
ifneq ($(no_tap),)
prove_installcheck = @echo "skipped: $(words $(wildcard $(addprefix $(top)/,$(PROVE_TESTS)))) TAP tests: $(no_tap)"
endif
endif
name_skipped = for t in $(REGRESS); do \
	sed -n "s/^skipped: /skipped: $$t: /p" results/$$t.out; done
hash := \#
$(eval pg_isolation_regress_installcheck = @$$(name_skipped); \
	$(subst $(hash),\$(hash),$(value pg_isolation_regress_installcheck)))

# The tests that are written with pgTAP, on a running server in which the module is installed,
# as a superuser. Each file is a transaction that is rolled back, so any database will do.
.PHONY: pgtapcheck
pgtapcheck:
	@command -v pg_prove >/dev/null || { echo "not run: there is no program pg_prove;" \
		"install libtap-parser-sourcehandler-pgtap-perl (Debian)" \
		"or TAP::Parser::SourceHandler::pgTAP (CPAN)" >&2; exit 1; }
	@found=$$($(bindir)/psql -XAtc "SELECT name FROM pg_available_extensions WHERE name = 'pgtap'") || exit 1; \
	[ -n "$$found" ] || { echo "not run: this server has no pgTAP; install" \
		"postgresql-$(MAJORVERSION)-pgtap (Debian), pgtap_$(MAJORVERSION) (RPM) or pgtap (PGXN)" >&2; exit 1; }
	pg_prove --psql-bin $(bindir)/psql $(PROVE_FLAGS) $(sort $(wildcard $(top)/t/pgtap/*.sql))

# The zip for PGXN: what is committed, less what .gitattributes leaves out. Addresses
# that end with .example reach nobody.
.PHONY: dist
dist:
	@! grep -n '\.example' $(top)/META.json || \
		echo "before it is uploaded, META.json needs real addresses in place of these"
	git -C $(top) archive --format=zip --prefix=temp_parallel-$(DISTVERSION)/ \
		--output=$(CURDIR)/temp_parallel-$(DISTVERSION).zip HEAD

# The outputs of the benchmarks, for the release beside the zip: what bench/figures has written.
.PHONY: measurements
measurements:
	tar -czf $(CURDIR)/temp_parallel-$(DISTVERSION)-measurements.tar.gz -C $(top) \
		--transform='s,^measurements,temp_parallel-$(DISTVERSION)-measurements,' measurements
