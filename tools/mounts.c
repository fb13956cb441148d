// SPDX-License-Identifier: MIT
/*
 * nvq: whether a drive carries a mounted file system or swap.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inuse.h"

/* The kernel writes blanks and backslashes in names as \ooo. */
static void unescape(char *str)
{
	char *out = str;

	while (*str) {
		unsigned int c;

		if (*str == '\\' && sscanf(str + 1, "%3o", &c) == 1) {
			*out++ = c;
			str += 4;
		} else {
			*out++ = *str++;
		}
	}
	*out = '\0';
}

struct mount {
	unsigned int maj, min;
	const char *point;
	const char *source;
};

/*
 * 36 35 98:0 /root /mnt rw,noatime shared:1 - ext3 /dev/sda1 rw,errors=continue
 *
 * with any number of optional fields before the dash.
 */
static bool parse_mount(char *line, struct mount *mount)
{
	char *save, *word;

	mount->source = "";
	for (int field = 0; field < 5; field++) {
		word = strtok_r(field ? NULL : line, " \n", &save);
		if (!word)
			return false;
		if (field == 2 && sscanf(word, "%u:%u", &mount->maj,
					 &mount->min) != 2)
			return false;
	}
	unescape(word);
	mount->point = word;
	while ((word = strtok_r(NULL, " \n", &save)))
		if (!strcmp(word, "-"))
			break;
	if (!word || !strtok_r(NULL, " \n", &save))
		return true;
	word = strtok_r(NULL, " \n", &save);
	if (word) {
		unescape(word);
		mount->source = word;
	}
	return true;
}

/*
 * By number; by name as well, for file systems with a number of their own
 * (btrfs, or an overlay that calls itself after its lower layer).
 */
static const struct node *mounted_node(const struct drive *drive,
				       const struct mount *mount)
{
	const struct node *node;

	node = drive_find(drive, true, mount->maj, mount->min);
	return node ? node : drive_find_path(drive, mount->source);
}

/* pid: whose mount namespace, NULL for our own */
static void scan_mounts(const struct drive *drive, const char *pid,
			struct strlist *reasons)
{
	char path[PATH_MAX], name[NAME_LEN], *line = NULL;
	const struct node *node;
	struct mount mount;
	size_t size = 0;
	FILE *file;

	sys_path(path, "/proc/%s/mountinfo", pid ? pid : "self");
	file = fopen(path, "re");
	if (!file)
		return;
	while (getline(&line, &size, file) > 0) {
		if (!parse_mount(line, &mount))
			continue;
		node = mounted_node(drive, &mount);
		if (!node)
			continue;
		if (!pid) {
			strlist_add(reasons, "/dev/%s is mounted on %s; umount it first",
				    node->name, mount.point);
			continue;
		}
		process_name(atol(pid), name);
		strlist_add(reasons, "/dev/%s is mounted on %s in the mount namespace of process %s (%s); umount it there first",
			    node->name, mount.point, pid, name);
	}
	free(line);
	fclose(file);
}

/*
 * Only one member of a btrfs of several devices is named by the mount; its
 * directory in sysfs, there while it is mounted, names them all.
 */
static void scan_btrfs(const struct drive *drive, struct strlist *reasons)
{
	struct strlist ids = { 0 };

	sys_list(&ids, "/sys/fs/btrfs");
	for (size_t i = 0; i < ids.nr; i++) {
		for (size_t n = 0; n < drive->nr; n++) {
			const char *name = drive->node[n].name;

			if (sys_exists("/sys/fs/btrfs/%s/devices/%s",
				       ids.str[i], name))
				strlist_add(reasons, "/dev/%s is part of the mounted btrfs %s; umount it first",
					    name, ids.str[i]);
		}
	}
	strlist_free(&ids);
}

void mounts_find(const struct drive *drive, struct strlist *reasons)
{
	scan_mounts(drive, NULL, reasons);
	scan_btrfs(drive, reasons);
}

void mounts_find_elsewhere(const struct drive *drive, struct strlist *reasons)
{
	struct strlist pids = { 0 }, seen = { 0 };
	char ns[NAME_LEN];

	sys_link(ns, sizeof(ns), "/proc/self/ns/mnt");
	strlist_add(&seen, "%s", ns);
	sys_list(&pids, "/proc");
	for (size_t i = 0; i < pids.nr; i++) {
		if (!isdigit((unsigned char)pids.str[i][0]) ||
		    sys_link(ns, sizeof(ns), "/proc/%s/ns/mnt", pids.str[i]) ||
		    strlist_has(&seen, ns))
			continue;
		strlist_add(&seen, "%s", ns);
		scan_mounts(drive, pids.str[i], reasons);
	}
	strlist_free(&seen);
	strlist_free(&pids);
}

/* Filename  Type  Size  Used  Priority, under a heading */
void swaps_find(const struct drive *drive, struct strlist *reasons)
{
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	FILE *file;

	sys_path(path, "/proc/swaps");
	file = fopen(path, "re");
	if (!file)
		return;
	while (getline(&line, &size, file) > 0) {
		const struct node *node;

		line[strcspn(line, " \t\n")] = '\0';
		unescape(line);
		node = drive_find_path(drive, line);
		if (node)
			strlist_add(reasons, "/dev/%s is swap; swapoff /dev/%s first",
				    node->name, node->name);
	}
	free(line);
	fclose(file);
}
