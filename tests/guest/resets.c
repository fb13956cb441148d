// SPDX-License-Identifier: MIT
/*
 * Resets of the controller under verified I/O, on a poll and an irq queue at
 * once, by rings and ioctls: every command ends once, with success or aborted
 * by the host, what was read is right, and I/O goes on afterwards.
 *
 * usage: resets SECONDS FLOOR
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define NR	64
#define NLB	8
#define HOST_ABORTED	0x371

struct worker {
	const char *node;
	bool ring;
	uint64_t base;		/* its blocks begin here */
	struct queue q;
	pthread_t thread;
	atomic_ulong done, aborted;
	const char *volatile wrong;
};

static atomic_bool stop;
static struct queue shared[2];

static bool verdict(struct worker *w, int res)
{
	if (!res)
		atomic_fetch_add(&w->done, 1);
	else if (res == HOST_ABORTED)
		atomic_fetch_add(&w->aborted, 1);
	else
		w->wrong = "a command ended otherwise";
	return !res;
}

/* Block i of the worker's always holds the same, so that a lost write is none. */
static uint64_t seed_of(const struct worker *w, unsigned int i)
{
	return w->base + i + 7;
}

static void check(struct worker *w, unsigned int i, bool write, int res,
		  const char *buf)
{
	size_t len = NLB * w->q.g.lba_size;

	if (verdict(w, res) && !write && differs(buf, len, seed_of(w, i)) >= 0)
		w->wrong = "wrong data";
}

static void put(struct worker *w, struct io_uring *r, unsigned int i,
		bool write, char *buf)
{
	size_t len = NLB * w->q.g.lba_size;
	struct nvme_uring_cmd c = rw_cmd(&w->q, write ? OP_WRITE : OP_READ,
					 w->base + i * NLB, NLB, buf);

	if (write)
		fill(buf, len, seed_of(w, i));
	else
		memset(buf, 0x55, len);
	ring_put(r, w->q.fd, NVME_URING_CMD_IO, &c, i | (write ? NR : 0));
}

static void ring_load(struct worker *w, char *buf, size_t len)
{
	unsigned int i, flying = 0;
	uint64_t rnd = w->base;
	struct io_uring r;
	struct end e;

	ring_open_for(&r, NR, &w->q);
	for (i = 0; i < NR; i++, flying++)
		put(w, &r, i, false, buf + i * len);
	io_uring_submit(&r);
	while (flying && !w->wrong) {
		if (ring_get(&r, &e, 30000)) {
			w->wrong = "a command never ended";
			break;
		}
		i = e.tag % NR;
		check(w, i, e.tag >= NR, e.res, buf + i * len);
		flying--;
		if (stop)
			continue;
		put(w, &r, i, random_below(&rnd, 2), buf + i * len);
		io_uring_submit(&r);
		flying++;
	}
	io_uring_queue_exit(&r);
}

static void ioctl_load(struct worker *w, char *buf, size_t len)
{
	uint64_t rnd = w->base;
	unsigned int i;
	bool write;
	int res;

	while (!stop && !w->wrong) {
		i = random_below(&rnd, NR);
		write = random_below(&rnd, 2);
		if (write)
			fill(buf, len, seed_of(w, i));
		res = sync_rw(&w->q, write ? OP_WRITE : OP_READ,
			      w->base + i * NLB, NLB, buf);
		check(w, i, write, res, buf);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	size_t len = NLB * w->q.g.lba_size;
	char *buf = buffer_new(NR * len);

	if (w->ring)
		ring_load(w, buf, len);
	else
		ioctl_load(w, buf, len);
	buffer_free(buf, NR * len);
	return NULL;
}

static void prepare(struct worker *w)
{
	size_t len = NLB * w->q.g.lba_size;
	char *buf = buffer_new(len);
	unsigned int i;

	for (i = 0; i < NR; i++) {
		fill(buf, len, seed_of(w, i));
		if (sync_rw(&w->q, OP_WRITE, w->base + i * NLB, NLB, buf))
			die("cannot write");
	}
	buffer_free(buf, len);
}

static unsigned long done(const struct worker *w, unsigned int nr)
{
	unsigned long least = ~0UL, n;

	while (nr--) {
		n = atomic_load(&w[nr].done);
		least = n < least ? n : least;
	}
	return least;
}

/* Everybody gets something done again after a reset. */
static bool goes_on(struct worker *w, unsigned int nr)
{
	unsigned long before[8];
	uint64_t end = now_ms() + 20000;
	unsigned int i;

	for (i = 0; i < nr; i++)
		before[i] = atomic_load(&w[i].done);
	for (i = 0; i < nr; i++)
		while (atomic_load(&w[i].done) < before[i] + 8) {
			if (w[i].wrong || now_ms() > end)
				return false;
			sleep_ms(2);
		}
	return true;
}

int main(int argc, char **argv)
{
	struct tap_loop l = { "resets under I/O", .count = 100 };
	struct worker w[4] = {
		{ .node = "/dev/nvq0poll0", .ring = true, .base = 0 },
		{ .node = "/dev/nvq0irq0", .ring = true, .base = 1024 },
		{ .node = "/dev/nvq0poll0", .base = 2048 },
		{ .node = "/dev/nvq0irq0", .base = 3072 },
	};
	unsigned long aborts = 0, generation;
	uint64_t rnd = 3;
	unsigned int i;

	generation = file_number("/sys/class/nvqueue/nvq0/generation");
	l.seconds = argc > 1 ? atoi(argv[1]) : 15;
	l.floor = argc > 2 ? atoi(argv[2]) : 5;
	for (i = 0; i < 4; i++) {
		if (i < 2)
			shared[i] = queue_open(w[i].node, O_RDWR);
		w[i].q = shared[i % 2];
		prepare(&w[i]);
	}
	for (i = 0; i < 4; i++)
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	while (tap_loop(&l)) {
		int err;

		tap_loop_check(&l, goes_on(w, 4), "round %u: no progress",
			       l.done);
		usleep(random_below(&rnd, 30000));
		err = file_write("1", "/sys/class/nvqueue/nvq0/"
				 "reset_controller");
		tap_loop_check(&l, !err, "round %u: reset: %d", l.done, err);
	}
	ok(goes_on(w, 4), "I/O goes on after the last");
	stop = true;
	for (i = 0; i < 4; i++) {
		pthread_join(w[i].thread, NULL);
		ok(!w[i].wrong, "%s, %s: %lu ended well, %lu aborted by host%s%s",
		   w[i].node, w[i].ring ? "ring" : "ioctls",
		   atomic_load(&w[i].done), atomic_load(&w[i].aborted),
		   w[i].wrong ? ", " : "", w[i].wrong ? w[i].wrong : "");
		aborts += atomic_load(&w[i].aborted);
	}
	ok(aborts && done(w, 4), "resets met commands in flight");
	is(file_number("/sys/class/nvqueue/nvq0/generation"),
	   generation + l.done, "each reset was one");
	return tap_done();
}
