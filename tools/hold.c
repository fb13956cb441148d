// SPDX-License-Identifier: MIT
/*
 * nvq: holding a drive, so that nobody starts to use it between the check and
 * the unbind.
 *
 * A whole disk opened exclusively can be neither mounted, nor swapped to, nor
 * taken by a volume or an array, and neither can its partitions.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "inuse.h"

/* udev looks at a new or changed drive for a moment: not a reason. */
#define GLANCE_TRIES	20
#define GLANCE_MS	100

void hold_release(struct hold *hold)
{
	for (size_t i = 0; i < hold->nr; i++)
		close(hold->fd[i]);
	free(hold->fd);
	*hold = (struct hold){ 0 };
}

/* Opens one; 0 or -errno.  The node must be the device that sysfs speaks of. */
static int hold_node(struct hold *hold, const struct node *node)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	sys_path(path, "/dev/%s", node->name);
	fd = open(path, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISBLK(st.st_mode) ||
	    st.st_rdev != makedev(node->maj, node->min)) {
		close(fd);
		return -ENODEV;
	}
	hold->fd = xrealloc(hold->fd, hold->nr + 1, sizeof(*hold->fd));
	hold->fd[hold->nr++] = fd;
	return 0;
}

/* Nodes that cannot be held, one word each in busy or a reason. */
static void hold_disks(struct hold *hold, const struct drive *drive,
		       struct strlist *busy, struct strlist *reasons)
{
	for (size_t i = 0; i < drive->nr; i++) {
		const struct node *node = &drive->node[i];
		int ret;

		if (node->kind != NODE_DISK)
			continue;
		ret = hold_node(hold, node);
		if (ret == -EBUSY)
			strlist_add(busy, "%s", node->name);
		else if (ret == -ENODEV)
			strlist_add(reasons, "/dev/%s is not the block device %u:%u, so that it cannot be held; udevadm trigger, then try again",
				    node->name, node->maj, node->min);
		else if (ret)
			strlist_add(reasons, "/dev/%s cannot be held: %s",
				    node->name, strerror(-ret));
	}
}

/* Somebody has claimed a disk: the reasons known, or at least the names. */
static void explain_busy(const struct drive *drive, const struct strlist *busy,
			 struct strlist *reasons)
{
	if (!busy->nr || reasons->nr)
		return;
	mounts_find_elsewhere(drive, reasons);
	procs_find(drive, reasons);
	if (reasons->nr)
		return;
	for (size_t i = 0; i < busy->nr; i++)
		strlist_add(reasons, "/dev/%s is in use by an unknown holder (EBUSY); see lsblk /dev/%s and lsof /dev/%s",
			    busy->str[i], busy->str[i], busy->str[i]);
}

enum found {
	FOUND_NOBODY,
	FOUND_GLANCE,	/* may be over in a moment */
	FOUND_USER,
};

static enum found find_users(struct hold *hold, const struct drive *drive,
			     struct strlist *reasons)
{
	struct strlist busy = { 0 };
	bool firm;

	hold_disks(hold, drive, &busy, reasons);
	mounts_find(drive, reasons);
	swaps_find(drive, reasons);
	holders_find(drive, reasons);
	firm = reasons->nr;
	explain_busy(drive, &busy, reasons);
	strlist_free(&busy);
	if (firm)
		return FOUND_USER;
	if (!reasons->nr)
		procs_find(drive, reasons);
	return reasons->nr ? FOUND_GLANCE : FOUND_NOBODY;
}

/* A namespace that came since the drive was looked at is not held. */
static bool has_changed(const struct drive *drive)
{
	struct drive now;
	bool changed;

	drive_scan(&now, drive->bdf);
	changed = now.nr != drive->nr;
	for (size_t i = 0; !changed && i < now.nr; i++)
		changed = strcmp(now.node[i].name, drive->node[i].name);
	drive_free(&now);
	return changed;
}

static enum found try_hold(struct hold *hold, struct drive *drive,
			   struct strlist *reasons)
{
	enum found found;
	char bdf[BDF_LEN];

	memcpy(bdf, drive->bdf, sizeof(bdf));
	drive_free(drive);
	drive_scan(drive, bdf);
	found = find_users(hold, drive, reasons);
	if (found != FOUND_NOBODY || !has_changed(drive))
		return found;
	strlist_add(reasons, "its namespaces are changing; try again when it has settled");
	return FOUND_GLANCE;
}

int hold_unused(struct hold *hold, struct drive *drive)
{
	struct strlist reasons = { 0 };
	enum found found;

	*hold = (struct hold){ 0 };
	for (int i = 0; i < GLANCE_TRIES; i++) {
		strlist_free(&reasons);
		found = try_hold(hold, drive, &reasons);
		if (found == FOUND_NOBODY)
			return 0;
		hold_release(hold);
		if (found == FOUND_USER)
			break;
		sleep_ms(GLANCE_MS);
	}
	for (size_t i = 0; i < reasons.nr; i++)
		complain("%s: %s", drive->bdf, reasons.str[i]);
	strlist_free(&reasons);
	return -1;
}
