/* SPDX-License-Identifier: MIT */
/*
 * libnvq's native path: many commands in one system call, none to reap.
 *
 * Buffers are registered once.  Commands are written straight into the queue's
 * staging ring, a batch of them is handed over in one system call, and
 * completions are read from the mapped hardware completion queue:
 *
 *	struct nvq q;
 *	struct nvq_native n;
 *	const struct nvq_cqe *c;
 *	int buf;
 *
 *	nvq_open(&q, "/dev/nvq0poll0", O_RDWR, &err);
 *	nvq_native_init(&n, &q, &err);
 *	buf = nvq_native_register(&n, mem, len, 0, &err);
 *	nvq_stage_rw(&n, 7, NVQ_READ, slba, 8, buf, 0);	(command id 7)
 *	nvq_native_submit(&n);
 *	nvq_native_wait(&n, 1, 1000);
 *	c = nvq_native_next(&n);
 *	res = nvq_native_res(c);			(0: done)
 *
 * A file is either native or takes standard commands (nvq.h's ring, nvq_sync()):
 * whichever comes first, and -EBUSY to the other until it is reopened.
 *
 * Command ids are the caller's, 0..depth - 1, each for one command at a time;
 * depth - 1 commands may be under way.  A completion names the id.  It counts as
 * read once nvq_native_next() has returned it, and its entry stays as it is
 * until the next submission.
 *
 * The conventions of nvq.h hold: one thread, negative errnos, one line of error.
 */
#ifndef NVQ_NATIVE_H
#define NVQ_NATIVE_H

#include "nvq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counted by the library, per queue. */
struct nvq_native_stats {
	uint64_t submit_calls;	/* system calls that handed a batch over */
	uint64_t wait_calls;	/* system calls that slept for completions */
};

struct nvq_native {
	/* in the order in which an I/O needs them */
	struct nvq_sqe *sq;		/* staging ring */
	const struct nvq_cqe *cq;
	uint64_t nsid_word;		/* nsid where a command has it */
	uint32_t sq_mask;
	uint32_t sq_tail;		/* staged up to here */
	uint32_t cq_index;		/* the next entry, and its phase */
	uint32_t depth;
	uint32_t cq_phase;
	uint32_t cq_base;		/* entries read before the ring's last wrap */
	uint32_t sq_sent;		/* accepted up to here */
	bool readonly;			/* sq is our own memory */
	int fd;
	struct nvq_upage *upage;	/* NULL: a read-only descriptor */
	const struct nvq_kpage *kpage;
	struct nvq_native_stats stats;
	struct nvq *q;
};

/*
 * nvq_native_init() - make an open queue a native one and map its staging ring.
 * A read-only descriptor cannot map it: commands are then staged in private
 * memory, and everything but rings (nvq_native_ring_init()) works the same.
 * Returns 0, -EBUSY (the file sent standard commands), -ENOMEM, -ENODEV.
 */
int nvq_native_init(struct nvq_native *n, struct nvq *q, struct nvq_error *err);

/*
 * nvq_native_exit() - unmap; before nvq_close(), which ends what is under way.
 * Harmless on zeroes.
 */
void nvq_native_exit(struct nvq_native *n);

/*
 * nvq_native_register() - pin memory and map it for the drive, until
 * nvq_native_unregister() or nvq_close().
 * @addr: a multiple of 4; anonymous, shared (shmem) or hugetlb memory.
 * @len: bytes, up to NVQ_MAX_BUF_LEN (4 GiB less a page).
 * @flags: 0, or NVQ_REG_READONLY for memory that commands only read.
 *
 * Returns the buffer's index (0..), or -ENOMEM (RLIMIT_MEMLOCK, which does not
 * bind CAP_IPC_LOCK: the text says need and limit), -EINVAL, -EFAULT, -EOPNOTSUPP (a file's or a device's memory),
 * -ENOSPC (NVQ_MAX_BUFS of them are in use), -ENODEV.
 */
int nvq_native_register(struct nvq_native *n, const void *addr, size_t len,
			unsigned int flags, struct nvq_error *err);

/*
 * nvq_native_unregister() - undo it; waits for commands under way that use the
 * buffer.  Returns 0, -ENOENT, -EINTR.
 */
int nvq_native_unregister(struct nvq_native *n, unsigned int buf,
			  struct nvq_error *err);

/* ---- Staging --------------------------------------------------------------- */

/* Commands staged and not accepted; at most depth - 1 make sense. */
static inline uint32_t nvq_native_staged(const struct nvq_native *n)
{
	return n->sq_tail - n->sq_sent;
}

/* What the 8 words of a staged command hold; see struct nvq_sqe. */
static inline void nvq_stage_words(struct nvq_native *n, uint64_t dw0,
				   uint64_t buf, uint64_t offset,
				   uint64_t dw10, uint64_t dw12)
{
	__le64 *w = (__le64 *)&n->sq[n->sq_tail & n->sq_mask];

	n->sq_tail++;
	w[0] = htole64(dw0 | n->nsid_word);
	w[1] = 0;
	w[3] = htole64(offset);
	w[4] = htole64(buf);
	w[5] = htole64(dw10);
	w[6] = htole64(dw12);
	w[7] = 0;
}

/*
 * nvq_stage_rw() - stage NVQ_READ or NVQ_WRITE of @nlb LBAs (1..65536, not
 * beyond geo.mdts) from @slba, to or from byte @offset of registered buffer
 * @buf.  @offset is a multiple of 4.
 */
static inline void nvq_stage_rw(struct nvq_native *n, uint16_t cid,
				enum nvq_opcode opcode, uint64_t slba,
				uint32_t nlb, uint32_t buf, uint64_t offset)
{
	nvq_stage_words(n, opcode | (uint32_t)cid << 16, buf, offset, slba,
			nlb - 1);
}

/* nvq_stage_flush() - stage NVQ_FLUSH: make what was written durable. */
static inline void nvq_stage_flush(struct nvq_native *n, uint16_t cid)
{
	nvq_stage_words(n, NVQ_FLUSH | (uint32_t)cid << 16, 0, 0, 0, 0);
}

/*
 * nvq_stage_deallocate() - stage NVQ_DSM: the @nr (1..256) ranges are unused.
 * They are struct nvq_dsm_range, at byte @offset of registered buffer @buf.
 */
static inline void nvq_stage_deallocate(struct nvq_native *n, uint16_t cid,
					unsigned int nr, uint32_t buf,
					uint64_t offset)
{
	/* CDW10: number of ranges, 0's based; CDW11: AD, deallocate */
	nvq_stage_words(n, NVQ_DSM | (uint32_t)cid << 16, buf, offset,
			(nr - 1) | (uint64_t)(1 << 2) << 32, 0);
}

/*
 * nvq_stage_any() - stage a command of any opcode the driver's table lists: the
 * entry, zeroed but for opcode, cid and nsid, for the caller to fill in.
 * Filled in before the next submission.
 */
static inline struct nvq_sqe *nvq_stage_any(struct nvq_native *n, uint16_t cid,
					    uint8_t opcode)
{
	struct nvq_sqe *sqe = &n->sq[n->sq_tail & n->sq_mask];

	nvq_stage_words(n, opcode | (uint32_t)cid << 16, 0, 0, 0, 0);
	return sqe;
}

/*
 * nvq_native_first() - the oldest command that is staged and not accepted, the
 * one that a submission was refused for; NULL: nothing is staged.
 */
struct nvq_sqe *nvq_native_first(const struct nvq_native *n);

/*
 * nvq_native_drop() - pass over that one; those staged after it stay as they are.
 * Returns 0; -EAGAIN: it has been accepted after all, by a submission that was
 * still under way (SQPOLL, a worker of io_uring), and nvq_native_accepted() will
 * say so; -EINVAL: nothing is staged.
 */
int nvq_native_drop(struct nvq_native *n);

/* ---- Submission by ioctl --------------------------------------------------- */

/* Completions read so far, modulo 2^32. */
static inline uint32_t nvq_native_read(const struct nvq_native *n)
{
	return n->cq_base + n->cq_index;
}

/* Tells the kernel how far commands are staged and completions read. */
static inline void nvq_native_publish(struct nvq_native *n)
{
	__atomic_store_n(&n->upage->cq_head, nvq_native_read(n),
			 __ATOMIC_RELAXED);
	/* release: after the commands below it */
	__atomic_store_n(&n->upage->sq_tail, n->sq_tail, __ATOMIC_RELEASE);
}

/*
 * nvq_native_submit() - hand over what is staged, and the entries read back to
 * the drive, in one system call.
 *
 * Returns how many were accepted, possibly fewer than staged; or, when none
 * was, why the first of them was refused: -EINVAL, -EACCES, -EOPNOTSUPP, -EBUSY
 * (its command id is under way), -ENOSPC (the queue is full: read completions),
 * or why nothing is: -ESTALE (nvq_native_stopped() says what to do), -ENODEV,
 * -EINTR.  What was not accepted stays staged.
 */
int nvq_native_submit(struct nvq_native *n);

/*
 * nvq_native_submit_wait() - the same, then sleep until @want completions that
 * have not been read are there (no more than are under way), at most
 * @timeout_ms (0: the driver's I/O time-out).  On an irq queue only.
 * Returns as nvq_native_submit(); -ETIME when all went well but the time, and
 * then nvq_native_staged() says what was accepted.
 */
int nvq_native_submit_wait(struct nvq_native *n, unsigned int want,
			   unsigned int timeout_ms);

/* ---- Completions ----------------------------------------------------------- */

/*
 * nvq_native_has() - are @want (1..depth - 1) unread completions there?  The
 * drive writes entries in order, so one look at the last of them tells.
 */
static inline bool nvq_native_has(const struct nvq_native *n, uint32_t want)
{
	uint32_t index = n->cq_index + want - 1, phase = n->cq_phase;

	if (index >= n->depth) {
		index -= n->depth;
		phase ^= 1;
	}
	/* acquire: the rest of the entry is read after its phase */
	return (le16toh(__atomic_load_n(&n->cq[index].status,
					__ATOMIC_ACQUIRE)) & 1) == phase;
}

/* nvq_native_next() - read the next completion; NULL: none is there. */
static inline const struct nvq_cqe *nvq_native_next(struct nvq_native *n)
{
	const struct nvq_cqe *c = &n->cq[n->cq_index];

	if ((le16toh(__atomic_load_n(&c->status, __ATOMIC_ACQUIRE)) & 1) !=
	    n->cq_phase)
		return NULL;
	if (__builtin_expect(++n->cq_index == n->depth, 0)) {
		n->cq_index = 0;
		n->cq_phase ^= 1;
		n->cq_base += n->depth;
	}
	return c;
}

/*
 * Where nvq_native_has() has said that @want are there, they can be read without
 * a look at each: nvq_native_entry() is the next, nvq_native_run() says how many
 * of them lie behind each other (the queue wraps), nvq_native_skip() reads so
 * many.
 */
static inline const struct nvq_cqe *nvq_native_entry(const struct nvq_native *n)
{
	return &n->cq[n->cq_index];
}

static inline uint32_t nvq_native_run(const struct nvq_native *n, uint32_t want)
{
	uint32_t left = n->depth - n->cq_index;

	return want < left ? want : left;
}

static inline void nvq_native_skip(struct nvq_native *n, uint32_t run)
{
	n->cq_index += run;
	if (n->cq_index == n->depth) {
		n->cq_index = 0;
		n->cq_phase ^= 1;
		n->cq_base += n->depth;
	}
}

/* Its command id, and its result: 0, or an NVMe status (nvq_status_text()). */
static inline unsigned int nvq_native_cid(const struct nvq_cqe *c)
{
	return le16toh(c->cid);
}

static inline int nvq_native_res(const struct nvq_cqe *c)
{
	return le16toh(c->status) >> 1;
}

/*
 * nvq_native_wait() - until @want completions can be read, at most @timeout_ms:
 * spins on a poll queue, sleeps on an irq queue.  @want must be no more than
 * are under way and unread.  Returns 0, -ETIME, or on an irq queue as
 * nvq_native_submit_wait() (staged commands are handed over first).
 */
int nvq_native_wait(struct nvq_native *n, unsigned int want,
		    unsigned int timeout_ms);

/* ---- Recovery -------------------------------------------------------------- */

/*
 * nvq_native_stopped() - why submissions fail with -ESTALE or -ENODEV:
 * NVQ_STATE_RESYNC: a reset or recovery ended everything under way; read all
 *	completions, then nvq_native_resync().
 * NVQ_STATE_STALE: the namespace changed; nvq_reload(), then go on.
 * NVQ_STATE_DEAD: the controller is gone.
 * NVQ_STATE_LIVE, _RECOVERING: nothing to do.
 */
static inline uint32_t nvq_native_stopped(const struct nvq_native *n)
{
	return __atomic_load_n(&n->kpage->state, __ATOMIC_ACQUIRE);
}

/*
 * nvq_native_resync() - go on after a reset: all completions have been read
 * (-EBUSY otherwise).  What is staged stays so, and buffers stay registered.
 * Returns 0, -EBUSY, -ENODEV, -ENOMEM.
 */
int nvq_native_resync(struct nvq_native *n, struct nvq_error *err);

/* ---- Submission by io_uring ------------------------------------------------ */

enum nvq_native_ring_flags {
	NVQ_NATIVE_SQPOLL	= 1 << 0, /* a kernel thread submits */
};

struct nvq_native_ring_options {
	unsigned int flags;	/* enum nvq_native_ring_flags */
	int sq_cpu;		/* SQPOLL: the thread's CPU, -1: any */
	unsigned int sq_idle;	/* SQPOLL: ms until it sleeps, 0: default */
};

struct nvq_native_ring_stats {
	uint64_t batches;	/* handed over */
	uint64_t calls;		/* io_uring_enter(), but for */
	uint64_t wakeups;	/* SQPOLL: those that woke the idle thread */
};

/*
 * A ring that carries batches, not commands: one SQE each.  For several queues in
 * one system call, for a kernel thread that submits (SQPOLL: none at all), and
 * to wait along with other I/O.  nvq_native_submit() costs less per call.
 */
struct nvq_native_ring {
	unsigned int *sq_array;
	unsigned int *sq_ktail;
	unsigned int *cq_ktail;
	unsigned int sq_mask;
	unsigned int sq_tail;
	unsigned int sq_sent;
	unsigned int cq_head;
	unsigned int enter_flags;
	int enter_fd;
	unsigned int flags;
	unsigned int nr;
	struct nvq_native **queues;
	struct nvq_native_ring_stats stats;
	struct io_uring uring;
};

/*
 * nvq_native_ring_init() - a ring for @nr native queues, open until
 * nvq_native_ring_exit().  Returns 0, -EINVAL (a queue without staging ring),
 * -ENOMEM, -ENOSYS or -EPERM (no io_uring here).
 */
int nvq_native_ring_init(struct nvq_native_ring *r,
			 struct nvq_native *const *queues, unsigned int nr,
			 const struct nvq_native_ring_options *opt,
			 struct nvq_error *err);

/* nvq_native_ring_exit() - harmless on zeroes. */
void nvq_native_ring_exit(struct nvq_native_ring *r);

/*
 * nvq_native_ring_queue() - add the batch staged on the @i-th queue; handed over
 * by nvq_native_ring_enter().
 */
static inline void nvq_native_ring_queue(struct nvq_native_ring *r,
					 unsigned int i)
{
	nvq_native_publish(r->queues[i]);
	/* SQE i is the i-th queue's, and never changes */
	r->sq_array[r->sq_tail++ & r->sq_mask] = i;
}

/*
 * nvq_native_ring_enter() - hand the added batches over, in one system call;
 * with SQPOLL in none, or one to wake the thread.  Returns 0, or why a batch
 * stopped or the call failed, as nvq_native_submit(); with SQPOLL that may be
 * one of an earlier call.  nvq_native_accepted() then says how far each queue
 * came.
 */
int nvq_native_ring_enter(struct nvq_native_ring *r);

/*
 * nvq_native_ring_wait() - hand over what is staged on the @i-th queue, an irq
 * queue, and sleep as nvq_native_submit_wait() does.
 */
int nvq_native_ring_wait(struct nvq_native_ring *r, unsigned int i,
			 unsigned int want, unsigned int timeout_ms);

/*
 * nvq_native_accepted() - how many commands were accepted since it, or a
 * submission, last said so.
 */
static inline uint32_t nvq_native_accepted(struct nvq_native *n)
{
	uint32_t head = __atomic_load_n(&n->kpage->sq_head, __ATOMIC_ACQUIRE);
	uint32_t nr = head - n->sq_sent;

	n->sq_sent = head;
	return nr;
}

/*
 * nvq_native_ring_refused() - which of the two an error that
 * nvq_native_ring_enter() returned is: what stops the @i-th queue now (returned as
 * it is), or the end of an earlier call that others have overtaken since (0).
 */
int nvq_native_ring_refused(const struct nvq_native_ring *r, unsigned int i,
			    int err);

/* nvq_native_ring_submit() - one queue's batch; returns as nvq_native_submit()
 * does, with SQPOLL 0 when nothing has been accepted yet. */
static inline int nvq_native_ring_submit(struct nvq_native_ring *r,
					 unsigned int i)
{
	int ret;
	uint32_t nr;

	nvq_native_ring_queue(r, i);
	ret = nvq_native_ring_enter(r);
	nr = nvq_native_accepted(r->queues[i]);
	if (__builtin_expect(nr != 0, true))
		return nr;
	return ret ? nvq_native_ring_refused(r, i, ret) : 0;
}

#ifdef __cplusplus
}
#endif

#endif /* NVQ_NATIVE_H */
