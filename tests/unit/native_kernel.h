/* SPDX-License-Identifier: MIT */
/*
 * A queue file without a kernel, for test_lib_native.c: its pages are the
 * program's memory, and ioctl(), fcntl(), mmap() and the like are replaced
 * (-Wl,--wrap) by a kernel of a few lines, which counts as the driver does: what it
 * takes starts at its own head, ends at the tail it was told, and goes back when a
 * head says so.
 */
#ifndef NATIVE_KERNEL_H
#define NATIVE_KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "nvq_native.h"

/* not a power of two: the staging ring is larger, and wraps elsewhere */
#define DEPTH	6
#define STAGING	8
#define FD	40
#define NSID	3

static struct nvq_sqe sq[STAGING];
static struct nvq_cqe hw[DEPTH];
static struct nvq_upage upage;
static struct nvq_kpage kpage;
static struct nvq q;
static struct nvq_native n;
static struct nvq_error e;

/* The fake kernel: what it does next, and what it saw. */
static struct {
	unsigned int calls;
	unsigned long op;
	int fail;		/* errno, once */
	uint32_t take;		/* at most so many per call */
	uint32_t head;		/* staged commands taken */
	uint32_t cq_head;	/* completions read, as it was told */
	struct nvq_sqe sqe[64];	/* what it took, in order */
	unsigned int nr;
	struct nvq_submit submit;
	struct nvq_submit_from from;
	struct nvq_register reg;
	uint32_t unregistered;
	uint32_t posted;	/* CQ entries the drive has written */
	int mode;		/* of the descriptor */
	int map_fail;		/* errno */
	unsigned int unmapped;
} k;

static int take(const struct nvq_sqe *from, uint32_t mask, uint32_t first,
		uint32_t nr)
{
	uint32_t i;

	nr = nr < k.take ? nr : k.take;
	assert_true(nr < DEPTH);
	for (i = 0; i < nr; i++) {
		assert_in_range(k.nr, 0, 63);
		k.sqe[k.nr++] = from[(first + i) & mask];
	}
	k.head += nr;
	kpage.sq_head = k.head;
	return nr;
}

static int fake_submit(void *arg)
{
	memset(&k.submit, 0, sizeof(k.submit));
	if (arg)
		memcpy(&k.submit, arg, sizeof(k.submit));
	k.cq_head = upage.cq_head;
	if (n.readonly)
		return 0;
	return take(n.sq, STAGING - 1, k.head, upage.sq_tail - k.head);
}

static int fake_from(void *arg)
{
	memcpy(&k.from, arg, sizeof(k.from));
	k.cq_head = k.from.cq_head;
	return take((void *)(uintptr_t)k.from.sqes, ~0u, 0, k.from.nr);
}

static int fake_resync(void)
{
	if (k.posted != k.cq_head && k.posted != upage.cq_head) {
		errno = EBUSY;
		return -1;
	}
	memset(&upage, 0, sizeof(upage));
	/* the kernel may make anything of what was staged */
	if (!n.readonly)
		memset(n.sq, 0xee, sizeof(sq));
	memset(hw, 0, sizeof(hw));
	k.head = k.posted = kpage.sq_head = 0;
	return 0;
}

static int fake_drop(const void *arg)
{
	uint32_t index;

	memcpy(&index, arg, sizeof(index));
	if (index != k.head) {
		errno = EAGAIN;
		return -1;
	}
	kpage.sq_head = ++k.head;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long op, ...);
int __wrap_fcntl(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd,
		    off_t off);
int __wrap_munmap(void *addr, size_t len);
int __wrap_getrlimit(int what, struct rlimit *lim);
int __wrap_getrlimit64(int what, struct rlimit *lim);

int __wrap_ioctl(int fd, unsigned long op, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, op);
	arg = va_arg(ap, void *);
	va_end(ap);
	assert_int_equal(fd, FD);
	k.calls++;
	k.op = op;
	if (k.fail) {
		/* refused, but the head is taken, as in the driver */
		if (op == NVQ_IOC_SUBMIT_FROM)
			k.cq_head = ((struct nvq_submit_from *)arg)->cq_head;
		errno = k.fail;
		k.fail = 0;
		return -1;
	}
	switch (op) {
	case NVQ_IOC_SUBMIT:
		return fake_submit(arg);
	case NVQ_IOC_SUBMIT_FROM:
		return fake_from(arg);
	case NVQ_IOC_REGISTER:
		memcpy(&k.reg, arg, sizeof(k.reg));
		((struct nvq_register *)arg)->index = 9;
		return 0;
	case NVQ_IOC_UNREGISTER:
		memcpy(&k.unregistered, arg, sizeof(k.unregistered));
		return 0;
	case NVQ_IOC_RESYNC:
		return fake_resync();
	case NVQ_IOC_DROP:
		return fake_drop(arg);
	}
	fail_msg("ioctl %#lx", op);
	return -1;
}

int __wrap_fcntl(int fd, int op, ...)
{
	assert_int_equal(fd, FD);
	assert_int_equal(op, F_GETFL);
	return k.mode;
}

int __wrap_fcntl64(int fd, int op, ...)
{
	return __wrap_fcntl(fd, op);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	(void)addr;
	assert_int_equal(fd, FD);
	assert_int_equal(prot, PROT_READ | PROT_WRITE);
	assert_int_equal(flags, MAP_SHARED);
	if (k.map_fail) {
		errno = k.map_fail;
		return MAP_FAILED;
	}
	if (off == NVQ_MMAP_SQ) {
		assert_int_equal(len, sizeof(sq));
		return sq;
	}
	assert_int_equal(off, NVQ_MMAP_UPAGE);
	return &upage;
}

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd,
		    off_t off)
{
	return __wrap_mmap(addr, len, prot, flags, fd, off);
}

int __wrap_munmap(void *addr, size_t len)
{
	assert_true((addr == sq && len == sizeof(sq)) || addr == &upage);
	k.unmapped++;
	return 0;
}

int __wrap_getrlimit(int what, struct rlimit *lim)
{
	assert_int_equal(what, RLIMIT_MEMLOCK);
	lim->rlim_cur = lim->rlim_max = 64 << 10;
	return 0;
}

int __wrap_getrlimit64(int what, struct rlimit *lim)
{
	return __wrap_getrlimit(what, lim);
}

/* The drive completes @nr commands, with ids from @cid on. */
static void post(unsigned int cid, unsigned int nr)
{
	for (; nr--; k.posted++) {
		struct nvq_cqe *c = &hw[k.posted % DEPTH];
		unsigned int phase = !(k.posted / DEPTH & 1);

		c->cid = htole16(cid++);
		c->status = htole16(phase);
	}
}

static void stage(unsigned int first, unsigned int nr)
{
	for (; nr--; first++)
		nvq_stage_rw(&n, first, NVQ_READ, 100 + first, 1, 2, 0);
}

static int start(int mode)
{
	memset(&k, 0, sizeof(k));
	memset(sq, 0xaa, sizeof(sq));
	memset(hw, 0, sizeof(hw));
	memset(&upage, 0, sizeof(upage));
	memset(&kpage, 0, sizeof(kpage));
	memset(&q, 0, sizeof(q));
	memset(&e, 0, sizeof(e));
	k.take = DEPTH - 1;
	k.mode = mode;
	q.cq = hw;
	q.kpage = &kpage;
	q.depth = DEPTH;
	q.fd = FD;
	q.nsid = NSID;
	q.geo.kind = NVQ_KIND_POLL;
	strcpy(q.name, "nvq7poll3");
	return nvq_native_init(&n, &q, &e);
}

static int reset(void **state)
{
	(void)state;
	return start(O_RDWR);
}

static int reset_readonly(void **state)
{
	(void)state;
	return start(O_RDONLY);
}

static int stop(void **state)
{
	(void)state;
	nvq_native_exit(&n);
	return 0;
}

#endif /* NATIVE_KERNEL_H */
