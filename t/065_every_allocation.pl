# Out of memory at each allocation of a statement, one after the other, in the leader
# and in its workers: memory_fault.c makes the n-th one fail.
#
# The statement returns the right rows or fails, and the session goes on. Otherwise,
# what the failed call was to set up would be used, or what was set up before it would
# remain: the read-only routine in a descriptor, pins, a setting, a file.
#
# A worker makes about a thousand allocations, most of them before it runs the plan. By
# default, up to 40 of a statement fail, evenly distributed from a random one on; ALLOCATIONS in
# the environment is another number, and EVERY_ALLOCATION=1 tries all.

use strict;
use warnings;

use File::Path qw(rmtree);
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

plan skip_all => 'AddressSanitizer has allocation functions of its own' if $ENV{TEST_SANITIZE};

seed_moments();

# ----------
# The fault
# ----------

my $dir = PostgreSQL::Test::Utils::tempdir();
my $order = "$dir/order";
my $serial = 0;

# The $nth allocation fails in the process $pid, or if that is 0 in those that the
# server starts from now on, until the next call; with 0 as $nth, none. Returns the number of
# allocations since the last call.
sub fail_allocation
{
	my ($pid, $nth) = @_;

	open my $fh, '+<', $order or die "$order: $!";
	sysread $fh, my $old, 16;
	sysseek $fh, 0, 0;
	syswrite $fh, pack('l4', ++$serial, $pid, $nth, 0);
	close $fh;
	return (unpack 'l4', $old)[3];
}

sub start_server
{
	my ($cc) = run_command([ 'pg_config', '--cc' ]);

	system_or_bail(split(' ', $cc), '-fPIC', '-shared', '-o', "$dir/memory_fault.so",
		"$FindBin::RealBin/memory_fault.c", '-lpthread');
	append_to_file($order, pack('l4', 0, 0, 0, 0));
	local $ENV{LD_PRELOAD} = join(' ', grep { defined } $ENV{LD_PRELOAD}, "$dir/memory_fault.so");
	local $ENV{MEMORY_FAULT} = $order;
	return fault_server('main', 'jit = off');	# LLVM aborts without memory
}

# ----------
# The statements
# ----------

# Each in a transaction that has made pages dirty and is rolled back, with the query that
# shows its effect.
my %statements = (
	'a join' => [ 'SELECT count(*), sum(a.v), sum(length(a.big)) FROM t a JOIN t b USING (id);', '' ],
	'a DELETE that is run ahead' =>
	  [ 'DELETE FROM t USING t u WHERE t.id = u.id AND u.v % 7 = 0;', 'SELECT count(*) FROM t;' ],
	'a cursor' =>
	  [ 'DECLARE c CURSOR FOR SELECT k, sum(v) FROM t GROUP BY k ORDER BY 2; FETCH 3 FROM c;', 'FETCH ALL FROM c;' ],
	'an index build' =>
	  [ 'CREATE INDEX t_v ON t (v);', 'SET LOCAL enable_seqscan = off; SELECT sum(k) FROM t WHERE v BETWEEN 5 AND 300;' ]
);

my $no_memory = qr/out of memory|Cannot allocate memory|could not load library|failed to restore old locale/;
# The server does not always say that memory is the reason, when a worker starts or ends.
my $from_worker = qr/parallel worker/;

# Run $statement with the $nth allocation of $pid failing. Returns what it and its check
# have printed, the error, and the number of allocations.
sub run_with_fault
{
	my ($s, $statement, $pid, $nth) = @_;
	my ($sql, $check) = @{ $statements{$statement} };

	$s->safe('BEGIN; UPDATE t SET k = k + 1 WHERE id % 10 = 3; SAVEPOINT s;');
	fail_allocation($pid, $nth);
	my ($out, $err) = $s->query($sql);
	my $allocations = fail_allocation(0, 0);
	$out .= $s->safe($check) if $err eq '' && $check ne '';
	$s->safe('ROLLBACK;');
	return ($out, $err, $allocations);
}

my $node = start_server();

foreach my $pool (@pools)
{
	my $s = fault_session($node, $pool);
	my $n = 0;

	make_tables($s);
	$s->safe('ALTER TABLE t SET (parallel_workers = 2);');
	$s->safe('SET max_parallel_maintenance_workers = 2; SET temp_parallel.processors = 8; SET parallel_leader_participation = off;');
	foreach my $statement (sort keys %statements)
	{
		foreach my $process ('the leader', 'workers')
		{
			my $pid = $process eq 'workers' ? 0 : $s->pid;
			my ($expected, undef, $allocations) = run_with_fault($s, $statement, $pid, 0);
			my $step = $ENV{EVERY_ALLOCATION} ? 1 : 1 + int($allocations / ($ENV{ALLOCATIONS} || 40));
			my ($tried, $failed, @wrong) = (0, 0);

			for (my $nth = 1 + int(rand($step)); $nth <= $allocations; $nth += $step)
			{
				my ($out, $err) = run_with_fault($s, $statement, $pid, $nth);

				$tried++;
				$failed++ if $err ne '';
				push @wrong, "$nth: $err" if $err ne '' && $err !~ /$no_memory|$from_worker/;
				push @wrong, "$nth: $out instead of $expected" if $err eq '' && $out ne $expected;
				next if $tried % 20;
				push @wrong, "$nth: the session is not sound" if !sound($s, $n, 1);
				$s->safe('VACUUM t;');	# of the rows that were rolled back, or it grows
			}
			is(join("\n", @wrong), '', "$pool, $statement: memory fails in $process");
			cmp_ok($failed, '>', 0, "$failed of $tried statements fail, with $allocations allocations");
			ok(sound($s, ++$n), 'nothing lost or left behind');
		}
	}
	shares($s, $pool);
	$s->quit;
}

# The server does not remove temporary files if opendir() has no memory.
foreach (slurp_file($node->logfile) =~ /could not open directory "(base\/pgsql_tmp\/[^"]*\.fileset)": Cannot allocate memory/g)
{
	rmtree($node->data_dir . "/$_");
}
nothing_left($node, 'after the sessions');
log_is_clean($node, qr/$from_core|$no_memory|$from_worker/);
done_testing();
