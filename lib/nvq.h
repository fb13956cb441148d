/* SPDX-License-Identifier: MIT */
/*
 * libnvq: NVMe hardware queues as files, for C programs.
 *
 * A queue file (/dev/nvq0poll0, /dev/nvq0irq0) is one hardware queue pair and
 * has one owner at a time.  This library opens and maps it, sends NVMe commands
 * through an io_uring, and looks at the hardware completion queue in user
 * space, so that the kernel is entered to reap only when there is something:
 *
 *	struct nvq q, *queues[] = { &q };
 *	struct nvq_ring_options opt = { .entries = 32 };
 *	struct nvq_ring r;
 *	struct nvq_error err;
 *
 *	if (nvq_open(&q, "/dev/nvq0poll0", O_RDWR, &err) ||
 *	    nvq_ring_init(&r, queues, 1, &opt, &err))
 *		errx(1, "%s", err.text);
 *	nvq_slot_init(&r, 0, 4711);			(once a slot)
 *	nvq_prep_rw(&r, 0, &q, NVQ_READ, slba, 8, buf, 8 << q.lba_shift);
 *	nvq_queue(&r, 0);
 *	nvq_submit(&r);					(one system call a batch)
 *	nvq_wait(&r, 1, 1000);
 *	res = nvq_cqe(&r, 0)->res;			(0: done)
 *	nvq_advance(&r, 1);
 *
 * Conventions.  What fails returns a negative errno and, where it takes a
 * struct nvq_error, one line that says what is wrong, with the numbers, and
 * what to do about it.  A result above 0 where a command's result is meant is
 * the drive's NVMe status (nvq_status_name()).  Structures belong to the caller
 * and are not moved while in use; their fields may be read, not written.
 * Nothing here is thread-safe: a ring, and the queues on it, belong to one
 * thread.  A child of fork() can use neither (mappings are not inherited).
 * Offsets and lengths called slba and nlb count logical blocks (LBAs) of
 * nvq.geo.lba_size bytes; everything else counts bytes.
 */
#ifndef NVQ_H
#define NVQ_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <liburing.h>
#include <linux/nvme_ioctl.h>
#include <nvqueue/uapi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NVQ_NAME_LEN	32

/* What went wrong: filled by the functions that take one; NULL is allowed. */
struct nvq_error {
	int code;		/* negative errno, as returned */
	char text[320];		/* one line, no newline */
};

/* NVMe opcodes of the NVM command set (NVM Command Set Spec 1.0, figure 9). */
enum nvq_opcode {
	NVQ_FLUSH	= 0x00,
	NVQ_WRITE	= 0x01,
	NVQ_READ	= 0x02,
	NVQ_DSM		= 0x09,
};

/* A hardware completion queue entry (NVMe Base Spec 2.0, 3.3.3.2). */
struct nvq_cqe {
	__le32 result;
	__le32 result_hi;
	__le16 sq_head;
	__le16 sq_id;
	__le16 cid;
	__le16 status;		/* bit 0: phase, the rest: status field */
};

/* ---- Queues ---------------------------------------------------------------- */

/* An open queue file or controller node. */
struct nvq {
	const struct nvq_cqe *cq;	/* mapped; NULL for a controller */
	const struct nvq_kpage *kpage;	/* mapped; NULL for a controller */
	uint32_t depth;			/* entries; depth - 1 in flight */
	uint32_t nsid;
	int fd;
	int sqe_fd;			/* for an SQE: fd, or fixed file index */
	uint32_t lba_shift;
	struct nvq_geometry geo;
	char name[NVQ_NAME_LEN];	/* "nvq0poll0" */
};

/*
 * nvq_open() - open a queue file, which creates the hardware queue, or the
 * controller node, which owns nothing; maps the queue's CQ and kernel page.
 * @flags: O_RDWR, or O_RDONLY for commands that only read; with O_NONBLOCK a
 *	busy queue is -EBUSY at once, without it the driver waits a moment for
 *	an owner that is going away.
 *
 * Returns 0, -EBUSY (owned; the text names the owner), -ENOENT, -EACCES,
 * -ENOTTY (not an nvqueue file), -EPROTO (driver of another ABI version),
 * -ENODEV.  Undone by nvq_close().
 */
int nvq_open(struct nvq *q, const char *path, int flags, struct nvq_error *err);

/*
 * nvq_claim() - open a free queue of a controller.
 * @path: the controller node; its queues' nodes are beside it.
 * @kind: NVQ_KIND_POLL or NVQ_KIND_IRQ.
 * @first: the queue to try first; from there all are tried, going around.
 * @flags: O_RDWR or O_RDONLY.
 *
 * Retries for a second, as an owner that has just exited is still going away.
 * Returns as nvq_open() does; -EBUSY tells how many exist and how many of them
 * are owned, -ENOENT that there is none of this kind.
 */
int nvq_claim(struct nvq *q, const char *path, enum nvq_kind kind,
	      unsigned int first, int flags, struct nvq_error *err);

/*
 * nvq_close() - unmap and close; the hardware queue is deleted once no ring
 * holds the file either, so exit the ring first.  Harmless on a struct nvq
 * that was never opened but zeroed.
 */
void nvq_close(struct nvq *q);

/*
 * nvq_select_ns() - address namespace @nsid instead of the lowest active one;
 * only before the first command.  Returns 0, -EBUSY, -EINVAL, -EOPNOTSUPP.
 */
int nvq_select_ns(struct nvq *q, uint32_t nsid, struct nvq_error *err);

/*
 * nvq_reload() - read the geometry again; what clears NVQ_STATE_STALE, after
 * which commands failed with -ESTALE because the namespace had changed.
 */
int nvq_reload(struct nvq *q, struct nvq_error *err);

/* What can be known of a queue or controller without owning it. */
struct nvq_info {
	char name[NVQ_NAME_LEN];	/* "nvq0poll0" or "nvq0" */
	char ctrl[NVQ_NAME_LEN];	/* "nvq0" */
	unsigned int number;		/* M of nvqNpollM */
	enum nvq_kind kind;
	pid_t owner;			/* of the queue; 0: free */
	struct nvq_geometry geo;	/* depth, mdts and the namespace's fields */
};

/*
 * nvq_query() - describe @path without opening a queue: from sysfs, which needs
 * no permission on any node, or from the controller node if sysfs is not there.
 * @nsid: the namespace meant, 0: the default (lowest active) one.
 *
 * Returns 0, -ENOENT, -ENOTTY (not an nvqueue file), -EINVAL (no such
 * namespace), -EACCES.
 */
int nvq_query(struct nvq_info *info, const char *path, uint32_t nsid,
	      struct nvq_error *err);

/*
 * nvq_count() - count a controller's queues of @kind: how many exist, how many
 * of them nobody owns at the moment.  @ctrl is a name, "nvq0".  Returns 0, or
 * -EMFILE or -ENFILE if there was no descriptor to look with.
 */
int nvq_count(const char *ctrl, enum nvq_kind kind, unsigned int *exist,
	      unsigned int *unowned);

/* "poll", "irq" or "controller" */
const char *nvq_kind_name(enum nvq_kind kind);

/* ---- Commands that wait ---------------------------------------------------- */

/*
 * nvq_sync() - one command, waited for: NVQ_READ or NVQ_WRITE of @nlb LBAs
 * (1..65536), or NVQ_FLUSH (the rest ignored).  For setup and tools.
 * Returns 0, an NVMe status above 0, or a negative errno.
 */
int nvq_sync(struct nvq *q, enum nvq_opcode opcode, uint64_t slba, uint32_t nlb,
	     void *buf);

/* ---- The mapped completion queue ------------------------------------------- */

/* enum nvq_state */
static inline uint32_t nvq_state(const struct nvq *q)
{
	return __atomic_load_n(&q->kpage->state, __ATOMIC_ACQUIRE);
}

/* Rises each time the hardware queue was recreated under the file. */
static inline uint32_t nvq_generation(const struct nvq *q)
{
	return __atomic_load_n(&q->kpage->generation, __ATOMIC_ACQUIRE);
}

/* Commands that the driver has accepted and that have not ended yet. */
static inline uint32_t nvq_in_device(const struct nvq *q)
{
	/* Never too few: an end counted late only delays the reader. */
	uint64_t completed = __atomic_load_n(&q->kpage->completed,
					     __ATOMIC_ACQUIRE);

	return __atomic_load_n(&q->kpage->submitted, __ATOMIC_RELAXED) -
	       completed;
}

/*
 * nvq_cq_has() - are @n (1..depth - 1) entries there that the kernel has not
 * consumed?  The controller writes entries in order, so it is enough to look
 * at the n-th: its phase bit is the expected one once it has been written, and
 * the expectation toggles where the queue wraps.
 */
static inline bool nvq_cq_has(const struct nvq *q, uint32_t n)
{
	/* index and phase in one load, so that they belong together */
	uint32_t head = __atomic_load_n(&q->kpage->cq_head, __ATOMIC_ACQUIRE);
	uint32_t index = (head & NVQ_CQ_HEAD_INDEX) + n - 1;
	uint32_t phase = !!(head & NVQ_CQ_HEAD_PHASE);

	if (index >= q->depth) {
		index -= q->depth;
		phase ^= 1;
	}
	/* acquire: the rest of the entry is read after its phase */
	return (le16toh(__atomic_load_n(&q->cq[index].status,
					__ATOMIC_ACQUIRE)) & 1) == phase;
}

/*
 * nvq_cq_pending() - would entering the kernel to reap find something?
 * @undelivered: commands handed to the kernel whose completion has not been
 *	handed back.  More of them than the driver has under way means that
 *	some have ended without an entry that could still be seen (the kernel
 *	consumes entries by itself when it looks into a time-out, or while it
 *	reaps out of order, and ends commands without one on reset and removal).
 */
static inline bool nvq_cq_pending(const struct nvq *q, uint32_t undelivered)
{
	return nvq_cq_has(q, 1) || undelivered > nvq_in_device(q);
}

/*
 * Walking the entries that are there, oldest first, without consuming them:
 *
 *	for (c = nvq_cq_first(q, &it); c; c = nvq_cq_next(q, &it))
 */
struct nvq_cq_iter {
	uint32_t index;
	uint32_t phase;
	uint32_t left;
};

static inline const struct nvq_cqe *nvq_cq_next(const struct nvq *q,
						struct nvq_cq_iter *it)
{
	const struct nvq_cqe *c = &q->cq[it->index];

	if (!it->left || (le16toh(__atomic_load_n(&c->status,
						  __ATOMIC_ACQUIRE)) & 1) !=
				 it->phase)
		return NULL;
	it->left--;
	if (++it->index == q->depth) {
		it->index = 0;
		it->phase ^= 1;
	}
	return c;
}

static inline const struct nvq_cqe *nvq_cq_first(const struct nvq *q,
						 struct nvq_cq_iter *it)
{
	uint32_t head = __atomic_load_n(&q->kpage->cq_head, __ATOMIC_ACQUIRE);

	it->index = head & NVQ_CQ_HEAD_INDEX;
	it->phase = !!(head & NVQ_CQ_HEAD_PHASE);
	it->left = q->depth - 1;
	return nvq_cq_next(q, it);
}

/* ---- The ring -------------------------------------------------------------- */

enum nvq_ring_flags {
	NVQ_RING_SQPOLL		= 1 << 0, /* a kernel thread submits */
	NVQ_RING_FIXED_FILES	= 1 << 1, /* register the queue files */
	NVQ_RING_KERNEL_POLL	= 1 << 2, /* poll in the kernel, ask no phase */
};

struct nvq_ring_options {
	unsigned int entries;	/* commands in flight, 1..32768 */
	unsigned int flags;	/* enum nvq_ring_flags */
	int sq_cpu;		/* SQPOLL: the thread's CPU, -1: any */
	unsigned int sq_idle;	/* SQPOLL: ms until it sleeps, 0: default */
};

/* Counted by the ring, system calls and what they found. */
struct nvq_ring_stats {
	uint64_t submitted;	/* commands */
	uint64_t submit_calls;	/* io_uring_enter() to submit or wake */
	uint64_t reap_calls;	/* io_uring_enter() to reap or wait */
	uint64_t reap_empty;	/* of these, found nothing */
};

/*
 * An io_uring that carries commands to one queue or several (of one kind).
 *
 * A command sits in a slot, 0..entries - 1, which is the caller's from
 * nvq_prep_*() until its completion was seen.
 */
struct nvq_ring {
	unsigned int *sq_array;
	unsigned int sq_mask;
	unsigned int sq_tail;		/* queued up to here */
	unsigned int sq_sent;		/* handed to the kernel up to here */
	unsigned int cq_mask;
	unsigned int cq_head;		/* read up to here */
	unsigned int inflight;		/* handed over and not advanced past */
	unsigned int hold;		/* looks left until the counters count */
	unsigned int next_hold;
	unsigned int *cq_ktail;
	unsigned int *cq_khead;
	struct io_uring_cqe *cqes;
	struct io_uring_sqe *sqes;
	struct nvq **queues;
	unsigned int nr_queues;
	unsigned int flags;		/* enum nvq_ring_flags */
	enum nvq_kind kind;
	unsigned int sqe_flags;		/* of every SQE */
	int enter_fd;
	unsigned int enter_flags;
	struct nvq_ring_stats stats;
	struct io_uring uring;
};

/*
 * nvq_ring_init() - make a ring for @nr open queues, all poll or all irq, which
 * stay open until nvq_ring_exit().  A poll queue gets an IOPOLL ring.
 * Returns 0, -EINVAL (kinds differ, entries out of range or beyond a queue's
 * depth), -ENOMEM (RLIMIT_MEMLOCK), -ENOSYS or -EPERM (no io_uring here).
 */
int nvq_ring_init(struct nvq_ring *r, struct nvq *const *queues,
		  unsigned int nr, const struct nvq_ring_options *opt,
		  struct nvq_error *err);

/*
 * nvq_ring_buffers() - register buffers; slots refer to them by index
 * (nvq_slot_fixed()).  They stay pinned, and the caller's, until
 * nvq_ring_exit().  Returns 0, or -ENOMEM with the numbers if RLIMIT_MEMLOCK
 * is in the way.
 */
int nvq_ring_buffers(struct nvq_ring *r, const struct iovec *iov,
		     unsigned int nr, struct nvq_error *err);

/* nvq_ring_exit() - release ring, files and buffers; harmless on zeroes. */
void nvq_ring_exit(struct nvq_ring *r);

static inline struct io_uring_sqe *nvq_slot(struct nvq_ring *r,
					    unsigned int slot)
{
	return &r->sqes[slot << 1]; /* SQE128 */
}

static inline struct nvme_uring_cmd *nvq_slot_cmd(struct nvq_ring *r,
						  unsigned int slot)
{
	return (struct nvme_uring_cmd *)nvq_slot(r, slot)->cmd;
}

/* nvq_slot_init() - what stays the same from command to command; once. */
void nvq_slot_init(struct nvq_ring *r, unsigned int slot, uint64_t user_data);

/* nvq_slot_fixed() - data lies in registered buffer @index from now on. */
void nvq_slot_fixed(struct nvq_ring *r, unsigned int slot, unsigned int index);

/* nvq_slot_vec() - @addr and @len of nvq_prep_rw() are an iovec from now on. */
void nvq_slot_vec(struct nvq_ring *r, unsigned int slot);

/*
 * nvq_prep_rw() - NVQ_READ or NVQ_WRITE of @nlb LBAs (1..65536, not beyond
 * geo.mdts) from @slba.
 * @addr, @len: the data, nlb << lba_shift bytes; or, on a slot that went
 *	through nvq_slot_vec(), a struct iovec array and its length.
 */
static inline void nvq_prep_rw(struct nvq_ring *r, unsigned int slot,
			       const struct nvq *q, enum nvq_opcode opcode,
			       uint64_t slba, uint32_t nlb, const void *addr,
			       uint32_t len)
{
	struct io_uring_sqe *sqe = nvq_slot(r, slot);
	struct nvme_uring_cmd *cmd = (struct nvme_uring_cmd *)sqe->cmd;

	sqe->fd = q->sqe_fd;
	cmd->opcode = opcode;
	cmd->nsid = q->nsid;
	cmd->addr = (uintptr_t)addr;
	cmd->data_len = len;
	cmd->cdw10 = (uint32_t)slba;
	cmd->cdw11 = slba >> 32;
	cmd->cdw12 = nlb - 1;
}

/* nvq_prep_flush() - make what was written durable. */
void nvq_prep_flush(struct nvq_ring *r, unsigned int slot, const struct nvq *q);

/* One range of a Dataset Management command (NVM Command Set Spec 1.0, 3.2.3) */
struct nvq_dsm_range {
	__le32 attributes;
	__le32 nlb;
	__le64 slba;
};

/*
 * nvq_prep_deallocate() - tell the drive that @nr (1..256) ranges are unused.
 * @ranges is the command's data: the caller's until it completes, and never
 * in a registered buffer; the slot's next nvq_prep_rw() needs nvq_slot_fixed()
 * or nvq_slot_vec() again where it had it.
 */
void nvq_prep_deallocate(struct nvq_ring *r, unsigned int slot,
			 const struct nvq *q, const struct nvq_dsm_range *ranges,
			 unsigned int nr);

/* nvq_queue() - append a prepared slot to the batch that is being gathered. */
static inline void nvq_queue(struct nvq_ring *r, unsigned int slot)
{
	r->sq_array[r->sq_tail++ & r->sq_mask] = slot;
}

/* nvq_queued() - commands in that batch. */
static inline unsigned int nvq_queued(const struct nvq_ring *r)
{
	return r->sq_tail - r->sq_sent;
}

/*
 * nvq_submit() - hand the batch over, in one system call (with SQPOLL none, or
 * one to wake the thread).  Returns how many were taken, possibly fewer than
 * queued: call again; -EINTR, -EAGAIN and -EBUSY mean that none was: reap, then
 * call again.
 */
int nvq_submit(struct nvq_ring *r);

/* nvq_ready() - completions that can be read, nvq_cqe(r, 0..n - 1). */
static inline unsigned int nvq_ready(const struct nvq_ring *r)
{
	return __atomic_load_n(r->cq_ktail, __ATOMIC_ACQUIRE) - r->cq_head;
}

/*
 * nvq_cqe() - the @i-th completion that is ready: user_data is the slot's; res
 * is 0, an NVMe status above 0, or a negative errno if the driver did not
 * accept the command; big_cqe[0] is the command's result.
 */
static inline const struct io_uring_cqe *nvq_cqe(const struct nvq_ring *r,
						 unsigned int i)
{
	return &r->cqes[((r->cq_head + i) & r->cq_mask) << 1]; /* CQE32 */
}

/* nvq_advance() - @n completions have been read and their slots are free. */
static inline void nvq_advance(struct nvq_ring *r, unsigned int n)
{
	r->cq_head += n;
	r->inflight -= n;
}

/*
 * nvq_reap() - look for completions, without waiting.
 * @want: worth entering the kernel for (1..inflight): it is entered when the
 *	mapped CQ shows as many as are missing, or some that no entry shows.
 * Returns how many are ready, or a negative errno.
 */
int nvq_reap(struct nvq_ring *r, unsigned int want);

/*
 * nvq_wait() - wait until @want completions are ready, at most @timeout_ms.
 * On a poll queue the wait spins in user space on the phase bit (in the kernel
 * with NVQ_RING_KERNEL_POLL), on an irq queue it sleeps.
 * Returns how many are ready, fewer than @want after a time-out, or a negative
 * errno.
 */
int nvq_wait(struct nvq_ring *r, unsigned int want, unsigned int timeout_ms);

/* ---- NVMe status ----------------------------------------------------------- */

/*
 * A status is what a command's res has above 0: the status field of the CQE
 * without the phase bit (NVMe Base Spec 2.0, figure 90).
 */
static inline unsigned int nvq_status_type(int status)
{
	return (status >> 8) & 0x7;
}

static inline unsigned int nvq_status_code(int status)
{
	return status & 0xff;
}

/* "Unrecovered Read Error"; "unknown status" if the table has no name. */
const char *nvq_status_name(int status);

/*
 * nvq_status_text() - one phrase for any res: an NVMe status with type, code,
 * name and the do-not-retry bit, an errno's text below 0.  Returns @buf.
 */
const char *nvq_status_text(int res, char *buf, size_t len);

/* "read", "flush" ...; "opcode" if the table has no name. */
const char *nvq_opcode_name(unsigned int opcode);

#ifdef __cplusplus
}
#endif

#endif /* NVQ_H */
