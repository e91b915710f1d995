# UPDATE, DELETE and MERGE of a temporary table that are run ahead and fail: by an error in
# a worker, in the leader while it changes rows, in RETURNING, by a cancel or a timeout at a
# random moment, by the end of a worker; outside a transaction block, in a subtransaction
# that is rolled back, and in PL/pgSQL; and without workers.
#
# After each one the table is as before, a later change of it is not lost, and the same
# statement without the fault changes it as it changes a permanent table. Otherwise changes
# could remain or be lost, or parallel mode, the read-only phase, pins or workers remain.
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


# Statements that find the rows of one in three k by a join of the table with itself. @ is
# the table, EXPR a number that is computed where rows are found.
my %statements = (
	'UPDATE' => 'UPDATE @ x SET v = x.v + y.v + EXPR, big = reverse(x.big) FROM @ y WHERE y.id = x.id + 1 AND x.k < 3',
	'DELETE' => 'DELETE FROM @ x USING @ y WHERE y.id = x.id + 1 AND x.k < 3 AND y.v <> -EXPR - 9999999',
	'MERGE' => 'MERGE INTO @ x USING (SELECT id + 1 AS id, v, k FROM @ WHERE v + EXPR <> -99999) y ON y.id = x.id AND y.k < 3 ' .
	  'WHEN MATCHED AND y.k = 1 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET v = y.v ' .
	  'WHEN NOT MATCHED AND y.id % 50 = 0 THEN INSERT (id, k, v) VALUES (100000 + y.id, 3, y.v)');

sub statement
{
	my ($name, $table, $expr) = @_;
	my $statement = $statements{$name};

	$statement =~ s/\@/$table/g;
	$statement =~ s/EXPR/$expr || '0'/e;
	return $statement;
}

# Does the statement do the same to both tables, with workers, in a transaction that is
# rolled back?
sub changes_both
{
	my ($s, $name) = @_;
	my $before = $s->safe('SELECT workers_launched FROM temp_parallel_stats();');

	$s->safe('BEGIN; SAVEPOINT s; ' . statement($name, 't') . '; ' . statement($name, 'p') . ';');
	my $out = $s->safe(q{SELECT same_data('{off}');});
	$s->safe('ROLLBACK;');
	diag("$name: $out") if $out ne 'same';
	return $out eq 'same' && $s->safe('SELECT workers_launched FROM temp_parallel_stats();') > $before;
}

# Run a statement that must fail with $error, outside a transaction, in one, and in
# PL/pgSQL.
sub fails
{
	my ($s, $what, $name, $statement, $error) = @_;

	change($s, ++$n);
	my ($out, $err) = $s->query("$statement;");
	like($err, $error, "$what: fails");
	ok(sound($s, $n) && changes_both($s, $name), "$what: nothing of it remains");

	change($s, ++$n);
	$s->safe('BEGIN;');
	$s->safe('SELECT on_both($$UPDATE @ SET v = v + 3 WHERE k = 2$$); SAVEPOINT a;');
	($out, $err) = $s->query("$statement;");
	like($err, $error, "$what, in a subtransaction: fails");
	$s->safe('ROLLBACK TO a; SELECT on_both($$DELETE FROM @ WHERE id % 97 = 5$$); COMMIT;');
	ok(sound($s, $n), "$what, in a subtransaction: nothing of it remains");

	like($s->safe("SELECT caught(\$q\$$statement\$q\$);"), $error, "$what, in PL/pgSQL: fails");
	ok(sound($s, $n, 1), "$what, in PL/pgSQL: nothing of it remains");
	return;
}

foreach my $pool (@pools)
{
	my $s = fault_session($node, $pool);

	make_tables($s);
	$s->safe('ALTER TABLE t ADD CHECK (v <> -12345);');
	foreach my $name (sort keys %statements)
	{
		ok(changes_both($s, $name), "$pool, $name: without a fault");

		# what depends on the pool is common to all statements
		next if $pool =~ /32MB/ && $name ne 'UPDATE';
		$s->safe('SET parallel_leader_participation = off;');
		fails($s, "$pool, $name, error in a worker", $name,
			statement($name, 't', '1 / CASE ' . ($name eq 'MERGE' ? 'id' : 'x.id') . ' WHEN 4721 THEN 0 ELSE 1 END'),
			qr/division by zero/);
		$s->safe('RESET parallel_leader_participation;');
		fails($s, "$pool, $name, CHECK", $name,
			statement($name, 't', '(CASE x.id WHEN 4721 THEN -12345 - x.v - y.v ELSE 0 END)'),
			qr/violates check constraint/)
		  if $name eq 'UPDATE';
		fails($s, "$pool, $name, RETURNING", $name,
			statement($name, 't') . ' RETURNING 1 / CASE x.id WHEN 4721 THEN 0 ELSE 1 END', qr/division by zero/)
		  if $name ne 'MERGE';

		# cancels and timeouts
		my ($canceled, $duration) = (0, 0.05);
		for (my $round = 1; more_rounds($round, $rounds, $canceled); $round++)
		{
			change($s, ++$n);
			my $inside = $round % 3 == 0;
			# a statement that is not canceled is undone
			$s->safe($inside ? 'BEGIN; SAVEPOINT a;' : 'BEGIN;');
			$canceled += interrupt($s, $other, "$pool, $name, round $round", $round, \$duration,
				statement($name, 't') . ';', $inside ? 'ROLLBACK TO a; COMMIT;' : 'ROLLBACK;');
			ok(sound($s, $n, $round % 5), "$pool, $name, round $round: nothing of it remains");
		}
		cmp_ok($canceled, '>', $rounds / 3, "$pool, $name: $canceled statements were canceled");
	}

	# a worker that is terminated
	$s->begin('UPDATE t SET v = 0 WHERE pg_sleep(0.01) IS NOT NULL;');
	terminate_worker($other, $s);
	my ($out, $err) = $s->end;
	like($err, qr/terminating|parallel worker/, "$pool: a worker is terminated");
	ok(sound($s, $n), "$pool: nothing of it remains");

	# no workers to be had
	$s->safe('SET max_parallel_workers = 0;');
	foreach my $leader (qw(on off))
	{
		change($s, ++$n);
		$s->safe("SET parallel_leader_participation = $leader; SELECT on_both(\$\$UPDATE @ x SET v = y.v FROM @ y WHERE y.id = x.id + 1\$\$);");
		ok(sound($s, $n), "$pool: without workers, parallel_leader_participation = $leader");
	}
	shares($s, $pool);
	$s->quit;
}

$other->quit;
nothing_left($node, 'sessions have ended');
log_is_clean($node, qr/$from_core|terminating (connection|background worker "parallel worker")/);
$node->stop;
done_testing();
