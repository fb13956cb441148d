#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every function that lib/nvq.h and lib/nvq_native.h offer is in libnvq.3, both in
# its synopsis and in its text, and the page names none that they do not offer.
# Prints TAP.

: "${srcdir:=$(dirname "$0")/../..}"
page=$srcdir/doc/libnvq.3
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Without comments, a name that begins a declaration and is followed by "(".
sed -e 's:/\*.*\*/::' -e '/\/\*/,/\*\//d' "$srcdir/lib/nvq.h" "$srcdir/lib/nvq_native.h" |
	grep -E '^[a-z].*[ *]nvq_[a-z0-9_]+\(' |
	sed 's/.*[ *]\(nvq_[a-z0-9_]*\)(.*/\1/' | sort -u >"$tmp/offered"
sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/s/.*[ *"]\(nvq_[a-z0-9_]*\)(.*/\1/p' "$page" |
	sort -u >"$tmp/synopsis"
sed -n '/^\.SH DESCRIPTION/,$s/^\.BR \(nvq_[a-z0-9_]*\) ().*/\1/p' "$page" |
	sort -u >"$tmp/text"

number=0
same()	# NAME FILE
{
	number=$((number + 1))
	if diff "$tmp/offered" "$2" >"$tmp/diff"; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed -n 's/^< /# missing: /p; s/^> /# no such function: /p' "$tmp/diff"
	fi
}

number=1
if [ "$(wc -l <"$tmp/offered")" -ge 60 ]; then
	echo "ok 1 - functions are found in the headers"
else
	echo "not ok 1 - functions are found in the headers"
fi
same "libnvq.3: the synopsis" "$tmp/synopsis"
same "libnvq.3: the text" "$tmp/text"
echo "1..$number"
