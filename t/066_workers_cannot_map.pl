# Workers that cannot map the leader's memory, as the leader's process is no longer dumpable when
# pages are shared; and those of a leader that was not from the start, which shares a System V
# segment in place of a file. The former take no part in the plan, which the leader runs alone. If they did, they
# would read files that nobody has written; if one ended with an error, a statement would
# fail that works without the module; if one had claimed a part of the plan, that part's rows
# would be lost. Where the leader does not run the plan, it must be known that workers can
# map, or all rows would be lost.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProcessLimits;
use Test::More;

my $node = limited_server();
$node->safe_psql('postgres', q{
CREATE FUNCTION waits(id int) RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	IF id % 10000 = 1 AND pg_backend_pid() = current_setting('test.leader')::int THEN
		PERFORM pg_sleep(0.1);
	END IF;
	RETURN true;
END $$;
CREATE FUNCTION expensive(int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE COST 10000000 AS 'BEGIN RETURN $1 % 40 = 0; END';
});

# The leader waits at some rows, so that workers have the time to read others, if they do.
my $fill = q{
SELECT set_config('test.leader', pg_backend_pid()::text, false) \\gset unused_
CREATE TEMP TABLE filled AS SELECT g AS id, g % 10 AS k, repeat('x', 100) AS pad FROM generate_series(1, 20000) g;
CREATE TEMP TABLE u AS SELECT g AS id, g % 7 AS k FROM generate_series(1, 9000) g;
ANALYZE filled, u;
CREATE TEMP VIEW t AS SELECT * FROM filled WHERE waits(id);
};
my $hide = 'SELECT FROM set_dumpable(false);';
my $query = q{SELECT count(*), sum(id), sum(length(pad)) FROM t;};
my $answer = '20000|200010000|2000000';
my $stats = q{SELECT pages_shared > 0, pages_flushed > 0, coalesce(not_shared, '') FROM temp_parallel_stats();};
my $reason = "a worker could not map the leader's memory";
my $alone = 'SET parallel_leader_participation = off;';

is($node->safe_psql('postgres', "$hide $fill $query $stats $query $stats"),
	"$answer\nt|f|\n$answer\nt|f|", 'a process that is not dumpable shares a segment');

# The first statement is run by the leader, and pages are written from the next one on.
is($node->safe_psql('postgres', "$fill $hide $query $query $stats"),
	"$answer\n$answer\nt|t|$reason", 'one that is not dumpable once its pool is shared');
is($node->safe_psql('postgres', "$fill $query $hide $query $query $stats"),
	"$answer\n$answer\n$answer\nt|t|$reason", 'one that workers could map before');
is($node->safe_psql('postgres', "$fill $hide SELECT count(*) FROM (SELECT id FROM t WHERE expensive(id) LIMIT 2) s; $query $query $stats"),
	"2\n$answer\n$answer\nt|t|$reason", 'with LIMIT');

# Without the leader, nothing is shared before it is known that workers can map it, which
# the first workers find out.
is($node->safe_psql('postgres', "$alone $fill $hide $query $stats $query $stats"),
	"$answer\nf|t|$reason\n$answer\nf|t|$reason", 'without the leader: pages are written');
is($node->safe_psql('postgres', "$alone $fill $query $stats UPDATE t SET k = k; $query SELECT pages_shared > 0, not_shared IS NULL FROM temp_parallel_stats();"),
	"$answer\nf|t|\n$answer\nt|t", 'without the leader: shared when workers have mapped the memory');
{
	my ($out, $err);

	$node->psql('postgres', "SET temp_parallel.run_ahead = off; $alone $fill $query UPDATE t SET k = k; $query $hide UPDATE t SET k = k; $query $query $stats",
		stdout => \$out, stderr => \$err, on_error_stop => 0);
	like($err, qr/ERROR:  could not map the leader's local buffers: Permission denied/,
		'without the leader: a statement fails if workers can no longer map the memory');
	is($out, "$answer\n$answer\n$answer\nt|t|$reason", 'from then on, pages are written');
}

# A function that the leader calls while pages are shared: its statement gets these pages, too, as
# they must not be written. If its own leader does not run the plan, it has no workers as
# long as it is not known that they can map the memory.
my $nested = q{
CREATE FUNCTION pg_temp.nested(i int) RETURNS SETOF bigint LANGUAGE plpgsql PARALLEL RESTRICTED
SET parallel_leader_participation = off AS $$
BEGIN
	RETURN QUERY SELECT sum(id) FROM t WHERE k <> i % 10;
END $$;};
my $calls = 'SELECT count(*), sum(n) FROM (SELECT (SELECT pg_temp.nested(id)) AS n FROM t WHERE id % 6000 = 0 OFFSET 0) s;';
my $rows = $node->safe_psql('postgres', "SET temp_parallel.enabled = off; $fill $nested $calls");
is($node->safe_psql('postgres', "$fill $nested $hide $calls $stats $calls"),
	"$rows\nt|f|$reason\n$rows", 'a statement within one that shares pages');
is($node->safe_psql('postgres', "$fill $nested $calls $calls SELECT not_shared IS NULL FROM temp_parallel_stats();"),
	"$rows\n$rows\nt", 'the same where workers can map the memory');

# Each kind of plan, by the leader alone, and with workers that read a segment. What has the workers' memory or files prepared for
# them, or has them claim a part, must not wait for those that take no part.
my %plans = (
	'sequential scan' => [ '', 'SELECT sum(id), count(*) FROM t WHERE k = 3', 'Parallel Seq Scan' ],
	'index scan' => [ 'CREATE INDEX ON filled (id); SET enable_seqscan = off; SET enable_bitmapscan = off;',
		'SELECT sum(k), count(pad) FROM t WHERE id > 100', 'Parallel Index Scan' ],
	'bitmap scan' => [ 'CREATE INDEX ON filled (id); SET enable_seqscan = off; SET enable_indexscan = off;',
		'SELECT sum(k), count(pad) FROM t WHERE id > 100 AND id < 15000', 'Parallel Bitmap Heap Scan' ],
	'BRIN, whose index is read when the plan is initialized' => [
		'CREATE INDEX ON filled USING brin (id); SET enable_seqscan = off;',
		'SELECT sum(k), count(pad) FROM t WHERE id > 100 AND id < 15000', 'Parallel Bitmap Heap Scan' ],
	'parallel hash' => [ 'SET enable_mergejoin = off; SET enable_nestloop = off;',
		'SELECT count(*), sum(u.k) FROM t JOIN u USING (id)', 'Parallel Hash Join' ],
	'parallel hash full join' => [ 'SET enable_mergejoin = off; SET enable_nestloop = off;',
		'SELECT count(*), sum(u.k) FROM t FULL JOIN u ON u.id = t.id + 3', 'Hash' ],
	'Gather Merge' => [ '', 'SELECT id, k FROM t WHERE k < 3 ORDER BY pad, id DESC', 'Gather Merge' ],
	'Append' => [ '', 'SELECT count(*), sum(id) FROM (SELECT id FROM t WHERE k = 1 UNION ALL SELECT id FROM u) s',
		'Parallel Append' ],
	'Append with children that one process runs' => [ 'CREATE INDEX ON u (k); ALTER TABLE u SET (parallel_workers = 0);',
		'SELECT count(*), sum(id) FROM (SELECT id FROM t WHERE k = 1 UNION ALL SELECT id FROM u WHERE k = 2 UNION ALL SELECT 5) s',
		'Parallel Append' ],
	'subplan and parameter' => [ '', 'SELECT count(*) FROM t WHERE id > (SELECT avg(id) FROM u) AND id IN (SELECT id FROM u WHERE k > 2 OFFSET 0)',
		'InitPlan' ],
	'relaunch' => [ '',
		'SELECT v, (SELECT id FROM t WHERE k = 3 ORDER BY id LIMIT 1 OFFSET v) FROM generate_series(1, 3) v', 'Gather' ],
	'partitions that are pruned when the plan is initialized' => [
		'CREATE TEMP TABLE p (id int, k int) PARTITION BY RANGE (id);
		 CREATE TEMP TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (5000);
		 CREATE TEMP TABLE p2 PARTITION OF p FOR VALUES FROM (5000) TO (12000);
		 CREATE TEMP TABLE p3 PARTITION OF p FOR VALUES FROM (12000) TO (30000);
		 INSERT INTO p SELECT id, k FROM t; ANALYZE p;',
		'SELECT count(*), sum(id), sum(k) FROM p WHERE id < 9000 * extract(month FROM to_timestamp(0))::int', 'Subplans Removed: 1' ],
	'two Gathers' => [ '', 'SELECT * FROM (SELECT k, sum(id) FROM t GROUP BY k) a JOIN (SELECT k, count(*) FROM u GROUP BY k) b USING (k) ORDER BY k',
		'Gather.*Gather' ],
	'run ahead' => [ '', 'UPDATE t SET k = -k WHERE id % 3 = 1 AND length(pad) = 100 RETURNING id, k', 'RunAhead' ],
);

foreach my $name (sort keys %plans)
{
	my ($prepare, $statement, $shape) = @{ $plans{$name} };
	my $off = "SET temp_parallel.enabled = off; ";
	my $expected = join "\n", sort split /\n/, $node->safe_psql('postgres', "$fill $prepare $off $statement");

	# the indexes are new, and all is dirty
	my $out = $node->safe_psql('postgres', "$fill $prepare $hide EXPLAIN (COSTS OFF) $statement; SELECT '---'; $statement; SELECT '---'; $stats");
	my ($plan, $rows, $state) = split /^---\n/m, $out;

	like($plan, qr/TempFlush/, "$name: has workers");
	like($plan, qr/$shape/s, "$name: the plan");
	is(join("\n", sort split /\n/, $rows), $expected, "$name: the answer of the leader alone");
	like($state, qr/^t\|[ft]\|$reason/, "$name: pages were shared, and no worker could map them");

	$out = $node->safe_psql('postgres', "$hide $fill $prepare $statement; SELECT '---'; $stats SELECT workers_launched > 0 FROM temp_parallel_stats();");
	($rows, $state) = split /^---\n/m, $out;
	is(join("\n", sort split /\n/, $rows), $expected, "$name: the answer with a segment");
	like($state, qr/^t\|[ft]\|\nt$/, "$name: pages were shared in it");
}

# What workers report for EXPLAIN belongs to the node that they would have run.
like($node->safe_psql('postgres', "$fill $hide EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query"),
	qr/Workers Launched: 2.*TempFlush.*Worker 0: .*rows=0.*Partial Aggregate[^\n]*rows=1(\.00)? loops=1/s, 'EXPLAIN of workers that take no part');

# The segment goes with the session, even with one that is killed.
SKIP:
{
	skip 'the system does not list segments', 2 if !-r '/proc/sysvipc/shm';
	my $out;
	$node->psql('postgres', qq{SELECT pg_backend_pid() AS pid \\gset
\\setenv PID :pid
$hide $fill
\\! awk -v pid="\$PID" '\$5 == pid { n++ } END { print pid, n }' /proc/sysvipc/shm
\\! kill -KILL "\$PID"
SELECT 1;}, stdout => \$out);
	my ($pid, $segment) = $out =~ /^(\d+) (\d*)$/m;
	is($segment, 1, 'a session has a segment');
	$node->poll_query_until('postgres', 'SELECT true');
	is(scalar(grep { (split)[4] eq $pid } split /\n/, slurp_file('/proc/sysvipc/shm')), 0, 'none is left of a session that was killed');
}

$node->stop;
ok(slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal (?!9:)|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
