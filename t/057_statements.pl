# Statements before, after and inside parallel queries over a temporary table:
# the table is dropped, truncated or rewritten, also in the same transaction,
# also rolled back; statements are nested in PL/pgSQL functions; transactions
# use NOTIFY, PREPARE TRANSACTION, cursors WITH HOLD, and ON COMMIT.
#
# Each case is a script that is run twice, in a session without the extension
# and in one with it. The output must be the same, including notices and errors;
# the second session must have used workers; and after each case its table must
# have the rows of its permanent twin, and heap's own access method.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;

my $node = fault_server('main', q{
max_prepared_transactions = 2
allow_in_place_tablespaces = on
plan_cache_mode = force_generic_plan
});
$node->safe_psql('postgres', q{CREATE TABLESPACE elsewhere LOCATION ''});

# Abbreviations in the scripts: read all of t, in workers if possible; read it
# by its index; change it and its twin. An expected error is preceded by a
# comment "-- error:", as an unexpected one could occur in both sessions.
my %abbreviations = (
	READ => 'SELECT count(*), sum(v), sum(hashtext(big)) FROM t;',
	READ_BY_INDEX => q{SET enable_seqscan = off; SELECT count(*), sum(v) FROM t WHERE id BETWEEN 100 AND 4000; RESET enable_seqscan;},
	CHANGE => q{SELECT on_both('UPDATE @ SET v = v + 1, big = reverse(big) WHERE id % 7 = 1');});

# The cases of a list are run in the same two sessions.
my @files = (

	'dropped' => q{
READ
DROP TABLE t;
-- error: relation "t" does not exist
READ
CREATE TEMP TABLE t (LIKE p INCLUDING ALL);
CREATE INDEX t_k ON t (k);
INSERT INTO t SELECT * FROM p;
READ
READ_BY_INDEX},

	'dropped, and that rolled back' => q{
BEGIN;
CHANGE
READ
SAVEPOINT a;
DROP TABLE t;
-- error: relation "t" does not exist
READ
ROLLBACK TO a;
READ
CHANGE
READ
COMMIT;
READ
BEGIN;
READ
DROP TABLE t;
ROLLBACK;
READ},

	'truncated' => q{
READ
SELECT on_both('TRUNCATE @');
READ
SELECT on_both('INSERT INTO @ SELECT g, g % 10, g, repeat(''z'', 500) FROM generate_series(1, 3000) g');
READ
READ_BY_INDEX},

	'truncated, and that rolled back' => q{
BEGIN;
CHANGE
READ
SAVEPOINT a;
TRUNCATE t;
READ
INSERT INTO t SELECT g, g % 10, g, NULL, repeat('z', 4000) FROM generate_series(1, 3000) g;
READ
SAVEPOINT b;
TRUNCATE t;
INSERT INTO t SELECT g, g, g FROM generate_series(1, 3000) g;
READ
ROLLBACK TO b;
READ
ROLLBACK TO a;
READ
CHANGE
READ_BY_INDEX
COMMIT;
READ
BEGIN;
READ
TRUNCATE t;
INSERT INTO t SELECT g, g, g FROM generate_series(1, 3000) g;
READ
ROLLBACK;
READ},

	'clustered' => q{
CHANGE
READ
CLUSTER t USING t_k;
READ
BEGIN;
CHANGE
READ
CLUSTER t USING t_pkey;
READ
READ_BY_INDEX
ROLLBACK;
READ
READ_BY_INDEX},

	'VACUUM FULL' => q{
CHANGE
READ
VACUUM FULL t;
READ
CHANGE
READ
VACUUM (TRUNCATE, INDEX_CLEANUP ON) t;
READ
READ_BY_INDEX},

	'rewritten' => q{
CHANGE
READ
SELECT on_both('ALTER TABLE @ ALTER v TYPE bigint');
READ
BEGIN;
CHANGE
READ
ALTER TABLE t ALTER k TYPE text USING k || '!';
SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k;
CHANGE
READ
READ_BY_INDEX
ROLLBACK;
SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k;
READ},

	'moved to another tablespace' => q{
CHANGE
READ
ALTER TABLE t SET TABLESPACE elsewhere;
ALTER INDEX t_pkey SET TABLESPACE elsewhere;
READ
READ_BY_INDEX
CHANGE
BEGIN;
READ
ALTER TABLE t SET TABLESPACE pg_default;
READ
READ_BY_INDEX
ROLLBACK;
READ
CHANGE
READ_BY_INDEX},

	'indexes made and dropped' => q{
BEGIN;
READ
DROP INDEX t_k;
ALTER TABLE t DROP CONSTRAINT t_pkey;
READ_BY_INDEX
ROLLBACK;
READ_BY_INDEX
BEGIN;
READ
CREATE INDEX t_v ON t (v);
REINDEX TABLE t;
CHANGE
READ_BY_INDEX
COMMIT;
READ_BY_INDEX},

	'another table of that name' => q{
BEGIN;
READ
ALTER TABLE t RENAME TO t2;
CREATE TEMP TABLE t AS SELECT id, -v AS v, NULL::text AS big FROM t2;
READ
ROLLBACK;
READ},

	'a generic plan of a table that changes' => q{
PREPARE q AS READ
EXECUTE q;
CHANGE
EXECUTE q;
BEGIN;
TRUNCATE t;
EXECUTE q;
INSERT INTO t SELECT g, g, g FROM generate_series(1, 3000) g;
EXECUTE q;
ROLLBACK;
EXECUTE q;
CLUSTER t USING t_k;
CHANGE
EXECUTE q;
DEALLOCATE q;});

my @nested = (

	'a loop that changes the table which it reads' => q{
CREATE FUNCTION pg_temp.f() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n record;
BEGIN
	FOR r IN SELECT k, count(*) AS n, sum(v) AS v FROM t WHERE k < 4 GROUP BY k ORDER BY k LOOP
		SELECT count(*) AS n, sum(v) AS v INTO n FROM t WHERE k = r.k;
		RETURN NEXT r || ' ' || n;
		PERFORM on_both(format('UPDATE @ SET v = v + %s, k = k WHERE k >= %s', r.k, r.k));
		SELECT count(*) AS n, sum(v) AS v, sum(hashtext(big)) AS l INTO n FROM t;
		RETURN NEXT n::text;
		RETURN QUERY SELECT 'q' || count(*) FROM t a JOIN t b USING (id) WHERE a.k = r.k;
	END LOOP;
END $$;
SELECT * FROM pg_temp.f();
DROP FUNCTION pg_temp.f;
READ},

	'a loop that fills another table' => q{
CREATE TEMP TABLE u (k int, id bigint);
CREATE FUNCTION pg_temp.f() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n bigint;
BEGIN
	FOR r IN SELECT DISTINCT k FROM t WHERE k < 4 ORDER BY k LOOP
		INSERT INTO u SELECT r.k, id FROM t WHERE k = r.k;
		SELECT count(*) INTO n FROM t JOIN u USING (id);
		RETURN NEXT n;
		UPDATE u SET id = id + 1 WHERE k = r.k;
		EXECUTE 'SELECT sum(id) FROM u' INTO n;
		RETURN NEXT n;
	END LOOP;
	DELETE FROM u WHERE id % 2 = 0;
END $$;
SELECT * FROM pg_temp.f();
SELECT count(*), sum(id) FROM u;
DROP FUNCTION pg_temp.f;
DROP TABLE u;
READ},

	'exception blocks' => q{
CREATE FUNCTION pg_temp.f() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	FOR i IN 0 .. 2 LOOP
		BEGIN
			UPDATE t SET v = 0 WHERE id % 3 = i % 3;
			SELECT sum(v) INTO n FROM t;
			RETURN NEXT n;
			BEGIN
				DELETE FROM t WHERE id % 2 = 0;
				SELECT count(1 / (id - 4001)) INTO n FROM t;
				RETURN NEXT n;
			EXCEPTION WHEN division_by_zero THEN
				REINDEX INDEX t_k;	-- fails with any access method except heap's
				SELECT sum(v) INTO n FROM t;
				RETURN NEXT 'inner ' || n;
				PERFORM 1 / i;
			END;
			SELECT count(1 / (id - 4002)) INTO n FROM t;
			RETURN NEXT n;
		EXCEPTION WHEN division_by_zero THEN
			REINDEX INDEX t_k;
			SELECT sum(v) INTO n FROM t;
			RETURN NEXT 'outer ' || n;
			PERFORM on_both(format('UPDATE @ SET v = v + 1 WHERE id %% 6 = %s', i));
		END;
		SELECT count(*) + sum(v) INTO n FROM t;
		RETURN NEXT n;
	END LOOP;
END $$;
SELECT * FROM pg_temp.f();
DROP FUNCTION pg_temp.f;
READ},

	'cursors' => q{
CREATE FUNCTION pg_temp.f() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	c SCROLL CURSOR FOR SELECT id, v FROM t WHERE id % 500 = 0 ORDER BY id;
	w CURSOR FOR SELECT id FROM t WHERE id % 1000 = 1 FOR UPDATE;
	x refcursor;
	r record;
	n bigint;
BEGIN
	OPEN c;
	OPEN w;
	OPEN x FOR SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k;
	LOOP
		FETCH c INTO r;
		EXIT WHEN NOT FOUND;
		SELECT sum(v) INTO n FROM t;
		RETURN NEXT r || ' ' || n;
		PERFORM on_both('UPDATE @ SET v = v + 1 WHERE id = ' || r.id);
		FETCH x INTO r;
		SELECT count(*) INTO n FROM t WHERE k = r.k;
		RETURN NEXT r || ' ' || n;
		FETCH w INTO r;
		IF FOUND THEN
			UPDATE t SET k = k + 1 WHERE CURRENT OF w;
			UPDATE p SET k = k + 1 WHERE id = r.id;
		END IF;
	END LOOP;
	FETCH FIRST FROM c INTO r;
	RETURN NEXT r::text;
END $$;
SELECT * FROM pg_temp.f();
DROP FUNCTION pg_temp.f;
READ},

	'recursion' => q{
CREATE FUNCTION pg_temp.f(level int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	IF level = 0 THEN
		PERFORM on_both('UPDATE @ SET v = v + 1 WHERE id % 9 = 1');
		RETURN 0;
	END IF;
	SELECT sum(v) + (SELECT pg_temp.f(level - 1)) INTO n FROM t;
	RETURN n + (SELECT sum(v) FROM t);
END $$;
SELECT pg_temp.f(2);
DROP FUNCTION pg_temp.f;
READ},

	'functions in the target list' => q{
-- called by the leader, while workers read the same table, and has workers of
-- its own
CREATE FUNCTION pg_temp.reads_t(i int) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
$$ BEGIN RETURN (SELECT sum(v) FROM t WHERE k = i % 10); END $$;
-- the same, with another table, which is flushed then
CREATE TEMP TABLE u AS SELECT g FROM generate_series(1, 5000) g;
CREATE FUNCTION pg_temp.reads_u(i int) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
$$ BEGIN RETURN (SELECT sum(g) FROM u WHERE g % 10 = i % 10); END $$;
-- called by workers
CREATE FUNCTION reads_p(i int) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT v FROM p WHERE id = i); END $$;
-- keeps the statement serial
CREATE FUNCTION pg_temp.writes_t(i int) RETURNS bigint LANGUAGE plpgsql AS
$$ BEGIN PERFORM on_both('UPDATE @ SET v = v + 1 WHERE id = ' || i); RETURN (SELECT sum(v) FROM t); END $$;
SELECT id, pg_temp.reads_t(id) FROM t WHERE id % 1000 = 0 ORDER BY id;
SELECT id, pg_temp.reads_u(id) FROM t WHERE id % 1000 = 0 ORDER BY id;
SELECT count(*) FROM t WHERE id % 100 = 0 AND reads_p(id) = v;
SELECT k, n, pg_temp.reads_t(k) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) s ORDER BY k;
SELECT sum(pg_temp.reads_t(id)), sum(reads_p(id)) FROM t WHERE id % 500 = 0;
SELECT id, pg_temp.writes_t(id) FROM t WHERE id % 1000 = 0 ORDER BY id;
UPDATE u SET g = g + 1;
SELECT id, pg_temp.reads_u(id) FROM t WHERE id % 1000 = 0 ORDER BY id;
DROP FUNCTION reads_p;
DROP FUNCTION pg_temp.reads_t;
DROP FUNCTION pg_temp.reads_u;
DROP FUNCTION pg_temp.writes_t;
DROP TABLE u;
READ},

	'a trigger that reads its own table' => q{
CREATE TEMP TABLE seen (n bigint, v bigint);
CREATE FUNCTION pg_temp.f() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO seen SELECT count(*), sum(v) FROM t; RETURN NULL; END $$;
CREATE TRIGGER f AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.f();
CHANGE
SELECT * FROM seen;
READ
CHANGE
SELECT * FROM seen;
DROP TRIGGER f ON t;
DROP FUNCTION pg_temp.f;
DROP TABLE seen;
READ},

	'a procedure that commits in a loop' => q{
CREATE PROCEDURE pg_temp.f() LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT k, sum(v) AS v FROM t WHERE k < 4 GROUP BY k ORDER BY k LOOP
		PERFORM on_both('UPDATE @ SET v = v + 1 WHERE k = ' || r.k);
		INSERT INTO seen SELECT r.v, sum(v) FROM t;
		IF r.k = 2 THEN ROLLBACK; ELSE COMMIT; END IF;
		INSERT INTO seen SELECT -1, sum(v) FROM t;
	END LOOP;
END $$;
CREATE TEMP TABLE seen (v bigint, now bigint);
CALL pg_temp.f();
SELECT * FROM seen;
DROP PROCEDURE pg_temp.f;
DROP TABLE seen;
READ});

my @transactions = (

	'LISTEN and NOTIFY' => q{
LISTEN a;
NOTIFY a, 'outside';
READ
BEGIN;
CHANGE
NOTIFY a, 'inside';
READ
SAVEPOINT s;
NOTIFY a, 'undone';
READ
ROLLBACK TO s;
SELECT count(*), count(pg_notify('a', id::text)) FROM (SELECT id FROM t WHERE id % 1000 = 0 ORDER BY id OFFSET 0) s;
COMMIT;
READ
UNLISTEN *;
NOTIFY a, 'unheard';
READ},

	'PREPARE TRANSACTION' => q{
BEGIN;
CHANGE
READ
-- error: cannot PREPARE a transaction that has operated on temporary objects
PREPARE TRANSACTION 'one';
READ
BEGIN;
READ
-- error: cannot PREPARE a transaction that has operated on temporary objects
PREPARE TRANSACTION 'two';
BEGIN;
SELECT count(*) FROM p;
PREPARE TRANSACTION 'three';
READ
SELECT gid FROM pg_prepared_xacts;
CHANGE
COMMIT PREPARED 'three';
READ
BEGIN;
SAVEPOINT s;
READ
ROLLBACK TO s;
-- error: cannot PREPARE a transaction that has operated on temporary objects
PREPARE TRANSACTION 'four';
READ},

	'ON COMMIT DELETE ROWS' => q{
CREATE TEMP TABLE d (id int, v int) ON COMMIT DELETE ROWS;
SELECT count(*) FROM d;
BEGIN;
INSERT INTO d SELECT g, g FROM generate_series(1, 5000) g;
SELECT count(*), sum(v) FROM d;
CREATE INDEX ON d (id);
SAVEPOINT s;
DELETE FROM d WHERE id % 2 = 0;
SELECT count(*), sum(d.v) FROM d JOIN t USING (id);
ROLLBACK TO s;
SELECT count(*), sum(d.v) FROM d JOIN t USING (id);
COMMIT;
SELECT count(*), sum(v) FROM d;
INSERT INTO d VALUES (1, 1);
BEGIN;
INSERT INTO d SELECT g, g FROM generate_series(1, 5000) g;
SELECT count(*), sum(v) FROM d;
ROLLBACK;
SELECT count(*), sum(v) FROM d;
DROP TABLE d;
READ},

	'ON COMMIT DROP' => q{
BEGIN;
CREATE TEMP TABLE d ON COMMIT DROP AS SELECT id, v FROM t;
SELECT count(*), sum(v) FROM d;
SELECT count(*), sum(d.v) FROM d JOIN t USING (id);
COMMIT;
-- error: relation "d" does not exist
SELECT count(*) FROM d;
BEGIN;
CREATE TEMP TABLE d ON COMMIT DROP AS SELECT id, v FROM t;
SELECT count(*), sum(v) FROM d;
ROLLBACK;
-- error: relation "d" does not exist
SELECT count(*) FROM d;
READ},

	'holdable cursors' => q{
BEGIN;
DECLARE a CURSOR WITH HOLD FOR SELECT id, v FROM t WHERE id % 500 = 0 ORDER BY id;
DECLARE b SCROLL CURSOR WITH HOLD FOR SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k;
DECLARE c CURSOR FOR SELECT count(*), sum(v) FROM t;
FETCH 3 FROM a;
READ
CHANGE
FETCH 2 FROM a;
FETCH c;
READ
COMMIT;
READ
FETCH ALL FROM a;
CHANGE
FETCH ALL FROM b;
FETCH BACKWARD 2 FROM b;
SELECT on_both('DELETE FROM @ WHERE id % 5 = 0');
FETCH FIRST FROM b;
CLOSE a;
READ
CLOSE b;
BEGIN;
DECLARE a CURSOR WITH HOLD FOR SELECT sum(1 / (id - 4001)) FROM t;
READ
-- error: division by zero
COMMIT;
READ});

# The output and errors of a script in session $s.
sub answer
{
	my ($s, $script) = @_;
	my ($out, $err) = $s->query($script);

	$out =~ s/with PID \d+/with PID N/g;
	$err =~ s/^psql:<stdin>:\d+: //gm;
	$err =~ s/pg_temp_\d+/pg_temp/g;
	# whoever meets the error first
	$err =~ s/^CONTEXT:  parallel worker\n//gm;
	return "$out\n--\n$err";
}

sub workers
{
	my ($s) = @_;

	return $s->safe('SELECT workers_launched FROM temp_parallel_stats();');
}

my $n = 0;
foreach my $cases (\@files, \@nested, \@transactions)
{
	my @scripts = @$cases;
	my (@expected, $s);

	s/\b(READ|READ_BY_INDEX|CHANGE)$/$abbreviations{$1}/gm foreach @scripts;

	$s = fault_session($node, '800kB');
	make_tables($s);
	$s->safe('SET temp_parallel.enabled = off;');
	my $workers_before = workers($s);
	for (my $i = 1; $i < @scripts; $i += 2)
	{
		my $answer = answer($s, $scripts[$i]);

		push @expected, $answer;
		is_deeply([ $answer =~ /^ERROR:  (.*)$/mg ],
			[ $scripts[$i] =~ /^-- error: (.*)$/mg ],
			"$scripts[$i - 1]: the errors are the expected ones");
	}
	is(workers($s), $workers_before, 'the extension is off');
	$s->quit;

	$s = fault_session($node, '800kB');
	make_tables($s);
	while (my ($name, $script) = splice @scripts, 0, 2)
	{
		my $workers = workers($s);

		is(answer($s, $script), shift @expected, "$name: as without the extension");
		is(($s->query('REINDEX TABLE t;'))[1], '', "$name: heap's access method is back");
		cmp_ok(workers($s), '>', $workers, "$name: workers were used");
		is($s->safe('SELECT same_data();'), 'same', "$name: the data are all there");
	}
	# all checks of TempParallel.pm
	ok(sound($s, ++$n), 'nothing is lost');
	$s->quit;
}

nothing_left($node, 'after all sessions');
is(join(' ', glob($node->data_dir . '/pg_tblspc/*/PG_*/*/t*')),
	'', 'nor in the other tablespace');
$node->stop;
log_is_clean($node, qr/$from_core|could not send data to client/);
done_testing();
