// SPDX-License-Identifier: MIT
/*
 * nvq: a drive as nvme.ko shows it, that is, its device nodes.
 *
 * Below the controller in sysfs are its namespaces: nvme0n1, or, of a drive
 * that several controllers may reach, a hidden nvme0c1n1 (subsystem 0,
 * controller 1) whose node is that of the subsystem, nvme0n1.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "inuse.h"

static void add_node(struct drive *drive, enum node_kind kind,
		     const char *class, const char *name)
{
	struct node *node;
	char dev[NAME_LEN];

	for (size_t i = 0; i < drive->nr; i++)
		if (!strcmp(drive->node[i].name, name))
			return;
	drive->node = xrealloc(drive->node, drive->nr + 1,
			       sizeof(*drive->node));
	node = &drive->node[drive->nr];
	*node = (struct node){ .kind = kind };
	snprintf(node->name, sizeof(node->name), "%s", name);
	sys_read(dev, sizeof(dev), "/sys/class/%s/%s/dev", class, name);
	if (sscanf(dev, "%u:%u", &node->maj, &node->min) == 2)
		drive->nr++;
}

static void add_disk(struct drive *drive, const char *disk)
{
	struct strlist names = { 0 };

	add_node(drive, NODE_DISK, "block", disk);
	sys_list(&names, "/sys/class/block/%s", disk);
	for (size_t i = 0; i < names.nr; i++)
		if (sys_exists("/sys/class/block/%s/%s/partition", disk,
			       names.str[i]))
			add_node(drive, NODE_PART, "block", names.str[i]);
	strlist_free(&names);
}

static void add_namespace(struct drive *drive, unsigned int instance,
			  unsigned int nsid)
{
	char name[32];

	snprintf(name, sizeof(name), "nvme%un%u", instance, nsid);
	add_disk(drive, name);
	snprintf(name, sizeof(name), "ng%un%u", instance, nsid);
	add_node(drive, NODE_GENERIC, "nvme-generic", name);
}

/* The other controllers of a subsystem. */
static void add_others(struct drive *drive, unsigned int subsys)
{
	struct strlist names = { 0 };

	sys_list(&names, "/sys/class/nvme-subsystem/nvme-subsys%u", subsys);
	for (size_t i = 0; i < names.nr; i++) {
		const char *name = names.str[i];

		if (strcmp(name, drive->ctrl) &&
		    sys_exists("/sys/class/nvme/%s", name) &&
		    !strlist_has(&drive->others, name))
			strlist_add(&drive->others, "%s", name);
	}
	strlist_free(&names);
}

static void scan_child(struct drive *drive, const char *name)
{
	unsigned int instance, ctrl, nsid;

	if (sscanf(name, "nvme%uc%un%u", &instance, &ctrl, &nsid) == 3) {
		add_namespace(drive, instance, nsid);
		add_others(drive, instance);
	} else if (sscanf(name, "nvme%un%u", &instance, &nsid) == 2 ||
		   sscanf(name, "ng%un%u", &instance, &nsid) == 2) {
		add_namespace(drive, instance, nsid);
	}
}

void drive_scan(struct drive *drive, const char *bdf)
{
	struct strlist names = { 0 };

	*drive = (struct drive){ 0 };
	snprintf(drive->bdf, sizeof(drive->bdf), "%s", bdf);
	sys_list(&names, "/sys/bus/pci/devices/%s/nvme", bdf);
	if (names.nr)
		snprintf(drive->ctrl, sizeof(drive->ctrl), "%s", names.str[0]);
	strlist_free(&names);
	if (!drive->ctrl[0])
		return;
	add_node(drive, NODE_CTRL, "nvme", drive->ctrl);
	sys_list(&names, "/sys/bus/pci/devices/%s/nvme/%s", bdf, drive->ctrl);
	for (size_t i = 0; i < names.nr; i++)
		scan_child(drive, names.str[i]);
	strlist_free(&names);
}

void drive_free(struct drive *drive)
{
	free(drive->node);
	strlist_free(&drive->others);
	*drive = (struct drive){ 0 };
}

static bool is_block(const struct node *node)
{
	return node->kind == NODE_DISK || node->kind == NODE_PART;
}

const struct node *drive_find(const struct drive *drive, bool block,
			      unsigned int maj, unsigned int min)
{
	for (size_t i = 0; i < drive->nr; i++) {
		const struct node *node = &drive->node[i];

		if (is_block(node) == block && node->maj == maj &&
		    node->min == min)
			return node;
	}
	return NULL;
}

/* "/dev/nvme0n1" names itself, whether or not the node is (still) there. */
static const struct node *find_name(const struct drive *drive, const char *path)
{
	if (strncmp(path, "/dev/", 5))
		return NULL;
	for (size_t i = 0; i < drive->nr; i++)
		if (!strcmp(drive->node[i].name, path + 5))
			return &drive->node[i];
	return NULL;
}

const struct node *drive_find_path(const struct drive *drive, const char *path)
{
	char below[PATH_MAX];
	struct stat st;

	if (path[0] != '/')
		return NULL;
	sys_path(below, "%s", path);
	if (!stat(below, &st) && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode)))
		return drive_find(drive, S_ISBLK(st.st_mode),
				  major(st.st_rdev), minor(st.st_rdev));
	return find_name(drive, path);
}
