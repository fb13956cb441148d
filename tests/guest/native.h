/* SPDX-License-Identifier: MIT */
/*
 * The native path for the guest test programs, straight to the kernel's
 * interface: a test must be able to stage what no library would.
 */
#ifndef NVQ_TESTS_NATIVE_H
#define NVQ_TESTS_NATIVE_H

#include "queue.h"

struct cqe {
	uint64_t result;
	uint16_t sqhd;
	uint16_t sqid;
	uint16_t cid;
	uint16_t status;
};

struct native {
	struct queue q;
	volatile struct cqe *cq;
	volatile struct nvq_kpage *k;
	volatile struct nvq_upage *u;
	struct nvq_sqe *sq;
	uint32_t mask;		/* of the staging SQ's index */
	uint32_t tail;
	uint32_t head;		/* completions read */
	uint16_t index;		/* CQ entry to read next, and its phase */
	uint16_t phase;
};

/* Opens, maps all four; dies if that fails. */
struct native native_open(const char *path);
/* The same with a queue that is open already. */
struct native native_attach(struct queue q);
void native_close(struct native *n);

/* The index, or a negative errno. */
int native_register(int fd, void *addr, size_t len, uint32_t flags);
int native_unregister(int fd, uint32_t index);

/* A command on a registered buffer; the caller may spoil it before staging. */
struct nvq_sqe native_rw(const struct native *n, uint8_t op, uint16_t cid,
			 uint64_t slba, unsigned int nlb, uint32_t buf,
			 uint64_t offset);
/* Writes it into the staging SQ and moves the tail. */
void native_stage(struct native *n, const struct nvq_sqe *s);
/* The ioctl: how many were taken, or a negative errno. */
int native_submit(struct native *n);
/* Forgets what was staged and refused. */
void native_drop(struct native *n);
/* As the kernel has it after NVQ_IOC_RESYNC. */
void native_restart(struct native *n);
/* Reads one completion: the status, or -ETIME after @ms; consumes it. */
int native_reap(struct native *n, uint16_t *cid, unsigned int ms);
/* All of it for one command: an errno from SUBMIT, or the status. */
int native_run(struct native *n, const struct nvq_sqe *s);

/* A native file, and a buffer of it between inaccessible pages, filled. */
#define BUF	(4 * PAGE)
#define LBA	512

struct world {
	struct native n;
	char *buf;
	int index;
};

struct world world_new(const char *path);
void world_end(struct world *w);
/* Reads of blocks 1000.. into the buffer; @nr, or 0 if not all were taken. */
unsigned int world_in_flight(struct world *w, unsigned int nr);
/* How many of them completed. */
unsigned int world_drain(struct world *w, unsigned int nr);

/*
 * Another queue of the same drive, with a standard owner, which wrote blocks
 * 1000..1007: whatever is done to ours, it must read them back.
 */
struct neighbour {
	struct queue q;
	void *buf;
};

#define NEIGHBOUR_SEED	77

struct neighbour neighbour_open(const char *path);
bool neighbour_is_well(struct neighbour *nb);

#endif
