# A worker that cannot allocate its local buffers, since any role may set
# temp_parallel.worker_temp_buffers to any number: this must be an error of the
# statement, and neither crash the server nor lose rows.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'AddressSanitizer ends a process whose address space is limited' if $ENV{TEST_SANITIZE};

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
max_worker_processes = 8
max_parallel_workers = 8
log_min_messages = log
});
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE anybody');

# Processes that are started from now on have at most 4 GB of address space,
# whatever the machine's memory.
my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
system_or_bail('prlimit', "--pid=$postmaster", '--as=4294967296');

# Without ON_ERROR_STOP: the commands after the error are run in the same session.
my ($status, $answers, $errors) = $node->psql('postgres', q{
SET ROLE anybody;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
CREATE TEMP TABLE t AS SELECT g AS id FROM generate_series(1, 50000) g;
SET temp_parallel.worker_temp_buffers = 1073741823;
SELECT count(*), sum(id) FROM t;
SELECT 'still here';
UPDATE t SET id = id + 1;
SET temp_parallel.worker_temp_buffers = 100;
SELECT count(*), sum(id) FROM t;
}, on_error_stop => 0);
like($errors, qr/ERROR:  out of memory\nCONTEXT:  parallel worker/,
	'a pool that is too large for a worker is an error of the statement');
is($answers, "still here\n50000|1250075000", 'the session goes on, and has lost nothing');

is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server goes on');
$node->stop;
ok( slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
