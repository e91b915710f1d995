# The bound that the accounts of temporary tables guarantee: for any sequence of
# statements, the total planner cost is at most twice that of the best decisions in
# hindsight. bench/promise runs random sequences (loads, updates, TRUNCATE, DROP,
# rollbacks, and queries of one to three tables, some with cached plans), half of
# them by an adversary that changes a table as soon as it has been flushed.
#
# PROMISE_SEED, PROMISE_FIRST and PROMISE_SEQUENCES in the environment are the seed,
# the number of the first random sequence and how many there are, PROMISE_SECONDS how
# long they may take, if their number is not given. A failure prints
# the sequence and its number, for PROMISE_FIRST, with the costs of each query by the
# tables that workers can read.

use strict;
use warnings;

use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
autovacuum = off
log_statement = none
log_min_error_statement = panic
});
$node->start;

$ENV{PYTHONPATH} = dirname(__FILE__) . '/../bench';
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;

my ($stdout, $stderr);
my $status = run_log(
	[
		'python3', '-m', 'promise',
		'--seed', $ENV{PROMISE_SEED} || 1,
		'--first', $ENV{PROMISE_FIRST} || 1,
		'--sequences', $ENV{PROMISE_SEQUENCES} || 200,
		'--seconds', $ENV{PROMISE_SEQUENCES} ? 1e6 : $ENV{PROMISE_SECONDS} || 45
	],
	'>', \$stdout, '2>', \$stderr);

ok($status, 'no sequence costs more than twice what it had to') or diag($stdout, $stderr);

# If few sequences flushed, the test above would prove nothing.
my ($sequences, $flushing) = $stdout =~ /^(\d+) random sequences, (\d+) with flushes/m;
cmp_ok($flushing || 0, '>', ($sequences || 0) / 3, 'of ' . ($sequences || 0) . ' random sequences, a third flushed');

# No deterministic rule guarantees less than 2, and this sequence shows it.
my ($close) = $stdout =~ /^reloaded when flushed: ratio (\S+)/m;
cmp_ok($close || 0, '>=', 1.8, 'an adversary comes close to 2');
note $stdout;

is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server is up');
$node->stop;
done_testing();
