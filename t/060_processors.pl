# The number of processors that the session determines with temp_parallel.processors
# at 0: those that it may be scheduled on. Otherwise, in a container with one processor
# of a large machine, each worker would count as having its own processor.
#
# And what is launched while other processes use them: no workers for short statements.
# Otherwise, several sessions would do less at once than without the module.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'only Linux has nproc and taskset' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION temp_parallel');
my ($affinity) = split /\n/, `nproc`;
is($node->safe_psql('postgres', 'SELECT processors FROM temp_parallel_stats()'),
	$affinity, 'as many processors as the server may be scheduled on');
is($node->safe_psql('postgres', 'SET temp_parallel.processors = 77; SELECT processors FROM temp_parallel_stats()'),
	77, 'as many as are set');

# Statements that cost less than 100 times the launch, while more processes run than there are
# processors.
my @loops = map { IPC::Run::start([ $^X, '-e', '1 while 1' ]) } 0 .. 2 * `getconf _NPROCESSORS_ONLN`;
my $short = q{
LOAD 'temp_parallel';
SET client_min_messages = warning;
SET temp_buffers = '64MB';
SET temp_parallel.write_temp_page_cost = 0;
SET max_parallel_maintenance_workers = 2;
CREATE TEMP TABLE t AS SELECT g AS id, md5(g::text) AS pad FROM generate_series(1, 300000) g;
ANALYZE t;
};
my $statements = q{
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM t WHERE pad LIKE '%77%';
SET client_min_messages = debug1;
CREATE INDEX ON t (pad);
};

# What the statements say after these settings: the plan, and the messages of the build.
sub said
{
	my (undef, $out, $err) = $node->psql('postgres', "$short; $_[0]; $statements");

	return "$out\n$err";
}

SKIP:
{
	skip 'the system does not tell how many processes run', 7 if !-r '/proc/loadavg';
	my $said = said('');
	like($said, qr/Workers Launched: 0\n.*Flush Skipped: other processes use the processors/s, 'a short statement');
	like($said, qr/without workers: other processes use the processors/, 'a short index build');
	$said = said('SET temp_parallel.processors = 8');
	like($said, qr/Workers Launched: [12]\n.*with request for [12] parallel workers/s, 'with processors of its own');
	$said = said('SET parallel_setup_cost = 0');
	like($said, qr/Workers Launched: [12]\n.*with request for [12] parallel workers/s, 'if a launch costs nothing');

	# Nothing is lost by a flush that costs too much where workers would not be launched anyway.
	my $account = q{
CREATE EXTENSION IF NOT EXISTS temp_parallel;
SET temp_parallel.share_local_buffers = off;
SET temp_parallel.write_temp_page_cost = 100;
SELECT count(*) FROM t WHERE pad LIKE '%77%';
SELECT 'account', account > 0 FROM temp_parallel_tables;
};
	like($node->safe_psql('postgres', "$short; $account"), qr/account\|f/, 'no account for a short statement');
	like($node->safe_psql('postgres', "$short; SET temp_parallel.processors = 8; $account"),
		qr/account\|t/, 'but if it would have workers');
	like($node->safe_psql('postgres', qq{
$short;
SET temp_parallel.share_local_buffers = off;
SET plan_cache_mode = force_generic_plan;
SELECT pg_flush_local_buffers('t') > 0;
PREPARE q AS SELECT count(*) FROM t WHERE pad LIKE '%77%';
EXECUTE q;
SELECT pg_temp_buffers_dirty('t') > 0;
SET temp_parallel.write_temp_page_cost = 100;
EXECUTE q;
SELECT 'account', account > 0 FROM temp_parallel_tables;
}), qr/account\|f/, 'nor for one whose cached plan is left to the leader');
}
$_->kill_kill foreach @loops;
$node->stop;

# A file and not a pipe, which would break if the command cannot be started.
my $query = PostgreSQL::Test::Utils::tempdir() . '/query';
append_to_file($query, "SELECT 'found ' || processors FROM temp_parallel_stats()\n");

# The number that a single-user session finds if it is started by command @how.
sub found
{
	my (@how) = @_;
	my ($out, $err);

	IPC::Run::run([ @how, 'postgres', '--single', '-D', $node->data_dir, 'postgres' ],
		'<', $query, '>', \$out, '2>', \$err);
	return $out =~ /"found (\d+)"/ ? $1 : "$out$err";
}

SKIP:
{
	skip 'no taskset', 1 if system('taskset -c 0 true 2>/dev/null') != 0;
	my ($first) = `taskset -cp $$` =~ /: (\d+)/;
	is(found('taskset', '-c', $first), 1, 'one processor to be scheduled on');
}

done_testing();
