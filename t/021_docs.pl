# The SQL in README.md, CONTRIBUTING.md and doc/ runs, and what these pages show as its
# output is what it prints: the same lines, but for numbers. Otherwise a user who tries
# it gets an error, or looks for a line of a plan that is not there.
#
# Run is what is in ```sql, in psql. ```text is the output of the snippet before it, as
# psql prints it with --tuples-only and --no-align; after a first line "...", the end of
# that output. The snippets of a page run in one session, those of README.md and
# doc/installation.md in one for each section: they say how sessions load the library, and each
# one after that has it for that reason, and how to remove it.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/..";

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
# workers for short statements, whatever else uses the processors
$node->append_conf('postgresql.conf', "autovacuum = off\ntemp_parallel.processors = 8");
$node->start;

# What the pages show is what Linux prints, where workers can read the leader's pages.
my $can_share = $node->safe_psql('postgres', q{
	CREATE EXTENSION temp_parallel;
	SELECT 1 FROM temp_parallel_stats();
	CREATE TEMP TABLE t AS SELECT 1 AS i;
	SELECT not_shared IS NULL FROM temp_parallel_stats();
	DROP EXTENSION temp_parallel}) =~ /t$/;
note "workers cannot read the leader's pages here" if !$can_share;

sub without_numbers { return $_[0] =~ s/\d+(\.\d+)?/N/gr; }

# Runs the snippets of a text in one session of a database. Tests each with its name,
# and the output that the text has for it.
sub run_snippets
{
	my ($name, $text, $database) = @_;
	my @snippets;

	while ($text =~ /^```(sql|text)\n(.*?)^```\n/msg)
	{
		if ($1 eq 'sql') { push @snippets, { sql => $2 }; }
		else { $snippets[-1]{expected} = $2; }
	}
	# a module of contrib, which this server may not have
	@snippets = grep { $_->{sql} !~ /pg_buffercache/ } @snippets
	  if !-e $node->config_data('--pkglibdir') . '/pg_buffercache.so';
	return 0 if !@snippets;

	# Lines tell which one has ended. A calibration need not be precise here.
	my $script = join '', map { "$snippets[$_]{sql}\\echo end of $_\n" } 0 .. $#snippets;
	$script =~ s/temp_parallel_calibrate\(\)/temp_parallel_calibrate(iterations => 6, max_cv => 1000)/g;
	my ($status, $out, $err) = $node->psql($database, $script);
	foreach my $n (0 .. $#snippets)
	{
		my $first_line = $snippets[$n]{sql} =~ s/\n.*//sr;
		my $ran = $out =~ s/\A(.*?)^end of $n(\n|\z)//ms;
		my $printed = without_numbers($1 // '');

		ok($ran, "$name: $first_line") or diag($err);
		next if !$ran || !defined $snippets[$n]{expected};
		my $expected = without_numbers($snippets[$n]{expected});
		$expected =~ s/^ *(Share Planned|Shared): .*\n//mg if !$can_share;
		$printed = substr $printed, -length $expected
		  if $expected =~ s/\A\.\.\.\n// && length $printed > length $expected;
		is($printed, $expected, "$name: output of $first_line");
	}
	return scalar @snippets;
}

sub set_libraries
{
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	$node->safe_psql('postgres', "ALTER SYSTEM SET session_preload_libraries = $_[0]") if $_[0] ne '';
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('session_preload_libraries') = '$_[0]'");
	return;
}

my $n = 0;
foreach my $section (map { split /^(?=## )/m, slurp_file("$top/$_") } 'README.md', 'doc/installation.md')
{
	my ($name) = $section =~ /^#+ (.*)/;
	# the other library of the lists, which this server may not have
	$section =~ s/auto_explain, //, $section =~ s/SET (\w+) = auto_explain;/RESET $1;/
	  if !-e $node->config_data('--pkglibdir') . '/auto_explain.so';
	$n += run_snippets($name, $section, 'postgres');
}
cmp_ok($n, '>', 3, 'README.md has snippets');

set_libraries('temp_parallel');
foreach my $page ('CONTRIBUTING.md', grep { $_ ne 'doc/installation.md' }
	map { "doc/$_" } sort map { m{([^/]+)$} } glob "$top/doc/*.md")
{
	my $database = $page =~ s/.*\/|\.md$//gr;

	$node->safe_psql('postgres', "CREATE DATABASE \"$database\"");
	$node->safe_psql($database, 'CREATE EXTENSION temp_parallel');
	run_snippets($page, slurp_file("$top/$page"), $database);
}

$node->stop;
done_testing();
