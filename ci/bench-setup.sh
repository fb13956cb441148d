# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the guests of ci/bench and ci/experiments have in common: which drives are
# whose, and programs that are read in, and bounded, before they are measured.
# Sourced; NVQ_BUILD and NVQ_T_IO_URING are set.

# A path that spins for ever is not to take the others along.  By the time it
# executes, not by the guest's clock: that leaps from timer to timer while the guest
# waits for the host, and a busy host would have any time be up.
bounded()	# COMMAND...
{
	prlimit --cpu=$((ms / 1000 + 30)) "$@"
}

# For the same reason everything is read in before it is measured.
warm_up()
{
	local programs
	programs=("$(command -v fio)" "$(command -v timeout)" "$NVQ_T_IO_URING"
		"$NVQ_BUILD/libnvqueue.so" "$NVQ_BUILD/tools/nvq-perf" ${NVQ_MARK:+"$NVQ_MARK"})
	{
		printf '%s\n' "${programs[@]}"
		ldd "${programs[@]}" | sed -n 's|.*[ \t]\(/[^ ]*\) (.*|\1|p'
	} | sort -u | xargs cat >/dev/null
	fio --name=warm --ioengine=null --size=64k >/dev/null
	fio --enghelp="$NVQ_BUILD/libnvqueue.so" >/dev/null
}

# The first drives stay with nvme.ko, which numbers them from 0; the others are
# bound to nvqueue, before it looks for any.
setup_drives()	# STOCK [NVQUEUE-PARAMETERS [NVME-PARAMETERS]]
{
	local i f drives
	mapfile -t drives < <(grep -l 0x010802 /sys/bus/pci/devices/*/class)
	# shellcheck disable=SC2086
	insmod "$NVQ_BUILD/nvqueue.ko" ${2-} || return
	for f in "${drives[@]:$1}"; do
		"$NVQ_BUILD/tools/nvq" bind "$(basename "${f%/class}")" || return
	done
	# shellcheck disable=SC2086
	modprobe nvme poll_queues=1 ${3-} || return
	for ((i = 0; i < 100; i++)); do
		[ "$(find /dev -name 'ng?n1' | wc -l)" != "$1" ] || return 0
		sleep 0.1
	done
	echo "$1 drives are to be nvme.ko's, but: $(echo /dev/ng*)" >&2
	return 1
}
