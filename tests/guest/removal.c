// SPDX-License-Identifier: MIT
/*
 * The drive goes while its queues are in use: removed from the bus or unbound
 * from the driver, with commands in flight on a poll and an irq queue, mapped,
 * with administration going on, or with nothing but a mapping left.  Every
 * command ends once, later ones are ENODEV, the mapping stays readable; then
 * the drive is bound again and works.
 *
 * usage: removal NVQ BDF SECONDS FLOOR	(NVQ: the tool)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define NR	128
#define HOST_ABORTED	0x371

static const char *tool, *bdf;
static atomic_bool stop;

struct user {
	struct queue q;
	struct io_uring r;
	char *buf;
	volatile char *cq;
	volatile struct nvq_kpage *k;
	pthread_t thread;
	int res;
};

static const char *wrong;

static bool expect(bool good, const char *what)
{
	if (!good && !wrong)
		wrong = what;
	return good;
}

static void user_open(struct user *u, const char *node)
{
	u->q = queue_open(node, O_RDWR);
	u->cq = mmap(NULL, u->q.g.cq_bytes, PROT_READ, MAP_SHARED, u->q.fd,
		     NVQ_MMAP_CQ);
	u->k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, u->q.fd,
		    NVQ_MMAP_KPAGE);
	u->buf = buffer_new(NR * PAGE);
	ring_open_for(&u->r, NR, &u->q);
}

static void user_submit(struct user *u)
{
	unsigned int i;

	for (i = 0; i < NR; i++) {
		struct nvme_uring_cmd c = rw_cmd(&u->q, i & 1 ? OP_WRITE :
						 OP_READ, i * 8, 8,
						 u->buf + i * PAGE);

		ring_put(&u->r, u->q.fd, NVME_URING_CMD_IO, &c, i);
	}
	expect(io_uring_submit(&u->r) == NR, "submission");
}

static void user_collect(struct user *u)
{
	unsigned int i, ends[NR] = { 0 };
	struct end e;

	for (i = 0; i < NR; i++) {
		if (!expect(!ring_get(&u->r, &e, 30000), "a command lost"))
			return;
		expect(e.tag < NR && !ends[e.tag]++, "a command ended twice");
		expect(!e.res || e.res == HOST_ABORTED || e.res == -ENODEV,
		       "a command's status");
	}
	expect(ring_get(&u->r, &e, 10) == -ETIME, "an end too many");
}

/* An ioctl that waits, or is told at once. */
static void *waiting_ioctl(void *arg)
{
	struct user *u = arg;
	char *buf = buffer_new(PAGE);

	do {
		u->res = sync_rw(&u->q, OP_READ, 0, 1, buf);
	} while (!u->res && !stop);
	buffer_free(buf, PAGE);
	return NULL;
}

/* Identify without end, on the controller's node. */
static void *administration(void *arg)
{
	int fd = *(int *)arg, err;
	char *buf = buffer_new(PAGE);
	struct nvme_passthru_cmd c = { .opcode = 0x06, .cdw10 = 1,
		.addr = (uintptr_t)buf, .data_len = 4096 };

	do {
		err = admin_cmd(fd, &c);
	} while (!err && !stop);
	expect(err == -ENODEV || err == HOST_ABORTED || stop,
	       "an admin command's end");
	buffer_free(buf, PAGE);
	return NULL;
}

static void user_is_dead(struct user *u)
{
	struct nvme_uring_cmd c = rw_cmd(&u->q, OP_READ, 0, 1, u->buf);
	struct pollfd p = { .fd = u->q.fd, .events = POLLIN };
	struct nvq_geometry g;

	expect(ring_run(&u->r, u->q.fd, NVME_URING_CMD_IO, &c).res == -ENODEV,
	       "a ring's command afterwards is ENODEV");
	expect(sync_cmd(u->q.fd, &c, NULL) == -ENODEV,
	       "an ioctl afterwards is ENODEV");
	expect(ioctl(u->q.fd, NVQ_IOC_GEOMETRY, &g) < 0 && errno == ENODEV,
	       "the geometry is ENODEV");
	expect(poll(&p, 1, 0) == 1 && p.revents & POLLHUP, "POLLHUP");
	expect(u->k->state == NVQ_STATE_DEAD, "the kernel page says dead");
}

/* Reads all of both mappings: no SIGBUS. */
static void user_reads(struct user *u)
{
	size_t i;
	int sum = 0;

	for (i = 0; i < u->q.g.cq_bytes; i += 16)
		sum += u->cq[i];
	expect(u->k->submitted == u->k->completed, "ends are counted");
	(void)sum;
}

static void user_close(struct user *u, bool mapping_last)
{
	io_uring_queue_exit(&u->r);
	if (mapping_last)
		queue_close(&u->q);
	user_reads(u);
	munmap((void *)u->k, PAGE);
	munmap((void *)u->cq, u->q.g.cq_bytes);
	if (!mapping_last)
		queue_close(&u->q);
	buffer_free(u->buf, NR * PAGE);
}

static bool drive_goes(bool remove)
{
	if (remove)
		return !file_write("1", "/sys/bus/pci/devices/%s/remove", bdf);
	return !file_write(bdf, "/sys/bus/pci/drivers/nvqueue/unbind");
}

static bool drive_comes(bool removed)
{
	char cmd[300];

	if (removed && file_write("1", "/sys/bus/pci/rescan"))
		return false;
	snprintf(cmd, sizeof(cmd), "%s bind %s >/dev/null", tool, bdf);
	fflush(stdout);
	return !system(cmd);
}

static void round_of(bool remove, bool mapping_last)
{
	struct user u[2] = { 0 };
	pthread_t admin;
	unsigned int i;
	int ctrl = open("/dev/nvq0", O_RDWR | O_CLOEXEC);

	stop = false;
	user_open(&u[0], "/dev/nvq0poll0");
	user_open(&u[1], "/dev/nvq0irq0");
	pthread_create(&admin, NULL, administration, &ctrl);
	for (i = 0; i < 2; i++) {
		user_submit(&u[i]);
		pthread_create(&u[i].thread, NULL, waiting_ioctl, &u[i]);
	}
	expect(drive_goes(remove), "the drive goes");
	for (i = 0; i < 2; i++) {
		user_collect(&u[i]);
		user_is_dead(&u[i]);
		pthread_join(u[i].thread, NULL);
		expect(u[i].res == -ENODEV || u[i].res == HOST_ABORTED,
		       "the waiting ioctl's end");
		user_reads(&u[i]);
		user_close(&u[i], mapping_last);
	}
	pthread_join(admin, NULL);
	close(ctrl);
}

/* Removal while a mapping is all that is left of the owner. */
static void only_a_mapping(bool remove)
{
	struct user u = { 0 };

	user_open(&u, "/dev/nvq0poll0");
	io_uring_queue_exit(&u.r);
	queue_close(&u.q);
	expect(drive_goes(remove), "the drive goes");
	expect(u.k->state == NVQ_STATE_DEAD, "the kernel page says dead");
	user_reads(&u);
	munmap((void *)u.k, PAGE);
	munmap((void *)u.cq, u.q.g.cq_bytes);
	buffer_free(u.buf, NR * PAGE);
}

static void works(void)
{
	struct user u = { 0 };

	user_open(&u, "/dev/nvq0irq0");
	user_submit(&u);
	user_collect(&u);
	expect(u.k->state == NVQ_STATE_LIVE, "the queue is live");
	user_close(&u, true);
}

int main(int argc, char **argv)
{
	struct tap_loop l = { "removal in use, and back", .count = 60 };

	if (argc < 5)
		die("usage: removal NVQ BDF SECONDS FLOOR");
	tool = argv[1];
	bdf = argv[2];
	l.seconds = atoi(argv[3]);
	l.floor = atoi(argv[4]);
	while (tap_loop(&l)) {
		bool remove = l.done & 1;

		if (l.done % 6 >= 4)
			only_a_mapping(remove);
		else
			round_of(remove, l.done & 2);
		if (expect(drive_comes(remove), "the drive comes back"))
			works();
		tap_loop_check(&l, !wrong, "round %u (%s): wrong: %s", l.done,
			       remove ? "remove" : "unbind", wrong);
	}
	return tap_done();
}
