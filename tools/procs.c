// SPDX-License-Identifier: MIT
/*
 * nvq: which processes have a node of a drive open.
 *
 * An exclusive open does not show who opened a node without claiming it, and
 * character devices know no exclusive open at all.
 */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inuse.h"

void process_name(long pid, char name[NAME_LEN])
{
	sys_read(name, NAME_LEN, "/proc/%ld/comm", pid);
	if (!name[0])
		strcpy(name, "?");
}

/*
 * The device that a descriptor refers to, whatever it is called where its owner
 * lives.  The flag keeps a dead file server from stopping us.
 */
static const struct node *open_node(const struct drive *drive, const char *path)
{
	char target[PATH_MAX];
	struct statx st;
	ssize_t len;

	if (!statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) &&
	    (S_ISBLK(st.stx_mode) || S_ISCHR(st.stx_mode)))
		return drive_find(drive, S_ISBLK(st.stx_mode),
				  st.stx_rdev_major, st.stx_rdev_minor);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return NULL;
	target[len] = '\0';
	return drive_find_path(drive, target);
}

static void scan_process(const struct drive *drive, const char *pid,
			 struct strlist *reasons)
{
	struct strlist fds = { 0 }, seen = { 0 };
	char path[PATH_MAX], name[NAME_LEN];
	const struct node *node;

	sys_list(&fds, "/proc/%s/fd", pid);
	for (size_t i = 0; i < fds.nr; i++) {
		sys_path(path, "/proc/%s/fd/%s", pid, fds.str[i]);
		node = open_node(drive, path);
		if (!node || strlist_has(&seen, node->name))
			continue;
		strlist_add(&seen, "%s", node->name);
		process_name(atol(pid), name);
		strlist_add(reasons, "/dev/%s is open in process %s (%s); end it first",
			    node->name, pid, name);
	}
	strlist_free(&seen);
	strlist_free(&fds);
}

void procs_find(const struct drive *drive, struct strlist *reasons)
{
	struct strlist pids = { 0 };

	sys_list(&pids, "/proc");
	for (size_t i = 0; i < pids.nr; i++)
		if (isdigit((unsigned char)pids.str[i][0]) &&
		    atol(pids.str[i]) != getpid())
			scan_process(drive, pids.str[i], reasons);
	strlist_free(&pids);
}
