# Other modules that use the planner's hooks: the paths that they choose must be
# kept, and a plan node of a type unknown to the module must not be an error.

use strict;
use warnings;

use File::Basename;
use lib dirname(__FILE__);
use Build qw(build);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $chooses_paths = build('chooses_paths',
	[ glob(dirname(__FILE__) . '/other_modules/*.[ch]'), dirname(__FILE__) . '/other_modules/Makefile',
		dirname(__FILE__) . '/../temp_parallel_compat.h' ]);
my $dir = dirname($chooses_paths);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', qq{
max_worker_processes = 8
max_parallel_workers = 8
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', qq{
CREATE FUNCTION three_rows_handler() RETURNS fdw_handler LANGUAGE C AS '$chooses_paths';
CREATE FUNCTION foreign_paths_calls() RETURNS int LANGUAGE C AS '$chooses_paths';
CREATE FUNCTION checks() RETURNS bigint LANGUAGE C AS '$dir/counts_checks';
CREATE FOREIGN DATA WRAPPER three_rows HANDLER three_rows_handler;
CREATE SERVER three_rows FOREIGN DATA WRAPPER three_rows;
CREATE TABLE permanent (id int, g int) WITH (autovacuum_enabled = off);
INSERT INTO permanent SELECT i, i % 10 FROM generate_series(20001, 30000) i;
CREATE INDEX permanent_id ON permanent (id);
ANALYZE permanent;
CREATE TABLE tens (id int) WITH (autovacuum_enabled = off, parallel_workers = 0);
INSERT INTO tens SELECT i FROM generate_series(20000, 30000, 10) i;
ANALYZE tens;
CREATE FOREIGN TABLE far (id int) SERVER three_rows;
});

# Every plan that can be parallel is.
my $settings = q{
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
};

# run(LIBRARIES, SQL) - the output of SQL with these libraries, loaded in this
# order.
sub run
{
	my ($libraries, $sql) = @_;
	my $list = join(',', map { $_ eq 'temp_parallel' ? $_ : "$dir/$_" } @$libraries);
	local $ENV{PGOPTIONS} = "-c session_preload_libraries=$list";

	return $node->safe_psql('postgres', $settings . $sql);
}

# ----------
# Choices
# ----------

# Partitions on two levels.  For 40 percent of the rows, the planner chooses a
# sequential scan of each leaf.
my $partitions = q{
CREATE TEMP TABLE pt (id int, g int) PARTITION BY RANGE (id);
CREATE TEMP TABLE pt1 PARTITION OF pt FOR VALUES FROM (1) TO (10001);
CREATE TEMP TABLE pt2 PARTITION OF pt FOR VALUES FROM (10001) TO (20001) PARTITION BY LIST (g);
CREATE TEMP TABLE pt2a PARTITION OF pt2 FOR VALUES IN (0, 1, 2, 3, 4);
CREATE TEMP TABLE pt2b PARTITION OF pt2 DEFAULT;
INSERT INTO pt SELECT i, i % 10 FROM generate_series(1, 20000) i;
CREATE INDEX ON pt (id);
ANALYZE pt;
};
# A permanent child, which core also keeps out of parallel plans.
my $inheritance = q{
CREATE TEMP TABLE inh () INHERITS (permanent);
INSERT INTO inh SELECT i, i % 10 FROM generate_series(1, 10000) i;
CREATE INDEX ON inh (id);
ANALYZE inh;
};
my $joined = q{
CREATE TEMP TABLE a AS SELECT i AS id FROM generate_series(1, 10000) i;
CREATE TEMP TABLE b AS SELECT i AS id FROM generate_series(1, 10000) i;
ANALYZE a, b;
};

# name; tables; query; result; relation; its paths that are kept; the plan with
# these paths, and without the choice
my @choices = (
	[ 'a leaf', $partitions, 'SELECT count(*) FROM pt WHERE id % 10 < 4 AND id > 0', '8000',
		'pt1', 'index', qr/(Index|Heap) (Only )?Scan .*on pt1/, qr/Seq Scan on pt1/ ],
	[ 'a leaf of a partition', $partitions, 'SELECT count(*) FROM pt WHERE id % 10 < 4 AND id > 0', '8000',
		'pt2a', 'index', qr/(Index|Heap) (Only )?Scan .*on pt2a/, qr/Seq Scan on pt2a/ ],
	[ 'a leaf read by its index', $partitions, 'SELECT sum(g) FROM pt WHERE id <= 20 OR id > 10000', '45090',
		'pt1', 'sequential', qr/Seq Scan on pt1/, qr/(Index|Heap) Scan .*on pt1/ ],
	[ 'a permanent child', $inheritance, 'SELECT count(*) FROM permanent WHERE id % 10 < 4 AND id > 0', '8000',
		'permanent', 'index', qr/(Index|Heap) (Only )?Scan .*on permanent/, qr/Seq Scan on permanent/ ],
	[ 'a subquery', $joined,
		'SELECT count(*) FROM (SELECT id FROM a UNION ALL SELECT a.id FROM a JOIN b USING (id)) s', '20000',
		'subquery', 'whole', qr/Subquery Scan on [^\n]*\n\s*->  Gather/, qr/Gather.*Parallel Append/s ]);

foreach my $choice (@choices)
{
	my ($whose, $tables, $query, $answer, $relation, $keep, $chosen, $default) = @$choice;
	my $choose = "SET chooses_paths.relation = '$relation'; SET chooses_paths.keep = '$keep';";

	foreach my $libraries ([ 'chooses_paths', 'temp_parallel' ], [ 'temp_parallel', 'chooses_paths' ])
	{
		my $order = join(', ', @$libraries);
		my $plan = run($libraries, "$tables EXPLAIN (COSTS OFF) $query");

		like($plan, qr/Gather/, "$whose, $order: parallel");
		like($plan, $default, "$whose, $order: nothing chosen");

		# If the paths were created again after the choice, the default plan
		# would be used.
		$plan = run($libraries, "$tables $choose EXPLAIN (COSTS OFF) $query");
		like($plan, qr/Gather/, "$whose, $order: parallel with the choice");
		like($plan, $chosen, "$whose, $order: the choice holds");
		unlike($plan, $default, "$whose, $order: and nothing else");
		is(run($libraries, "$tables $choose $query"), $answer, "$whose, $order: the answer");
	}
}

# For a foreign child, the wrapper is called once for each plan, of which the module
# makes a second one, and the child can be in a parallel plan.
my $foreign = q{
CREATE TEMP TABLE home AS SELECT i AS id FROM generate_series(1, 10000) i;
ANALYZE home;
};
my $query = 'SELECT count(*), sum(id) FROM (SELECT id FROM home UNION ALL SELECT id FROM far) s';

foreach my $enabled (qw(off on))
{
	my $out = run([ 'temp_parallel', 'chooses_paths' ],
		"$foreign SET temp_parallel.enabled = $enabled; EXPLAIN (COSTS OFF) $query; SELECT foreign_paths_calls(); $query");

	if ($enabled eq 'on')
	{
		like($out, qr/Gather.*Parallel Append.*Foreign Scan on far/s, 'a foreign child in a parallel plan');
	}
	my $plans = $enabled eq 'on' ? 2 : 1;
	like($out, qr/\n$plans\n10003\|50005006$/, "a foreign child is asked once for a plan, enabled = $enabled");
}

# Each process would read the foreign side of a join itself, and may get other rows.
unlike(run([ 'temp_parallel', 'chooses_paths' ], "$foreign EXPLAIN (COSTS OFF) SELECT count(*) FROM home JOIN far USING (id)"),
	qr/Gather/, 'a join with a foreign table has no workers');
# A worker that reads it may convert text from another encoding than the client's.
unlike(run([ 'temp_parallel', 'chooses_paths' ], "$foreign SET client_encoding = latin1; EXPLAIN (COSTS OFF) $query"),
	qr/Gather/, 'a foreign table and a client with another encoding');

# A temporary table that inherits from a foreign one is read by workers; but not by a function that
# runs in a worker, for which the planner would leave the child out without an error.
{
	my $child = "$foreign CREATE TEMP TABLE near () INHERITS (far); INSERT INTO near SELECT id FROM home; ANALYZE near;";
	my $count = "$child SET temp_parallel.enabled = %s; EXPLAIN (COSTS OFF) SELECT sum(id) FROM far; SELECT count(*), sum(id) FROM far";

	like(run([ 'temp_parallel', 'chooses_paths' ], sprintf($count, 'off')), qr/\n10003\|50005006$/,
		'children of a foreign table, enabled = off');
	like(run([ 'temp_parallel', 'chooses_paths' ], sprintf($count, 'on')),
		qr/Gather.*Parallel Seq Scan on near.*\n10003\|50005006$/s, 'children of a foreign table in a parallel plan');
	local $ENV{PGOPTIONS} = "-c session_preload_libraries=temp_parallel";
	my ($status, $out, $err) = $node->psql('postgres', $settings . $child . q{
		SET parallel_leader_participation = off;
		CREATE FUNCTION pg_temp.counts(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
		$$ BEGIN RETURN (SELECT count(*) FROM far WHERE id > i); END $$;
		SELECT min(pg_temp.counts(id)) FROM home WHERE id < 10});
	like($err, qr/ERROR:  cannot access temporary tables during a parallel operation/,
		'a function that runs in a worker does not leave the children out');
}

# ----------
# Permissions
# ----------

# A module that logs what a statement reads is called in the leader as often as without
# workers, although these look at permissions again.
foreach my $statement (
	'DECLARE c CURSOR FOR SELECT sum(id) FROM home WHERE sqrt(id) > 3; FETCH c',
	'INSERT INTO home SELECT id FROM home WHERE sqrt(id) < 3')
{
	my %calls;

	foreach my $enabled (qw(off on))
	{
		my $explain = $statement =~ s/;.*//r;
		my $out = run([ 'temp_parallel', 'counts_checks' ],
			"$foreign SET temp_parallel.enabled = $enabled; BEGIN; EXPLAIN (COSTS OFF) $explain; $statement; SELECT 'calls=' || checks();");

		like($out, $enabled eq 'on' ? qr/Gather/ : qr/^(?!.*Gather)/s, "permissions, enabled = $enabled: the plan of $explain");
		($calls{$enabled}) = $out =~ /calls=(\d+)/;
	}
	is($calls{on}, $calls{off}, "permissions are looked at once: $statement");
}

# ----------
# Unknown plan nodes
# ----------

# unknown_inside gives a node of the finished plan an unknown tag before
# temp_parallel sees it, unknown_outside restores the tag afterwards.
my $tables = q{
CREATE TEMP TABLE t AS SELECT i AS id, i % 10 AS g FROM generate_series(1, 10000) i;
CREATE TEMP TABLE u AS SELECT i AS id FROM generate_series(1, 1000) i;
ANALYZE t, u;
};
my @unknown = ('unknown_inside', 'temp_parallel', 'unknown_outside');

# launched(SQL, QUERY) - the plan, and the number of workers that each Gather of
# QUERY gets
sub launched
{
	my ($sql, $query) = @_;
	my $plan = run(\@unknown, "$sql EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) $query");

	return ($plan, join(',', $plan =~ /Workers Launched: (\d+)/g));
}

foreach my $case (
	[ 'one Gather', 'SELECT count(*), sum(id) FROM t', '10000|50005000', qr/^2$/ ],
	[ 'a Gather Merge', "SELECT string_agg(id::text, ',') FROM (SELECT id FROM t WHERE g = 0 ORDER BY id LIMIT 3) s", '10,20,30', qr/^2$/ ],
	[ 'a hash table that is shared', 'SELECT count(*) FROM t JOIN u USING (id)', '1000', qr/^2$/ ],
	[ 'Gathers in subplans', 'SELECT (SELECT count(*) FROM u), count(*) FROM t WHERE id > (SELECT min(id) FROM u)', '1000|9999', qr/^2,2,2$/ ])
{
	my ($what, $query, $answer, $workers) = @$case;
	my ($plan, $number) = launched($tables, $query);

	like($number, $workers, "$what: workers are launched");
	like($plan, qr/TempFlush/, "$what: and tables flushed");
	foreach my $where ('below', 'top')
	{
		my $unknown = "SET unknown_inside.node = '$where';";

		# There must be no error, as there is none without the module, and no
		# workers, which might read tables that have not been flushed: it is planned
		# without them.
		($plan, $number) = launched("$tables $unknown", $query);
		is($number, '', "$what, a node is unknown ($where): no Gather");
		unlike($plan, qr/TempFlush/, "$what, a node is unknown ($where): nothing is flushed");
		is((split /\n/, run(\@unknown, "$tables $unknown $query"))[-1], $answer,
			"$what, a node is unknown ($where): the answer");
	}
}

# A query that reads no temporary table is not affected: workers are launched.
my ($plan, $number) = launched("$tables SET unknown_inside.node = 'below';", 'SELECT count(*) FROM permanent');
is($number, '2', 'a node over a permanent table is unknown: workers are launched');
is((split /\n/, run(\@unknown, "$tables SET unknown_inside.node = 'below'; SELECT count(*) FROM permanent"))[-1],
	'10000', 'a node over a permanent table is unknown: the answer');

# An unknown node is not an error in a worker, either, and its subplans are
# executed, even if they are only in its own fields: this one is in the join's
# own qual.
$query = q{
SELECT p.id, q.id FROM permanent p LEFT JOIN (VALUES (1), (2)) q (id)
  ON p.id + q.id IN (SELECT id FROM tens)
 WHERE p.id + 0 <= 20010};
my $in_workers = "$tables SET unknown_outside.in_workers = on; SET parallel_leader_participation = off;";

($plan, $number) = launched($in_workers, $query);
like($plan, qr/Workers Launched: 2\n\s*->  Nested Loop Left Join .*\n\s*Join Filter: .*SubPlan/,
	'the node that is unknown in workers has a subplan');
is(join(' ', sort split /\n/, run(\@unknown, "$in_workers $query")),
	'20001| 20002| 20003| 20004| 20005| 20006| 20007| 20008|2 20009|1 20010|',
	'the node that is unknown in workers runs its subplan');

$node->stop;
ok(slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
