# Processes killed during a parallel scan of a temporary table: workers and the
# leader, by SIGTERM and by SIGKILL; a client that disconnects, and a server
# that is stopped.
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

my $rounds = $ENV{FAULT_ROUNDS} || 12;

seed_moments();
my $node = fault_server('main');
my $query = 'SELECT count(*), sum(v), sum(hashtext(big)) FROM t;';

# The same, but with a short sleep at every fifth row, so that the workers are
# in the middle of their scans when they are killed.
my $slow_query = 'SELECT count(*), sum(v), sum(hashtext(big)) FROM t WHERE CASE WHEN id % 5 = 0 THEN pg_sleep(0.002) IS NOT NULL ELSE true END;';

my $other = fault_session($node);

# Wait until session $s has $n workers, and return their PIDs.
sub workers_of
{
	my ($s, $n) = @_;

	foreach (1 .. 2000)
	{
		my @pids = split /\n/, $other->safe("SELECT pid FROM pg_stat_activity WHERE leader_pid = $s->{pid};");

		return @pids if @pids >= $n;
		usleep(10_000);
	}
	die 'no workers';
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
		my @pids = workers_of($s, 1);
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
		workers_of($s, 1) if $n % 2;
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
	workers_of($s, 1);
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

log_is_clean($node, qr/$from_core|could not send data to client/);

# ----------
# Workers and leader, by SIGKILL
# ----------

# The server restarts and removes the files of the tables.
foreach my $victim ('worker', 'leader')
{
	my $s = fault_session($node, '800kB');
	my $file;
	my $log_start = -s $node->logfile;

	make_tables($s);
	change($s, 1);
	$file = $node->data_dir . '/' . $s->safe("SELECT pg_relation_filepath('t');");
	$s->begin($slow_query);
	my @workers = workers_of($s, 2);
	ok(-s $file, "$victim killed: there is a file while the session lives");
	kill 'KILL', $victim eq 'worker' ? $workers[0] : $s->{pid};
	$s->end;
	$s->quit;
	$other->quit;
	$node->wait_for_log(qr/database system is ready to accept connections/, $log_start);

	like(slurp_file($node->logfile, $log_start), qr/terminated by signal 9/, "$victim killed: by signal 9");
	ok(!-e $file, "$victim killed: the file is gone");
	nothing_left($node, "$victim killed");

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
	$s->begin($slow_query);
	workers_of($s, 1);
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
