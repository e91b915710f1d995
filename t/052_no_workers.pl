# Parallel plans over temporary tables that get fewer workers than planned, or
# none, since other sessions use them or max_parallel_workers = 0, with and
# without the leader's participation; and no shared memory, or no segment of it, for the
# workers.
#
# A leader without workers reads alone what it has flushed, still in the
# read-only phase. Otherwise, it could return only some of the rows, write pages
# while workers read, or lose later changes.

use strict;
use warnings;

use Config;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

seed_moments();
# shared memory in a directory whose permissions the test can change
my $node = fault_server('main', "dynamic_shared_memory_type = mmap\n");
my $holder = fault_session($node);
my $n = 0;
my $fewer = 0;

# Check that $expected of two planned workers are launched for a statement in
# $s, and that its result is right, with and without the leader's participation.
# On a busy machine the first worker may have ended before the leader asks for the
# second, which then gets the only place that is free. $fewer counts when not.
sub launched
{
	my ($s, $expected, $name) = @_;
	my $query = 'SELECT count(*), sum(v), sum(hashtext(big)) FROM @;';

	foreach my $leader ('on', 'off')
	{
		change($s, ++$n);
		my $plan = $s->safe("SET parallel_leader_participation = $leader; EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) " . $query =~ s/@/t/r);

		my $launched = $expected == 1 ? '[12]' : $expected;
		$fewer++ if $plan =~ /Workers Launched: 1$/m;
		like($plan, qr/Workers Planned: 2\n\s*Workers Launched: $launched\n.*TempFlush.*\n\s*(Shared: pages|Flushed: written)=[1-9]/,
			"$name, leader $leader: $expected of 2 workers launched after pages were shared or written");
		change($s, ++$n);
		is($s->safe($query =~ s/@/t/r), $s->safe($query =~ s/@/p/r), "$name, leader $leader: the answer");
		ok(sound($s, $n), "$name, leader $leader: nothing lost or left behind");
	}
	return;
}

foreach my $pool (@pools)
{
	my $s = fault_session($node, $pool);

	make_tables($s);
	launched($s, 2, "$pool, all workers");

	$s->safe('SET max_parallel_workers = 0;');
	launched($s, 0, "$pool, max_parallel_workers = 0");

	# two of three are in use by another session
	make_busy(2);
	$s->safe('SET max_parallel_workers = 3;');
	launched($s, 1, "$pool, one worker left");
	$s->safe('SET max_parallel_workers = 2;');
	launched($s, 0, "$pool, no worker left");
	make_idle();

	# all of max_worker_processes are in use: seven by another session, one by
	# the server
	$s->safe('SET max_parallel_workers = 100;');
	make_busy(7);
	launched($s, 0, "$pool, no process left");
	# The first parallel statement of a session must not write its table for nobody.
	foreach my $share ($Config{ptrsize} < 8 ? () : 'on', 'off')
	{
		my $cost = $share eq 'on' ? 10 : 0.1;

		is($node->safe_psql('postgres', qq{
SET temp_buffers = '32MB';
SET temp_parallel.share_local_buffers = $share;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET cpu_tuple_cost = 1;
SET temp_parallel.write_temp_page_cost = $cost;
CREATE TEMP TABLE f AS SELECT g, repeat('x', 100) AS pad FROM generate_series(1, 100000) g;
SELECT count(*), sum(g) FROM f;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*), sum(g) FROM f;
SELECT pages_flushed, pages_shared > 0, coalesce(not_shared, '') FROM temp_parallel_stats();
}) =~ s/^(?!\d| *Flush Skipped).*\n//gmr, "100000|5000050000\n" .
			($share eq 'on' ? "0|t|" : "              Flush Skipped: no worker is free\n0|f|temp_parallel.share_local_buffers is off"),
			"$pool, share_local_buffers = $share, no process left: no page is written");
	}
	make_idle();
	launched($s, 2, "$pool, all workers again");

	# After the flush, the leader cannot create the workers' shared memory.
	my $memory = $node->data_dir . '/pg_dynshmem';
	change($s, ++$n);
	chmod 0500, $memory or die "chmod: $!";
	my ($out, $err) = $s->query('SELECT count(*), sum(v) FROM t;');
	chmod 0700, $memory or die "chmod: $!";
	like($err, qr/ERROR:  .*could not open shared memory segment "pg_dynshmem/,
		"$pool, no shared memory: the server's own error");
	ok(sound($s, $n), "$pool, no shared memory: nothing lost or left behind");
	launched($s, 2, "$pool, all workers after that");
	shares($s, $pool);
	$s->quit;
}

# Let another session use so many workers.
sub make_busy
{
	my ($workers) = @_;

	$holder->safe(qq{
SET parallel_leader_participation = off;
SET max_parallel_workers_per_gather = $workers;
DROP TABLE IF EXISTS busy;
CREATE TABLE busy AS SELECT g FROM generate_series(1, 5000) g;
ALTER TABLE busy SET (parallel_workers = $workers);
ANALYZE busy;});
	$holder->begin('SELECT count(*) FROM busy WHERE pg_sleep(1000) IS NULL;');
	$node->poll_query_until('postgres',
		"SELECT count(*) = $workers FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep'")
	  or die 'the workers are not busy';
	return;
}

sub make_idle
{
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($holder->{pid})");
	$holder->end;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'");
	return;
}

cmp_ok($fewer, '>', 0, 'fewer workers were launched than planned, but some');
$holder->quit;
nothing_left($node, 'after the sessions');
log_is_clean($node, qr/$from_core|could not open shared memory segment/);

# All segments of dynamic shared memory are in use, as each subquery keeps its own until the
# query ends. Then workers cannot be launched, and a table must not be written for nobody.
my $few = fault_server('few', q{
dynamic_shared_memory_type = mmap
max_connections = 8
max_worker_processes = 2
autovacuum_max_workers = 1
});
my $query = 'SELECT ' . join(' + ', ('(SELECT count(*) FROM a)') x 400, '(SELECT sum(g) FROM b)');

is($few->safe_psql('postgres', qq{
$TempParallel::settings
SET max_parallel_workers_per_gather = 1;
SET temp_parallel.share_local_buffers = off;
CREATE TEMP TABLE a AS SELECT g FROM generate_series(1, 100) g;
CREATE TEMP TABLE b AS SELECT g FROM generate_series(1, 1000) g;
ANALYZE a, b;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query;
SELECT (temp_parallel_flush_cost('b')).dirty_pages > 0, (temp_parallel_flush_cost('a')).dirty_pages;
$query;
}) =~ s/^(?!\d|t|.*(Workers Launched: 1|Flush Skipped)).*\n//gmr =~ s/^ +//gmr =~ s/^(.+\n)\1+/$1/gmr,
	"Workers Launched: 1\nFlush Skipped: no dynamic shared memory is left for workers\nt|0\n540500", 'no segment left');
log_is_clean($few, $from_core);
done_testing();
