# shellcheck shell=bash
# Functions for all scripts; to be sourced by a bash script running `set -eu`.
#
#   progress TEXT            print a line with the seconds since the start
#   die TEXT                 the same on stderr, then exit 1
#   apt_install_missing P..  install those of the Debian packages that are missing
#   debian_pg_version        print the PostgreSQL version of this Debian release
#   origin_of VERSION        print where supported_versions has that version from
#   apt_mirror SUITE         print the mirror from which apt gets this machine's SUITE
#   pip_failed LOG TEXT      die with TEXT and what pip has printed; see there
#   make_workdir             set $work, a directory that is removed at exit; in
#                            $work_parent, or in /tmp
#   copy_tree SRC DST        copy the sources without build products and .git
#   private_server PGCONFIG  make a copy of that server under $work; see there
#   make_cluster NAME [PORT] start a throw-away cluster on that copy
#   run LOG COMMAND...       run a step that Ctrl-C or TERM can interrupt; if $tell is
#                            set, "$tell LOG" prints a line about it now and then
#
# A script that needs to do more at exit defines on_exit(); it gets the exit
# status, and runs before servers are stopped and $work is removed.
#
# Nothing is installed into the system's server, and only the throw-away cluster
# is connected to: the caller's PG* variables are unset.

unset "${!PG@}"
export LC_ALL=C

# PostgreSQL versions, each with the Debian suite that has it, or "wheel" if none has:
# see script/server.sh.
supported_versions=(15:bookworm 16:wheel 17:trixie 18:sid 19:experimental)

work=           # the temporary directory
keep=           # not empty: keep $work
child=          # the session that run() waits for
AS_SERVER=()    # prefix for a command that must not run as root
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# On a terminal, a line that tell_now_and_then() has printed is overwritten.
progress() {
	[ ! -t 1 ] || printf '\r\033[K'
	printf '[%4ds] %s\n' "$SECONDS" "$*"
}
die() { progress "error: $*" >&2; exit 1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"
	elif command -v sudo >/dev/null; then sudo "$@"
	else die "not root, and no sudo to run: $*"
	fi
}

# Removes nothing: gcc-multilib, for one, excludes cross compilers. Three tries, as a mirror
# may fail once. The package lists are fetched only if the first try fails, as they may be
# missing or out of date.
apt_install_missing() {
	local p missing=() try
	for p in $(printf '%s\n' "$@" | sort -u); do
		dpkg-query -W -f='${Status}\n' "$p" 2>/dev/null |
			grep -q '^install ok installed$' || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	# On other systems, a missing package is noticed when it is used.
	command -v apt-get >/dev/null || return 0
	progress "installing ${missing[*]}"
	for try in 1 2 3; do
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
			--no-install-recommends --no-remove -o DPkg::Lock::Timeout=300 \
			"${missing[@]}" </dev/null >"$work/apt.log" 2>&1 && return 0
		[ "$try" = 1 ] || sleep $((try * 10))
		apt_update || true
	done
	tail -n 30 "$work/apt.log"
	die "could not install ${missing[*]}"
}

apt_update() { as_root apt-get update -qq </dev/null >"$work/apt-update.log" 2>&1; }

# If pip cannot verify certificates, as where a proxy has its own, its many lines do not say
# what to do: the cause and the setting, in one line.
pip_failed() {
	if grep -q 'CERTIFICATE_VERIFY_FAILED\|TLS CA certificate' "$1"; then
		rm "$1"
		die "$2: pip cannot verify the certificate of the package index; set PIP_CERT to" \
			"the file with your network's CA certificates"
	fi
	cat "$1"
	die "$2"
}

# The package "postgresql" depends on the release's own version.
debian_pg_version() {
	local try v
	for try in 1 2 3; do
		v=$(apt-cache depends postgresql 2>/dev/null |
			sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p;T;q')
		[ -z "$v" ] || break
		[ "$try" = 1 ] || sleep $((try * 10))
		apt_update || true
	done
	[ -n "$v" ] || die "apt knows no package postgresql; name a server with --pg-config"
	echo "$v"
}

origin_of() {
	local v
	for v in "${supported_versions[@]}"; do
		[ "${v%%:*}" != "$1" ] || echo "${v#*:}"
	done
}

# Works with any kind of apt sources. The mirror has the other suites, too, of the
# same date if it is a dated one, signed by a key of $debian_keyring.
apt_mirror() {
	apt-get --print-uris update | sed -n "s#^'\(.*\)/dists/$1/.*#\1#p;T;q"
}

# Directly in /tmp, since the path of a socket must not exceed 107 bytes.
make_workdir() {
	work=$(mktemp -d "${work_parent:-/tmp}/temp_parallel.XXXXXX")
	chmod 755 "$work"
	mkdir -m 1777 "$work/tmp"
	export TMPDIR=$work/tmp HOME=$work/tmp
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	# The reader of the output may exit first, as head does.
	trap 'exit 141' PIPE
}

cleanup() {
	local status=$? pidfile
	trap - EXIT
	trap '' INT TERM HUP PIPE
	set +e
	case $status in 130 | 143) progress "interrupted; cleaning up" ;; esac
	if [ -n "$child" ]; then
		kill -TERM -- "-$child" 2>/dev/null
		for _ in {1..30}; do
			[[ " $(jobs -rp | tr '\n' ' ')" = *" $child "* ]] || break
			sleep 0.1
		done
		kill -KILL -- "-$child" 2>/dev/null
		wait "$child" 2>/dev/null
	fi
	if declare -F on_exit >/dev/null; then on_exit "$status"; status=$?; fi
	# The cluster's server, and those that an interrupted TAP test left running. A
	# server that is starting may have its postmaster.pid only a moment later.
	for _ in 1 2; do
		[ -n "${bindir-}" ] || break
		while IFS= read -r pidfile; do
			"${AS_SERVER[@]}" "$bindir/pg_ctl" -D "${pidfile%/*}" -m immediate -w stop \
				>/dev/null 2>&1
		done < <(find "$work" -name postmaster.pid 2>/dev/null)
		[ "$status" = 0 ] && break
		sleep 0.5
	done
	if [ -n "$keep" ]; then progress "kept $work"
	else
		rm -rf "$work"
		case $status in 130 | 143) progress "stopped all that was started, and removed $work" ;; esac
	fi
	[ -z "${closing_line-}" ] || echo "$closing_line"
	exit "$status"
}

# tell_now_and_then COMMAND... - to be called again and again: prints the line that COMMAND
# prints, on a terminal every second and over the one before, otherwise every 20 seconds.
told=0
tell_now_and_then() {
	local line every=20
	[ ! -t 1 ] || every=1
	[ $((SECONDS - told)) -ge "$every" ] || return 0
	told=$SECONDS
	line=$("$@") || return 0
	printf -v line '[%4ds] %s' "$SECONDS" "$line"
	if [ -t 1 ]; then printf '\r\033[K%.*s' $((${COLUMNS:-80} - 1)) "$line"
	else printf '%s\n' "$line"
	fi
}

# Runs the step in its own session, so that all its processes can be terminated,
# and waits with `wait`, during which bash runs traps at once.
run() {
	local log=$1 status=0
	shift
	setsid "$@" </dev/null >>"$log" 2>&1 &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}

copy_tree() {
	mkdir -p "$2"
	tar -C "$1" --exclude-vcs --exclude='*.o' --exclude='*.so' --exclude='*.bc' \
		--exclude=./results --exclude=./tmp_check --exclude=./log -cf - . |
		tar -C "$2" --no-same-owner -xf -
}

# PostgreSQL finds its libraries and its share directory relative to its programs, and
# that of a Python wheel also the shared libraries in the wheel's own directory.
# So a copy of the programs, with links to everything else, is a separate server,
# into which an extension can be installed (with
# `make install DESTDIR=$server_root PG_CONFIG=$pg_config`) without changing the
# system's. Sets $pg_config (the system's), $server_root, $bindir, and
# $server_user with AS_SERVER, since a server refuses to run as root.
private_server() {
	local d
	pg_config=$("$1" --bindir)/pg_config
	[ -x "$pg_config" ] || pg_config=$1
	[ -f "$("$pg_config" --pgxs)" ] ||
		die "$pg_config: the files to build extensions with are not installed"
	server_root=$work/server
	bindir=$server_root$("$pg_config" --bindir)
	mkdir -p "$bindir"
	cp "$("$pg_config" --bindir)"/* "$bindir"
	for d in "$("$pg_config" --pkglibdir)" "$("$pg_config" --sharedir)" \
		"$("$pg_config" --bindir)"/../../../*.libs; do
		[ -d "$d" ] || continue
		mkdir -p "$server_root$d"
		cp -rs "$d/." "$server_root$d"
		# An installed copy of the extension must not be tested instead.
		find "$server_root$d" -mindepth 1 -name 'temp_parallel*' -exec rm -rf {} +
	done
	server_user=$(id -un)
	if [ "$(id -u)" = 0 ]; then
		server_user=postgres
		id "$server_user" >/dev/null 2>&1 || server_user=nobody
		AS_SERVER=(setpriv "--reuid=$server_user" "--regid=$(id -g "$server_user")"
			--init-groups)
		chown "$server_user" "$work"
	fi
}

# The cluster's socket is in $work; it listens on no port. Sets PGHOST, PGPORT and
# PGUSER; the server's log is $work/NAME.log. Checksums are on, to detect pages
# written wrongly; fsync is off, as a crash of the machine need not be survived.
make_cluster() {
	local data=$work/$1 port=${2-5432}
	run "$data.initdb" "${AS_SERVER[@]}" "$bindir/initdb" -D "$data" -k -U postgres \
		-A trust --encoding=UTF8 --locale=C.UTF-8 --no-sync ||
		{ cat "$data.initdb"; die "initdb failed"; }
	"${AS_SERVER[@]}" tee -a "$data/postgresql.conf" >/dev/null <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$work'
		port = $port
		max_worker_processes = 16
		max_parallel_workers = 8
		fsync = off
	CONF
	export PGHOST=$work PGPORT=$port PGUSER=postgres
	run "$data.initdb" "${AS_SERVER[@]}" "$bindir/pg_ctl" -D "$data" -l "$data.log" -w start ||
		{ tail -n 30 "$data.log"; die "the server did not start"; }
}
