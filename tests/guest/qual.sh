# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Runs of nvq-qual and what they leave, for the suites about it: results folders are in
# $results, the first drive is $a.  Sourced after lib.sh.

results=$tap_tmp/results
mkdir "$results"
a=$(bdf 0)

qual()	# ARGUMENT...
{
	COMMAND_TIMEOUT=$((90 * NVQ_SLOW)) run "$BUILD/nvq-qual" "$@"
}

# state FOLDER EXPRESSION: of its state.json: d, and jobs(I), stock(I) of drive I
state()
{
	python3 -IS -c 'import json, sys
d = json.load(open(sys.argv[1] + "/state.json"))
jobs = lambda i: d["drives"][i]["jobs"]
stock = lambda i: d["drives"][i]["stock"]
print(eval(sys.argv[2]))' "$1" "$2"
}

node_of()	# BDF: nvqN, which a drive that comes back may have changed
{
	local d
	for d in /sys/class/nvqueue/nvq[0-9]; do
		[ "$(<"$d/address")" != "$1" ] || echo "${d##*/}"
	done
}

has_files()	# FOLDER NAME...
{
	local folder=$1 f
	shift
	for f; do
		[ -s "$folder/$f" ] || { echo "no $f"; return 1; }
	done
}

running()	# a queue of the first drive has an owner
{
	local n
	for n in "/sys/class/nvqueue/$(node_of "$a")"poll*; do
		[ "$(<"$n/owner")" = 0 ] || return 0
	done
	return 1
}
