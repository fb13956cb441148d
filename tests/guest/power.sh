# shellcheck shell=dash
# SPDX-License-Identifier: MIT
#
# In power.test's guest, under busybox, with nothing but memory: four writers
# (acked.c) while the machine suspends and resumes, again and again.  TAP on the
# second serial line; then the guest ends.
#
# usage: power.sh [FULL]

b=/bin/busybox
number=0
exec </dev/null >/dev/ttyS1 2>&1

verdict()	# STATUS NAME
{
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
	fi
}

writer()	# I QUEUE WAY BASE
{
	/bin/acked write "/records/$1" "/dev/nvq0$2" "$3" "$4" >"/records/$1.out" 2>&1 &
	eval "pid$1=$!"
}

count()	# I FIELD
{
	# shellcheck disable=SC2046
	set -- "$2" $(/bin/acked show "/records/$1")
	shift "$1"
	echo "$1"
}

# Each writer gets 128 more acknowledged, in 90 s.
go_on()	# NAME
{
	local i t before now
	for i in 0 1 2 3; do
		before=$(count $i 1)
		t=0
		now=$before
		while [ "$now" -lt $((before + 128)) ] && [ $t -lt 450 ]; do
			$b sleep 0.2
			t=$((t + 1))
			now=$(count $i 1)
		done
		[ "$now" -ge $((before + 128)) ]
		verdict $? "$1: writer $i goes on ($before, then $now)"
	done
}

# Without the kernel's test of it there is no way back, see power.test.
sleep_as()	# TEST STATE
{
	echo "$1" >/sys/power/pm_test && echo "$2" >/sys/power/state
}

round()	# TEST STATE
{
	local what="$2, $1" before after
	before=$(count 1 3)
	$b grep -qw "$2" /sys/power/state
	verdict $? "the kernel knows the state $2"
	sleep_as "$1" "$2"
	verdict $? "$what: suspended with I/O in flight, and back"
	go_on "$what"
	after=$(count 1 3)
	[ "$after" -gt "$before" ]
	verdict $? "$what: a native owner had to agree ($before, then $after)"
}

# What each says at its end: nothing lost, nothing twice.
join()	# I PID
{
	kill -TERM "$2"
	wait "$2"
	verdict $? "writer $1: every command ended once, with right data"
	$b sed 's/^/# /' "/records/$1.out"
}

# shellcheck disable=SC2154
all()
{
	local i rounds=1
	[ -z "$1" ] || rounds=10
	echo 0 >/sys/power/sync_on_suspend
	echo 1 >/sys/module/suspend/parameters/pm_test_delay
	echo deep >/sys/power/mem_sleep
	writer 0 poll0 standard 0
	writer 1 poll1 native 64
	writer 2 irq0 standard 128
	writer 3 irq1 native 192
	go_on "before"
	while [ $rounds -gt 0 ]; do
		round devices freeze
		round platform freeze
		round platform mem
		round devices mem
		rounds=$((rounds - 1))
	done
	join 0 "$pid0"
	join 1 "$pid1"
	join 2 "$pid2"
	join 3 "$pid3"
	for i in 0 1 2 3; do
		/bin/acked check "/records/$i" "/dev/nvq0irq2" >/records/check
		verdict $? "writer $i: what was acknowledged reads back: $($b tail -n 1 /records/check)"
	done
	echo "1..$number"
}

all "$1"
$b dmesg >/records/dmesg
$b sed 's/^/# dmesg: /' /records/dmesg | $b tail -n 200
$b sleep 1
echo b >/proc/sysrq-trigger
