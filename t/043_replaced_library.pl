# The library is replaced by that of another release while a session has it loaded. The
# workers that the session starts load the new one: they must refuse the plan, which
# they may misunderstand.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Build 'build';
use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Only files with the release in them differ, so the other object files are used again.
my @sources = glob("$FindBin::RealBin/../*.[cho] $FindBin::RealBin/../*.{control,sql,json} $FindBin::RealBin/../Makefile");
my $loaded = build('temp_parallel.so', \@sources);
my @objects = grep { !/\/(temp_parallel|plan_place|exec_worker)\.o$/ } glob(dirname($loaded) . '/*.o');
my $other = build('temp_parallel.so', [ @objects, grep { !/\.o$/ } @sources ], 'DISTVERSION=9.9.9');
my ($release) = slurp_file("$FindBin::RealBin/../META.json") =~ /^   "version": "(.+)",$/m;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', qq{
max_worker_processes = 8
max_parallel_workers = 8
});
$node->start;

my $setup = qq{
LOAD '$loaded';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
CREATE TEMP TABLE t AS SELECT g AS id FROM generate_series(1, 50000) g;
};

my ($out, $err);
$node->psql('postgres', qq{
$setup
ANALYZE t;
SELECT count(*) FROM t;
\\! mv '$other' '$loaded'
SELECT 'refused', count(*) FROM t;
SET temp_parallel.enabled = off;
SELECT 'serial', count(*) FROM t;
\\c
$setup
SELECT 'reconnected', count(*) FROM t;
}, stdout => \$out, stderr => \$err, on_error_stop => 0);

is($out, "50000\nserial|50000\nreconnected|50000", 'other statements');
like($err, qr/^[^\n]*ERROR:  parallel worker has loaded temp_parallel 9\.9\.9, its leader \Q$release\E\nHINT:  [^\n]*\nCONTEXT:  parallel worker$/,
	'a worker refuses the plan of another release');

$node->stop;
done_testing();
