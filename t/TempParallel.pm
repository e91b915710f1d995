# Functions for the tests that inject faults: a server, sessions whose statements
# run in the background, a temporary table t and a permanent table p with the same
# contents, and checks of the session's state after a fault.
#
# Tests take random times from rand(). Its seed is fixed, or FAULT_SEED in the
# environment, and printed.

package TempParallel;

use strict;
use warnings;

use Config;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(fault_server fault_session seed_moments make_tables change interrupt more_rounds
  workers_of terminate_worker expecting sound nothing_left log_is_clean shares $from_core @pools);

# With these, every plan that can be parallel is.
our $settings = q{
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET cpu_tuple_cost = 1;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
SET client_min_messages = warning;
};

# A pool that is smaller than the tables; one that is larger, with dirty pages that workers
# read in the leader's memory, where addresses have 64 bits: for that, writing must not be
# cheap; and the same with pages that are written. FAULT_POOLS in the environment is how many
# of them are used.
our @pools = ('800kB', $Config{ptrsize} < 8 ? () : '32MB, shared', '32MB');
splice @pools, $ENV{FAULT_POOLS} if $ENV{FAULT_POOLS};
my $sharing = q{
SET temp_parallel.write_temp_page_cost = 10;
};

sub seed_moments
{
	my $seed = $ENV{FAULT_SEED} || 4711;

	srand($seed);
	diag("FAULT_SEED=$seed");
	return;
}

# A server with checksums that restarts after a crash, with the extension and the
# functions that are used below.
sub fault_server
{
	my ($name, $conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => ['--data-checksums']);
	$node->append_conf('postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
max_worker_processes = 8
max_parallel_workers = 8
autovacuum = off
log_statement = none
restart_after_crash = on
log_line_prefix = '%m [%p] %b '
} . ($conf || ''));
	$node->start;
	$node->safe_psql('postgres', q{
CREATE EXTENSION temp_parallel;

-- Runs a command for both tables; @ stands for the table.
CREATE FUNCTION on_both(command text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace(command, '@', 't');
	EXECUTE replace(command, '@', 'p');
END $$;

-- A digest of a table's rows, with TOASTed values.
CREATE FUNCTION digest(tab regclass, OUT digest text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT count(*) || '':'' || sum(hashtextextended(x::text, 0)) FROM %s x', tab)
	   INTO digest;
END $$;

-- The same, without core's workers, whose start takes longer.
CREATE FUNCTION digest_of_p() RETURNS text LANGUAGE plpgsql
SET max_parallel_workers_per_gather = 0 AS $$ BEGIN RETURN digest('p'); END $$;

-- Runs a statement in a subtransaction. Returns its error.
CREATE FUNCTION caught(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END $$;

-- The number of pages that a serial scan of t dirties: those that it evicts,
-- and those that are dirty at its end (none is before).
CREATE FUNCTION pages_hinted() RETURNS bigint LANGUAGE plpgsql
SET temp_parallel.enabled = off AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(v) FROM t' INTO plan;
	RETURN (plan -> 0 -> 'Plan' ->> 'Local Written Blocks')::bigint + pg_dirty_local_buffers();
END $$;

-- Compares t with p, by index scans and, with the extension off or on,
-- sequential scans.
CREATE FUNCTION same_data(modes text[] DEFAULT '{off,on}') RETURNS text LANGUAGE plpgsql
SET temp_parallel.enabled = off AS $$
DECLARE
	expected text := digest_of_p();
	answer text;
	mode text;
BEGIN
	SELECT string_agg(p.id::text, ',') INTO answer
	  FROM p WHERE NOT EXISTS (SELECT FROM t WHERE t.id = p.id AND t.k = p.k OFFSET 0);
	IF answer IS NOT NULL THEN
		RETURN 'not found by the index: ' || answer;
	END IF;
	FOREACH mode IN ARRAY modes LOOP
		PERFORM set_config('temp_parallel.enabled', mode, true);
		answer := digest('t');
		IF answer IS DISTINCT FROM expected THEN
			RETURN format('enabled = %s: %s instead of %s', mode, answer, expected);
		END IF;
	END LOOP;
	RETURN 'same';
END $$;

-- The server's files that exist only as long as a session.
CREATE FUNCTION session_files() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT d || f
	  FROM (SELECT 'base/' || oid || '/' FROM pg_database) AS db (d), pg_ls_dir(d) f
	 WHERE f ~ '^t\d+_'
	UNION ALL
	SELECT f FROM pg_ls_dir('base/pgsql_tmp', true, false) f
$$;
});
	return $node;
}

# ----------
# Sessions
# ----------

# fault_session($node, $pool) - a new session with a pool like one of @pools, or the
# default.
sub fault_session
{
	my ($node, $pool) = @_;
	my $self = bless {
		in => '', out => '', err => '', n => 0,
		timer => IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default)
	}, __PACKAGE__;
	local %ENV = $node->_get_env();

	$self->{run} = IPC::Run::start(
		[
			$node->installed_command('psql'), '-XAtq', '-d',
			$node->connstr('postgres'), '-f', '-'
		],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err},
		$self->{timer});
	$self->safe($settings);
	if (defined $pool)
	{
		my ($size, $shared) = split /, /, $pool;

		$self->safe("SET temp_buffers = '$size';" . ($shared ? $sharing : ''));
	}
	$self->{pid} = $self->safe('SELECT pg_backend_pid();');
	return $self;
}

sub pid { return $_[0]->{pid}; }

# begin(SQL) - start it without waiting for its end.
sub begin
{
	my ($self, $sql) = @_;
	my $mark = 'end of ' . ++$self->{n};

	$self->{out} = $self->{err} = '';
	$self->{timer}->start($PostgreSQL::Test::Utils::timeout_default);
	$self->{in} .= "$sql\n\\echo '$mark'\n\\warn '$mark'\n";
	$self->{run}->pump_nb while length $self->{in} && $self->{run}->pumpable;
	return;
}

# end() - wait until it has ended, or the session has. Returns what was written to
# stdout and stderr.
sub end
{
	my ($self) = @_;
	my $mark = qr/^end of $self->{n}\n/m;

	$self->{run}->pump
	  while $self->{run}->pumpable
	  && !($self->{out} =~ $mark && $self->{err} =~ $mark);
	my ($out, $err) = ($self->{out}, $self->{err});
	s/$mark// foreach $out, $err;
	chomp $out;
	return ($out, $err);
}

# SQL that may fail, and SQL that must not.
sub query
{
	my ($self, $sql) = @_;

	$self->begin($sql);
	return $self->end;
}

sub safe
{
	my ($self, $sql) = @_;
	my ($out, $err) = $self->query($sql);

	die "failed: $sql\n$err" if $err ne '';
	return $out;
}

sub quit
{
	my ($self) = @_;

	$self->{in} .= "\\q\n" if $self->{run}->pumpable;
	eval { $self->{run}->finish };
	return;
}

# Wait until session $s has $n workers, which session $other sees, and return their PIDs. In
# a statement that sleeps at some rows, these are workers that have rows if $asleep is true:
# others may have read all before one starts, and then it exits at once.
sub workers_of
{
	my ($other, $s, $n, $asleep) = @_;
	my $where = "leader_pid = $s->{pid}" . ($asleep ? q{ AND wait_event = 'PgSleep'} : '');

	foreach (1 .. 18_000)
	{
		my @pids = split /\n/, $other->safe("SELECT pid FROM pg_stat_activity WHERE $where;");

		return @pids if @pids >= $n;
		usleep(10_000);
	}
	die 'no workers';
}

# Terminate a worker of session $s that sleeps at a row, which session $other sees.
sub terminate_worker
{
	my ($other, $s) = @_;

	foreach (1 .. 18_000)
	{
		return
		  if $other->safe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE leader_pid = $s->{pid} AND wait_event = 'PgSleep' LIMIT 1;") eq 't';
		usleep(10_000);
	}
	die 'no worker';
}

# Run SQL in session $s, interrupt it after a part of $$duration seconds, if $round is odd
# by a timeout, otherwise by a cancel from session $other; then run $undo. Returns whether
# it was interrupted; if not, $$duration is how long it took.
sub interrupt
{
	my ($s, $other, $what, $round, $duration, $sql, $undo) = @_;
	my $seconds = 0.8 * $$duration * rand();
	my $start = time;
	my $err;

	if ($round % 2)
	{
		$err = ($s->query('SET statement_timeout = ' . (1 + int(1000 * $seconds)) . ";\n$sql"))[1];
	}
	else
	{
		$other->begin("SELECT pg_cancel_backend(pid) FROM (SELECT $s->{pid} AS pid, pg_sleep($seconds) OFFSET 0) s;");
		$err = ($s->query($sql))[1];
		$other->end;
	}
	my $took = time - $start;
	# a late cancel, or the timeout, can hit the first of these
	$s->query($_) foreach 'SET statement_timeout = 0;', $undo, 'SET statement_timeout = 0;';
	if ($err eq '')
	{
		$$duration = $took;
		return 0;
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($err, qr/ERROR:  canceling statement due to (statement timeout|user request)\n/, "$what: canceled");
	return 1;
}

# Is there to be round number $round of interrupt()? After $rounds of them, until more than a
# third of these have interrupted a statement: how many do is a matter of chance.
sub more_rounds
{
	my ($round, $rounds, $interrupted) = @_;

	return $round <= $rounds || ($interrupted <= $rounds / 3 && $round <= $rounds + 100);
}

# ----------
# The tables
# ----------

# t and p have 5000 rows on some 200 pages, twice the smallest pool; TOASTed
# values; two indexes. pusher has 1000 pages, so that reading it evicts all
# other pages of a small pool.
sub make_tables
{
	my ($s) = @_;

	$s->safe(q{
DROP TABLE IF EXISTS p;
CREATE TEMP TABLE t (id int PRIMARY KEY, k int, v int, pad text, big text);
ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
CREATE TABLE p (LIKE t INCLUDING ALL);
CREATE INDEX t_k ON t (k);
INSERT INTO p SELECT g, g % 10, g, repeat('x', 300),
	CASE WHEN g % 100 = 0 THEN repeat(g::text, 2000) END FROM generate_series(1, 5000) g;
INSERT INTO t SELECT * FROM p;
CREATE TEMP TABLE pusher AS SELECT g, repeat('y', 1000) FROM generate_series(1, 8000) g;
ANALYZE t;
ANALYZE p;
SELECT count(*) FROM t WHERE big IS NULL OR hashtext(big) IS NOT NULL;
-- a parallel query would not keep the hint bits
SET temp_parallel.enabled = off;
SELECT count(*) FROM pusher;
RESET temp_parallel.enabled;
SELECT pg_flush_local_buffers();
});
	return;
}

# The $n-th change of both tables: updates, deletes and inserts rows all over
# them, and updates TOASTed values.
sub change
{
	my ($s, $n) = @_;
	my $new = 10000 + 100 * $n;

	$s->safe(qq{
SELECT on_both('UPDATE \@ SET v = v + $n WHERE id % 13 = $n % 13');
SELECT on_both('DELETE FROM \@ WHERE id > 5000 AND id % 3 = $n % 3');
SELECT on_both('INSERT INTO \@ SELECT $new + g, g % 10, g, repeat(''n'', 300) FROM generate_series(1, 50) g');
SELECT on_both('UPDATE \@ SET big = reverse(big) WHERE id % 700 = 100 * ($n % 7)');
});
	return;
}

# A function that runs SQL in session $s, which has to return $expected, and adds to
# @$wrong otherwise.
sub expecting
{
	my ($s, $wrong) = @_;

	return sub {
		my ($what, $sql, $expected) = @_;
		my ($out, $err) = $s->query($sql);

		push @$wrong, "$what: $out$err" if $out ne $expected || $err ne '';
		return;
	};
}

# Checks the session after a fault that it has survived. Returns whether
# everything is right, and prints what is not. $brief leaves out the checks that
# write to the table.
#  - no row of the table is missing or wrong
#  - later changes are still there when their pages have been evicted
#  - the read-only phase has ended: a scan that sets hint bits dirties pages
#  - the descriptors of the table and its TOAST table have heap's own access
#    method again: an index build fails with any other one. This takes REINDEX,
#    since CREATE INDEX would rebuild the descriptor first, and comes before any
#    parallel query, which would restore the access method at its end; without
#    workers, which another part of the module prepares it for
#  - no pins and no workers remain
sub sound
{
	my ($s, $n, $brief) = @_;
	my @wrong;
	my $expect = expecting($s, \@wrong);

	$expect->('data', q{SELECT same_data('{off}');}, 'same');
	$expect->('REINDEX', 'SET max_parallel_maintenance_workers = 0; REINDEX TABLE t; RESET max_parallel_maintenance_workers;', '');
	$expect->('data, in parallel', q{SELECT same_data('{on}');}, 'same');
	$expect->('pins and workers', q{
SELECT sum(pins) FROM pg_local_buffers;
SELECT count(*) FROM pg_stat_activity WHERE leader_pid = pg_backend_pid();},
		"0\n0");
	return report($n, @wrong) if $brief;
	$expect->('later changes', qq{
SELECT FROM on_both('UPDATE \@ SET v = v - 1, big = reverse(big) WHERE id % 25 = $n % 25');
SET temp_parallel.enabled = off;
SELECT count(*) > 0 FROM pusher;
SELECT count(*) > 0 FROM pg_evict_local_buffers('t');
RESET temp_parallel.enabled;
SELECT same_data();}, "t\nt\nsame");
	$expect->('hints', qq{
BEGIN;
SELECT FROM on_both('UPDATE \@ SET v = v + 2 WHERE id % 25 = $n % 25');
COMMIT;
SELECT count(*) > 0 FROM pg_evict_local_buffers();
SELECT pg_dirty_local_buffers();
SELECT pages_hinted() > 0;}, "t\n0\nt");
	return report($n, @wrong);
}

sub report
{
	my ($n, @wrong) = @_;

	diag("after $n: $_") foreach @wrong;
	return !@wrong;
}

# Errors of workers whose leader has already failed, as with any parallel query.
our $from_core = qr/could not (attach to dynamic shared area|map dynamic shared memory segment|attach to a SharedFileSet)/;

# When all sessions of the test except $bystander, which has no tables, have
# ended, none of their files exists.
sub nothing_left
{
	my ($node, $name, $bystander) = @_;
	my $pid = defined $bystander ? $bystander->{pid} : 0;

	$node->poll_query_until('postgres', qq{
SELECT count(*) = 0 FROM pg_stat_activity
 WHERE backend_type IN ('client backend', 'parallel worker') AND pid NOT IN (pg_backend_pid(), $pid)});
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($node->safe_psql('postgres', 'SELECT * FROM session_files()'), '', "$name: no file is left");
}

# Session $s, with a pool like $pool of @pools, has had workers read pages in its memory
# if that is what the pool is for.
sub shares
{
	my ($s, $pool) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($s->safe('SELECT pages_shared > 0 FROM temp_parallel_stats();'),
		$pool =~ /shared/ ? 't' : 'f', "temp_buffers = $pool: what workers read");
}

# The server's log has no messages about problems except lines that match
# $allowed.
sub log_is_clean
{
	my ($node, $allowed) = @_;
	my @lines = grep {
		/PANIC|TRAP|WARNING|leak|still referenced|terminated by (signal|exception)|could not|invalid page|terminating background worker "temp_parallel/
	} split /\n/, slurp_file($node->logfile);

	@lines = grep { $_ !~ $allowed } @lines if defined $allowed;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(join("\n", @lines), '', 'nothing unexpected in the log');
}

1;
