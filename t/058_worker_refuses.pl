# A worker must not read a temporary relation that was not flushed for it, even
# by a C function that reads the relation's storage itself, as several in
# contrib do although they are marked PARALLEL SAFE. Otherwise, it would read a
# file that was never written.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Build 'build';
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

my $library = build('reads_storage.so', [ glob "$FindBin::RealBin/reads_storage/*" ]);

my $node = fault_server('main');
$node->safe_psql('postgres', qq{
CREATE FUNCTION read_pages(regclass, bool) RETURNS int LANGUAGE c STRICT PARALLEL SAFE AS '$library';
CREATE FUNCTION count_rows(regclass) RETURNS int LANGUAGE c STRICT PARALLEL SAFE AS '$library';
CREATE FUNCTION count_rows_in_leader(regclass) RETURNS int LANGUAGE c STRICT PARALLEL RESTRICTED
	AS '$library', 'count_rows';
});

# No page of other has ever been written.
my $tables = $TempParallel::settings . q{
SET parallel_leader_participation = off;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
CREATE TEMP TABLE t (id int PRIMARY KEY, v text);
ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
INSERT INTO t SELECT g, repeat('t', 3000) FROM generate_series(1, 1000) g;
ANALYZE t;
CREATE TEMP TABLE other (id int PRIMARY KEY, v text);
ALTER TABLE other ALTER v SET STORAGE EXTERNAL;
INSERT INTO other SELECT g, repeat('o', 3000) FROM generate_series(1, 1000) g;
CREATE TEMP SEQUENCE s;
CREATE TEMP TABLE parent (id int) PARTITION BY LIST (id);
CREATE TEMP TABLE part PARTITION OF parent DEFAULT;
INSERT INTO parent SELECT generate_series(1, 1000);
};

sub answer
{
	my ($query) = @_;
	my ($status, $out, $err) = $node->psql('postgres', $tables . $query);

	return $status == 0 ? $out : $err;
}

like(answer(q{EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE read_pages('other', false) > id}),
	qr/Gather.*TempFlush.*Filter: \(read_pages/s, 'the functions run in workers');

# Expressions for the relation, which the leader evaluates.
my %relations = (
	'a table' => q{'other'},
	'an index' => q{'other_pkey'},
	'a TOAST table' => q{(SELECT reltoastrelid FROM pg_class WHERE oid = 'other'::regclass)},
	'the index of a TOAST table' => q{(SELECT indexrelid FROM pg_index WHERE indrelid =
		(SELECT reltoastrelid FROM pg_class WHERE oid = 'other'::regclass))},
	'a sequence' => q{'s'},
	'a partition' => q{'part'},
	'an index that the plan does not scan' => q{'t_pkey'});
foreach my $name (sort keys %relations)
{
	my $message = $name eq 'a sequence' ? 'could not open file "[^"]*": No such file or directory' :
	  'cannot access temporary tables of other sessions';

	foreach my $invalidate ('false', 'true')
	{
		# it is not empty, so that there is something to read
		like(answer(qq{
SELECT r::oid AS relation FROM (SELECT ($relations{$name})::regclass AS r) q WHERE pg_relation_size(r) > 0 \\gset
SELECT count(*) FROM t WHERE id = 500 AND read_pages(:relation, $invalidate) > 0}),
			qr/ERROR:  $message\nCONTEXT:.*parallel worker/s,
			"$name is refused" . ($invalidate eq 'true' ? ', when its descriptor has been rebuilt, too' : ''));
	}
}

# Functions that are not core's must be found anywhere in the plan: in a sort
# operator, in the operator class of an index.
my $hidden = q{
CREATE FUNCTION pg_temp.peek(i int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE IMMUTABLE AS
	$$ BEGIN RETURN i IS NULL OR public.read_pages('pg_temp.other', false) > 0; END $$;
CREATE FUNCTION pg_temp.less(a int, b int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE IMMUTABLE AS
	$$ BEGIN RETURN a < b; END $$;
CREATE FUNCTION pg_temp.more(a int, b int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE IMMUTABLE AS
	$$ BEGIN RETURN a > b; END $$;
CREATE FUNCTION pg_temp.compare(a int, b int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE IMMUTABLE AS
	$$ BEGIN PERFORM pg_temp.peek(a); RETURN btint4cmp(a, b); END $$;
CREATE OPERATOR pg_temp.<# (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_temp.less, COMMUTATOR = OPERATOR(pg_temp.>#));
CREATE OPERATOR pg_temp.># (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_temp.more);
};
my %hidden = (
	'a sort operator' => q{
CREATE OPERATOR CLASS pg_temp.ops FOR TYPE int USING btree AS OPERATOR 1 pg_temp.<#, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 pg_temp.>#, FUNCTION 1 pg_temp.compare(int, int);
SELECT id FROM t ORDER BY id USING OPERATOR(pg_temp.<#) LIMIT 3},
	'an operator class of an index' => q{
CREATE OPERATOR CLASS pg_temp.ops FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 pg_temp.compare(int, int);
ALTER TABLE t DROP CONSTRAINT t_pkey;
CREATE INDEX ON t (id pg_temp.ops);
SET enable_indexscan = on;
SET enable_indexonlyscan = on;
SET enable_seqscan = off;
SET cpu_index_tuple_cost = 1;
SELECT count(*) FROM t WHERE id > 100});
foreach my $name (sort keys %hidden)
{
	like(answer($hidden . $hidden{$name}),
		qr/ERROR:  cannot access temporary tables of other sessions.*parallel worker/s, "user code is found in $name");
}

# The CHECK of a domain to which a cast by input and output functions leads, or of
# the type of a function's column, is not run in a worker.
my $domain = $hidden . 'CREATE DOMAIN pg_temp.dom AS int CHECK (pg_temp.peek(value));';
is(answer($domain . q{SELECT count(('{' || id || '}')::text::pg_temp.dom[]) FROM t}),
	'1000', 'no worker runs the CHECK of a domain, by a cast to an array of it');
is(answer($domain . q{
SELECT count(*) FROM t, LATERAL jsonb_to_record(jsonb_build_object('a', id)) AS x(a pg_temp.dom) WHERE id > 5 AND a > 3}),
	'995', 'nor as the type of a function\'s column');

# A table that the query reads, and its TOAST table, have been flushed and may
# be read.
is(answer(q{SELECT read_pages('t', true) > 0 FROM t WHERE id = 500}), 't', 'a table that the query reads may be read');
is(answer(q{
SELECT reltoastrelid AS toast FROM pg_class WHERE oid = 't'::regclass \gset
SELECT read_pages(:toast, false) > 0 FROM t WHERE id = 500}), 't', 'and so may its TOAST table');

# Size and name of a relation that must not be read are not affected.
is(answer(q{
SELECT pg_relation_size('other') AS size \gset
SELECT pg_relation_size('other') = :size, 'other'::regclass, read_pages('t', false) > 0 FROM t WHERE id = 500}),
	't|other|t', 'size and name of a refused table are right');

# heap_getnext() fails with the read-only routine of a table that workers read.
my $only_heap = qr/ERROR:  only heap AM is supported/;
like(answer(q{SELECT count(*) FROM t WHERE id = 500 AND count_rows('t') > 0}), $only_heap,
	'heap_getnext() in a worker fails');
like(answer(q{SELECT count_rows_in_leader('t'), count(*) FROM t}), $only_heap,
	'heap_getnext() in the leader fails');
is(answer(q{SELECT count_rows_in_leader('t')}), '1000', 'in a statement of its own it does not');
is(answer(q{SELECT count_rows_in_leader('other'), count(*) FROM t}), '1000|1000',
	'nor on a table that no worker reads');

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|PANIC:|terminated by signal|leak/,
	'no crash, failed assertion or leak in the log');

done_testing();
