// SPDX-License-Identifier: MIT
/*
 * The namespace shrinks and grows under open files: natively and by standard
 * commands, on a poll and on an irq queue.  Files go stale and move no byte until
 * their owner has read the geometry; then commands end at the new end, and what
 * reaches beyond it changes nothing.
 *
 * QEMU resizes nothing, so the driver is made to believe it (claim_nsze, see
 * driver/fault.h).  Hence a standard command is checked at the drive's own end: that
 * is whose business LBA ranges are there.
 *
 * And another controller of the subsystem (DEVICE, with nvme.ko) formats it to blocks
 * eight times as large.  QEMU's drive says nothing of that, so that commands go out as
 * if nothing had happened, and move eight times as much, to where their buffer is not.
 *
 * usage: resize [DEVICE LBAF]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

#define GUARD		0xa7
#define NLB		8	/* a page of 512 byte blocks */
#define OUT_OF_RANGE	0x80

struct user {
	const char *node;
	bool native;
	struct world w;		/* .n.q alone if standard; data in its second page */
	volatile struct nvq_kpage *k;
};

static struct user users[] = {
	{ .node = "/dev/nvq0poll0", .native = true },
	{ .node = "/dev/nvq0irq0", .native = true },
	{ .node = "/dev/nvq0poll1" },
	{ .node = "/dev/nvq0irq1" },
};
#define NR_USERS	(sizeof(users) / sizeof(users[0]))

static uint64_t full;

static void user_open(struct user *u)
{
	if (u->native) {
		u->w = world_new(u->node);
		u->k = u->w.n.k;
		return;
	}
	u->w.n.q = queue_open(u->node, O_RDWR);
	u->w.buf = buffer_new(BUF);
	u->k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, u->w.n.q.fd,
		    NVQ_MMAP_KPAGE);
	if (u->k == MAP_FAILED)
		die("%s: no kernel page", u->node);
}

static int read_at(struct user *u, uint64_t slba)
{
	struct nvq_sqe s;
	int res;

	memset(u->w.buf, GUARD, BUF);
	if (!u->native) {
		res = sync_rw(&u->w.n.q, OP_READ, slba, NLB, u->w.buf + PAGE);
		/* without the bit that says not to retry */
		return res > 0 ? res & 0x7ff : res;
	}
	s = native_rw(&u->w.n, OP_READ, 1, slba, NLB, u->w.index, PAGE);
	return native_run(&u->w.n, &s);
}

/* The read went well, into its page and nowhere else. */
static bool reads(struct user *u, uint64_t slba)
{
	return !read_at(u, slba) && !all_bytes(u->w.buf + PAGE, PAGE, GUARD) &&
	       all_bytes(u->w.buf, PAGE, GUARD) &&
	       all_bytes(u->w.buf + 2 * PAGE, BUF - 2 * PAGE, GUARD);
}

/* It failed in this way, and not a byte has come. */
static bool refused(struct user *u, uint64_t slba, int how)
{
	int res = read_at(u, slba);

	if (res != how)
		diag("%s: LBA %llu: %d", u->node, (unsigned long long)slba,
		     res);
	return res == how && all_bytes(u->w.buf, BUF, GUARD);
}

static void resize(uint64_t nsze)
{
	int fd = open("/dev/nvq0", O_RDWR | O_CLOEXEC);
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)nsze);
	is(file_write(text, "/sys/module/nvqueue/parameters/claim_nsze"), 0,
	   "the namespace has %s LBAs (0: all)", text);
	is(ioctl(fd, NVME_IOCTL_RESCAN), 0, "the driver looks");
	close(fd);
}

static void agrees(struct user *u, uint64_t nsze)
{
	is(u->k->state, NVQ_STATE_STALE, "%s: stale", u->node);
	ok(refused(u, 0, -ESTALE), "%s: no command goes out", u->node);
	is(ioctl(u->w.n.q.fd, NVQ_IOC_GEOMETRY, &u->w.n.q.g), 0,
	   "%s: the geometry is read", u->node);
	ok(u->w.n.q.g.nsze == nsze, "%s: it is the new one", u->node);
	is(u->k->state, NVQ_STATE_LIVE, "%s: live", u->node);
	ok(reads(u, 0) && reads(u, nsze - NLB), "%s: from begin to end",
	   u->node);
	if (u->native)
		ok(refused(u, nsze - NLB + 1, -EINVAL) &&
		   refused(u, nsze, -EINVAL) && refused(u, full, -EINVAL) &&
		   refused(u, -1ull, -EINVAL), "%s: not beyond it", u->node);
	else
		ok(refused(u, full - NLB + 1, OUT_OF_RANGE) &&
		   refused(u, full, OUT_OF_RANGE),
		   "%s: the drive refuses what is beyond its own", u->node);
}

/* ---- by another controller --------------------------------------------------- */

/* The buffer but for its second page is as it was. */
static bool beside(const struct user *u)
{
	return all_bytes(u->w.buf, PAGE, GUARD) &&
	       all_bytes(u->w.buf + 2 * PAGE, BUF - 2 * PAGE, GUARD);
}

static int format_by(const char *device, unsigned int lbaf)
{
	struct nvme_passthru_cmd c = {
		.opcode = 0x80,
		.nsid = 1,
		.cdw10 = lbaf,
	};
	int fd = open(device, O_RDWR | O_CLOEXEC), res;

	if (fd < 0)
		die("%s: %s", device, strerror(errno));
	res = admin_cmd(fd, &c);
	close(fd);
	return res;
}

/* Before the driver has heard of it: stale, or out to the drive. */
static void unaware(struct user *u)
{
	int first = read_at(u, 0), last;
	bool good = beside(u);

	last = read_at(u, full - NLB);
	diag("%s: %s; the first blocks %d, the last ones %d", u->node,
	     u->k->state == NVQ_STATE_STALE ? "stale" : "unaware", first,
	     last);
	ok(good && beside(u), "%s: no byte beside the buffer", u->node);
	ok(last, "%s: what is beyond the end now fails", u->node);
}

/* Then: its blocks have another size. */
static void aware(struct user *u, unsigned int lba_size)
{
	is(u->k->state, NVQ_STATE_STALE, "%s: stale", u->node);
	ok(read_at(u, 0) < 0 && all_bytes(u->w.buf, BUF, GUARD),
	   "%s: no command goes out", u->node);
	is(ioctl(u->w.n.q.fd, NVQ_IOC_GEOMETRY, &u->w.n.q.g), 0,
	   "%s: the geometry is read", u->node);
	is(u->w.n.q.g.lba_size, lba_size, "%s: its blocks", u->node);
}

static void elsewhere(const char *device, unsigned int lbaf)
{
	unsigned int i;

	is(format_by(device, lbaf), 0, "another controller formats");
	for (i = 0; i < NR_USERS; i++)
		unaware(&users[i]);
	resize(0);
	for (i = 0; i < NR_USERS; i++)
		aware(&users[i], 4096);
	for (i = 0; i < NR_USERS && users[i].native; i++)
		ok(refused(&users[i], 0, -EINVAL),
		   "%s: eight of them are more than its buffer has",
		   users[i].node);
	is(format_by(device, 0), 0, "and back");
	resize(0);
	for (i = 0; i < NR_USERS; i++) {
		aware(&users[i], 512);
		ok(reads(&users[i], full - NLB), "%s: the last blocks",
		   users[i].node);
	}
}

static void here(void)
{
	unsigned int i;

	resize(full / 2);
	for (i = 0; i < NR_USERS; i++)
		agrees(&users[i], full / 2);
	resize(full / 2 + 1);
	for (i = 0; i < NR_USERS; i++)
		agrees(&users[i], full / 2 + 1);
	resize(0);
	for (i = 0; i < NR_USERS; i++)
		agrees(&users[i], full);
}

int main(int argc, char **argv)
{
	unsigned int i;

	tap_alarm(100);
	for (i = 0; i < NR_USERS; i++)
		user_open(&users[i]);
	full = users[0].w.n.q.g.nsze;
	for (i = 0; i < NR_USERS; i++)
		ok(reads(&users[i], full - NLB), "%s: the last blocks",
		   users[i].node);
	if (argc == 3)
		elsewhere(argv[1], atoi(argv[2]));
	else
		here();
	return tap_done();
}
