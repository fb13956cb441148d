// SPDX-License-Identifier: MIT
/*
 * nvq: what the kernel itself has built on a drive: volumes, arrays, loop
 * devices, exports over a network, virtual functions.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "inuse.h"

static void add_dm(const char *node, const char *dm, struct strlist *reasons)
{
	char name[NAME_LEN], uuid[NAME_LEN];

	sys_read(name, sizeof(name), "/sys/class/block/%s/dm/name", dm);
	sys_read(uuid, sizeof(uuid), "/sys/class/block/%s/dm/uuid", dm);
	if (!strncmp(uuid, "LVM-", 4))
		strlist_add(reasons, "/dev/%s is a physical volume of the LVM volume %s (%s); deactivate its volume group first: vgchange -an",
			    node, name, dm);
	else if (!strncmp(uuid, "CRYPT-", 6))
		strlist_add(reasons, "/dev/%s carries the open encrypted volume %s (%s); cryptsetup close %s first",
			    node, name, dm, name);
	else if (!strncmp(uuid, "mpath-", 6))
		strlist_add(reasons, "/dev/%s is a path of the multipath map %s (%s); multipath -f %s first",
			    node, name, dm, name);
	else
		strlist_add(reasons, "/dev/%s is used by the device mapper's %s (%s); dmsetup remove %s first",
			    node, name, dm, name);
}

static void find_node_holders(const char *node, struct strlist *reasons)
{
	struct strlist holders = { 0 };

	sys_list(&holders, "/sys/class/block/%s/holders", node);
	for (size_t i = 0; i < holders.nr; i++) {
		const char *holder = holders.str[i];

		if (!strncmp(holder, "dm-", 3))
			add_dm(node, holder, reasons);
		else if (!strncmp(holder, "md", 2))
			strlist_add(reasons, "/dev/%s is a member of the RAID array %s; mdadm --stop /dev/%s first",
				    node, holder, holder);
		else
			strlist_add(reasons, "/dev/%s is held by %s; release it there first",
				    node, holder);
	}
	strlist_free(&holders);
}

static void find_loops(const struct drive *drive, struct strlist *reasons)
{
	struct strlist names = { 0 };
	const struct node *node;
	char file[PATH_MAX];

	sys_list(&names, "/sys/class/block");
	for (size_t i = 0; i < names.nr; i++) {
		if (sys_read(file, sizeof(file),
			     "/sys/class/block/%s/loop/backing_file",
			     names.str[i]))
			continue;
		node = drive_find_path(drive, file);
		if (node)
			strlist_add(reasons, "/dev/%s backs /dev/%s; losetup -d /dev/%s first",
				    node->name, names.str[i], names.str[i]);
	}
	strlist_free(&names);
}

#define NVMET	"/sys/kernel/config/nvmet/subsystems"

static void find_export(const struct drive *drive, const char *subsys,
			const char *what, struct strlist *reasons)
{
	const struct node *node;
	char file[PATH_MAX];

	if (sys_number(0, NVMET "/%s/%s/enable", subsys, what) != 1 ||
	    sys_read(file, sizeof(file), NVMET "/%s/%s/device_path", subsys,
		     what))
		return;
	node = drive_find_path(drive, file);
	if (node)
		strlist_add(reasons, "/dev/%s is exported by the NVMe target %s; disable %s/%s/%s first",
			    node->name, subsys, NVMET, subsys, what);
}

/* The NVMe target opens its namespaces without claiming them. */
static void find_exports(const struct drive *drive, struct strlist *reasons)
{
	struct strlist subsys = { 0 }, nsids = { 0 };
	char what[NAME_LEN];

	sys_list(&subsys, NVMET);
	for (size_t i = 0; i < subsys.nr; i++) {
		find_export(drive, subsys.str[i], "passthru", reasons);
		sys_list(&nsids, NVMET "/%s/namespaces", subsys.str[i]);
		for (size_t n = 0; n < nsids.nr; n++) {
			snprintf(what, sizeof(what), "namespaces/%s",
				 nsids.str[n]);
			find_export(drive, subsys.str[i], what, reasons);
		}
		strlist_free(&nsids);
	}
	strlist_free(&subsys);
}

void holders_find(const struct drive *drive, struct strlist *reasons)
{
	int64_t vfs = sys_number(0, "/sys/bus/pci/devices/%s/sriov_numvfs",
				 drive->bdf);

	for (size_t i = 0; i < drive->nr; i++)
		if (drive->node[i].kind == NODE_DISK ||
		    drive->node[i].kind == NODE_PART)
			find_node_holders(drive->node[i].name, reasons);
	find_loops(drive, reasons);
	find_exports(drive, reasons);
	if (vfs > 0)
		strlist_add(reasons, "it has %d virtual functions; write 0 to /sys/bus/pci/devices/%s/sriov_numvfs first",
			    (int)vfs, drive->bdf);
}
