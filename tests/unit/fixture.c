// SPDX-License-Identifier: MIT
/*
 * A machine made of files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "tool.h"

static char root[] = "/tmp/nvq-fixture-XXXXXX";

static void die(const char *what, const char *path)
{
	fprintf(stderr, "fixture: %s %s: %s\n", what, path, strerror(errno));
	abort();
}

int fixture_setup(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	if (!mkdtemp(root))
		die("mkdtemp", root);
	sysfs_root = root;
	fixture_file("/proc/self/mountinfo", "");
	fixture_file("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int fixture_teardown(void **state)
{
	(void)state;
	sysfs_root = "";
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes what is before the last slash of an absolute path. */
static void make_parents(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			die("mkdir", path);
		*p = '/';
	}
}

static void below_root(char path[PATH_MAX], const char *name)
{
	if (snprintf(path, PATH_MAX, "%s%s", root, name) >= PATH_MAX)
		abort();
	make_parents(path);
}

void fixture_dir(const char *name)
{
	char path[PATH_MAX];

	below_root(path, name);
	if (mkdir(path, 0755) && errno != EEXIST)
		die("mkdir", path);
}

void fixture_file(const char *name, const char *content)
{
	char path[PATH_MAX];
	FILE *file;

	below_root(path, name);
	file = fopen(path, "w");
	if (!file || fputs(content, file) < 0 || fclose(file))
		die("write", path);
}

void fixture_dangling(const char *name, const char *target)
{
	char path[PATH_MAX];

	below_root(path, name);
	if (symlink(target, path))
		die("symlink", path);
}

void fixture_link(const char *name, const char *target)
{
	char path[PATH_MAX];

	if (snprintf(path, PATH_MAX, "%s%s", target[0] == '/' ? root : "",
		     target) >= PATH_MAX)
		abort();
	fixture_dangling(name, path);
}

#define FORMAT(buf, ...)						\
	do {								\
		if (snprintf(buf, sizeof(buf), __VA_ARGS__) >=		\
		    (int)sizeof(buf))					\
			abort();					\
	} while (0)

void fixture_pci(const char *bdf, const char *class, const char *driver)
{
	char dir[256], path[512], target[256];

	FORMAT(dir, "/sys/devices/pci0000:00/%s", bdf);
	FORMAT(path, "%s/class", dir);
	fixture_file(path, class);
	FORMAT(path, "/sys/bus/pci/devices/%s", bdf);
	fixture_link(path, dir);
	if (!driver)
		return;
	FORMAT(target, "/sys/bus/pci/drivers/%s", driver);
	fixture_dir(target);
	FORMAT(path, "%s/driver", dir);
	fixture_link(path, target);
}

void fixture_nvme(const char *bdf, const char *ctrl)
{
	char dir[256], path[512];

	fixture_pci(bdf, "0x010802\n", "nvme");
	FORMAT(dir, "/sys/devices/pci0000:00/%s/nvme/%s", bdf, ctrl);
	FORMAT(path, "%s/dev", dir);
	fixture_file(path, "240:0\n");
	FORMAT(path, "/sys/class/nvme/%s", ctrl);
	fixture_link(path, dir);
}

void fixture_block(const char *bdf, const char *ctrl, const char *disk,
		   const char *part, const char *dev)
{
	char dir[256], path[512];

	if (part)
		FORMAT(dir, "/sys/devices/pci0000:00/%s/nvme/%s/%s/%s", bdf,
		       ctrl, disk, part);
	else
		FORMAT(dir, "/sys/devices/pci0000:00/%s/nvme/%s/%s", bdf, ctrl,
		       disk);
	FORMAT(path, "%s/dev", dir);
	fixture_file(path, dev);
	FORMAT(path, "/sys/class/block/%s", part ? part : disk);
	fixture_link(path, dir);
	if (!part)
		return;
	FORMAT(path, "%s/partition", dir);
	fixture_file(path, "1\n");
}
