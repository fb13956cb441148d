// SPDX-License-Identifier: MIT
/*
 * The table of uapi.h, cell by cell: which ring works on which queue.  A cell
 * that works moves data that is compared through another way; one that does
 * not has its errno, on every command, and leaves the ring usable.  Besides,
 * what a working ring may be asked for: requests given to a worker, linked,
 * through a registered file, several rings on one file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define BURST	24
#define NLB	8

static struct queue queues[2];		/* poll, irq */
static uint64_t place;			/* each test writes elsewhere */

static const char *kind(const struct queue *q)
{
	return is_poll(q) ? "poll" : "irq";
}

struct burst {
	const struct queue *q;
	uint64_t slba, seed;
	size_t block;
	char *buf;
	int res[BURST];
	unsigned int ends[BURST];
};

static void burst_new(struct burst *b, const struct queue *q)
{
	memset(b, 0, sizeof(*b));
	b->q = q;
	b->block = (size_t)NLB * q->g.lba_size;
	b->slba = place;
	place += BURST * NLB;
	b->seed = 1000 + b->slba;
	b->buf = buffer_new(BURST * b->block);
}

static void burst_free(struct burst *b)
{
	buffer_free(b->buf, BURST * b->block);
}

static void burst_put(struct burst *b, struct io_uring *r, uint8_t op,
		      unsigned int sqe_flags, bool registered)
{
	unsigned int i;

	for (i = 0; i < BURST; i++) {
		struct nvme_uring_cmd c = rw_cmd(b->q, op, b->slba + i * NLB,
						 NLB, b->buf + i * b->block);
		struct io_uring_sqe *sqe = ring_put(r, registered ? 0 :
						    b->q->fd,
						    NVME_URING_CMD_IO, &c, i);

		sqe->flags = sqe_flags | (registered ? IOSQE_FIXED_FILE : 0);
		if (i == BURST - 1)
			sqe->flags &= ~IOSQE_IO_LINK;
	}
}

/* Each command ends once; false if one does not, or twice. */
static bool burst_get(struct burst *b, struct io_uring *r)
{
	struct end e;
	unsigned int i;

	memset(b->ends, 0, sizeof(b->ends));
	for (i = 0; i < BURST; i++) {
		if (ring_get(r, &e, 20000) || e.tag >= BURST)
			return false;
		b->res[e.tag] = e.res;
		if (b->ends[e.tag]++)
			return false;
	}
	return ring_get(r, &e, 0) == -ETIME;
}

static bool burst_all(const struct burst *b, int res)
{
	unsigned int i;

	for (i = 0; i < BURST; i++)
		if (b->res[i] != res) {
			diag("command %u: %d", i, b->res[i]);
			return false;
		}
	return true;
}

static bool burst_run(struct burst *b, struct io_uring *r, uint8_t op,
		      unsigned int sqe_flags, bool registered, int want)
{
	burst_put(b, r, op, sqe_flags, registered);
	if (io_uring_submit(r) != BURST)
		return false;
	return burst_get(b, r) && burst_all(b, want);
}

/* What the drive holds now, through an ioctl of the other queue. */
static bool on_drive(const struct burst *b)
{
	const struct queue *other = &queues[is_poll(b->q)];
	char *buf = buffer_new(BURST * b->block);
	bool good;

	good = !sync_rw(other, OP_READ, b->slba, BURST * NLB, buf) &&
	       differs(buf, BURST * b->block, b->seed) < 0;
	buffer_free(buf, BURST * b->block);
	return good;
}

static bool write_and_read(struct burst *b, struct io_uring *r,
			   unsigned int sqe_flags, bool registered)
{
	size_t len = BURST * b->block;

	fill(b->buf, len, b->seed);
	if (!burst_run(b, r, OP_WRITE, sqe_flags, registered, 0) ||
	    !on_drive(b))
		return false;
	memset(b->buf, 0x55, len);
	return burst_run(b, r, OP_READ, sqe_flags, registered, 0) &&
	       differs(b->buf, len, b->seed) < 0;
}

static void cell(const struct queue *q, unsigned int flags, const char *name,
		 bool works)
{
	struct io_uring r;
	struct burst b;

	ring_open(&r, BURST, flags);
	burst_new(&b, q);
	if (works) {
		ok(write_and_read(&b, &r, 0, false), "%s queue, %s ring: works",
		   kind(q), name);
	} else {
		ok(burst_run(&b, &r, OP_READ, 0, false, -EOPNOTSUPP) &&
		   burst_run(&b, &r, OP_READ, 0, false, -EOPNOTSUPP),
		   "%s queue, %s ring: EOPNOTSUPP", kind(q), name);
	}
	burst_free(&b);
	io_uring_queue_exit(&r);
}

static void cell_sync(const struct queue *q)
{
	struct burst b;
	bool good;

	burst_new(&b, q);
	fill(b.buf, BURST * b.block, b.seed);
	good = !sync_rw(q, OP_WRITE, b.slba, BURST * NLB, b.buf) &&
	       on_drive(&b);
	memset(b.buf, 0x55, BURST * b.block);
	good = good && !sync_rw(q, OP_READ, b.slba, BURST * NLB, b.buf);
	ok(good && differs(b.buf, BURST * b.block, b.seed) < 0,
	   "%s queue, ioctl: works", kind(q));
	burst_free(&b);
}

static void cells(const struct queue *q)
{
	bool poll = is_poll(q);

	cell(q, IORING_SETUP_IOPOLL, "IOPOLL", poll);
	cell(q, IORING_SETUP_IOPOLL | IORING_SETUP_SQPOLL, "IOPOLL|SQPOLL",
	     poll);
	cell(q, 0, "plain", !poll);
	cell(q, IORING_SETUP_SQPOLL, "SQPOLL", !poll);
	cell(q, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	     "plain COOP_TASKRUN", !poll);
	cell(q, IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
	     IORING_SETUP_SINGLE_ISSUER, "plain DEFER_TASKRUN", !poll);
	cell_sync(q);
}

/* Rings with entries too small for the command or its result. */
static void small_entries(const struct queue *q)
{
	static const struct { unsigned int flags; const char *name; } t[] = {
		{ 0, "neither SQE128 nor CQE32" },
		{ IORING_SETUP_SQE128, "SQE128 without CQE32" },
		{ IORING_SETUP_CQE32, "CQE32 without SQE128" },
	};
	unsigned int i, iopoll = is_poll(q) ? IORING_SETUP_IOPOLL : 0;
	char *buf = buffer_new(q->g.lba_size);

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct nvme_uring_cmd c = rw_cmd(q, OP_READ, 0, 1, buf);
		struct io_uring r;
		struct end e;

		if (ring_open_raw(&r, 4, t[i].flags | iopoll))
			die("io_uring");
		e = ring_run(&r, q->fd, NVME_URING_CMD_IO, &c);
		is(e.res, -EOPNOTSUPP, "%s queue, %s: EOPNOTSUPP", kind(q),
		   t[i].name);
		io_uring_queue_exit(&r);
	}
	buffer_free(buf, q->g.lba_size);
}

static void request_flags(const struct queue *q)
{
	static const struct { unsigned int flags; bool reg; const char *name; }
	t[] = {
		{ IOSQE_ASYNC, false, "by a worker (IOSQE_ASYNC)" },
		{ IOSQE_IO_LINK, false, "linked (IOSQE_IO_LINK)" },
		{ 0, true, "through a registered file" },
		{ IOSQE_ASYNC, true, "by a worker, registered file" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct io_uring r;
		struct burst b;

		ring_open_for(&r, BURST, q);
		if (io_uring_register_files(&r, &q->fd, 1))
			die("io_uring_register_files");
		burst_new(&b, q);
		ok(write_and_read(&b, &r, t[i].flags, t[i].reg),
		   "%s queue: %s", kind(q), t[i].name);
		burst_free(&b);
		io_uring_unregister_files(&r);
		io_uring_queue_exit(&r);
	}
}

/* The other uring_cmds of linux/nvme_ioctl.h, and nonsense. */
static void other_ops(const struct queue *q)
{
	static const uint32_t ops[] = {
		NVME_URING_CMD_ADMIN, NVME_URING_CMD_ADMIN_VEC, 0, ~0U
	};
	char *buf = buffer_new(q->g.lba_size);
	struct nvme_uring_cmd c = rw_cmd(q, OP_READ, 0, 1, buf);
	struct io_uring r;
	unsigned int i;
	bool good = true;

	ring_open_for(&r, 4, q);
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		good &= ring_run(&r, q->fd, ops[i], &c).res == -ENOTTY;
	ok(good, "%s queue: other uring_cmds are ENOTTY", kind(q));
	io_uring_queue_exit(&r);
	buffer_free(buf, q->g.lba_size);
}

/*
 * Each of two rings gets its own, whoever reaps first; a waiting ioctl beside
 * them as well.
 */
static void two_rings(const struct queue *q)
{
	struct io_uring r[2];
	struct burst b[2];
	unsigned int i, round;
	char *buf = buffer_new(q->g.lba_size);
	bool good = true;

	for (i = 0; i < 2; i++) {
		ring_open_for(&r[i], BURST, q);
		burst_new(&b[i], q);
		fill(b[i].buf, BURST * b[i].block, b[i].seed);
		good &= burst_run(&b[i], &r[i], OP_WRITE, 0, false, 0);
	}
	for (round = 0; round < 20 && good; round++) {
		for (i = 0; i < 2; i++) {
			memset(b[i].buf, 0x55, BURST * b[i].block);
			burst_put(&b[i], &r[i], OP_READ, 0, false);
			good &= io_uring_submit(&r[i]) == BURST;
		}
		/* the ioctl polls the same queue and reaps for both */
		if (round & 2)
			good &= !sync_rw(q, OP_READ, 0, 1, buf);
		good &= burst_get(&b[round & 1], &r[round & 1]);
		good &= burst_get(&b[!(round & 1)], &r[!(round & 1)]);
		for (i = 0; i < 2; i++)
			good &= burst_all(&b[i], 0) &&
				differs(b[i].buf, BURST * b[i].block,
					b[i].seed) < 0;
	}
	ok(good, "%s queue: two rings and an ioctl at once", kind(q));
	for (i = 0; i < 2; i++) {
		burst_free(&b[i]);
		io_uring_queue_exit(&r[i]);
	}
	buffer_free(buf, q->g.lba_size);
}

/* Large before small, so that ends come in another order than commands. */
static void out_of_order(const struct queue *q)
{
	enum { NR = 32 };
	unsigned int i, seen[NR] = { 0 }, inversions = 0;
	unsigned int big = q->g.mdts / q->g.lba_size;
	char *data = buffer_new(q->g.mdts), *buf[NR];
	bool good = true;
	struct io_uring r;
	uint64_t last = 0;
	struct end e;

	fill(data, q->g.mdts, 77);
	good &= !sync_rw(q, OP_WRITE, place, big, data);
	ring_open_for(&r, NR, q);
	for (i = 0; i < NR; i++) {
		unsigned int nlb = i & 1 ? 1 : big;
		struct nvme_uring_cmd c;

		buf[i] = buffer_new(q->g.mdts);
		c = rw_cmd(q, OP_READ, place, nlb, buf[i]);
		ring_put(&r, q->fd, NVME_URING_CMD_IO, &c, i);
	}
	good &= io_uring_submit(&r) == NR;
	for (i = 0; i < NR && good; i++) {
		good &= !ring_get(&r, &e, 20000) && e.tag < NR && !e.res;
		good = good && !seen[e.tag]++;
		inversions += e.tag < last;
		last = e.tag;
	}
	for (i = 0; i < NR; i++) {
		size_t len = i & 1 ? q->g.lba_size : q->g.mdts;

		good &= differs(buf[i], len, 77) < 0;
		buffer_free(buf[i], q->g.mdts);
	}
	diag("%u ends came before an older command's", inversions);
	ok(good, "%s queue: large and small commands mixed", kind(q));
	buffer_free(data, q->g.mdts);
	io_uring_queue_exit(&r);
	place += big;
}

int main(void)
{
	unsigned int i;

	tap_alarm(300);
	queues[0] = queue_open("/dev/nvq0poll0", O_RDWR);
	queues[1] = queue_open("/dev/nvq0irq0", O_RDWR);
	is(queues[0].g.kind, NVQ_KIND_POLL, "nvq0poll0 is a poll queue");
	is(queues[1].g.kind, NVQ_KIND_IRQ, "nvq0irq0 is an irq queue");
	for (i = 0; i < 2; i++) {
		cells(&queues[i]);
		small_entries(&queues[i]);
		request_flags(&queues[i]);
		other_ops(&queues[i]);
		two_rings(&queues[i]);
		out_of_order(&queues[i]);
	}
	return tap_done();
}
