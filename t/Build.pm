# Builds a module that a test needs, in a temporary directory and without
# installing it.
#
# BUILD_PG_CONFIG in the environment is the pg_config to build with, if it is
# not that of the server under test.

package Build;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT_OK = qw(build);

# build(NAME, FILES, VARIABLES...) - copy FILES to a temporary directory, run
# make there with VARIABLES, and return the path of the library NAME. Dies if
# make fails.
sub build
{
	my ($name, $files, @variables) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $output;

	# not with the variables of the make that runs this test
	local @ENV{qw(MAKEFLAGS MAKEOVERRIDES MFLAGS VPATH DESTDIR)};
	delete @ENV{qw(MAKEFLAGS MAKEOVERRIDES MFLAGS VPATH DESTDIR)};

	# with their modification times, so that object files among them are used
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
