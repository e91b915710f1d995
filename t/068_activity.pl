# temp_parallel_activity: what other sessions can see of a session's workers. Without it,
# a DBA would have to ask each session. On 15 and 16, the server has to preload the module.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
max_parallel_workers_per_gather = 2
min_parallel_table_scan_size = 0
parallel_setup_cost = 10
parallel_tuple_cost = 0
temp_parallel.processors = 8
session_preload_libraries = temp_parallel
});
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION temp_parallel;
CREATE ROLE monitor IN ROLE pg_monitor LOGIN;
CREATE ROLE other LOGIN;
CREATE FUNCTION leader_only(int) RETURNS int LANGUAGE plpgsql PARALLEL UNSAFE AS 'BEGIN RETURN $1; END';
CREATE FUNCTION inside(int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
	'BEGIN RETURN count(*) FROM temp_parallel_activity; END';
});

my $load = q{CREATE TEMP TABLE t AS SELECT g AS id FROM generate_series(1, 50000) g; ANALYZE t;};
my $parallel = 'SELECT count(*) FROM t;';
my $serial = 'SELECT count(leader_only(id)) FROM t;';
my $view = q{SELECT a.datname, s.backend_type, workers_launched > 0, pages_flushed + pages_shared > 0, serial_statements,
	usual_reason FROM temp_parallel_activity a JOIN pg_stat_activity s USING (pid) WHERE a.pid };

# Without memory for it, sessions work as ever, and the view is empty.
my $needs_preload = $node->safe_psql('postgres', 'SHOW server_version_num') < 170000;
if ($needs_preload)
{
	is( $node->safe_psql('postgres', "$load $parallel $serial"), "50000\n50000", 'not preloaded: the session works');
	is( $node->safe_psql('postgres', "$load $parallel SELECT count(*) FROM temp_parallel_activity"),
		"50000\n0", 'not preloaded: no rows');
}
$node->append_conf('postgresql.conf', 'shared_preload_libraries = temp_parallel') if $needs_preload;
$node->restart;

# A session's row says what it has done, with the most frequent reason for what was serial, as
# soon as a statement has ended, and while the next one runs.
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe('SELECT count(*) FROM pg_class');
is($node->safe_psql('postgres', $view . "= $pid"), '', 'no row for small statements');
$session->query_safe("$load $parallel");
is($node->safe_psql('postgres', $view . "= $pid"),
	'postgres|client backend|t|t|0|', 'workers, and pages that they have read');
$session->query_safe('SELECT count(leader_only(relnatts)) FROM pg_class');
$session->query_safe($serial) for 1 .. 3;
$session->query_safe('SELECT id FROM t FOR UPDATE');
is($node->safe_psql('postgres', $view . "= $pid"),
	'postgres|client backend|t|t|4|query is not parallel safe', 'serial statements, and why');

# Each session has a row of its own.
my $second = $node->background_psql('postgres');
my $second_pid = $second->query_safe('SELECT pg_backend_pid()');
$second->query_safe("$load $serial");
is($node->safe_psql('postgres', "$view IN ($pid, $second_pid) ORDER BY serial_statements"),
	"postgres|client backend|f|f|1|query is not parallel safe\n"
	  . 'postgres|client backend|t|t|4|query is not parallel safe', 'two sessions');

# What was left because of the flush counts, too.
$second->query_safe('SET temp_parallel.share_local_buffers = off; SET temp_parallel.write_temp_page_cost = 100');
$second->query_safe($parallel) for 1 .. 2;
is($node->safe_psql('postgres', $view . "= $second_pid"),
	'postgres|client backend|f|f|3|the flush costs more than workers save', 'because of the flush');
# reset, seen by others
$second->query_safe('SELECT temp_parallel_stats_reset()');
is($node->safe_psql('postgres', $view . "= $second_pid"), 'postgres|client backend|f|f|0|', 'reset');

# A row vanishes with its session, however that ends, and its slot is used again.
$second->quit;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $second_pid"),
	'the session ends');
is($node->safe_psql('postgres', "SELECT count(*) FROM temp_parallel_activity WHERE pid = $second_pid"),
	'0', 'the session has ended');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 10000)");
is($node->safe_psql('postgres', "SELECT count(*) FROM temp_parallel_activity WHERE pid = $pid"),
	'0', 'the session was terminated');
for my $i (1 .. 3)
{
	is($node->safe_psql('postgres',
			"$load $serial SELECT count(*), sum(serial_statements) FROM temp_parallel_activity WHERE pid = pg_backend_pid()"),
		"50000\n1|1", "session $i has one row, and counts from zero");
}

# Who may read it, and where it cannot be read.
is($node->safe_psql('postgres', 'SELECT count(*) >= 0 FROM temp_parallel_activity',
		connstr => $node->connstr('postgres') . ' user=monitor'),
	't', 'pg_monitor may read it');
my (undef, undef, $stderr) = $node->psql('postgres', 'SELECT count(*) FROM temp_parallel_activity',
	connstr => $node->connstr('postgres') . ' user=other');
like($stderr, qr/permission denied for view temp_parallel_activity/, 'others may not');
(undef, undef, $stderr) = $node->psql('postgres', "$load SELECT count(*) FROM t WHERE inside(id) < 0");
like($stderr, qr/cannot execute temp_parallel_session_counts\(\) during a parallel operation/,
	'in a function that is marked PARALLEL SAFE, and is not');

# If there is no memory for the slots, no statement fails because of that.
SKIP:
{
	skip 'the server reserves the memory when it starts', 2 if $needs_preload;
	$node->append_conf('postgresql.conf', 'dynamic_shared_memory_type = mmap');
	$node->restart;
	chmod 0500, $node->data_dir . '/pg_dynshmem';
	my $may_write = $> == 0 || -w $node->data_dir . '/pg_dynshmem';
	SKIP:
	{
		skip 'the directory can be written', 2 if $may_write;
		is($node->safe_psql('postgres', "$load $serial"), '50000', 'no memory: the statement does not fail');
		is($node->safe_psql('postgres', 'SELECT count(*) FROM temp_parallel_activity'), '0', 'no memory: no rows');
	}
	chmod 0700, $node->data_dir . '/pg_dynshmem';
}

$node->stop;
done_testing();
