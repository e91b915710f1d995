# Processes killed during a parallel scan of a temporary table: workers and the
# leader, by SIGTERM and by SIGKILL; a client that disconnects, and a server
# that is stopped.
#
# The same while rows that are fetched in portions are run ahead, and a cancel.
#
# A session that survives must not lose data or return wrong results. The files
# of one that does not must be removed, at its exit, or after a crash when the
# server starts again. Otherwise, a leader that is terminated could crash while
# it drops its tables, since descriptors that the read-only phase refers to no
# longer exist.
#
# FAULT_ROUNDS in the environment is the number of processes per size of the
# pool that are terminated at random times.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;
use Time::HiRes qw(usleep);

my $rounds = $ENV{FAULT_ROUNDS} || 8;

seed_moments();
my $node = fault_server('main');
my $query = 'SELECT count(*), sum(v), sum(hashtext(big)) FROM t;';

# The same, but with a short sleep at every fifth row, so that the workers are
# in the middle of their scans when they are killed.
my $slow_query = 'SELECT count(*), sum(v), sum(hashtext(big)) FROM t WHERE CASE WHEN id % 5 = 0 THEN pg_sleep(0.002) IS NOT NULL ELSE true END;';
# One that must not end by itself before a busy machine has started the workers.
my $endless_query = $slow_query =~ s/0\.002/0.02/r;

my $other = fault_session($node);

# Rows that are run ahead, with files for those that exceed work_mem; and what is right.
# With my.sleep, workers are slow, too.
$other->safe(q{
CREATE FUNCTION slow(i int) RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	IF i % 5 = 0 THEN
		PERFORM pg_sleep(current_setting('my.sleep')::float);
	END IF;
	RETURN true;
END $$;
CREATE FUNCTION one_row() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	SELECT sum(v) INTO n FROM t WHERE slow(id);
	RETURN n;
END $$;
CREATE FUNCTION loops() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n bigint := 0;
BEGIN
	FOR r IN SELECT id, v, pad FROM t WHERE slow(id) ORDER BY v, id LOOP
		n := n + r.v;
	END LOOP;
	RETURN n;
END $$;
});
my %portions = (
	'SELECT INTO' => [ 'SELECT one_row();', 'SELECT sum(v) FROM p;' ],
	'FOR' => [ 'SELECT loops();', 'SELECT sum(v) FROM p;' ],
	'a cursor' => [
		'BEGIN; DECLARE c CURSOR FOR SELECT id, v, pad FROM t WHERE slow(id) ORDER BY v DESC, id; FETCH 2 FROM c; COMMIT;',
		'SELECT id, v, pad FROM p ORDER BY v DESC, id LIMIT 2;'
	]);

# The segments of dynamic shared memory of a process, where the system tells.
sub segments
{
	my ($pid) = @_;
	my %names;

	open my $maps, '<', "/proc/$pid/maps" or return;
	m{ (/dev/shm/\S+)} && $names{$1}++ while <$maps>;
	close $maps;
	return sort keys %names;
}

# In session $s, begin one of %portions, and wait for its workers. Returns one of these,
# and the segments that there were not before.
sub begin_portions
{
	my ($s, $name) = @_;
	my %before = map { $_ => 1 } segments($s->{pid});

	$s->begin("SET work_mem = '64kB'; SET my.sleep = 0.02; $portions{$name}[0]");
	my @pids = workers_of($other, $s, 1, 1);
	my @segments = grep { !$before{$_} } segments($s->{pid});

	usleep(rand 100_000);
	return ($pids[0], @segments);
}

# ----------
# Workers, by SIGTERM
# ----------

# The query fails with the worker's error, or has ended before; the session goes
# on.
foreach my $pool (@pools)
{
	my $s = fault_session($node, $pool);
	my $good = 0;
	my $failed = 0;

	make_tables($s);
	$s->safe('SET parallel_leader_participation = off;');
	foreach my $n (1 .. $rounds)
	{
		change($s, $n);
		my $expected = $s->safe($query =~ s/\bt\b/p/r);
		$s->safe("SELECT same_data();") if $n % 2;    # flushed, or dirty
		$s->begin($slow_query);
		my @pids = workers_of($other, $s, 1);
		usleep(rand 60_000);
		$other->query("SELECT pg_terminate_backend($pids[rand @pids]);");	# the worker may have exited
		my ($answer, $err) = $s->end;

		if ($err ne '')
		{
			$failed++ if $err =~ /ERROR: .*(terminating background worker|terminating connection|lost connection to parallel worker|parallel worker failed to initialize)/;
		}
		$good++ if sound($s, $n)
		  && ($err eq '' ? $answer eq $expected : $err =~ /administrator command|parallel worker/);
		diag("round $n: $answer$err") if $err eq '' && $answer ne $expected;
	}
	is($good, $rounds, "temp_buffers = $pool: sound after a worker was terminated");
	cmp_ok($failed, '>', 0, "temp_buffers = $pool: queries failed with their worker");
	shares($s, $pool);
	$s->quit;
}
nothing_left($node, 'workers terminated', $other);

# ----------
# The leader, by SIGTERM
# ----------

# It is in the read-only phase when it aborts its transaction and drops its
# tables.
foreach my $pool (@pools)
{
	foreach my $n (1 .. $rounds)
	{
		my $s = fault_session($node, $pool);

		make_tables($s);
		change($s, $n);
		$s->safe('BEGIN; SAVEPOINT a;') if $n % 3 == 0;
		$s->begin($n % 2 ? $slow_query : "DO 'BEGIN FOR i IN 1 .. 50 LOOP PERFORM count(*) FROM t; UPDATE t SET v = v WHERE id = i; END LOOP; END';");
		workers_of($other, $s, 1) if $n % 2;
		usleep(rand 60_000);
		$other->safe("SELECT pg_terminate_backend($s->{pid});");
		$s->end;
		$s->quit;
	}
	nothing_left($node, "temp_buffers = $pool: leader terminated", $other);
}

# A client that has disconnected: the leader notices when it sends the result.
{
	my $s = fault_session($node, '800kB');

	make_tables($s);
	$s->begin($slow_query);
	workers_of($other, $s, 1);
	$s->{run}->signal('KILL');
	$s->quit;
	nothing_left($node, 'client gone', $other);
}

# transaction_timeout ends the session.
SKIP:
{
	skip 'no transaction_timeout before 17', 2
	  if $other->safe("SELECT count(*) FROM pg_settings WHERE name = 'transaction_timeout';") eq '0';
	my $s = fault_session($node, '800kB');

	make_tables($s);
	$s->safe('SET parallel_leader_participation = off; SET transaction_timeout = 300;');
	my (undef, $err) = $s->query("BEGIN; $slow_query $slow_query $slow_query $slow_query SELECT pg_sleep(100);");
	like($err, qr/FATAL:  terminating connection due to transaction timeout/, 'transaction_timeout');
	$s->quit;
	nothing_left($node, 'transaction_timeout', $other);
}

# ----------
# Rows that are run ahead
# ----------
foreach my $pool (grep { $_ ne '32MB' } @pools)
{
	my $s = fault_session($node, $pool);
	my $n = 0;

	make_tables($s);
	foreach my $name (sort keys %portions)
	{
		foreach my $fault ('terminate', 'cancel')
		{
			my $what = "temp_buffers = $pool, $name, $fault";

			change($s, ++$n);
			my ($worker, @segments) = begin_portions($s, $name);

			ok(@segments > 0, "$what: there is shared memory") if -e '/proc/self/maps';
			$other->safe("SELECT pg_${fault}_backend(" . ($fault eq 'cancel' ? $s->{pid} : $worker) . ');');
			my ($answer, $err) = $s->end;
			like($err, $fault eq 'cancel' ? qr/canceling statement due to user request/ : qr/administrator command|parallel worker/, "$what: an error");
			is(join(' ', grep { -e } @segments), '', "$what: no shared memory is left");
			is($s->safe(q{SELECT f FROM session_files() f WHERE f !~ '/t\d+_';}), '', "$what: no file is left");
			ok(sound($s, $n), "$what: sound");
			is($s->safe("SET my.sleep = 0; $portions{$name}[0]"), $s->safe($portions{$name}[1]), "$what: the same again");
		}
	}
	shares($s, $pool);
	$s->quit;
	foreach my $name (sort keys %portions)
	{
		$s = fault_session($node, $pool);
		make_tables($s);
		my ($worker, @segments) = begin_portions($s, $name);

		$other->safe("SELECT pg_terminate_backend($s->{pid});");
		$s->end;
		$s->quit;
		nothing_left($node, "temp_buffers = $pool, $name, leader terminated", $other);
		is(join(' ', grep { -e } @segments), '', "temp_buffers = $pool, $name, leader terminated: no shared memory is left");
	}
}

log_is_clean($node, qr/$from_core|could not send data to client/);

# ----------
# Workers and leader, by SIGKILL
# ----------

# The server restarts and removes the files of the tables.
foreach ([ 'worker' ], [ 'leader' ], [ 'worker', 'FOR' ], [ 'leader', 'a cursor' ])
{
	my ($victim, $portions) = @$_;
	my $s = fault_session($node, '800kB');
	my $file;
	my $log_start = -s $node->logfile;
	my @segments;

	make_tables($s);
	change($s, 1);
	$file = $node->data_dir . '/' . $s->safe("SELECT pg_relation_filepath('t');");
	if (defined $portions)
	{
		(undef, @segments) = begin_portions($s, $portions);
	}
	else
	{
		$s->begin($endless_query);
	}
	my @workers = workers_of($other, $s, 2, 1);
	ok(-s $file, "$victim killed: there is a file while the session lives");
	kill 'KILL', $victim eq 'worker' ? $workers[0] : $s->{pid};
	$s->end;
	$s->quit;
	$other->quit;
	$node->wait_for_log(qr/database system is ready to accept connections/, $log_start);

	like(slurp_file($node->logfile, $log_start), qr/terminated by signal 9/, "$victim killed: by signal 9");
	ok(!-e $file, "$victim killed: the file is gone");
	nothing_left($node, "$victim killed");
	is(join(' ', grep { -e } @segments), '', "$victim killed: no shared memory is left");

	# a new session
	$other = fault_session($node);
	$s = fault_session($node, '800kB');
	is($s->safe('SELECT count(*) > 5000 FROM p;'), 't', "$victim killed: the permanent table is there");
	make_tables($s);
	change($s, 2);
	ok(sound($s, 2), "$victim killed: temporary tables after the restart");
	$s->quit;
}

# ----------
# The server is stopped
# ----------
foreach my $mode ('fast', 'immediate')
{
	my $s = fault_session($node, '800kB');
	my $file;

	make_tables($s);
	$file = $node->data_dir . '/' . $s->safe("SELECT pg_relation_filepath('t');");
	$s->begin($endless_query);
	workers_of($other, $s, 1, 1);
	$other->quit;
	$node->stop($mode);
	$s->end;
	$s->quit;
	ok(!-e $file, "stopped in mode $mode: the file is gone") if $mode eq 'fast';
	$node->start;
	ok(!-e $file, "stopped in mode $mode: no file after the start");
	nothing_left($node, "stopped in mode $mode");
	$other = fault_session($node);
}
$other->quit;

log_is_clean($node, qr/$from_core|could not send data to client|terminated by signal 9|terminating connection because of (crash|unexpected|immediate)/);
done_testing();
