// SPDX-License-Identifier: GPL-2.0
/*
 * The I/O path of jobs on the native way in: queue() stages a command in the
 * queue's own ring, flush() hands a batch over in one system call (io_uring,
 * its kernel thread, or an ioctl), getevents() reads the mapped completion queue
 * and makes none.
 *
 * A command's id is its io_u's index.  All io_us' buffers are one registered
 * buffer of each file.
 */
#include <poll.h>

#include <fio.h>

#include "issue.h"
#include "nvqueue.h"

/* How long a wait lasts before it looks around. */
#define WAIT_MS		100

/* How long a dead queue may take to hand back its commands. */
#define DEAD_MS		5000

/* Commands held back at the most while completions are there to be read. */
#define HOLD_MAX	32

/* ---- What ended -------------------------------------------------------------- */

static struct io_u *ended(struct thread_data *td, const struct nvq_cqe *c)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct io_u *io_u = job->io_us[nvq_native_cid(c)];

	if (unlikely(nvq_native_res(c)))
		nvqueue_failed(td, io_u, nvq_native_res(c));
	return io_u;
}

/* For the next getevents(). */
static void keep(struct nvqueue_job *job, struct io_u *io_u)
{
	job->kept[job->nr_kept++] = io_u;
}

/*
 * The oldest staged command will not be accepted.  Unless it has been, by a
 * submission that was under way when it was refused: then it will complete.
 */
static void fail_first(struct thread_data *td, struct nvqueue_file *nf, int err)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct io_u *io_u = job->io_us[le16toh(nvq_native_first(&nf->n)->cid)];

	if (nvq_native_drop(&nf->n)) {
		nvq_native_accepted(&nf->n);
		return;
	}
	nvqueue_failed(td, io_u, err);
	keep(job, io_u);
}

/* ---- Submission -------------------------------------------------------------- */

/* False: it cannot be, and has failed. */
static bool stage_other(struct thread_data *td, struct nvqueue_file *nf,
			struct io_u *io_u)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int slot = io_u->index;

	if (io_u->ddir != DDIR_TRIM) {
		nvq_stage_flush(&nf->n, slot);
		return true;
	}
	if ((io_u->offset | io_u->xfer_buflen) & nf->lba_mask) {
		nvqueue_failed(td, io_u, -EINVAL);
		return false;
	}
	job->ranges[slot].nlb = htole32(io_u->xfer_buflen >> nf->q.lba_shift);
	job->ranges[slot].slba = htole64(io_u->offset >> nf->q.lba_shift);
	nvq_stage_deallocate(&nf->n, slot, 1, nf->ranges_buf,
			     slot * sizeof(job->ranges[0]));
	return true;
}

/* A reset ended everything under way: read it, then begin anew. */
static int resync(struct thread_data *td, struct nvqueue_file *nf)
{
	struct nvqueue_job *job = td->io_ops_data;
	const struct nvq_cqe *c;

	while ((c = nvq_native_next(&nf->n)))
		keep(job, ended(td, c));
	return nvq_native_resync(&nf->n, NULL);
}

/*
 * Nothing, or not all, was accepted; @err: why.  Returns true if it is worth
 * another try at once.
 */
static bool refused(struct thread_data *td, struct nvqueue_file *nf, int err)
{
	switch (err) {
	case 0:		/* a worker or the ring's thread is at it */
	case -EINTR:
	case -EAGAIN:
	case -ENOSPC:	/* completions first */
		return false;
	case -ESTALE:
		if (nvq_native_stopped(&nf->n) == NVQ_STATE_RESYNC)
			return !resync(td, nf);
		/* fall through */
	case -ENODEV:
	case -ETIMEDOUT:
		while (nvq_native_staged(&nf->n))
			fail_first(td, nf, err);
		return false;
	default:
		fail_first(td, nf, err);
		return true;
	}
}

static int hand_over(struct nvqueue_job *job, struct nvqueue_file *nf)
{
	if (job->submit == NVQUEUE_SUBMIT_IOCTL)
		return nvq_native_submit(&nf->n);
	return nvq_native_ring_submit(&job->nring, nf->index);
}

static void flush_file(struct thread_data *td, struct nvqueue_file *nf)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int staged;
	int ret;

	for (;;) {
		staged = nvq_native_staged(&nf->n);
		if (!staged)
			return;
		ret = hand_over(job, nf);
		if (likely(ret == (int)staged))
			return;
		if (ret > 0)
			continue;
		if (!refused(td, nf, ret))
			return;
	}
}

static void note_issue(struct thread_data *td, unsigned int nr)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct nvqueue_issue is;
	unsigned int i;

	if (!nvqueue_issue_begin(td, &is))
		return;
	for (i = 0; i < nr; i++)
		nvqueue_issue_one(&is, job->batch[i]);
}

static unsigned int nr_batch(const struct nvqueue_job *job)
{
	return job->batch_end - job->batch;
}

static void flush(struct thread_data *td)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int i, nr = nr_batch(job);

	for (i = 0; i < job->nr_files; i++)
		flush_file(td, job->files[i]);
	if (!nr)
		return;
	job->batch_end = job->batch;
	job->submitted += nr;
	note_issue(td, nr);
	io_u_mark_submit(td, nr);
}

static void pause_for(struct nvqueue_job *job, unsigned int want);

/* The one completion that there can be, within WAIT_MS or so. */
static inline bool comes(struct nvqueue_job *job, struct nvqueue_file *nf)
{
	if (nvq_native_has(&nf->n, 1))
		return true;
	if (likely(nf->q.geo.kind == NVQ_KIND_POLL))
		return !nvq_native_wait(&nf->n, 1, WAIT_MS);
	pause_for(job, 1);
	return nvq_native_has(&nf->n, 1);
}

/*
 * Depth 1: a command is there and back within queue().  One that fails, or takes
 * its time, is told by getevents() as any other: fio cannot go on after an error
 * here while it verifies, and keeps a write that failed here among those it waits
 * for before it verifies them.
 */
static enum fio_q_status run_one(struct thread_data *td,
				 struct nvqueue_file *nf)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct nvq_native *n = &nf->n;

	job->submitted++;
	if (unlikely(hand_over(job, nf) != 1))
		return FIO_Q_QUEUED;
	if (unlikely(!comes(job, nf) ||
		     nvq_native_res(nvq_native_entry(n))))
		return FIO_Q_QUEUED;
	nvq_native_skip(n, 1);
	io_u_mark_submit(td, 1);
	io_u_mark_complete(td, 1);
	return FIO_Q_COMPLETED;
}

/* What the short way in nvqueue_queue() leaves. */
enum fio_q_status nvqueue_native_queue(struct thread_data *td,
				       struct nvqueue_file *nf,
				       struct io_u *io_u)
{
	struct nvqueue_job *job = td->io_ops_data;

	if (io_u->ddir > DDIR_WRITE) {
		if (!stage_other(td, nf, io_u))
			return FIO_Q_COMPLETED;
	} else if (unlikely((io_u->offset | io_u->xfer_buflen) &
			    nf->lba_mask)) {
		/* a replayed log, say */
		return nvqueue_failed_at_once(td, io_u, -EINVAL);
	} else {
		nvqueue_native_rw(job, nf, io_u);
	}
	if (job->one)
		return run_one(td, nf);
	*job->batch_end++ = io_u;
	return FIO_Q_QUEUED;
}

/*
 * With a batch of 1 on either side (no batch options, say) fio commits each command
 * by itself: with its queue full it reaps one and refills one.  Commands may be held
 * while there are as many completions as fio reaps at least: it comes back without
 * waiting for these.  With fewer there, they go at once.
 */
int nvqueue_native_commit(struct thread_data *td)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int i;

	if (nr_batch(job) < job->hold_max)
		for (i = 0; i < job->nr_files; i++)
			if (nvq_native_has(&job->files[i]->n, job->hold_for))
				return 0;
	if (likely(nr_batch(job)))
		flush(td);
	return 0;
}

/* ---- Completion -------------------------------------------------------------- */

/* Of @run entries that lie behind each other, those that failed. */
static void __attribute__((noinline))
look_at_each(struct thread_data *td, const struct nvq_cqe *c, unsigned int run)
{
	while (run--)
		ended(td, c++);
}

/*
 * The same where @max are known to be there, in one file: no look at each, and
 * one at all of their statuses (bit 0 is the phase).
 */
static unsigned int collect_all(struct thread_data *td, unsigned int max)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct nvq_native *n = &job->files[0]->n;
	struct io_u **io_us = job->io_us, **e = job->events, **end = e + max;

	while (e < end) {
		const struct nvq_cqe *c = nvq_native_entry(n);
		unsigned int run = nvq_native_run(n, end - e), i;
		uint16_t any = 0;

#pragma GCC unroll 8
		for (i = 0; i < run; i++) {
			e[i] = io_us[nvq_native_cid(&c[i])];
			any |= c[i].status;
		}
		if (unlikely(le16toh(any) >> 1))
			look_at_each(td, c, run);
		e += run;
		nvq_native_skip(n, run);
	}
	return max;
}

/* Into events[@n ...], up to @max; returns how many are there. */
static unsigned int collect(struct thread_data *td, unsigned int n,
			    unsigned int max)
{
	struct nvqueue_job *job = td->io_ops_data;
	const struct nvq_cqe *c;
	unsigned int i;

	while (unlikely(job->nr_kept) && n < max)
		job->events[n++] = job->kept[--job->nr_kept];
	if (likely(!n && max && job->nr_files == 1 &&
		   nvq_native_has(&job->files[0]->n, max)))
		return collect_all(td, max);
	for (i = 0; i < job->nr_files; i++) {
		struct nvqueue_file *nf = job->files[i];

		while (n < max && (c = nvq_native_next(&nf->n)))
			job->events[n++] = ended(td, c);
	}
	return n;
}

static void sleep_for(struct nvqueue_job *job, unsigned int want)
{
	struct nvqueue_file *nf = job->files[0];
	unsigned int i;

	job->waits++;
	if (job->nr_files == 1) {
		if (job->submit == NVQUEUE_SUBMIT_IOCTL)
			nvq_native_submit_wait(&nf->n, want, WAIT_MS);
		else
			nvq_native_ring_wait(&job->nring, 0, want, WAIT_MS);
		return;
	}
	for (i = 0; i < job->nr_files; i++)
		if (job->files[i]->n.upage)
			nvq_native_publish(&job->files[i]->n);
	poll(job->fds, job->nr_files, WAIT_MS);
}

/* Until there may be something. */
static void pause_for(struct nvqueue_job *job, unsigned int want)
{
	unsigned int i, n;

	if (job->files[0]->q.geo.kind == NVQ_KIND_IRQ) {
		sleep_for(job, want);
		return;
	}
	if (job->nr_files == 1) {
		nvq_native_wait(&job->files[0]->n, want, WAIT_MS);
		return;
	}
	for (n = 0; n < 1u << 16; n++)
		for (i = 0; i < job->nr_files; i++)
			if (nvq_native_has(&job->files[i]->n, 1))
				return;
}

static bool all_dead(const struct nvqueue_job *job)
{
	unsigned int i;

	for (i = 0; i < job->nr_files; i++)
		if (nvq_native_stopped(&job->files[i]->n) != NVQ_STATE_DEAD)
			return false;
	return true;
}

static int wait_for(struct thread_data *td, unsigned int n, unsigned int min,
		    unsigned int max)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int dead = 0, before;

	flush(td);
	for (;;) {
		before = n;
		n = collect(td, n, max);
		if (n >= min)
			return n;
		pause_for(job, min - n);
		n = collect(td, n, max);
		if (n >= min)
			return n;
		if (n != before)
			continue;
		/* a reset, a refusal told late: what is staged has its turn */
		flush(td);
		if (!all_dead(job))
			continue;
		usleep(WAIT_MS * 1000);
		dead += WAIT_MS;
		if (dead < DEAD_MS)
			continue;
		nvqueue_refuse(td, ENODEV,
			       "%s is dead and %u commands did not come back",
			       job->files[0]->q.name, min - n);
		return -ENODEV;
	}
}

int nvqueue_native_getevents(struct thread_data *td, unsigned int min,
			     unsigned int max)
{
	unsigned int n = collect(td, 0, max);
	struct nvqueue_job *job = td->io_ops_data;

	if (likely(n >= min)) {
		if (!n && nr_batch(job))
			flush(td);
		return n;
	}
	return wait_for(td, n, min, max);
}

/* ---- Setting up -------------------------------------------------------------- */

/*
 * All buffers at once: fio carves them out of one allocation.  The ranges of
 * trims are data, too.
 */
static int register_memory(struct thread_data *td, struct nvqueue_file *nf)
{
	struct nvqueue_job *job = td->io_ops_data;
	char *end = job->io_us[td->o.iodepth - 1]->buf;
	struct nvq_error err;
	int ret;

	if (!td->orig_buffer && (td_read(td) || td_write(td)))
		return 1; /* fio got no memory, and has said so */
	if (td_read(td) || td_write(td)) {
		job->region = job->io_us[0]->buf;
		end += td_max_bs(td);
		if (end - job->region > (long long)NVQ_MAX_BUF_LEN) {
			nvqueue_refuse(td, EINVAL,
				       "iodepth=%u with bs=%llu takes %lld MiB of buffers, and 4 GiB - 4 KiB can be registered: lower one of them, or submit=standard",
				       td->o.iodepth, td_max_bs(td),
				       (long long)(end - job->region) >> 20);
			return 1;
		}
		ret = nvq_native_register(&nf->n, job->region,
					  end - job->region, 0, &err);
		if (ret < 0)
			goto failed;
		nf->buf = ret;
	}
	if (td_trim(td)) {
		ret = nvq_native_register(&nf->n, job->ranges,
				td->o.iodepth * sizeof(job->ranges[0]),
				NVQ_REG_READONLY, &err);
		if (ret < 0)
			goto failed;
		nf->ranges_buf = ret;
	}
	return 0;

failed:
	nvqueue_refuse(td, -ret, "iodepth=%u and bs=%llu: %s", td->o.iodepth,
		       td_max_bs(td), err.text);
	return 1;
}

static int make_ring(struct thread_data *td)
{
	const struct nvqueue_options *o = td->eo;
	struct nvqueue_job *job = td->io_ops_data;
	struct nvq_native_ring_options opt = {
		.flags = o->sqpoll_thread ? NVQ_NATIVE_SQPOLL : 0,
		.sq_cpu = o->sqpoll_set ? (int)o->sqpoll_cpu : -1,
	};
	struct nvq_native **queues;
	struct nvq_error err;
	unsigned int i;
	int ret;

	queues = calloc(job->nr_files, sizeof(*queues));
	if (!queues)
		return 1;
	for (i = 0; i < job->nr_files; i++)
		queues[i] = &job->files[i]->n;
	ret = nvq_native_ring_init(&job->nring, queues, job->nr_files, &opt,
				   &err);
	free(queues);
	if (ret)
		nvqueue_refuse(td, -ret, "%s", err.text);
	return ret;
}

/* May commands be held?  Not where fio may go to sleep before it asks again. */
static unsigned int hold_max(const struct thread_data *td)
{
	const struct thread_options *o = &td->o;
	unsigned int i, n = min(o->iodepth / 4, (unsigned int)HOLD_MAX);

	if (o->iodepth_low != o->iodepth)
		return 0;
	for (i = 0; i < DDIR_RWDIR_CNT; i++)
		if (o->rate[i] || o->rate_iops[i] || o->ratemin[i] ||
		    o->rate_iops_min[i])
			return 0;
	if (o->thinktime || o->flow || o->latency_target || o->read_iolog_file ||
	    o->io_submit_mode == IO_MODE_OFFLOAD)
		return 0;
	return n > 1 ? n : 0;
}

/*
 * Without a descriptor open for writing there is no ring to stage in: commands
 * are copied from our memory, by ioctl.
 */
static int no_ring(struct thread_data *td, const struct nvqueue_file *nf)
{
	const struct nvqueue_options *o = td->eo;
	struct nvqueue_job *job = td->io_ops_data;

	if (!nf->n.readonly)
		return 0;
	job->submit = NVQUEUE_SUBMIT_IOCTL;
	if (!o->sqpoll_thread)
		return 0;
	nvqueue_refuse(td, EACCES,
		       "sqthread_poll takes the staging ring of %s, and that permission to write: get it, or drop sqthread_poll",
		       nf->q.name);
	return 1;
}

int nvqueue_native_start(struct thread_data *td)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int i;
	struct nvq_error err;
	int ret;

	job->fds = calloc(job->nr_files, sizeof(*job->fds));
	if (!job->fds)
		return 1;
	for (i = 0; i < job->nr_files; i++) {
		struct nvqueue_file *nf = job->files[i];

		nf->index = i;
		ret = nvq_native_init(&nf->n, &nf->q, &err);
		if (ret) {
			nvqueue_refuse(td, -ret, "%s", err.text);
			return 1;
		}
		job->fds[i].fd = nf->q.fd;
		job->fds[i].events = POLLIN;
		if (no_ring(td, nf) || register_memory(td, nf))
			return 1;
	}
	job->events = calloc(td->o.iodepth, sizeof(*job->events));
	job->kept = calloc(td->o.iodepth, sizeof(*job->kept));
	job->batch = calloc(td->o.iodepth, sizeof(*job->batch));
	if (!job->events || !job->kept || !job->batch)
		return 1;
	job->batch_end = job->batch;
	job->hold_max = hold_max(td);
	/* fio takes any number here, and the queue has no more entries to look at */
	job->hold_for = max(min(td->o.iodepth_batch_complete_min, td->o.iodepth),
			    1U);
	if (td->o.iodepth == 1) {
		job->one = true;
		/* fio then takes the time before queue(), and asks no events */
		td->flags |= (unsigned long long)FIO_SYNCIO << TD_ENG_FLAG_SHIFT;
	} else {
		for (i = 0; i < job->nr_files; i++)
			job->files[i]->short_mask = job->files[i]->lba_mask;
	}
	return job->submit == NVQUEUE_SUBMIT_IOCTL ? 0 : make_ring(td);
}

void nvqueue_native_stop(struct nvqueue_job *job)
{
	unsigned int i;

	nvq_native_ring_exit(&job->nring);
	for (i = 0; i < job->nr_files; i++)
		if (job->files[i]->n.q)
			nvq_native_exit(&job->files[i]->n);
	free(job->fds);
	free(job->events);
	free(job->kept);
	free(job->batch);
}

void nvqueue_native_stats(const struct thread_data *td)
{
	const struct nvqueue_job *job = td->io_ops_data;
	unsigned long long calls = job->nring.stats.calls;
	unsigned int i;

	for (i = 0; i < job->nr_files; i++)
		calls += job->files[i]->n.stats.submit_calls;
	log_info("nvqueue: %s: %s: %llu commands, %llu calls to submit, %llu to wait, 0 to reap, %llu to wake the kernel's thread\n",
		 td->o.name, job->nr_files ? job->files[0]->q.name : "no queue",
		 (unsigned long long)job->submitted, calls,
		 (unsigned long long)job->waits,
		 (unsigned long long)job->nring.stats.wakeups);
}
