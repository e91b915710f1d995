# shellcheck shell=bash
# Servers for tests that need other build options than a distribution's package:
# built once from the source of Debian's package, and kept in the cache of
# source.sh. To be sourced after source.sh.
#
#   server_packages          the additional Debian packages for building one
#   build_server VERSION     sets $pg_config to that of a server with assertions
#                            enabled, and with segments of 6 blocks, so that a
#                            small table has several files; builds it if necessary
#   use_sanitizers           after private_server: makes that server start with the
#                            runtime of the sanitizers; only the extension is built
#                            with them ($SANITIZE, for COPT). A finding aborts the
#                            process, as a failed assertion does
#
# A server is in the cache under its name only when it is complete: it is built
# in $work and installed next to that name, then renamed. If it is missing, or was
# built with other options, it is built again.

server_packages=(bison flex)
SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all'

# Options of configure, one per line. Without features that the tests do not need:
# fewer packages, and less to compile.
server_options() {
	printf '%s\n' --enable-cassert --enable-debug --enable-tap-tests \
		--without-icu --without-readline --without-zlib
	# version 15 has no such option
	[ "$1" = 15 ] || echo --with-segsize-blocks=6
	echo 'CFLAGS=-Og -g -fno-omit-frame-pointer'
}

build_server() {
	local version=$1 dir=$source_cache/cassert-$1 src=$work/postgresql options lock
	mapfile -t options < <(server_options "$version")
	pg_config=$dir/bin/pg_config

	mkdir -p "$source_cache" 2>/dev/null && [ -w "$source_cache" ] ||
		die "cannot write to $source_cache; set TEMP_PARALLEL_CACHE to another directory"
	# A shared lock until this run ends, so that no other run replaces the server.
	exec {lock}>>"$dir.lock"
	flock -s "$lock"
	server_is_complete && return
	flock "$lock"
	if ! server_is_complete; then
		progress "building PostgreSQL $version, which takes some minutes"
		source_tarball "$version"
		mkdir "$src"
		run "$work/server.log" tar -C "$src" --strip-components=1 --no-same-owner -xf "$tarball" ||
			{ cat "$work/server.log"; die "could not unpack $tarball"; }
		run "$work/server.log" env -C "$src" sh -euc '
			dir=$1
			shift
			./configure -q --prefix="$dir" "$@"
			make -s -j"$(nproc)"
			make -s -j"$(nproc)" -C contrib
			make -s install DESTDIR="$PWD/root"
			make -s -C contrib install DESTDIR="$PWD/root"
			printf "%s\n" "$@" >"$PWD/root$dir/options"
			rm -rf "$dir.new" "$dir"
			cp -r "$PWD/root$dir" "$dir.new"
			mv "$dir.new" "$dir"
		' sh "$dir" "${options[@]}" || {
			tail -n 40 "$work/server.log"
			die "could not build PostgreSQL $version"
		}
		rm -rf "$src"
	fi
	flock -s "$lock"
}

# For build_server: does the server exist, built with the present options?
server_is_complete() {
	cmp -s "$dir/options" <(printf '%s\n' "${options[@]}")
}

# No leak detection, as the server frees little before it exits; no fake stack, as
# it checks its stack depth. What initdb starts runs without sanitizers. The server is
# given the wrapper's name, as that is what "pg_ctl restart" starts.
use_sanitizers() {
	export TEST_SANITIZE=1		# skips what cannot be tested with sanitizers
	mv "$bindir/postgres" "$bindir/postgres.real"
	cat >"$bindir/postgres" <<-SH
		#!/bin/bash
		[ "\$1" = -D ] || exec "\$0.real" "\$@"
		export LD_PRELOAD="$(gcc -print-file-name=libasan.so)\${LD_PRELOAD:+ \$LD_PRELOAD}"
		export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1
		export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1
		exec -a "\$0" "\$0.real" "\$@"
	SH
	chmod +x "$bindir/postgres"
}
