# shellcheck shell=bash disable=SC2154  # what script/packaging sets
# A server under the conditions of each row of "Where it is deployed" in doc/packaging.md, in
# namespaces of its own. To be sourced by script/packaging.
#
#   job_deploy      the job, as root in a chroot
#   row WHERE PAGES PREPARE CHECK COMMAND...
#                   the page has a row for WHERE that says PAGES, and so it is: PREPARE is what the
#                   shell does first, as root, COMMAND starts the server, and CHECK, which the
#                   server's user runs, is true only under the condition

rows='300000|45000150000'    # the answer of query.sql

prepare_deploy() {
	install_server libcap2-bin postgresql-common python3-seccomp systemd util-linux
	bin=/usr/lib/postgresql/$pg/bin
	make_user
	step "built" "${AS_USER[@]}" make -C "$home/src" with_llvm=no "PG_CONFIG=$pg_config"
	step "installed" make -C "$home/src" with_llvm=no "PG_CONFIG=$pg_config" install
	cd "$home"
	as_user "$bin/initdb" -D data -k -U postgres -A trust --locale=C.UTF-8 --no-sync >/dev/null
	cat >>data/postgresql.conf <<-CONF
		session_preload_libraries = 'temp_parallel'
		unix_socket_directories = '$home'
		listen_addresses = ''
		fsync = off
		wal_keep_size = 256MB
		temp_buffers = 128MB
		parallel_setup_cost = 0
		cpu_tuple_cost = 1
		min_parallel_table_scan_size = 0
		jit = off
	CONF
	start=("${AS_USER[@]}" "$bin/pg_ctl" -w start) stop=("${AS_USER[@]}" "$bin/pg_ctl" -w -m fast stop)
	"${start[@]}" -D data -l server.log >/dev/null
	psql -Xq -h "$home" -U postgres -c 'CREATE EXTENSION temp_parallel' \
		-c 'CREATE TABLE p AS SELECT generate_series(1, 100000) g'
	step 'a copy for a standby' "${AS_USER[@]}" "$bin/pg_basebackup" -R -D standby -c fast -h "$home" -U postgres
	"${stop[@]}" -D data >/dev/null
	# Two statements that scan dirty pages, and what became of the pages, which have more than 64 MB.
	# A line is a statement for single-user mode.
	cat >query.sql <<-'SQL'
		CREATE TEMP TABLE t AS SELECT g AS id, repeat('x', 200) AS pad FROM generate_series(1, 300000) g;
		SELECT count(*), sum(id) FROM t WHERE length(pad) = 200;
		SELECT count(*), sum(id) FROM t WHERE length(pad) = 200;
		SELECT workers_launched, CASE WHEN pages_flushed > 0 THEN 'written: `' || not_shared || '`' WHEN pages_shared > 0 THEN 'shared' ELSE 'neither' END AS pages FROM temp_parallel_stats();
	SQL
	# What the rows run: a server, and a session.
	cat >serve <<-SH
		set -eu
		export HOME=$home
		cd $home
		eval "\$1" || { echo "the condition does not hold: \$1"; exit 1; }
		trap '$bin/pg_ctl -D data -m fast -w stop >/dev/null' EXIT
		$bin/pg_ctl -D data -l server.log -w start >/dev/null
		psql -XAt -v ON_ERROR_STOP=1 -h $home -U postgres -f query.sql
	SH
	# under PREPARE CHECK COMMAND... - the same in its own namespaces.
	cat >under <<-SH
		prepare=\$1 check=\$2
		shift 2
		exec unshare --mount --propagation unchanged --pid --ipc --fork --kill-child sh -euc "
			mount -t proc proc /proc
			\$prepare
			exec \"\\\$@\"" sh "\$@" setpriv --reuid=$user --regid=$user --init-groups \
			bash $home/serve "\$check"
	SH
	# A program with a filter of system calls, which systemd and container runtimes install so.
	cat >filter <<-'PY'
		import errno, json, os, subprocess, sys
		from seccomp import ALLOW, ERRNO, KILL_PROCESS, MASKED_EQ, Arg, SyscallFilter

		def systemd_set(name):
		    text = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True).stdout
		    for word in (line.strip() for line in text.splitlines()[1:]):
		        if word.startswith("@"):
		            yield from systemd_set(word)
		        elif not word.startswith("#"):
		            yield word

		what, command = sys.argv[1], sys.argv[2:]
		f, allowed = SyscallFilter(ALLOW), []
		if what.startswith("@"):
		    f, allowed = SyscallFilter(ERRNO(errno.EPERM)), [*systemd_set("@default"), *systemd_set(what)]
		elif what.endswith(".json"):
		    rules = [r for r in json.load(open(what))["syscalls"] if r["action"] == "SCMP_ACT_ALLOW"]
		    f, allowed = SyscallFilter(ERRNO(errno.ENOSYS)), [n for r in rules if not r.get("includes", {}).get("caps") for n in r["names"]]
		elif what == "wx":
		    f.add_rule(ERRNO(errno.EPERM), "mmap", Arg(2, MASKED_EQ, 6, 6))
		    f.add_rule(ERRNO(errno.EPERM), "mprotect", Arg(2, MASKED_EQ, 4, 4))
		else:
		    f.add_rule(KILL_PROCESS if what == "kill" else ERRNO(errno.EPERM), "memfd_create")
		for name in set(allowed):
		    try:
		        f.add_rule(ALLOW, name)
		    except (RuntimeError, OSError, ValueError):
		        pass    # of another architecture
		f.load()
		os.execvp(command[0], command)
	PY
	(cd "$work" && apt-get download -qq -o APT::Sandbox::User=root golang-github-containers-common && dpkg-deb -x golang-*.deb containers)
	cp "$work/containers/usr/share/containers/seccomp.json" "$home"
	chown -R "$user:" "$home"
}

documented() {
	grep -qF "| $1 | $2 |" "$top/doc/packaging.md" ||
		{ failed=$((failed + 1)); die "doc/packaging.md does not say: | $1 | $2 |"; }
}

row() {
	local where=$1 pages=$2 last
	shift 2
	documented "$where" "$pages"
	rm -f "$work/log"
	run "$work/log" bash under "$@" || true
	last=$(tail -n 1 "$work/log")
	if [ "$(grep -cxF "$rows" "$work/log")" != 2 ] || [[ $last != [1-9]*"|$pages" ]]; then
		failed=$((failed + 1))
		tail -n 15 server.log "$work/log"
		die "$where: not: $pages"
	fi
	ok "$where: $pages"
}

# shellcheck disable=SC2016  # Markdown
job_deploy() {
	local was mode
	prepare_deploy
	row 'none of these' shared : :

	row '`ProtectProc=invisible`, `hidepid=2`' shared 'mount -t proc -o hidepid=2 proc /proc' \
		'grep -q "hidepid=[2i]" /proc/mounts'
	row '`ProtectProc=ptraceable`' shared 'mount -t proc -o hidepid=4 proc /proc' 'grep -q "hidepid=[4p]" /proc/mounts'
	row '`ProcSubset=pid`' shared 'mount -t proc -o subset=pid proc /proc' '[ -e /proc/self ]'
	row 'no `/proc`' shared 'mount -t tmpfs none /proc' '[ ! -e /proc/self ]'
	row '`PrivateTmp=`' shared 'mount -t tmpfs none /tmp' '[ -z "$(ls /tmp)" ]'
	row '`ProtectKernelTunables=`' shared 'mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys' \
		'grep -q " /proc/sys proc ro," /proc/mounts'
	row '`NoNewPrivileges=`, `CapabilityBoundingSet=`' shared : 'setpriv --dump | grep -q "no_new_privs: 1"' \
		setpriv --no-new-privs --bounding-set=-all,+setuid,+setgid
	row '`MemoryDenyWriteExecute=`' shared : '! python3 -c "import mmap; mmap.mmap(-1, 4096, prot=7)" 2>/dev/null' \
		python3 filter wx
	row '`SystemCallFilter=@system-service`' shared : 'grep -q "^Seccomp:.2" /proc/self/status' python3 filter @system-service
	row '`SystemCallFilter=~memfd_create:EPERM`' 'written: `memfd_create() failed`' : : python3 filter errno
	step 'a filter that kills ends a session' bash -c '! bash under : : python3 filter kill'
	says 'server closed the connection unexpectedly'
	step 'and all others' grep -F 'terminating any other active server processes' server.log
	row '`SystemCallFilter=~memfd_create`' 'written: `temp_parallel.share_local_buffers is off`' : : \
		env 'PGOPTIONS=-c temp_parallel.share_local_buffers=off' python3 filter kill

	row 'the seccomp profile of Podman' shared : 'grep -q "^Seccomp:.2" /proc/self/status' python3 filter seccomp.json
	row '64 MB of `/dev/shm`' shared 'mount -t tmpfs -o size=64m,mode=1777 none /dev/shm' \
		'df -m --output=size /dev/shm | grep -qx " *64"'
	row 'a root that is read only' shared "mount --bind $home $home; mount --rbind / /media
		mount -o remount,bind,ro /media" 'grep -q "^[^ ]* / [^ ]* ro," /proc/mounts' chroot /media

	# job() sets it back, whatever happens here.
	was=$(cat /proc/sys/vm/overcommit_memory)
	for mode in 0 1 2; do
		if ! echo "$mode" 2>/dev/null >/proc/sys/vm/overcommit_memory; then
			progress "not tested: root cannot set vm.overcommit_memory here"
			break
		fi
		row "\`vm.overcommit_memory\` $mode" shared : "grep -qx $mode /proc/sys/vm/overcommit_memory"
	done
	if [ "$(cat /proc/sys/vm/overcommit_memory)" = 2 ]; then
		row '`vm.overcommit_memory` 2, a pool above a quarter of what is left of `CommitLimit`' \
			'written: `vm.overcommit_memory is 2, and temp_buffers too large for what is left to reserve`' : : \
			env "PGOPTIONS=-c temp_buffers=$(awk '/^CommitLimit|^Committed_AS/ { n[$1] = $2 } END { print int((n["CommitLimit:"] - n["Committed_AS:"]) / 3) "kB" }' /proc/meminfo)"
	fi
	echo "$was" 2>/dev/null >/proc/sys/vm/overcommit_memory || true
	for mode in 1 2; do
		row "\`vm.memfd_noexec\` $mode" shared "echo $mode >/proc/sys/vm/memfd_noexec" "grep -qx $mode /proc/sys/vm/memfd_noexec"
	done

	row '`ulimit -l 0`' shared : '[ "$(ulimit -l)" = 0 ]' prlimit --memlock=0
	row '`ulimit -n 100`' shared : '[ "$(ulimit -n)" = 100 ]' prlimit --nofile=100
	row '`ulimit -v` below what the process has and four times the pool' \
		"written: \`the process's address space is limited\`" : : prlimit --as=600000000
	row '`ulimit -f` below the pool' 'written: `ftruncate() or mmap() failed`' : : prlimit --fsize=100000000
	row 'file capabilities of `postgres`' shared \
		"cp $bin/postgres $work/capable; setcap cap_sys_nice+ep $work/capable; mount --bind $work/capable $bin/postgres" :
	row '`AmbientCapabilities=`' shared : 'setpriv --dump | grep -q "Ambient capabilities: sys_nice"' \
		setpriv --securebits=+no_setuid_fixup --inh-caps=+sys_nice --ambient-caps=+sys_nice

	documented 'a standby' neither
	step 'the standby runs' "${start[@]}" -D standby -l standby.log
	step 'sessions of a standby' psql -XAt -h "$home" -U postgres -c 'CREATE TEMP TABLE t ()' -c 'SELECT count(*) FROM p' \
		-c "SELECT 'loaded:', current_setting('temp_parallel.enabled'), pg_is_in_recovery()"
	says '^ERROR:  cannot execute CREATE TABLE in a read-only transaction'
	says '^100000$'
	says '^loaded:\|on\|t$'
	step 'promoted' "${AS_USER[@]}" "$bin/pg_ctl" -D standby -w promote
	step 'then temporary tables are filled' psql -XAt -v ON_ERROR_STOP=1 -h "$home" -U postgres -f query.sql
	says '^[1-9][0-9]*\|shared$'
	"${stop[@]}" -D standby >/dev/null
	documented 'single-user mode' neither
	step 'single-user mode' "${AS_USER[@]}" sh -c '"$1" --single -D data postgres <query.sql' sh "$bin/postgres"
	says 'sum = "45000150000"'
	says 'workers_launched = "0"'
	says 'pages = "neither"'
}
