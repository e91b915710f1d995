# Out of memory in workers and in the leader: the test limits their address
# space in the middle of a statement, so that malloc() fails in one process
# only.
#
# The statement fails and the session goes on. Otherwise, if a worker fails
# while it creates its pool, or the leader fails during the flush, the read-only
# routine could remain in the table's descriptor, or pages that were not written
# could be lost.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Build qw(build);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;
use Time::HiRes qw(usleep);

plan skip_all => 'needs prlimit and /proc' if !-e '/proc/self/status' || system('prlimit --pid $$ --as >/dev/null 2>&1') != 0;

plan skip_all => 'AddressSanitizer ends a process whose address space is limited' if $ENV{TEST_SANITIZE};

seed_moments();
my $node = fault_server('main');
my $other = fault_session($node);
my $gate = $node->data_dir . '/gate';

$other->safe(q{
-- Waits until the test has created a file, then allocates so many bytes.
CREATE FUNCTION hungry(bytes int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
	WHILE pg_stat_file('gate', true) IS NULL LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
	RETURN length(repeat('x', bytes));
END $$;
});

# Limit the address space of a process to its present size and so many kB more;
# -1 removes the limit.
sub limit
{
	my ($pid, $kb) = @_;
	my $limit = 'unlimited';

	if ($kb >= 0)
	{
		my ($size) = slurp_file("/proc/$pid/status") =~ /^VmSize:\s+(\d+) kB/m;
		$limit = 1024 * ($size + $kb);
	}
	system_or_bail('prlimit', '--pid', $pid, "--as=$limit:");
	return;
}

foreach my $pool (@pools)
{
	my $s = fault_session($node, $pool);
	my $n = 0;

	make_tables($s);

	# In workers, in the middle of their scan.
	foreach my $kb (2_000, 20_000)
	{
		change($s, ++$n);
		unlink $gate;
		$s->safe('SET parallel_leader_participation = off;');
		$s->begin('SELECT count(*) FROM t WHERE CASE WHEN id % 50 = 0 THEN hungry(100000000) > 0 ELSE true END;');
		my @workers;
		foreach (1 .. 2000)
		{
			@workers = split /\n/, $other->safe("SELECT pid FROM pg_stat_activity WHERE leader_pid = $s->{pid} AND wait_event = 'PgSleep';");
			last if @workers == 2;
			usleep(10_000);
		}
		is(scalar(@workers), 2, "$pool, $kb kB: two workers are waiting");
		limit($_, $kb) foreach @workers;
		append_to_file($gate, '');
		my (undef, $err) = $s->end;
		like($err, qr/ERROR:  out of memory\nDETAIL:  Failed on request of size .*parallel worker/s,
			"$pool, $kb kB: malloc() failed in a worker");
		$s->safe('RESET parallel_leader_participation;');
		ok(sound($s, $n), "$pool, $kb kB: nothing lost or left behind");
	}

	# In the leader, wherever it allocates memory, from planning to the result.
	my $failed = 0;
	foreach my $kb (0, 64, 256, 512, 1024, 2048, 4096, 8192)
	{
		change($s, ++$n);
		my $expected = $s->safe('SELECT count(*), sum(v) FROM p;');
		limit($s->{pid}, $kb);
		my ($answer, $err) = $s->query("SET work_mem = '64MB'; SELECT count(*), sum(a.v) FROM t a JOIN t b USING (id);");
		limit($s->{pid}, -1);
		if ($err eq '') { is($answer, $expected, "$pool, $kb kB in the leader: the answer"); }
		else
		{
			$failed++;
			like($err, qr/out of memory|Cannot allocate memory/i, "$pool, $kb kB in the leader: no memory");
		}
		ok(sound($s, $n), "$pool, $kb kB in the leader: nothing lost or left behind");
	}
	cmp_ok($failed, '>', 0, "$pool: $failed statements failed in the leader");
	shares($s, $pool);
	$s->quit;
}

# When a transaction ends, nothing may fail: once it is committed, an error ends the
# server. Another module takes the memory away while callbacks run, when a table with
# an account is changed, dropped and rolled back.
my $no_memory = build('no_memory_at_end',
	[ glob("$FindBin::RealBin/other_modules/*.[ch]"), "$FindBin::RealBin/other_modules/Makefile",
		"$FindBin::RealBin/../temp_parallel_compat.h" ]);
$other->safe("CREATE FUNCTION no_memory_at_end() RETURNS void LANGUAGE C AS '$no_memory';");
{
	local $ENV{PGOPTIONS} = "-c session_preload_libraries=$no_memory,temp_parallel";
	my $s = fault_session($node, '32MB');

	make_tables($s);
	is( $s->safe(q{
SET temp_parallel.write_temp_page_cost = 1000;
SET temp_parallel.share_local_buffers = off;
UPDATE t SET v = v;
UPDATE pusher SET g = g;
SELECT count(*) > 0 FROM t, pusher WHERE id = g;
SELECT count(*) FROM temp_parallel_tables WHERE account > 0;}),
		"t\n2", 'no memory at the end: two tables with accounts');
	is( $s->safe(q{
SELECT no_memory_at_end();
UPDATE t SET v = v;
BEGIN;
DROP TABLE pusher;
ROLLBACK;
SELECT count(*) FROM temp_parallel_tables WHERE account > 0;
DROP TABLE pusher;
SELECT count(*) FROM temp_parallel_tables WHERE account > 0;}),
		"\n2\n1", 'no memory at the end: and the accounts are right');
	$s->quit;
}

unlink $gate;
$other->quit;
nothing_left($node, 'after the sessions');
log_is_clean($node, qr/$from_core|Cannot allocate memory/);
done_testing();
