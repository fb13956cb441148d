// SPDX-License-Identifier: MIT
/*
 * The ring: io_uring with standard NVMe passthrough commands, and reaping that
 * enters the kernel only when the mapped CQ says that there is something.
 *
 * liburing sets the ring up and makes the system calls.  Its own submit and
 * peek functions are avoided: on an IOPOLL ring they enter the kernel whether
 * or not anything has completed (cq_ring_needs_enter() in its queue.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static int check_options(struct nvq *const *queues, unsigned int nr,
			 const struct nvq_ring_options *opt,
			 struct nvq_error *err)
{
	unsigned int i;

	if (!nr || !opt->entries || opt->entries > 32768)
		return nvq_fail(err, -EINVAL,
				"a ring of %u entries for %u queues: 1..32768 entries and at least one queue are needed",
				opt->entries, nr);
	for (i = 0; i < nr; i++) {
		if (queues[i]->geo.kind != queues[0]->geo.kind ||
		    queues[i]->geo.kind == NVQ_KIND_CTRL)
			return nvq_fail(err, -EINVAL,
					"%s (%s) and %s (%s) cannot share a ring: all poll queues or all irq queues",
					queues[0]->name,
					nvq_kind_name(queues[0]->geo.kind),
					queues[i]->name,
					nvq_kind_name(queues[i]->geo.kind));
		if (opt->entries >= queues[i]->depth)
			return nvq_fail(err, -EINVAL,
					"%u commands in flight are more than %s takes: a queue of %u entries holds %u",
					opt->entries, queues[i]->name,
					queues[i]->depth, queues[i]->depth - 1);
	}
	return 0;
}

static void fill_params(struct io_uring_params *p, enum nvq_kind kind,
			const struct nvq_ring_options *opt)
{
	memset(p, 0, sizeof(*p));
	/* no CQ of twice the size: as many completions as commands */
	p->flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 |
		   IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL;
	p->cq_entries = opt->entries;
	if (kind == NVQ_KIND_POLL)
		p->flags |= IORING_SETUP_IOPOLL;
	if (!(opt->flags & NVQ_RING_SQPOLL)) {
		/*
		 * Completions of an irq queue arrive as task work: no
		 * interrupt of the running thread for it, a flag in the ring
		 * says when to enter the kernel.
		 */
		p->flags |= IORING_SETUP_COOP_TASKRUN |
			    IORING_SETUP_TASKRUN_FLAG;
		return;
	}
	p->flags |= IORING_SETUP_SQPOLL;
	p->sq_thread_idle = opt->sq_idle;
	if (opt->sq_cpu >= 0) {
		p->flags |= IORING_SETUP_SQ_AFF;
		p->sq_thread_cpu = opt->sq_cpu;
	}
}

static int init_failed(int ret, const struct nvq_ring_options *opt,
		       struct nvq_error *err)
{
	char why[NVQ_WHY_LEN];

	switch (ret) {
	case -ENOSYS:
		return nvq_fail(err, ret, "this kernel has no io_uring");
	case -EPERM:
		return nvq_fail(err, ret,
				"io_uring is forbidden here: see sysctl kernel.io_uring_disabled, or seccomp in a container");
	case -EINVAL:
		return nvq_fail(err, ret,
				"this kernel's io_uring does not take the setup (SQE128 and CQE32 need 5.19; SQPOLL on CPU %d)",
				opt->flags & NVQ_RING_SQPOLL ? opt->sq_cpu :
							       -1);
	default:
		return nvq_fail(err, ret, "io_uring setup with %u entries: %s",
				opt->entries, nvq_why(ret, why, sizeof(why)));
	}
}

int nvq_enter_fd(struct io_uring *u, unsigned int *flags)
{
	if (io_uring_register_ring_fd(u) != 1)
		return u->ring_fd;
	*flags = IORING_ENTER_REGISTERED_RING;
	return u->enter_ring_fd;
}

static void point_into(struct nvq_ring *r)
{
	struct io_uring *u = &r->uring;
	unsigned int i;

	r->sq_array = u->sq.array;
	r->sq_mask = u->sq.ring_mask;
	r->sqes = u->sq.sqes;
	r->cq_mask = u->cq.ring_mask;
	r->cq_ktail = u->cq.ktail;
	r->cq_khead = u->cq.khead;
	r->cqes = u->cq.cqes;
	r->enter_fd = nvq_enter_fd(u, &r->enter_flags);
	for (i = 0; i <= r->sq_mask; i++)
		nvq_slot_init(r, i, 0);
}

static int register_files(struct nvq_ring *r, struct nvq_error *err)
{
	char why[NVQ_WHY_LEN];
	unsigned int i;
	int *fds, ret;

	fds = calloc(r->nr_queues, sizeof(*fds));
	if (!fds)
		return nvq_fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < r->nr_queues; i++)
		fds[i] = r->queues[i]->fd;
	ret = io_uring_register_files(&r->uring, fds, r->nr_queues);
	free(fds);
	if (ret < 0)
		return nvq_fail(err, ret, "registering %u queue files: %s",
				r->nr_queues, nvq_why(ret, why, sizeof(why)));
	for (i = 0; i < r->nr_queues; i++)
		r->queues[i]->sqe_fd = i;
	r->sqe_flags = IOSQE_FIXED_FILE;
	return 0;
}

int nvq_ring_init(struct nvq_ring *r, struct nvq *const *queues,
		  unsigned int nr, const struct nvq_ring_options *opt,
		  struct nvq_error *err)
{
	struct io_uring_params p;
	int ret;

	memset(r, 0, sizeof(*r));
	ret = check_options(queues, nr, opt, err);
	if (ret)
		return ret;
	r->queues = calloc(nr, sizeof(*r->queues));
	if (!r->queues)
		return nvq_fail(err, -ENOMEM, "out of memory");
	memcpy(r->queues, queues, nr * sizeof(*r->queues));
	r->nr_queues = nr;
	r->kind = queues[0]->geo.kind;
	r->flags = opt->flags;

	fill_params(&p, r->kind, opt);
	ret = io_uring_queue_init_params(opt->entries, &r->uring, &p);
	if (ret) {
		free(r->queues);
		memset(r, 0, sizeof(*r));
		return init_failed(ret, opt, err);
	}
	if (opt->flags & NVQ_RING_FIXED_FILES)
		ret = register_files(r, err);
	if (ret) {
		nvq_ring_exit(r);
		return ret;
	}
	point_into(r);
	return 0;
}

static unsigned long long pinned_bytes(const struct iovec *iov, unsigned int nr)
{
	uintptr_t mask = sysconf(_SC_PAGESIZE) - 1;
	unsigned long long sum = 0;
	unsigned int i;

	/* page by page and buffer by buffer, as the kernel counts them */
	for (i = 0; i < nr; i++) {
		uintptr_t start = (uintptr_t)iov[i].iov_base & ~mask;
		uintptr_t end = (uintptr_t)iov[i].iov_base + iov[i].iov_len;

		sum += ((end + mask) & ~mask) - start;
	}
	return sum;
}

int nvq_ring_buffers(struct nvq_ring *r, const struct iovec *iov,
		     unsigned int nr, struct nvq_error *err)
{
	struct rlimit lim = { 0 };
	int ret;

	ret = io_uring_register_buffers(&r->uring, iov, nr);
	if (ret == -ENOMEM) {
		getrlimit(RLIMIT_MEMLOCK, &lim);
		return nvq_fail(err, ret,
				"registering %u buffers pins %llu KiB, RLIMIT_MEMLOCK is %llu KiB for all of this user: raise it (ulimit -l), use fewer or smaller buffers, or do without",
				nr, pinned_bytes(iov, nr) >> 10,
				(unsigned long long)lim.rlim_cur >> 10);
	}
	if (ret < 0)
		return nvq_fail(err, ret, "registering %u buffers: %s", nr,
				strerror(-ret));
	return 0;
}

void nvq_ring_exit(struct nvq_ring *r)
{
	unsigned int i;

	if (!r->queues)
		return;
	/*
	 * Files first: ring exit drops them from a worker, some ms later, and
	 * until then the next exclusive open of the queue would be busy.
	 */
	if (r->sqe_flags & IOSQE_FIXED_FILE)
		io_uring_unregister_files(&r->uring);
	for (i = 0; i < r->nr_queues; i++)
		r->queues[i]->sqe_fd = r->queues[i]->fd;
	io_uring_queue_exit(&r->uring);
	free(r->queues);
	memset(r, 0, sizeof(*r));
}

void nvq_slot_init(struct nvq_ring *r, unsigned int slot, uint64_t user_data)
{
	struct io_uring_sqe *sqe = nvq_slot(r, slot);

	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->flags = r->sqe_flags;
	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->user_data = user_data;
}

void nvq_slot_fixed(struct nvq_ring *r, unsigned int slot, unsigned int index)
{
	struct io_uring_sqe *sqe = nvq_slot(r, slot);

	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	sqe->buf_index = index;
}

void nvq_slot_vec(struct nvq_ring *r, unsigned int slot)
{
	struct io_uring_sqe *sqe = nvq_slot(r, slot);

	sqe->cmd_op = NVME_URING_CMD_IO_VEC;
	sqe->uring_cmd_flags = 0;
}

static struct nvme_uring_cmd *prep(struct nvq_ring *r, unsigned int slot,
				   const struct nvq *q, enum nvq_opcode opcode)
{
	struct io_uring_sqe *sqe = nvq_slot(r, slot);
	struct nvme_uring_cmd *cmd = nvq_slot_cmd(r, slot);

	sqe->fd = q->sqe_fd;
	memset(cmd, 0, sizeof(*cmd));
	cmd->opcode = opcode;
	cmd->nsid = q->nsid;
	return cmd;
}

void nvq_prep_flush(struct nvq_ring *r, unsigned int slot, const struct nvq *q)
{
	prep(r, slot, q, NVQ_FLUSH);
}

#define DSM_DEALLOCATE	(1 << 2)

void nvq_prep_deallocate(struct nvq_ring *r, unsigned int slot,
			 const struct nvq *q, const struct nvq_dsm_range *ranges,
			 unsigned int nr)
{
	struct nvme_uring_cmd *cmd = prep(r, slot, q, NVQ_DSM);
	struct io_uring_sqe *sqe = nvq_slot(r, slot);

	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->uring_cmd_flags = 0;
	cmd->addr = (uintptr_t)ranges;
	cmd->data_len = nr * sizeof(*ranges);
	cmd->cdw10 = nr - 1;
	cmd->cdw11 = DSM_DEALLOCATE;
}

/*
 * Tells the kernel that what is in the CQ ring has been taken, even if the
 * caller has yet to read it.  On an IOPOLL ring the kernel polls nothing while
 * it believes that completions wait to be read (io_iopoll_check()).  It cannot
 * overwrite them: entries and commands in flight together are never more than
 * the ring has places, and a slot is used again only once its completion was
 * advanced past.
 */
static void take_all(struct nvq_ring *r)
{
	__atomic_store_n(r->cq_khead,
			 __atomic_load_n(r->cq_ktail, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

static int submit_to_thread(struct nvq_ring *r, unsigned int nr)
{
	/*
	 * The new tail before the flag: the thread sets it and then looks at
	 * the tail once more before it sleeps.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(r->uring.sq.kflags, __ATOMIC_RELAXED) &
	    IORING_SQ_NEED_WAKEUP) {
		r->stats.submit_calls++;
		io_uring_enter(r->enter_fd, nr, 0,
			       r->enter_flags | IORING_ENTER_SQ_WAKEUP, NULL);
	}
	return nr;
}

int nvq_submit(struct nvq_ring *r)
{
	unsigned int nr = nvq_queued(r);
	int ret;

	if (!nr)
		return 0;
	take_all(r);
	__atomic_store_n(r->uring.sq.ktail, r->sq_tail, __ATOMIC_RELEASE);
	if (r->flags & NVQ_RING_SQPOLL) {
		ret = submit_to_thread(r, nr);
	} else {
		r->stats.submit_calls++;
		ret = io_uring_enter(r->enter_fd, nr, 0, r->enter_flags, NULL);
	}
	if (ret <= 0)
		return ret ? ret : -EAGAIN;
	r->sq_sent += ret;
	r->inflight += ret;
	r->stats.submitted += ret;
	return ret;
}

/*
 * The counters can be ahead of what can be reaped: while a queue recovers, a
 * worker of io_uring holds commands that the driver has yet to accept.  After
 * an entry that found nothing they are not believed for a while, up to some
 * milliseconds of spinning.
 */
#define MAX_HOLD	65536

static void note_found(struct nvq_ring *r, bool found)
{
	if (found) {
		r->hold = r->next_hold = 0;
		return;
	}
	r->stats.reap_empty++;
	r->next_hold = r->next_hold * 2 + 64;
	if (r->next_hold > MAX_HOLD)
		r->next_hold = MAX_HOLD;
	r->hold = r->next_hold;
}

/*
 * Enter the kernel to reap, or to wait until @want are ready, counting those
 * that are; returns how many are ready.
 */
static int enter_reap(struct nvq_ring *r, unsigned int want, unsigned int ms)
{
	struct __kernel_timespec ts = {
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000ll,
	};
	struct io_uring_getevents_arg arg = { .ts = (uintptr_t)&ts };
	unsigned int before = nvq_ready(r), ready;
	unsigned int flags = r->enter_flags | IORING_ENTER_GETEVENTS;
	int ret;

	r->stats.reap_calls++;
	take_all(r);
	/* the kernel counts from what was taken */
	want = want > before ? want - before : 0;
	if (ms)
		ret = io_uring_enter2(r->enter_fd, 0, want,
				      flags | IORING_ENTER_EXT_ARG,
				      (sigset_t *)&arg, sizeof(arg));
	else
		ret = io_uring_enter(r->enter_fd, 0, want, flags, NULL);
	ready = nvq_ready(r);
	note_found(r, ready != before);
	if (ret < 0 && ret != -EINTR && ret != -ETIME && ret != -EAGAIN &&
	    ret != -EBUSY)
		return ret;
	return ready;
}

static bool task_work(const struct nvq_ring *r)
{
	return __atomic_load_n(r->uring.sq.kflags, __ATOMIC_RELAXED) &
	       IORING_SQ_TASKRUN;
}

/* Have commands ended that no entry shows?  See nvq_cq_pending(). */
static bool counters_say(struct nvq_ring *r, uint32_t undelivered,
			 uint32_t in_device)
{
	if (undelivered <= in_device)
		return false;
	if (!r->hold || task_work(r))
		return true;
	r->hold--;
	return false;
}

/* Is it worth entering the kernel for @missing more completions? */
static bool worth_entering(struct nvq_ring *r, unsigned int ready,
			   unsigned int missing)
{
	uint32_t in_device = 0;
	unsigned int i;

	if (r->flags & NVQ_RING_SQPOLL)
		return false; /* its thread reaps */
	if (r->kind == NVQ_KIND_IRQ)
		return task_work(r);
	/* of n queues with m entries in all, one has m / n or more */
	if (r->nr_queues > 1)
		missing = (missing + r->nr_queues - 1) / r->nr_queues;
	for (i = 0; i < r->nr_queues; i++) {
		if (nvq_cq_has(r->queues[i], missing))
			return true;
		in_device += nvq_in_device(r->queues[i]);
	}
	return counters_say(r, r->inflight - ready, in_device);
}

int nvq_reap(struct nvq_ring *r, unsigned int want)
{
	unsigned int ready = nvq_ready(r);

	if (ready >= want)
		return ready;
	if (!(r->flags & NVQ_RING_KERNEL_POLL) || r->kind == NVQ_KIND_IRQ) {
		if (!worth_entering(r, ready, want - ready))
			return ready;
	} else if (r->flags & NVQ_RING_SQPOLL) {
		return ready;
	}
	return enter_reap(r, 0, 0);
}

/* How often a spin looks at the clock: some tens of microseconds apart. */
#define SPINS_PER_LOOK	1024

static int spin(struct nvq_ring *r, unsigned int want, unsigned int timeout_ms)
{
	uint64_t end = 0;
	unsigned int n = 0;
	int ret;

	for (;;) {
		ret = nvq_reap(r, want);
		if (ret < 0 || (unsigned int)ret >= want)
			return ret;
		nvq_relax();
		if (++n % SPINS_PER_LOOK)
			continue;
		if (!end)
			end = nvq_now_ms() + timeout_ms;
		else if (nvq_now_ms() >= end)
			break;
	}
	/* No last look into the kernel: what ended shows, see nvq_cq_pending() */
	return ret;
}

static int poll_in_kernel(struct nvq_ring *r, unsigned int want,
			  unsigned int timeout_ms)
{
	uint64_t end = 0;
	int ret;

	for (;;) {
		ret = nvq_ready(r);
		if ((unsigned int)ret < want)
			ret = enter_reap(r, want, 0);
		if (ret < 0 || (unsigned int)ret >= want)
			return ret;
		if (!end)
			end = nvq_now_ms() + timeout_ms;
		else if (nvq_now_ms() >= end)
			return ret;
	}
}

static int sleep_for(struct nvq_ring *r, unsigned int want,
		     unsigned int timeout_ms)
{
	unsigned int ready = nvq_ready(r);

	if (ready >= want)
		return ready;
	return enter_reap(r, want, timeout_ms);
}

int nvq_wait(struct nvq_ring *r, unsigned int want, unsigned int timeout_ms)
{
	if (r->kind == NVQ_KIND_IRQ)
		return sleep_for(r, want, timeout_ms ? timeout_ms : 1);
	if (r->flags & NVQ_RING_SQPOLL || !(r->flags & NVQ_RING_KERNEL_POLL))
		return spin(r, want, timeout_ms);
	return poll_in_kernel(r, want, timeout_ms);
}
