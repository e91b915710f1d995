# Statements that are canceled at random times, by pg_cancel_backend(),
# statement_timeout and lock_timeout: during planning, during the flush, while
# workers are launched and while they scan; outside a transaction block, and in
# a subtransaction, with an open cursor, and in a PL/pgSQL loop.
#
# After each one the session goes on, and its table must have the same rows as a
# permanent table that has been changed alike. Otherwise, pages that a canceled
# flush has not written could be lost, the read-only routine could remain in the
# table's descriptor, or pins and workers could be left behind.
#
# FAULT_ROUNDS in the environment is the number of statements per size of the
# pool.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TempParallel;
use Test::More;
use Time::HiRes qw(time);

my $rounds = $ENV{FAULT_ROUNDS} || 24;

seed_moments();
my $node = fault_server('main');
my $other = fault_session($node);

# The statements; @ stands for the table.
my %statements = (
	'sequential scan' =>
	  'SELECT count(*), sum(v), sum(hashtext(big)) FROM @',
	'hash join' =>
	  'SELECT count(*), sum(a.v) FROM @ a JOIN @ b USING (id)',
	'index scan' =>
	  'SELECT count(*), sum(hashtext(big)) FROM @ WHERE k IN (0, 5) AND id > 0',
	'sort' =>
	  'SELECT id, v FROM @ ORDER BY v DESC, id LIMIT 5',
	'rescans' =>
	  'SELECT x, n FROM (VALUES (1), (2), (3)) y (x), LATERAL (SELECT count(*) AS n FROM @ HAVING count(*) > x) z',
	# mostly planning, which evaluates the function
	'planning' =>
	  'SELECT count(*), sum(v) FROM @ WHERE id > slow_constant()',
	# mostly a flush, of all pages of pusher; see below
	'large flush' =>
	  'SELECT count(*) FROM @ JOIN pusher ON pusher.g = @.id',
	# a parallel statement in each of several subtransactions
	'loop' => q{SELECT loop('@')});
my @statements = (sort(keys %statements), ('large flush') x 3);

$other->safe(q{
CREATE FUNCTION slow_constant() RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(0.05);
	RETURN 0;
END $$;
-- For lock_timeout: a table that another session locks, and a function that the
-- leader calls between Gather and the aggregate.
CREATE TABLE locked (n int);
CREATE FUNCTION wait_for_lock(int) RETURNS bigint PARALLEL RESTRICTED LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT count(*) FROM locked);
END $$;
CREATE FUNCTION loop(tab text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint := 0;
	one bigint;
BEGIN
	FOR i IN 1 .. 4 LOOP
		BEGIN
			EXECUTE format('SELECT sum(v) / %s FROM %I', i - 2, tab) INTO one;
			n := n + one;
		EXCEPTION WHEN division_by_zero THEN
			n := n + 1;
		END;
	END LOOP;
	RETURN n;
END $$;
});

# The transactions in which the statement runs, after savepoint a.
my %around = (
	nothing => undef,
	subtransaction => {
		before => q{SELECT FROM on_both('UPDATE @ SET v = v + 3 WHERE id % 9 = 1');
			SAVEPOINT a;
			SELECT FROM on_both('UPDATE @ SET v = 0, big = NULL WHERE id % 9 = 2');},
		after => 'COMMIT;'
	},
	'subtransaction, rolled back' => {
		before => q{SELECT FROM on_both('UPDATE @ SET v = v + 3 WHERE id % 9 = 1');
			SAVEPOINT a;
			SELECT FROM on_both('DELETE FROM @ WHERE id % 9 = 2');},
		after => 'ROLLBACK;'
	},
	# opened before rows are changed, and read to its end after the cancellation
	cursor => {
		all => 'SELECT id, v FROM p;',
		before => q{DECLARE c CURSOR FOR SELECT id, v FROM t;
			FETCH 333 FROM c;
			SELECT FROM on_both('UPDATE @ SET v = -1 WHERE id % 5 = 0');
			SAVEPOINT a;},
		rest => 'FETCH ALL FROM c;',
		after => 'ROLLBACK;'
	});
my @around = sort keys %around;

my @moments = ('before the flush', 'during the flush', 'after the flush');
my %moment;		# numbers of statements that were canceled, by phase
my %duration;	# of each statement, in seconds, from one that was not canceled

sub dirty { return $_[0]->safe('SELECT pg_dirty_local_buffers();'); }

# The rows in the output of several commands, sorted.
sub rows { return join("\n", sort grep { /\|/ } split /\n/, $_[0]); }

# Repeat a command that a short statement_timeout may cancel, until it succeeds.
sub insist
{
	my ($s, $sql) = @_;
	my $err;

	foreach (1 .. 100)
	{
		(undef, $err) = $s->query($sql);
		return if $err !~ /statement timeout/;
	}
	die "failed: $sql\n$err";
}

# Run statement $sql and cancel it by $means after $seconds. Returns its result,
# or undef if it was canceled.
sub cancel_after
{
	my ($s, $sql, $means, $seconds) = @_;
	my ($out, $err);

	if ($means eq 'statement_timeout')
	{
		my $ms = 1 + int(1000 * $seconds);
		$s->safe("SET statement_timeout = $ms;");
		($out, $err) = $s->query($sql);
	}
	else
	{
		$other->begin("SELECT pg_cancel_backend(pid) FROM (SELECT $s->{pid} AS pid, pg_sleep($seconds) OFFSET 0) s;");
		($out, $err) = $s->query($sql);
		$other->end;
	}
	return $out if $err eq '';
	return undef
	  if $err =~ /\A\S*\s*ERROR:  canceling statement due to (statement timeout|user request)\n(CONTEXT:.*)?\z/s;
	die "$sql\n$err";
}

# Run one statement, and cancel it unless it ends before; more often early than
# late, as the flush is at the beginning. Returns whether all checks have
# passed.
sub fault
{
	my ($s, $n, $statement, $around, $means) = @_;
	my $tx = $around{$around};
	my @wrong;
	my $expect = sub {
		push @wrong, "$_[0]: $_[1] instead of $_[2]" if $_[1] ne $_[2];
		return;
	};
	my ($of_t, $of_p) = map { (my $sql = $statements{$statement}) =~ s/@/$_/g; "$sql;" } 't', 'p';
	my ($all, $fetched) = ('', '');

	change($s, $n);
	if ($tx)
	{
		$s->safe('BEGIN;');
		$all = rows($s->safe($tx->{all})) if $tx->{all};
		$fetched = $s->safe($tx->{before});
	}
	my $expected = $s->safe($of_p);
	$s->safe(q{SELECT pg_read_temp_relation('pusher'); SELECT pg_temp_buffers_dirty('pusher');})
	  if $statement eq 'large flush';
	my $before = dirty($s);
	my $start = time;
	my $answer = cancel_after($s, $of_t, $means, ($duration{$statement} || 0.05) * rand() ** 2);
	my $duration = time - $start;

	insist($s, $tx ? 'ROLLBACK TO a;' : 'SET statement_timeout = 0;');
	my $dirty = dirty($s);
	if (defined $answer)
	{
		$expect->('answer', $answer, $expected);
		$duration{$statement} = $duration;
		$moment{'not in time'}++;
	}
	else
	{
		$moment{  $dirty == 0 ? 'after the flush'
				: $dirty < $before ? 'during the flush'
				: 'before the flush' }++;
	}
	if ($tx)
	{
		$expect->('cursor', rows("$fetched\n" . $s->safe($tx->{rest})), $all) if $all;
		$expect->('data', $s->safe(q{SELECT same_data('{off}');}), 'same');
		$s->safe($tx->{after});
	}
	diag("round $n, $statement, $around, $means: $_") foreach @wrong;
	# all of the checks take longer than ten statements
	return sound($s, $n, $n % 4 != 0) && !@wrong;
}

foreach my $pool ('4MB', @pools)
{
	my $s = fault_session($node, $pool);
	my $good = 0;

	make_tables($s);
	foreach my $n (1 .. $rounds)
	{
		$good += fault($s, $n,
			$statements[ rand @statements ], $around[ rand @around ],
			(qw(statement_timeout pg_cancel_backend))[ rand 2 ]);
		$s->safe('VACUUM t; VACUUM p;') if $n % 20 == 0;
	}
	# more of them until there was each moment, in this pool, which pusher fills
	my $n = $rounds;
	while ($pool eq '4MB' && $n < $rounds + 100 && grep { !$moment{$_} } @moments)
	{
		$good += fault($s, ++$n, $moment{'before the flush'} ? 'large flush' : 'planning',
			'nothing', 'statement_timeout');
	}
	is($good, $n, "temp_buffers = $pool: nothing lost or left behind by $n statements");

	# the leader waits for a lock while workers read
	$other->safe('BEGIN; LOCK TABLE locked;');
	change($s, ++$n);
	my (undef, $err) = $s->query(q{SET lock_timeout = '50ms'; SELECT sum(v + wait_for_lock(id)) FROM t;});
	$other->safe('ROLLBACK;');
	like($err, qr/ERROR:  canceling statement due to lock timeout/, "temp_buffers = $pool: lock_timeout");
	$s->safe('SET lock_timeout = 0;');
	ok(sound($s, $n), "temp_buffers = $pool: nothing lost or left behind by it");
	shares($s, $pool);
	$s->quit;
}
note("$_: $moment{$_}") foreach sort keys %moment;

# Otherwise, one of the phases would not have been tested.
cmp_ok($moment{$_} || 0, '>', 0, "statements were canceled $_")
  foreach @moments;

$other->quit;
nothing_left($node, 'after the sessions');
log_is_clean($node, $from_core);
done_testing();
