/* SPDX-License-Identifier: MIT */
/*
 * Fault points for the guest test programs (driver/fault.h): arming them, what
 * the kernel's log said since, a batch of commands whose ends are accounted for
 * on whichever way in, and a neighbour with verified I/O on another queue.
 *
 * All is about drive 0, /dev/nvq0.
 */
#ifndef NVQ_TESTS_FAULTY_H
#define NVQ_TESTS_FAULTY_H

#include <pthread.h>

#include "native.h"

#define HOST_ABORTED	0x371
#define STRAY_CID	0xffff

/* "NAME [WHICH [SKIP [COUNT]]]", "off"; dies if there are no fault points. */
void fault_arm(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Occasions that were hit since it was armed. */
unsigned int fault_hits(const char *name);

/* The log from here on, the driver's lines only. */
void log_begin(void);
/* All of it so far. */
const char *log_text(void);
/* These parts occur in this order; NULL ends the list. */
bool log_order(const char *first, ...) __attribute__((sentinel));
bool log_lacks(const char *part);

/* Commands 0..NR-1: even ones read, odd ones write. */
#define BATCH_NR	16

enum way { WAY_STANDARD, WAY_NATIVE };

struct batch {
	const char *node;
	enum way way;
	struct native n;	/* .q alone if standard */
	struct io_uring r;
	volatile struct nvq_kpage *k;
	char *buf;
	int buf_index;
	uint64_t base;		/* first LBA; BATCH_NR * 8 of them are used */
	uint64_t seed;		/* rises with each batch */
	unsigned int ends[BATCH_NR];
	int res[BATCH_NR];
	unsigned int strays;	/* native: entries that name nobody */
};

/* Opens, writes known data. */
void batch_open(struct batch *b, const char *node, enum way way, uint64_t base);
void batch_close(struct batch *b);
void batch_submit(struct batch *b);
/* Collects ends until all have one, at most @ms; true if each has one. */
bool batch_collect(struct batch *b, unsigned int ms);
/* Nothing more comes within @ms. */
bool batch_quiet(struct batch *b, unsigned int ms);
/* How many ended with @status; -1: otherwise than with 0 or HOST_ABORTED. */
unsigned int batch_count(const struct batch *b, int status);
/* What was read with success is right, and what was written with success. */
bool batch_data(struct batch *b);
/* Native: agrees on where the rings begin; standard: waits for LIVE. */
bool batch_resync(struct batch *b);
/* A whole batch, all of it with success and the right data. */
bool batch_works(struct batch *b);
unsigned int batch_generation(const struct batch *b);

struct busy_neighbour {
	const char *node;
	uint64_t base;
	struct queue q;
	pthread_t thread;
	volatile bool stop;
	volatile unsigned long done, aborted;
	const char *volatile wrong;
};

void neighbour_start(struct busy_neighbour *n, const char *node, uint64_t base);
/* Joins; it has got something done since @before, and nothing was wrong. */
bool neighbour_end(struct busy_neighbour *n);
/* It gets more done from here. */
bool neighbour_goes_on(struct busy_neighbour *n);

unsigned int ctrl_generation(void);
/* Until the controller is live or dead, at most @ms; whether it is @state. */
bool ctrl_becomes(const char *state, unsigned int ms);

#endif
