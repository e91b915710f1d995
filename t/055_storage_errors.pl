# I/O errors during a parallel query over a temporary table: no space left, an
# I/O error, a short read or write, a file that cannot be opened; in the flush,
# in an eviction, and in a worker's read. The statement must fail with core's
# own error, a page that was not completely written must stay dirty, and nothing
# may be missing when the error is gone.

use strict;
use warnings;

use Errno qw(EIO ENOSPC);
use FindBin;
use lib $FindBin::RealBin;
use IoFault;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

my $node = with_io_fault(sub { return fault_server('main'); });
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# ----------
# Errors and checks
# ----------

# The number of whole pages that were transferred.
sub pages
{
	my %calls = io_calls();
	my $pages = 0;

	$pages += int($_ / 8192) * $calls{$_} foreach grep { $_ > 0 } keys %calls;
	return $pages;
}

# Check that of $dirty dirty pages, only those that were written are clean now.
sub rest_is_dirty
{
	my ($s, $dirty, $name) = @_;
	my $pages = pages();

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	cmp_ok($s->safe('SELECT pg_dirty_local_buffers();'),
		'>=', $dirty - $pages, "$name: what was not written is dirty");
	return;
}

# SQLSTATE and message of an error, without what differs between runs and
# versions.
sub error_of
{
	my ($err) = @_;

	return $err unless $err =~ /\bERROR:  (.*)$/m;
	my $error = $1;
	$error =~ s/ blocks? \d+(\.\.\d+)? / blocks /;
	$error =~ s/"base.*?"/FILE/;
	$error =~ s/\d+ of \d+ bytes/N of M bytes/;
	return $error;
}

my %sqlstate = (ENOSPC, '53100', EIO, '58030');
my %text = (ENOSPC, 'No space left on device', EIO, 'Input/output error');

sub expected_error
{
	my ($what, $errno) = @_;

	return "$sqlstate{$errno}: could not $what blocks in file FILE: $text{$errno}";
}

# A query that reads all of t, with its TOASTed values.
my $query = 'SELECT count(*), sum(v), sum(hashtext(big)) FROM t;';
my $ids = 'SELECT count(*), sum(v) FROM t WHERE id > 0;';

sub fails_with
{
	my ($s, $sql, $expected, $name) = @_;
	my ($out, $err) = $s->query($sql);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(error_of($err), $expected, $name);
	return $err;
}

# The access method first: any parallel query would restore it.
sub all_is_well
{
	my ($s, $n, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(($s->query('REINDEX TABLE t;'))[1], '', "$name: heap's access method is back");
	ok(sound($s, $n), "$name: nothing is lost");
	return;
}

sub new_session
{
	my ($pool) = @_;
	my $s = fault_session($node, $pool);

	$s->safe('\set VERBOSITY verbose');
	# Changes without workers set hints: so the planner, which looks at the ends of indexes,
	# dirties no page, and the number of dirty pages is known.
	$s->safe('SET temp_parallel.run_ahead = off;');
	make_tables($s);
	# A large pool keeps pusher: set its hint bits, so that the checks do not.
	$s->safe('SELECT count(*) FROM pusher; SELECT pg_flush_local_buffers();');
	return $s;
}

# ----------
# The flush
# ----------

my $n = 0;
my $s = new_session('16MB');
like(
	$s->safe("EXPLAIN (COSTS OFF) $query"),
	qr/^Finalize Aggregate\n.*Gather\n.*\n.*Custom Scan \(TempFlush\)\n/,
	'the query is parallel and has a flush');

foreach my $errno (ENOSPC, EIO)
{
	# before 17, a call writes one page; from 17 on, up to 16
	foreach my $skip (0, 1, 20)
	{
		my $name = "flush, $text{$errno} after $skip calls";

		change($s, ++$n);
		my $dirty = $s->safe('SELECT pg_dirty_local_buffers();');
		my $flushes = $s->safe('SELECT flushes FROM temp_parallel_stats();');
		fail_io('write', 'fail', $errno, $skip, 1000, '/t');
		fails_with($s, $query, expected_error('write', $errno), $name);
		rest_is_dirty($s, $dirty, $name);

		# with the same error again
		fail_io('write', 'fail', $errno, 0, 1000, '/t');
		fails_with($s, $query, expected_error('write', $errno), "$name: and once more");
		is(pages(), 0, "$name: nothing was written by that");
		is($s->safe('SELECT flushes FROM temp_parallel_stats();'),
			$flushes, "$name: no worker was launched");

		mend_io();
		all_is_well($s, $n, $name);
	}
}

# A short write: 15 reports a full disk; later versions write the rest, which
# succeeds, or fails if the disk is full.
change($s, ++$n);
fail_io('write', 'short', 0, 1, 1, '/t');
my ($out, $err) = $s->query($query);
if ($version < 170000)
{
	is(error_of($err),
		'53100: could not write blocks in file FILE: wrote only N of M bytes',
		'flush, short write');
}
else
{
	is($err, '', 'flush, short write');
}
cmp_ok({ io_calls() }->{4096} || 0, '>', 0, 'flush, short write: there was one');
mend_io();
all_is_well($s, $n, 'flush, short write');

change($s, ++$n);
my $dirty = $s->safe('SELECT pg_dirty_local_buffers();');
fail_io('write', 'short', ENOSPC, 1, 1000, '/t');
like(
	error_of(($s->query($query))[1]),
	qr/^53100: could not write blocks in file FILE: (No space left on device|wrote only N of M bytes)$/,
	'flush, disk full in the middle of a page');
rest_is_dirty($s, $dirty, 'flush, disk full in the middle of a page');
mend_io();
all_is_well($s, $n, 'flush, disk full in the middle of a page');

# In a subtransaction: earlier changes of the transaction are still there.
change($s, ++$n);
$s->safe(q{
BEGIN;
SELECT FROM on_both('UPDATE @ SET k = k + 1 WHERE id % 50 = 3');
SAVEPOINT a;
SELECT FROM on_both('UPDATE @ SET k = -1 WHERE id % 50 = 4');
});
fail_io('write', 'fail', ENOSPC, 2, 1000, '/t');
fails_with($s, $query, expected_error('write', ENOSPC), 'flush, in a subtransaction');
$s->safe('ROLLBACK TO a;');
mend_io();
$s->safe('COMMIT;');
all_is_well($s, $n, 'flush, in a subtransaction');

# In an exception block; the transaction goes on.
change($s, ++$n);
fail_io('write', 'fail', EIO, 0, 1000, '/t');
is( $s->safe(q{
BEGIN;
DO $$
BEGIN
	PERFORM sum(v) FROM t;
	RAISE EXCEPTION 'the query has not failed';
EXCEPTION WHEN io_error THEN
	NULL;
END $$;}), '', 'flush, in an exception block');
mend_io();
$s->safe(q{
SELECT on_both('UPDATE @ SET k = k + 1 WHERE id % 40 = 3');
COMMIT;});
all_is_well($s, $n, 'flush, in an exception block');

# The functions that write: no dirty page is evicted before it has been written.
foreach my $function ('pg_flush_local_buffers()', "pg_flush_local_buffers('t')",
	"pg_evict_local_buffers('t')", 'pg_evict_local_buffers()')
{
	change($s, ++$n);
	$dirty = $s->safe('SELECT pg_dirty_local_buffers();');
	fail_io('write', 'fail', ENOSPC, 3, 1000, '/t');
	fails_with($s, "SELECT $function;", expected_error('write', ENOSPC), $function);
	rest_is_dirty($s, $dirty, $function);
	mend_io();
	all_is_well($s, $n, $function);
}

# ----------
# Reads
# ----------

# In a worker, as the leader does not participate: of heap, TOAST table and index.
$s->safe('SET parallel_leader_participation = off;');
my $toast = q{(SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 't'::regclass)};
my %reads = (
	'heap' => [ q{'t'}, $query ],
	'TOAST table' => [ $toast, $query ],
	'index' => [ q{'t_pkey'}, "SET enable_seqscan = off; SET enable_bitmapscan = off; $ids" ]);
foreach my $what (sort keys %reads)
{
	my ($relation, $sql) = @{ $reads{$what} };

	change($s, ++$n);
	$s->safe("SELECT count(*) FROM pg_evict_local_buffers('t');");
	fail_io('read', 'fail', EIO, 2, 1000, file_of($s, $relation));
	like(
		fails_with($s, $sql, expected_error('read', EIO), "read of $what, I/O error"),
		qr/CONTEXT:  parallel worker/, "read of $what, I/O error: in a worker");
	mend_io();
	$s->safe('RESET enable_seqscan; RESET enable_bitmapscan;');
	all_is_well($s, $n, "read of $what, I/O error");
}

# A file that is too short: a missing page is an error, not an empty page.
change($s, ++$n);
$s->safe("SELECT count(*) FROM pg_evict_local_buffers('t');");
fail_io('read', 'end', EIO, 1, 1, '/t');
like(
	fails_with($s, $query, 'XX001: could not read blocks in file FILE: read only N of M bytes', 'read at the end of the file'),
	qr/CONTEXT:  parallel worker/, 'read at the end of the file: in a worker');
mend_io();
all_is_well($s, $n, 'read at the end of the file');

# A worker opens the files by name. The leader has them open, so its flush
# succeeds.
my $heap = $node->data_dir . '/' . $s->safe("SELECT pg_relation_filepath('t');");
change($s, ++$n);
chmod 0, $heap or die "chmod: $!";
like(
	fails_with($s, $query, '42501: could not open file FILE: Permission denied', 'file without permission'),
	qr/CONTEXT:  parallel worker/, 'file without permission: in a worker');
chmod 0600, $heap or die "chmod: $!";
all_is_well($s, $n, 'file without permission');

$heap = $node->data_dir . '/' . $s->safe("SELECT pg_relation_filepath('t');");
change($s, ++$n);
rename $heap, "$heap.away" or die "rename: $!";
like(
	fails_with($s, $query, '58P01: could not open file FILE: No such file or directory', 'file gone'),
	qr/CONTEXT:  parallel worker/, 'file gone: in a worker');
rename "$heap.away", $heap or die "rename: $!";
all_is_well($s, $n, 'file gone');
$s->quit;

# ----------
# Evictions, with the smallest pool
# ----------
$s = new_session('800kB');

# Neither the leader nor a worker writes in the read-only phase, so the queries
# succeed although every write fails. The rows have no hint bits, and some of
# them are dead, so that the same queries have to write without the extension.
my %scans = (
	'sequential scan' => [ '', $query ],
	'index scan' => [ 'SET enable_seqscan = off; SET enable_bitmapscan = off;', $ids ],
	'bitmap scan' => [ 'SET enable_seqscan = off; SET enable_indexscan = off;', $ids ],
	'TID range scan' => [ '', q{SELECT count(*), sum(v) FROM t WHERE ctid > '(0,0)';} ],

	# a parallel query inside another one, whose end must not end the outer
	# read-only phase; without workers, so that the leader reads on after each
	'nested query' => [ 'SET max_parallel_workers = 0;', q{
SELECT count(*), sum(v), sum(x)
  FROM (SELECT v, CASE WHEN id % 1000 = 0 THEN pg_temp.reads_t() END AS x FROM t OFFSET 0) s;} ]);
$s->safe(q{
CREATE FUNCTION pg_temp.reads_t() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
$$ BEGIN RETURN (SELECT sum(v) FROM t); END $$;});
foreach my $what (sort keys %scans)
{
	my ($set, $sql) = @{ $scans{$what} };
	my $expected;

	change($s, ++$n);
	($expected = $sql) =~ s/\bt\b/p/;
	$expected = $s->safe($expected);
	$s->safe("$set SELECT pg_flush_local_buffers();");
	fail_io('write', 'fail', ENOSPC, 0, 1000, '/t');
	($out, $err) = $s->query($sql);
	is("$out$err", $expected, "$what: the answer is right");
	is({ io_calls() }->{-1}, undef, "$what: nobody tries to write");
	fails_with($s, "SET temp_parallel.enabled = off; $sql",
		expected_error('write', ENOSPC), "$what: without the extension there are writes");
	mend_io();
	$s->safe('RESET temp_parallel.enabled; RESET max_parallel_workers; RESET enable_seqscan; RESET enable_indexscan; RESET enable_bitmapscan;');
	all_is_well($s, $n, $what);
}

# An eviction in a statement that writes: the statement is rolled back, and
# earlier changes are still there.
change($s, ++$n);
fail_io('write', 'fail', ENOSPC, 5, 1000, '/t');
fails_with($s, 'UPDATE t SET v = 0;', expected_error('write', ENOSPC), 'eviction by an UPDATE');
mend_io();
all_is_well($s, $n, 'eviction by an UPDATE');

# An eviction by the leader in a parallel query: pages of another table, which
# was not flushed since no worker reads it. The leader reads in parallel mode,
# but without workers.
change($s, ++$n);
$s->safe(q{
SET max_parallel_workers = 0;
CREATE TEMP TABLE other AS SELECT g FROM generate_series(1, 15000) g;
});
fail_io('write', 'fail', EIO, 3, 1000, file_of($s, q{'other'}));
fails_with($s, $query, expected_error('write', EIO), 'eviction of another table');
mend_io();
is($s->safe('SELECT count(*), sum(g) FROM other;'),
	'15000|112507500', 'eviction of another table: that is all there');
$s->safe('RESET max_parallel_workers;');
all_is_well($s, $n, 'eviction of another table');
$s->quit;

nothing_left($node, 'after all sessions');
$node->stop;
# the errors above, and those of workers that started after the leader had failed
log_is_clean($node,
	qr/could not (write|read) block|could not open file "base|$from_core|could not send data to client/);
done_testing();
