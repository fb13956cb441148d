// SPDX-License-Identifier: MIT
/*
 * A drive that answers too late: bound with io_timeout=1, its backend takes
 * LATENCY ms.  Each command ends once, aborted or with the drive's own late
 * answer; the queue is made anew and works; its neighbour sees none of it.
 *
 * QEMU deletes a queue by waiting for its backend, so the guest stands still
 * for a while: times here are generous.
 *
 * usage: timeouts LATENCY-MS
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define NR	16
#define HOST_ABORTED	0x371

static unsigned int latency;

/*
 * Abort requested, aborted with its queue, aborted by the host (path error); or
 * success, as QEMU waits for its backend when it deletes a queue.
 */
static bool aborted(int res)
{
	res &= 0x7ff;
	return !res || res == 0x07 || res == 0x08 || res == HOST_ABORTED;
}

/* ---- the neighbour: a command with time, on another queue ------------------ */

struct neighbour {
	const char *node;
	struct queue q;
	int res;
	pthread_t thread;
};

static void *slow_command(void *arg)
{
	struct neighbour *n = arg;
	char *buf = buffer_new(PAGE);
	struct nvme_uring_cmd c = rw_cmd(&n->q, OP_READ, 0, 1, buf);

	c.timeout_ms = 120000;
	n->res = sync_cmd(n->q.fd, &c, NULL);
	buffer_free(buf, PAGE);
	return NULL;
}

static void neighbour_start(struct neighbour *n)
{
	n->q = queue_open(n->node, O_RDWR);
	pthread_create(&n->thread, NULL, slow_command, n);
}

static void neighbour_end(struct neighbour *n)
{
	pthread_join(n->thread, NULL);
	is(n->res, 0, "the neighbour's command succeeds");
	ioctl(n->q.fd, NVQ_IOC_GEOMETRY, &n->q.g);
	is(n->q.g.generation, 1, "on the queue it began with");
	queue_close(&n->q);
}

/* ---- a ring's commands ----------------------------------------------------- */

static bool get_all(struct io_uring *r, unsigned int *ends)
{
	unsigned int i, good = 0;
	struct end e;

	for (i = 0; i < NR; i++) {
		if (ring_get(r, &e, 60000) || e.tag >= NR || ends[e.tag]++)
			return false;
		good += aborted(e.res);
		if (!aborted(e.res))
			diag("command %llu: 0x%x", (unsigned long long)e.tag,
			     e.res);
	}
	/* and nothing comes behind */
	return good == NR && ring_get(r, &e, 2 * latency) == -ETIME;
}

static void put_all(struct io_uring *r, struct queue *q, char *buf)
{
	unsigned int i;

	for (i = 0; i < NR; i++) {
		struct nvme_uring_cmd c = rw_cmd(q, i & 1 ? OP_WRITE : OP_READ,
						 i * 8, 8, buf + i * PAGE);

		ring_put(r, q->fd, NVME_URING_CMD_IO, &c, i);
	}
	io_uring_submit(r);
}

/* The ends come before the new queue does. */
static void wait_live(volatile struct nvq_kpage *k, unsigned int generation)
{
	uint64_t end = now_ms() + 4 * latency;

	while ((k->generation != generation || k->state != NVQ_STATE_LIVE) &&
	       now_ms() < end)
		sleep_ms(10);
}

static void works_again(struct queue *q, volatile struct nvq_kpage *k)
{
	char *buf = buffer_new(PAGE);
	struct nvme_uring_cmd c = rw_cmd(q, OP_READ, 0, 1, buf);

	is(k->state, NVQ_STATE_LIVE, "the queue is live");
	is(k->completed, k->submitted, "every command is accounted for");
	c.timeout_ms = 60000;
	is(sync_cmd(q->fd, &c, NULL), 0, "a command with time succeeds");
	buffer_free(buf, PAGE);
}

static void ring_times_out(const char *node, const char *other)
{
	struct neighbour n = { .node = other };
	struct queue q = queue_open(node, O_RDWR);
	volatile struct nvq_kpage *k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED,
					    q.fd, NVQ_MMAP_KPAGE);
	char *buf = buffer_new(NR * PAGE);
	unsigned int ends[NR] = { 0 }, before = k->generation;
	uint64_t begun = now_ms();
	struct io_uring r;

	diag("%s", node);
	neighbour_start(&n);
	ring_open_for(&r, NR, &q);
	put_all(&r, &q, buf);
	ok(get_all(&r, ends) && now_ms() - begun < 8 * latency,
	   "every command ends once, and in time");
	wait_live(k, before + 1);
	is(k->generation, before + 1, "the queue was made anew");
	works_again(&q, k);
	neighbour_end(&n);
	io_uring_queue_exit(&r);
	munmap((void *)k, PAGE);
	queue_close(&q);
	buffer_free(buf, NR * PAGE);
}

static void ioctl_times_out(const char *node)
{
	struct queue q = queue_open(node, O_RDWR);
	char *buf = buffer_new(PAGE);
	uint64_t begun = now_ms();
	int res;

	res = sync_rw(&q, OP_READ, 0, 1, buf);
	ok(aborted(res) && now_ms() - begun < 4 * latency,
	   "%s: an ioctl ends (0x%x, %llu ms)", node, res,
	   (unsigned long long)(now_ms() - begun));
	queue_close(&q);
	buffer_free(buf, PAGE);
}

/* Nobody polls; the process goes on to something else, or away. */
static void nobody_polls(const char *node)
{
	struct queue q = queue_open(node, O_RDWR);
	char *buf = buffer_new(NR * PAGE);
	struct io_uring r;
	uint64_t begun;
	int fd;

	ring_open_for(&r, NR, &q);
	put_all(&r, &q, buf);
	begun = now_ms();
	io_uring_queue_exit(&r);
	queue_close(&q);
	do {
		fd = open(node, O_RDWR | O_CLOEXEC);
	} while (fd < 0 && errno == EBUSY && now_ms() < begun + 60000);
	ok(fd >= 0, "%s: left alone, free after %llu ms", node,
	   (unsigned long long)(now_ms() - begun));
	close(fd);
	buffer_free(buf, NR * PAGE);
}

int main(int argc, char **argv)
{
	tap_alarm(280);
	latency = argc > 1 ? atoi(argv[1]) : 4000;
	ring_times_out("/dev/nvq0poll0", "/dev/nvq0irq1");
	ring_times_out("/dev/nvq0irq0", "/dev/nvq0poll1");
	ioctl_times_out("/dev/nvq0poll0");
	ioctl_times_out("/dev/nvq0irq0");
	nobody_polls("/dev/nvq0poll0");
	nobody_polls("/dev/nvq0irq0");
	is(file_number("/sys/class/nvqueue/nvq0/generation"), 0,
	   "the controller was never reset");
	return tap_done();
}
