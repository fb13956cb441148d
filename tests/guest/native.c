// SPDX-License-Identifier: MIT
/* The native path for the guest test programs: see native.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native.h"

static void *map(int fd, size_t len, int prot, off_t offset, const char *what)
{
	void *p = mmap(NULL, len, prot, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		die("mmap of the %s: %s", what, strerror(errno));
	return p;
}

static size_t staging_bytes(const struct native *n)
{
	size_t bytes = (n->mask + 1ul) * sizeof(*n->sq);

	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

struct native native_attach(struct queue q)
{
	struct native n = { .q = q, .phase = 1 };
	uint32_t entries = 1;

	while (entries < n.q.g.depth)
		entries <<= 1;
	n.mask = entries - 1;
	n.cq = map(n.q.fd, n.q.g.cq_bytes, PROT_READ, NVQ_MMAP_CQ, "CQ");
	n.k = map(n.q.fd, PAGE, PROT_READ, NVQ_MMAP_KPAGE, "kernel page");
	n.sq = map(n.q.fd, staging_bytes(&n), PROT_READ | PROT_WRITE,
		   NVQ_MMAP_SQ, "staging SQ");
	n.u = map(n.q.fd, PAGE, PROT_READ | PROT_WRITE, NVQ_MMAP_UPAGE,
		  "user page");
	return n;
}

struct native native_open(const char *path)
{
	return native_attach(queue_open(path, O_RDWR));
}

void native_close(struct native *n)
{
	munmap((void *)n->cq, n->q.g.cq_bytes);
	munmap((void *)n->k, PAGE);
	munmap(n->sq, staging_bytes(n));
	munmap((void *)n->u, PAGE);
	queue_close(&n->q);
}

int native_register(int fd, void *addr, size_t len, uint32_t flags)
{
	struct nvq_register r = {
		.addr = (uintptr_t)addr,
		.len = len,
		.flags = flags,
	};

	return ioctl(fd, NVQ_IOC_REGISTER, &r) ? -errno : (int)r.index;
}

int native_unregister(int fd, uint32_t index)
{
	return ioctl(fd, NVQ_IOC_UNREGISTER, &index) ? -errno : 0;
}

struct nvq_sqe native_rw(const struct native *n, uint8_t op, uint16_t cid,
			 uint64_t slba, unsigned int nlb, uint32_t buf,
			 uint64_t offset)
{
	return (struct nvq_sqe){
		.opcode = op,
		.cid = cid,
		.nsid = n->q.g.nsid,
		.offset = offset,
		.buf = buf,
		.cdw10 = (uint32_t)slba,
		.cdw11 = slba >> 32,
		.cdw12 = nlb - 1,
	};
}

void native_stage(struct native *n, const struct nvq_sqe *s)
{
	n->sq[n->tail++ & n->mask] = *s;
	__atomic_store_n(&n->u->sq_tail, n->tail, __ATOMIC_RELEASE);
}

int native_submit(struct native *n)
{
	struct nvq_submit s = { 0 };
	int ret = ioctl(n->q.fd, NVQ_IOC_SUBMIT, &s);

	return ret < 0 ? -errno : ret;
}

void native_drop(struct native *n)
{
	n->tail = n->k->sq_head;
	__atomic_store_n(&n->u->sq_tail, n->tail, __ATOMIC_RELEASE);
}

void native_restart(struct native *n)
{
	n->tail = n->head = 0;
	n->index = 0;
	n->phase = 1;
}

int native_reap(struct native *n, uint16_t *cid, unsigned int ms)
{
	volatile struct cqe *c = &n->cq[n->index];
	uint64_t end = now_ms() + ms;
	uint16_t status;

	for (;;) {
		status = __atomic_load_n(&c->status, __ATOMIC_ACQUIRE);
		if ((status & 1) == n->phase)
			break;
		if (now_ms() > end)
			return -ETIME;
		usleep(50);
	}
	if (cid)
		*cid = c->cid;
	if (++n->index == n->q.g.depth) {
		n->index = 0;
		n->phase ^= 1;
	}
	__atomic_store_n(&n->u->cq_head, ++n->head, __ATOMIC_RELEASE);
	return status >> 1;
}

int native_run(struct native *n, const struct nvq_sqe *s)
{
	uint16_t cid;
	int ret;

	native_stage(n, s);
	ret = native_submit(n);
	if (ret != 1) {
		native_drop(n);
		return ret < 0 ? ret : -EPROTO;
	}
	ret = native_reap(n, &cid, 5000);
	return cid == s->cid || ret < 0 ? ret : -EPROTO;
}

struct world world_new(const char *path)
{
	struct world w = { .n = native_open(path), .buf = buffer_new(BUF) };

	fill(w.buf, BUF, 1);
	w.index = native_register(w.n.q.fd, w.buf, BUF, 0);
	if (w.index < 0)
		die("register: %s", strerror(-w.index));
	return w;
}

void world_end(struct world *w)
{
	native_close(&w->n);
	buffer_free(w->buf, BUF);
}

unsigned int world_in_flight(struct world *w, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct nvq_sqe s = native_rw(&w->n, OP_READ, i, 1000, 8,
					     w->index, (i % 4) * PAGE);

		native_stage(&w->n, &s);
	}
	return native_submit(&w->n) == (int)nr ? nr : 0;
}

unsigned int world_drain(struct world *w, unsigned int nr)
{
	unsigned int got = 0;

	while (got < nr && !native_reap(&w->n, NULL, 5000))
		got++;
	return got;
}

struct neighbour neighbour_open(const char *path)
{
	struct neighbour nb = {
		.q = queue_open(path, O_RDWR),
		.buf = buffer_new(PAGE),
	};

	fill(nb.buf, PAGE, NEIGHBOUR_SEED);
	if (sync_rw(&nb.q, OP_WRITE, 1000, 8, nb.buf))
		die("the neighbour cannot write");
	return nb;
}

bool neighbour_is_well(struct neighbour *nb)
{
	memset(nb->buf, 0, PAGE);
	return !sync_rw(&nb->q, OP_READ, 1000, 8, nb->buf) &&
	       differs(nb->buf, PAGE, NEIGHBOUR_SEED) < 0;
}
