# The number of processors that the session determines with temp_parallel.processors
# at 0: those that it may be scheduled on. Otherwise, in a container with one processor
# of a large machine, each worker would count as having its own processor.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'only Linux has nproc and taskset' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION temp_parallel');
my ($affinity) = split /\n/, `nproc`;
is($node->safe_psql('postgres', 'SELECT processors FROM temp_parallel_stats()'),
	$affinity, 'as many processors as the server may be scheduled on');
is($node->safe_psql('postgres', 'SET temp_parallel.processors = 77; SELECT processors FROM temp_parallel_stats()'),
	77, 'as many as are set');
$node->stop;

# A file and not a pipe, which would break if the command cannot be started.
my $query = PostgreSQL::Test::Utils::tempdir() . '/query';
append_to_file($query, "SELECT 'found ' || processors FROM temp_parallel_stats()\n");

# The number that a single-user session finds if it is started by command @how.
sub found
{
	my (@how) = @_;
	my ($out, $err);

	IPC::Run::run([ @how, 'postgres', '--single', '-D', $node->data_dir, 'postgres' ],
		'<', $query, '>', \$out, '2>', \$err);
	return $out =~ /"found (\d+)"/ ? $1 : "$out$err";
}

SKIP:
{
	skip 'no taskset', 1 if system('taskset -c 0 true 2>/dev/null') != 0;
	my ($first) = `taskset -cp $$` =~ /: (\d+)/;
	is(found('taskset', '-c', $first), 1, 'one processor to be scheduled on');
}

done_testing();
