/* SPDX-License-Identifier: MIT */
/*
 * The hostile process: what its parts share.
 *
 *	hostile.c		epochs, the report, resets, removal
 *	hostile_count.c		what was done and refused; the rejections of uapi.h
 *	hostile_file.c		open, mmap, memory, ioctls but those that send
 *	hostile_native.c	staging, SUBMIT, RESYNC, DROP
 *	hostile_command.c	a staged command, and what is wrong with it
 *	hostile_standard.c	NVMe passthrough by ioctl and by rings
 *	hostile_neighbour.c	the honest process on another queue
 *
 * An epoch is a process without rights that opens the one queue file it was
 * given, in one of several modes, and does as many operations with several
 * threads as it is told, or until it is killed.  What operation n of thread t
 * of epoch e does follows from the seed, e, t and n alone, so that a seed
 * replays; what comes of it depends on the other threads.
 */
#ifndef NVQ_TESTS_HOSTILE_H
#define NVQ_TESTS_HOSTILE_H

#include <pthread.h>
#include <stdatomic.h>

#include "native.h"

#define HOST_ABORTED	0x371
#define MAX_ERRNO	160
#define MAX_THREADS	8
#define MAX_OPS		64

/* Namespaces of the drive: ours, the neighbour's, one with metadata. */
enum { NS_OURS = 1, NS_NEIGHBOUR = 2, NS_METADATA = 3 };

/* Calls whose outcomes are counted apart. */
enum call {
	C_OPEN, C_MMAP, C_GEOMETRY, C_SELECT_NS, C_ADMIN, C_IOCTL, C_RING,
	C_REGISTER, C_UNREGISTER, C_SUBMIT, C_SUBMIT_FROM, C_SUBMIT_RING,
	C_WAIT, C_RESYNC, C_DROP, C_POLL, C_OTHER, NR_CALLS
};

/* What is wrong with a staged command, one field at a time. */
enum flaw {
	F_NONE, F_FLAGS, F_MPTR, F_PASSED, F_LENGTH, F_DATALESS,
	F_OPCODE, F_NSID, F_OTHER_NS, F_CID, F_CID_BUSY, F_BUF, F_NO_BUF,
	F_OFFSET_ODD, F_OFFSET_END, F_OFFSET_WRAP, F_BEYOND, F_MDTS, F_LBA,
	F_LBA_WRAP, F_RO_BUF, F_READONLY, F_NOISE, F_SCRIBBLED, NR_FLAWS
};

struct neighbour_counts {
	atomic_ulong verified;	/* bytes */
	atomic_ulong written;	/* bytes */
	atomic_ulong aborted;	/* commands */
	atomic_bool stop;
};

/* Shared by all processes. */
struct shared {
	atomic_ulong total;
	atomic_ulong ops[MAX_OPS], ms[MAX_OPS];
	atomic_ulong good[NR_CALLS];
	atomic_ulong errors[NR_CALLS][MAX_ERRNO];
	atomic_ulong statuses;		/* commands that the drive refused */
	atomic_ulong aborted;		/* that the host did */
	atomic_ulong staged, taken;
	atomic_ulong flaw_taken[NR_FLAWS], flaw_refused[NR_FLAWS];
	atomic_bool ready;		/* the epoch's file is open */
	atomic_bool want_reset;		/* it asks for one */
	atomic_bool dead;		/* the drive was taken away */
	atomic_uint wrong;
	struct neighbour_counts nb;
};

extern struct shared *shared;

enum mode { NATIVE, NATIVE_RO, STANDARD, STANDARD_RO, UNDECIDED, NR_MODES };

/* How an epoch ends. */
enum ending { END_CLOSE, END_EXIT, END_KILL, END_UNMAP, NR_ENDINGS };

#define RW_LEN		((1ul << 20) + 16 * PAGE)	/* beyond mdts */
/* Bytes beside the registered part of it, which nothing may reach. */
#define MARGIN		256ul
#define REGISTERED	(RW_LEN - 2 * MARGIN)
#define RO_LEN		(8 * PAGE)
#define RO_SEED		4711
#define CANARY		0xc5

/* The state of this process. */
struct epoch {
	const char *node;
	uint64_t seed;
	unsigned int number, nr_threads, nr_ops;
	enum mode mode;
	enum ending ending;
	bool racy;		/* entries are rewritten without the lock */
	bool formats;		/* the LBA size changes */
	struct native n;	/* what is not mapped is NULL */
	pthread_mutex_t lock;	/* n and flaws */
	uint8_t flaws[4096];	/* by staging entry */
	uint16_t next_cid;
	char *rw, *ro;		/* buffers, and at which index */
	int rw_index, ro_index;
	char *scratch;		/* anything may happen to it: SCRATCH_LEN */
};

#define SCRATCH_LEN	(64 * PAGE)

extern struct epoch epoch;

struct thread {
	unsigned int id, index;
	uint64_t rnd;		/* of the operation under way */
	pthread_t pthread;
	pthread_t *all;
};

typedef void (*op_fn)(struct thread *t);

struct op {
	const char *name;
	op_fn fn;
	uint8_t weight[NR_MODES];
};

extern const struct op file_ops[], native_ops[], standard_ops[];

/* hostile_count.c */
/* @ret: >= 0, or a negative errno.  Returns it. */
long note(enum call call, long ret);
/* A test is lost; the first few are told. */
void wrong(const struct thread *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void report(void);
/* Rejections that uapi.h names and nobody met, each printed. */
unsigned int never_met(bool poll);

/* hostile.c */
static inline unsigned int below(struct thread *t, unsigned int n)
{
	return random_below(&t->rnd, n);
}

static inline bool one_in(struct thread *t, unsigned int n)
{
	return !below(t, n);
}

/* Native or about to be, so that ioctls of that path make sense. */
static inline bool is_native(void)
{
	return epoch.mode == NATIVE || epoch.mode == NATIVE_RO;
}

/* hostile_command.c */
#define ANY_ERRNO	1	/* or none */
/* What a command is refused with; 0: it is taken. */
int flaw_errno(enum flaw flaw);
enum flaw flaw_pick(struct thread *t);
struct nvq_sqe command_good(struct thread *t);
void command_spoil(struct thread *t, struct nvq_sqe *s, enum flaw flaw);

/* hostile_native.c */
void native_begin(void);
void native_burst(struct thread *t);
void native_for_certain(struct thread *t);
/* Under the lock: of what is staged. */
void native_nothing_known(void);
/* Everything accepted has ended. */
void native_settled(struct thread *t);
/* hostile_standard.c */
/* Leaves a ring with commands in flight behind. */
void standard_burst(struct thread *t);

/* hostile_neighbour.c: until shared->nb.stop; the exit status of a process. */
int neighbour_run(const char *node);

#endif
