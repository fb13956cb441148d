# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What every script in ci/ shares: where things are, how to speak, how to ask
# apt for something without touching the system's own configuration.
# Sourced, never run.

# The root of the tree, from wherever the caller was started.
NVQ_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# Everything downloaded or built for testing; may be deleted at any time.
NVQ_CACHE_DIR=${NVQ_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}}/nvqueue
export NVQ_ROOT NVQ_CACHE_DIR

say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die()
{
	say "$*"
	exit 1
}

have()
{
	command -v "$1" >/dev/null 2>&1
}

version_of()	# COMMAND...: the first version number in its output
{
	"$@" 2>&1 | grep -oE '[0-9]+\.[0-9][^ ,)]*' | head -n 1
}

# A line of the file's content only when it would change: keeps timestamps.
write_if_changed()	# FILE, content on stdin
{
	local new
	new=$(mktemp "$1.XXXXXX")
	cat >"$new"
	if cmp -s "$new" "$1" 2>/dev/null; then
		rm -f "$new"
	else
		chmod 644 "$new"
		mv "$new" "$1"
	fi
}

installed()	# PACKAGE: true if dpkg has it configured
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

release_codename()
{
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release
}

# "URI SUITE" of each Debian archive that the system's apt configuration names
# for the installed release: asked of apt itself, so that either format of its
# sources will do, and before any list was fetched.
system_suites()
{
	local code
	code=$(release_codename)
	apt-get update --print-uris 2>/dev/null |
		sed -n "s|^'\(.*/\)dists/\(${code}[a-z-]*\)/InRelease' .*|\1 \2|p"
}

# private_apt DIR apt-get|apt-cache ARGS...: apt with the sources, lists and
# caches of DIR alone.
private_apt()
{
	local dir=$1 tool=$2
	shift 2
	"$tool" -q \
		-o Dir::Etc::sourcelist="$dir/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$dir/lists" \
		-o Dir::Cache="$dir/cache" \
		-o Dir::Cache::archives="$dir/cache/archives" \
		-o APT::Sandbox::User=root \
		-o Acquire::Languages=none \
		-o APT::Get::List-Cleanup=true \
		"$@"
}

# private_apt_update DIR, sources on stdin as "TYPE URI SUITE"; a source that
# fails is noticed by whoever misses its package.
private_apt_update()
{
	local dir=$1 key=/usr/share/keyrings/debian-archive-keyring.gpg
	local signed='' type uri suite
	[ ! -e "$key" ] || signed="[signed-by=$key] "
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	while read -r type uri suite; do
		echo "$type $signed$uri $suite main"
	done >"$dir/sources.list"
	[ -s "$dir/sources.list" ] || die "found no Debian archive for $(release_codename) in apt's configuration"
	private_apt "$dir" apt-get update >"$dir/update.log" 2>&1 ||
		say "apt-get update had errors, going on ($dir/update.log)"
}
