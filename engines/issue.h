/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What FIO_ASYNCIO_SETS_ISSUE_TIME leaves to the engine: each io_u's issue time,
 * and its submission latency in the statistics.
 *
 * fio's io_u_queued() asks for each io_u anew what is the same for a whole
 * batch: whether the latency is wanted, whether the ramp time is over, whose
 * statistics these are.  Here that is asked once a batch.
 */
#ifndef NVQUEUE_ISSUE_H
#define NVQUEUE_ISSUE_H

struct nvqueue_issue {
	struct timespec now;
	struct thread_data *stats;	/* NULL: nobody wants to know */
};

/* False: fio wants no times. */
static inline bool nvqueue_issue_begin(struct thread_data *td,
				       struct nvqueue_issue *is)
{
	if (!fio_fill_issue_time(td))
		return false;
	fio_gettime(&is->now, NULL);
	is->stats = NULL;
	if (!td->o.disable_slat && ramp_time_over(td) && td->o.stats)
		is->stats = td->parent ? td->parent : td;
	if (td->o.read_iolog_file)
		td->last_issue = is->now;
	return true;
}

/* As ntime_since(), for a clock that does not run backwards but by its noise. */
static inline unsigned long long nvqueue_ns(const struct timespec *from,
					    const struct timespec *to)
{
	long long ns = (to->tv_sec - from->tv_sec) * 1000000000ll +
		       to->tv_nsec - from->tv_nsec;

	return ns > 0 ? ns : 0;
}

/* add_slat_sample() as it was up to fio 3.35 or so, and as it is since. */
typedef void nvqueue_slat_value(struct thread_data *, enum fio_ddir,
				unsigned long long, unsigned long long,
				uint64_t, unsigned int);
typedef void nvqueue_slat_io_u(struct thread_data *, struct io_u *);

#define nvqueue_slat_is(type) \
	__builtin_types_compatible_p(__typeof__(add_slat_sample), type)

static inline void nvqueue_issue_one(const struct nvqueue_issue *is,
				     struct io_u *io_u)
{
	void *add = add_slat_sample;

	_Static_assert(nvqueue_slat_is(nvqueue_slat_value) ||
		       nvqueue_slat_is(nvqueue_slat_io_u),
		       "this fio takes submission latencies in a way we do not know");
	io_u->issue_time = is->now;
	if (!is->stats)
		return;
	if (nvqueue_slat_is(nvqueue_slat_value))
		((nvqueue_slat_value *)add)(is->stats, io_u->ddir,
					    nvqueue_ns(&io_u->start_time,
						       &is->now),
					    io_u->xfer_buflen, io_u->offset,
					    io_u->ioprio);
	else
		((nvqueue_slat_io_u *)add)(is->stats, io_u);
}

#endif /* NVQUEUE_ISSUE_H */
