# Scans of large permanent tables begin where another one is, so that they share what they
# read. A subquery with LIMIT, which each process of a parallel plan runs as a whole, would have
# other rows in each; DELETE would then leave rows that no answer of the subquery leaves.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', qq{
session_preload_libraries = 'temp_parallel'
shared_buffers = 1MB
autovacuum = off
max_parallel_workers_per_gather = 2
min_parallel_table_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
temp_parallel.write_temp_page_cost = 0
temp_parallel.buffer_scan_cost = 0
temp_parallel.processors = 1000
});
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION temp_parallel;
CREATE TABLE large (v int, pad text) WITH (parallel_workers = 0);
INSERT INTO large SELECT g, repeat('x', 200) FROM generate_series(1, 40000) g;
CREATE TABLE other AS TABLE large;
ANALYZE large, other;
});

my $answers = $node->safe_psql('postgres', q{
CREATE TEMP TABLE t AS SELECT g AS v FROM generate_series(1, 40000) g;
ANALYZE t;
SELECT count(*) FROM t WHERE v NOT IN (SELECT v FROM large LIMIT 5000);
SELECT count(*) FROM t WHERE v NOT IN (SELECT v FROM large LIMIT 5000);
SELECT count(*) FROM t WHERE v NOT IN (SELECT v FROM large LIMIT 5000);
DELETE FROM t WHERE v NOT IN (SELECT v FROM large LIMIT 5000);
SELECT count(*) FROM t;
-- workers read no temporary table here
CREATE TEMP TABLE s (v int);
EXPLAIN (COSTS OFF) INSERT INTO s SELECT count(*) FROM other WHERE v NOT IN (SELECT v FROM large LIMIT 5000);
INSERT INTO s SELECT count(*) FROM other WHERE v NOT IN (SELECT v FROM large LIMIT 5000);
INSERT INTO s SELECT count(*) FROM other WHERE v NOT IN (SELECT v FROM large LIMIT 5000);
INSERT INTO s SELECT count(*) FROM other WHERE v NOT IN (SELECT v FROM large LIMIT 5000);
SELECT v FROM s;
SELECT workers_launched >= 8 FROM temp_parallel_stats();
SHOW synchronize_seqscans;
});
like($answers, qr/RunAhead.*Gather/s, 'workers find the rows of INSERT');
is($answers =~ s/^(Insert| +).*\n//mgr, "35000\n35000\n35000\n5000\n35000\n35000\n35000\nt\non", 'each process has the same rows of a subquery');

# After an error, too, the setting is as before.
my ($stdout, $stderr) = ('', '');
$node->psql('postgres', q{
CREATE TEMP TABLE t AS SELECT g AS v FROM generate_series(1, 40000) g;
ANALYZE t;
SELECT sum(1 / (v - 20000)) FROM t;
SHOW synchronize_seqscans;
}, stdout => \$stdout, stderr => \$stderr, on_error_stop => 0);
like($stderr, qr/division by zero/, 'an error while workers read');
is($stdout, 'on', 'the setting after it');

# Also after an error of a function that the leader runs, with the setting of its own.
($stdout, $stderr) = ('', '');
$node->psql('postgres', q{
CREATE FUNCTION fails(int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED SET synchronize_seqscans = on
AS 'BEGIN RETURN 1 / ($1 - $1); END';
CREATE TEMP TABLE t AS SELECT g AS v FROM generate_series(1, 40000) g;
ANALYZE t;
SELECT fails(sum(v)::int) FROM t;
SHOW synchronize_seqscans;
BEGIN;
SAVEPOINT a;
SELECT fails(sum(v)::int) FROM t;
ROLLBACK TO a;
SHOW synchronize_seqscans;
COMMIT;
SHOW synchronize_seqscans;
}, stdout => \$stdout, stderr => \$stderr, on_error_stop => 0);
like($stderr, qr/division by zero.*division by zero/s, 'an error in a function with the setting');
is($stdout, "on\non\non", 'the setting after it');

$node->stop;
done_testing();
