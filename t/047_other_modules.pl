# Other modules in the planner's hooks: what they choose holds.

use strict;
use warnings;

use File::Basename;
use lib dirname(__FILE__);
use Build qw(build);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $chooses_paths = build('chooses_paths',
	[ glob(dirname(__FILE__) . '/other_modules/*.[ch]'), dirname(__FILE__) . '/other_modules/Makefile' ]);
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
CREATE FOREIGN DATA WRAPPER three_rows HANDLER three_rows_handler;
CREATE SERVER three_rows FOREIGN DATA WRAPPER three_rows;
CREATE TABLE permanent (id int, g int) WITH (autovacuum_enabled = off);
INSERT INTO permanent SELECT i, i % 10 FROM generate_series(20001, 30000) i;
CREATE INDEX permanent_id ON permanent (id);
ANALYZE permanent;
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

# run(LIBRARIES, SQL): the output of SQL with these libraries, loaded in this
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

# Partitions on two levels.  At 40 percent of the rows each leaf is scanned
# sequentially by itself.
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
# A permanent child, which core keeps out of parallel plans as well.
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

# what is asked, over what; whose paths, which of them, and how they show; then
# how it is without the choice
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
		'*SELECT* 2', 'whole', qr/Subquery Scan on "\*SELECT\* 2"\n\s*->  Gather/, qr/Gather.*Parallel Append/s ]);

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

		# If the paths were made anew after the choice, the default would show.
		$plan = run($libraries, "$tables $choose EXPLAIN (COSTS OFF) $query");
		like($plan, qr/Gather/, "$whose, $order: parallel with the choice");
		like($plan, $chosen, "$whose, $order: the choice holds");
		unlike($plan, $default, "$whose, $order: and nothing else");
		is(run($libraries, "$tables $choose $query"), $answer, "$whose, $order: the answer");
	}
}

# A foreign child is asked for its paths once, as without the module, and is
# read in a worker.
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
	like($out, qr/\n1\n10003\|50005006$/, "a foreign child is asked once, enabled = $enabled");
}

$node->stop;
ok(slurp_file($node->logfile) !~ /TRAP:|PANIC:|terminated by signal|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
