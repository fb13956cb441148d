// SPDX-License-Identifier: MIT
/*
 * A native file whose queue stops or whose drive is slow: resets, time-outs, a
 * changed format, waits.  What was accepted ends once, what is submitted before
 * the owner has agreed is ESTALE, and the numbers in the kernel page add up.
 *
 *	resync DEVICE SLOW LATENCY-MS
 *
 * DEVICE is a queue of a drive that may be formatted, SLOW an irq queue of one
 * that answers after LATENCY-MS.  QEMU stands still while it deletes a queue
 * with commands in its backend, so times are generous.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

#define HOST_ABORTED	0x371

static const char *device, *slow;
static unsigned int latency;

static int resync(struct world *w)
{
	return ioctl(w->n.q.fd, NVQ_IOC_RESYNC) ? -errno : 0;
}

static void reset(const struct world *w)
{
	is(file_write("1", "/sys/class/nvqueue/nvq%u/reset_controller",
		      w->n.q.g.instance), 0, "the controller is reset");
}

static bool becomes(const struct world *w, uint32_t state, unsigned int ms)
{
	uint64_t end = now_ms() + ms;

	while (w->n.k->state != state && now_ms() < end)
		sleep_ms(5);
	return w->n.k->state == state;
}

static struct nvq_sqe read_of(const struct world *w, uint16_t cid)
{
	return native_rw(&w->n, OP_READ, cid, 1000, 1, w->index, 0);
}

/* Completions of any status, as a reset may have ended some. */
static unsigned int ended(struct world *w, unsigned int nr)
{
	unsigned int got = 0;

	while (got < nr && native_reap(&w->n, NULL, 5000) >= 0)
		got++;
	return got;
}

/* ---- resets -------------------------------------------------------------------- */

/* The numbers of a native file: accepted, ended, taken. */
static void counters(void)
{
	struct world w = world_new(device);
	struct nvq_sqe bad = read_of(&w, 1), good = read_of(&w, 2);
	volatile struct nvq_kpage *k = w.n.k;

	bad.opcode = 0xff;
	is(world_in_flight(&w, 10), 10, "ten reads");
	is(k->submitted, 10, "ten are submitted");
	is(world_drain(&w, 10), 10, "and come back");
	is(native_run(&w.n, &bad), -EOPNOTSUPP, "one is refused");
	is(k->submit_error, -EOPNOTSUPP, "the kernel page says why");
	is(k->submitted, 10, "and does not count it");
	is(k->sq_head, 10, "nor takes it");
	is(k->completed, 10, "ten have ended");
	is(native_run(&w.n, &good), 0, "another");
	is(k->submit_error, 0, "no error any more");
	is(k->submitted, 11, "eleven");
	world_end(&w);
}

static void over_a_reset(void)
{
	struct world w = world_new(device);
	volatile struct nvq_kpage *k = w.n.k;
	uint32_t generation = k->generation;
	struct nvq_sqe s = read_of(&w, 3);
	unsigned int i;

	is(resync(&w), 0, "a resync of a live queue changes nothing");
	is(k->generation, generation, "not its generation");
	is(world_in_flight(&w, 20), 20, "20 reads, not read back yet");
	for (i = 0; i < 3; i++)
		native_stage(&w.n, &s);
	reset(&w);
	ok(becomes(&w, NVQ_STATE_RESYNC, 20000), "the state says resync");
	is(native_submit(&w.n), -ESTALE, "SUBMIT is ESTALE");
	is(resync(&w), -EBUSY, "a resync before all were read is EBUSY");
	is(ended(&w, 20), 20, "all 20 can be read");
	is(native_reap(&w.n, NULL, 50), -ETIME, "and no more");
	is(k->submitted, 20, "20 were submitted");
	is(k->completed, 20, "and 20 have ended");
	is(native_submit(&w.n), -ESTALE, "SUBMIT is ESTALE until the resync");
	is(resync(&w), 0, "which now works");
	is(k->generation, generation + 1, "the generation has risen");
	is(k->state, NVQ_STATE_LIVE, "the queue is live");
	is(k->dropped, 3, "three staged commands were dropped");
	is(k->sq_head + w.n.u->sq_tail + w.n.u->cq_head, 0,
	   "the counters begin at 0");
	native_restart(&w.n);
	is(native_run(&w.n, &s), 0, "a command works, the buffer is still there");
	world_end(&w);
}

/* Who has no user page says by SUBMIT_FROM that all was read. */
static void readonly_over_a_reset(void)
{
	struct world w = { .n = { .q = queue_open(device, O_RDONLY) } };
	char *buf = buffer_new(PAGE);
	struct nvq_sqe s = native_rw(&w.n, OP_READ, 1, 1000, 1, 0, 0);
	struct nvq_submit_from f = { .sqes = (uintptr_t)&s, .nr = 1 };

	w.n.k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, w.n.q.fd,
		     NVQ_MMAP_KPAGE);
	if (w.n.k == MAP_FAILED)
		die("mmap of the kernel page: %s", strerror(errno));
	is(native_register(w.n.q.fd, buf, PAGE, 0), 0, "a read-only owner");
	is(ioctl(w.n.q.fd, NVQ_IOC_SUBMIT_FROM, &f), 1, "reads");
	reset(&w);
	ok(becomes(&w, NVQ_STATE_RESYNC, 20000), "the state says resync");
	is(resync(&w), -EBUSY, "a resync before it was read is EBUSY");
	f.cq_head = 1;
	is(ioctl(w.n.q.fd, NVQ_IOC_SUBMIT_FROM, &f) < 0 ? -errno : 0, -ESTALE,
	   "SUBMIT_FROM is ESTALE, and says that it was");
	is(resync(&w), 0, "then the resync works");
	f.cq_head = 0;
	is(ioctl(w.n.q.fd, NVQ_IOC_SUBMIT_FROM, &f), 1, "and reads");
	munmap((void *)w.n.k, PAGE);
	queue_close(&w.n.q);
	buffer_free(buf, PAGE);
}

static volatile bool stop;

/* Returns how many calls said what none may, having found resets under way. */
static void *submit_from_on_and_on(void *arg)
{
	struct nvq_submit_from f = { 0 };
	int fd = *(int *)arg;
	intptr_t odd = 0;

	while (!stop) {
		if (ioctl(fd, NVQ_IOC_SUBMIT_FROM, &f) >= 0)
			continue;
		odd += errno != ESTALE;
		if (ioctl(fd, NVQ_IOC_RESYNC))
			odd += errno != EBUSY;
	}
	return (void *)odd;
}

static void submit_from_beside_resets(void)
{
	struct world w = world_new(device);
	pthread_t t;
	unsigned int i;
	void *odd;

	stop = false;
	pthread_create(&t, NULL, submit_from_on_and_on, &w.n.q.fd);
	for (i = 0; i < 5; i++)
		reset(&w);
	stop = true;
	pthread_join(t, &odd);
	is((intptr_t)odd, 0,
	   "SUBMIT_FROM and RESYNC beside resets wait, or are ESTALE");
	world_end(&w);
}

/* ---- a changed format ----------------------------------------------------------- */

static int format(const struct world *w, unsigned int lbaf)
{
	struct nvme_passthru_cmd c = {
		.opcode = 0x80, .nsid = w->n.q.g.nsid, .cdw10 = lbaf,
		.timeout_ms = 60000,
	};
	char path[32];
	int fd, err;

	snprintf(path, sizeof(path), "/dev/nvq%u", w->n.q.g.instance);
	fd = open(path, O_RDWR | O_CLOEXEC);
	err = admin_cmd(fd, &c);
	close(fd);
	return err;
}

/* QEMU's formats: 0 is 512 bytes, 4 is 4096. */
static void over_a_format(void)
{
	struct world w = world_new(device);
	struct nvq_sqe s = read_of(&w, 1), last;

	is(native_run(&w.n, &s), 0, "a read of 512 bytes");
	is(format(&w, 4), 0, "the namespace is formatted to 4096");
	ok(becomes(&w, NVQ_STATE_STALE, 10000), "the state says stale");
	is(native_run(&w.n, &s), -ESTALE, "SUBMIT is ESTALE");
	is(ioctl(w.n.q.fd, NVQ_IOC_GEOMETRY, &w.n.q.g), 0,
	   "the geometry is read");
	is(w.n.q.g.lba_size, 4096, "it is the new one");
	memset(w.buf, 0xee, BUF);
	s = native_rw(&w.n, OP_READ, 1, 1, 1, w.index, PAGE);
	is(native_run(&w.n, &s), 0, "a read of one LBA");
	ok(!all_bytes(w.buf + PAGE, PAGE, 0xee) &&
	   all_bytes(w.buf + 2 * PAGE, PAGE, 0xee), "is 4096 bytes now");
	s = native_rw(&w.n, OP_READ, 1, 1, 1, w.index, BUF - LBA);
	is(native_run(&w.n, &s), -EINVAL, "and does not fit the last 512");
	last = native_rw(&w.n, OP_READ, 1, w.n.q.g.nsze, 1, w.index, 0);
	is(native_run(&w.n, &last), -EINVAL, "the namespace ends earlier");
	is(format(&w, 0), 0, "and back");
	world_end(&w);
}

/* ---- a slow drive ---------------------------------------------------------------- */

static int submit_wait(struct native *n, unsigned int want, unsigned int ms)
{
	struct nvq_submit s = { .wait = want, .timeout_ms = ms };
	int ret = ioctl(n->q.fd, NVQ_IOC_SUBMIT, &s);

	return ret < 0 ? -errno : ret;
}

static void ids_stay_taken(void)
{
	struct world w = world_new(slow);
	struct nvq_sqe s = read_of(&w, 5);
	uint64_t start;

	native_stage(&w.n, &s);
	is(native_submit(&w.n), 1, "a slow command");
	native_stage(&w.n, &s);
	is(native_submit(&w.n), -EBUSY, "its id is busy in a later batch");
	native_drop(&w.n);
	start = now_ms();
	is(native_unregister(w.n.q.fd, w.index), 0, "unregister of its buffer");
	ok(now_ms() - start > latency / 2, "waits until it has ended (%llu ms)",
	   (unsigned long long)(now_ms() - start));
	is(native_reap(&w.n, NULL, 0), 0, "it has");
	is(native_submit(&w.n), 0, "nothing more to submit");
	is(w.n.k->completed, 1, "one command has ended");
	world_end(&w);
}

/* Claims to have read what the slow drive has not even begun. */
static void head_ahead(void)
{
	struct world w = world_new(slow);
	unsigned int depth = w.n.q.g.depth, i, taken = 0;
	struct nvq_sqe s;
	int ret = 0;

	for (i = 0; i < depth; i++) {
		s = read_of(&w, i);
		native_stage(&w.n, &s);
	}
	w.n.u->cq_head = 12345;
	for (i = 0; i < 10 && ret >= 0; i++) {
		ret = native_submit(&w.n);
		if (ret > 0)
			taken += ret;
	}
	is(taken, depth - 1,
	   "no more than both rings hold, whatever is said to be read");
	is(ret, -ENOSPC, "then ENOSPC");
	w.n.u->cq_head = 0;
	native_drop(&w.n);
	is(native_reap(&w.n, NULL, 2 * latency), 0, "the first comes");
	is(world_drain(&w, taken - 1), taken - 1, "and all the others");
	world_end(&w);
}

struct waiter {
	struct native *n;
	int ret;
};

static void *wait_long(void *arg)
{
	struct waiter *w = arg;

	w->ret = submit_wait(w->n, 100, 0);
	return NULL;
}

static void waits(void)
{
	struct world w = world_new(slow);
	struct waiter other = { .n = &w.n };
	struct nvq_sqe s = read_of(&w, 5);
	uint64_t start = now_ms();
	pthread_t t;

	is(submit_wait(&w.n, 1, 0), 0, "a wait with nothing in flight");
	ok(now_ms() - start < latency / 2, "does not wait");
	native_stage(&w.n, &s);
	is(submit_wait(&w.n, 1, 100), -ETIME, "a wait of 100 ms is ETIME");
	ok(now_ms() - start < latency, "in time (%llu ms)",
	   (unsigned long long)(now_ms() - start));
	is(w.n.k->sq_head, 1, "the command was taken");
	pthread_create(&t, NULL, wait_long, &other);
	sleep_ms(200);
	is(submit_wait(&w.n, 1, 0), -EBUSY, "a second waiter is EBUSY");
	pthread_join(t, NULL);
	is(other.ret, 0, "the first waits for 100, of which one can come");
	is(native_reap(&w.n, NULL, 0), 0, "and it is there when it returns");
	world_end(&w);
}

/* The same wait as an io_uring command, which a reset must end. */
static void wait_ends_by_reset(void)
{
	struct world w = world_new(slow);
	struct nvq_sqe s = read_of(&w, 5);
	struct nvq_submit sub = { .wait = 1 };
	struct io_uring_sqe *sqe;
	struct io_uring r;
	struct end e;

	if (ring_open_raw(&r, 4, 0))
		die("no ring");
	native_stage(&w.n, &s);
	sqe = io_uring_get_sqe(&r);
	if (!sqe)
		die("the ring has no entry");
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = w.n.q.fd;
	sqe->cmd_op = NVQ_URING_SUBMIT;
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), &sub,
	       sizeof(sub));
	io_uring_submit(&r);
	is(ring_get(&r, &e, 100), -ETIME, "a wait by io_uring pends");
	reset(&w);
	is(ring_get(&r, &e, 8 * latency), 0, "a reset ends it");
	/* the drive may have answered while it was disabled */
	ok(e.res == -ESTALE || !e.res, "with ESTALE, or what came (%d)", e.res);
	is(ended(&w, 1), 1, "its command can be read");
	io_uring_queue_exit(&r);
	world_end(&w);
}

/*
 * Three times the time-out: Abort does not help, the queue is deleted and the
 * owner must agree on where the rings begin.
 */
static void times_out(void)
{
	struct world w;
	struct nvq_sqe s;
	uint64_t start;
	bool stopped;
	int res;

	is(file_write("1", "/sys/module/nvqueue/parameters/io_timeout"), 0,
	   "time-outs of 1 s");
	w = world_new(slow);
	is(file_write("30", "/sys/module/nvqueue/parameters/io_timeout"), 0,
	   "for this file");
	s = read_of(&w, 5);
	native_stage(&w.n, &s);
	start = now_ms();
	is(native_submit(&w.n), 1, "a command that takes longer");
	stopped = becomes(&w, NVQ_STATE_RESYNC, 4 * latency);
	ok(stopped && now_ms() - start > 1000,
	   "its queue is stopped after %llu ms",
	   (unsigned long long)(now_ms() - start));
	res = native_reap(&w.n, NULL, 1000) & 0x7ff;
	ok(!res || res == HOST_ABORTED || res == 0x07 || res == 0x08,
	   "the command ends, aborted or late (0x%x)", res);
	is(native_reap(&w.n, NULL, 2 * latency), -ETIME, "once");
	is(native_submit(&w.n), -ESTALE, "SUBMIT is ESTALE");
	is(resync(&w), 0, "the owner agrees");
	is(w.n.k->generation, 2, "on a new queue");
	is(w.n.k->submitted - w.n.k->completed, 0, "nothing was lost");
	world_end(&w);
	is(file_number("/sys/class/nvqueue/nvq%u/generation",
		       w.n.q.g.instance), 1, "the controller was not reset again");
}

int main(int argc, char **argv)
{
	if (argc != 4)
		die("usage: resync DEVICE SLOW LATENCY-MS");
	device = argv[1];
	slow = argv[2];
	latency = atoi(argv[3]);
	alarm(200);

	counters();
	over_a_reset();
	readonly_over_a_reset();
	submit_from_beside_resets();
	over_a_format();
	ids_stay_taken();
	head_ahead();
	waits();
	wait_ends_by_reset();
	times_out();
	return tap_done();
}
