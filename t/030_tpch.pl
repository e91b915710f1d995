# The 22 queries of TPC-H over temporary tables give the same answers with the
# extension off, on, and on with everything that speaks against a parallel plan
# at no cost.
#
# TPCH_DATA names a directory made by "bench/tpch/generate SCALE DIRECTORY";
# without it the test makes one, for which it needs Python and its packages.

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

# Data that are not there are a failure, never a reason to skip.
die "there are no TPC-H data in \"$data\"\n" unless -s "$data/lineitem.csv";

my %queries =
  map { basename($_, '.sql') => slurp_file($_) } glob("$tpch/q[0-9][0-9].sql");
my @names = sort keys %queries;
is(scalar(@names), 22, 'there are 22 queries');

# What tells the three runs apart.
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

# Temporary tables live in one session, so all is one script. Each answer and
# each plan goes to a file of its own. The buffers are few, so that pages are
# evicted all the time, and what is left dirty at the end of the load is
# flushed by the first plan that is parallel.
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

# Rows that tie in ORDER BY may come in any order.
sub answer
{
	my ($name, $mode) = @_;

	return join("\n", sort split(/\n/, slurp_file("$out/$name.$mode.answer")));
}

my %flushes = map { $_->[0] => 0 } @modes;
foreach my $name (@names)
{
	my $expected = answer($name, 'off');

	# The psql header and footer are off, so what is there is rows.
	isnt($expected, '', "$name has an answer");
	is(answer($name, $_), $expected, "$name gives the same answer: $_")
	  foreach qw(on zero);

	foreach my $mode (keys %flushes)
	{
		$flushes{$mode}++
		  if slurp_file("$out/$name.$mode.plan") =~ /Custom Scan \(TempFlush\)/;
	}
}

# Otherwise the above would show nothing.
is($flushes{off}, 0, 'no plan flushes when off');
cmp_ok($flushes{on}, '>', 0, "$flushes{on} plans flush when on");
cmp_ok($flushes{zero}, '>', @names / 2,
	"$flushes{zero} plans flush when parallel query costs nothing");

$node->stop;
done_testing();
