# Index builds on temporary tables by workers that fail: by a duplicate key, by an
# expression, by a full disk, by a cancel or a timeout at a random moment, by the end of a
# worker or of the session; outside a transaction block, in a subtransaction, and in PL/pgSQL.
#
# After each one, the index is not there, no worker, pin or file remains, the table is
# whole, and the same build succeeds. Otherwise pages that a canceled flush has not written
# could be lost, parallel mode or the setting that tells workers could remain, or an index
# without some of the rows.
#
# FAULT_ROUNDS in the environment is the number of cancels per size of the pool.

use strict;
use warnings;

use Errno qw(ENOSPC);
use FindBin;
use lib $FindBin::RealBin;
use IoFault;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

my $rounds = $ENV{FAULT_ROUNDS} || 8;

seed_moments();
my $node = with_io_fault(sub { return fault_server('main'); });
my $other = fault_session($node);
my $n = 0;
my $amcheck = $other->safe(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck';});

$other->safe('CREATE EXTENSION amcheck;') if $amcheck;

# A build that takes long, by core's functions alone, and what it builds
my $build = 'CREATE UNIQUE INDEX built ON t (id, length(repeat(pad, 100)), md5(big)) INCLUDE (v)';
my $check = $amcheck ? q{SELECT bt_index_parent_check('built', true, true);} : q{SELECT '';};

sub make
{
	my ($s) = @_;

	make_tables($s);
	$s->safe('ALTER TABLE t SET (parallel_workers = 2);');
	return;
}

# Check that the build in session $s has left nothing, and that it can be repeated.
sub whole
{
	my ($s) = @_;
	my @wrong;
	my $expect = expecting($s, \@wrong);

	$expect->('the index', q{SELECT count(*) FROM pg_class WHERE relname = 'built';}, '0');
	$expect->('the setting', 'SHOW temp_parallel.index_build;', '');
	# which parallel mode would forbid
	$expect->('parallel mode', 'CREATE TEMP TABLE x (id int); INSERT INTO x VALUES (1); UPDATE x SET id = 2; DROP TABLE x;', '');
	my $before = $s->safe('SELECT flushes FROM temp_parallel_stats();');
	$expect->('the build', "$build;", '');
	$expect->('by workers', "SELECT flushes - $before FROM temp_parallel_stats();", '1');
	$expect->('what it built', $check, '');
	$expect->('its rows', q{SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(*) FROM p WHERE NOT EXISTS (SELECT FROM t WHERE t.id = p.id AND t.v = p.v OFFSET 0); RESET enable_seqscan; RESET enable_bitmapscan;}, '0');
	$expect->('DROP INDEX', 'DROP INDEX built;', '');
	diag("after $n: $_") foreach @wrong;
	return !@wrong;
}

# What is shown of a build in session $s while it scans the table with workers
sub progress
{
	my ($s, $statement) = @_;
	my $progress = '';

	$s->begin("$statement;");
	$progress = $other->safe(qq{SELECT concat_ws(', ', command, phase, blocks_total > 0, tuples_total, partitions_total)
  FROM pg_stat_progress_create_index p WHERE pid = $s->{pid} AND blocks_total > 0
   AND EXISTS (SELECT FROM pg_stat_activity WHERE leader_pid = p.pid);})
	  while $progress eq '';
	$other->safe("SELECT pg_cancel_backend($s->{pid});");
	$s->end;
	return $progress;
}

# Run a build that must fail with $error, outside a transaction, in one, and in PL/pgSQL.
sub fails
{
	my ($s, $name, $statement, $error, $before, $after) = @_;
	my ($out, $err);

	# in a share of the tests: what depends on the pool is common to all errors
	return if $ENV{FAULT_POOLS} && $name =~ /32MB/ && $name !~ /duplicate/;
	change($s, ++$n);
	($out, $err) = $s->query("$before; $statement; $after;");
	like($err, $error, "$name: fails");
	ok(whole($s) && sound($s, $n), "$name: nothing of it remains");

	change($s, ++$n);
	$s->safe('BEGIN; SAVEPOINT a;');
	($out, $err) = $s->query("$before; $statement;");
	like($err, $error, "$name, in a subtransaction: fails");
	$s->safe("ROLLBACK TO a; $after;");
	ok(whole($s), "$name, in a subtransaction: nothing of it remains");
	$s->safe("$build; COMMIT;");
	is($s->safe($check), '', "$name, in a subtransaction: the transaction can commit");
	$s->safe('DROP INDEX built;');
	ok(sound($s, $n), "$name, in a subtransaction: the table is whole");

	change($s, ++$n);
	$s->safe("$before;");
	like($s->safe("SELECT caught(\$q\$$statement\$q\$);"), $error, "$name, in PL/pgSQL: fails");
	$s->safe("$after;");
	ok(whole($s) && sound($s, $n, 1), "$name, in PL/pgSQL: nothing of it remains");
	return;
}

foreach my $pool ('800kB', '32MB')
{
	my $s = fault_session($node, $pool);
	my ($out, $err);

	make($s);
	ok(whole($s), "$pool: without a fault");
	# The leader, which cannot be made to wait, may have read all before a worker begins.
	my $read = qr/parallel worker has read [1-9]\d* pages/;
	foreach (1 .. 50)
	{
		($out, $err) = $s->query("SET client_min_messages = debug2; $build; SET client_min_messages = warning; DROP INDEX built;");
		last if $err =~ $read;
	}
	like($err, $read, "$pool: workers read the table");

	fails($s, "$pool, duplicate key", 'CREATE UNIQUE INDEX built ON t (k, length(repeat(pad, 100)))',
		qr/could not create unique index "built"/, 'SELECT 1 WHERE false', 'SELECT 1 WHERE false');
	fails($s, "$pool, an expression", 'CREATE INDEX built ON t (length(repeat(pad, 100)), (100 / (id % 1000 - 7)))',
		qr/division by zero/, 'SELECT 1 WHERE false', 'SELECT 1 WHERE false');

	# the disk is full when the table is written, the rows to sort, or the index
	foreach my $what ('table', 'sort', 'index')
	{
		change($s, ++$n);
		$s->safe("$build; DROP INDEX built; SELECT pg_flush_local_buffers();") if $what eq 'index';
		fail_io('write', 'fail', ENOSPC, 3, 1000, $what eq 'sort' ? '/pgsql_tmp' : '/t');
		($out, $err) = $s->query("$build;");
		mend_io();
		like($err, qr/No space left on device/, "$pool, no space for the $what: fails");
		ok(whole($s) && sound($s, $n), "$pool, no space for the $what: nothing of it remains");
	}

	# cancels and timeouts
	my ($canceled, $duration) = (0, 0.5);
	for (my $round = 1; more_rounds($round, $rounds, $canceled); $round++)
	{
		change($s, ++$n);
		my $inside = $round % 3 == 0;
		$s->safe('BEGIN; SAVEPOINT a;') if $inside;
		if (interrupt($s, $other, "$pool, round $round", $round, \$duration, "$build;",
				$inside ? 'ROLLBACK TO a;' : ''))
		{
			$canceled++;
		}
		elsif (!$inside)
		{
			$s->safe('DROP INDEX built;');
		}
		my $ok = whole($s);
		$s->safe('COMMIT;') if $inside;
		ok($ok && sound($s, $n, $round % 5), "$pool, round $round: nothing of it remains");
	}
	cmp_ok($canceled, '>', $rounds / 3, "$pool: $canceled builds were canceled");

	# the progress of a build is that of one on a permanent table
	my $slow = $build =~ s/100\)/6000)/r;
	$s->safe('CREATE UNLOGGED TABLE other WITH (parallel_workers = 2) AS TABLE t;');
	my @progress = map { progress($s, $_) } $slow, $slow =~ s/ ON t / ON other /r;
	is($progress[0], $progress[1], "$pool: progress");
	$s->safe('DROP TABLE other;');

	# a worker that is terminated
	$s->begin("$slow;");
	$other->safe('SELECT pg_terminate_backend(' . (workers_of($other, $s, 1))[0] . ');');
	($out, $err) = $s->end;
	like($err, qr/terminating|parallel worker/, "$pool: a worker is terminated");
	ok(whole($s) && sound($s, ++$n), "$pool: nothing of it remains");

	# fewer workers than asked for: another session may have taken them
	$s->safe('SET max_parallel_workers = 1;');
	ok(whole($s), "$pool: with one worker");
	$s->safe('RESET max_parallel_workers;');

	# the session is terminated
	$s->begin("$slow;");
	workers_of($other, $s, 1);
	$other->safe("SELECT pg_terminate_backend($s->{pid});");
	($out, $err) = $s->end;
	like($err, qr/terminating connection/, "$pool: the session is terminated");
	$s->quit;
	nothing_left($node, "$pool, terminated session", $other);
}
log_is_clean($node, qr/$from_core|terminating (connection|background worker "parallel worker")|could not create unique index|No space left on device/);

# The process that is started to see whether a worker is free ends by itself: if it was
# terminated, the log of a busy server would have a FATAL for some of the indexes.
{
	my $s = fault_session($node, '800kB');

	make($s);
	# the postmaster writes the message, and may reload later than a session
	my $log_start = -s $node->logfile;
	$other->safe('ALTER SYSTEM SET log_min_messages = debug1; SELECT pg_reload_conf();');
	$node->wait_for_log(qr/parameter "log_min_messages" changed/, $log_start);
	$s->safe("$build;");
	$node->wait_for_log(qr/background worker "temp_parallel" \(PID \d+\) exited with exit code 0/, $log_start);
	pass('the process that has been started ends by itself');
	$other->safe('ALTER SYSTEM RESET log_min_messages; SELECT pg_reload_conf();');
	$s->quit;
}

# A worker, and the leader, that are killed: the server restarts.
foreach my $which ('leader_pid = ', 'pid = ')
{
	my $s = fault_session($node, '800kB');

	make($s);
	$s->begin($build =~ s/100\)/6000)/r . ';');
	my $log_start = -s $node->logfile;
	my ($pid) = workers_of($other, $s, 1);
	kill 'KILL', $which =~ /leader/ ? $pid : $s->{pid};
	my ($out, $err) = $s->end;
	like($err, qr/crash of another server process|server closed the connection/, "killed, $which: the session ends");
	$s->quit;
	$other->quit;
	$node->wait_for_log(qr/database system is ready to accept connections/, $log_start);
	$other = fault_session($node);
	nothing_left($node, "killed, $which", $other);
}
$other->quit;
$node->stop;
done_testing();
