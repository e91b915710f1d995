# shellcheck shell=bash disable=SC2154  # $work, $debian_keyring: script/lib.sh
# Chroots of Debian suites. To be sourced after lib.sh, by a script that runs as root.
#
#   $chroot_cache                  where chroots are kept: $TEMP_PARALLEL_CACHE, by default
#                                  /var/cache/temp_parallel
#   bootstrap DIR SUITE MIRROR PG  makes a minimal chroot, which prefers the packages for
#                                  PostgreSQL PG from experimental if that is SUITE
#   in_chroot DIR COMMAND...       runs COMMAND in it, with $work/src as /mnt and
#                                  $work/tmp as /tmp; never returns

chroot_cache=${TEMP_PARALLEL_CACHE:-/var/cache/temp_parallel}

# Uses separate mount, process and IPC namespaces: when the command ends, even when
# it is killed, its mounts, its processes and the shared memory of its servers are
# removed. The shell stays as process 1, since new versions of timeout do not work
# as process 1. unshare replaces the caller's process.
in_chroot() {
	local dir=$1
	shift
	# shellcheck disable=SC2016  # expanded inside
	exec unshare --mount --pid --ipc --fork --kill-child -- sh -eu -c '
		dir=$1 work=$2
		shift 2
		mount -t proc proc "$dir/proc"
		mount -t tmpfs -o mode=1777 temp_parallel "$dir/dev/shm"
		mount -t devpts -o ptmxmode=666 temp_parallel "$dir/dev/pts"
		mount --bind "$work/src" "$dir/mnt"
		mount --bind "$work/tmp" "$dir/tmp"
		chroot "$dir" "$@"
		exit
	' sh "$dir" "$work" env TMPDIR=/tmp HOME=/tmp "$@"
}

bootstrap() {
	local dir=$1 suite=$2 mirror=$3 pg=$4 base=$2 mounted
	# experimental is not complete: it is used together with sid.
	[ "$suite" != experimental ] || base=sid
	# What is still mounted in an incomplete chroot must not be deleted with it.
	while read -r _ mounted _; do
		case $mounted in "$dir"/*) umount "$mounted" ;; esac
	done < <(tac /proc/mounts)
	rm -rf --one-file-system "$dir"
	mkdir -p "$dir"
	unshare --mount --pid --fork --kill-child -- debootstrap --variant=minbase \
		--force-check-gpg --keyring="$debian_keyring" "$base" "$dir" "$mirror"
	# The machine may need these settings to reach its mirror, or to accept a dated
	# one.
	cp -r /etc/apt/apt.conf.d/. "$dir/etc/apt/apt.conf.d/"
	[ ! -e /etc/apt/apt.conf ] || cp /etc/apt/apt.conf "$dir/etc/apt/"
	# Packages that have such a file of their own must not ask which one is to be kept.
	echo 'DPkg::Options { "--force-confold"; };' >"$dir/etc/apt/apt.conf.d/temp_parallel"
	# The packages of PostgreSQL, libpq among them, from either suite; all others from
	# sid.
	if [ "$base" != "$suite" ]; then
		echo "deb $mirror $suite main" >>"$dir/etc/apt/sources.list"
		printf '%s\n' "Package: src:postgresql-$pg" 'Pin: version *' 'Pin-Priority: 990' \
			>"$dir/etc/apt/preferences.d/temp_parallel"
	fi
	# In the chroot, start no service and make no cluster.
	printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
	chmod +x "$dir/usr/sbin/policy-rc.d"
	mkdir -p "$dir/etc/postgresql-common"
	echo 'create_main_cluster = false' >"$dir/etc/postgresql-common/createcluster.conf"
}
