# Compiles C code that a test needs beside the installed module, outside the
# tree and without installing it.
#
# BUILD_PG_CONFIG in the environment names the pg_config to build with, where
# that is not the one of the server under test.

package Build;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT_OK = qw(build);

# build(NAME, FILES, VARIABLES...): copy FILES into a directory of their own,
# make there, and return the path of the library NAME. Dies when that fails.
sub build
{
	my ($name, $files, @variables) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $output;

	# what the make that runs this test was told is not meant for this one
	local @ENV{qw(MAKEFLAGS MAKEOVERRIDES MFLAGS)};
	delete @ENV{qw(MAKEFLAGS MAKEOVERRIDES MFLAGS)};

	# with their times, so that object files among them are used
	system('cp', '-p', @$files, $dir) == 0 or die "could not copy files";
	run_log(
		[
			'make', '-s', '-C', $dir, 'with_llvm=no',
			'PG_CONFIG=' . ($ENV{BUILD_PG_CONFIG} || 'pg_config'), @variables
		],
		'>', \$output, '2>&1') or die "make failed:\n$output";
	return "$dir/$name";
}

1;
