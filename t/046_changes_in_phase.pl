# C functions that change a table in the read-only phase.
#
# Core rejects SQL statements that write in parallel mode. A C function that
# calls the table's access method must get an error from the module, since
# workers may be reading the page. heap_insert() itself cannot be prevented, but
# the page is dirty because of it: if a later read of the page discarded the row
# like a hint bit, it would be lost.

use strict;
use warnings;

use File::Basename;
use lib dirname(__FILE__);
use Build qw(build);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = build('changes_in_phase',
	[ glob(dirname(__FILE__) . '/changes_in_phase/*.c'), dirname(__FILE__) . '/changes_in_phase/Makefile' ]);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => ['--data-checksums']);
$node->append_conf('postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
max_worker_processes = 8
});
$node->start;
$node->safe_psql('postgres', qq{
CREATE FUNCTION insert_row(regclass, text) RETURNS void
LANGUAGE C STRICT PARALLEL RESTRICTED AS '$library';
CREATE FUNCTION in_leader(i int) RETURNS bool LANGUAGE plpgsql PARALLEL RESTRICTED AS
\$\$ BEGIN RETURN true; END \$\$;
});

# 10000 rows on clean pages, and a transaction with an ID, as none can be
# assigned in parallel mode.
my $setup = q{
SET temp_buffers = 100;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
CREATE TEMP TABLE t (id int);
INSERT INTO t SELECT generate_series(1, 10000);
CREATE TEMP TABLE evictor (g int, pad text);
INSERT INTO evictor SELECT g, repeat('e', 1000) FROM generate_series(1, 2000) g;
SELECT count(*) FROM t;
BEGIN;
CREATE TEMP TABLE gives_id ();
};

# The row is inserted after the workers have counted, still in parallel mode.
my $query = q{SELECT insert_row('t', '%s') FROM (SELECT count(*) AS n FROM t) s WHERE n > 0};

like(
	$node->safe_psql('postgres', "$setup EXPLAIN (COSTS OFF) " . sprintf($query, 'single')),
	qr/Gather\n.*\n.*TempFlush/, 'the plan is parallel');

# Through the access method.
foreach my $how (qw(single multi))
{
	my ($out, $err);

	$node->psql('postgres',
		$setup . sprintf($query, $how) . '; ROLLBACK; SELECT count(*) FROM t;',
		stdout => \$out, stderr => \$err, on_error_stop => 0);
	like($err, qr/cannot modify temporary table "t" during a parallel operation/,
		"$how insert is refused");
	is((split(/\n/, $out))[-1], '10000', "$how insert has inserted nothing");

	# In a serial statement, there is no error.
	$out = $node->safe_psql('postgres',
		"$setup SET temp_parallel.enabled = off; " . sprintf($query, $how)
		  . '; COMMIT; SELECT count(*) FROM t;');
	is((split(/\n/, $out))[-1], '10001', "$how insert works in a serial statement");
}

# By heap_insert(): the statement then reads the page with the row, which is not
# visible to it.
my $out = $node->safe_psql('postgres',
	$setup . sprintf($query, 'heap') . q{
	UNION ALL
	SELECT NULL::void FROM t WHERE in_leader(id) AND id < 0;
	COMMIT;
	TRUNCATE evictor;
	INSERT INTO evictor SELECT g, repeat('e', 1000) FROM generate_series(1, 2000) g;
	SET temp_parallel.enabled = off;
	SELECT count(*) FROM t;});
is((split(/\n/, $out))[-1], '10001',
	'a row inserted behind its back outlives a read of its page, and eviction');

$node->stop;
ok( slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
