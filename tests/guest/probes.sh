# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Kretprobes on functions of the kernel that return how many they found: a
# histogram in the kernel adds their return values up, so that no event is lost.
# Sourced, by polls.test and ci/experiments-guest.

tracing=/sys/kernel/tracing
# Each request in flight can have a callback under way, hence so many.
maxactive=64

probe()	# NAME FUNCTION
{
	echo "r$maxactive:nvqpolls/$1 $2 ret=\$retval:s32" >>$tracing/kprobe_events
}

forget()
{
	echo 0 >$tracing/events/nvqpolls/enable
	local t
	for t in $tracing/events/nvqpolls/*/trigger; do
		echo '!hist:keys=ret' >"$t"
	done
} 2>/dev/null

count_from_now()
{
	local t
	forget
	for t in $tracing/events/nvqpolls/*/trigger; do
		echo 'hist:keys=ret:size=2048' >"$t"
	done
	echo 1 >$tracing/events/nvqpolls/enable
}

# returned NAME empty|found|events|negative: how many returned 0, or more, the
# sum of what they returned, how many less than 0
returned()
{
	sed -n 's/^{ ret: *\(-*[0-9]*\) } hitcount: *\([0-9]*\)$/\1 \2/p' \
		"$tracing/events/nvqpolls/$1/hist" |
		awk -v want="$2" '
		$1 == 0	{ n["empty"] += $2 }
		$1 > 0	{ n["found"] += $2; n["events"] += $1 * $2 }
		$1 < 0	{ n["negative"] += $2 }
		END	{ print n[want] + 0 }'
}

# Probes that were missed, or values that the histogram had no room for.
missed()
{
	{
		awk '{ print $3 }' $tracing/kprobe_profile
		sed -n 's/^ *Dropped: //p' $tracing/events/nvqpolls/*/hist
	} | awk '{ n += $1 } END { print n + 0 }'
}
