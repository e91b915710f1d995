# Some of core's regression tests with all their tables temporary: the results
# must be the same without the extension and with it, when each plan that can be
# parallel is run by workers only. bench/oracle runs all of core's tests.
#
# CORE_TESTS in the environment is the directory src/test/regress of the server's
# sources, which no Debian package installs.

use strict;
use warnings;

use Cwd;
use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $sources = $ENV{CORE_TESTS}
  or plan skip_all => 'CORE_TESTS does not name the server\'s tests';

my @tests = qw(aggregates brin btree_index create_index_spgist gin indirect_toast
  inherit join partition_join select_distinct select_parallel subselect
  tablesample union window);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => ['--data-checksums']);
$node->append_conf(
	'postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
max_worker_processes = 16
max_parallel_workers = 8
autovacuum = off
log_statement = none
log_min_messages = error
log_min_error_statement = panic
});
$node->start;
$node->safe_psql('template1', 'CREATE EXTENSION temp_parallel');
my ($version) = $node->safe_psql('template1', 'SHOW server_version_num') =~ /^(\d+)\d{4}$/;

$ENV{PYTHONPATH} = getcwd() . '/' . dirname(__FILE__) . '/../bench';
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;

my $out = PostgreSQL::Test::Utils::tempdir();
my @common = ('--directory', $sources, '--out', $out, '--tests', @tests);
foreach my $mode (qw(off forced))
{
	command_ok(
		[
			'python3', '-m', 'coretests.run', $mode, '--major', $version,
			'--libdir', $out, '--scratch', $out, '--timeout', 120, @common
		],
		"tests run in mode $mode");
}

my ($stdout, $stderr);
my $status = run_log([ 'python3', '-m', 'coretests.compare', 'forced', @common ],
	'>', \$stdout, '2>', \$stderr);
ok($status, 'the answers agree') or diag($stdout, $stderr);

# Otherwise, the comparison above would prove nothing.
my ($parallel) = $stdout =~ /^forced: (\d+) statements flushed temporary tables/m;
cmp_ok($parallel || 0, '>', 500, ($parallel || 0) . ' statements ran in parallel over temporary tables');

unlike(slurp_file($node->logfile), qr/TRAP:|PANIC:|was terminated by signal|invalid page/,
	'no crash, no damaged page');

$node->stop;
done_testing();
