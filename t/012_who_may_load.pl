# What README.md and doc/installation.md say of installing and uninstalling: who may load the library, create
# the extension and change its settings; how a list of libraries is written; what
# happens when a library is missing. Otherwise a DBA would hand out a privilege that is
# not needed or not enough, or lock everyone out.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE alice LOGIN; GRANT CREATE, TEMPORARY ON DATABASE postgres TO alice');

# Output, and the error if there is one, in a new session.
sub as
{
	my ($role, $sql, %params) = @_;
	my ($status, $out, $err) = $node->psql('postgres', $sql, extra_params => [ '-U', $role ], %params);

	return $out . ($err =~ /(?:ERROR|FATAL):  (.*)/ ? $1 : '');
}

# connect_as(ROLE, parameters of psql()) - 1, or the error. psql may end before it has read its
# standard input, so the statement is not there.
sub connect_as
{
	my ($role, %params) = @_;
	my ($status, $out, $err) = $node->psql('postgres', '', extra_params => [ '-U', $role, '-c', 'SELECT 1' ], %params);

	return $out . ($err =~ /(?:ERROR|FATAL):  (.*)/ ? $1 : '');
}

sub superuser { return $node->safe_psql('postgres', $_[0]); }

# Whether a session has the library, and its workers, too.
my $query = q{
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
CREATE TEMP TABLE t AS SELECT g AS id FROM generate_series(1, 50000) g;
ANALYZE t;
};
my $parallel = "$query EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM t";
my $workers = qr/Workers Launched: [12]\n.*Custom Scan \(TempFlush\)/;

# ----------
# Loading
# ----------
is(as('alice', q{LOAD 'temp_parallel'}), 'access to library "temp_parallel" is not allowed', 'LOAD by a user');
is(as('alice', 'CREATE EXTENSION temp_parallel'), 'permission denied to create extension "temp_parallel"',
	'CREATE EXTENSION by a user');
is(as('alice', 'ALTER ROLE alice SET session_preload_libraries = temp_parallel'),
	'permission denied to set parameter "session_preload_libraries"', 'a list for the own role');
is(as('alice', 'ALTER SYSTEM SET session_preload_libraries = temp_parallel'),
	'permission denied to set parameter "session_preload_libraries"', 'a list for the server');

like(($node->psql('postgres', 'BEGIN; DROP EXTENSION plpgsql; CREATE EXTENSION temp_parallel'))[2],
	qr/required extension "plpgsql" is not installed\nHINT:  Use CREATE EXTENSION ... CASCADE/, 'CREATE EXTENSION without PL/pgSQL');

superuser(q{LOAD 'temp_parallel'; CREATE EXTENSION temp_parallel});
like(as('alice', "SELECT pg_dirty_local_buffers(); $parallel"), $workers, 'calling a function loads the library');
is(as('alice', q{SELECT pg_dirty_local_buffers(); SET temp_parallel.enabled = off; SHOW temp_parallel.enabled}),
	"0\noff", 'a user changes a setting');

superuser('GRANT SET, ALTER SYSTEM ON PARAMETER session_preload_libraries TO alice');
is(as('alice', 'ALTER ROLE alice SET session_preload_libraries = temp_parallel'), '', 'a list for the own role, with SET');
superuser('DROP EXTENSION temp_parallel');
like(as('alice', $parallel), $workers, 'the list of a role');
superuser('ALTER ROLE alice RESET ALL');
is(as('alice', 'ALTER SYSTEM SET session_preload_libraries = temp_parallel'), '', 'a list for the server, with ALTER SYSTEM');
superuser('ALTER SYSTEM RESET ALL; REVOKE ALL ON PARAMETER session_preload_libraries FROM alice');

# ----------
# A library that everyone may load
# ----------
my $plugins = $node->config_data('--pkglibdir') . '/plugins';
my $link = "$plugins/temp_parallel.so";
my ($made_plugins, $made_link);

END
{
	my $status = $?;
	unlink $link if $made_link;
	rmdir $plugins if $made_plugins;
	$? = $status;
}

SKIP:
{
	$made_plugins = mkdir $plugins;
	$made_link = !-l $link && symlink '../temp_parallel.so', $link;
	skip "no link can be made in $plugins", 7 if !$made_link;

	like(as('alice', "LOAD '\$libdir/plugins/temp_parallel'; $parallel"), $workers, 'LOAD of a plugin');
	is(as('alice', 'ALTER ROLE alice SET local_preload_libraries = temp_parallel'), '', 'local_preload_libraries of the own role');
	like(as('alice', $parallel), $workers, 'local_preload_libraries');
	superuser('ALTER ROLE alice RESET ALL');
	{
		local $ENV{PGOPTIONS} = '-c local_preload_libraries=temp_parallel';
		like(as('alice', $parallel), $workers, 'local_preload_libraries of a connection');
	}

	# One library by two names is loaded once.
	superuser(q{ALTER ROLE alice SET session_preload_libraries = temp_parallel;
		ALTER ROLE alice SET local_preload_libraries = temp_parallel});
	like(as('alice', $parallel), $workers, 'session_preload_libraries and local_preload_libraries');
	superuser('ALTER ROLE alice RESET ALL');

	# A session that has the library when its file is removed.
	my $file_gone = as('alice', qq{LOAD '\$libdir/plugins/temp_parallel';
		$query SELECT count(*) FROM t;
		\\! rm '$link'
		SELECT count(*) FROM t});
	$made_link = 0 if !-l $link;
	like($file_gone, qr{\A50000\n?could not access file ".*/plugins/temp_parallel.so": No such file},
		'its workers load the file again');
	ok(!-l $link, 'the link is removed');
}

# ----------
# Lists
# ----------
sub list
{
	my ($list) = @_;

	superuser("ALTER SYSTEM SET session_preload_libraries = $list");
	superuser('SELECT pg_reload_conf()');
	return;
}

SKIP:
{
	skip 'this server has no auto_explain', 1 if !-e $node->config_data('--pkglibdir') . '/auto_explain.so';
	list('auto_explain, temp_parallel');
	ok($node->poll_query_until('postgres', q{
SELECT count(*) = 2 FROM pg_settings WHERE name IN ('auto_explain.log_min_duration', 'temp_parallel.enabled')}),
		'both libraries of a list are loaded');
}

list(q{'auto_explain, temp_parallel'});
my $refused = '';
foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if ($refused = connect_as('alice')) ne '1';
	select undef, undef, undef, 0.1;
}
is($refused, 'could not access file "auto_explain, temp_parallel": No such file or directory',
	'a list in quotes is one library, without which no session starts');
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=';
	is(superuser('ALTER SYSTEM RESET session_preload_libraries; SELECT pg_reload_conf()'), 't', 'a superuser gets in');
	like(connect_as('alice'), qr/permission denied to set parameter/, 'a user does not');
}
ok($node->poll_query_until('postgres', 'SELECT true'), 'without the list, sessions start');

$node->stop;
done_testing();
