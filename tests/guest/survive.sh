# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# For suites that break something under use: writers, four of them (acked.c), of standard
# and native commands on a poll and an irq queue each, and what must be true of
# them afterwards.  Sourced after lib.sh.
#
#	start_writers [I]	start_writer for each of them; on controller I (default 0)
#	writers_go_on NAME	each gets more acknowledged: one test
#	end_writers NAME	they are told to end, and all is accounted for
#	writers_died NAME	they end by ENODEV, all accounted for
#	killed_writers NAME SIGNAL
#	check_acked NAME	what was acknowledged reads back right

# shellcheck disable=SC2154
acked=$BUILD/tests/guest/acked
# Of each writer: its queue, its way, where its blocks begin (4 KiB).
writer_queues=(poll0 poll1 irq0 irq1)
writer_ways=(standard native standard native)
writer_bases=(0 64 128 192)
writer_nsids=('' '' '' '')
writer_pids=()
writer_drive=0
# Where the records are; a suite whose guest ends early puts them on the host.
records=$tap_tmp

record()	# I: of the i-th writer
{
	echo "$records/record$writer_drive.$1"
}

counts()	# I: of the i-th writer: acknowledged, aborted, resyncs, reads
{
	"$acked" show "$(record "$1")"
}

writer_open()	# NODE
{
	[ "$(attr "$1" owner)" != 0 ]
}

start_writer()	# I: until it owns its queue
{
	ACKED_NSID=${writer_nsids[$1]-} "$acked" write "$(record "$1")" "/dev/nvq$writer_drive${writer_queues[$1]}" \
		"${writer_ways[$1]}" "${writer_bases[$1]}" >"$tap_tmp/writer.$1" 2>&1 </dev/null &
	writer_pids[$1]=$!
	wait_for 20 writer_open "nvq$writer_drive${writer_queues[$1]}"
}

start_writers()	# [DRIVE]
{
	local i
	writer_drive=${1:-0} writer_pids=()
	rm -f "$tap_tmp"/writer.*
	for i in "${!writer_queues[@]}"; do
		start_writer "$i"
	done
}

acked_beyond()	# I NUMBER
{
	local now
	read -r now _ < <(counts "$1")
	[ "$now" -gt "$2" ]
}

# Two rounds of the queue and more, as the record is behind by up to one.
writers_progress()
{
	local i before=()
	for i in "${!writer_queues[@]}"; do
		read -r "before[i]" _ < <(counts "$i")
	done
	for i in "${!writer_queues[@]}"; do
		wait_for 60 acked_beyond "$i" $((before[i] + 128)) || {
			echo "writer $i (${writer_queues[i]}, ${writer_ways[i]}) is stuck at ${before[i]}"
			cat "$tap_tmp/writer.$i"
			return 1
		}
	done
}

writers_go_on()	# NAME
{
	ok "$1: all go on" writers_progress
}

# Each says at its end what it has seen.
join_writers()	# STATUS
{
	local i got bad=0
	for i in "${!writer_queues[@]}"; do
		wait "${writer_pids[i]}"
		got=$?
		cat "$tap_tmp/writer.$i"
		[ "$got" = "$1" ] || {
			echo "writer $i: status $got instead of $1"
			bad=1
		}
	done
	writer_pids=()
	return $bad
}

say_writers()
{
	grep -h '^/dev' "$tap_tmp"/writer.* | sed 's/^/# /'
}

end_writers()	# NAME
{
	kill -TERM "${writer_pids[@]}"
	ok "$1: every command ended once, with right data" join_writers 0
	say_writers
}

writers_died()	# NAME
{
	ok "$1: every command ended once, then ENODEV" join_writers 3
	say_writers
}

killed_writers()	# NAME SIGNAL
{
	kill -"$2" "${writer_pids[@]}"
	ok "$1: they are gone" join_writers $((128 + $(kill -l "$2")))
	ok "$1: and their queues are free" wait_for 20 writers_closed
}

# Of the other drives' queues somebody may be the owner.
writers_closed()
{
	local i
	for i in "${!writer_queues[@]}"; do
		! writer_open "nvq$writer_drive${writer_queues[i]}" || return 1
	done
}

# By the other kind of queue than the one that wrote.
check_records()
{
	local i nr=${#writer_queues[@]}
	for i in "${!writer_queues[@]}"; do
		ACKED_NSID=${writer_nsids[i]-} "$acked" check "$(record "$i")" \
			"/dev/nvq$writer_drive${writer_queues[(i + nr / 2) % nr]}" || return
	done
}

check_acked()	# NAME
{
	wait_for 20 writers_closed
	ok "$1: what was acknowledged reads back" check_records
}

# The sum of what all four have counted.
total()	# FIELD: 1 acknowledged, 2 aborted, 3 resyncs, 4 reads
{
	local i sum=0 fields
	for i in "${!writer_queues[@]}"; do
		read -ra fields < <(counts "$i")
		sum=$((sum + fields[$1 - 1]))
	done
	echo $sum
}

state_is()	# STATE: of the controller
{
	[ "$(attr "nvq$writer_drive" state)" = "$1" ]
}

bind_again()	# BDF [SECONDS]: once the device is there
{
	wait_for "${2:-20}" test -e "/sys/bus/pci/devices/$1" && "$nvq" bind "$1" &&
		wait_for 20 test -e "/dev/nvq${writer_drive}irq3"
}
