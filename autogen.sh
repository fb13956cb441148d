#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes ./configure in a checkout.  A release tarball has it already.
set -eu
cd "$(dirname "$0")"

missing=
need() {
	command -v "$1" >/dev/null 2>&1 && return
	echo "autogen.sh: $1 not found: apt install $2" >&2
	missing=yes
}

need autoreconf autoconf
need automake automake
need libtoolize libtool
need pkg-config pkg-config
test -z "$missing" || exit 1

autoreconf --force --install --warnings=all,no-obsolete,no-portability
