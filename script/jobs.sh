# shellcheck shell=bash disable=SC2034,SC2154  # what the script uses, and sets
# Runs jobs, several at a time, and adds up what they count: the last line of each is
# "N passed, N failed". To be sourced after script/lib.sh.
#
#   expect_jobs N               there are N jobs; those missing at exit count as failures
#   start_job NAME COMMAND...   start one, in a session of its own; descriptor 3 is this
#                               script's output, the job's own goes to $work/NAME.log
#   until_fewer N               wait until fewer than N run
#
# The results are in $passed and $failed, and, as a line for each job, in "${times[@]}".
# A job that ends with another status than 0 has failed, whatever it counted. The log of
# one that failed is printed, or all if $print_logs is "all". The script ends with the
# line that sums up, and with $signal to the jobs that still run. A function after_job,
# if there is one, is called with the name of each job that was started and has ended. If $tell
# is set, it prints a line now and then while jobs run, and no line says that one has started.
# A script that counts in another way defines job_ended() and on_exit() after this.

declare -A name_of=() started=()    # by process: the job, and the second of its start
passed=0 failed=0 times=() left=0
print_logs=failed
signal=TERM

expect_jobs() { left=$1; }

start_job() {
	local name=$1
	[ -n "${tell-}" ] || progress "$name: started"
	setsid "${@:2}" </dev/null 3>&1 >"$work/$name.log" 2>&1 &
	name_of[$!]=$name started[$!]=$SECONDS
}

until_fewer() {
	local pid status
	while [ ${#name_of[@]} -ge "$1" ]; do
		sleep 0.3
		[ -z "${tell-}" ] || tell_now_and_then "$tell"
		for pid in "${!name_of[@]}"; do
			[[ " $(jobs -rp | tr '\n' ' ')" != *" $pid "* ]] || continue
			status=0
			wait "$pid" || status=$?
			job_ended "${name_of[$pid]}" "$status" $((SECONDS - started[$pid]))
			unset "name_of[$pid]"
		done
	done
}

# job_ended NAME STATUS SECONDS. A missing last line, or one that contradicts the
# status, is a failure.
job_ended() {
	local p=0 f=0 line log=$work/$1.log
	line=$(tail -n 1 "$log")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
		p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]}
	fi
	[ "$2" = 0 ] && [ "$p" -gt 0 ] || [ "$f" -gt 0 ] || f=1
	if [ "$f" -gt 0 ] || [ "$print_logs" = all ]; then
		echo "===== $1"
		cat "$log"
		echo "====="
	fi
	[ "$2" != 124 ] || progress "$1: stopped after $limit seconds"
	line="$1: $p passed, $f failed"
	progress "$line"
	times+=("$(printf '%7d s  %s' "$3" "$line")")
	passed=$((passed + p)) failed=$((failed + f)) left=$((left - 1))
	! declare -F after_job >/dev/null || after_job "$1"
}

end_jobs() {
	local pid
	for pid in "${!name_of[@]}"; do kill "-$signal" -- "-$pid" 2>/dev/null; done
	for pid in "${!name_of[@]}"; do wait "$pid"; done
}

# shellcheck disable=SC2317  # cleanup() calls it
on_exit() {
	end_jobs
	[ "$left" = 0 ] || progress "$left job(s) missing"
	failed=$((failed + left))
	closing_line="$passed passed, $failed failed"
	[ "$1" = 0 ] || return "$1"
	[ "$passed" -gt 0 ] && [ "$failed" = 0 ]
}
