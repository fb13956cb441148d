/* SPDX-License-Identifier: MIT */
/*
 * nvq: who uses a drive.
 *
 * A drive is used as a whole: binding takes every namespace from everyone, so
 * that every node of the drive counts.  Each reason found is one line of text
 * that names the node, the user and the next step.
 */
#ifndef NVQ_INUSE_H
#define NVQ_INUSE_H

#include "tool.h"

enum node_kind {
	NODE_CTRL,	/* nvme0, char */
	NODE_GENERIC,	/* ng0n1, char */
	NODE_DISK,	/* nvme0n1; of a multipath drive, the head */
	NODE_PART,	/* nvme0n1p1 */
};

struct node {
	enum node_kind kind;
	char name[32];
	unsigned int maj, min;
};

/* A drive as nvme.ko shows it. */
struct drive {
	char bdf[BDF_LEN];
	char ctrl[32];		/* "" if nvme.ko does not have it */
	struct node *node;
	size_t nr;
	struct strlist others;	/* controllers that reach a namespace as well */
};

void drive_scan(struct drive *drive, const char *bdf);
void drive_free(struct drive *drive);
/* The node with this number, or NULL. */
const struct node *drive_find(const struct drive *drive, bool block,
			      unsigned int maj, unsigned int min);
/* The node a path names, be it a link; NULL if it is none of this drive's. */
const struct node *drive_find_path(const struct drive *drive, const char *path);

/* Each adds its reasons. */
void mounts_find(const struct drive *drive, struct strlist *reasons);
/* The same in other processes' mount namespaces. */
void mounts_find_elsewhere(const struct drive *drive, struct strlist *reasons);
void swaps_find(const struct drive *drive, struct strlist *reasons);
void holders_find(const struct drive *drive, struct strlist *reasons);
void procs_find(const struct drive *drive, struct strlist *reasons);

/* A drive whose block devices this process has opened exclusively. */
struct hold {
	int *fd;
	size_t nr;
};

/*
 * Holds the drive and looks for users.  Returns 0 if there are none; else
 * releases it, complains for each, and returns -1.
 */
int hold_unused(struct hold *hold, struct drive *drive);
void hold_release(struct hold *hold);

#endif /* NVQ_INUSE_H */
