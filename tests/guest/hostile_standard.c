// SPDX-License-Identifier: MIT
/*
 * The hostile process with NVMe passthrough: ioctls and io_uring commands with
 * one field that is wrong, or none, on rings of every shape, that are left with
 * commands in flight.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hostile.h"

/* What is wrong with a command: see spoil(). */
enum { GOOD = 0, UNMAPPED = 5, NR_SPOILS = 16 };

#define NO_ERRNO	(-1)	/* whatever comes */

static bool read_only(void)
{
	return epoch.mode == STANDARD_RO || epoch.mode == NATIVE_RO;
}

static struct nvme_uring_cmd good_command(struct thread *t, char *buf)
{
	static const uint8_t ops[] = {
		OP_READ, OP_READ, OP_WRITE, OP_COMPARE, OP_ZEROES, OP_VERIFY,
	};
	unsigned int nlb = 1 + below(t, 16), lba = epoch.n.q.g.lba_size;
	uint8_t op = ops[below(t, read_only() ? 2 : 6)];
	struct nvme_uring_cmd c;

	c = rw_cmd(&epoch.n.q, op, below(t, epoch.n.q.g.nsze - nlb), nlb,
		   buf + below(t, PAGE));
	if (op == OP_ZEROES || op == OP_VERIFY) {
		c.addr = 0;
		c.data_len = 0;
	}
	if (lba == 512 && one_in(t, 8))
		c.timeout_ms = 1 + below(t, 3000);
	return c;
}

/*
 * One field.  Returns the errno that must come of it; 0: none need; NO_ERRNO:
 * nothing is known.
 */
static int spoil(struct thread *t, struct nvme_uring_cmd *c, unsigned int what)
{
	switch (what) {
	case 1:
		c->flags = 1 + below(t, 255);
		return EINVAL;
	case 2:
		c->nsid = one_in(t, 2) ? NS_NEIGHBOUR : ~below(t, 2);
		return EINVAL;
	case 3:
		if (one_in(t, 2))
			c->metadata = random64(&t->rnd) | 1;
		else
			c->metadata_len = random64(&t->rnd) | 1;
		return EINVAL;
	case 4:
		if (!c->data_len)
			c->data_len = 512;	/* of a command without data */
		else
			c->data_len -= 1 + below(t, c->data_len);
		return EINVAL;
	case UNMAPPED:
		c->addr = below(t, 2) ? below(t, 4096) + 1 :
					random64(&t->rnd) | 1ull << 63;
		return NO_ERRNO;
	case 6:
		c->opcode = 0x80 | random64(&t->rnd);
		return EACCES;
	case 7:
		c->cdw12 = 0xffff;
		c->opcode = OP_READ;
		return EINVAL;
	case 8:
		c->cdw10 = epoch.n.q.g.nsze + below(t, 100000);
		return 0;
	case 9:
		c->cdw11 = random64(&t->rnd);
		return 0;
	case 10:
		c->cdw2 = random64(&t->rnd);
		c->cdw3 = random64(&t->rnd);
		return 0;
	case 11:
		c->cdw13 = random64(&t->rnd);
		c->cdw14 = random64(&t->rnd);
		return 0;
	case 12:
		c->opcode = OP_DSM;
		c->cdw10 = below(t, 256);
		c->cdw11 = 0;	/* no attribute, so that nothing is done */
		c->data_len = 4096;
		c->addr = (uintptr_t)epoch.scratch;
		return read_only() ? EACCES : 0;
	case 13:
		c->opcode = OP_WRITE;
		return read_only() ? EACCES : NO_ERRNO;
	case 14:
		memset(&c->cdw10, random64(&t->rnd), 6 * 4);
		return NO_ERRNO;
	case 15:
		c->opcode = OP_COPY;
		c->cdw12 = below(t, 0x10000);
		return NO_ERRNO;
	}
	return 0;
}

static unsigned int pick(struct thread *t)
{
	return one_in(t, 2) ? GOOD : below(t, NR_SPOILS);
}

/* The queue's state may be in the way of any command. */
static bool in_the_way(int res)
{
	return res == -ESTALE || res == -ENODEV || res == -EBUSY ||
	       res == -ETIMEDOUT || res == HOST_ABORTED;
}

static void judge(struct thread *t, unsigned int what, int want, int res,
		  unsigned int flags)
{
	if (res > 0)
		shared->statuses++;
	shared->aborted += res == HOST_ABORTED;
	if (want == NO_ERRNO || epoch.formats || in_the_way(res))
		return;
	/* without permission it may not get so far */
	if (want ? res != -want && res != -EACCES : res < 0)
		wrong(t, "a standard command, wrong is %u, ring 0x%x: %d", what,
		      flags, res);
}

/* ---- ioctls ------------------------------------------------------------------- */

static long send_ioctl(struct thread *t, const struct nvme_uring_cmd *c)
{
	struct nvme_passthru_cmd64 wide = sync_form(c);
	struct nvme_passthru_cmd narrow;
	long ret;

	if (one_in(t, 2)) {
		ret = ioctl(epoch.n.q.fd, NVME_IOCTL_IO64_CMD, &wide);
	} else {
		/* they differ in the result only */
		memcpy(&narrow, &wide, sizeof(narrow));
		ret = ioctl(epoch.n.q.fd, NVME_IOCTL_IO_CMD, &narrow);
	}
	return note(C_IOCTL, ret < 0 ? -errno : ret);
}

static void op_ioctl(struct thread *t)
{
	unsigned int what = pick(t);
	struct nvme_uring_cmd c = good_command(t, epoch.scratch);
	int want = spoil(t, &c, what);

	judge(t, what, want, send_ioctl(t, &c), 0);
}

static void op_vector(struct thread *t)
{
	struct iovec iov[8];
	struct nvme_uring_cmd c = good_command(t, epoch.scratch);
	struct nvme_passthru_cmd64 p;
	unsigned int i, nr = 1 + below(t, 8);

	for (i = 0; i < nr; i++)
		iov[i] = (struct iovec){ epoch.scratch + below(t, 8 * PAGE),
					 below(t, 3 * PAGE) };
	if (one_in(t, 4))
		iov[below(t, nr)].iov_len = random64(&t->rnd);
	if (one_in(t, 4))
		iov[below(t, nr)].iov_base = (void *)random64(&t->rnd);
	p = sync_form(&c);
	p.addr = (uintptr_t)iov;
	p.vec_cnt = one_in(t, 8) ? random64(&t->rnd) : nr;
	note(C_IOCTL, ioctl(epoch.n.q.fd, NVME_IOCTL_IO64_CMD_VEC, &p) < 0 ?
	     -errno : 0);
}

static void op_user_io(struct thread *t)
{
	struct nvme_user_io c = {
		.opcode = one_in(t, 8) ? random64(&t->rnd) : OP_READ,
		.flags = one_in(t, 8) ? random64(&t->rnd) : 0,
		.control = one_in(t, 8) ? random64(&t->rnd) : 0,
		.nblocks = one_in(t, 8) ? random64(&t->rnd) : below(t, 8),
		.metadata = one_in(t, 8) ? random64(&t->rnd) : 0,
		.addr = (uintptr_t)epoch.scratch,
		.slba = below(t, epoch.n.q.g.nsze),
	};

	note(C_IOCTL, ioctl(epoch.n.q.fd, NVME_IOCTL_SUBMIT_IO,
			    one_in(t, 8) ? (void *)8 : &c) < 0 ? -errno : 0);
}

/* ---- rings --------------------------------------------------------------------- */

struct shape {
	unsigned int flags;
	bool files, buffers;
};

#define BIG	(IORING_SETUP_SQE128 | IORING_SETUP_CQE32)

static struct shape pick_shape(struct thread *t)
{
	struct shape s = { .flags = BIG };

	if (is_poll(&epoch.n.q))
		s.flags |= IORING_SETUP_IOPOLL;
	s.files = one_in(t, 3);
	s.buffers = one_in(t, 3);
	if (one_in(t, 6))
		s.flags ^= IORING_SETUP_IOPOLL;
	if (one_in(t, 8))
		s.flags ^= IORING_SETUP_SQE128;
	if (one_in(t, 8))
		s.flags ^= IORING_SETUP_CQE32;
	if (one_in(t, 16))
		s.flags |= IORING_SETUP_SQPOLL;
	else if (one_in(t, 4))
		s.flags |= IORING_SETUP_SINGLE_ISSUER |
			   IORING_SETUP_DEFER_TASKRUN;
	return s;
}

static bool fits(const struct shape *s)
{
	return (s->flags & BIG) == BIG &&
	       !!(s->flags & IORING_SETUP_IOPOLL) == is_poll(&epoch.n.q);
}

static bool ring_make(struct io_uring *r, struct shape *s, unsigned int entries)
{
	struct iovec iov = { epoch.scratch, SCRATCH_LEN };
	int fd = epoch.n.q.fd;

	if (ring_open_raw(r, entries, s->flags))
		return false;
	if (s->files && io_uring_register_files(r, &fd, 1))
		s->files = false;
	if (s->buffers && io_uring_register_buffers(r, &iov, 1))
		s->buffers = false;
	return true;
}

/* The errno that must come, as spoil() says it. */
static int put(struct thread *t, struct io_uring *r, const struct shape *s,
	       uint64_t tag, unsigned int *what)
{
	struct nvme_uring_cmd c = good_command(t, epoch.scratch);
	uint32_t op = one_in(t, 16) ? random64(&t->rnd) : NVME_URING_CMD_IO;
	struct io_uring_sqe *sqe;
	int want;

	*what = pick(t);
	want = spoil(t, &c, *what);
	sqe = ring_put(r, s->files ? 0 : epoch.n.q.fd, op, &c, tag);
	if (s->files)
		sqe->flags |= IOSQE_FIXED_FILE;
	if (s->buffers && one_in(t, 2)) {
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		want = want ? NO_ERRNO : 0;
	}
	if (one_in(t, 8))
		sqe->flags |= IOSQE_ASYNC;
	if (one_in(t, 8))
		sqe->flags |= IOSQE_IO_LINK;
	if (op != NVME_URING_CMD_IO || sqe->flags & IOSQE_IO_LINK)
		want = NO_ERRNO;
	return fits(s) ? want : NO_ERRNO;
}

/* io_uring's own: it takes no such flag, or the command was cancelled. */
static void note_ring(struct thread *t, const struct shape *s, int res)
{
	if (res == -ECANCELED || res == -EINTR || res == -EAGAIN ||
	    res == -ENOTTY)
		return;
	if (!fits(s) && res >= 0)
		wrong(t, "a command on a ring of shape 0x%x: %d", s->flags, res);
	note(C_RING, res);
}

/* One that defers its completions must be asked for them. */
static int get(struct io_uring *r, struct end *e)
{
	uint64_t end = now_ms() + 60000;

	if (!(r->flags & IORING_SETUP_DEFER_TASKRUN))
		return ring_get(r, e, 60000);
	while (ring_get(r, e, 0)) {
		if (now_ms() > end)
			return -ETIME;
		io_uring_get_events(r);
	}
	return 0;
}

static void op_ring(struct thread *t)
{
	unsigned int nr = 1 + below(t, 8), i, what[8], leave = one_in(t, 4);
	struct shape s = pick_shape(t);
	struct io_uring r;
	struct end e;
	int want[8];

	if (!ring_make(&r, &s, 8))
		return;
	for (i = 0; i < nr; i++)
		want[i] = put(t, &r, &s, i, &what[i]);
	io_uring_submit(&r);
	/* a link that failed cancels what is behind it */
	for (i = 0; i < nr && !leave; i++) {
		if (get(&r, &e)) {
			wrong(t, "%u of %u commands on a ring of shape 0x%x end",
			      i, nr, s.flags);
			break;
		}
		note_ring(t, &s, e.res);
		if (e.res != -ECANCELED && e.res != -EINTR)
			judge(t, what[e.tag % 8], want[e.tag % 8], e.res,
			      s.flags);
	}
	/* it would wait for what is left, which on a polled ring nobody ends */
	if (one_in(t, 3) && s.buffers && !leave)
		io_uring_unregister_buffers(&r);
	io_uring_queue_exit(&r);
}

/* Cancels what it has just sent, which may have ended. */
static void op_cancel(struct thread *t)
{
	struct shape s = { .flags = BIG };
	unsigned int what, got = 0;
	struct io_uring_sqe *sqe;
	struct io_uring r;
	struct end e;

	/* there is no cancelling on a ring that polls */
	if (is_poll(&epoch.n.q) || !ring_make(&r, &s, 8))
		return;
	put(t, &r, &s, 1, &what);
	sqe = io_uring_get_sqe(&r);
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 2;
	io_uring_submit(&r);
	while (got < 2 && !get(&r, &e))
		got++;
	if (got < 2)
		wrong(t, "%u of a command and its cancellation end", got);
	io_uring_queue_exit(&r);
}

/* io_uring_submit() would reap on the way, on a ring that polls. */
static void submit_only(struct io_uring *r, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		r->sq.array[i] = i;
	io_uring_smp_store_release(r->sq.ktail, r->sq.sqe_tail);
	r->sq.sqe_head = r->sq.sqe_tail;
	io_uring_enter(r->ring_fd, nr, 0, 0, NULL);
}

/* The first that this ring sends. */
static void put_reads(struct thread *t, struct io_uring *r, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct nvme_uring_cmd c = rw_cmd(&epoch.n.q, OP_READ,
						 below(t, 1000), 1,
						 epoch.scratch);

		ring_put(r, epoch.n.q.fd, NVME_URING_CMD_IO, &c, i);
	}
	submit_only(r, nr);
}

/* No slot is free while nobody reaps this ring: ETIMEDOUT for an ioctl. */
static void op_no_slot(struct thread *t)
{
	unsigned int flags = is_poll(&epoch.n.q) ? IORING_SETUP_IOPOLL :
			     IORING_SETUP_SINGLE_ISSUER |
			     IORING_SETUP_DEFER_TASKRUN;
	struct nvme_uring_cmd c = rw_cmd(&epoch.n.q, OP_READ, 0, 1,
					 epoch.scratch);
	struct io_uring r;

	if (ring_open_raw(&r, 2 * epoch.n.q.g.depth, flags | BIG))
		return;
	put_reads(t, &r, epoch.n.q.g.depth - 1);
	c.timeout_ms = 1;
	send_ioctl(t, &c);
	io_uring_queue_exit(&r);
}

void standard_burst(struct thread *t)
{
	static struct io_uring r;

	if (ring_open_raw(&r, 128, BIG | (is_poll(&epoch.n.q) ?
					  IORING_SETUP_IOPOLL : 0)))
		return;
	put_reads(t, &r, 100);
}

const struct op standard_ops[] = {
	{ "standard ioctl", op_ioctl, { 2, 2, 40, 40, 16 } },
	{ "vectors", op_vector, { 1, 1, 8, 8, 3 } },
	{ "submit_io", op_user_io, { 1, 1, 6, 6, 3 } },
	{ "ring", op_ring, { 1, 1, 25, 25, 10 } },
	{ "cancel", op_cancel, { 0, 0, 2, 2, 1 } },
	{ "no free slot", op_no_slot, { 0, 0, 1, 1, 0 } },
	{ NULL, NULL, { 0 } }
};
