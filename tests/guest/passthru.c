// SPDX-License-Identifier: MIT
/*
 * The ioctls of passthrough programs, and what the drive says: every form of
 * the command gives the same data and the same status, and the status is what
 * the stock driver gives for the same drive model.
 *
 * usage: passthru [STOCK]	(/dev/ng0n1, of an equal drive)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define IDENTIFY	0x06
#define NR_CASES	16

static struct queue q;
static char *buf;

static int cmd32(const struct nvme_uring_cmd *c, uint32_t *result)
{
	struct nvme_passthru_cmd64 p = sync_form(c);
	struct nvme_passthru_cmd s;
	int ret;

	memcpy(&s, &p, sizeof(s));
	s.result = 0xdeadbeef;
	ret = ioctl(q.fd, NVME_IOCTL_IO_CMD, &s);
	*result = s.result;
	return ret < 0 ? -errno : ret;
}

static int vec(const struct nvme_uring_cmd *c, uint64_t *result)
{
	struct nvme_passthru_cmd64 p = sync_form(c);
	struct iovec iov[2] = {
		{ buf, 100 }, { buf + 200, c->data_len - 100 }
	};
	int ret;

	p.addr = (uintptr_t)iov;
	p.vec_cnt = 2;
	p.result = ~0ULL;
	ret = ioctl(q.fd, NVME_IOCTL_IO64_CMD_VEC, &p);
	*result = p.result;
	return ret < 0 ? -errno : ret;
}

static int submit_io(uint8_t op, uint64_t slba, unsigned int nlb)
{
	struct nvme_user_io io = {
		.opcode = op,
		.nblocks = nlb - 1,
		.addr = (uintptr_t)buf,
		.slba = slba,
	};
	int ret = ioctl(q.fd, NVME_IOCTL_SUBMIT_IO, &io);

	return ret < 0 ? -errno : ret;
}

static void forms(void)
{
	size_t len = 8UL * q.g.lba_size;
	struct nvme_uring_cmd w = rw_cmd(&q, OP_WRITE, 16, 8, buf);
	struct nvme_uring_cmd r = rw_cmd(&q, OP_READ, 16, 8, buf);
	uint32_t res32;
	uint64_t res64;

	is(ioctl(q.fd, NVME_IOCTL_ID), q.g.nsid, "NVME_IOCTL_ID");
	fill(buf, len, 1);
	is(cmd32(&w, &res32), 0, "NVME_IOCTL_IO_CMD writes");
	is(res32, 0, "and gives the result");
	memset(buf, 0, len);
	is(sync_cmd(q.fd, &r, &res64), 0, "NVME_IOCTL_IO64_CMD reads");
	ok(differs(buf, len, 1) < 0 && !res64, "what was written");
	memset(buf, 0, len + 200);
	is(vec(&r, &res64), 0, "NVME_IOCTL_IO64_CMD_VEC reads");
	memmove(buf + 100, buf + 200, len - 100);
	ok(differs(buf, len, 1) < 0 && !res64, "in pieces");
	fill(buf, len, 2);
	is(submit_io(OP_WRITE, 24, 8), 0, "NVME_IOCTL_SUBMIT_IO writes");
	memset(buf, 0, len);
	is(submit_io(OP_READ, 24, 8), 0, "and reads");
	ok(differs(buf, len, 2) < 0, "what was written");
	is(submit_io(OP_COMPARE, 24, 8), 0, "and compares");
	buf[len - 1] ^= 1;
	ok(submit_io(OP_COMPARE, 24, 8) > 0, "and sees a difference");
	is(submit_io(OP_DSM, 24, 8), -EINVAL, "and does nothing else");
	is(ioctl(q.fd, 0x1234, 0) < 0 ? -errno : 0, -ENOTTY,
	   "an unknown ioctl is ENOTTY");
	is(ioctl(q.fd, NVME_IOCTL_IO_CMD, 8) < 0 ? -errno : 0, -EFAULT,
	   "a bad pointer is EFAULT");
}

static int identify(uint32_t cns, uint32_t nsid, void *to)
{
	struct nvme_passthru_cmd c = {
		.opcode = IDENTIFY,
		.nsid = nsid,
		.addr = (uintptr_t)to,
		.data_len = 4096,
		.cdw10 = cns,
	};

	return admin_cmd(q.fd, &c);
}

static void identifies(void)
{
	uint64_t nsze;

	memset(buf, 0, 4096);
	is(identify(0, q.g.nsid, buf), 0, "Identify Namespace");
	memcpy(&nsze, buf, 8);
	is(nsze, q.g.nsze, "says what the geometry says");
	is(identify(1, 0, buf), 0, "Identify Controller");
	is(identify(2, 0, buf), -EACCES, "the list of namespaces is refused");
	is(identify(0, q.g.nsid + 1, buf), -EACCES,
	   "another namespace is refused");
	is(identify(0, q.g.nsid, NULL), -EFAULT, "a bad address is EFAULT");
}

/* Things the drive has an opinion on. */
static unsigned int cases(const struct queue *o, struct nvme_uring_cmd *c)
{
	uint64_t end = o->g.nsze;
	unsigned int n = 0;

	c[n++] = rw_cmd(o, OP_READ, end, 1, buf);
	c[n++] = rw_cmd(o, OP_READ, end - 1, 2, buf);
	c[n++] = rw_cmd(o, OP_READ, ~0ULL, 1, buf);
	c[n++] = rw_cmd(o, OP_WRITE, end, 8, buf);
	c[n++] = rw_cmd(o, OP_COMPARE, 0, 1, buf);
	c[n++] = (struct nvme_uring_cmd){ .opcode = OP_FLUSH,
					  .nsid = o->g.nsid };
	c[n] = rw_cmd(o, OP_ZEROES, end, 8, NULL);
	c[n++].data_len = 0;
	c[n] = rw_cmd(o, OP_ZEROES, 0, 8, NULL);
	c[n++].data_len = 0;
	c[n] = rw_cmd(o, OP_VERIFY, end, 8, NULL);
	c[n++].data_len = 0;
	c[n] = rw_cmd(o, 0x04, 0, 1, NULL);	/* write uncorrectable */
	c[n++].data_len = 0;
	c[n++] = (struct nvme_uring_cmd){
		.opcode = OP_DSM, .nsid = o->g.nsid, .addr = (uintptr_t)buf,
		.data_len = 16, .cdw11 = 4,
	};
	/* zone management, on a namespace without zones */
	c[n++] = (struct nvme_uring_cmd){
		.opcode = 0x79, .nsid = o->g.nsid, .cdw13 = 2,
	};
	return n;
}

/* What each way of sending it says. */
static void one_status(struct io_uring *r, unsigned int i,
		       const struct nvme_uring_cmd *c, int stock)
{
	struct end e;
	int sync;

	fill(buf, 4096, 99);
	if (c->opcode == OP_DSM)
		memset(buf, 0, 16);
	sync = sync_cmd(q.fd, c, NULL);
	e = ring_run(r, q.fd, NVME_URING_CMD_IO, c);
	is(e.res, sync, "case %u, opcode 0x%02x: ring and ioctl agree", i,
	   c->opcode);
	if (stock < 0)
		skip("no stock drive", "and the stock driver");
	else
		is(sync, stock, "and the stock driver (0x%x)", stock);
}

static void statuses(const char *stock)
{
	struct nvme_uring_cmd c[NR_CASES];
	struct queue s = { .fd = -1 };
	struct io_uring r;
	unsigned int i, n = cases(&q, c);
	int want = -1;

	if (stock)
		s = queue_open_as_is(stock, O_RDWR);
	ring_open_for(&r, 4, &q);
	for (i = 0; i < n; i++) {
		fill(buf, 4096, 99);
		if (c[i].opcode == OP_DSM)
			memset(buf, 0, 16);
		if (stock)
			want = sync_cmd(s.fd, &c[i], NULL);
		one_status(&r, i, &c[i], want);
		if (!i)
			is(sync_cmd(q.fd, &c[0], NULL), 0x4080,
			   "LBA out of range, do not retry");
	}
	io_uring_queue_exit(&r);
	if (stock)
		close(s.fd);
}

/* The geometry, from three places. */
static void sysfs_is(const char *dir, const char *name, long long want)
{
	is(file_number("/sys/class/nvqueue/%s/%s", dir, name), want,
	   "sysfs %s/%s", dir, name);
}

static void geometry(const char *node)
{
	struct queue c = queue_open_as_is("/dev/nvq0", O_RDONLY);
	struct nvq_geometry bad = { .nsid = 77 };

	c.g.nsid = q.g.nsid;
	is(ioctl(c.fd, NVQ_IOC_GEOMETRY, &c.g), 0, "the controller's geometry");
	is(q.g.abi, NVQ_ABI_VERSION, "ABI");
	ok(c.g.depth == q.g.depth && c.g.nsze == q.g.nsze &&
	   c.g.lba_size == q.g.lba_size && c.g.mdts == q.g.mdts &&
	   c.g.flags == q.g.flags && c.g.nr_poll == q.g.nr_poll &&
	   c.g.cq_bytes == q.g.cq_bytes && c.g.sqe_size == q.g.sqe_size,
	   "is the queue's");
	is(c.g.qid, 0, "but for the queue id");
	sysfs_is(node, "qid", q.g.qid);
	sysfs_is(node, "depth", q.g.depth);
	sysfs_is(node, "nsid", q.g.nsid);
	sysfs_is(node, "lba_size", q.g.lba_size);
	sysfs_is(node, "nsze", q.g.nsze);
	sysfs_is(node, "capacity", q.g.nsze * q.g.lba_size);
	sysfs_is(node, "mdts", q.g.mdts);
	sysfs_is(node, "numa_node", q.g.numa_node);
	sysfs_is(node, "owner", getpid());
	sysfs_is("nvq0", "nr_poll", q.g.nr_poll);
	sysfs_is("nvq0", "nr_irq", q.g.nr_irq);
	is(ioctl(c.fd, NVQ_IOC_GEOMETRY, &bad) < 0 ? -errno : 0, -EINVAL,
	   "no such namespace is EINVAL");
	is(ioctl(c.fd, NVQ_IOC_GEOMETRY, 8) < 0 ? -errno : 0, -EFAULT,
	   "a bad pointer is EFAULT");
	close(c.fd);
}

static void all(const char *node, const char *stock)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/%s", node);
	diag("%s", node);
	q = queue_open(path, O_RDWR);
	forms();
	identifies();
	statuses(stock);
	geometry(node);
	queue_close(&q);
}

int main(int argc, char **argv)
{
	tap_alarm(120);
	buf = buffer_new(1 << 16);
	all("nvq0poll0", argc > 1 ? argv[1] : NULL);
	all("nvq0irq0", argc > 1 ? argv[1] : NULL);
	return tap_done();
}
