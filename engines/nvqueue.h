/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the engine's files share: its options, and what a job and each of its
 * files keep.  Include fio.h first.
 */
#ifndef NVQUEUE_ENGINE_H
#define NVQUEUE_ENGINE_H

#include <nvq.h>
#include <nvq_native.h>

#ifndef NVQ_FIO_VERSION
#error "NVQ_FIO_VERSION must be the version string of the fio to load into"
#endif

#ifndef likely
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#endif

enum nvqueue_map {
	NVQUEUE_MAP_AUTO,
	NVQUEUE_MAP_ALL,
	NVQUEUE_MAP_SPREAD,
};

/* How commands get to the kernel. */
enum nvqueue_submit {
	NVQUEUE_SUBMIT_NATIVE = 1,	/* batches, by io_uring */
	NVQUEUE_SUBMIT_IOCTL,		/* batches, by ioctl */
	NVQUEUE_SUBMIT_STANDARD,	/* each by itself: passthrough */
};

struct nvqueue_options {
	struct thread_data *td;	/* fio stores it here */
	unsigned int hipri;
	unsigned int hipri_set;
	unsigned int fixedbufs;
	unsigned int registerfiles;
	unsigned int sqpoll_thread;
	unsigned int sqpoll_set;
	unsigned int sqpoll_cpu;
	unsigned int nonvectored;
	unsigned int cmd_type;
	unsigned int phase_check;
	unsigned int queue_kind;	/* enum nvq_kind, 0: not given */
	unsigned int queue_map;		/* enum nvqueue_map */
	unsigned int queue_offset;
	unsigned int nsid;		/* 0: the default one */
	unsigned int queue_stats;
	unsigned int submit;		/* enum nvqueue_submit, 0: not given */
};

/* One file of a job; engine data of the fio_file. */
struct nvqueue_file {
	struct nvq_info info;	/* as seen before the queue was opened */
	struct nvq q;		/* open from init to cleanup of the job */
	uint64_t lba_mask;	/* bits of a byte offset that must be 0 */
	uint64_t short_mask;	/* the same for the short way in, or all bits */
	struct nvq_native n;	/* unless standard */
	unsigned int index;	/* of it in the job */
	unsigned int buf;	/* of all io_us */
	unsigned int ranges_buf;
};

/* What failed in one way: told once, counted after. */
struct nvqueue_failure {
	unsigned int opcode;
	int res;
	uint64_t count;
};

#define NVQUEUE_MAX_FAILURES	16

struct nvqueue_job {
	struct nvq_ring ring;
	unsigned int reaped;	/* given to fio, not yet passed over */
	bool slots_stay;	/* reads and writes need no slot set up anew */
	uint64_t submit_stuck;	/* ms, since when nothing can be submitted */
	struct io_u **io_us;	/* by index, which is the slot */
	struct iovec *iovecs;	/* nonvectored=0, fixedbufs */
	struct nvq_dsm_range *ranges;	/* trim */
	/* native.c */
	enum nvqueue_submit submit;
	bool one;		/* depth 1: queue() completes */
	unsigned int hold_max;	/* commands held for want of a batch of fio's own */
	unsigned int hold_for;	/* completions that fio reaps meanwhile */
	struct pollfd *fds;	/* of several irq queues */
	char *region;		/* the registered memory */
	unsigned int nr_kept;
	struct io_u **batch;	/* staged since the last flush */
	struct io_u **batch_end;
	struct io_u **kept;	/* ended, told by the next getevents() */
	struct io_u **events;	/* what it told */
	uint64_t submitted, waits;
	struct nvq_native_ring nring;

	struct nvqueue_file **files;
	unsigned int nr_files;
	unsigned int nr_failures;
	struct nvqueue_failure failures[NVQUEUE_MAX_FAILURES];
};

extern struct ioengine_ops ioengine;

/* options.c */
extern struct fio_option nvqueue_options[];

/* setup.c: everything that is decided before the first I/O */
int nvqueue_setup(struct thread_data *td);
int nvqueue_start(struct thread_data *td);

/* native.c: the I/O path unless submit=standard */
int nvqueue_native_start(struct thread_data *td);
void nvqueue_native_stop(struct nvqueue_job *job);
void nvqueue_native_stats(const struct thread_data *td);
enum fio_q_status nvqueue_native_queue(struct thread_data *td,
				       struct nvqueue_file *nf,
				       struct io_u *io_u);
int nvqueue_native_commit(struct thread_data *td);
int nvqueue_native_getevents(struct thread_data *td, unsigned int min,
			     unsigned int max);

static inline bool nvqueue_is_native(const struct nvqueue_job *job)
{
	return job->submit != NVQUEUE_SUBMIT_STANDARD;
}

static inline void nvqueue_native_rw(const struct nvqueue_job *job,
				     struct nvqueue_file *nf,
				     const struct io_u *io_u)
{
	nvq_stage_rw(&nf->n, io_u->index,
		     io_u->ddir == DDIR_READ ? NVQ_READ : NVQ_WRITE,
		     io_u->offset >> nf->q.lba_shift,
		     io_u->xfer_buflen >> nf->q.lba_shift, nf->buf,
		     (char *)io_u->xfer_buf - job->region);
}

/* failure.c */

/*
 * Refuse to run: one line, however many jobs of a section are refused for the
 * same reason, and @err, a positive errno, as the job's error.
 */
void nvqueue_refuse(struct thread_data *td, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void nvqueue_failed(struct thread_data *td, struct io_u *io_u, int res);
enum fio_q_status nvqueue_failed_at_once(struct thread_data *td,
					 struct io_u *io_u, int res);
void nvqueue_sum_up_failures(struct thread_data *td);

#endif /* NVQUEUE_ENGINE_H */
