# shellcheck shell=bash disable=SC2154  # $top, $buffers and what script/lib.sh sets
# What script/demo and the programs in bench share beyond script/lib.sh. To be
# sourced before make_workdir is called, which changes $HOME.
#
#   build_extension PGCONFIG    install packages and a private server, build the
#                               extension for it; if PGCONFIG is empty, for the
#                               Debian release's own version
#   bench_server PGCONFIG       the same, and start a cluster. $settings, an array of options
#                               of psql, may change more settings; those fail that a version lacks
#   bench_driver MODULE ARG...  run a module or package of bench/tpbench as a step
#   bench_main MODULE VALUED FLAGS ARG...  all of a program whose options, --pg-config and
#                               --keep excepted, are those of its driver: VALUED, which
#                               have a value, and FLAGS; lists with spaces around each.
#                               $buffers may say how many the cluster has
#   python_venv NAME REQUIREMENTS  install Python packages into a virtual environment

# For what is expensive to obtain again. The user may delete it.
cache=${XDG_CACHE_HOME:-$HOME/.cache}
export XDG_CACHE_HOME=$cache

build_extension() {
	local pg packages=(make gcc libc6-dev python3)
	pg_config=$1
	if [ -z "$pg_config" ]; then
		pg=$(debian_pg_version)
		packages+=("postgresql-$pg" "postgresql-server-dev-$pg")
		pg_config=/usr/lib/postgresql/$pg/bin/pg_config
	fi
	apt_install_missing "${packages[@]}"
	private_server "$pg_config"

	# Compiled from a copy: the tree itself may contain objects for another version.
	copy_tree "$top" "$work/src"
	chown -R "$server_user" "$work/src"
	local make=(make -s -C "$work/src" with_llvm=no "PG_CONFIG=$pg_config")
	progress "building temp_parallel for $("$bindir/postgres" --version)"
	run "$work/build.log" "${AS_SERVER[@]}" "${make[@]}" "-j$(nproc)" ||
		{ cat "$work/build.log"; die "the build failed"; }
	run "$work/build.log" "${make[@]}" "DESTDIR=$server_root" install ||
		{ cat "$work/build.log"; die "the installation failed"; }
}

bench_server() {
	build_extension "$1"
	progress "starting a throw-away cluster in $work"
	make_cluster cluster
	# Only unlogged tables use shared buffers here, as many as the session has
	# local buffers. Autovacuum never processes temporary tables; it must not
	# help the others, nor run while something is timed.
	run "$work/settings.log" "$bindir/psql" -qX -d postgres ${settings[@]+"${settings[@]}"} \
		-c "ALTER SYSTEM SET shared_buffers = '$buffers'" \
		-c "ALTER SYSTEM SET autovacuum = off" \
		-c "ALTER SYSTEM SET max_wal_size = '8GB'"
	run "$work/settings.log" "${AS_SERVER[@]}" "$bindir/pg_ctl" -D "$work/cluster" \
		-l "$work/cluster.log" -w restart || die "the server did not restart"
}

# Sets $venv, which is kept in the cache, one per version of Python and of REQUIREMENTS.
python_venv() {
	local python
	python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	venv=$cache/temp_parallel/$1-$python-$(cksum <"$2" | tr ' ' -)
	[ ! -e "$venv/complete" ] || return 0
	apt_install_missing python3-venv ca-certificates
	progress "installing Python packages ($1) for Python $python"
	if ! run "$work/venv.log" python3 -m venv --clear "$venv" ||
		! run "$work/venv.log" "$venv/bin/pip" install --quiet \
			--disable-pip-version-check -r "$2"
	then
		pip_failed "$work/venv.log" "could not install the Python packages"
	fi
	touch "$venv/complete"
}

bench_driver() {
	python_venv driver "$top/bench/requirements.txt"
	# Like run(), but with the caller's stdout: what it prints is the result.
	PGDATABASE=postgres START=$SECONDS TEMP_BUFFERS=$buffers \
		PYTHONPATH=$top/bench PYTHONDONTWRITEBYTECODE=1 \
		setsid "$venv/bin/python" -m "tpbench.$1" "${@:2}" </dev/null &
	child=$!
	local status=0
	wait "$child" || status=$?
	child=
	return "$status"
}

bench_main() {
	local module=$1 valued=$2 flags=$3 options=() pg_config=''
	local buffers=${buffers-512MB}		# room for all tables
	shift 3
	while [ $# -gt 0 ]; do
		case $1 in
			--pg-config) pg_config=${2:?--pg-config needs a path}; shift ;;
			--keep) export keep=1 ;;
			*)
				if [[ $valued = *" $1 "* ]]; then
					options+=("$1" "${2:?$1 needs a value}"); shift
				elif [[ $flags = *" $1 "* ]]; then
					options+=("$1")
				else
					sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
					exit 2
				fi
				;;
		esac
		shift
	done
	make_workdir
	bench_server "$pg_config"
	bench_driver "$module" "${options[@]}"
}
