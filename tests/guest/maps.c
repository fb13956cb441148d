// SPDX-License-Identifier: MIT
/*
 * The two mappings of a queue file: read-only whatever one tries, of the given
 * size and place, private to the process, and true: the phase bit shows in user
 * space before the kernel was asked, and the kernel page counts.  And mmap(2),
 * which is called with the mm's lock held, beside registrations that take it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

static const char *path;
static struct queue q;
static char *cq, *kpage;

static int map_errno(int fd, size_t len, int prot, int flags, off_t off)
{
	void *p = mmap(NULL, len, prot, flags, fd, off);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, len);
	return 0;
}

static void protections(int fd, const char *mode)
{
	static const off_t offs[] = { NVQ_MMAP_CQ, NVQ_MMAP_KPAGE };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		size_t len = i ? q.g.kpage_bytes : q.g.cq_bytes;

		is(map_errno(fd, len, PROT_READ, MAP_SHARED, offs[i]), 0,
		   "%s, mapping %u: readable", mode, i);
		is(map_errno(fd, len, PROT_READ | PROT_WRITE, MAP_SHARED,
			     offs[i]), -EACCES, "%s, mapping %u: not writable",
		   mode, i);
		is(map_errno(fd, len, PROT_WRITE, MAP_SHARED, offs[i]),
		   -EACCES, "%s, mapping %u: not write-only", mode, i);
		is(map_errno(fd, len, PROT_READ, MAP_PRIVATE, offs[i]),
		   -EACCES, "%s, mapping %u: not private", mode, i);
		is(map_errno(fd, len, PROT_READ | PROT_EXEC, MAP_SHARED,
			     offs[i]), -EACCES, "%s, mapping %u: not for code",
		   mode, i);
	}
}

static void places(void)
{
	int fd = q.fd, r = PROT_READ, s = MAP_SHARED;

	is(map_errno(fd, q.g.cq_bytes + PAGE, r, s, NVQ_MMAP_CQ), -EINVAL,
	   "a page more of the CQ is EINVAL");
	is(map_errno(fd, q.g.kpage_bytes + PAGE, r, s, NVQ_MMAP_KPAGE),
	   -EINVAL, "a page more of the kernel page is EINVAL");
	is(map_errno(fd, PAGE, r, s, PAGE), -EINVAL, "offset 4096 is EINVAL");
	is(map_errno(fd, PAGE, r, s, NVQ_MMAP_KPAGE - PAGE), -EINVAL,
	   "before the kernel page is EINVAL");
	is(map_errno(fd, PAGE, r, s, NVQ_MMAP_KPAGE + PAGE), -EINVAL,
	   "behind the kernel page is EINVAL");
	is(map_errno(fd, PAGE, r, s, 0x7ffffffffffff000), -EINVAL,
	   "the end of the world is EINVAL");
}

static void writable_later(void)
{
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	struct nvme_uring_cmd c;
	struct iovec iov = { cq, PAGE };
	struct io_uring r;
	uint64_t zero = 0;

	is(mprotect(cq, PAGE, PROT_READ | PROT_WRITE) ? -errno : 0, -EACCES,
	   "mprotect to writable is EACCES");
	is(mprotect(kpage, PAGE, PROT_READ | PROT_WRITE) ? -errno : 0,
	   -EACCES, "of the kernel page too");
	is(mprotect(kpage, PAGE, PROT_READ | PROT_EXEC) ? -errno : 0,
	   -EACCES, "mprotect to executable is EACCES");
	ok(mremap(kpage, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED,
	   "mremap cannot grow it");
	ok(pwrite(mem, &zero, 8, (off_t)(uintptr_t)kpage) < 0,
	   "/proc/self/mem cannot write it");
	close(mem);
	c = rw_cmd(&q, OP_READ, 0, 1, kpage);
	is(sync_cmd(q.fd, &c, NULL), -EFAULT, "no command reads into it");
	ring_open(&r, 4, 0);
	ok(io_uring_register_buffers(&r, &iov, 1) < 0,
	   "io_uring does not register it");
	io_uring_queue_exit(&r);
}

static int read_byte(void *p)
{
	return *(volatile char *)p & 0;
}

static void forked(void)
{
	is(in_child(read_byte, cq), -SIGSEGV, "a child has no CQ");
	is(in_child(read_byte, kpage), -SIGSEGV, "a child has no kernel page");
	is(read_byte(cq) | read_byte(kpage), 0, "the parent still has both");
}

static bool cq_shows(uint32_t head)
{
	const volatile struct cqe *e = (struct cqe *)cq +
				       (head & NVQ_CQ_HEAD_INDEX);

	return (e->status & 1) == !!(head & NVQ_CQ_HEAD_PHASE);
}

/* Enough commands to go round the ring more than once. */
static void phase_in_user_space(void)
{
	volatile struct nvq_kpage *k = (struct nvq_kpage *)kpage;
	unsigned int i, rounds = q.g.depth * 5 / 2, early = 0, late = 0;
	unsigned int unreaped = 0, polled = 0;
	uint64_t before = k->completed;
	char *buf = buffer_new(q.g.lba_size);
	struct pollfd pfd = { .fd = q.fd, .events = POLLIN };
	struct io_uring r;
	struct end e;

	ring_open_for(&r, 4, &q);
	is(poll(&pfd, 1, 0), 0, "poll(2) sees nothing when idle");
	for (i = 0; i < rounds; i++) {
		struct nvme_uring_cmd c = rw_cmd(&q, OP_READ, 0, 1, buf);
		uint64_t end = now_ms() + 5000;
		uint32_t head = k->cq_head;

		early += cq_shows(head);
		ring_put(&r, q.fd, NVME_URING_CMD_IO, &c, i);
		io_uring_submit(&r);
		/* a pure load from our own memory */
		while (!cq_shows(head) && now_ms() < end)
			;
		late += !cq_shows(head);
		/* liburing reaps as it submits to a polled ring, if it can */
		if (is_poll(&q) && k->completed == before + i) {
			unreaped++;
			polled += poll(&pfd, 1, 0) == 1 &&
				  pfd.revents == POLLIN;
		}
		if (ring_get(&r, &e, 5000) || e.res || e.tag != i)
			break;
	}
	is(i, rounds, "every command ends");
	if (is_poll(&q))
		ok(unreaped && polled == unreaped,
		   "poll(2) sees completions nobody reaped: %u of %u", polled,
		   unreaped);
	is(early, 0, "no entry shows before its command was sent");
	is(late, 0, "every entry shows without the kernel's help");
	is(k->completed - before, rounds, "the kernel page counts them");
	is(k->submitted, k->completed, "and as many were submitted");
	is(k->state, NVQ_STATE_LIVE, "the queue is live");
	is(poll(&pfd, 1, 0), 0, "poll(2) sees nothing afterwards");
	io_uring_queue_exit(&r);
	buffer_free(buf, q.g.lba_size);
}

static int try_open(void)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Last of all: the mappings outlive the descriptor and hold the queue. */
static void unmapped_in_parts(void)
{
	size_t half = q.g.cq_bytes / 2;
	volatile struct nvq_kpage *k = (struct nvq_kpage *)kpage;

	is(munmap(cq, half), 0, "half of the CQ is unmapped");
	is(read_byte(cq + half), 0, "the other half is still there");
	queue_close(&q);
	is(k->state, NVQ_STATE_LIVE, "after close the kernel page still is");
	is(try_open(), -EBUSY, "and the queue is still owned");
	munmap(cq + half, half);
	is(try_open(), -EBUSY, "by the last mapping too");
	munmap(kpage, PAGE);
	is(try_open(), 0, "and free without it");
}

static void read_only_descriptor(void)
{
	queue_close(&q);
	q = queue_open(path, O_RDONLY);
	protections(q.fd, "O_RDONLY");
	queue_close(&q);
}

static atomic_bool stop;

static void *register_on_and_on(void *arg)
{
	char *buf = arg;
	intptr_t n = 0;
	int i;

	while (!stop) {
		i = native_register(q.fd, buf, 64 * PAGE, 0);
		if (i < 0 || native_unregister(q.fd, i))
			return NULL;
		n++;
	}
	return (void *)n;
}

/* Either takes locks that the other holds; both get through. */
static void mapped_while_registering(void)
{
	char *buf = buffer_new(64 * PAGE);
	unsigned int i, bad = 0;
	pthread_t thread;
	void *n;

	q = queue_open(path, O_RDWR);
	stop = false;
	pthread_create(&thread, NULL, register_on_and_on, buf);
	for (i = 0; i < 2000; i++)
		bad += !!map_errno(q.fd, PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED, NVQ_MMAP_UPAGE);
	stop = true;
	pthread_join(thread, &n);
	ok(!bad && n, "2000 mappings beside %ld registrations",
	   (long)(intptr_t)n);
	queue_close(&q);
	buffer_free(buf, 64 * PAGE);
}

static void all(const char *p)
{
	path = p;
	diag("%s", path);
	q = queue_open(path, O_RDWR);
	protections(q.fd, "O_RDWR");
	places();
	read_only_descriptor();
	q = queue_open(path, O_RDWR);
	cq = mmap(NULL, q.g.cq_bytes, PROT_READ, MAP_SHARED, q.fd,
		  NVQ_MMAP_CQ);
	kpage = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, q.fd, NVQ_MMAP_KPAGE);
	if (cq == MAP_FAILED || kpage == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	writable_later();
	forked();
	phase_in_user_space();
	unmapped_in_parts();
	mapped_while_registering();
}

int main(void)
{
	tap_alarm(120);
	all("/dev/nvq0poll0");
	all("/dev/nvq0irq0");
	return tap_done();
}
