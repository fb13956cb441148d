// SPDX-License-Identifier: GPL-2.0
/*
 * fio engine for nvqueue's queue files: fio's hooks on libnvq, nothing more.
 *
 *	fio --ioengine=external:./libnvqueue.so --filename=/dev/nvq0poll0 ...
 *
 * This file is the I/O path of submit=standard, and where the other one
 * (native.c) branches off: queue() fills an io_uring SQE, commit() hands a
 * batch over in one system call, getevents() looks at the phase bit of the
 * mapped completion queue and enters the kernel when there is something.  What
 * is decided before the first I/O is in setup.c.
 *
 * A command's slot in the ring is its io_u's index.  Depths agree (setup.c):
 * neither ring nor hardware queue can be full before fio is out of io_us.
 */
#include <dlfcn.h>
#include <time.h>

#include <fio.h>

#include "issue.h"
#include "nvqueue.h"

/* How long getevents() waits before it looks around. */
#define WAIT_MS		100

/* How long a dead queue may take to hand back its commands. */
#define DEAD_MS		5000

/* How long the kernel may refuse a submission for want of memory. */
#define SUBMIT_MS	5000

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

/* ---- Submission -------------------------------------------------------------- */

static inline void prep_rw(struct nvqueue_job *job,
			   const struct nvqueue_file *nf,
			   const struct io_u *io_u, const void *addr,
			   unsigned int len)
{
	nvq_prep_rw(&job->ring, io_u->index, &nf->q,
		    io_u->ddir == DDIR_READ ? NVQ_READ : NVQ_WRITE,
		    io_u->offset >> nf->q.lba_shift,
		    io_u->xfer_buflen >> nf->q.lba_shift, addr, len);
}

static void prep_trim(struct nvqueue_job *job, const struct nvqueue_file *nf,
		      const struct io_u *io_u)
{
	struct nvq_dsm_range *range = &job->ranges[io_u->index];

	range->nlb = htole32(io_u->xfer_buflen >> nf->q.lba_shift);
	range->slba = htole64(io_u->offset >> nf->q.lba_shift);
	nvq_prep_deallocate(&job->ring, io_u->index, &nf->q, range, 1);
}

/* Whatever is not a read or write on a slot that stays as it was set up. */
static void __attribute__((noinline)) prep_other(struct thread_data *td,
						 const struct nvqueue_file *nf,
						 const struct io_u *io_u)
{
	const struct nvqueue_options *o = td->eo;
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int slot = io_u->index;
	struct iovec *iov = &job->iovecs[slot];

	if (io_u->ddir == DDIR_TRIM) {
		prep_trim(job, nf, io_u);
	} else if (ddir_sync(io_u->ddir)) {
		nvq_prep_flush(&job->ring, slot, &nf->q);
	} else if (!o->nonvectored) {
		iov->iov_base = io_u->xfer_buf;
		iov->iov_len = io_u->xfer_buflen;
		nvq_slot_vec(&job->ring, slot);
		prep_rw(job, nf, io_u, iov, 1);
	} else {
		if (o->fixedbufs)
			nvq_slot_fixed(&job->ring, slot, slot);
		prep_rw(job, nf, io_u, io_u->xfer_buf, io_u->xfer_buflen);
	}
}

static enum fio_q_status queue_standard(struct thread_data *td,
					const struct nvqueue_file *nf,
					struct io_u *io_u)
{
	struct nvqueue_job *job = td->io_ops_data;

	if (unlikely((io_u->offset | io_u->xfer_buflen) & nf->lba_mask) &&
	    ddir_rw(io_u->ddir)) /* a replayed log, say */
		return nvqueue_failed_at_once(td, io_u, -EINVAL);
	if (likely(job->slots_stay && io_u->ddir <= DDIR_WRITE))
		prep_rw(job, nf, io_u, io_u->xfer_buf, io_u->xfer_buflen);
	else
		prep_other(td, nf, io_u);
	nvq_queue(&job->ring, io_u->index);
	return FIO_Q_QUEUED;
}

/* Apart, so that the short way has no registers to save. */
static enum fio_q_status __attribute__((noinline))
queue_other(struct thread_data *td, struct nvqueue_file *nf, struct io_u *io_u)
{
	if (nvqueue_is_native(td->io_ops_data))
		return nvqueue_native_queue(td, nf, io_u);
	return queue_standard(td, nf, io_u);
}

/*
 * The short way is that of reads and writes of whole LBAs on the native path,
 * deeper than 1; short_mask has all its bits set where it is not for this job.
 * fio has checked that a job with --readonly writes nothing.
 */
static enum fio_q_status nvqueue_queue(struct thread_data *td,
				       struct io_u *io_u)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct nvqueue_file *nf = FILE_ENG_DATA(io_u->file);

	if (unlikely(io_u->ddir > DDIR_WRITE ||
		     ((io_u->offset | io_u->xfer_buflen) & nf->short_mask)))
		return queue_other(td, nf, io_u);
	nvqueue_native_rw(job, nf, io_u);
	*job->batch_end++ = io_u;
	return FIO_Q_QUEUED;
}

static void note_issue(struct thread_data *td, unsigned int from,
		       unsigned int nr)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct nvq_ring *r = &job->ring;
	struct nvqueue_issue is;

	if (!nvqueue_issue_begin(td, &is))
		return;
	for (; nr--; from++)
		nvqueue_issue_one(&is,
				  job->io_us[r->sq_array[from & r->sq_mask]]);
}

/* Nothing could be submitted: give the kernel a moment, but not for ever. */
static int submit_refused(struct thread_data *td, int err)
{
	struct nvqueue_job *job = td->io_ops_data;
	uint64_t now;

	if (err == -EINTR)
		return 0;
	if (err != -EAGAIN && err != -EBUSY) {
		td_verror(td, -err, "io_uring_enter");
		return err;
	}
	now = now_ms();
	if (!job->submit_stuck)
		job->submit_stuck = now;
	if (now - job->submit_stuck > SUBMIT_MS) {
		nvqueue_refuse(td, -err,
			       "the kernel took no command for %u ms: %s",
			       SUBMIT_MS, strerror(-err));
		return err;
	}
	nvq_reap(&job->ring, job->ring.inflight);
	usleep(10);
	return 0;
}

static int nvqueue_commit(struct thread_data *td)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct nvq_ring *r = &job->ring;
	int ret;

	if (likely(nvqueue_is_native(job)))
		return nvqueue_native_commit(td);
	while (nvq_queued(r)) {
		unsigned int from = r->sq_sent;

		ret = nvq_submit(r);
		if (likely(ret > 0)) {
			job->submit_stuck = 0;
			note_issue(td, from, ret);
			io_u_mark_submit(td, ret);
			continue;
		}
		ret = submit_refused(td, ret);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- Completion -------------------------------------------------------------- */

/* Is every queue with commands in it dead?  Then a wait has an end. */
static bool all_dead(const struct nvqueue_job *job)
{
	unsigned int i;

	for (i = 0; i < job->nr_files; i++)
		if (nvq_state(&job->files[i]->q) != NVQ_STATE_DEAD)
			return false;
	return true;
}

static int wait_for(struct thread_data *td, unsigned int min)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int dead = 0;
	int ret;

	for (;;) {
		/* what was never submitted never completes */
		if (unlikely(min > job->ring.inflight))
			min = job->ring.inflight;
		ret = nvq_wait(&job->ring, min, WAIT_MS);
		if (likely(ret < 0 || (unsigned int)ret >= min))
			return ret;
		/* The driver ends every command: by time-out if need be. */
		if (!all_dead(job))
			continue;
		dead += WAIT_MS;
		if (dead < DEAD_MS)
			continue;
		nvqueue_refuse(td, ENODEV,
			       "%s is dead and %u commands did not come back",
			       job->files[0]->q.name, job->ring.inflight - ret);
		return -ENODEV;
	}
}

static int nvqueue_getevents(struct thread_data *td, unsigned int min,
			     unsigned int max, const struct timespec *t)
{
	struct nvqueue_job *job = td->io_ops_data;
	int ret;

	(void)t; /* fio passes zero: min says whether to wait */
	if (likely(nvqueue_is_native(job)))
		return nvqueue_native_getevents(td, min, max);
	nvq_advance(&job->ring, job->reaped);
	job->reaped = 0;
	if (likely(min))
		ret = wait_for(td, min);
	else
		ret = nvq_reap(&job->ring, 1);
	if (unlikely(ret < 0))
		return ret;
	job->reaped = min((unsigned int)ret, max);
	return job->reaped;
}

static struct io_u *nvqueue_event(struct thread_data *td, int event)
{
	struct nvqueue_job *job = td->io_ops_data;
	const struct io_uring_cqe *cqe;
	struct io_u *io_u;

	if (likely(nvqueue_is_native(job)))
		return job->events[event];
	cqe = nvq_cqe(&job->ring, event);
	io_u = (struct io_u *)(uintptr_t)cqe->user_data;
	if (unlikely(cqe->res))
		nvqueue_failed(td, io_u, cqe->res);
	return io_u;
}

/* ---- Life of a job ----------------------------------------------------------- */

/*
 * Memory only.  Queues are opened in post_init(), since fio advises to reduce
 * the I/O depth whenever init() fails.
 */
static int nvqueue_init(struct thread_data *td)
{
	struct nvqueue_job *job;

	job = calloc(1, sizeof(*job));
	if (!job)
		return 1;
	td->io_ops_data = job;
	job->io_us = calloc(td->o.iodepth, sizeof(*job->io_us));
	job->iovecs = calloc(td->o.iodepth, sizeof(*job->iovecs));
	job->ranges = calloc(td->o.iodepth, sizeof(*job->ranges));
	return !job->io_us || !job->iovecs || !job->ranges;
}

static int nvqueue_io_u_init(struct thread_data *td, struct io_u *io_u)
{
	struct nvqueue_job *job = td->io_ops_data;

	job->io_us[io_u->index] = io_u;
	return 0;
}

/*
 * The queue is open from post_init() to cleanup(): these only lend its
 * descriptor.
 */
static int nvqueue_open_file(struct thread_data *td, struct fio_file *f)
{
	struct nvqueue_file *nf = FILE_ENG_DATA(f);

	if (nf->q.fd < 0) {
		nvqueue_refuse(td, EBADF, "%s is not this job's queue",
			       f->file_name);
		return 1;
	}
	f->fd = nf->q.fd;
	return 0;
}

static int nvqueue_close_file(struct thread_data *td, struct fio_file *f)
{
	(void)td;
	f->fd = -1;
	return 0;
}

static void print_stats(struct thread_data *td)
{
	const struct nvqueue_options *o = td->eo;
	const struct nvqueue_job *job = td->io_ops_data;
	const struct nvq_ring_stats *s = &job->ring.stats;

	if (!o->queue_stats)
		return;
	if (nvqueue_is_native(job)) {
		nvqueue_native_stats(td);
		return;
	}
	log_info("nvqueue: %s: %s: %llu commands, %llu calls to submit, %llu to reap, %llu of them found nothing\n",
		 td->o.name, job->nr_files ? job->files[0]->q.name : "no queue",
		 (unsigned long long)s->submitted,
		 (unsigned long long)s->submit_calls,
		 (unsigned long long)s->reap_calls,
		 (unsigned long long)s->reap_empty);
}

static void nvqueue_cleanup(struct thread_data *td)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int i;

	if (!job)
		return;
	print_stats(td);
	nvqueue_sum_up_failures(td);
	nvq_ring_exit(&job->ring);
	nvqueue_native_stop(job);
	for (i = 0; i < job->nr_files; i++) {
		nvq_close(&job->files[i]->q);
		free(job->files[i]);
	}
	free(job->files);
	free(job->io_us);
	free(job->iovecs);
	free(job->ranges);
	free(job);
	td->io_ops_data = NULL;
}

/*
 * fio finds it by its name.  Sizes are set by setup(), in fio's parent process,
 * without opening a queue.
 */
struct ioengine_ops ioengine = {
	.name = "nvqueue",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_RAWIO | FIO_MEMALIGN | FIO_NOEXTEND | FIO_NODISKUTIL |
		 FIO_NO_OFFLOAD | FIO_ASYNCIO_SETS_ISSUE_TIME,
	.setup = nvqueue_setup,
	.init = nvqueue_init,
	.post_init = nvqueue_start,
	.io_u_init = nvqueue_io_u_init,
	.queue = nvqueue_queue,
	.commit = nvqueue_commit,
	.getevents = nvqueue_getevents,
	.event = nvqueue_event,
	.open_file = nvqueue_open_file,
	.close_file = nvqueue_close_file,
	.cleanup = nvqueue_cleanup,
	.options = nvqueue_options,
	.option_struct_size = sizeof(struct nvqueue_options),
};

/*
 * fio's structures change between releases, some of them without its interface
 * version changing, so the release itself must be the one we were built for.
 * Checked while fio loads us; an impossible interface version makes it refuse
 * before it lets us touch anything.
 */
static void __attribute__((constructor)) check_fio(void)
{
	const char *running = dlsym(RTLD_DEFAULT, "fio_version_string");

	if (running && !strcmp(running, NVQ_FIO_VERSION))
		return;
	fprintf(stderr,
		"nvqueue: this engine was built for %s and cannot run in %s: build it for that one (./configure --with-fio=DIR)\n",
		NVQ_FIO_VERSION, running ? running : "an unknown fio");
	ioengine.version = -1;
}
