#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ci/icount-idle refuses what was measured while the CPU idled, and nothing else; and
# what ci/experiments reads from fio.  Prints TAP.

: "${srcdir:=$(dirname "$0")/../..}"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
number=0

# STATUS NAME REGEX ARGUMENT...: that status, and REGEX in what it says; nothing said
# where that is ''
idle()
{
	number=$((number + 1)) want=$1 name=$2 regex=$3
	shift 3
	"$srcdir/ci/icount-idle" "$@" >"$tmp/said" 2>&1
	status=$?
	if [ -n "$regex" ]; then
		grep -qE -- "$regex" "$tmp/said"
	else
		! [ -s "$tmp/said" ]
	fi
	tell $(($? || status != want)) "status $status, not $want, or not /$regex/ in:"
}

tell()	# FAILED [WHY]
{
	if [ "$1" = 0 ]; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		[ -z "${2-}" ] || echo "# $2"
		sed 's/^/# /' "$tmp/said"
	fi
}

marks()	# NUMBER USER KERNEL
{
	echo "mark $1 user $2 kernel $3 calls 5 user_pauses 0 kernel_pauses 0 doorbells 7"
}

{
	echo "some other line of the log"
	marks 6 1000 2000
	marks 7 401000 551000
	marks 8 500000 600000
	marks 9 500100 600200
} >"$tmp/marks"
echo "3 950000" >"$tmp/window"
idle 0 "a window full of instructions" '' window "$tmp/marks" "$tmp/window"
echo "4 450000" >"$tmp/window"
idle 1 "a window of idling" 'busy for 300 of 450000 instructions and nanoseconds, 0\.1 %; less than 98 %' \
	window "$tmp/marks" "$tmp/window"
echo "3 980000" >"$tmp/window"
idle 1 "a window with a gap" '96\.8 %' window "$tmp/marks" "$tmp/window"
idle 0 "which a lower bound allows" '' window "$tmp/marks" "$tmp/window" 0.95
# the path was run again: what it did first does not count
{
	marks 8 700000 700000
	marks 9 900000 945000
} >>"$tmp/marks"
echo "4 450000" >"$tmp/window"
idle 0 "the last time counts" '' window "$tmp/marks" "$tmp/window"
echo "11 450000" >"$tmp/window"
idle 2 "a window without marks" 'the files do not say' window "$tmp/marks" "$tmp/window"
marks 22 1 1 >>"$tmp/marks"
idle 2 "a window without its end" 'the files do not say' window "$tmp/marks" "$tmp/window"
: >"$tmp/window"
idle 2 "no window" 'the files do not say' window "$tmp/marks" "$tmp/window"

# NAME GROUP RUNTIME USER SYSTEM: an entry of "jobs"
entry()
{
	cat <<-END
	    {
	      "jobname" : "$1",
	      "groupid" : $2,
	      "job options" : {
	        "runtime" : "9s"
	      },
	      "read" : {
	        "runtime" : $3,
	        "total_ios" : 9,
	        "iops" : 1000.5,
	        "lat_ns" : { "mean" : 6.5, "percentile" : { "50.000000" : 6, "99.900000" : 9 } },
	        "clat_ns" : { "mean" : 1.5, "percentile" : { "50.000000" : 1 } }
	      },
	      "write" : {
	        "runtime" : 0,
	        "total_ios" : 0,
	        "iops" : 0,
	        "lat_ns" : { "mean" : 0 }
	      },
	      "error" : 0,
	      "job_runtime" : 200,
	      "usr_cpu" : $4,
	      "sys_cpu" : $5
	    }
	END
}

{ printf 'a remark\n{ "jobs" : [\n'; entry a 0 200 72.5 25.0; echo ']}'; } >"$tmp/one"
idle 0 "a job that was busy" '' fio "$tmp/one"
{ entry a 0 200 31.0 9.5; } >"$tmp/out"
idle 1 "a job that was not" 'busy for 81 of 200 ms, 40\.5 %; less than 90 %' fio "$tmp/out"
{ entry a 0 201 30.0 20.0; entry b 0 200 49.0 0.0; } >"$tmp/out"
idle 0 "two jobs that share the CPU" '' fio "$tmp/out"
{ entry a 0 200 50.0 50.0; entry b 1 200 10.0 9.0; } >"$tmp/out"
idle 1 "one after the other, each for itself" 'busy for 38 of 200 ms' fio "$tmp/out"
echo "fio: failed" >"$tmp/out"
idle 2 "no JSON" 'the files do not say' fio "$tmp/out"

echo "0.12 1.95" >"$tmp/times"
idle 0 "a tool that was busy" '' times "$tmp/times" 2.1
echo "0.10 1.10" >"$tmp/times"
idle 1 "a tool that was not" 'busy for 1200 of 2100 ms' times "$tmp/times" 2.1

number=$((number + 1)) name="latencies are of the whole way"
PYTHONPATH=$srcdir/ci python3 -B -c 'import sys
from bench_reading import jobs_of_fio, latency_of_job
job = jobs_of_fio(open(sys.argv[1]).read())[0]
latency = latency_of_job(job)
assert latency == {"mean": 6.5, "50": 6, "99.9": 9}, latency
del job["read"]["lat_ns"]["percentile"]
assert latency_of_job(job) == {}' "$tmp/one" >"$tmp/said" 2>&1
tell $?
echo "1..$number"
