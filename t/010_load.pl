# Each way to load the module, and other modules that use the same hooks. If one
# did not work, a query over a temporary table would not be parallel, or its
# result wrong.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $setup = q{
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
CREATE TEMP TABLE t AS SELECT g AS id FROM generate_series(1, 50000) g;
ANALYZE t;
};
my $query = 'SELECT count(*), sum(id) FROM t;';
my $answer = '50000|1250025000';

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', qq{
max_worker_processes = 8
max_parallel_workers = 8
});
$node->start;

# Restart the server with only these libraries preloaded.
sub preload
{
	my ($setting, $libraries) = @_;

	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	$node->safe_psql('postgres', "ALTER SYSTEM SET $setting = $libraries");
	$node->restart;
}

sub runs_in_parallel
{
	my ($name, $before) = @_;

	like(
		$node->safe_psql('postgres', "$before $setup EXPLAIN (COSTS OFF) $query"),
		qr/Gather\n.*Workers Planned: 2\n.*Custom Scan \(TempFlush\)\n/,
		"$name: the plan is parallel");
	is($node->safe_psql('postgres', "$before $setup $query"),
		$answer, "$name: the answer is right");
}

# Without the module, the plan is serial: otherwise, the rest would prove nothing.
my ($unloaded) = split /SET temp_parallel/, $setup;
unlike(
	$node->safe_psql('postgres', qq{$unloaded
		CREATE TEMP TABLE t AS SELECT g AS id FROM generate_series(1, 50000) g;
		ANALYZE t;
		EXPLAIN (COSTS OFF) $query}),
	qr/Gather/, 'not loaded: the plan is serial');

runs_in_parallel('LOAD', "LOAD 'temp_parallel';");

# The server shows which release of the module a session has loaded.
SKIP:
{
	skip 'needs pg_get_loaded_modules()', 1
	  if $node->safe_psql('postgres', 'SHOW server_version_num') < 180000;
	my ($release) = slurp_file('META.json') =~ /^   "version": "(.+)",$/m;
	is( $node->safe_psql('postgres',
			q{LOAD 'temp_parallel'; SELECT version FROM pg_get_loaded_modules() WHERE module_name = 'temp_parallel'}),
		$release, 'name and release of the module');
}

# In a session that has already used temporary tables.
is( $node->safe_psql('postgres', qq{
		CREATE TEMP TABLE early AS SELECT g AS id FROM generate_series(1, 50000) g;
		SELECT count(*) FROM early;
		LOAD 'temp_parallel';
		$setup
		SELECT count(*), sum(t.id) FROM t JOIN early USING (id);}),
	"50000\n$answer", 'LOAD in the middle of a session');

preload('session_preload_libraries', 'temp_parallel');
runs_in_parallel('session_preload_libraries', '');

preload('shared_preload_libraries', 'temp_parallel');
runs_in_parallel('shared_preload_libraries', '');

# Modules that use the same hooks, loaded before and after.
SKIP:
foreach my $libraries (
	'pg_stat_statements, auto_explain, temp_parallel',
	'temp_parallel, auto_explain, pg_stat_statements')
{
	skip 'this server has no pg_stat_statements', 8
	  if $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_stat_statements'") eq '0';
	preload('shared_preload_libraries', $libraries);
	$node->safe_psql('postgres',
		'CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT pg_stat_statements_reset();');
	my $log_start = -s $node->logfile;
	runs_in_parallel("beside others ($libraries)",
		'SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;');
	is( $node->safe_psql('postgres',
			"SELECT calls, rows FROM pg_stat_statements WHERE query LIKE 'SELECT count(*), sum(id) FROM t%'"),
		'1|1', "beside others ($libraries): pg_stat_statements has counted it");
	like(slurp_file($node->logfile, $log_start),
		qr/Custom Scan \(TempFlush\).*\n.*Flush Planned: .*\n.*Flushed: written=\d+/,
		"beside others ($libraries): auto_explain has logged it");
}

# A setting for the cluster, and one for a role.
preload('session_preload_libraries', 'temp_parallel');
$node->safe_psql('postgres', "LOAD 'temp_parallel'; ALTER SYSTEM SET temp_parallel.enabled = off");
$node->reload;
$node->poll_query_until('postgres',
	"SELECT current_setting('temp_parallel.enabled') = 'off'");
unlike($node->safe_psql('postgres', "$setup EXPLAIN (COSTS OFF) $query"),
	qr/Gather/, 'disabled by ALTER SYSTEM');
$node->safe_psql('postgres',
	'ALTER ROLE CURRENT_USER SET temp_parallel.enabled = on');
runs_in_parallel('enabled for a role', '');

# The extension can be created, used and dropped.
is( $node->safe_psql('postgres', qq{
		CREATE EXTENSION temp_parallel;
		$setup
		SELECT pg_dirty_local_buffers() > 0;
		SELECT pg_flush_local_buffers() > 0;
		DROP EXTENSION temp_parallel;}),
	"t\nt", 'CREATE EXTENSION');

# A session whose first contact with the library is a function of the extension.
# In the middle of a parallel query the library could not take over the settings
# that the session has made before, and would work although it is disabled.
$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
$node->restart;
$node->safe_psql('postgres', q{
	ALTER ROLE CURRENT_USER RESET temp_parallel.enabled;
	CREATE EXTENSION temp_parallel;
	CREATE FUNCTION first_contact(int) RETURNS int LANGUAGE plpgsql
		AS 'BEGIN RETURN pg_dirty_local_buffers(); END';
	CREATE UNLOGGED TABLE unlogged AS SELECT g AS id FROM generate_series(1, 20000) g;
	ANALYZE unlogged;});
is( $node->safe_psql('postgres', q{
		SELECT p.oid::regprocedure
		FROM pg_depend JOIN pg_proc p ON objid = p.oid AND classid = 'pg_proc'::regclass
		WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'temp_parallel') AND
			  deptype = 'e' AND proparallel <> 'u';}),
	'', 'no statement that calls a function of the extension has workers');

my $contact = q{
	SET temp_parallel.enabled = off;
	SET max_parallel_workers_per_gather = 2;
	SET min_parallel_table_scan_size = 0;
	SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0;
	SELECT first_contact(id) FROM unlogged WHERE id = 1;
	SHOW temp_parallel.enabled;};
is( $node->safe_psql('postgres', $contact), "0\noff", 'a function loads the library: settings are kept');
$node->safe_psql('postgres', 'ALTER FUNCTION first_contact PARALLEL RESTRICTED');
$node->psql('postgres', $contact, stdout => \my $settings, stderr => \my $settings_err, on_error_stop => 0);
is($settings, 'off', 'a function that is marked wrongly: settings are kept');
like($settings_err, qr/ERROR:  cannot load temp_parallel during a parallel operation\nHINT:  .*PARALLEL UNSAFE/,
	'a function that is marked wrongly: the error says so');

# No file of a temporary table remains.
$node->restart;
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database WHERE datname = 'postgres')) f WHERE f ~ '^t\\d+_'"),
	'0', 'no file left behind');

# Each version of the extension can be updated to the one that is created by default, and
# has the same objects then.
my ($default) = slurp_file('temp_parallel.control') =~ /^default_version = '(.+)'$/m;
my @versions = grep { !/--/ } map { /--(.+)\.sql$/ } glob('temp_parallel--*.sql');
my $objects = objects('CREATE EXTENSION temp_parallel;');
like($objects, qr/^\Q$default\E\n/, "the default version, $default, can be created");
is(objects("CREATE EXTENSION temp_parallel VERSION '$_'; ALTER EXTENSION temp_parallel UPDATE;"), $objects, "version $_, updated")
  foreach @versions;

# The extension's objects, with their definitions, comments and privileges, and its version.
sub objects
{
	my ($create) = @_;

	return $node->safe_psql('postgres', qq{
		DROP EXTENSION IF EXISTS temp_parallel;
		BEGIN;
		$create
		SELECT extversion FROM pg_extension WHERE extname = 'temp_parallel';
		SELECT pg_describe_object(classid, objid, 0),
			   CASE classid WHEN 'pg_proc'::regclass THEN pg_get_functiondef(objid)
					WHEN 'pg_class'::regclass THEN pg_get_viewdef(objid) END,
			   proacl, relacl, description
		  FROM pg_depend d LEFT JOIN pg_proc p ON objid = p.oid AND classid = 'pg_proc'::regclass
			   LEFT JOIN pg_class c ON objid = c.oid AND classid = 'pg_class'::regclass
			   LEFT JOIN pg_description ON objoid = objid AND classoid = classid
		 WHERE (refclassid, refobjid) = ('pg_extension'::regclass,
				(SELECT oid FROM pg_extension WHERE extname = 'temp_parallel')) AND deptype = 'e'
		 ORDER BY 1, pg_description.objsubid;
		ROLLBACK;});
}

$node->stop;
ok( slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
