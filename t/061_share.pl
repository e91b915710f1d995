# Sharing of the leader's local buffers where the system does not permit it: pages are
# written instead, and temp_parallel_stats() says why.
#
# Processes that are killed or canceled while workers read the leader's memory are in
# t/050_killed.pl, t/051_canceled.pl and t/059_insert_select.pl, workers that cannot map it in
# t/066_workers_cannot_map.pl.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProcessLimits;
use Test::More;

my $node = limited_server();

my $fill = q{CREATE TEMP TABLE t AS SELECT g AS id, repeat('x', 100) AS pad FROM generate_series(1, 20000) g;};
my $fill_more = q{INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(20001, 40000) g;};
my $query = q{SELECT count(*), sum(id), sum(length(pad)) FROM t;};
my $answer = '20000|200010000|2000000';
my $stats = q{SELECT pages_shared > 0, pages_flushed > 0, coalesce(not_shared, '') FROM temp_parallel_stats();};

is($node->safe_psql('postgres', "$fill $query $stats"), "$answer\nt|f|", 'shared');

# The memory is that of the leader's process.
like($node->safe_psql('postgres', "$fill SELECT regexp_replace(pg_read_file('/proc/self/status'), '.*RssShmem:\\s*(\\d+) kB.*', '\\1')::int > 2000;"),
	qr/^t$/, 'the pool is shared memory');

# The address space is limited: a pool that took a large part of it, used or not, would make
# statements fail that work otherwise, like this one that needs 200 to 400 MB.
sub limited
{
	my ($megabytes) = @_;

	return "SELECT FROM limit_memory((regexp_replace(pg_read_file('/proc/self/status'), '.*VmSize:\\s*(\\d+) kB.*', '\\1')::bigint + $megabytes * 1024) * 1024);";
}
my $large = q{SELECT length(repeat(repeat('x', 1000), 200000));};
is($node->safe_psql('postgres', limited(20) . " $fill $query $stats"),
	"$answer\nf|t|the process's address space is limited", 'a process that cannot map the memory writes pages');
is($node->safe_psql('postgres', "SET temp_buffers = '400MB'; " . limited(600) . " $fill $large $query $stats"),
	"200000000\n$answer\nf|t|the process's address space is limited", 'a large pool leaves address space to queries');
is($node->safe_psql('postgres', limited(600) . " $fill $large $query $stats"),
	"200000000\n$answer\nt|f|", 'a pool that is small against the limit is shared');
SKIP:
{
	skip 'vm.overcommit_memory is 2, or not known', 1 if slurp_file('/proc/sys/vm/overcommit_memory') !~ /^[01]$/;
	is($node->safe_psql('postgres', limited(600) . " $fill SELECT pg_read_file('/proc/self/maps') ~ 'memfd:temp_parallel';"),
		't', 'in a file: a limit of the address space is not taken for that mode');
}

my ($out, $err);

# RESET sets temp_buffers to less than the pool that is in use. The server allows as many
# pages to be pinned as temp_buffers says.
{
	local $ENV{PGOPTIONS} = '-c temp_buffers=4MB';

	is($node->safe_psql('postgres', "SET temp_buffers = '5600kB'; $fill $fill_more RESET temp_buffers; $query CREATE TEMP TABLE u AS SELECT * FROM t WHERE id % 2 = 0; SELECT count(*), sum(id) FROM u; $stats"),
		"40000|800020000|4000000\n20000|400020000\nt|t|", 'temp_buffers is less than the pool');
}

# When the server has no memory for a buffer, it goes on with the next one, so there is a
# buffer without memory between others. If that were taken for the end of the pool, the
# pages behind it would neither be shared nor written, and workers would not see their rows.
SKIP: foreach my $share ('off', 'on')
{
	skip 'AddressSanitizer ends a process whose address space is limited', 4 if $ENV{TEST_SANITIZE};

	$node->psql('postgres', qq{
SET temp_parallel.share_local_buffers = $share;
SET temp_buffers = '64MB';
CREATE TEMP TABLE a (id int, pad text);
CREATE TEMP TABLE t (id int, pad text);
SET temp_parallel.enabled = off;
INSERT INTO a SELECT g, repeat('x', 1000) FROM generate_series(1, 7000) g;
SELECT FROM limit_memory(regexp_replace(pg_read_file('/proc/self/status'), '.*VmSize:\\s*(\\d+) kB.*', '\\1')::bigint * 1024);
INSERT INTO a SELECT generate_series(1, 20000), repeat('x', 1000);
SELECT FROM limit_memory(-1);
SET temp_parallel.enabled = on;
INSERT INTO t SELECT g, repeat('y', 1000) FROM generate_series(1, 3000) g;
SET parallel_leader_participation = off;
SELECT count(*), sum(id) FROM t;
SELECT workers_launched FROM temp_parallel_stats();
}, stdout => \$out, stderr => \$err, on_error_stop => 0);
	like($err, qr/ERROR:  out of memory/, "share_local_buffers = $share: no memory for a buffer");
	is($out, "3000|4501500\n2", "share_local_buffers = $share: workers see the pages behind it");
}

# From 18 on, what a process may read ahead is a part of temp_buffers less what it has
# pinned. In a worker, the shared pages are pinned, but do not count; otherwise it would read
# the other pages one by one.
SKIP: {
	skip 'pg_stat_io does not count bytes', 1 if $node->pg_version < 18;

	$node->safe_psql('postgres', q{SELECT pg_stat_reset_shared('io');});
	$node->safe_psql('postgres', "SET parallel_leader_participation = off; $fill INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 380000) g; $query");
	ok($node->poll_query_until('postgres', q{
SELECT coalesce(sum(read_bytes), 0) > 4 * 8192 * sum(reads) FROM pg_stat_io
 WHERE backend_type = 'background worker' AND object = 'temp relation' AND reads > 0}),
		'workers read several pages at once');
}

# SET temp_buffers after CREATE TABLE, but not after a statement that fills tables.
($out, $err) = ('', '');
$node->psql('postgres', "CREATE TEMP TABLE t (id int, pad text); CREATE TEMP TABLE u (id int PRIMARY KEY); SET temp_buffers = '4MB'; SHOW temp_buffers; INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 20000) g; $query SET temp_buffers = '8MB';",
	stdout => \$out, stderr => \$err, on_error_stop => 0);
is($out, "4MB\n$answer", 'temp_buffers can be set after CREATE TABLE');
like($err, qr/invalid value for parameter "temp_buffers"/, 'and not after INSERT, as without the module');

$node->stop;
ok(slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
