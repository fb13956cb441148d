/* SPDX-License-Identifier: MIT */
/*
 * A machine made of files: a directory that stands for "/", for code that
 * reads sysfs and procfs below sysfs_root.
 */
#ifndef NVQ_TEST_FIXTURE_H
#define NVQ_TEST_FIXTURE_H

/* Makes the directory and points sysfs_root at it; and removes it. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* All make the directories on the way. */
void fixture_dir(const char *path);
void fixture_file(const char *path, const char *content);
/* The link's target is taken to be below the fixture if it starts with '/'. */
void fixture_link(const char *path, const char *target);
/* A link as it is, leading nowhere. */
void fixture_dangling(const char *path, const char *target);

/* A PCI function of this class, bound to this driver unless that is NULL. */
void fixture_pci(const char *bdf, const char *class, const char *driver);
/* A controller under nvme.ko. */
void fixture_nvme(const char *bdf, const char *ctrl);
/* A block device of a controller, or (with a disk) one of its partitions. */
void fixture_block(const char *bdf, const char *ctrl, const char *disk,
		   const char *part, const char *dev);

#endif /* NVQ_TEST_FIXTURE_H */
