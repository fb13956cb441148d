// SPDX-License-Identifier: MIT
/*
 * The trust boundary of the native path, a row of doc/boundary.md each: what a
 * process may stage and map, and what becomes of it; memory.c has the rows about
 * memory.  After each group the neighbour queue of the same drive must still read back
 * what it wrote.
 *
 *	boundary DEVICE NEIGHBOUR	(two queue files of one controller)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

static const char *device;
static struct neighbour neighbour;
static struct nvq_sqe read_at(const struct world *w, uint64_t offset,
			      unsigned int nlb)
{
	return native_rw(&w->n, OP_READ, 9, 0, nlb, w->index, offset);
}

static void works(void)
{
	struct world w = world_new(device);
	struct nvq_sqe s = native_rw(&w.n, OP_WRITE, 3, 64, 32, w.index, 0);

	is(native_run(&w.n, &s), 0, "a write of four pages");
	memset(w.buf, 0, BUF);
	s = native_rw(&w.n, OP_READ, 4, 64, 32, w.index, 0);
	is(native_run(&w.n, &s), 0, "a read of them");
	is(differs(w.buf, BUF, 1), -1, "reads back what was written");
	s = native_rw(&w.n, OP_FLUSH, 5, 0, 1, 0, 0);
	is(native_run(&w.n, &s), 0, "a flush, which names no buffer");
	world_end(&w);
}

static void buffers_and_lengths(void)
{
	struct world w = world_new(device);
	struct nvq_sqe s;
	unsigned int i;
	static const struct {
		uint64_t offset;
		unsigned int nlb;
		int want;
		const char *name;
	} t[] = {
		{ BUF - LBA, 1, 0, "the last LBA of the buffer" },
		{ BUF - LBA, 2, -EINVAL, "NLB one beyond the buffer" },
		{ BUF - LBA + 4, 1, -EINVAL, "offset that ends 4 beyond" },
		{ BUF, 1, -EINVAL, "offset at the end" },
		{ 0, BUF / LBA + 1, -EINVAL, "NLB beyond the whole buffer" },
		{ 0, 65536, -EINVAL, "the largest NLB" },
		{ -512ull, 1, -EINVAL, "offset that wraps with the length" },
		{ -4ull, 1, -EINVAL, "offset at the end of 64 bits" },
		{ 1ull << 63, 1, -EINVAL, "offset of 2^63" },
		{ 1, 1, -EINVAL, "offset 1" },
		{ 2, 1, -EINVAL, "offset 2" },
		{ 4, 1, 0, "offset 4" },
		{ 4092, 1, 0, "offset across a page" },
	};

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		s = read_at(&w, t[i].offset, t[i].nlb);
		is(native_run(&w.n, &s), t[i].want, "%s", t[i].name);
	}
	s = read_at(&w, 0, 1);
	s.buf = w.index + 1;
	is(native_run(&w.n, &s), -EINVAL, "a buffer index never registered");
	s.buf = NVQ_MAX_BUFS;
	is(native_run(&w.n, &s), -EINVAL, "a buffer index past the table");
	s.buf = ~0u;
	is(native_run(&w.n, &s), -EINVAL, "the largest buffer index");
	s = read_at(&w, 0, 1);
	s.cdw10 = s.cdw11 = ~0u;
	is(native_run(&w.n, &s), -EINVAL, "an LBA at the end of 64 bits");
	s = native_rw(&w.n, OP_READ, 1, w.n.q.g.nsze, 1, w.index, 0);
	is(native_run(&w.n, &s), -EINVAL, "an LBA just past the namespace");
	s = native_rw(&w.n, OP_READ, 1, w.n.q.g.nsze - 1, 1, w.index, 0);
	is(native_run(&w.n, &s), 0, "the last LBA");
	world_end(&w);
}

static void opcodes_and_fields(void)
{
	struct world w = world_new(device);
	unsigned int op, refused = 0;
	struct nvq_sqe s;

	for (op = 0x80; op < 0x100; op++) {
		s = read_at(&w, 0, 1);
		s.opcode = op;
		refused += native_run(&w.n, &s) == -EOPNOTSUPP;
	}
	is(refused, 0x80, "vendor opcodes are not taken, root or not");
	s = read_at(&w, 0, 1);
	s.opcode = 0x0d;
	is(native_run(&w.n, &s), -EOPNOTSUPP, "reservation register neither");
	s = read_at(&w, 0, 1);
	s.nsid++;
	is(native_run(&w.n, &s), -EINVAL, "another namespace");
	s.nsid = ~0u;
	is(native_run(&w.n, &s), -EINVAL, "the broadcast namespace");
	s = read_at(&w, 0, 1);
	s.flags = 0xff;
	s.ignored = ~0ull;
	s.length = ~0u;
	is(native_run(&w.n, &s), 0, "flags, metadata pointer, length ignored");
	world_end(&w);
}

static void command_ids(void)
{
	struct world w = world_new(device);
	struct nvq_sqe s = read_at(&w, 0, 1);
	uint16_t cid;

	s.cid = w.n.q.g.depth;
	is(native_run(&w.n, &s), -EINVAL, "a command id of depth");
	s.cid = 0xffff;
	is(native_run(&w.n, &s), -EINVAL, "a command id of 65535");
	s.cid = w.n.q.g.depth - 1;
	is(native_run(&w.n, &s), 0, "the highest command id");
	s.cid = 5;
	native_stage(&w.n, &s);
	native_stage(&w.n, &s);
	is(native_submit(&w.n), 1, "twice in one batch: the first is taken");
	is(w.n.k->submit_error, -EBUSY, "and the second says EBUSY");
	native_drop(&w.n);
	is(native_reap(&w.n, &cid, 5000), 0, "the first completes");
	is(cid, 5, "as itself");
	is(native_reap(&w.n, &cid, 100), -ETIME, "and nothing else does");
	is(native_run(&w.n, &s), 0, "its id is free again");
	world_end(&w);
}

/* The staging SQ is full of commands that would do, if they were staged. */
static void all_are_reads(struct world *w)
{
	unsigned int k;

	for (k = 0; k <= w->n.mask; k++) {
		w->n.sq[k] = read_at(w, 0, 1);
		w->n.sq[k].cid = k;
	}
}

static void heads_and_tails(void)
{
	struct world w = world_new(device);
	struct nvq_sqe s = read_at(&w, 0, 1);
	uint32_t tail = w.n.tail;

	all_are_reads(&w);
	w.n.u->sq_tail = tail + w.n.mask + 2;
	is(native_submit(&w.n), -EINVAL, "a tail beyond the staging SQ");
	w.n.u->sq_tail = tail - 1;
	is(native_submit(&w.n), -EINVAL, "a tail behind the head");
	w.n.u->sq_tail = tail;
	is(native_submit(&w.n), 0, "nothing staged is no error");
	is(native_run(&w.n, &s), 0, "and a command still works");
	/* claims to have read what was never there */
	w.n.u->cq_head = w.n.head + 12345;
	is(native_submit(&w.n), 0, "a consumed head ahead of the CQ");
	w.n.u->cq_head = w.n.head - 1;
	is(native_submit(&w.n), 0, "a consumed head that goes back");
	w.n.u->cq_head = w.n.head;
	is(native_run(&w.n, &s), 0, "and a command still works");
	world_end(&w);
}

static int drop(struct world *w, uint32_t index)
{
	return ioctl(w->n.q.fd, NVQ_IOC_DROP, &index) ? -errno : 0;
}

static void drops(void)
{
	struct world w = world_new(device);
	uint32_t head = w.n.k->sq_head;
	uint64_t before = w.n.k->dropped;
	struct nvq_sqe s = read_at(&w, 0, 1);
	uint16_t cid = 0;

	is(drop(&w, head), -EINVAL, "drop: nothing is staged");
	s.opcode = 0xff;
	native_stage(&w.n, &s);
	s.opcode = OP_READ;
	s.cid = 5;
	native_stage(&w.n, &s);
	is(drop(&w, head + 1), -EAGAIN, "drop: not the next in turn");
	is(drop(&w, head - 1), -EAGAIN, "drop: one that was taken");
	is(drop(&w, head + 0x80000000u), -EAGAIN, "drop: nowhere near");
	is(native_submit(&w.n), -EOPNOTSUPP, "the first is refused");
	is(drop(&w, head), 0, "drop: the next in turn");
	is(drop(&w, head), -EAGAIN, "drop: it once more");
	is(w.n.k->dropped - before, 1, "one is counted");
	is(native_submit(&w.n), 1, "the one behind it goes on");
	is(native_reap(&w.n, &cid, 5000), 0, "and completes");
	is(cid, 5, "under its id");
	w.n.u->sq_tail = w.n.tail + w.n.mask + 2;
	is(drop(&w, head + 2), -EINVAL, "drop: the tail is nonsense");
	w.n.u->sq_tail = w.n.tail;
	is(ioctl(w.n.q.fd, NVQ_IOC_DROP, NULL) ? -errno : 0, -EFAULT,
	   "drop: an index from where nothing is mapped");
	world_end(&w);
}

/* Fills the queue without reading: depth - 1 go in, then ENOSPC. */
static void full_queue(void)
{
	struct world w = world_new(device);
	unsigned int depth = w.n.q.g.depth, i, taken = 0, got = 0;
	int ret = 0;

	for (i = 0; i < depth; i++) {
		struct nvq_sqe s = native_rw(&w.n, OP_READ, i, i, 1, w.index,
					     0);

		native_stage(&w.n, &s);
	}
	for (i = 0; i < 10 && taken < depth && ret >= 0; i++) {
		ret = native_submit(&w.n);
		if (ret > 0)
			taken += ret;
	}
	is(taken, depth - 1, "depth - 1 commands fit");
	is(ret, -ENOSPC, "the next is ENOSPC until completions are read");
	while (got < taken && !native_reap(&w.n, NULL, 5000))
		got++;
	is(got, taken, "all complete");
	is(native_submit(&w.n), 1, "then there is room");
	is(native_reap(&w.n, NULL, 5000), 0, "and it completes");
	world_end(&w);
}

/* Over the wrap of both rings many times, at once and one by one. */
static void wraps(void)
{
	struct world w = world_new(device);
	unsigned int i, bad = 0, rounds = w.n.q.g.depth * 3 + 7;

	for (i = 0; i < rounds && !bad; i++) {
		struct nvq_sqe s = native_rw(&w.n, OP_READ, i % 7, 1000, 8,
					     w.index, 0);

		bad += native_run(&w.n, &s) != 0 ||
		       differs(w.buf, PAGE, 77) >= 0;
		memset(w.buf, 0, PAGE);
	}
	is(bad, 0, "%u commands one by one, over the wrap", rounds);
	world_end(&w);
}

/* ---- a command rewritten while it is submitted ------------------------------ */

static volatile bool racing;

static void *race(void *arg)
{
	struct native *n = arg;
	uint64_t seed = 7;

	while (racing) {
		volatile struct nvq_sqe *s = &n->sq[n->tail & n->mask];

		s->nsid = n->q.g.nsid;
		s->opcode = random64(&seed) & 1 ? OP_READ : 0xff;
		s->offset = random64(&seed);
		s->buf = random64(&seed);
		s->cdw12 = random64(&seed);
		s->cid = random64(&seed);
		s->offset = 0;
		s->buf = 0;
		s->cdw12 = 0;
		s->opcode = OP_READ;
		s->cid = 1;
	}
	return NULL;
}

static void rewritten_while_submitted(void)
{
	struct world w = world_new(device);
	struct tap_loop l = { "a command rewritten while it is submitted",
			      .count = 20000, .floor = 500, .seconds = 8 };
	unsigned int taken = 0, refused = 0;
	pthread_t t;

	racing = true;
	pthread_create(&t, NULL, race, &w.n);
	while (tap_loop(&l)) {
		int ret;

		/* the entry under the tail is the racer's */
		__atomic_store_n(&w.n.u->sq_tail, w.n.tail + 1,
				 __ATOMIC_RELEASE);
		ret = native_submit(&w.n);
		if (ret == 1) {
			uint16_t cid;

			taken++;
			w.n.tail++;
			tap_loop_check(&l, native_reap(&w.n, &cid, 5000) >= 0,
				       "taken, never completed");
		} else {
			refused++;
			native_drop(&w.n);
			tap_loop_check(&l, ret == -EINVAL || ret == -EOPNOTSUPP,
				       "SUBMIT says %d", ret);
		}
	}
	racing = false;
	pthread_join(t, NULL);
	diag("%u taken, %u refused", taken, refused);
	ok(taken && refused, "both happened");
	world_end(&w);
}

static void *race_length(void *arg)
{
	struct native *n = arg;
	volatile struct nvq_sqe *sq = n->sq;
	unsigned int k;

	while (racing) {
		for (k = 0; k <= n->mask; k++)
			sq[k].cdw12 = 0xffff;
		for (k = 0; k <= n->mask; k++)
			sq[k].cdw12 = 0;
	}
	return NULL;
}

/*
 * Lengths that are right or far too long, from one moment to the next, in all of
 * the staging SQ.  What is taken was right when it was looked at, and goes to the
 * drive as that.
 */
static void lengths_rewritten(void)
{
	struct world w = world_new(device);
	struct tap_loop l = { "lengths rewritten while they are checked",
			      .count = 10000, .floor = 200, .seconds = 8 };
	unsigned int taken = 0, refused = 0;
	pthread_t t;

	memset(w.buf, 0xee, BUF);
	all_are_reads(&w);
	racing = true;
	pthread_create(&t, NULL, race_length, &w.n);
	while (tap_loop(&l)) {
		int ret;

		/* below depth, so that only a length can be wrong */
		__atomic_store_n(&w.n.u->sq_tail, w.n.tail + 200,
				 __ATOMIC_RELEASE);
		ret = native_submit(&w.n);
		refused += ret != 200;
		tap_loop_check(&l, ret >= 0 || ret == -EINVAL, "SUBMIT says %d",
			       ret);
		native_drop(&w.n);
		/* the racer may have stopped where nothing is taken */
		if (ret <= 0)
			usleep(20);
		for (; ret > 0; ret--, taken++)
			if (!tap_loop_check(&l, !native_reap(&w.n, NULL, 5000),
					    "one failed"))
				break;
	}
	racing = false;
	pthread_join(t, NULL);
	diag("%u taken, %u batches stopped", taken, refused);
	ok(taken && refused, "both happened");
	ok(!all_bytes(w.buf, LBA, 0xee) &&
	   all_bytes(w.buf + LBA, BUF - LBA, 0xee), "one LBA was read, no more");
	world_end(&w);
}

/* ---- modes and rights ------------------------------------------------------- */

/* Were it taken, nobody would ever end it. */
static int standard_command(void *arg)
{
	struct world *w = arg;
	struct nvme_uring_cmd c = rw_cmd(&w->n.q, OP_READ, 0, 1, w->buf);

	alarm(5);
	return -sync_cmd(w->n.q.fd, &c, NULL);
}

static void standard_and_native(void)
{
	struct world w = world_new(device);
	struct queue q;

	is(in_child(standard_command, &w), EBUSY,
	   "a standard command on a native file");
	world_end(&w);
	q = queue_open(device, O_RDWR);
	is(sync_rw(&q, OP_READ, 0, 1, neighbour.buf), 0,
	   "reopened, it is a standard one");
	is(native_register(q.fd, neighbour.buf, PAGE, 0), -EBUSY,
	   "a native registration on a standard file");
	ok(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, q.fd,
		NVQ_MMAP_SQ) == MAP_FAILED && errno == EBUSY,
	   "a mapping of the staging SQ on it");
	queue_close(&q);
}

static int submit_from(int fd, const struct nvq_sqe *s, uint32_t nr,
		       uint32_t head)
{
	struct nvq_submit_from f = {
		.sqes = (uintptr_t)s,
		.nr = nr,
		.cq_head = head,
	};
	int ret = ioctl(fd, NVQ_IOC_SUBMIT_FROM, &f);

	return ret < 0 ? -errno : ret;
}

static int submit_with(int fd, struct nvq_submit s)
{
	int ret = ioctl(fd, NVQ_IOC_SUBMIT, &s);

	return ret < 0 ? -errno : ret;
}

/* The same by io_uring, which is 64 bytes of SQE here. */
static int ring_submit_with(int fd, struct nvq_submit s, unsigned int flags)
{
	struct io_uring_sqe *sqe;
	struct io_uring r;
	struct end e;

	if (ring_open_raw(&r, 4, flags))
		die("no ring");
	sqe = io_uring_get_sqe(&r);
	if (!sqe)
		die("the ring has no entry");
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = NVQ_URING_SUBMIT;
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), &s, sizeof(s));
	io_uring_submit(&r);
	if (ring_get(&r, &e, 5000))
		e.res = -ETIME;
	io_uring_queue_exit(&r);
	return e.res;
}

/* Such a ring must get it once: its list of what to poll is for others. */
static void submit_on_polling_ring(int fd)
{
	static const struct nvq_submit none;
	unsigned int i, good = 0;

	for (i = 0; i < 50; i++)
		good += !ring_submit_with(fd, none, IORING_SETUP_IOPOLL);
	is(good, 50, "SUBMIT by a ring that polls");
}

static void submit_arguments(void)
{
	static const struct nvq_submit none, reserved = { .reserved = 1 },
				       wait = { .wait = 1 };
	struct world w = world_new(device);
	struct nvq_sqe s = read_at(&w, 0, 1), *many;
	struct nvq_submit_from f = { .nr = 1, .reserved = { 0, 0, 0, 1 } };
	int fd = w.n.q.fd, want = is_poll(&w.n.q) ? -EOPNOTSUPP : 0;
	unsigned int i;

	is(submit_with(fd, reserved), -EINVAL, "a reserved word of SUBMIT");
	is(ring_submit_with(fd, reserved, 0), -EINVAL, "the same by io_uring");
	is(ioctl(fd, NVQ_IOC_SUBMIT_FROM, &f) ? -errno : 0, -EINVAL,
	   "a reserved word of SUBMIT_FROM");
	is(ioctl(fd, NVQ_IOC_SUBMIT, 8) ? -errno : 0, -EFAULT,
	   "SUBMIT from nowhere");
	is(submit_with(fd, wait), want, "a wait, on an irq queue only");
	is(ring_submit_with(fd, wait, 0), want, "the same by io_uring");
	is(ring_submit_with(fd, wait, IORING_SETUP_IOPOLL), -EOPNOTSUPP,
	   "on a ring that polls, on neither");
	submit_on_polling_ring(fd);
	for (i = 0; i < 2; i++)
		native_stage(&w.n, &s);
	w.n.sq[(w.n.tail - 1) & w.n.mask].cid = s.cid + 1;
	is(submit_with(fd, (struct nvq_submit){ .max = 1 }), 1,
	   "one of two that are staged");
	is(ring_submit_with(fd, none, 0), 0, "the other by io_uring");
	is(world_drain(&w, 2), 2, "both come back");
	/* what lies behind 256 of them is not even looked at */
	many = buffer_new(256 * sizeof(*many));
	for (i = 0; i < 256; i++) {
		many[i] = s;
		many[i].cid = i;
	}
	is(submit_from(fd, many, 600, w.n.head), 256,
	   "SUBMIT_FROM takes 256 at the most");
	is(world_drain(&w, 256), 256, "they come back");
	buffer_free(many, 256 * sizeof(*many));
	world_end(&w);
}

/* As nobody, with permission on the file: reads, not writes. */
static int readonly_owner(void *arg)
{
	struct native n = { .q = queue_open(device, O_RDONLY), .phase = 1 };
	struct nvq_sqe s;
	void *buf = buffer_new(PAGE);
	int index;

	(void)arg;
	drop_rights();
	n.cq = mmap(NULL, n.q.g.cq_bytes, PROT_READ, MAP_SHARED, n.q.fd,
		    NVQ_MMAP_CQ);
	n.k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, n.q.fd, NVQ_MMAP_KPAGE);
	if (n.cq == MAP_FAILED || n.k == MAP_FAILED)
		return 1;
	if (mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, n.q.fd,
		 NVQ_MMAP_SQ) != MAP_FAILED)
		return 2;
	index = native_register(n.q.fd, buf, PAGE, 0);
	if (index < 0)
		return 3;
	s = native_rw(&n, OP_WRITE, 1, 0, 1, index, 0);
	if (submit_from(n.q.fd, &s, 1, 0) != -EACCES)
		return 4;
	s = native_rw(&n, OP_READ, 1, 1000, 8, index, 0);
	if (submit_from(n.q.fd, &s, 1, 0) != 1)
		return 5;
	for (index = 0; index < 5000 && !(n.cq[0].status & 1); index++)
		usleep(1000);
	if (n.cq[0].status != 1 || differs(buf, PAGE, 77) >= 0)
		return 6;
	if (submit_from(n.q.fd, (void *)8, 1, 1) != -EFAULT)
		return 7;
	return 0;
}

/* A mapping of more than there is: pages behind the ring are not ours. */
static void mappings_end(void)
{
	struct world w = world_new(device);
	size_t staging = (w.n.mask + 1) * sizeof(*w.n.sq);
	static const struct {
		off_t at;
		const char *name;
		bool writable;
	} t[] = {
		{ NVQ_MMAP_CQ, "CQ", false },
		{ NVQ_MMAP_KPAGE, "kernel page", false },
		{ NVQ_MMAP_SQ, "staging SQ", true },
		{ NVQ_MMAP_UPAGE, "user page", true },
	};
	size_t len[] = { w.n.q.g.cq_bytes, PAGE, staging, PAGE };
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int prot = PROT_READ | (t[i].writable ? PROT_WRITE : 0);
		void *p = mmap(NULL, len[i], prot, MAP_SHARED, w.n.q.fd,
			       t[i].at);

		ok(p != MAP_FAILED, "the %s is mapped once more", t[i].name);
		munmap(p, len[i]);
		p = mmap(NULL, len[i] + PAGE, prot, MAP_SHARED, w.n.q.fd,
			 t[i].at);
		ok(p == MAP_FAILED && errno == EINVAL,
		   "a page more than the %s", t[i].name);
		p = mmap(NULL, PAGE, prot, MAP_SHARED, w.n.q.fd,
			 t[i].at + (off_t)len[i]);
		ok(p == MAP_FAILED && errno == EINVAL,
		   "the page behind the %s", t[i].name);
	}
	world_end(&w);
}

static void mappings_stay_readonly(void)
{
	struct world w = world_new(device);

	ok(mprotect((void *)w.n.cq, PAGE, PROT_READ | PROT_WRITE) &&
	   errno == EACCES, "mprotect of the CQ");
	ok(mprotect((void *)w.n.k, PAGE, PROT_READ | PROT_WRITE) &&
	   errno == EACCES, "mprotect of the kernel page");
	ok(mprotect(w.n.sq, PAGE, PROT_READ | PROT_EXEC) && errno == EACCES,
	   "mprotect of the staging SQ to PROT_EXEC");
	ok(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, w.n.q.fd,
		NVQ_MMAP_SQ) == MAP_FAILED && errno == EACCES,
	   "a private mapping of the staging SQ");
	world_end(&w);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		die("usage: boundary DEVICE NEIGHBOUR");
	device = argv[1];
	neighbour = neighbour_open(argv[2]);

	works();
	buffers_and_lengths();
	ok(neighbour_is_well(&neighbour), "neighbour unharmed: buffers and lengths");
	opcodes_and_fields();
	command_ids();
	heads_and_tails();
	drops();
	full_queue();
	wraps();
	ok(neighbour_is_well(&neighbour), "neighbour unharmed: ids, heads and tails");
	rewritten_while_submitted();
	ok(neighbour_is_well(&neighbour), "neighbour unharmed: rewritten commands");
	lengths_rewritten();
	standard_and_native();
	submit_arguments();
	is(in_child(readonly_owner, NULL), 0,
	   "a read-only, unprivileged owner reads and cannot write");
	mappings_end();
	mappings_stay_readonly();
	ok(neighbour_is_well(&neighbour), "neighbour unharmed: the end");
	return tap_done();
}
