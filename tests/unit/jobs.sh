#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every job file of jobs/ parses on every path that its head names, the heads are
# as ci/experiments wants them, and a file that writes does so to NVQ_SCRATCH alone,
# which it does not do without.  Prints TAP.

: "${srcdir:=$(dirname "$0")/../..}"
run=$srcdir/jobs/run
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
number=0

test_that()	# NAME COMMAND...
{
	number=$((number + 1))
	name=$1
	shift
	if "$@" >"$tmp/out" 2>&1; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		sed 's/^/# /' "$tmp/out"
	fi
}

parses()	# FILE PATH
{
	NVQ_SCRATCH=/dev/null NVQ_PATH=$2 "$run" --parse-only "$1"
}

# without NVQ_SCRATCH neither by jobs/run nor by itself
refuses()	# FILE
{
	# shellcheck disable=SC2046
	! NVQ_PATH=block "$run" --parse-only "$1" &&
		! env $(NVQ_SCRATCH=/dev/null NVQ_PATH=block "$run" --env "$1" | grep -v NVQ_SCRATCH) \
			fio --parse-only "$1"
}

unset NVQ_SCRATCH
engine=
if [ ! -e ./libnvqueue.so ]; then
	engine=no
	number=1
	echo "ok 1 - queue files # SKIP no engine was built"
fi
test_that "ci/experiments --check" python3 "$srcdir/ci/experiments" --check
for file in "$srcdir"/jobs/*.fio; do
	short=${file##*/}
	# shellcheck disable=SC2013
	for path in $(sed -n 's/^# paths: //p' "$file"); do
		case $engine$path in
		noqueue|nostandard|nokpoll|nocmd) ;;
		*)	test_that "$short: $path" parses "$file" "$path" ;;
		esac
	done
	if grep -q '^# WRITES' "$file"; then
		test_that "$short needs NVQ_SCRATCH" refuses "$file"
		# shellcheck disable=SC2016
		test_that "$short writes to NVQ_SCRATCH alone" \
			test "$(sed -n 's/^filename=//p' "$file" | sort -u)" = '${NVQ_SCRATCH}'
	elif grep -qE '^(rw|readwrite)=.*(w|trim)' "$file"; then
		test_that "$short says that it writes" false
	fi
done
echo "1..$number"
