# Queries over temporary tables of which a client fetches rows in portions, by the
# protocol's limit of rows, as drivers with a fetch size do: the answers are the same
# with workers as without, whatever the session does between two portions.
#
# If something here fails, a client gets rows of another moment, or not all.

use strict;
use warnings;

use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

if (!$use_unix_sockets)
{
	plan skip_all => 'needs Unix sockets';
}

my $node = PostgreSQL::Test::Cluster->new('main');

$node->init;
$node->append_conf('postgresql.conf', q{
session_preload_libraries = 'temp_parallel'
temp_parallel.run_ahead = on
min_parallel_table_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
cpu_tuple_cost = 0.5
max_parallel_workers_per_gather = 2
temp_parallel.write_temp_page_cost = 0
temp_parallel.buffer_scan_cost = 0
temp_parallel.processors = 1000
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION temp_parallel');

# ----------
# The protocol
# ----------
my $socket;

# Send messages, each a type and its content.
sub send_messages
{
	while (my ($type, $content) = splice @_, 0, 2)
	{
		print $socket $type . pack('N', length($content) + 4) . $content;
	}
	$socket->flush;
	return;
}

sub read_bytes
{
	my ($n) = @_;
	my $bytes = '';

	while (length $bytes < $n)
	{
		read($socket, $bytes, $n - length $bytes, length $bytes) or die 'the server has closed the connection';
	}
	return $bytes;
}

# What the server answers until it is ready: a line for each row and end of a portion.
sub answer
{
	my @lines;

	for (;;)
	{
		my ($type, $length) = unpack 'aN', read_bytes(5);
		my $content = read_bytes($length - 4);

		if ($type eq 'D')
		{
			my ($n, @fields) = unpack 'n', $content;

			$content = substr $content, 2;
			foreach (1 .. $n)
			{
				my $size = unpack 'l>', $content;

				push @fields, $size < 0 ? 'null' : substr $content, 4, $size;
				$content = substr $content, 4 + ($size < 0 ? 0 : $size);
			}
			push @lines, join(' ', @fields);
		}
		elsif ($type eq 's')
		{
			push @lines, 'more';
		}
		elsif ($type eq 'E')
		{
			push @lines, $content =~ /\0M([^\0]*)/;
		}
		return join("\n", @lines) if $type eq 'Z';
	}
}

sub connect_session
{
	my $startup = "user\0" . scalar(getpwuid($<)) . "\0database\0postgres\0\0";

	$socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die $!;
	print $socket pack('NN', length($startup) + 8, 196608) . $startup;
	$socket->flush;
	answer();
	return;
}

sub sql
{
	my ($sql) = @_;

	send_messages('Q', "$sql\0");
	return answer();
}

# prepare(name, query), open a portal for it, and fetch rows of the portal; 0 are all.
sub prepare
{
	my ($name, $query) = @_;

	send_messages('P', "$name\0$query\0\0\0", 'S', '');
	return answer();
}

sub open_portal
{
	my ($portal, $statement) = @_;

	send_messages('B', "$portal\0$statement\0\0\0\0\0\0\0", 'S', '');
	return answer();
}

sub fetch
{
	my ($portal, $n) = @_;

	send_messages('E', "$portal\0" . pack('N', $n), 'S', '');
	return answer();
}

# ----------
# The tests
# ----------
my $groups = 'SELECT k, sum(v) FROM t GROUP BY k ORDER BY sum(v), k';
my @tests = (
	[ 'a sort over groups', 1, sub {
			prepare('s', $groups);
			sql('BEGIN');
			return open_portal('p', 's'), fetch('p', 2), sql('INSERT INTO t VALUES (1, 1, 1); DELETE FROM t WHERE k = 5'),
			  fetch('p', 3), fetch('p', 0), fetch('p', 1), sql('COMMIT');
		} ],
	[ 'one row', 1, sub {
			prepare('s', 'SELECT sum(v), count(*) FROM t');
			sql('BEGIN');
			return open_portal('p', 's'), fetch('p', 1), fetch('p', 1), sql('COMMIT');
		} ],
	[ 'the same plan in portions, as a whole, and in portions again', 1, sub {
			my @answers;

			prepare('s', $groups);
			sql('BEGIN');
			foreach my $n (4, 0, 0, 4, 4, 4, 4, 4)
			{
				push @answers, open_portal('', 's'), fetch('', $n);
				sql('INSERT INTO t VALUES (1, 1, 1)');
			}
			return @answers, sql('COMMIT');
		} ],
	[ 'FETCH 0, and portions fetched by SQL', 1, sub {
			prepare('s', $groups);
			sql('BEGIN');
			return open_portal('p', 's'), sql('FETCH 0 FROM p'), sql('FETCH 2 FROM p'), sql('INSERT INTO t VALUES (1, 1, 1)'),
			  fetch('p', 2), sql('FETCH BACKWARD 1 FROM p'), sql('ROLLBACK');
		} ],
	[ 'another role at the first portion', 0, sub {
			sql('GRANT SELECT ON t TO pg_monitor; REVOKE ALL ON t FROM pg_monitor');
			prepare('s', $groups);
			sql('BEGIN');
			return open_portal('p', 's'), sql('SET LOCAL ROLE pg_monitor'), fetch('p', 2), sql('RESET ROLE'), sql('ROLLBACK');
		} ],
	[ 'a volatile function', 0, sub {
			prepare('s', 'SELECT k, looks() FROM t GROUP BY k ORDER BY k');
			sql('BEGIN');
			return open_portal('p', 's'), fetch('p', 2), sql('INSERT INTO t VALUES (1, -1, 1)'), fetch('p', 2), sql('ROLLBACK');
		} ],
	[ 'rows that are computed as they are asked for', 0, sub {
			prepare('s', "SELECT k, 100 / (count(*) - 10), current_setting('my.setting') FROM t GROUP BY k HAVING count(*) > 0");
			sql("BEGIN; SET my.setting = 'first'; SET enable_hashagg = off");
			return open_portal('p', 's'), fetch('p', 2), sql("SET my.setting = 'second'"), fetch('p', 2), fetch('p', 0), sql('ROLLBACK');
		} ],
	[ 'a table that is dropped while the portal is open', 1, sub {
			prepare('s', $groups);
			sql('BEGIN');
			return open_portal('p', 's'), fetch('p', 2), sql('SAVEPOINT s'), sql('DROP TABLE t'), sql('ROLLBACK TO s'), fetch('p', 2), sql('ROLLBACK');
		} ],
	[ 'an error in workers', 1, sub {
			prepare('s', 'SELECT sum(100 / (v - 50)) FROM t');
			sql('BEGIN');
			return open_portal('p', 's'), fetch('p', 1), sql('ROLLBACK'), sql('SELECT sum(v) FROM t');
		} ],
	[ 'a portal that is canceled', 1, sub {
			prepare('s', 'SELECT sum(slow(v)) FROM t');
			sql("BEGIN; SET LOCAL statement_timeout = '300ms'");
			return open_portal('p', 's'), fetch('p', 1), sql('ROLLBACK'), sql('INSERT INTO t VALUES (1, 1, 1)'), sql('SELECT sum(v) FROM t');
		} ]);

$node->safe_psql('postgres', q{
CREATE FUNCTION looks() RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET temp_parallel.enabled = off AS 'BEGIN RETURN (SELECT count(*) FROM t WHERE k = -1); END';
CREATE FUNCTION slow(i int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS 'BEGIN PERFORM pg_sleep(0.01); RETURN i; END';
});
foreach my $test (@tests)
{
	my ($name, $parallel, $body) = @$test;
	my @answers;

	foreach my $enabled ('off', 'on')
	{
		connect_session();
		sql("SET temp_parallel.enabled = $enabled");
		# 8 groups of 100 rows, but the last one has 10
		sql(q{CREATE TEMP TABLE t (id int, k int, v int);
			INSERT INTO t SELECT i, i % 8, i * 7919 % 1009 FROM generate_series(1, 800) i;
			DELETE FROM t WHERE k = 7 AND id > 80; ANALYZE t});
		my $before = sql('SELECT workers_launched FROM temp_parallel_stats()');
		push @answers, join("\n--\n", $body->());
		my $launched = sql("SELECT workers_launched > $before FROM temp_parallel_stats()");
		is($launched, 't', "$name: workers") if $enabled eq 'on' && $parallel;
		is($launched, 'f', "$name: no workers") if $enabled eq 'off' || !$parallel;
		close $socket;
	}
	is($answers[1], $answers[0], "$name: the same answers");
	note($answers[0]);
}

# A worker is ended, or the session canceled, while workers compute the first portion: an
# error; then the next transaction gets all rows.  The worker is one that computes rows: the
# others may have read all pages ahead before it starts, and then it exits at once.
connect_session();
sql(q{CREATE TEMP TABLE t AS SELECT i AS id, i % 8 AS k, i AS v FROM generate_series(1, 800) i; ANALYZE t});
my $pid = sql('SELECT pg_backend_pid()');

prepare('s', 'SELECT k, sum(slow(v)) FROM t GROUP BY k ORDER BY k');
prepare('all', $groups);
foreach my $fault ("pg_terminate_backend(pid) FROM pg_stat_activity WHERE leader_pid = $pid AND wait_event = 'PgSleep' LIMIT 1",
	"pg_cancel_backend($pid) FROM pg_stat_activity WHERE leader_pid = $pid AND wait_event = 'PgSleep' LIMIT 1")
{
	sql('BEGIN');
	open_portal('p', 's');
	send_messages('E', "p\0" . pack('N', 3), 'S', '');
	ok($node->poll_query_until('postgres', "SELECT $fault"), $fault);
	like(answer(), qr/administrator command|parallel worker|due to user request/, 'a portion fails');
	sql('ROLLBACK');
	sql('BEGIN');
	open_portal('p', 'all');
	is(join("\n", fetch('p', 3), fetch('p', 0)), sql($groups) =~ s/^((.*\n){3})/$1more\n/r, 'the next portions');
	sql('COMMIT');
}
close $socket;

# WHERE CURRENT OF a portal whose plan scans with workers is refused as over a permanent
# table, and works without them. Otherwise, another row could be changed, or none.
connect_session();
sql(q{CREATE TABLE permanent AS SELECT i AS id, i % 8 AS k FROM generate_series(1, 800) i;
	CREATE TEMP TABLE t AS TABLE permanent; ANALYZE permanent; ANALYZE t});
my %answers;
foreach my $case ([ 'permanent', 'on' ], [ 't', 'on' ], [ 't', 'off' ])
{
	my ($table, $enabled) = @$case;

	sql("SET temp_parallel.enabled = $enabled");
	prepare('current', "SELECT id FROM $table WHERE k % 4 = 3");
	sql('BEGIN');
	open_portal('p', 'current');
	# any of the rows, as workers fill and read the tables
	my ($row) = fetch('p', 1) =~ /^(\d+)\nmore$/;
	ok(defined $row && $row % 4 == 3, "a row of a portal over $table, $enabled");
	$answers{"$table, $enabled"} = sql("UPDATE $table SET k = -1 WHERE CURRENT OF p RETURNING id = $row");
	sql('ROLLBACK');
	send_messages('C', "Scurrent\0", 'S', '');
	answer();
}
is($answers{'permanent, on'}, 'cursor "p" is not a simply updatable scan of table "permanent"', 'WHERE CURRENT OF is refused over a permanent table');
is($answers{'t, on'}, 'cursor "p" is not a simply updatable scan of table "t"', '... and over a temporary one');
is($answers{'t, off'}, 't', '... but not without workers');
close $socket;
$node->stop;
done_testing();
