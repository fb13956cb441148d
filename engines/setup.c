// SPDX-License-Identifier: GPL-2.0
/*
 * Everything that is decided before the first I/O: which job drives which
 * queue, whether the job fits the queue and the namespace, the ring.
 *
 * nvqueue_setup() runs in fio's parent process, for one job after the other
 * (in the job itself with create_serialize=0), and must own no queue: it asks
 * sysfs and the controller node.  nvqueue_start() runs in the job and opens
 * the queues.  What does not fit is refused with one line that has the numbers
 * and the way out; all jobs of one section are refused alike, so that none of
 * them runs and prints a result.
 */
#include <fio.h>

#include "nvqueue.h"

/* The first of a section's numjobs jobs, and how many jobs after it @td is. */
static struct thread_data *leader_of(struct thread_data *td, unsigned int *nth)
{
	struct thread_data *lead = td;

	/* fio numbers jobs from 1; the copies follow the original */
	while (lead->subjob_number && lead->thread_number > 1)
		lead = tnumber_to_td(lead->thread_number - 2);
	*nth = td->thread_number - lead->thread_number;
	return lead;
}

static unsigned int jobs_of_section(struct thread_data *td)
{
	unsigned int nth;

	return leader_of(td, &nth)->o.numjobs;
}

/*
 * Was another job of the section refused by nvqueue_setup() in fio's parent?
 * Then no job of it runs: a part of them is no result.
 */
static bool section_refused(struct thread_data *td)
{
	unsigned int nth, i;
	struct thread_data *lead = leader_of(td, &nth);

	for (i = 0; i < lead->o.numjobs; i++) {
		struct thread_data *job;

		job = tnumber_to_td(lead->thread_number - 1 + i);
		if (job->error && !job->pid)
			return true;
	}
	return false;
}

static struct nvqueue_file *file_of(struct thread_data *td, unsigned int i)
{
	return FILE_ENG_DATA(td->files[i]);
}

/* The kind of queue a file stands for; a controller node: what is claimed. */
static enum nvq_kind kind_of(struct thread_data *td,
			     const struct nvqueue_file *nf)
{
	const struct nvqueue_options *o = td->eo;

	if (nf->info.kind != NVQ_KIND_CTRL)
		return nf->info.kind;
	if (o->queue_kind)
		return o->queue_kind;
	return o->hipri_set && !o->hipri ? NVQ_KIND_IRQ : NVQ_KIND_POLL;
}

/* ---- Which files ------------------------------------------------------------- */

static int describe_file(struct thread_data *td, struct fio_file *f)
{
	const struct nvqueue_options *o = td->eo;
	const struct nvq_geometry *geo;
	struct nvqueue_file *nf;
	struct nvq_error err;
	int ret;

	if (FILE_ENG_DATA(f))
		return 0;
	nf = calloc(1, sizeof(*nf));
	if (!nf)
		return 1;
	nf->q.fd = -1;
	ret = nvq_query(&nf->info, f->file_name, o->nsid, &err);
	if (ret) {
		/* fio takes ENOENT for a file that it may create */
		nvqueue_refuse(td, ret == -ENOENT ? ENODEV : -ret, "%s",
			       err.text);
		free(nf);
		return 1;
	}
	geo = &nf->info.geo;
	if (geo->metadata_size) {
		nvqueue_refuse(td, EOPNOTSUPP,
			       "namespace %u of %s is formatted with %u bytes of metadata per block, which nvqueue does not carry: format it without, or choose another with nsid=",
			       geo->nsid, nf->info.ctrl, geo->metadata_size);
		free(nf);
		return 1;
	}
	nf->lba_mask = geo->lba_size - 1;
	nf->short_mask = ~0ull;
	f->real_file_size = geo->nsze * geo->lba_size;
	fio_file_set_size_known(f);
	FILE_SET_ENG_DATA(f, nf);
	return 0;
}

static bool only_queue_files(struct thread_data *td)
{
	unsigned int i;

	for (i = 0; i < td->o.nr_files; i++)
		if (file_of(td, i)->info.kind == NVQ_KIND_CTRL)
			return false;
	return true;
}

/* Leave the job its n-th file alone (queue_map=spread). */
static int keep_one_file(struct thread_data *td)
{
	const struct nvqueue_options *o = td->eo;
	unsigned int nth, jobs = leader_of(td, &nth)->o.numjobs;
	struct fio_file *f;

	if (jobs > td->o.nr_files) {
		nvqueue_refuse(td, EINVAL,
			       "numjobs=%u, but filename names %u queue file(s), and each has one owner at a time: name as many, lower numjobs, or name the controller to have free ones claimed",
			       jobs, td->o.nr_files);
		return 1;
	}
	nth = (nth + o->queue_offset) % td->o.nr_files;
	f = td->files[nth];
	td->files[nth] = td->files[0];
	td->files[0] = f;
	td->o.nr_files = 1;
	td->files_index = 1;
	td->o.open_files = 1;
	return 0;
}

static int choose_files(struct thread_data *td)
{
	const struct nvqueue_options *o = td->eo;
	unsigned int jobs = jobs_of_section(td);

	switch (o->queue_map) {
	case NVQUEUE_MAP_SPREAD:
		return td->o.nr_files > 1 || jobs > 1 ? keep_one_file(td) : 0;
	case NVQUEUE_MAP_AUTO:
		return jobs > 1 && only_queue_files(td) ? keep_one_file(td) : 0;
	default:
		break;
	}
	if (jobs == 1 || !only_queue_files(td))
		return 0;
	nvqueue_refuse(td, EINVAL,
		       "numjobs=%u with queue_map=all: a queue file has one owner at a time; drop queue_map, or name the controller to have free ones claimed",
		       jobs);
	return 1;
}

/* ---- Whether the job fits ---------------------------------------------------- */

static int check_kind(struct thread_data *td, const struct nvqueue_file *nf)
{
	const struct nvqueue_options *o = td->eo;
	enum nvq_kind kind = kind_of(td, nf), first = kind_of(td, file_of(td, 0));

	if (kind != first) {
		nvqueue_refuse(td, EINVAL,
			       "%s means a queue of kind %s, %s one of kind %s: one job drives one kind",
			       file_of(td, 0)->info.name, nvq_kind_name(first),
			       nf->info.name, nvq_kind_name(kind));
		return 1;
	}
	if (o->hipri && kind == NVQ_KIND_IRQ) {
		nvqueue_refuse(td, EINVAL,
			       "hipri=1 polls, but %s means an irq queue: take a poll queue (/dev/%spoll0, queue_kind=poll) or drop hipri",
			       nf->info.name, nf->info.ctrl);
		return 1;
	}
	if (o->hipri_set && !o->hipri && kind == NVQ_KIND_POLL) {
		nvqueue_refuse(td, EINVAL,
			       "hipri=0 waits for interrupts, but %s means a poll queue, which has none: take an irq queue (/dev/%sirq0, queue_kind=irq) or drop hipri",
			       nf->info.name, nf->info.ctrl);
		return 1;
	}
	return 0;
}

static int check_depth(struct thread_data *td, const struct nvqueue_file *nf)
{
	unsigned int depth = nf->info.geo.depth;

	if (td->o.iodepth < depth)
		return 0;
	nvqueue_refuse(td, EINVAL,
		       "iodepth=%u is more than %s takes: a queue of %u entries holds %u commands; use iodepth=%u, and more queues (numjobs) for more in flight",
		       td->o.iodepth, nf->info.name, depth, depth - 1,
		       depth - 1);
	return 1;
}

static int check_multiple(struct thread_data *td, const struct nvqueue_file *nf,
			  const char *what, unsigned long long val)
{
	unsigned int lba_size = nf->info.geo.lba_size;

	if (!(val & nf->lba_mask))
		return 0;
	nvqueue_refuse(td, EINVAL,
		       "%s=%llu is not a multiple of the logical block of namespace %u of %s, %u bytes: use %s=%u or a multiple",
		       what, val, nf->info.geo.nsid, nf->info.ctrl, lba_size,
		       what, lba_size);
	return 1;
}

static int check_split(struct thread_data *td, const struct nvqueue_file *nf,
		       enum fio_ddir ddir)
{
	unsigned int i;

	for (i = 0; i < td->o.bssplit_nr[ddir]; i++)
		if (check_multiple(td, nf, "bssplit", td->o.bssplit[ddir][i].bs))
			return 1;
	return 0;
}

static int check_ddir(struct thread_data *td, const struct nvqueue_file *nf,
		      enum fio_ddir ddir)
{
	const struct nvq_geometry *geo = &nf->info.geo;
	unsigned long long max_bs = td->o.max_bs[ddir];

	if (check_multiple(td, nf, "bs", td->o.min_bs[ddir]) ||
	    check_multiple(td, nf, "bs", max_bs) ||
	    check_multiple(td, nf, "blockalign", td->o.ba[ddir]) ||
	    check_split(td, nf, ddir))
		return 1;
	if (ddir != DDIR_TRIM && max_bs > geo->mdts) {
		nvqueue_refuse(td, EINVAL,
			       "bs=%llu is more than one command of %s may move (MDTS): use bs=%u or less",
			       max_bs, nf->info.ctrl, geo->mdts);
		return 1;
	}
	if (ddir == DDIR_TRIM && max_bs / geo->lba_size > UINT32_MAX) {
		nvqueue_refuse(td, EINVAL,
			       "bs=%llu is more than one range of a trim can say: use bs=%llu or less",
			       max_bs, (unsigned long long)UINT32_MAX *
					       geo->lba_size);
		return 1;
	}
	return 0;
}

static int check_sizes(struct thread_data *td, const struct nvqueue_file *nf)
{
	if (td->o.bs_unaligned && nf->info.geo.lba_size > 1) {
		nvqueue_refuse(td, EINVAL,
			       "bs_unaligned: commands move whole logical blocks of %u bytes; drop it",
			       nf->info.geo.lba_size);
		return 1;
	}
	if (td_read(td) && check_ddir(td, nf, DDIR_READ))
		return 1;
	if (td_write(td) && check_ddir(td, nf, DDIR_WRITE))
		return 1;
	if (td_trim(td) && check_ddir(td, nf, DDIR_TRIM))
		return 1;
	return check_multiple(td, nf, "offset", td->o.start_offset) ||
	       check_multiple(td, nf, "offset_increment",
			      td->o.offset_increment);
}

static int check_options(struct thread_data *td)
{
	const struct nvqueue_options *o = td->eo;

	if (o->hipri && o->queue_kind == NVQ_KIND_IRQ) {
		nvqueue_refuse(td, EINVAL,
			       "hipri=1 polls and queue_kind=irq has interrupts: drop one of them");
		return 1;
	}
	if ((o->submit == NVQUEUE_SUBMIT_NATIVE ||
	     o->submit == NVQUEUE_SUBMIT_IOCTL) &&
	    (!o->nonvectored || !o->phase_check)) {
		nvqueue_refuse(td, EINVAL,
			       "%s needs submit=standard: native commands name registered memory, and their completions are read in user space",
			       o->nonvectored ? "phase_check=0" :
						"nonvectored=0");
		return 1;
	}
	if (o->submit == NVQUEUE_SUBMIT_IOCTL && o->sqpoll_thread) {
		nvqueue_refuse(td, EINVAL,
			       "sqthread_poll=1 and submit=native_ioctl: there is no ring for a thread to poll; drop one of them");
		return 1;
	}
	if (o->fixedbufs && !o->nonvectored) {
		nvqueue_refuse(td, EINVAL,
			       "fixedbufs=1 and nonvectored=0: a registered buffer cannot be given as an iovec; drop one of them");
		return 1;
	}
	return 0;
}

/* ---- Whether the queues are there and free ----------------------------------- */

/*
 * Both ask again for a second: a process that has just ended is still releasing
 * its queue (io_uring drops files from a worker).
 */
#define FREE_TRIES	100
#define FREE_PAUSE_US	10000

static int check_enough(struct thread_data *td, const struct nvqueue_file *nf)
{
	enum nvq_kind kind = kind_of(td, nf);
	unsigned int jobs = jobs_of_section(td), exist, unowned, tries = 0;

	for (;;) {
		/* without a descriptor to look with, opening one tells */
		if (nvq_count(nf->info.ctrl, kind, &exist, &unowned))
			return 0;
		/* in the job its siblings own some of them */
		if (jobs <= unowned || (td->io_ops_data && jobs <= exist))
			return 0;
		if (jobs > exist || ++tries == FREE_TRIES)
			break;
		usleep(FREE_PAUSE_US);
	}
	nvqueue_refuse(td, EBUSY,
		       "numjobs=%u needs as many %s queues: %s has %u, of which %u are free; lower numjobs, or load nvqueue with more (user_%s_queues=)",
		       jobs, nvq_kind_name(kind), nf->info.ctrl, exist,
		       unowned, nvq_kind_name(kind));
	return 1;
}

static int check_unowned(struct thread_data *td, struct fio_file *f)
{
	struct nvqueue_file *nf = FILE_ENG_DATA(f);
	const struct nvqueue_options *o = td->eo;
	unsigned int exist, unowned, tries;

	for (tries = 0; nf->info.owner && tries < FREE_TRIES; tries++) {
		usleep(FREE_PAUSE_US);
		if (nvq_query(&nf->info, f->file_name, o->nsid, NULL))
			break;
	}
	if (!nf->info.owner)
		return 0;
	nvq_count(nf->info.ctrl, nf->info.kind, &exist, &unowned);
	nvqueue_refuse(td, EBUSY,
		       "%s is busy, process %d owns it; of the %u %s queues of %s %u are free",
		       f->file_name, (int)nf->info.owner, exist,
		       nvq_kind_name(nf->info.kind), nf->info.ctrl, unowned);
	return 1;
}

static int check_queues(struct thread_data *td)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < td->o.nr_files && !ret; i++) {
		if (file_of(td, i)->info.kind == NVQ_KIND_CTRL)
			ret = check_enough(td, file_of(td, i));
		else if (!td->io_ops_data)
			ret = check_unowned(td, td->files[i]);
	}
	return ret;
}

int nvqueue_setup(struct thread_data *td)
{
	const struct nvqueue_job *job = td->io_ops_data;
	unsigned int i;

	/* Has this fio the layout of struct thread_data that we know? */
	if (td->io_ops != &ioengine) {
		log_err("nvqueue: the structures of this %s are not those that the engine was built with: build it with the config-host.h of this fio\n",
			NVQ_FIO_VERSION);
		return 1;
	}
	if (job && job->nr_files)
		return 0; /* in the job, and nvqueue_start() has been there */
	if (section_refused(td)) {
		td_verror(td, ECANCELED, "nvqueue");
		return 1;
	}
	if (!td->o.filename || !td->o.nr_files) {
		nvqueue_refuse(td, EINVAL,
			       "filename= is missing: a queue (/dev/nvq0poll0), several of them, or a controller (/dev/nvq0)");
		return 1;
	}
	for (i = 0; i < td->o.nr_files; i++)
		if (describe_file(td, td->files[i]))
			return 1;
	if (check_options(td) || choose_files(td))
		return 1;
	for (i = 0; i < td->o.nr_files; i++) {
		const struct nvqueue_file *nf = file_of(td, i);

		if (check_kind(td, nf) || check_depth(td, nf) ||
		    check_sizes(td, nf))
			return 1;
	}
	return check_queues(td);
}

/* ---- In the job -------------------------------------------------------------- */

static int take_queue(struct thread_data *td, struct fio_file *f, int flags,
		      struct nvq_error *err)
{
	const struct nvqueue_options *o = td->eo;
	struct nvqueue_file *nf = FILE_ENG_DATA(f);
	unsigned int nth;

	leader_of(td, &nth);
	if (nf->info.kind == NVQ_KIND_CTRL)
		return nvq_claim(&nf->q, f->file_name, kind_of(td, nf),
				 nth + o->queue_offset, flags, err);
	return nvq_open(&nf->q, f->file_name, flags, err);
}

static int open_queue(struct thread_data *td, struct fio_file *f)
{
	const struct nvqueue_options *o = td->eo;
	const struct nvqueue_job *job = td->io_ops_data;
	struct nvqueue_file *nf = FILE_ENG_DATA(f);
	bool writes = td_write(td) || td_trim(td);
	int flags = O_RDWR;
	struct nvq_error err;
	int ret;

	/*
	 * The staging ring needs a descriptor open for writing; but a job that
	 * only reads needs permission to read only.
	 */
	if (!writes && job->submit == NVQUEUE_SUBMIT_STANDARD)
		flags = O_RDONLY;
	ret = take_queue(td, f, flags, &err);
	if (ret == -EACCES && !writes && flags == O_RDWR)
		ret = take_queue(td, f, O_RDONLY, &err);
	if (!ret && o->nsid)
		ret = nvq_select_ns(&nf->q, o->nsid, &err);
	if (ret) {
		nvqueue_refuse(td, -ret, "%s", err.text);
		return 1;
	}
	if (nf->q.geo.nsze != nf->info.geo.nsze ||
	    nf->q.geo.lba_size != nf->info.geo.lba_size) {
		nvqueue_refuse(td, ESTALE,
			       "%s: namespace %u was formatted while fio started: %llu LBAs of %u bytes, before %llu of %u; start again",
			       nf->q.name, nf->q.nsid,
			       (unsigned long long)nf->q.geo.nsze,
			       nf->q.geo.lba_size,
			       (unsigned long long)nf->info.geo.nsze,
			       nf->info.geo.lba_size);
		return 1;
	}
	return 0;
}

static int open_queues(struct thread_data *td)
{
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int i;

	job->files = calloc(td->o.nr_files, sizeof(*job->files));
	if (!job->files)
		return 1;
	for (i = 0; i < td->o.nr_files; i++) {
		job->files[i] = file_of(td, i);
		job->nr_files++;
		if (open_queue(td, td->files[i]))
			return 1;
	}
	return 0;
}

static int init_ring(struct thread_data *td)
{
	const struct nvqueue_options *o = td->eo;
	struct nvqueue_job *job = td->io_ops_data;
	struct nvq_ring_options opt = {
		.entries = td->o.iodepth,
		.sq_cpu = o->sqpoll_set ? (int)o->sqpoll_cpu : -1,
	};
	struct nvq **queues;
	struct nvq_error err;
	unsigned int i;
	int ret;

	if (o->sqpoll_thread)
		opt.flags |= NVQ_RING_SQPOLL;
	if (o->sqpoll_thread || o->registerfiles)
		opt.flags |= NVQ_RING_FIXED_FILES;
	if (!o->phase_check)
		opt.flags |= NVQ_RING_KERNEL_POLL;
	queues = calloc(job->nr_files, sizeof(*queues));
	if (!queues)
		return 1;
	for (i = 0; i < job->nr_files; i++)
		queues[i] = &job->files[i]->q;
	ret = nvq_ring_init(&job->ring, queues, job->nr_files, &opt, &err);
	free(queues);
	if (ret)
		nvqueue_refuse(td, -ret, "%s", err.text);
	return ret;
}

static int register_buffers(struct thread_data *td)
{
	struct nvqueue_job *job = td->io_ops_data;
	struct nvq_error err;
	unsigned int i;
	int ret;

	for (i = 0; i < td->o.iodepth; i++) {
		job->iovecs[i].iov_base = job->io_us[i]->buf;
		job->iovecs[i].iov_len = td_max_bs(td);
	}
	ret = nvq_ring_buffers(&job->ring, job->iovecs, td->o.iodepth, &err);
	if (ret) {
		nvqueue_refuse(td, -ret,
			       "fixedbufs with iodepth=%u and bs=%llu: %s",
			       td->o.iodepth, td_max_bs(td), err.text);
		return ret;
	}
	for (i = 0; i < td->o.iodepth; i++)
		nvq_slot_fixed(&job->ring, i, i);
	return 0;
}

/* submit= not given: the best way that the job's other options leave open. */
static enum nvqueue_submit submit_of(const struct thread_data *td)
{
	const struct nvqueue_options *o = td->eo;

	if (o->submit)
		return o->submit;
	if (!o->phase_check || !o->nonvectored)
		return NVQUEUE_SUBMIT_STANDARD;
	/* no batch: what io_uring does for one is not worth its price */
	if (td->o.iodepth == 1 && !o->sqpoll_thread)
		return NVQUEUE_SUBMIT_IOCTL;
	return NVQUEUE_SUBMIT_NATIVE;
}

/*
 * One job of a section has no queue after all (it was taken since
 * check_queues()): the others end too, a part of them is no result.
 */
static void stop_section(struct thread_data *td)
{
	unsigned int nth, i;
	struct thread_data *lead = leader_of(td, &nth);

	for (i = 0; i < lead->o.numjobs; i++)
		fio_mark_td_terminate(tnumber_to_td(lead->thread_number - 1 +
						    i));
}

int nvqueue_start(struct thread_data *td)
{
	const struct nvqueue_options *o = td->eo;
	struct nvqueue_job *job = td->io_ops_data;
	unsigned int i;

	if (section_refused(td)) {
		td_verror(td, ECANCELED, "nvqueue");
		return 1;
	}
	/* With create_serialize=0 fio calls it later than this. */
	if (!td->o.create_serialize && nvqueue_setup(td))
		return 1;
	job->submit = submit_of(td);
	/* a vector is prepared each time, and a trim alters its slot */
	job->slots_stay = o->nonvectored && !td_trim(td);
	if (open_queues(td)) {
		stop_section(td);
		return 1;
	}
	if (nvqueue_is_native(job))
		return nvqueue_native_start(td);
	if (init_ring(td))
		return 1;
	for (i = 0; i < td->o.iodepth; i++)
		nvq_slot_init(&job->ring, i, (uintptr_t)job->io_us[i]);
	/* a job that only trims has no buffers */
	if (o->fixedbufs && (td_read(td) || td_write(td)))
		return !!register_buffers(td);
	return 0;
}
