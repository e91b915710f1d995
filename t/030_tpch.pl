# The 22 queries of TPC-H over temporary tables have the same results with the
# extension off, on, and on with parallel query at no cost.
#
# TPCH_DATA in the environment is a directory made by "bench/tpch/generate SCALE
# DIRECTORY"; without it, the test makes one, which needs Python and packages.

use strict;
use warnings;

use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $scale = '0.1';
my $tpch = dirname(__FILE__) . '/../bench/tpch';
my $data = $ENV{TPCH_DATA};

if (!defined $data)
{
	$data = PostgreSQL::Test::Utils::tempdir();
	command_ok([ "$tpch/generate", $scale, "$data/tpch" ], 'data generated');
	$data = "$data/tpch";
}

# Missing data are a failure, not a reason to skip the test.
die "there are no TPC-H data in \"$data\"\n" unless -s "$data/lineitem.csv";

my %queries =
  map { basename($_, '.sql') => slurp_file($_) } glob("$tpch/q[0-9][0-9].sql");
my @names = sort keys %queries;
is(scalar(@names), 22, 'there are 22 queries');

# The settings of the three runs.
my @modes = (
	[ off => 'SET temp_parallel.enabled = off;' ],
	[ on => 'SET temp_parallel.enabled = on;' ],
	[ zero => q{
SET temp_parallel.enabled = on;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
} ]);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
temp_buffers = '32MB'
max_worker_processes = 8
max_parallel_workers = 8
autovacuum = off
});
$node->start;

# One script for all, as the temporary tables belong to one session. Each result
# and each plan is written to a file. There are few buffers, so that pages are
# evicted all the time; those that are dirty after the load are flushed by the
# first parallel plan.
my $out = PostgreSQL::Test::Utils::tempdir();
my $script = "\\set persistence TEMP\n\\set data '$data'\n\\i $tpch/load.sql\n";
$script .= "\\pset format unaligned\n";
foreach my $mode (@modes)
{
	my ($mode_name, $settings) = @$mode;

	$script .= $settings . "\n";
	foreach my $name (@names)
	{
		$script .= "\\o $out/$name.$mode_name.plan\n";
		$script .= "EXPLAIN (COSTS OFF) $queries{$name}\n";
		$script .= "\\o $out/$name.$mode_name.answer\n";
		$script .= "$queries{$name}\n\\o\n";
	}
}

my ($stdout, $stderr);
my $status = $node->psql(
	'postgres', $script,
	stdout => \$stdout,
	stderr => \$stderr,
	on_error_stop => 1,
	timeout => 4 * $PostgreSQL::Test::Utils::timeout_default);
is($status, 0, 'all queries run') or diag($stderr);

# Sorted, as rows with equal sort keys may come in any order.
sub answer
{
	my ($name, $mode) = @_;

	return join("\n", sort split(/\n/, slurp_file("$out/$name.$mode.answer")));
}

my %flushes = map { $_->[0] => 0 } @modes;
foreach my $name (@names)
{
	my $expected = answer($name, 'off');

	# psql's header and footer are off: these are rows.
	isnt($expected, '', "$name has an answer");
	is(answer($name, $_), $expected, "$name gives the same answer: $_")
	  foreach qw(on zero);

	foreach my $mode (keys %flushes)
	{
		$flushes{$mode}++
		  if slurp_file("$out/$name.$mode.plan") =~ /Custom Scan \(TempFlush\)/;
	}
}

# Otherwise, the comparison above would prove nothing.
is($flushes{off}, 0, 'no plan flushes when off');
cmp_ok($flushes{on}, '>', 0, "$flushes{on} plans flush when on");
cmp_ok($flushes{zero}, '>', @names / 2,
	"$flushes{zero} plans flush when parallel query costs nothing");

$node->stop;
done_testing();
