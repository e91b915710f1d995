# A worker that cannot allocate its local buffers, since any role may set temp_buffers to
# any number, and a worker may need as many: this must be an error of the statement, and
# neither crash the server nor lose rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

plan skip_all => 'AddressSanitizer ends a process whose address space is limited' if $ENV{TEST_SANITIZE};

my $node = fault_server('main');
$node->safe_psql('postgres', 'CREATE ROLE anybody');

# Processes that are started while the limit lasts have room for 64 MB beyond what the
# server has mapped. The headers of the session's pool take more: 80 bytes for each buffer.
my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
my ($mapped) = slurp_file("/proc/$postmaster/status") =~ /^VmSize:\s+(\d+) kB/m;
my $room = ($mapped + 65536) * 1024;
my $limit = "\\! prlimit --pid=$postmaster --as";

# Without ON_ERROR_STOP: the commands after the error are run in the same session. A scan
# of a GIN index may pin any number of pages, so a worker gets as many buffers as the session.
my ($status, $answers, $errors) = $node->psql('postgres', qq{
SET ROLE anybody;
$TempParallel::settings
SET temp_buffers = 2000000;
CREATE TEMP TABLE t AS SELECT g AS id, ARRAY[g % 10] AS a FROM generate_series(1, 50000) g;
CREATE INDEX ON t USING gin (a);
ANALYZE t;
SET enable_seqscan = off;
$limit=$room:
SELECT count(*), sum(id) FROM t WHERE a <@ '{0,1,2,3,4,5,6,7,8,9}';
SELECT 'still here';
UPDATE t SET id = id + 1;
$limit=unlimited:
SELECT count(*), sum(id) FROM t WHERE a <@ '{0,1,2,3,4,5,6,7,8,9}';
}, on_error_stop => 0);
like($errors, qr/ERROR:  out of memory\nCONTEXT:  parallel worker/,
	'a pool that is too large for a worker is an error of the statement');
is($answers, "still here\n50000|1250075000", 'the session goes on, and has lost nothing');

is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server goes on');
$node->stop;
ok( slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
