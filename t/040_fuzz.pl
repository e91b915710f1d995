# A minute of bench/fuzz, which compares the results of random queries over
# random temporary tables, with random settings: each query with the extension
# off, on, and on with parallel query at no cost.
#
# FUZZ_SEED in the environment is the seed, FUZZ_SECONDS the duration, or FUZZ_QUERIES the
# number of queries. A failure prints how to repeat it, and a script for psql.

use strict;
use warnings;

use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @length = $ENV{FUZZ_QUERIES} ? ('--queries', $ENV{FUZZ_QUERIES}) : ('--seconds', $ENV{FUZZ_SECONDS} || 60);
my $seed = $ENV{FUZZ_SEED} || 1;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => ['--data-checksums']);
# The settings of bench/fuzz, which explains them.
$node->append_conf(
	'postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
max_worker_processes = 16
max_parallel_workers = 8
autovacuum = off
log_statement = none
log_min_error_statement = panic
default_text_search_config = 'pg_catalog.simple'
synchronous_commit = off
});
$node->start;

$ENV{PYTHONPATH} = dirname(__FILE__) . '/../bench';
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;

my $out = PostgreSQL::Test::Utils::tempdir();
my ($stdout, $stderr);
my $status = run_log(
	[
		'python3', '-m', 'fuzzer',
		'--seed', $seed,
		@length,
		'--timeout', 10,
		'--reduce', 60,
		'--log', $node->logfile,
		'--out', $out
	],
	'>', \$stdout, '2>', \$stderr);

ok($status, 'no difference, no error, nothing in the server\'s log')
  or diag($stdout, $stderr, map { slurp_file($_) } glob("$out/*.sql"));

my ($queries) = $stdout =~ /^(\d+) queries, \d+ failures$/m;
cmp_ok($queries || 0, '>', 0, ($queries || 0) . ' queries were compared');

# Otherwise, the comparison above would prove nothing.
my ($share) = $stdout =~ /flushed (\d+) %/;
cmp_ok($share || 0, '>=', 40, 'of the queries at no cost, two in five flushed');
my ($workers) = $stdout =~ /and with workers (\d+) %/;
cmp_ok($workers || 0, '>=', 40, 'and as many were run by workers');
my ($hints) = $stdout =~ /(\d+) hints dropped/;
cmp_ok($hints || 0, '>', 0, 'reading marked pages, and that was taken back');
SKIP:
{
	my ($missing) = $stdout =~ /^seed .*, without (.*)$/m;
	skip "this server has no $missing", 1 if $missing;
	like($stdout, qr/^(mislabelled|in the leader), contrib: [1-9]/m, 'functions of contrib were called');
}
# Statements that change tables, that fetch rows in portions, and the tables that they change.
# Each group has one query of 40, so that one is not missing by chance; single kinds are rarer.
SKIP:
{
	my @kinds = (
		'(update|delete|merge|insert into permanent).*', '(cursor|loop), .*',
		'(select into|assigned|condition|sql function|varying|default arguments).*',
		'(prepared, .*|several Gathers|many joins|folded|.*, deep)', 'target, .*');
	skip 'a run of few queries', scalar @kinds if ($queries || 0) < 700;
	like($stdout, qr/^$_: [1-9]/m, "$_ was generated") for @kinds;
}
note $stdout;

$node->stop;
done_testing();
