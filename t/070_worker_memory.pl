# A parallel worker's memory: 8 MB of local buffers, or the session's temp_buffers if that
# is less, and at most 5 MB besides. If the worker's pool had the session's size, 1 GB
# of buffers would take 10 MB for their headers alone, at each launch.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'only Linux says what memory a process has to itself'
  unless -r '/proc/self/smaps_rollup';

plan skip_all => 'AddressSanitizer needs memory of its own' if $ENV{TEST_SANITIZE};

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
max_worker_processes = 8
max_parallel_workers = 8
});
$node->start;

$node->safe_psql('postgres', 'CREATE EXTENSION temp_parallel');

# The private memory of the process that calls it, in kB.
$node->safe_psql('postgres', q{
	CREATE FUNCTION private_kb() RETURNS int LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
		SELECT sum(m[1]::int)::int
		FROM regexp_matches(pg_read_file('/proc/self/smaps_rollup'), 'Private_\w+: +(\d+) kB', 'g') m
	$$;
});

# Only workers scan the table, and each calls the function at every 1000th row.
my $setup = q{
	SET parallel_leader_participation = off;
	SET max_parallel_workers_per_gather = 2;
	SET min_parallel_table_scan_size = 0;
	SET min_parallel_index_scan_size = 0;
	SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0;
	SET temp_parallel.write_temp_page_cost = 0;
	SET temp_parallel.buffer_scan_cost = 0;
	CREATE TEMP TABLE t AS SELECT i AS id, repeat('x', 900) AS pad FROM generate_series(1, 40000) i;
	CREATE INDEX ON t (id);
	ANALYZE t;
};
my $asks = 'count(*), max(length(pad)), max(CASE WHEN id % 1000 = 0 THEN private_kb() END)';
my %queries = (
	'sequential scan' => "SELECT $asks FROM t",
	'index scan' => "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT $asks FROM t WHERE id > 0",
);

my %worker_kb = ('800kB' => 800, '8MB' => 8192, '1GB' => 8192);

for my $session_buffers (sort keys %worker_kb)
{
	for my $name (sort keys %queries)
	{
		my $answer = $node->safe_psql('postgres', qq{
			SET temp_buffers = '$session_buffers';
			$setup
			$queries{$name}});
		my ($count, $length, $kb) = split /\|/, $answer;
		my $case = "$name, temp_buffers $session_buffers";

		is("$count $length", '40000 900', "$case: answer");
		cmp_ok($kb, '<=', $worker_kb{$session_buffers} + 5 * 1024, "$case: memory of a worker");
		note "$case: $kb kB";
	}
}

# Pages that it reads in the leader's memory are not a worker's own: 8 MB are enough for
# the headers of 37,500 of them, and for all else. And nothing is written: not for workers that
# build the index, either. That workers can map the memory has to be known before they run a
# plan without the leader: those of the first query find out.
my ($answer, $shared, $written) = split /\n/, $node->safe_psql('postgres', qq{
	SET temp_buffers = '512MB';
	SET max_parallel_maintenance_workers = 0;
	} . $setup =~ s/40000/300000/r . qq{
	RESET temp_parallel.write_temp_page_cost;
	SET parallel_leader_participation = on;
	$queries{'sequential scan'} \\gset first_
	SET parallel_leader_participation = off;
	SELECT FROM temp_parallel_stats_reset();
	$queries{'sequential scan'};
	SELECT pages_shared FROM temp_parallel_stats();
	SELECT pages_flushed FROM temp_parallel_stats();});
my ($count, $length, $kb) = split /\|/, $answer;

is("$count $length", '300000 900', 'shared pages: answer');
cmp_ok($shared, '>', 37000, 'shared pages: how many');
is($written, 0, 'shared pages: none is written');
my $checks = $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on' ? 1024 : 0;
cmp_ok($kb, '<=', 8 * 1024 + $checks, 'shared pages: memory of a worker');
note "$shared shared pages: $kb kB";

$node->stop;
done_testing();
