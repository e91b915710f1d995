# What the tests of faults share: a server, sessions that can be left running
# while something happens to them, a temporary table t with a permanent twin p
# of the same history, and what must hold after a fault.
#
# A test that wants random moments takes them from rand(), whose seed is fixed,
# printed, and FAULT_SEED in the environment if that is set.

package TempParallel;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(fault_server fault_session seed_moments make_tables change
  sound nothing_left log_is_clean $from_core);

# Every plan that can be parallel is, and a flush costs nothing.
our $settings = q{
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET cpu_tuple_cost = 1;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
SET temp_parallel.worker_temp_buffers = '800kB';
SET client_min_messages = warning;
};

sub seed_moments
{
	my $seed = $ENV{FAULT_SEED} || 4711;

	srand($seed);
	diag("FAULT_SEED=$seed");
	return;
}

# A server with checksums that restarts after a crash, the extension, and the
# functions that the checks below call.
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

-- run a command for both tables: @ stands for the table
CREATE FUNCTION on_both(command text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace(command, '@', 't');
	EXECUTE replace(command, '@', 'p');
END $$;

-- all of a table, TOASTed values included
CREATE FUNCTION digest(tab regclass, OUT digest text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT count(*) || '':'' || sum(hashtextextended(x::text, 0)) FROM %s x', tab)
	   INTO digest;
END $$;

-- pages that a serial scan of t makes dirty: those that it evicts, and those that
-- are dirty at its end (none is before)
CREATE FUNCTION pages_hinted() RETURNS bigint LANGUAGE plpgsql
SET temp_parallel.enabled = off AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(v) FROM t' INTO plan;
	RETURN (plan -> 0 -> 'Plan' ->> 'Local Written Blocks')::bigint + pg_dirty_local_buffers();
END $$;

-- t by its index and by sequential scan, in these modes of the module, against p
CREATE FUNCTION same_data(modes text[] DEFAULT '{off,on}') RETURNS text LANGUAGE plpgsql
SET temp_parallel.enabled = off AS $$
DECLARE
	expected text := digest('p');
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

-- what is in the files of the server that only a session's life can justify
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

# fault_session($node, $pool) - a session of its own, whose temp_buffers is
# $pool, or the server's default.
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
	$self->safe($settings . (defined $pool ? "SET temp_buffers = '$pool';" : ''));
	$self->{pid} = $self->safe('SELECT pg_backend_pid();');
	return $self;
}

sub pid { return $_[0]->{pid}; }

# begin(SQL) - hand it to the server, and do not wait.
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

# end() - wait until that has ended, by itself or with the session. Returns what
# it has said on stdout and on stderr.
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

# ----------
# The tables
# ----------

# t and p: 5000 rows, some 200 pages, twice the smallest pool; wide values out
# of line; two indexes. And pusher, 1000 pages, which fills a small pool by being
# read.
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
SELECT count(*) FROM t WHERE big IS NULL OR length(big) > 0;
-- serially: a parallel read would drop the hints
SET temp_parallel.enabled = off;
SELECT count(*) FROM pusher;
RESET temp_parallel.enabled;
SELECT pg_flush_local_buffers();
});
	return;
}

# The $n-th change of both tables: rows all over them are updated, deleted and
# inserted, and wide values written anew.
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

# What must hold after a fault that the session has survived. Quiet unless
# something does not; returns whether all does. $brief leaves out what writes to
# the table.
#  - its data are all there
#  - changes that come later are there after their pages have been evicted
#  - reads keep their hints again: a scan that finds unhinted rows makes pages
#    dirty, as it would not in the read-only phase
#  - heap's own access method is back, of the table and of its TOAST table: an
#    index build refuses any other. REINDEX and not CREATE INDEX, since that one
#    would rebuild the table's descriptor first; and before any parallel read,
#    which would put it back in its own time
#  - no pin and no worker is left over
sub sound
{
	my ($s, $n, $brief) = @_;
	my @wrong;
	my $expect = sub {
		my ($what, $sql, $expected) = @_;
		my ($out, $err) = $s->query($sql);

		push @wrong, "$what: $out$err" if $out ne $expected || $err ne '';
		return;
	};

	$expect->('data', q{SELECT same_data('{off}');}, 'same');
	$expect->('REINDEX', 'REINDEX TABLE t;', '');
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

# What workers of any query say whose leader has gone on without them.
our $from_core = qr/could not (attach to dynamic shared area|map dynamic shared memory segment|attach to a SharedFileSet)/;

# Once all sessions of the test but $bystander, which has no tables, have ended:
# none of their files is there.
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

# The server's log has nothing but what the test has caused: lines that match
# $allowed.
sub log_is_clean
{
	my ($node, $allowed) = @_;
	my @lines = grep {
		/PANIC|TRAP|WARNING|leak|still referenced|terminated by (signal|exception)|could not|invalid page/
	} split /\n/, slurp_file($node->logfile);

	@lines = grep { $_ !~ $allowed } @lines if defined $allowed;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(join("\n", @lines), '', 'nothing unexpected in the log');
}

1;
