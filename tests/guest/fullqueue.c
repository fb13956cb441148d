// SPDX-License-Identifier: MIT
/*
 * More commands than the queue has entries, on a controller bound with a tiny
 * io_queue_depth: every ring and ioctl waits for its turn, none is lost, none
 * ends twice, none fails, and the counters agree.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define NR	128
#define THREADS	6
#define EACH	60

static struct queue q;

/* The block at LBA i holds fill(..., i). */
static bool prepare(void)
{
	size_t lba = q.g.lba_size;
	char *buf = buffer_new(NR * lba);
	unsigned int i;
	bool good;

	for (i = 0; i < NR; i++)
		fill(buf + i * lba, lba, i);
	good = !sync_rw(&q, OP_WRITE, 0, NR, buf);
	buffer_free(buf, NR * lba);
	return good;
}

static void put_all(struct io_uring *r, char *buf)
{
	unsigned int i;

	memset(buf, 0x55, (size_t)NR * q.g.lba_size);
	for (i = 0; i < NR; i++) {
		struct nvme_uring_cmd c = rw_cmd(&q, OP_READ, i, 1,
						 buf + i * q.g.lba_size);

		ring_put(r, q.fd, NVME_URING_CMD_IO, &c, i);
	}
}

static bool get_all(struct io_uring *r, const char *buf)
{
	unsigned int i, seen[NR] = { 0 };
	struct end e;

	for (i = 0; i < NR; i++) {
		if (ring_get(r, &e, 20000)) {
			diag("%u of %u ended", i, NR);
			return false;
		}
		if (e.tag >= NR || seen[e.tag]++ || e.res) {
			diag("tag %llu res %d", (unsigned long long)e.tag,
			     e.res);
			return false;
		}
		if (differs(buf + e.tag * q.g.lba_size, q.g.lba_size,
			    e.tag) >= 0)
			return false;
	}
	return ring_get(r, &e, 20) != 0;
}

static void with_ring(unsigned int flags, const char *name)
{
	struct tap_loop l = { name, .count = 40, .floor = 3, .seconds = 4 };
	char *buf = buffer_new((size_t)NR * q.g.lba_size);
	struct io_uring r;

	ring_open(&r, NR, flags);
	while (tap_loop(&l)) {
		put_all(&r, buf);
		tap_loop_check(&l, io_uring_submit(&r) == NR &&
			       get_all(&r, buf), "round %u", l.done);
	}
	io_uring_queue_exit(&r);
	buffer_free(buf, (size_t)NR * q.g.lba_size);
}

static void *many_ioctls(void *arg)
{
	char *buf = buffer_new(q.g.lba_size);
	uint64_t rnd = (uintptr_t)arg;
	unsigned int i, lba, bad = 0;

	for (i = 0; i < EACH; i++) {
		lba = random_below(&rnd, NR);
		bad += sync_rw(&q, OP_READ, lba, 1, buf) ||
		       differs(buf, q.g.lba_size, lba) >= 0;
	}
	buffer_free(buf, q.g.lba_size);
	return (void *)(uintptr_t)bad;
}

static void with_ioctls(void)
{
	pthread_t t[THREADS];
	uintptr_t i, bad = 0;
	void *ret;

	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, many_ioctls, (void *)i);
	for (i = 0; i < THREADS; i++) {
		pthread_join(t[i], &ret);
		bad += (uintptr_t)ret;
	}
	is(bad, 0, "%u threads of ioctls", THREADS);
}

/*
 * A ring is left with the queue full; its commands end, and their slots are free
 * once our task work has run, which an ioctl that waits for a slot must let it.
 */
static void after_a_ring(void)
{
	char *buf = buffer_new(q.g.lba_size);
	struct nvme_uring_cmd c = rw_cmd(&q, OP_READ, 0, 1, buf);
	unsigned int i, good = 0;
	struct io_uring r;
	uint64_t k;

	c.timeout_ms = 5000;
	for (i = 0; i < 20; i++) {
		ring_open(&r, NR, IORING_SETUP_SINGLE_ISSUER |
			  IORING_SETUP_DEFER_TASKRUN);
		for (k = 0; k < q.g.depth - 1u; k++)
			ring_put(&r, q.fd, NVME_URING_CMD_IO, &c, k);
		io_uring_submit(&r);
		io_uring_queue_exit(&r);
		good += !sync_cmd(q.fd, &c, NULL);
	}
	is(good, 20, "an ioctl after a ring that was left with the queue full");
	buffer_free(buf, q.g.lba_size);
}

static void counters(const char *node)
{
	long long sub = file_number("/sys/class/nvqueue/%s/submitted", node);
	long long com = file_number("/sys/class/nvqueue/%s/completed", node);

	ok(sub > THREADS * EACH, "%s counted %lld commands", node, sub);
	is(com, sub, "and as many ends");
}

static void all(const char *node)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/%s", node);
	q = queue_open(path, O_RDWR);
	diag("%s: depth %u", node, q.g.depth);
	ok(q.g.depth <= 8, "%s has fewer entries than there are commands",
	   node);
	ok(prepare(), "data is written");
	with_ring(is_poll(&q) ? IORING_SETUP_IOPOLL : 0, "ring");
	with_ring((is_poll(&q) ? IORING_SETUP_IOPOLL : 0) |
		  IORING_SETUP_SQPOLL, "SQPOLL ring");
	with_ioctls();
	if (!is_poll(&q))
		after_a_ring();
	counters(node);
	queue_close(&q);
}

int main(void)
{
	tap_alarm(180);
	all("nvq0poll0");
	all("nvq0irq0");
	return tap_done();
}
