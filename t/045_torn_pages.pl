# In the read-only phase, neither the leader nor a worker writes a page that
# workers read.
#
# Otherwise, a worker that evicts a page on which it has set hint bits would
# write to a file of its own session, which does not exist: an error. The leader
# would write such a page to the file that workers are reading, and a worker
# that reads it at the same time would get a torn page, half old and half new:
# an error with checksums, and wrong results without.
#
# To show that the stress test can fail, it is run three times for each kind of
# scan: with a module whose workers read by heap's own callbacks, where a file
# must be missing; with one whose leader does, where pages must be torn,
# TORN_ROUNDS times (default 3); and with the module as it is, which must pass
# five times as many queries as the longest of these rounds, and at least
# TORN_QUERIES (default 10).
#
# What makes a torn page likely:
# - The smallest pools, so that pages are evicted soon.
# - A driving table with several rows for each range of the other table, one per
#   block: as blocks are assigned one by one, the leader and the workers are
#   always in the same few ranges.
# - An update of every row before each query, which leaves row versions without
#   hint bits and dead ones, which pruning removes, on every page.
# - Writes in two steps that take 0.1 ms (io_fault.c). Without that, a page is
#   torn only if a process is interrupted while it copies: on two cores, after
#   two queries on a busy machine and hundreds on an idle one.

use strict;
use warnings;

use File::Basename;
use lib dirname(__FILE__);
use Build qw(build);
use IoFault;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rounds = $ENV{TORN_ROUNDS} || 3;
my $enough = $ENV{TORN_QUERIES} || 10;
my $patience = 100;    # queries within which the unguarded modules must fail

# Only one file differs, so the module's other object files are used if they
# exist.
my $top = dirname(__FILE__) . '/..';
my @files = grep { !/readonly_heap\.[co]$/ } glob("$top/*.[cho] $top/*.control $top/*.sql $top/Makefile");
my %library = (guarded => 'temp_parallel');
my %unguarded = (leader => '!IsParallelWorker()', workers => 'IsParallelWorker()');
foreach my $name (keys %unguarded)
{
	my $source = slurp_file("$top/readonly_heap.c");
	my $changed = PostgreSQL::Test::Utils::tempdir() . '/readonly_heap.c';

	$source =~ s/^\treadonly_routine = \*heap;\n\K/\tif ($unguarded{$name})\n\t\treturn;\n/m
	  or die 'readonly_heap.c no longer copies the routine of heap';
	append_to_file($changed, $source);
	$library{$name} = build('temp_parallel', [ @files, $changed ]);
}

my $node = with_io_fault(
	sub {
		my $node = PostgreSQL::Test::Cluster->new('main');
		$node->init(extra => ['--data-checksums']);
		$node->append_conf(
			'postgresql.conf', qq{
max_worker_processes = 16
max_parallel_workers = 8
autovacuum = off
log_min_messages = fatal
});
		$node->start;
		return $node;
	});
fail_io('write', 'torn', 0, 0, 2**31 - 1, '/');

$node->safe_psql('postgres', q{
-- Updates and queries in turn until one fails or returns a wrong result, at most
-- at_most times. The number of updates determines the result.
CREATE PROCEDURE stress(query text, at_most int, OUT queries int, OUT failure text)
LANGUAGE plpgsql AS $$
DECLARE
	touched bigint;
	n bigint;
	total bigint;
BEGIN
	SET temp_parallel.enabled = off;
	UPDATE t SET k = 0;
	EXECUTE query INTO touched;
	SET temp_parallel.enabled = on;
	queries := 0;
	WHILE failure IS NULL AND queries < at_most LOOP
		UPDATE t SET k = k + 1;
		COMMIT;
		queries := queries + 1;
		BEGIN
			EXECUTE query INTO n, total;
			IF n <> touched OR total <> touched * queries THEN
				failure := format('wrong answer %s %s instead of %s %s',
								  n, total, touched, touched * queries);
			END IF;
		EXCEPTION WHEN OTHERS THEN
			failure := SQLERRM;
		END;
		COMMIT;
	END LOOP;
END $$;

-- The number of pages that the query writes after the flush; NULL without
-- workers.
CREATE FUNCTION written(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	RETURN (plan->0->'Plan'->>'Local Written Blocks')::int -
		(jsonb_path_query_first(plan, 'strict $.** ? (@."Custom Plan Provider" == "TempFlush")')
			->>'Flush Written Buffers')::int;
END $$;
});

# 1200 pages of rows. Each eight consecutive rows of the driving table read the
# same 300.
my $setup = q{
SET client_min_messages = error;
SET temp_buffers = 100;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
SET max_parallel_workers_per_gather = 4;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 10;
SET temp_parallel.processors = 8;
SET parallel_tuple_cost = 0;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_indexonlyscan = off;

CREATE TEMP TABLE t (id int, k int, pad text) WITH (fillfactor = 45, parallel_workers = 0);
INSERT INTO t SELECT g, 0, repeat('x', 300) FROM generate_series(0, 11999) g;
CREATE INDEX t_id ON t (id);
CREATE TEMP TABLE driving (x int, pad text) WITH (parallel_workers = 4);
ALTER TABLE driving ALTER pad SET STORAGE PLAIN;
INSERT INTO driving SELECT g, repeat('x', 7000) FROM generate_series(0, 55) g;
ANALYZE t, driving;
};

# Reads of single pages, of several pages by read streams (bitmap heap scans
# from 18 on, sequential scans from 17 on), and of the whole table again and
# again.
my $ranges = 'SELECT count(*), sum(k) FROM driving JOIN t ON id BETWEEN x / 8 * 1500 AND x / 8 * 1500 + 3000';
my @ways = (
	[ 'index scan', 'SET enable_seqscan = on; SET enable_bitmapscan = off;', $ranges ],
	[ 'bitmap heap scan', 'SET enable_indexscan = off;', $ranges ],
	[ 'seq scan', 'SET enable_indexscan = off; SET enable_bitmapscan = off;',
		'SELECT count(*), sum(k) FROM driving JOIN t ON x < 16 AND id > -x' ]);

# Run SQL commands in a new session with one of the libraries. Returns the
# fields of the last line of the output.
sub session
{
	my ($library, $settings, $commands) = @_;
	my $script = "LOAD '$library{$library}'; $setup $settings $commands";

	# dies of an error or a timeout: the script must run to its end
	my $out = $node->safe_psql('postgres', $script,
		timeout => 4 * $PostgreSQL::Test::Utils::timeout_default);
	return split(/\|/, (split(/\n/, $out))[-1], -1);
}

sub stress
{
	my ($library, $way, $at_most) = @_;
	my ($name, $settings, $query) = @$way;

	return session($library, $settings, "CALL stress('$query', $at_most, NULL, NULL);");
}

foreach my $way (@ways)
{
	my ($name, $settings, $query) = @$way;

	# The plan is the intended one and has a Gather: otherwise there would be no
	# count. Then the invariant itself.
	my $explain = "$settings EXPLAIN (COSTS OFF) $query";
	my $plan = $node->safe_psql('postgres', "LOAD 'temp_parallel'; $setup $explain");
	like($plan, qr/Gather.*Parallel Seq Scan on driving.*\b$name( using t_id)? on t\b/si,
		"$name: the plan");
	my $count = "UPDATE t SET k = k; SELECT written('$query');";
	is((session('guarded', $settings, $count))[0],
		0, "$name: nothing is written after the flush");
	# without workers, one of which could read a torn page
	cmp_ok((session('leader', "$settings SET max_parallel_workers = 0;", $count))[0],
		'>', 0, "$name, unguarded leader: pages are written after the flush");

	# The consequences without the guard.
	my ($queries, $failure) = stress('workers', $way, $patience);
	like($failure, qr/could not open file ".*\/t\d+_\d+"/,
		"$name, unguarded workers: a file that does not exist ($queries queries)");

	my @took;
	foreach my $round (1 .. $rounds)
	{
		($queries, $failure) = stress('leader', $way, $patience);
		like($failure, qr/invalid page in block \d+ of relation|invalid pages among blocks \S+ of relation|wrong answer/,
			"$name, unguarded leader: a torn page ($queries queries)");
		push @took, $queries;
	}
	@took = sort { $a <=> $b } @took;

	# No failure with it.
	my $needed = $enough > 5 * $took[-1] ? $enough : 5 * $took[-1];
	($queries, $failure) = stress('guarded', $way, $needed);
	is($failure, '', "$name: no failure in $queries queries");
	is($queries, $needed, "$name: all of them have run");
	note("unguarded leader: median $took[$#took / 2] queries to failure, most $took[-1]");
}

$node->stop;
ok( slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal/,
	'no crash or failed assertion in the log');

done_testing();
