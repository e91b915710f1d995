# A server whose sessions share their local buffers with workers, and can restrict their own
# process: process_limits/ has the C functions.

package ProcessLimits;

use strict;
use warnings;

use Config;
use Exporter 'import';
use File::Basename;
use Build qw(build);
use PostgreSQL::Test::Cluster;
use Test::More;

our @EXPORT = qw(limited_server);

# Skips the whole test where pages are never shared. Plans have workers, and sharing pages is
# cheaper than writing them.
sub limited_server
{
	plan skip_all => 'pages are shared on Linux only, where addresses have 64 bits'
	  if $^O ne 'linux' || $Config{ptrsize} < 8;

	my $source = dirname(__FILE__) . '/process_limits';
	my $library = build('process_limits', [ glob("$source/*.c"), "$source/Makefile" ]);
	my $node = PostgreSQL::Test::Cluster->new('main');

	$node->init(extra => ['--data-checksums']);
	$node->append_conf('postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
restart_after_crash = on
max_worker_processes = 8
temp_buffers = 32MB
max_parallel_workers_per_gather = 2
min_parallel_table_scan_size = 0
min_parallel_index_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
cpu_tuple_cost = 10
jit = off
temp_parallel.write_temp_page_cost = 10
temp_parallel.buffer_scan_cost = 0
});
	$node->start;
	$node->safe_psql('postgres', qq{
CREATE EXTENSION temp_parallel;
CREATE FUNCTION set_dumpable(boolean) RETURNS void LANGUAGE C AS '$library';
CREATE FUNCTION limit_memory(bigint) RETURNS void LANGUAGE C AS '$library';
});
	return $node;
}

1;
