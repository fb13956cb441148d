// SPDX-License-Identifier: MIT
/*
 * The native path: what is not on the way of every I/O (nvq_native.h has that),
 * and the calls that hand batches over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "nvq_native.h"

static uint32_t staging_entries(const struct nvq *q)
{
	uint32_t n = 1;

	while (n < q->depth)
		n <<= 1;
	return n;
}

static size_t staging_bytes(const struct nvq *q)
{
	return staging_entries(q) * sizeof(struct nvq_sqe);
}

static int init_failed(const struct nvq *q, int code, struct nvq_error *err)
{
	if (code == -EBUSY)
		return nvq_fail(err, code,
				"%s has sent standard commands: reopen it for the native path",
				q->name);
	return nvq_fail(err, code, "%s: mapping the staging ring: %s", q->name,
			strerror(-code));
}

/* The first of these calls makes the file a native one. */
static int map_staging(struct nvq_native *n)
{
	void *sq, *upage;

	sq = mmap(NULL, staging_bytes(n->q), PROT_READ | PROT_WRITE, MAP_SHARED,
		  n->fd, NVQ_MMAP_SQ);
	if (sq == MAP_FAILED)
		return -errno;
	n->sq = sq;
	upage = mmap(NULL, sizeof(*n->upage), PROT_READ | PROT_WRITE,
		     MAP_SHARED, n->fd, NVQ_MMAP_UPAGE);
	if (upage == MAP_FAILED)
		return -errno;
	n->upage = upage;
	return 0;
}

static void start_afresh(struct nvq_native *n)
{
	n->sq_tail = 0;
	n->sq_sent = 0;
	n->cq_base = 0;
	n->cq_index = 0;
	n->cq_phase = 1;
}

static int submit_from(struct nvq_native *n)
{
	uint32_t first = n->sq_sent & n->sq_mask, nr = nvq_native_staged(n);
	struct nvq_submit_from from = {
		.sqes = (uintptr_t)&n->sq[first],
		.cq_head = nvq_native_read(n),
	};
	int ret;

	/* up to where our ring wraps; what is beyond comes with the next call */
	from.nr = nr < n->sq_mask + 1 - first ? nr : n->sq_mask + 1 - first;
	ret = ioctl(n->fd, NVQ_IOC_SUBMIT_FROM, &from);
	return ret < 0 ? -errno : ret;
}

int nvq_native_init(struct nvq_native *n, struct nvq *q, struct nvq_error *err)
{
	int mode, ret;

	memset(n, 0, sizeof(*n));
	n->q = q;
	n->fd = q->fd;
	n->cq = q->cq;
	n->kpage = q->kpage;
	n->depth = q->depth;
	n->sq_mask = staging_entries(q) - 1;
	n->nsid_word = (uint64_t)q->nsid << 32;
	start_afresh(n);
	mode = fcntl(q->fd, F_GETFL);
	n->readonly = (mode & O_ACCMODE) == O_RDONLY;
	if (n->readonly) {
		n->sq = aligned_alloc(64, staging_bytes(q));
		/* nothing staged: only makes the file a native one */
		ret = n->sq ? submit_from(n) : -ENOMEM;
		if (ret == -ESTALE || ret == -ENODEV)
			ret = 0; /* told by the first submission */
	} else {
		ret = map_staging(n);
	}
	if (ret < 0) {
		nvq_native_exit(n);
		return init_failed(q, ret, err);
	}
	return 0;
}

void nvq_native_exit(struct nvq_native *n)
{
	if (n->readonly)
		free(n->sq);
	else if (n->sq)
		munmap(n->sq, staging_bytes(n->q));
	if (n->upage)
		munmap(n->upage, sizeof(*n->upage));
	memset(n, 0, sizeof(*n));
}

/* ---- Buffers ----------------------------------------------------------------- */

static int no_memory(const struct nvq_native *n, const void *addr, size_t len,
		     struct nvq_error *err)
{
	uintptr_t mask = sysconf(_SC_PAGESIZE) - 1, start = (uintptr_t)addr;
	unsigned long long need = ((start + len + mask) & ~mask) -
				  (start & ~mask);
	struct rlimit lim = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &lim);
	if (lim.rlim_cur == RLIM_INFINITY || need <= lim.rlim_cur / 2)
		return nvq_fail(err, -ENOMEM,
				"%s: registering a buffer of %llu KiB: out of memory, or with what this process has locked it exceeds RLIMIT_MEMLOCK (%llu KiB): raise it (ulimit -l), or use less",
				n->q->name, need >> 10,
				(unsigned long long)lim.rlim_cur >> 10);
	return nvq_fail(err, -ENOMEM,
			"%s: registering a buffer locks %llu KiB, RLIMIT_MEMLOCK is %llu KiB for all of this process: raise it (ulimit -l), or use less",
			n->q->name, need >> 10,
			(unsigned long long)lim.rlim_cur >> 10);
}

static int register_failed(const struct nvq_native *n, const void *addr,
			   size_t len, int code, struct nvq_error *err)
{
	const char *why = strerror(-code);

	switch (code) {
	case -ENOMEM:
		return no_memory(n, addr, len, err);
	case -EINVAL:
		why = "its address must be a multiple of 4, its length 1 byte to 4 GiB - 4 KiB";
		break;
	case -EFAULT:
		why = "not all of it is mapped, or it is read-only and NVQ_REG_READONLY was not given";
		break;
	case -EOPNOTSUPP:
		why = "it is a file's or a device's memory, or the drive cannot reach it; take anonymous, shared or huge pages";
		break;
	case -ENOSPC:
		why = "too many are registered";
		break;
	}
	return nvq_fail(err, code, "%s: registering a buffer of %zu bytes: %s",
			n->q->name, len, why);
}

int nvq_native_register(struct nvq_native *n, const void *addr, size_t len,
			unsigned int flags, struct nvq_error *err)
{
	struct nvq_register reg = {
		.addr = (uintptr_t)addr,
		.len = len,
		.flags = flags,
	};

	if (ioctl(n->fd, NVQ_IOC_REGISTER, &reg))
		return register_failed(n, addr, len, -errno, err);
	return reg.index;
}

int nvq_native_unregister(struct nvq_native *n, unsigned int buf,
			  struct nvq_error *err)
{
	uint32_t index = buf;

	if (ioctl(n->fd, NVQ_IOC_UNREGISTER, &index))
		return nvq_fail(err, -errno, "%s: unregistering buffer %u: %s",
				n->q->name, buf, strerror(errno));
	return 0;
}

/* ---- Staging ----------------------------------------------------------------- */

struct nvq_sqe *nvq_native_first(const struct nvq_native *n)
{
	return nvq_native_staged(n) ? &n->sq[n->sq_sent & n->sq_mask] : NULL;
}

int nvq_native_drop(struct nvq_native *n)
{
	uint32_t first = n->sq_sent;

	if (!nvq_native_staged(n))
		return -EINVAL;
	if (n->readonly) {
		/* nobody but us takes what is in our own memory */
		n->sq_sent++;
		return 0;
	}
	nvq_native_publish(n);
	if (ioctl(n->fd, NVQ_IOC_DROP, &first))
		return -errno;
	n->sq_sent++;
	return 0;
}

/* ---- Submission by ioctl ----------------------------------------------------- */

int nvq_native_submit(struct nvq_native *n)
{
	int ret;

	n->stats.submit_calls++;
	if (__builtin_expect(n->readonly, false)) {
		ret = submit_from(n);
	} else {
		nvq_native_publish(n);
		ret = ioctl(n->fd, NVQ_IOC_SUBMIT, NULL);
		if (ret < 0)
			ret = -errno;
	}
	if (ret > 0)
		n->sq_sent += ret;
	return ret;
}

int nvq_native_submit_wait(struct nvq_native *n, unsigned int want,
			   unsigned int timeout_ms)
{
	struct nvq_submit s = { .wait = want, .timeout_ms = timeout_ms };
	uint32_t before = n->sq_sent;
	int ret;

	if (n->readonly) {
		ret = submit_from(n);
		if (ret < 0)
			return ret;
		n->sq_sent += ret;
	} else {
		nvq_native_publish(n);
	}
	n->stats.wait_calls++;
	ret = ioctl(n->fd, NVQ_IOC_SUBMIT, &s);
	if (ret < 0)
		ret = -errno;
	if (!n->readonly)
		nvq_native_accepted(n);
	return ret < 0 ? ret : (int)(n->sq_sent - before);
}

/* ---- Waiting ----------------------------------------------------------------- */

/* How often a spin looks at the clock: some tens of microseconds apart. */
#define SPINS_PER_LOOK	1024

int nvq_native_wait(struct nvq_native *n, unsigned int want,
		    unsigned int timeout_ms)
{
	unsigned int spins = 0;
	uint64_t end = 0;
	int ret;

	if (nvq_native_has(n, want))
		return 0;
	if (n->q->geo.kind == NVQ_KIND_IRQ) {
		ret = nvq_native_submit_wait(n, want, timeout_ms);
		if (nvq_native_has(n, want))
			return 0;
		return ret < 0 ? ret : -ETIME;
	}
	while (!nvq_native_has(n, want)) {
		nvq_relax();
		if (++spins % SPINS_PER_LOOK)
			continue;
		if (!end)
			end = nvq_now_ms() + timeout_ms;
		else if (nvq_now_ms() >= end)
			return -ETIME;
	}
	return 0;
}

int nvq_native_resync(struct nvq_native *n, struct nvq_error *err)
{
	uint32_t staged = nvq_native_staged(n), i;
	struct nvq_sqe *kept;

	/* the kernel forgets what is staged, and counts from 0 again */
	kept = calloc(staged + 1, sizeof(*kept));
	if (!kept)
		return nvq_fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < staged; i++)
		kept[i] = n->sq[(n->sq_sent + i) & n->sq_mask];
	if (n->readonly) {
		/* no page to say it on; refused, but the head is taken */
		submit_from(n);
	} else {
		nvq_native_publish(n);
	}
	if (ioctl(n->fd, NVQ_IOC_RESYNC)) {
		free(kept);
		return nvq_fail(err, -errno, "%s: going on after a reset: %s",
				n->q->name,
				errno == EBUSY ? "not all completions were read" :
						 strerror(errno));
	}
	start_afresh(n);
	for (; n->sq_tail < staged; n->sq_tail++)
		n->sq[n->sq_tail] = kept[n->sq_tail];
	free(kept);
	return 0;
}

/* ---- Submission by io_uring -------------------------------------------------- */

static void fill_params(struct io_uring_params *p,
			const struct nvq_native_ring_options *opt)
{
	memset(p, 0, sizeof(*p));
	p->flags = IORING_SETUP_SUBMIT_ALL;
	if (!(opt->flags & NVQ_NATIVE_SQPOLL)) {
		p->flags |= IORING_SETUP_COOP_TASKRUN;
		return;
	}
	p->flags |= IORING_SETUP_SQPOLL;
	p->sq_thread_idle = opt->sq_idle;
	if (opt->sq_cpu >= 0) {
		p->flags |= IORING_SETUP_SQ_AFF;
		p->sq_thread_cpu = opt->sq_cpu;
	}
}

/*
 * SQE i hands over the i-th queue's batch and says nothing if all went well;
 * SQE nr + i waits, too.
 */
static void fill_sqes(struct nvq_native_ring *r)
{
	unsigned int i;

	for (i = 0; i < 2 * r->nr; i++) {
		struct io_uring_sqe *sqe = &r->uring.sq.sqes[i];

		memset(sqe, 0, sizeof(*sqe));
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->flags = IOSQE_FIXED_FILE;
		if (i < r->nr)
			sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
		sqe->fd = i % r->nr;
		sqe->cmd_op = NVQ_URING_SUBMIT;
		sqe->user_data = i;
	}
}

static int register_files(struct nvq_native_ring *r)
{
	unsigned int i;
	int *fds, ret;

	fds = calloc(r->nr, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	for (i = 0; i < r->nr; i++)
		fds[i] = r->queues[i]->fd;
	ret = io_uring_register_files(&r->uring, fds, r->nr);
	free(fds);
	return ret;
}

static void point_into(struct nvq_native_ring *r)
{
	struct io_uring *u = &r->uring;

	r->sq_array = u->sq.array;
	r->sq_ktail = u->sq.ktail;
	r->sq_mask = u->sq.ring_mask;
	r->cq_ktail = u->cq.ktail;
	r->enter_fd = nvq_enter_fd(u, &r->enter_flags);
}

int nvq_native_ring_init(struct nvq_native_ring *r,
			 struct nvq_native *const *queues, unsigned int nr,
			 const struct nvq_native_ring_options *opt,
			 struct nvq_error *err)
{
	struct io_uring_params p;
	char why[NVQ_WHY_LEN];
	unsigned int i;
	int ret;

	memset(r, 0, sizeof(*r));
	for (i = 0; i < nr; i++)
		if (queues[i]->readonly)
			return nvq_fail(err, -EINVAL,
					"%s is open for reading only: a ring needs its staging ring, and that a descriptor open for writing",
					queues[i]->q->name);
	if (!nr || nr > 2048)
		return nvq_fail(err, -EINVAL, "a ring for %u queues", nr);
	fill_params(&p, opt);
	/* room for each queue's batch and wait, and some for SQPOLL to catch up */
	ret = io_uring_queue_init_params(nr < 4 ? 16 : 4 * nr, &r->uring, &p);
	if (ret)
		return nvq_fail(err, ret, "io_uring setup for %u queues: %s",
				nr, nvq_why(ret, why, sizeof(why)));
	r->nr = nr;
	r->flags = opt->flags;
	r->queues = calloc(nr, sizeof(*r->queues));
	ret = r->queues ? 0 : -ENOMEM;
	if (!ret) {
		memcpy(r->queues, queues, nr * sizeof(*r->queues));
		ret = register_files(r);
	}
	if (ret) {
		io_uring_queue_exit(&r->uring);
		free(r->queues);
		memset(r, 0, sizeof(*r));
		return nvq_fail(err, ret, "registering %u queue files: %s", nr,
				nvq_why(ret, why, sizeof(why)));
	}
	fill_sqes(r);
	point_into(r);
	return 0;
}

void nvq_native_ring_exit(struct nvq_native_ring *r)
{
	if (!r->queues)
		return;
	/* files first: see nvq_ring_exit() */
	io_uring_unregister_files(&r->uring);
	io_uring_queue_exit(&r->uring);
	free(r->queues);
	memset(r, 0, sizeof(*r));
}

/* Only what failed, or waited, is told; returns the last failure. */
static int __attribute__((noinline)) read_cqes(struct nvq_native_ring *r)
{
	unsigned int tail = __atomic_load_n(r->cq_ktail, __ATOMIC_ACQUIRE);
	int ret = 0;

	for (; r->cq_head != tail; r->cq_head++) {
		const struct io_uring_cqe *cqe;

		cqe = &r->uring.cq.cqes[r->cq_head & r->uring.cq.ring_mask];
		if (cqe->res < 0)
			ret = cqe->res;
	}
	__atomic_store_n(r->uring.cq.khead, tail, __ATOMIC_RELEASE);
	return ret;
}

static int told(struct nvq_native_ring *r)
{
	if (__builtin_expect(__atomic_load_n(r->cq_ktail, __ATOMIC_ACQUIRE) ==
				     r->cq_head, true))
		return 0;
	return read_cqes(r);
}

static int enter_thread(struct nvq_native_ring *r)
{
	/*
	 * The new tail before the flag: the thread sets it and then looks at
	 * the tail once more before it sleeps.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(r->uring.sq.kflags, __ATOMIC_RELAXED) &
	    IORING_SQ_NEED_WAKEUP) {
		r->stats.wakeups++;
		io_uring_enter(r->enter_fd, 0, 0,
			       r->enter_flags | IORING_ENTER_SQ_WAKEUP, NULL);
	}
	/* its place is free for another batch? */
	while (r->sq_tail - __atomic_load_n(r->uring.sq.khead,
					    __ATOMIC_ACQUIRE) > r->sq_mask)
		nvq_relax();
	return told(r);
}

int nvq_native_ring_enter(struct nvq_native_ring *r)
{
	unsigned int nr = r->sq_tail - r->sq_sent;
	int ret;

	__atomic_store_n(r->sq_ktail, r->sq_tail, __ATOMIC_RELEASE);
	r->stats.batches += nr;
	if (r->flags & NVQ_NATIVE_SQPOLL) {
		r->sq_sent = r->sq_tail;
		return enter_thread(r);
	}
	r->stats.calls++;
	ret = io_uring_enter(r->enter_fd, nr, 0, r->enter_flags, NULL);
	if (__builtin_expect(ret < 0, false))
		return ret;
	r->sq_sent += ret;
	return told(r);
}

int nvq_native_ring_refused(const struct nvq_native_ring *r, unsigned int i,
			    int err)
{
	switch (err) {
	case -EINVAL:
	case -EACCES:
	case -EOPNOTSUPP:
	case -EBUSY:
	case -ENOSPC:
		/* of a command: the kernel page has what stops the next one */
		return __atomic_load_n(&r->queues[i]->kpage->submit_error,
				       __ATOMIC_ACQUIRE);
	default:
		return err;
	}
}

int nvq_native_ring_wait(struct nvq_native_ring *r, unsigned int i,
			 unsigned int want, unsigned int timeout_ms)
{
	struct io_uring_sqe *sqe = &r->uring.sq.sqes[r->nr + i];
	struct nvq_submit *s = (struct nvq_submit *)sqe->cmd;
	unsigned int nr;
	uint32_t taken;
	int ret;

	s->wait = want;
	s->timeout_ms = timeout_ms;
	nvq_native_publish(r->queues[i]);
	r->sq_array[r->sq_tail++ & r->sq_mask] = r->nr + i;
	__atomic_store_n(r->sq_ktail, r->sq_tail, __ATOMIC_RELEASE);
	nr = r->sq_tail - r->sq_sent;
	r->stats.batches += nr;
	r->stats.calls++;
	ret = io_uring_enter(r->enter_fd, nr, 1, r->enter_flags |
			     IORING_ENTER_GETEVENTS, NULL);
	if (r->flags & NVQ_NATIVE_SQPOLL)
		r->sq_sent = r->sq_tail;
	else if (ret > 0)
		r->sq_sent += ret;
	taken = nvq_native_accepted(r->queues[i]);
	if (ret >= 0)
		ret = told(r);
	return ret < 0 ? ret : (int)taken;
}
