# The number of processors that the session determines with temp_parallel.processors
# at 0: those that it may be scheduled on, but no more than the quotas of its control
# group and of the groups above it. Otherwise, in a container with the quota of one
# processor on a large machine, each worker would count as having its own processor.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'only Linux has control groups' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION temp_parallel');
my ($affinity) = split /\n/, `nproc`;
cmp_ok($node->safe_psql('postgres', 'SELECT processors FROM temp_parallel_stats()'),
	'<=', $affinity, 'no more processors than the server may be scheduled on');
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

# Makes a directory with these files, to be mounted in place of the control groups.
sub control_groups
{
	my (%files) = @_;
	my $root = PostgreSQL::Test::Utils::tempdir();

	foreach my $file (keys %files)
	{
		my $path = "$root/$file";

		system('mkdir', '-p', $path =~ s{/[^/]*$}{}r) == 0 or die;
		append_to_file($path, $files{$file});
	}
	return $root;
}

# The same as found(), with such a directory where the system mounts control groups,
# and with $lines in place of the process's /proc/self/cgroup.
sub found_in
{
	my ($lines, %files) = @_;
	my $root = control_groups(%files);
	my $groups = PostgreSQL::Test::Utils::tempdir() . '/groups';

	append_to_file($groups, $lines);
	# exec keeps the process ID, so /proc/$$/cgroup is /proc/self/cgroup of the session
	return found('unshare', '--map-current-user', '--mount', '--keep-caps', 'sh', '-c',
		"mount --bind $root /sys/fs/cgroup && mount --bind $groups /proc/\$\$/cgroup && exec \"\$0\" \"\$@\"");
}

SKIP:
{
	my $mine = "0::/a.slice/b.scope\n";
	skip 'no control groups of its own for a process', 12
	  if found_in($mine) ne $affinity;

	my $two = $affinity < 2 ? $affinity : 2;
	is(found_in($mine, 'a.slice/b.scope/cpu.max' => "max 100000\n"), $affinity, 'no quota');
	is(found_in($mine, 'a.slice/b.scope/cpu.max' => "100000 100000\n"), 1, 'a quota of one processor');
	is(found_in($mine, 'a.slice/b.scope/cpu.max' => "110000 100000\n"), $two, 'rounded up');
	is(found_in($mine, 'a.slice/b.scope/cpu.max' => "1000 100000\n"), 1, 'at least one');
	is(found_in($mine, 'a.slice/b.scope/cpu.max' => "99999999 100000\n"), $affinity, 'a large quota');
	is(found_in($mine, 'a.slice/b.scope/cpu.max' => "max 100000\n", 'a.slice/cpu.max' => "50000 100000\n"),
		1, 'the quota of the group above');
	is(found_in($mine, 'cpu.max' => "50000 100000\n"), 1, 'the quota of what a container sees as topmost group');
	is(found_in($mine, 'a.slice/c.scope/cpu.max' => "50000 100000\n"), $affinity, 'not that of another group');
	is(found_in($mine, 'unified/a.slice/cpu.max' => "50000 100000\n"), 1, 'both versions are mounted');

	my $old = "5:memory:/m\n4:cpuset:/s\n3:cpu,cpuacct:/a/b\n";
	is(found_in($old, 'cpu/a/b/cpu.cfs_quota_us' => "50000\n", 'cpu/a/b/cpu.cfs_period_us' => "50000\n"),
		1, 'version 1: a quota of one processor');
	is(found_in($old, 'cpu/a/b/cpu.cfs_quota_us' => "-1\n", 'cpu/a/b/cpu.cfs_period_us' => "100000\n"),
		$affinity, 'version 1: no quota');
	is(found_in($old, 'cpu/s/cpu.cfs_quota_us' => "50000\n", 'cpu/s/cpu.cfs_period_us' => "50000\n"),
		$affinity, 'version 1: not the group of another controller');
}

done_testing();
