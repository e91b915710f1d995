# Invalidations during a parallel query over a temporary table. The relation
# cache rebuilds the table's descriptor with heap's own access method. If the
# module did not replace it again, the leader and the workers would prune pages,
# set hint bits, and write to the files that the others are reading.
#
# Each query waits at its first row, in the leader and in all workers, until the
# invalidations have been sent and io_fault.c makes all writes fail. The table
# is twice as large as the pools, and its rows have no hint bits, so that a
# process that sets them has to write, and fails.

use strict;
use warnings;

use Errno qw(ENOSPC);
use FindBin;
use lib $FindBin::RealBin;
use IoFault;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

my $node = with_io_fault(sub { return fault_server('main'); });
$node->safe_psql('postgres', q{
-- Waits while there is a file "hold" in the data directory. Then looks up a
-- table that does not exist: this takes a lock, and so processes invalidations.
CREATE FUNCTION hold(i int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE AS $$
BEGIN
	WHILE (pg_stat_file('hold', true)).size IS NOT NULL LOOP
		PERFORM pg_sleep(0.002);
	END LOOP;
	RETURN to_regclass('not_there_' || i) IS NULL;
END $$;
});
my $hold = $node->data_dir . '/hold';

my $s = fault_session($node, '800kB');
make_tables($s);

# Make rows without hint bits and dead rows, all over both tables, and run
# $more. Dirty pages are written, as later writes will fail.
my $n = 0;

sub prepare
{
	my ($more) = @_;

	$n++;
	change($s, $n);
	$s->safe(q{SELECT on_both('UPDATE @ SET v = v + 1 WHERE id % 3 = 0');});
	$s->safe($more) if defined $more;
	$s->safe('SELECT pg_flush_local_buffers();');
	return;
}

# run_held(QUERY, INVALIDATE) - run the query, call INVALIDATE while all three
# processes wait, and make all writes fail from then on. Returns the query's
# output and errors, and the new part of the server's log.
sub run_held
{
	my ($query, $invalidate) = @_;
	my $log = -s $node->logfile;

	append_to_file($hold, 'hold');
	$s->begin("SET log_min_messages = debug4; $query RESET log_min_messages;");
	$node->poll_query_until('postgres', qq{
SELECT count(*) = 3 FROM pg_stat_activity
 WHERE wait_event = 'PgSleep' AND @{[ $s->pid ]} IN (pid, leader_pid)})
	  or die 'the query is not held';
	$invalidate->();
	fail_io('write', 'fail', ENOSPC, 0, 100000, '/t');
	unlink $hold or die "unlink: $!";
	my ($out, $err) = $s->end;
	mend_io();
	return ($out, $err, slurp_file($node->logfile, $log));
}

# Let all descriptors be rebuilt: each process misses more messages than the
# server keeps.
sub storm
{
	$node->safe_psql('postgres', q{
DO $$
BEGIN
	FOR i IN 1 .. 150 LOOP
		EXECUTE 'CREATE TABLE storm (id int PRIMARY KEY, t text)';
		EXECUTE 'DROP TABLE storm';
	END LOOP;
END $$;
});
	return;
}

# Let one descriptor be rebuilt: another session updates the relation's row of
# pg_class.
sub touch
{
	my ($relation) = @_;

	$node->safe_psql('postgres', "UPDATE pg_class SET relname = relname WHERE oid = $relation");
	return;
}

sub all_is_well
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(($s->query('REINDEX TABLE t;'))[1], '', "$name: heap's access method is back");
	ok(sound($s, $n), "$name: nothing is lost");
	return;
}

my $t = $s->safe(q{SELECT 't'::regclass::oid;});
my $toast = $s->safe(q{SELECT reltoastrelid FROM pg_class WHERE oid = 't'::regclass;});

# TOASTed values of two chunks of the largest size, two of which fill a page;
# one of them is dead. A page that is not full would not be pruned.
my $large_toast = q{
SELECT on_both('UPDATE @ SET big = left(repeat(id::text, 4000), 2 * 1996) WHERE id % 10 = 5');
SELECT on_both('UPDATE @ SET big = reverse(big) WHERE id % 20 = 5');};
my $noseq = 'SET enable_seqscan = off;';
my %scans = (
	'sequential scan' => [
		'', 'SELECT count(*), sum(v), sum(k) FROM t WHERE hold(id);' ],
	'index scan' => [
		"$noseq SET enable_bitmapscan = off;",
		'SELECT count(*), sum(v), sum(k) FROM t WHERE id > 0 AND hold(id);' ],
	'bitmap scan' => [
		"$noseq SET enable_indexscan = off;",
		'SELECT count(*), sum(v), sum(k) FROM t WHERE id > 0 AND hold(id);' ],
	'TOASTed values' => [
		$large_toast, 'SELECT count(*), sum(hashtext(big)) FROM t WHERE hold(id);' ]);
my %invalidations = (
	'everything' => \&storm,
	'the table' => sub { touch($t); },
	'the TOAST table' => sub { touch($toast); });
my @cases = (
	[ 'sequential scan', 'everything' ],
	[ 'sequential scan', 'the table' ],
	[ 'index scan', 'everything' ],
	[ 'bitmap scan', 'the table' ],
	[ 'TOASTed values', 'everything' ],
	[ 'TOASTed values', 'the TOAST table' ]);

foreach my $case (@cases)
{
	my ($scan, $invalidated) = @$case;
	my ($set, $query) = @{ $scans{$scan} };
	my $name = "$scan, $invalidated invalidated";
	my ($out, $err, $log, $expected);

	prepare($set);
	($expected = $query) =~ s/ t / p /;
	$expected = $s->safe($expected);
	($out, $err, $log) = run_held($query, $invalidations{$invalidated});
	is("$out$err", $expected, "$name: the answer is right, and nobody writes");
	if ($invalidated eq 'everything')
	{
		my $resets = () = $log =~ /cache state reset/g;

		# otherwise, the case would prove nothing
		is($resets, 3, "$name: leader and workers have had it");
	}
	$s->safe('RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_indexscan;');
	all_is_well($name);
}

# The same, and then an error: the leader's rebuilt descriptor must have heap's
# own access method again.
prepare();
my ($out, $err) = run_held('SELECT count(*), sum(1 / (id - 4000)) FROM t WHERE hold(id);', \&storm);
like($err, qr/division by zero/, 'an error after an invalidation');
all_is_well('an error after an invalidation');

# The same in a transaction that has altered the table before, whose descriptor
# is then rebuilt in another way, and that is rolled back afterwards.
prepare();
$s->safe(q{
BEGIN;
ALTER TABLE t ADD COLUMN c int DEFAULT 1;
UPDATE t SET k = -1 WHERE id % 4 = 0;
SELECT pg_flush_local_buffers();
});
my $expected = $s->safe('SELECT count(*), sum(CASE WHEN id % 4 = 0 THEN -1 ELSE k END) FROM p;');
($out, $err) = run_held('SELECT count(c), sum(k) FROM t WHERE hold(id);', \&storm);
is("$out$err", $expected, 'a table changed in the transaction: the answer is right, and nobody writes');
is(($s->query('REINDEX TABLE t;'))[1],
	'', 'a table changed in the transaction: heap\'s access method is back');
$s->safe('ROLLBACK;');
all_is_well('a table changed in the transaction');

# A server built with assertions can rebuild all descriptors whenever an
# invalidation could be processed, which is at each catalog lookup.
SKIP:
{
	skip 'this server has no debug_discard_caches', 3
	  if $s->safe(q{SELECT max_val FROM pg_settings WHERE name = 'debug_discard_caches';}) eq '0';

	prepare();
	$expected = $s->safe('SELECT count(*), sum(v), sum(hashtext(big)) FROM p;');
	fail_io('write', 'fail', ENOSPC, 0, 100000, '/t');
	($out, $err) = $s->query(q{
SET debug_discard_caches = 1;
SELECT count(*), sum(v), sum(hashtext(big)) FROM t WHERE id % 500 > 0 OR to_regclass('not_there_' || id) IS NULL;
SET debug_discard_caches = 0;});
	mend_io();
	is("$out$err", $expected, 'caches discarded all the time: the answer is right, and nobody writes');
	all_is_well('caches discarded all the time');
}

$s->quit;
nothing_left($node, 'after all sessions');
$node->stop;
log_is_clean($node, qr/could not send data to client/);
done_testing();
