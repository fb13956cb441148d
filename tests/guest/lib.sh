# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the guest suites share: TAP, running commands with their output kept,
# loading the module and binding drives, fio with our engine, counters, leaks,
# loops within a budget.  Sourced by NAME.test in the guest, and by NAME.pre and
# NAME.host on the host, which use the TAP part alone; tests/guest/run sets
#
#	BUILD NVQ_MODULE NVQ_ROOT SUITE NVQ_BUDGET NVQ_FULL NVQ_FIRST (1 or empty)
#	WORK	a directory that guest and host share
#	IMG	a path for a raw image of the drive (on the host)
#	NVQ_LOGS  where the console and the like are (on the host)
#	NVQ_SLOW  how much slower than usual the kernel is, 1 or more
#
# A suite ends with done_testing; one that does not has failed.

export LC_ALL=C.UTF-8
: "${NVQ_SLOW:=1}"
tap_tmp=$(mktemp -d)
trap 'rm -rf "$tap_tmp"' EXIT
tap_number=0
tap_failed=0
# Of the last run: exit status, output, errors.
status=0
out=$tap_tmp/out
err=$tap_tmp/err
: >"$out"
: >"$err"

### TAP

diag()
{
	printf '%s\n' "$*" | sed 's/^/# /'
}

# With NVQ_FIRST a suite ends once a test has failed, and been told.
end_if_failed()
{
	[ -z "${NVQ_FIRST-}" ] || [ "$tap_failed" = 0 ] || done_testing
}

tap_line()	# "ok" or "not ok", NAME
{
	end_if_failed
	tap_number=$((tap_number + 1))
	printf '%s %d - %s\n' "$1" "$tap_number" "${2//#/}"
}

pass()	# NAME
{
	tap_line ok "$1"
}

fail()	# NAME [DIAGNOSTIC]...
{
	tap_line 'not ok' "$1"
	tap_failed=$((tap_failed + 1))
	shift
	[ $# = 0 ] || diag "$@"
}

skip()	# NAME REASON
{
	tap_number=$((tap_number + 1))
	printf 'ok %d - %s # SKIP %s\n' "$tap_number" "${1//#/}" "$2"
}

# What the last run said, for whoever reads why it failed.
diag_run()
{
	diag "command: $last_command"
	diag "status: $status"
	grep -avE '^ *("[^"]*" : .*|[]}{]+,?)$' "$out" | tail -n 12 | cut -c1-400 | sed 's/^/# out: /'
	tail -n 12 "$err" | cut -c1-400 | sed 's/^/# err: /'
}

# run COMMAND...: sets status, fills $out and $err; COMMAND_TIMEOUT seconds.
# A function runs in this shell, without a time-out of its own.
last_command=
run()
{
	last_command="$*"
	if [ "$(type -t "$1")" = file ]; then
		timeout -k 5 "${COMMAND_TIMEOUT:-$((60 * NVQ_SLOW))}" "$@" >"$out" 2>"$err" </dev/null
	else
		"$@" >"$out" 2>"$err" </dev/null
	fi
	status=$?
}

ok()	# NAME COMMAND...: it succeeds
{
	local name=$1
	shift
	run "$@"
	verdict "$name" test "$status" = 0
}

fails()	# NAME COMMAND...: it ends by itself, and not with success
{
	local name=$1
	shift
	run "$@"
	verdict "$name" ended_badly
}

ended_badly()
{
	[ "$status" != 0 ] && [ "$status" != 124 ] && [ "$status" -lt 128 ]
}

# verdict NAME COMMAND...: of a run that was; COMMAND decides.
verdict()
{
	local name=$1
	shift
	if "$@"; then
		pass "$name"
	else
		fail "$name"
		diag_run
	fi
}

is()	# NAME GOT WANT
{
	if [ "$2" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "got: $2"
		diag "want: $3"
	fi
}

# compare NAME A OP B: numbers, OP as test(1) has it (-eq -gt ...)
compare()
{
	if [ -n "$2" ] && [ -n "$4" ] && test "$2" "$3" "$4"; then
		pass "$1"
	else
		fail "$1" "not: $2 $3 $4"
	fi
}

has_line()	# TEXT REGEX: a line of it matches; grep would take 0.1 s to start
{
	local line
	while IFS= read -r line; do
		[[ ! $line =~ $2 ]] || return 0
	done <<<"$1"
	return 1
}

like()	# NAME TEXT REGEX (extended)
{
	if has_line "$2" "$3"; then
		pass "$1"
	else
		fail "$1" "got: $2"
		diag "want: /$3/"
	fi
}

unlike()	# NAME TEXT REGEX
{
	if has_line "$2" "$3"; then
		fail "$1" "got: $2"
		diag "unwanted: /$3/"
	else
		pass "$1"
	fi
}

# tap_program PROGRAM [ARGUMENT]...: passes a TAP program's tests on as ours, as
# they come; one more failure if it ended early, badly or without any.
tap_program()
{
	local line n=0 bad=0 plan='' name=${1##*/} ended=''
	while IFS= read -r line; do
		case $line in
		'ok '*|'not ok '*)
			n=$((n + 1))
			tap_number=$((tap_number + 1))
			[[ $line != 'not '* ]] || bad=$((bad + 1))
			# no program a line: each start takes 0.1 s and more here
			[[ $line =~ ^((not )?ok)\ [0-9]*(\ -\ )?(.*) ]]
			echo "${BASH_REMATCH[1]} $tap_number - $name: ${BASH_REMATCH[4]}" ;;
		1..*)	plan=${line#1..} ;;
		'status of the program: '*)
			ended=${line##* } ;;
		'#'*)	echo "$line" ;;
		*)	echo "# $line" ;;
		esac
	done < <(timeout -k 5 "${COMMAND_TIMEOUT:-$(time_left)}" "$@" 2>&1 </dev/null
		echo "status of the program: $?")
	tap_failed=$((tap_failed + bad))
	if [ "$plan" != "$n" ] || [ "$n" = 0 ]; then
		fail "$name: ran to its end" "plan '$plan', $n tests, status $ended"
	elif [ "$ended" != 0 ] && [ $bad = 0 ]; then
		fail "$name: exit status" "$ended, but no test failed"
	fi
	end_if_failed
}

done_testing()
{
	echo "1..$tap_number"
	exit 0
}

### Time

time_now()	# whole seconds since the guest was started
{
	local now
	read -r now _ </proc/uptime
	echo "${now%.*}"
}

time_left()	# of the suite's budget, less what ending takes; at least 1
{
	local left=$((NVQ_BUDGET - 5 - $(time_now)))
	echo $((left > 1 ? left : 1))
}

# loop_goes_on ROUND COUNT FLOOR END: is there to be one more?  Up to the floor
# the budget may be overrun, as long as the guest is not killed for it.
loop_goes_on()
{
	[ "$1" -lt "$2" ] || return 1
	[ -z "${NVQ_FULL-}" ] || return 0
	[ "$(time_now)" -ge "$4" ] || return 0
	[ "$1" -lt "$3" ] && [ "$(time_now)" -lt $((NVQ_LIMIT - 10)) ]
}

# loop_budget [-s SECONDS] NAME COUNT FLOOR COMMAND...: runs it COUNT times with
# the number of the round (0..) as its last argument, or until SECONDS (default:
# what is left to the suite) are over; with --full always COUNT times.  It stops
# at a failure.  Fewer rounds than FLOOR are a failure as well.
loop_budget()
{
	local seconds='' name count floor i=0 end
	if [ "$1" = -s ]; then
		seconds=$2
		shift 2
	fi
	name=$1 count=$2 floor=$3
	shift 3
	end=$(($(time_now) + ${seconds:-$(time_left)}))
	status=0
	while [ "$status" = 0 ] && loop_goes_on $i "$count" "$floor" $end; do
		run "$@" $i
		i=$((i + 1))
	done
	diag "$name: $i rounds of $count (floor $floor)"
	if [ "$status" != 0 ]; then
		fail "$name" "round $i of $count failed"
		diag_run
	elif [ $i -lt "$floor" ]; then
		fail "$name" "$i rounds are less than the floor of $floor"
	else
		pass "$name"
	fi
}

### Module and drives

nvq=$BUILD/tools/nvq

bdf()	# I: PCI address of drive I
{
	printf '0000:00:%02x.0' $((0x10 + $1))
}

drives()	# PCI addresses of the NVMe drives, in order
{
	local d
	for d in /sys/bus/pci/devices/*; do
		[ "$(cat "$d/class")" != 0x010802 ] || echo "${d##*/}"
	done
}

load_module()	# [PARAMETER=VALUE]...
{
	insmod "$NVQ_MODULE" "$@"
}

unload_module()
{
	rmmod nvqueue
}

# start_nvqueue [PARAMETER=VALUE]...: loads the module and binds every drive; a
# suite that cannot do so has nothing to test.
start_nvqueue()
{
	local d
	load_module "$@" || give_up "the module does not load"
	for d in $(drives); do
		"$nvq" bind "$d" >"$tap_tmp/bind" 2>&1 || {
			diag "$(cat "$tap_tmp/bind")"
			give_up "$d is not bound"
		}
	done
}

# restart_nvqueue [PARAMETER=VALUE]...: the same with other parameters, one test
restart_nvqueue()
{
	local d
	for d in $(drives); do
		"$nvq" unbind "$d" >/dev/null 2>&1
	done
	ok "the module unloads" unload_module
	start_nvqueue "$@"
}

give_up()	# REASON: ends the suite as a failure
{
	fail "$SUITE: $1"
	dmesg | tail -n 15 | sed 's/^/# /'
	done_testing
}

attr()	# NODE NAME: a sysfs attribute of a node; "nvq0poll0", "nvq0"
{
	echo "$(<"/sys/class/nvqueue/$1/$2")"
}

wait_for()	# SECONDS COMMAND...: until it succeeds, asking often
{
	local i limit=$(($1 * 20 * NVQ_SLOW))
	shift
	for ((i = 0; i < limit; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	return 1
}

# qmp JSON: has QEMU execute a command, where a suite says "host: qmp"; prints
# the answer, and fails if it is an error.  $WORK in it is the host's.
qmp()
{
	local answer=''
	rm -f "$WORK/qmp.answer"
	printf '%s\n' "$1" >"$WORK/qmp.ask.new"
	mv "$WORK/qmp.ask.new" "$WORK/qmp.ask"
	wait_for 30 test -e "$WORK/qmp.answer" && answer=$(<"$WORK/qmp.answer")
	echo "${answer:-QEMU does not answer}"
	[[ $answer == '{"return"'* ]]
}

queue_nodes()	# names of all queues
{
	local d
	for d in /sys/class/nvqueue/nvq*; do
		[ ! -e "$d/kind" ] || echo "${d##*/}"
	done
}

### fio

fio_args=(--thread=0 --group_reporting=1 --eta=never)

# fio_engine ARGUMENT...: fio with our engine; fio's own files go to tmpfs.
fio_engine()
{
	(cd "$tap_tmp" && exec timeout -k 5 "${COMMAND_TIMEOUT:-$((60 * NVQ_SLOW))}" fio --name=j \
		--ioengine=external:"$BUILD/libnvqueue.so" "${fio_args[@]}" "$@")
}

# fio_uring_cmd ARGUMENT...: the same with fio's own passthrough engine
fio_uring_cmd()
{
	(cd "$tap_tmp" && exec timeout -k 5 "${COMMAND_TIMEOUT:-$((60 * NVQ_SLOW))}" fio --name=j \
		--ioengine=io_uring_cmd --cmd_type=nvme "${fio_args[@]}" "$@")
}

size_options()	# SIZE: fio's
{
	case $1 in
	512)	echo --bs=512 --size=1m --iodepth=64 ;;
	4k)	echo --bs=4k --size=4m --iodepth=64 ;;
	64k)	echo --bs=64k --size=8m --iodepth=32 ;;
	1m)	echo --bs=1m --size=32m --iodepth=16 ;;
	one)	echo --bs=4k --size=1m --iodepth=1 ;;
	range)	echo --bsrange=512-1m --blockalign=512 --size=24m --iodepth=16 ;;
	esac
}

# fio_value EXPRESSION: of the last run's JSON; j is its first job
fio_value()
{
	python3 -IS -c 'import json, sys
text = open(sys.argv[2]).read()
j = json.loads(text[text.index("{"):])["jobs"][0]
print(eval(sys.argv[1]))' "$1" "$out"
}

# Of the last run, fio's JSON: something was written, and as much read.
fio_verified()
{
	[ "$status" = 0 ] && python3 -IS - "$out" <<-'END'
	import json, sys
	text = open(sys.argv[1]).read()
	job = json.loads(text[text.index("{"):])["jobs"][0]
	size = job["write"]["io_bytes"]
	sys.exit(bool(job["error"] or not size or size != job["read"]["io_bytes"]))
	END
}

# verify NAME ENGINE NODE SIZE OPTION...: writes at random, verifies it with crc32c.
# The buffers' offset in their page goes around with each run: 0, 512, 4 bytes.
verify_aligns=(0 512 4)
verify_turn=0
verify()
{
	local name=$1 engine=$2 node=$3 size=$4 align=${verify_aligns[verify_turn++ % 3]}
	shift 4
	[ "$align" = 0 ] || set -- "$@" --iomem_align="$align"
	# shellcheck disable=SC2046
	run "$engine" --filename="/dev/$node" --rw=randwrite --verify=crc32c --verify_fatal=1 \
		--iodepth_batch=8 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=16 \
		--output-format=json $(size_options "$size") "$@"
	verdict "$name: $size, offset $align" fio_verified
}

# Four jobs at a time, one for each way on each kind of queue, all with the same
# options and each with its own part of the drive, PART MiB of it.
paths=(native-poll native-irq standard-poll standard-irq)
fio_paths()	# PART OPTION...: each as NAME=VALUE
{
	local i part=$1 kind
	shift
	{
		printf '%s\n' "[global]" "ioengine=external:$BUILD/libnvqueue.so" "$@"
		for i in "${!paths[@]}"; do
			kind=${paths[i]#*-}
			printf '%s\n' "[${paths[i]}]" "filename=/dev/nvq0${kind}$((i / 2))" \
				"submit=${paths[i]%-*}" "offset=$((i * part))m" "size=${part}m"
		done
	} >"$tap_tmp/paths.fio"
	(cd "$tap_tmp" && exec timeout -k 5 "${COMMAND_TIMEOUT:-$((60 * NVQ_SLOW))}" \
		fio --eta=never --output-format=json paths.fio)
}

### Nobody

# Nobody in particular, with copies of programs that he can reach in /tmp/nobody.
as_nobody()	# COMMAND...
{
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all "$@"
}

nobody_has()	# FILE...
{
	install -d -m 777 /tmp/nobody
	install -m 755 "$@" /tmp/nobody/
}

### Leaks

vmstat_value()	# NAME
{
	awk -v n="$1" '$1 == n { print $2 }' /proc/vmstat
}

pinned_pages()	# with what each CPU has not added to the sums yet
{
	echo 1 >/proc/sys/vm/stat_refresh
	echo $(($(vmstat_value nr_foll_pin_acquired) - $(vmstat_value nr_foll_pin_released)))
}

slab_objects()	# NAME: live objects, 0 if there is no such cache
{
	echo $(($(awk -v n="$1" '$1 == n { print $2 }' /proc/slabinfo)))
}

# With an IOMMU and slab_nomerge; unused addresses are cached, per CPU and by
# size, so that some stay whatever happens.
iova_count()
{
	slab_objects iommu_iova
}

leak_snapshot()	# sets what leak_check compares with
{
	leak_pinned=$(pinned_pages)
	leak_iova=$(iova_count)
	leak_irqs=$(grep -c nvq /proc/interrupts)
}

# open_at_once NODE...: all of them at once
open_at_once()
{
	local n fd ret=0
	local fds=()
	for n in "$@"; do
		if { exec {fd}<>"/dev/$n"; } 2>/dev/null; then
			fds+=("$fd")
		else
			echo "cannot open $n (owner $(attr "$n" owner))"
			ret=1
		fi
	done
	for fd in "${fds[@]}"; do
		exec {fd}>&-
	done
	return $ret
}

all_closed()
{
	local n
	for n in $(queue_nodes); do
		[ "$(attr "$n" owner)" = 0 ] || return 1
	done
}

pins_are()	# NUMBER
{
	[ "$(pinned_pages)" = "$1" ]
}

# KASAN keeps what was freed for a while, and it counts as live.
freed_is_kept()
{
	grep -q kasan_quarantine_put /proc/kallsyms
}

# leak_check NAME: nothing is left of what was opened since leak_snapshot, and
# every queue can be opened.  Four tests.
leak_check()
{
	wait_for 5 all_closed
	wait_for 5 pins_are "$leak_pinned"
	is "$1: pinned pages" "$(pinned_pages)" "$leak_pinned"
	if freed_is_kept; then
		skip "$1: IOVAs, up to the caches" "KASAN keeps what was freed"
	else
		compare "$1: IOVAs, up to the caches" "$(iova_count)" -le $((leak_iova + 2000))
	fi
	is "$1: interrupt lines" "$(grep -c nvq /proc/interrupts)" "$leak_irqs"
	# shellcheck disable=SC2046
	ok "$1: all queues open at once" open_at_once $(queue_nodes)
	wait_for 5 all_closed
}
