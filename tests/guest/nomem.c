// SPDX-License-Identifier: MIT
/*
 * Allocations that fail: each way into the driver is gone again and again, with
 * the first allocation on it failing, then the second and so on until none is
 * left to fail.  It works or says that there was no memory, leaves nothing behind,
 * and works the next time.
 *
 *	nomem kernel		whatever is allocated in this task, by the kernel's
 *				fault injection (/proc/thread-self/fail-nth)
 *	nomem driver BDF	what the driver itself allocates, workers included,
 *				by the module's parameter fail_alloc
 *
 * The first needs a kernel with fault injection, switched on by nomem.test.  Binding
 * and resetting are among the ways of the second alone: in the first, the kernel's
 * own ACPI and interrupt code does not survive a binding (6.1 uses what it freed,
 * and forgets to look whether it has a descriptor), and a reset is a worker's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

#define NODE		"/dev/nvq0irq0"
#define LEN		(256 * PAGE)
#define ROUNDS		2000

#define FAIL_ALLOC	"/sys/module/nvqueue/parameters/fail_alloc"
#define DRIVER		"/sys/bus/pci/drivers/nvqueue/"

static char *buf;
static const char *bdf;		/* of "driver" */
static int fail_fd;

/* The @n-th allocation from here fails; 0: none. */
static void fail_nth(unsigned int n)
{
	char s[16];
	int len = snprintf(s, sizeof(s), "%u", n);

	if (pwrite(fail_fd, s, len, 0) != len)
		die("fail-nth: %s", strerror(errno));
}

/* How many were still to go. */
static unsigned int fail_left(void)
{
	char s[16] = "";

	if (pread(fail_fd, s, sizeof(s) - 1, 0) <= 0)
		die("fail-nth: %s", strerror(errno));
	return atoi(s);
}

struct way {
	const char *name;
	int (*before)(void);	/* without failures */
	int (*go)(void);	/* 0, or a negative errno */
	void (*after)(void);
};

static bool forgivable(int err)
{
	return !err || err == -ENOMEM || err == -EAGAIN;
}

/* Ends as one test: all failures met, none of them left a mark. */
static void walk(const struct way *w)
{
	unsigned int n, left = 0, refused = 0;
	int err = 0;

	for (n = 1; n <= ROUNDS && !left && forgivable(err); n++) {
		if (w->before && w->before()) {
			ok(false, "%s: round %u cannot begin", w->name, n);
			return;
		}
		fail_nth(n);
		err = w->go();
		left = fail_left();
		fail_nth(0);
		refused += !!err;
		if (w->after)
			w->after();
	}
	ok(left && !err && n > 2, "%s: %u allocations failed in turn, %u times it was refused: %s",
	   w->name, n - 2, refused, strerror(-err));
}

/* ---- the ways in ----------------------------------------------------------- */

static struct queue q = { .fd = -1 };
static struct native n;
static struct io_uring ring;

static int open_it(void)
{
	q.fd = open(NODE, O_RDWR | O_CLOEXEC);
	return q.fd < 0 ? -errno : 0;
}

static void close_it(void)
{
	if (q.fd >= 0)
		queue_close(&q);
}

static int fresh_queue(void)
{
	q = queue_open(NODE, O_RDWR);
	return 0;
}

static void *mapped;

static int map_staging(void)
{
	mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, q.fd,
		      NVQ_MMAP_UPAGE);
	return mapped == MAP_FAILED ? -errno : 0;
}

/* Not before failures are off: an unmapping that fails keeps the queue. */
static void unmap_staging(void)
{
	if (mapped != MAP_FAILED)
		munmap(mapped, PAGE);
	close_it();
}

static int register_it(void)
{
	int i = native_register(q.fd, buf, LEN, 0);

	return i < 0 ? i : native_unregister(q.fd, i);
}

/* Unaligned, so that it takes a list, and bounce pages with PRPs. */
static int read_it(void)
{
	return sync_rw(&q, OP_READ, 0, LEN / 2 / q.g.lba_size, buf + 512);
}

static int read_vector(void)
{
	struct iovec v[64];
	struct nvme_passthru_cmd64 p;
	struct nvme_uring_cmd c = rw_cmd(&q, OP_READ, 0, 64 * 1024 /
					 q.g.lba_size, v);
	unsigned int i;
	int ret;

	for (i = 0; i < 64; i++)
		v[i] = (struct iovec){ buf + i * PAGE + 512, 1024 };
	p = sync_form(&c);
	p.data_len = 64;
	ret = ioctl(q.fd, NVME_IOCTL_IO64_CMD_VEC, &p);
	return ret < 0 ? -errno : ret;
}

static int fresh_ring(void)
{
	q = queue_open(NODE, O_RDWR);
	ring_open_for(&ring, 8, &q);
	return 0;
}

static int read_by_ring(void)
{
	struct nvme_uring_cmd c = rw_cmd(&q, OP_READ, 0, 64 * 1024 /
					 q.g.lba_size, buf + 512);
	struct end e;
	int ret;

	ring_put(&ring, q.fd, NVME_URING_CMD_IO, &c, 1);
	ret = io_uring_submit(&ring);
	if (ret < 0)
		return ret;
	return ring_get(&ring, &e, 60000) ? -ETIME : e.res;
}

static void close_ring(void)
{
	io_uring_queue_exit(&ring);
	close_it();
}

static int fresh_native(void)
{
	n = native_open(NODE);
	return 0;
}

static int submit_from(void)
{
	struct nvq_sqe s = { .opcode = OP_FLUSH, .nsid = n.q.g.nsid };
	struct nvq_submit_from f = { .sqes = (uintptr_t)&s, .nr = 1 };

	return ioctl(n.q.fd, NVQ_IOC_SUBMIT_FROM, &f) < 0 ? -errno :
	       native_reap(&n, NULL, 60000);
}

static void close_native(void)
{
	native_close(&n);
}

static int identify(void)
{
	struct nvme_passthru_cmd c = { .opcode = 0x06, .cdw10 = 1,
		.addr = (uintptr_t)buf, .data_len = 4096 };
	int fd = open("/dev/nvq0", O_RDWR | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = admin_cmd(fd, &c);
	close(fd);
	return err;
}

static int rescan(void)
{
	int fd = open("/dev/nvq0", O_RDWR | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = ioctl(fd, NVME_IOCTL_RESCAN) ? -errno : 0;
	close(fd);
	return err;
}

static int unbind_it(void)
{
	return file_write(bdf, DRIVER "unbind");
}

static int bind_it(void)
{
	return file_write(bdf, DRIVER "bind");
}

static int unbind_if_bound(void)
{
	char path[128];

	snprintf(path, sizeof(path), DRIVER "%s", bdf);
	return access(path, F_OK) ? 0 : unbind_it();
}

static int reset(void)
{
	return file_write("1", "/sys/class/nvqueue/nvq0/reset_controller");
}

/* If it could not be brought up it is dead, and this is the way back. */
static void bind_if_dead(void)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	else if (unbind_it() || bind_it())
		die("%s cannot be bound again", bdf);
}

static bool works(void)
{
	bool good;

	q = queue_open(NODE, O_RDWR);
	fill(buf, PAGE, 7);
	good = !sync_rw(&q, OP_WRITE, 8, PAGE / q.g.lba_size, buf);
	memset(buf, 0, PAGE);
	good = good && !sync_rw(&q, OP_READ, 8, PAGE / q.g.lba_size, buf) &&
	       differs(buf, PAGE, 7) < 0;
	queue_close(&q);
	return good;
}

/* Where nothing of ours is allocated, "driver" has nothing to do. */
static const struct way ways[] = {
	{ "open", NULL, open_it, close_it },
	{ "mmap", fresh_queue, map_staging, unmap_staging },
	{ "register", fresh_queue, register_it, close_it },
	{ "read", fresh_queue, read_it, close_it },
	{ "read of a vector", fresh_queue, read_vector, close_it },
	{ "read by a ring", fresh_ring, read_by_ring, close_ring },
	{ "identify", NULL, identify, NULL },
	{ "rescan", NULL, rescan, NULL },
}, kernel_ways[] = {
	{ "submit from memory", fresh_native, submit_from, close_native },
}, driver_ways[] = {
	{ "reset", NULL, reset, bind_if_dead },
	{ "bind", unbind_if_bound, bind_it, NULL },
};

static void walk_all(const struct way *w, size_t nr)
{
	for (; nr; nr--, w++) {
		walk(w);
		ok(works(), "%s: and afterwards a queue works", w->name);
	}
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "driver"))
		bdf = argv[2];
	else if (argc != 2 || strcmp(argv[1], "kernel"))
		die("usage: nomem kernel | driver BDF");
	tap_alarm(600);
	buf = buffer_new(LEN);
	memset(buf, 1, LEN);
	fail_fd = open(bdf ? FAIL_ALLOC : "/proc/thread-self/fail-nth",
		       O_RDWR | O_CLOEXEC);
	if (fail_fd < 0)
		die("no allocation can be made to fail: %s", strerror(errno));
	walk_all(ways, sizeof(ways) / sizeof(*ways));
	if (bdf)
		walk_all(driver_ways, sizeof(driver_ways) / sizeof(*driver_ways));
	else
		walk_all(kernel_ways, sizeof(kernel_ways) / sizeof(*kernel_ways));
	return tap_done();
}
