# doc/reference.md has every setting, function, view, column, line of EXPLAIN and
# error, and none that does not exist. Otherwise users would rely on something that
# is not there, or not find what is.
#
# Settings, functions, views and columns are compared with the server's catalog;
# lines of EXPLAIN and errors, for which there is no catalog, with the C files and the script, and
# the reasons in doc/run_ahead.md with those of plan_explain.c.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/..";
my $reference = slurp_file("$top/doc/reference.md");
my $source = join '', map { slurp_file($_) } sort glob "$top/*.c";
my $script = join '', map { slurp_file($_) } sort glob "$top/temp_parallel--*.sql";

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION temp_parallel');

# In any order, so that a failure shows what is missing on which side.
sub same
{
	my ($name, $documented, $exist) = @_;
	my %documented = map { $_ => 1 } @$documented;
	my %exist = map { $_ => 1 } @$exist;

	cmp_ok(scalar keys %exist, '>', 0, "$name: some exist");
	is(join("\n", grep { !$documented{$_} } sort keys %exist), '', "$name: all are documented");
	is(join("\n", grep { !$exist{$_} } sort keys %documented), '', "$name: all that are documented exist");
	return;
}

sub lines { return split /\n/, $node->safe_psql('postgres', "LOAD 'temp_parallel'; $_[0]"); }

# The page by its headings: [heading, text], and the rows of the tables in a text,
# each a list of cells.
my @sections = map { [/\A(.*?)\n(.*)\z/s] } grep { $_ ne '' } split /^#+ /m, $reference;

sub rows
{
	my ($text, $first) = @_;
	my @rows;
	my $inside = 0;

	foreach my $line (split /\n/, $text)
	{
		my @cells = map { s/^\s+|\s+$//gr } split /\|/, $line =~ s/^\||\|$//gr, -1;
		if ($line !~ /^\|/) { $inside = 0; }
		elsif (!$inside) { $inside = $cells[0] eq $first ? 1 : -1; }
		elsif ($inside > 0 && $cells[0] !~ /^---/) { push @rows, \@cells; }
	}
	return @rows;
}

sub columns
{
	return map { "$_->[0] $_->[1]" =~ tr/`//dr } rows($_[0], 'column');
}

# ----------
# Settings
# ----------
my %type = (bool => 'boolean', enum => 'enum', integer => 'integer', real => 'floating point');
same('settings',
	[ map { $_->[0] =~ /^`(temp_parallel\.\w+)` \((.+)\)$/ ? "$1, $2, " . join(' ', $_->[1] =~ /^Default: `(.+)`$/mg) : () } @sections ],
	[ map { my ($name, $type, $default) = split /\|/; "$name, $type{$type}, $default" }
		lines(q{SELECT name, vartype, current_setting(name) FROM pg_settings WHERE name LIKE 'temp\_parallel.%'}) ]);
is(join("\n", lines(q{SELECT name FROM pg_settings WHERE name LIKE 'temp\_parallel.%' AND context <> 'user'})),
	'', 'any user may change the settings');

# README names each setting, too, with its default.
same('settings in README.md',
	[ map { "$_->[0] $_->[1]" =~ tr/`//dr } rows(slurp_file("$top/README.md"), 'setting') ],
	[ lines(q{SELECT name || ' ' || current_setting(name) FROM pg_settings WHERE name LIKE 'temp\_parallel.%'}) ]);

# ----------
# Functions and views
# ----------
my $members = q{
	FROM pg_depend d JOIN pg_extension e ON e.oid = refobjid
	LEFT JOIN pg_proc p ON classid = 'pg_proc'::regclass AND p.oid = objid
   WHERE refclassid = 'pg_extension'::regclass AND extname = 'temp_parallel' AND deptype = 'e'};
my %columns;    # of what the catalog has, by heading

foreach (lines(qq{SELECT proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)
	$members AND p.oid IS NOT NULL}))
{
	my ($name, $arguments, $result) = split /\|/;
	my @arguments = split /, /, $arguments;
	my $in = join ', ', grep { !/^OUT / } @arguments;

	$columns{"`$name(" . ($in =~ s/::\w+//gr) . ") → $result`"} =
	  [ map { /^OUT "?(\w+)"? (.+)/ ? "$1 $2" : () } @arguments ];
}
foreach my $view (lines("SELECT objid::regclass $members AND classid = 'pg_class'::regclass"))
{
	$columns{"View `$view`"} = [ lines(qq{
		SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
		 WHERE attrelid = '$view'::regclass AND attnum > 0 ORDER BY attnum}) ];
}
is(join("\n", lines(qq{SELECT pg_describe_object(classid, objid, 0) $members AND classid NOT IN
	('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass)})),
	'', 'the extension has functions, views and types only');

# The arrow, for the test's output, which has no encoding.
sub plain { return $_[0] =~ s/→/->/r; }

same('functions and views',
	[ map { plain($_->[0]) } grep { $_->[0] =~ /^(View )?`(?!temp_parallel\.)/ } @sections ],
	[ map { plain($_) } keys %columns ]);
foreach my $section (grep { exists $columns{ $_->[0] } } @sections)
{
	is(join("\n", columns($section->[1])), join("\n", @{ $columns{ $section->[0] } }),
		plain("columns of $section->[0]"));
}

# ----------
# EXPLAIN
# ----------
same('lines of EXPLAIN',
	[ map { map { s/:.*//r } "$_->[0] $_->[1]" =~ /`([^`]+)`/g } rows($reference, 'in text') ],
	[ $source =~ /(?:ExplainProperty|explain_)\w+\(\s*"([^"]+)"/g,
		$source =~ /\{"\w+", "([^"]+)", /g ]);

# ----------
# Errors
# ----------

# A message with ... for names and numbers.
sub message { return $_[0] =~ s/\\"/"/gr =~ s/%m|%\.?\d*l?[a-z]|INT64_FORMAT/.../gr =~ s/%%/%/gr; }

# "SQLSTATE or level: message" of each ereport() but one, which is not in a build that
# users have, and of each RAISE.
my (@raised, %name_of_code);
my $string = qr/"((?:[^"\\]|\\.)*)"/;
while ($source =~ /\bereport\((ERROR|WARNING|NOTICE),(.*?)\);\n/gs)
{
	my ($level, $report) = ($1, $2);
	my $code = $level ne 'ERROR' ? $level
	  : $report =~ /\berrcode\(ERRCODE_(\w+)\)/ ? lc $1
	  : $report =~ /\berrcode_for_file_access\(\)/ ? 'of the file\'s error'
	  : 'none';
	foreach my $format ($report =~ /\berrmsg\($string/g)
	{
		push @raised, [ $code, message($format) ];
		$name_of_code{$code} = 1;
	}
}
while ($script =~ /\bRAISE (EXCEPTION|WARNING|NOTICE) '([^']+)'(.*?);\n/gs)
{
	my ($level, $format, $options) = ($1, $2, $3);
	my $code = $level ne 'EXCEPTION' ? $level : $options =~ /\bERRCODE = '(\w+)'/ ? $1 : 'none';
	push @raised, [ $code, $format =~ s/%/.../gr ];
	$name_of_code{$code} = 1;
}
is(scalar(() = $source =~ /\bereport\((?!DEBUG)/g), scalar(() = $source =~ /\bereport\((ERROR|WARNING|NOTICE),.*?\);\n/gs),
	'no report is of another level');
my %sqlstate = map { $_ => $_ } keys %name_of_code;
foreach my $code (grep { /^[a-z_0-9]+$/ } keys %name_of_code)
{
	$sqlstate{$code} = ($node->psql('postgres',
		"\\set VERBOSITY sqlstate\nDO \$\$ BEGIN RAISE 'x' USING ERRCODE = '$code'; END \$\$"))[2] =~
	  /ERROR:\s+(\w{5})/ ? $1 : 'unknown';
}
my ($errors) = map { $_->[1] } grep { $_->[0] eq 'Errors' } @sections;
same('errors',
	[ map { "$_->[0]: $_->[1]" =~ tr/`//dr } rows($errors, 'SQLSTATE') ],
	[ map { "$sqlstate{$_->[0]}: $_->[1]" } @raised ]);

my ($internal) = $reference =~ /^### Internal errors\n.*?^```\n(.*?)^```/ms;
same('internal errors',
	[ split /\n/, $internal ],
	[ map { message($_) } $source =~ /\belog\(ERROR, $string/g ]);
is(scalar(() = $source =~ /\belog\(/g), scalar(() = $source =~ /\belog\(ERROR, "/g), 'elog() raises errors only');

# ----------
# INSERT ... SELECT
# ----------
same('reasons of "Not Run Ahead"',
	[ map { $_->[0] =~ /`([^`]+)`/g } rows(slurp_file("$top/doc/run_ahead.md"), 'reason') ],
	[ slurp_file("$top/plan_explain.c") =~ /^\t\[RUN_AHEAD_\w+\] = "(.+)"/mg ]);

$node->stop;
done_testing();
