// SPDX-License-Identifier: MIT
/*
 * Commands that must not reach the drive, or not as they are: each has its
 * errno on every way in, and not a byte around the buffer changes.  Then what
 * an unprivileged owner may send, what a read-only descriptor may, and what the
 * controller's node refuses to everybody.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define GUARD	0xa7
#define BUF	(64 * PAGE)
#define OFFSET	(16 * PAGE)	/* of the data in the buffer */
#define NLB	4

static struct queue q;
static char *buf, *data, *readonly;

struct bad {
	const char *name;
	int want;
	struct nvme_uring_cmd c;
};

static struct nvme_uring_cmd read4(void)
{
	return rw_cmd(&q, OP_READ, 0, NLB, data);
}

static struct bad *next(struct bad *b, const char *name, int want, uint8_t op)
{
	b->name = name;
	b->want = want;
	b->c = read4();
	b->c.opcode = op;
	return b;
}

static unsigned int bad_fields(struct bad *b)
{
	struct bad *first = b;

	next(b++, "nsid 0", -EINVAL, OP_READ)->c.nsid = 0;
	next(b++, "the next nsid", -EINVAL, OP_READ)->c.nsid++;
	next(b++, "nsid of all", -EINVAL, OP_READ)->c.nsid = ~0U;
	next(b++, "nsid of all, write", -EINVAL, OP_WRITE)->c.nsid = ~0U;
	next(b++, "fused, first", -EINVAL, OP_READ)->c.flags = 1;
	next(b++, "fused, second", -EINVAL, OP_READ)->c.flags = 2;
	next(b++, "PSDT 1", -EINVAL, OP_READ)->c.flags = 0x40;
	next(b++, "PSDT 2", -EINVAL, OP_READ)->c.flags = 0x80;
	next(b++, "every flag", -EINVAL, OP_READ)->c.flags = 0xff;
	next(b++, "metadata pointer", -EINVAL, OP_READ)->c.metadata =
		(uintptr_t)buf;
	next(b++, "metadata length", -EINVAL, OP_READ)->c.metadata_len = 8;
	next(b++, "one byte short", -EINVAL, OP_READ)->c.data_len--;
	next(b++, "one LBA short", -EINVAL, OP_READ)->c.data_len -=
		q.g.lba_size;
	next(b++, "no length", -EINVAL, OP_READ)->c.data_len = 0;
	next(b++, "no length, write", -EINVAL, OP_WRITE)->c.data_len = 0;
	next(b++, "65536 LBAs", -EINVAL, OP_READ)->c.cdw12 = 0xffff;
	next(b++, "256 ranges in 16 bytes", -EINVAL, OP_DSM)->c.cdw10 = 0xff;
	b[-1].c.data_len = 16;
	next(b++, "copy of 128 ranges in 32 bytes", -EINVAL, OP_COPY)->c.cdw12 =
		127;
	b[-1].c.data_len = 32;
	next(b++, "copy of a long range in 32 bytes", -EINVAL, OP_COPY)
		->c.cdw12 = 1 << 8;
	b[-1].c.data_len = 32;
	next(b++, "flush with data", -EINVAL, OP_FLUSH);
	next(b++, "zeroes with data", -EINVAL, OP_ZEROES);
	next(b++, "zone report of 16 GiB", -EINVAL, 0x7a)->c.cdw12 = ~0U;
	next(b++, "zone report, one dword short", -EINVAL, 0x7a);
	b[-1].c.cdw12 = b[-1].c.data_len / 4;
	next(b++, "unlisted, both directions", -EINVAL, 0x83);
	return b - first;
}

static unsigned int bad_memory(struct bad *b)
{
	struct bad *first = b;

	next(b++, "NULL", -EINVAL, OP_READ)->c.addr = 0;
	next(b++, "address 8", -EFAULT, OP_READ)->c.addr = 8;
	next(b++, "a kernel address", -EFAULT, OP_READ)->c.addr =
		0xffffffff81000000;
	next(b++, "a kernel address, write", -EFAULT, OP_WRITE)->c.addr =
		0xffffffff81000000;
	next(b++, "a wrapping address", -EFAULT, OP_READ)->c.addr = -PAGE / 2;
	next(b++, "over the end of the buffer", -EFAULT, OP_READ)->c.addr =
		(uintptr_t)buf + BUF - 512;
	next(b++, "into read-only memory", -EFAULT, OP_READ)->c.addr =
		(uintptr_t)readonly;
	next(b++, "from read-only memory", 0, OP_WRITE)->c.addr =
		(uintptr_t)readonly;
	next(b++, "a good one", 0, OP_READ);
	return b - first;
}

static void each_way(const struct bad *b, struct io_uring *r)
{
	struct end e;
	int got;

	memset(buf, GUARD, BUF);
	got = sync_cmd(q.fd, &b->c, NULL);
	e = ring_run(r, q.fd, NVME_URING_CMD_IO, &b->c);
	is(got, b->want, "ioctl, %s", b->name);
	is(e.res, b->want, "ring, %s", b->name);
	if (b->want)
		ok(all_bytes(buf, BUF, GUARD), "nothing moved, %s", b->name);
	else
		ok(all_bytes(buf, OFFSET, GUARD) &&
		   all_bytes(data + b->c.data_len,
			     BUF - OFFSET - b->c.data_len, GUARD),
		   "nothing moved beside the buffer, %s", b->name);
}

static void fields(const char *path)
{
	struct bad b[64];
	struct io_uring r;
	unsigned int i, n;

	q = queue_open(path, O_RDWR);
	diag("%s", path);
	ring_open_for(&r, 4, &q);
	n = bad_fields(b);
	n += bad_memory(b + n);
	for (i = 0; i < n; i++)
		each_way(&b[i], &r);
	io_uring_queue_exit(&r);
	queue_close(&q);
}

/* ---- rights --------------------------------------------------------------- */

static int send_op(uint8_t op)
{
	struct nvme_uring_cmd c = read4();

	c.opcode = op;
	switch (op) {
	case OP_FLUSH:
	case OP_ZEROES:
	case OP_VERIFY:
	case 0x04:
	case 0x79:
		c.data_len = 0;
		break;
	case OP_DSM:
		memset(data, 0, 16);
		c.data_len = 16;
		c.cdw10 = 0;
		break;
	}
	return sync_cmd(q.fd, &c, NULL);
}

static const uint8_t writers[] = {
	OP_WRITE, OP_ZEROES, OP_DSM, OP_COPY, 0x04, 0x79, 0x7d
};
static const uint8_t unlisted[] = { 0x0d, 0x11, 0x0e, 0x15, 0x80, 0x81, 0xfe };

/* In a child; the number of the first thing that is wrong. */
#define EXPECT(cond) do { if (!(cond)) return __LINE__ % 200 + 1; } while (0)

static int nobody_read_only(void *arg)
{
	struct io_uring r;
	struct nvme_uring_cmd c;
	unsigned int i;

	drop_rights();
	q = queue_open(arg, O_RDONLY);
	EXPECT(send_op(OP_READ) == 0);
	EXPECT(send_op(OP_COMPARE) == 0);
	EXPECT(send_op(OP_FLUSH) == 0);
	for (i = 0; i < sizeof(writers); i++)
		EXPECT(send_op(writers[i]) == -EACCES);
	for (i = 0; i < sizeof(unlisted); i++)
		EXPECT(send_op(unlisted[i]) == -EACCES);
	ring_open_for(&r, 4, &q);
	c = read4();
	EXPECT(ring_run(&r, q.fd, NVME_URING_CMD_IO, &c).res == 0);
	c.opcode = OP_WRITE;
	EXPECT(ring_run(&r, q.fd, NVME_URING_CMD_IO, &c).res == -EACCES);
	ring_put(&r, q.fd, NVME_URING_CMD_IO, &c, 1)->flags = IOSQE_ASYNC;
	return 0;
}

static int nobody_writes(void *arg)
{
	unsigned int i;

	drop_rights();
	q = queue_open(arg, O_RDWR);
	EXPECT(send_op(OP_READ) == 0);
	EXPECT(send_op(OP_WRITE) == 0);
	EXPECT(send_op(OP_ZEROES) == 0);
	for (i = 0; i < sizeof(unlisted); i++)
		EXPECT(send_op(unlisted[i]) == -EACCES);
	return 0;
}

static int admin_op(int fd, uint8_t op, uint32_t nsid, uint32_t cdw10)
{
	struct nvme_passthru_cmd c = {
		.opcode = op,
		.nsid = nsid,
		.addr = (uintptr_t)data,
		.data_len = op == 0x06 || op == 0x02 ? 4096 : 0,
		.cdw10 = cdw10,
	};

	return admin_cmd(fd, &c);
}

static int nobody_administers(void *arg)
{
	int fd;

	drop_rights();
	fd = open("/dev/nvq0", O_RDWR);
	EXPECT(fd >= 0);
	EXPECT(admin_op(fd, 0x06, 0, 1) == 0);		/* identify */
	EXPECT(admin_op(fd, 0x02, ~0U, 0x7f0002) == -EACCES);	/* log */
	EXPECT(admin_op(fd, 0x0a, 0, 7) == -EACCES);	/* get features */
	EXPECT(admin_op(fd, 0x09, 0, 6) == -EACCES);	/* set features */
	EXPECT(admin_op(fd, 0x80, 1, 0) == -EACCES);	/* format */
	EXPECT(admin_op(fd, 0x84, 0, 2) == -EACCES);	/* sanitize */
	EXPECT(ioctl(fd, NVME_IOCTL_RESET) == -1 && errno == EACCES);
	EXPECT(ioctl(fd, NVME_IOCTL_RESCAN) == -1 && errno == EACCES);
	EXPECT(file_write("1", "/sys/class/nvqueue/nvq0/reset_controller") ==
	       -EACCES);
	close(fd);
	q = queue_open(arg, O_RDWR);
	EXPECT(admin_op(q.fd, 0x06, q.g.nsid, 0) == 0);
	EXPECT(admin_op(q.fd, 0x02, ~0U, 0x7f0002) == -EACCES);
	return 0;
}

static int nobody_opens(void *arg)
{
	drop_rights();
	return open(arg, O_RDONLY) < 0 && errno == EACCES ? 0 : 1;
}

static void nobody(const char *node)
{
	char path[32];

	snprintf(path, sizeof(path), "%s", node);
	is(in_child(nobody_opens, path), 0, "%s: nobody has no node", path);
	if (chmod(path, 0666) || chmod("/dev/nvq0", 0666))
		die("chmod");
	is(in_child(nobody_read_only, path), 0,
	   "%s: nobody, O_RDONLY, reads and changes nothing", path);
	is(in_child(nobody_writes, path), 0,
	   "%s: nobody, O_RDWR, writes but sends nothing unlisted", path);
	is(in_child(nobody_administers, path), 0,
	   "%s: nobody administers nothing", path);
	chmod(path, 0600);
	chmod("/dev/nvq0", 0600);
}

/* An administrator's: passed on in SGLs, answered by the device. */
static void root(const char *path)
{
	q = queue_open(path, O_RDONLY);
	is(send_op(OP_WRITE), 0, "%s: root writes, O_RDONLY", path);
	queue_close(&q);
	q = queue_open(path, O_RDWR);
	/* "Invalid Command Opcode", do not retry */
	is(send_op(0x81), 0x4001, "%s: root's unlisted write reaches the drive",
	   path);
	is(send_op(0x82), 0x4001, "%s: root's unlisted read too", path);
	memset(buf, GUARD, BUF);
	is(send_op(0xfe), 0x4001, "%s: and one more", path);
	is(admin_op(q.fd, 0x02, ~0U, 0x7f0002), -EACCES,
	   "%s: no log page, even for root", path);
	is(admin_op(q.fd, 0x80, 1, 0), -EACCES, "%s: no format", path);
	queue_close(&q);
}

/* ---- the controller's node ------------------------------------------------ */

static void controller(void)
{
	static const struct { uint8_t op; uint32_t cdw10; const char *name; }
	t[] = {
		{ 0x00, 1 << 16 | 1, "Delete SQ" },
		{ 0x01, 7 << 16 | 7, "Create SQ" },
		{ 0x04, 1 << 16 | 1, "Delete CQ" },
		{ 0x05, 7 << 16 | 7, "Create CQ" },
		{ 0x0c, 0, "Asynchronous Event Request" },
		{ 0x7c, 0, "Doorbell Buffer Config" },
		{ 0x09, 7, "Number of Queues" },
		{ 0x09, 7 | 1U << 31, "Number of Queues, saved" },
		{ 0x09, 11, "Asynchronous Event Configuration" },
		{ 0x09, 13, "Host Memory Buffer" },
	};
	int fd = open("/dev/nvq0", O_RDWR | O_CLOEXEC);
	struct nvme_passthru_cmd c;
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		is(admin_op(fd, t[i].op, 0, t[i].cdw10), -EACCES,
		   "root is refused %s", t[i].name);
	c = (struct nvme_passthru_cmd){ .opcode = 0x06, .cdw10 = 1,
		.addr = (uintptr_t)data, .data_len = 100 };
	memset(buf, GUARD, BUF);
	is(admin_cmd(fd, &c), 0, "Identify with a short buffer");
	ok(all_bytes(buf, OFFSET, GUARD) && data[20] != (char)GUARD &&
	   all_bytes(data + 100, PAGE, GUARD), "fills it and no more");
	c = (struct nvme_passthru_cmd){ .opcode = 0x02, .nsid = ~0U,
		.addr = (uintptr_t)data, .data_len = 64, .cdw10 = 0x3ff0002 };
	memset(buf, GUARD, BUF);
	is(admin_cmd(fd, &c), 0, "a log page longer than its buffer");
	ok(all_bytes(buf, OFFSET, GUARD) && all_bytes(data + 64, PAGE, GUARD),
	   "fills it and no more");
	/* moves 8 bytes; with an IOMMU the log would show where to */
	c = (struct nvme_passthru_cmd){ .opcode = 0x0a, .cdw10 = 0x0e };
	ok(admin_cmd(fd, &c) >= 0, "a feature's data without a buffer");
	c.flags = 0x40;
	is(admin_cmd(fd, &c), -EINVAL, "flags are EINVAL");
	c = (struct nvme_passthru_cmd){ .opcode = 0x06, .cdw10 = 1,
		.addr = 8, .data_len = 4096 };
	is(admin_cmd(fd, &c), -EFAULT, "a bad address is EFAULT");
	c.data_len = 2 << 20;
	is(admin_cmd(fd, &c), -EINVAL, "2 MiB are EINVAL");
	is(admin_op(fd, 0x0a, 0, 7), 0, "Get Features is allowed");
	close(fd);
}

int main(void)
{
	tap_alarm(120);
	buf = buffer_new(BUF);
	data = buf + OFFSET;
	readonly = buffer_new(PAGE);
	mprotect(readonly, PAGE, PROT_READ);
	fields("/dev/nvq0poll0");
	fields("/dev/nvq0irq0");
	nobody("/dev/nvq0poll0");
	nobody("/dev/nvq0irq0");
	root("/dev/nvq0poll0");
	root("/dev/nvq0irq0");
	controller();
	return tap_done();
}
