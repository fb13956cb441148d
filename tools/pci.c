// SPDX-License-Identifier: MIT
/*
 * nvq: which drive a user means.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define PCI_DEVICES	"/sys/bus/pci/devices"
#define PCI_CLASS_NVME	0x010802

void pci_driver(const char *bdf, char driver[NAME_LEN])
{
	sys_link(driver, NAME_LEN, PCI_DEVICES "/%s/driver", bdf);
}

static bool is_nvme(const char *bdf)
{
	return sys_number(0, PCI_DEVICES "/%s/class", bdf) == PCI_CLASS_NVME;
}

void pci_list(struct strlist *list)
{
	struct strlist all = { 0 };

	sys_list(&all, PCI_DEVICES);
	for (size_t i = 0; i < all.nr; i++)
		if (is_nvme(all.str[i]))
			strlist_add(list, "%s", all.str[i]);
	strlist_free(&all);
}

/* domain:bus:slot.function, the domain may be left out */
static bool parse_bdf(const char *name, char bdf[BDF_LEN])
{
	unsigned int dom = 0, bus, slot, fn;
	int end = 0;

	if (sscanf(name, "%x:%2x:%2x.%1x%n", &dom, &bus, &slot, &fn, &end) < 4) {
		dom = 0;
		end = 0;
		if (sscanf(name, "%2x:%2x.%1x%n", &bus, &slot, &fn, &end) < 3)
			return false;
	}
	if (!end || name[end] || fn > 7)
		return false;
	snprintf(bdf, BDF_LEN, "%04x:%02x:%02x.%x", dom, bus, slot, fn);
	return true;
}

/* The last component of a device's path in sysfs that is an address. */
static bool bdf_of_path(char *path, char bdf[BDF_LEN])
{
	bool found = false;

	for (char *part = strtok(path, "/"); part; part = strtok(NULL, "/"))
		if (parse_bdf(part, bdf))
			found = true;
	return found;
}

static bool bdf_of_device(const char *class, const char *name,
			  char bdf[BDF_LEN])
{
	char path[PATH_MAX], real[PATH_MAX];

	sys_path(path, "/sys/class/%s/%s", class, name);
	return realpath(path, real) && bdf_of_path(real, bdf);
}

/*
 * A multipath namespace belongs to a subsystem, not to one controller: it
 * names a drive only if the subsystem has a single one.  -1: not found; -2:
 * complained about.
 */
static int bdf_of_head(const char *name, char bdf[BDF_LEN])
{
	struct strlist all = { 0 }, ctrls = { 0 };
	unsigned int subsys, nsid;
	int ret = -1;

	if (sscanf(name, "nvme%un%u", &subsys, &nsid) != 2 &&
	    sscanf(name, "ng%un%u", &subsys, &nsid) != 2)
		return -1;
	sys_list(&all, "/sys/class/nvme-subsystem/nvme-subsys%u", subsys);
	for (size_t i = 0; i < all.nr; i++)
		if (sys_exists("/sys/class/nvme/%s", all.str[i]))
			strlist_add(&ctrls, "%s", all.str[i]);
	if (ctrls.nr == 1 && bdf_of_device("nvme", ctrls.str[0], bdf))
		ret = 0;
	if (ctrls.nr > 1) {
		complain("%s is reached through %zu controllers (%s, %s, ...): name one of them",
			 name, ctrls.nr, ctrls.str[0], ctrls.str[1]);
		ret = -2;
	}
	strlist_free(&ctrls);
	strlist_free(&all);
	return ret;
}

static int bdf_of_node(const char *name, char bdf[BDF_LEN])
{
	static const char *const class[] = {
		"nvme", "block", "nvme-generic", "nvqueue",
	};

	for (size_t i = 0; i < sizeof(class) / sizeof(class[0]); i++)
		if (bdf_of_device(class[i], name, bdf))
			return 0;
	return bdf_of_head(name, bdf);
}

int pci_resolve(const char *name, char bdf[BDF_LEN])
{
	char real[PATH_MAX];
	const char *base;
	int ret;

	if (!parse_bdf(name, bdf)) {
		/* A node that is not there is complained about below. */
		if (!strchr(name, '/') || !realpath(name, real))
			snprintf(real, sizeof(real), "%s", name);
		base = strrchr(real, '/');
		ret = bdf_of_node(base ? base + 1 : real, bdf);
		if (ret == -1)
			complain("%s is neither a PCI address nor an NVMe device; see nvq list",
				 name);
		if (ret)
			return -1;
	}
	if (!sys_exists(PCI_DEVICES "/%s", bdf)) {
		complain("%s: there is no such PCI device; see nvq list", bdf);
		return -1;
	}
	if (!is_nvme(bdf)) {
		complain("%s is not an NVMe controller (class 0x%06x, not 0x%06x); see nvq list",
			 bdf, (unsigned int)sys_number(0, PCI_DEVICES "/%s/class",
						       bdf), PCI_CLASS_NVME);
		return -1;
	}
	return 0;
}
