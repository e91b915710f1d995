# INSERT INTO a temporary table ... SELECT in parallel that fails: by an error in a
# worker, in the leader while it inserts, in RETURNING, in an AFTER trigger, by a
# cancel or a timeout at a random moment, by the end of a worker; outside a
# transaction block, in a subtransaction, and in PL/pgSQL; and without workers.
#
# After each one, no row of the statement is in the target, and the same INSERT
# succeeds. Otherwise rows could remain or be lost, the target could be left marked
# as being written, or parallel mode, the read-only phase, pins or workers remain.
#
# FAULT_ROUNDS in the environment is the number of cancels per size of the pool.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

my $rounds = $ENV{FAULT_ROUNDS} || 8;

seed_moments();
my $node = fault_server('main');
my $other = fault_session($node);
my $n = 0;

my $insert = 'INSERT INTO target SELECT id, k, v, pad, big FROM t';

$other->safe(q{
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO p (id) VALUES (0);
	RAISE 'in the trigger';
END $$;
});

# Rows in the target: by a scan, by its indexes, and in its TOAST table.
my $left = q{
SET enable_seqscan = off;
SELECT count(*) FROM target WHERE id > -100;
SELECT count(*) FROM target WHERE k >= 0;
RESET enable_seqscan;
SELECT count(*), coalesce(sum(hashtext(big)), 0) FROM target;
};

# Check that the statement in session $s has left nothing, and that the target can
# be filled. $inside: in a transaction, which is rolled back to savepoint a.
sub whole
{
	my ($s, $inside) = @_;
	my @wrong;
	my $expect = expecting($s, \@wrong);

	$expect->('rows of the failed statement', $left, "0\n0\n0|0");
	# which parallel mode would forbid
	$expect->('parallel mode', 'CREATE TEMP TABLE x (id int); INSERT INTO x VALUES (1); UPDATE x SET id = 2; DROP TABLE x;', '');
	push @wrong, 'not parallel'
	  if $s->safe("EXPLAIN (COSTS OFF) $insert;") !~ /Gather.*TempFlush/s;
	$expect->('INSERT', "$insert;", '');
	$expect->('what it inserted', q{
SELECT count(*) FROM (SELECT * FROM target EXCEPT ALL SELECT * FROM p) x;
SELECT count(*) FROM (SELECT * FROM p EXCEPT ALL SELECT * FROM target) x;}, "0\n0");
	$expect->('evicted', q{
SELECT count(*) > 0 FROM pg_evict_local_buffers();
SELECT count(*) FROM (SELECT * FROM p EXCEPT ALL SELECT * FROM target) x;
SELECT count(*) FROM target WHERE k = 3 AND id > 0;}, "t\n0\n" . $s->safe('SELECT count(*) FROM p WHERE k = 3;'))
	  unless $inside;
	# the target as a source of a parallel query, which flushes it
	$expect->('target read in parallel', 'SELECT sum(v) FROM target;', $s->safe('SELECT sum(v) FROM p;'));
	$expect->('TRUNCATE', 'TRUNCATE target;', '');
	diag("after $n: $_") foreach @wrong;
	return !@wrong;
}

# Run a statement that must fail with $error, outside a transaction, in one, and in
# PL/pgSQL.
sub fails
{
	my ($s, $name, $statement, $error) = @_;
	my ($out, $err);

	# what depends on the pool is common to all errors
	return if $name =~ /32MB/ && $name !~ /unique/;
	change($s, ++$n);
	($out, $err) = $s->query("$statement;");
	like($err, $error, "$name: fails");
	ok(whole($s) && sound($s, $n), "$name: nothing of it remains");

	change($s, ++$n);
	$s->safe('BEGIN; INSERT INTO target (id) VALUES (-1); SAVEPOINT a;');
	($out, $err) = $s->query("$statement;");
	like($err, $error, "$name, in a subtransaction: fails");
	$s->safe('ROLLBACK TO a; DELETE FROM target WHERE id = -1;');
	ok(whole($s, 1), "$name, in a subtransaction: nothing of it remains");
	$s->safe("SAVEPOINT b; $insert; RELEASE b; COMMIT;");
	is($s->safe('SELECT count(*) FROM (SELECT * FROM p EXCEPT ALL SELECT * FROM target) x;'), '0',
		"$name, in a subtransaction: the transaction can commit");
	$s->safe('TRUNCATE target;');
	ok(sound($s, $n), "$name, in a subtransaction: the source is whole");

	change($s, ++$n);
	like($s->safe("SELECT caught(\$q\$$statement\$q\$);"), $error, "$name, in PL/pgSQL: fails");
	ok(whole($s) && sound($s, $n, 1), "$name, in PL/pgSQL: nothing of it remains");
	return;
}

foreach my $pool (@pools)
{
	my $s = fault_session($node, $pool);

	make_tables($s);
	$s->safe(q{
CREATE TEMP TABLE target (id int PRIMARY KEY, k int, v int, pad text, big text, CHECK (v <> -12345));
ALTER TABLE target ALTER big SET STORAGE EXTERNAL;
CREATE INDEX ON target (k);
});
	ok(whole($s), "$pool: without a fault");

	$s->safe('SET parallel_leader_participation = off;');
	fails($s, "$pool, error in a worker",
		'INSERT INTO target SELECT id, k, v / CASE id WHEN 4711 THEN 0 ELSE 1 END, pad, big FROM t',
		qr/division by zero/);
	$s->safe('RESET parallel_leader_participation;');
	fails($s, "$pool, unique violation",
		'INSERT INTO target SELECT CASE id WHEN 4711 THEN 1 ELSE id END, k, v, pad, big FROM t',
		qr/duplicate key value violates unique constraint "target_pkey"/);
	fails($s, "$pool, CHECK",
		'INSERT INTO target SELECT id, k, CASE id WHEN 4711 THEN -12345 ELSE v END, pad, big FROM t',
		qr/violates check constraint/);
	fails($s, "$pool, RETURNING", "$insert RETURNING 1 / CASE id WHEN 4711 THEN 0 ELSE 1 END",
		qr/division by zero/);
	$s->safe('CREATE TRIGGER fail AFTER INSERT ON target EXECUTE FUNCTION fail();');
	my ($out, $err) = $s->query("$insert;");
	like($err, qr/in the trigger/, "$pool, AFTER trigger: fails");
	$s->safe('DROP TRIGGER fail ON target;');
	ok(whole($s) && sound($s, ++$n), "$pool, AFTER trigger: nothing of it remains");

	# cancels and timeouts
	my ($canceled, $duration) = (0, 0.2);
	for (my $round = 1; more_rounds($round, $rounds, $canceled); $round++)
	{
		change($s, ++$n);
		my $inside = $round % 3 == 0;
		$s->safe('BEGIN; INSERT INTO target (id) VALUES (-1); SAVEPOINT a;') if $inside;
		if (interrupt($s, $other, "$pool, round $round", $round, \$duration, "$insert;",
				$inside ? 'ROLLBACK TO a; DELETE FROM target WHERE id = -1;' : ''))
		{
			$canceled++;
		}
		elsif (!$inside)
		{
			$s->safe('TRUNCATE target;');
		}
		my $ok = whole($s, $inside);
		$s->safe('COMMIT;') if $inside;
		ok($ok && sound($s, $n, $round % 5), "$pool, round $round: nothing of it remains");
	}
	cmp_ok($canceled, '>', $rounds / 3, "$pool: $canceled statements were canceled");

	# a worker that is terminated
	$s->begin("$insert WHERE pg_sleep(0.01) IS NOT NULL;");
	terminate_worker($other, $s);
	($out, $err) = $s->end;
	like($err, qr/terminating|parallel worker/, "$pool: a worker is terminated");
	ok(whole($s) && sound($s, $n), "$pool: nothing of it remains");

	# no workers to be had
	$s->safe('SET max_parallel_workers = 0;');
	ok(whole($s) && sound($s, $n), "$pool: without workers");
	$s->safe('SET parallel_leader_participation = off;');
	ok(whole($s) && sound($s, $n), "$pool: without workers, leader only gathers");
	shares($s, $pool);
	$s->quit;
}

$other->quit;
nothing_left($node, 'sessions have ended');
# before the shutdown, which may meet the last psql's backend on its way out
log_is_clean($node, qr/$from_core|terminating (connection|background worker "parallel worker")/);
$node->stop;
done_testing();
