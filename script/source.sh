# shellcheck shell=bash
# The source of PostgreSQL, from Debian's source package. To be sourced after
# lib.sh.
#
#   $source_cache            directory of files kept for the next run:
#                            $TEMP_PARALLEL_CACHE, by default
#                            /var/cache/temp_parallel for root and
#                            ~/.cache/temp_parallel for others
#   source_packages          the Debian packages that this needs
#   source_tarball VERSION   sets $tarball to the upstream release that Debian has,
#                            without Debian's patches, which are about file
#                            locations; fetched if it is not in the cache
#   core_tests VERSION DIR [SOURCES]
#                            puts its src/test/regress and src/test/isolation into DIR, or
#                            those of SOURCES, a source tree of the server
#   compile_core_tests DIR [MODULE...]
#                            compiles the C functions of DIR, a src/test/regress, and those
#                            MODULEs, for the server of $pg_config

# Set here, as make_workdir changes $HOME.
if [ -n "${TEMP_PARALLEL_CACHE-}" ]; then source_cache=$TEMP_PARALLEL_CACHE
elif [ "$(id -u)" = 0 ]; then source_cache=/var/cache/temp_parallel
else source_cache=${XDG_CACHE_HOME:-${HOME-}/.cache}/temp_parallel
fi

# shellcheck disable=SC2034  # for scripts that source this
source_packages=(bzip2 debian-archive-keyring)

# One try. The file gets its name in the cache only when it is complete. apt uses
# separate package lists, so that the machine's do not change.
fetch_source() {
	local version=$1 suite=$2 mirror=$3 dir=$work/source-$1 apt
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	echo "deb-src [signed-by=$debian_keyring] $mirror $suite main" >"$dir/sources.list"
	apt=(apt-get -qq -o "Dir::Etc::SourceList=$dir/sources.list"
		-o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$dir/lists"
		-o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=)
	run "$work/source.log" "${apt[@]}" update &&
		run "$work/source.log" env -C "$dir" "${apt[@]}" source --download-only --tar-only \
			"postgresql-$version" &&
		mkdir -p "$source_cache/sources" &&
		cp "$dir/postgresql-${version}_"*.orig.tar.* "$work/tarball" &&
		mv "$work/tarball" "$source_cache/sources/$(basename "$dir/postgresql-${version}_"*.orig.tar.*)"
}

find_tarball() {
	tarball=$(find "$source_cache/sources" -name "postgresql-${1}_*.orig.tar.*" 2>/dev/null |
		sort -V | tail -n 1)
	[ -n "$tarball" ]
}

source_tarball() {
	local suite mirror try
	apt_install_missing "${source_packages[@]}"
	find_tarball "$1" && return
	suite=$(origin_of "$1")
	[ -n "$suite" ] && [ "$suite" != wheel ] ||
		die "no Debian suite is known to have the source of PostgreSQL $1"
	mirror=$(apt_mirror "$(. /etc/os-release; echo "${VERSION_CODENAME-}")")
	[ -n "$mirror" ] || die "apt has no mirror of Debian"
	progress "fetching the source of PostgreSQL $1"
	for try in 1 2 3; do
		[ "$try" = 1 ] || sleep $((try * 10))
		fetch_source "$1" "$suite" "$mirror" && find_tarball "$1" && return
		rm -rf "$work/source-$1"
	done
	tail -n 30 "$work/source.log"
	die "could not fetch the source of PostgreSQL $1"
}

core_tests() {
	local suite
	mkdir -p "$2"
	if [ -n "${3-}" ]; then
		[ -e "$3/src/test/regress/parallel_schedule" ] || die "$3 does not contain the server's tests"
		for suite in regress isolation; do copy_tree "$3/src/test/$suite" "$2/$suite"; done
		return
	fi
	source_tarball "$1"
	run "$work/source.log" tar -C "$2" --strip-components=3 --wildcards \
		--no-same-owner -xf "$tarball" '*/src/test/regress' '*/src/test/isolation' ||
		{ cat "$work/source.log"; die "could not unpack $tarball"; }
}

compile_core_tests() {
	# shellcheck disable=SC2016  # make expands it
	printf '%s\n' "MODULES = regress ${*:2}" 'PGXS := $(shell $(PG_CONFIG) --pgxs)' 'include $(PGXS)' \
		>"$1/GNUmakefile"
	chown -R "$server_user" "$1"
	# shellcheck disable=SC2154  # set by the script that sources this
	run "$work/build.log" "${AS_SERVER[@]}" make -s -C "$1" with_llvm=no "PG_CONFIG=$pg_config" \
		all || { cat "$work/build.log"; die "could not compile regress.c"; }
}
