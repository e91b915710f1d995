# Injects I/O errors on the files of temporary tables. io_fault.c makes the
# system calls fail; it is compiled here, with the compiler that the server was
# built with, and preloaded into the server that with_io_fault() starts.

package IoFault;

use strict;
use warnings;

use Exporter 'import';
use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(with_io_fault fail_io mend_io io_calls file_of);

my $order;
my $serial = 0;

# with_io_fault(SUB) - call SUB, which starts the server, and return its result.
sub with_io_fault
{
	my ($start) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $library = "$dir/io_fault.so";
	my ($cc) = run_command([ 'pg_config', '--cc' ]);

	system_or_bail(split(' ', $cc), '-fPIC', '-shared', '-o', $library,
		dirname(__FILE__) . '/io_fault.c', '-ldl');

	$order = "$dir/order";
	# at the end: a sanitizer must be the first
	local $ENV{LD_PRELOAD} = join(' ', grep { defined } $ENV{LD_PRELOAD}, $library);
	local $ENV{IO_FAULT} = $order;
	return $start->();
}

# fail_io(CALL, HOW, ERRNO, SKIP, TIMES, FILE) - inject errors, as io_fault.c
# describes, until mend_io().
sub fail_io
{
	my @fault = @_;

	unlink "$order.log";
	$serial++;
	append_to_file("$order.new", "$serial @fault");
	rename "$order.new", $order or die "rename: $!";
	return;
}

sub mend_io
{
	unlink $order or die "unlink: $!";
	return;
}

# The calls since fail_io(): a hash from the number of bytes transferred, or -1
# for an error, to the number of calls.
sub io_calls
{
	my %calls;

	if (-e "$order.log")
	{
		/^\d+ \w+ (-?\d+)$/ and $calls{$1}++ foreach split /\n/, slurp_file("$order.log");
	}
	return %calls;
}

# The argument FILE of fail_io() for a relation (an SQL expression) of session $s.
sub file_of
{
	my ($s, $relation) = @_;

	return $s->safe("SELECT '/' || regexp_replace(pg_relation_filepath($relation), '.*/', '');");
}

1;
