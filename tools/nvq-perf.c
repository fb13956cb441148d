// SPDX-License-Identifier: MIT
/*
 * nvq-perf: what a path through nvqueue costs, with nothing around it.
 *
 * Random reads or writes on queue files, with t/io_uring's letters where they
 * mean the same.  Waiting is told apart: how often the program looked for a
 * completion that was not there, and what such a look costs, measured on the
 * idle queue before the start, so that instructions per I/O can be given
 * without it where one instruction takes one nanosecond (ci/guest --icount).
 */
#include "config.h"

#include <argp.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <nvq.h>
#include <nvq_native.h>

const char *argp_program_version = PACKAGE_STRING;

#define MAX_FILES	16
#define MAX_DEPTH	4096
#define HUGE_PAGE	(2u << 20)

enum path {
	PATH_IOCTL,
	PATH_URING,
	PATH_SQPOLL,
	PATH_STANDARD,
};

static const char *const path_names[] = {
	"native-ioctl", "native-uring", "native-sqpoll", "standard",
};

static struct {
	unsigned int bs, depth, batch, complete, threads, seconds;
	unsigned int fixed, polled, huge;
	int sq_cpu;
	bool write;
	uint64_t total;
	enum path path;
	char *files[MAX_FILES];
	unsigned int nr_files;
} o = {
	.bs = 512, .depth = 128, .batch = 32, .complete = 32, .threads = 1,
	.fixed = 1, .polled = 1, .sq_cpu = -1, .path = PATH_URING,
};

/* One queue of a worker. */
struct file {
	struct nvq q;
	struct nvq_native n;
	uint64_t blocks;	/* of bs bytes */
	enum nvq_opcode opcode;
	uint32_t nlb;
	int buf;
};

struct worker {
	pthread_t thread;
	unsigned int index;
	struct file files[MAX_FILES];
	unsigned int nr_files;
	struct nvq_native_ring nring;
	struct nvq_ring ring;
	char *mem;
	size_t mem_bytes, stride;
	uint64_t seed;
	/* results */
	uint64_t ios, ns, empty, failed, calls, wakeups, submitted, reap_calls,
		reap_empty;
	double look_ns;		/* of a look that finds nothing */
	int first_res;
};

static volatile bool stop;
static uint64_t wanted_per_worker;
static pthread_barrier_t barrier;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Knuth's MMIX generator: its high bits are good, and only those are used. */
static inline uint64_t random64(uint64_t *s)
{
	return *s = *s * 6364136223846793005ull + 1442695040888963407ull;
}

static inline uint64_t random_slba(struct worker *w, const struct file *f)
{
	/* the high half of the product: 0..blocks - 1, no division */
	return (uint64_t)(((unsigned __int128)random64(&w->seed) * f->blocks) >>
			  64) * f->nlb;
}

static void note_failure(struct worker *w, int res)
{
	if (!w->failed++)
		w->first_res = res;
}

/* ---- Native ---------------------------------------------------------------- */

static inline void stage(struct worker *w, struct file *f, unsigned int cid)
{
	nvq_stage_rw(&f->n, cid, f->opcode, random_slba(w, f), f->nlb, f->buf,
		     cid * w->stride);
}

static void refused(const struct file *f, int ret)
{
	errx(1, "%s: a command was refused: %s", f->q.name, strerror(-ret));
}

/* Hands over what is staged; waits where the queue's kind sleeps. */
static void submit_native(struct worker *w, unsigned int i, unsigned int wait)
{
	struct file *f = &w->files[i];
	uint32_t staged = nvq_native_staged(&f->n);
	int ret;

	if (o.path == PATH_IOCTL)
		ret = wait ? nvq_native_submit_wait(&f->n, wait, 0) :
			     nvq_native_submit(&f->n);
	else
		ret = wait ? nvq_native_ring_wait(&w->nring, i, wait, 0) :
			     nvq_native_ring_submit(&w->nring, i);
	if (ret < 0 || (staged && !ret && o.path != PATH_SQPOLL))
		refused(f, ret ? ret : f->n.kpage->submit_error);
}

/* Reads what is there, at most @max, and stages as many again. */
static inline unsigned int turn_over(struct worker *w, struct file *f,
				     unsigned int max, bool again)
{
	const struct nvq_cqe *c;
	unsigned int n;

	for (n = 0; n < max; n++) {
		c = nvq_native_next(&f->n);
		if (!c)
			break;
		if (__builtin_expect(nvq_native_res(c), 0))
			note_failure(w, nvq_native_res(c));
		if (again)
			stage(w, f, nvq_native_cid(c));
	}
	return n;
}

static void run_native(struct worker *w)
{
	unsigned int i, cid, n, left;
	bool sleeps = w->files[0].q.geo.kind == NVQ_KIND_IRQ;

	for (i = 0; i < w->nr_files; i++) {
		struct file *f = &w->files[i];

		for (cid = 0; cid < o.depth; cid++) {
			stage(w, f, cid);
			if ((cid + 1) % o.batch == 0 || cid + 1 == o.depth)
				submit_native(w, i, 0);
		}
	}
	while (!stop && w->ios < wanted_per_worker) {
		for (i = 0; i < w->nr_files; i++) {
			struct file *f = &w->files[i];

			if (!nvq_native_has(&f->n, o.complete)) {
				if (!sleeps) {
					w->empty++;
					continue;
				}
				submit_native(w, i, o.complete);
			}
			n = turn_over(w, f, o.batch, true);
			w->ios += n;
			submit_native(w, i, 0);
		}
	}
	for (i = 0; i < w->nr_files; i++) {
		struct file *f = &w->files[i];

		for (left = o.depth; left; left -= n) {
			if (nvq_native_wait(&f->n, 1, 40000))
				errx(1, "%s: %u commands did not come back",
				     f->q.name, left);
			n = turn_over(w, f, left, false);
		}
		w->calls += f->n.stats.submit_calls + f->n.stats.wait_calls;
	}
	w->calls += w->nring.stats.calls;
	w->wakeups = w->nring.stats.wakeups;
}

static double look_native(struct file *f)
{
	const unsigned int n = 100000;
	uint64_t t = now_ns(), found = 0;
	unsigned int i;

	/* as run_native()'s loop looks */
	for (i = 0; i < n && !stop; i++) {
		if (!nvq_native_has(&f->n, o.complete))
			found++;
		else
			break;
	}
	t = now_ns() - t;
	return found ? (double)t / n : 0;
}

/* ---- Standard -------------------------------------------------------------- */

static void prep_standard(struct worker *w, unsigned int slot)
{
	struct file *f = &w->files[slot / o.depth];

	nvq_prep_rw(&w->ring, slot, &f->q, o.write ? NVQ_WRITE : NVQ_READ,
		    random_slba(w, f), f->nlb, w->mem + slot * w->stride, o.bs);
	nvq_queue(&w->ring, slot);
}

static void submit_standard(struct worker *w)
{
	int ret;

	while (nvq_queued(&w->ring)) {
		ret = nvq_submit(&w->ring);
		if (ret < 0 && ret != -EAGAIN && ret != -EINTR && ret != -EBUSY)
			errx(1, "submission: %s", strerror(-ret));
	}
}

static unsigned int reap_standard(struct worker *w, unsigned int max, bool again)
{
	unsigned int ready = nvq_ready(&w->ring), i;

	ready = ready < max ? ready : max;
	for (i = 0; i < ready; i++) {
		const struct io_uring_cqe *c = nvq_cqe(&w->ring, i);

		if (__builtin_expect(c->res, 0))
			note_failure(w, c->res);
		if (again)
			prep_standard(w, c->user_data);
	}
	nvq_advance(&w->ring, ready);
	return ready;
}

static void run_standard(struct worker *w)
{
	unsigned int slots = o.depth * w->nr_files, slot, n, left;
	int ret;

	for (slot = 0; slot < slots; slot++) {
		prep_standard(w, slot);
		if ((slot + 1) % o.batch == 0 || slot + 1 == slots)
			submit_standard(w);
	}
	while (!stop && w->ios < wanted_per_worker) {
		ret = nvq_wait(&w->ring, o.complete, 1000);
		if (ret < 0)
			errx(1, "waiting: %s", strerror(-ret));
		n = reap_standard(w, o.batch, true);
		w->ios += n;
		submit_standard(w);
	}
	for (left = slots; left; left -= n) {
		ret = nvq_wait(&w->ring, 1, 40000);
		if (ret <= 0)
			errx(1, "%u commands did not come back", left);
		n = reap_standard(w, left, false);
	}
	w->calls = w->ring.stats.submit_calls + w->ring.stats.reap_calls;
	w->reap_calls = w->ring.stats.reap_calls;
	w->reap_empty = w->ring.stats.reap_empty;
}

/* ---- Setting up ------------------------------------------------------------ */

static void open_file(struct worker *w, struct file *f, const char *path)
{
	struct nvq_error e;
	struct nvq_info info;
	int ret;

	ret = nvq_query(&info, path, 0, &e);
	if (ret)
		errx(1, "%s", e.text);
	if (info.kind == NVQ_KIND_CTRL)
		ret = nvq_claim(&f->q, path, o.polled ? NVQ_KIND_POLL :
				NVQ_KIND_IRQ, w->index, O_RDWR, &e);
	else
		ret = nvq_open(&f->q, path, O_RDWR, &e);
	if (ret)
		errx(1, "%s", e.text);
	if (o.bs % f->q.geo.lba_size || o.bs > f->q.geo.mdts)
		errx(1, "-b %u: a multiple of %u up to %u is needed on %s",
		     o.bs, f->q.geo.lba_size, f->q.geo.mdts, f->q.name);
	if (o.depth >= f->q.depth)
		errx(1, "-d %u: %s holds %u commands", o.depth, f->q.name,
		     f->q.depth - 1);
	f->opcode = o.write ? NVQ_WRITE : NVQ_READ;
	f->nlb = o.bs >> f->q.lba_shift;
	f->blocks = f->q.geo.nsze / f->nlb;
}

static void get_memory(struct worker *w)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;

	w->stride = (o.bs + 4095) & ~4095u;
	w->mem_bytes = w->stride * o.depth * w->nr_files;
	if (o.huge) {
		flags |= MAP_HUGETLB;
		w->mem_bytes = (w->mem_bytes + HUGE_PAGE - 1) & -HUGE_PAGE;
	}
	w->mem = mmap(NULL, w->mem_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (w->mem == MAP_FAILED)
		err(1, "%zu KiB of memory", w->mem_bytes >> 10);
}

static void setup_native(struct worker *w)
{
	struct nvq_native_ring_options opt = {
		.flags = o.path == PATH_SQPOLL ? NVQ_NATIVE_SQPOLL : 0,
		.sq_cpu = o.sq_cpu,
	};
	struct nvq_native *queues[MAX_FILES];
	size_t part = w->stride * o.depth;
	struct nvq_error e;
	unsigned int i;

	for (i = 0; i < w->nr_files; i++) {
		struct file *f = &w->files[i];

		if (nvq_native_init(&f->n, &f->q, &e))
			errx(1, "%s", e.text);
		f->buf = nvq_native_register(&f->n, w->mem + i * part, part, 0,
					     &e);
		if (f->buf < 0)
			errx(1, "%s", e.text);
		queues[i] = &f->n;
		w->look_ns += look_native(f) / w->nr_files;
	}
	if (o.path != PATH_IOCTL &&
	    nvq_native_ring_init(&w->nring, queues, w->nr_files, &opt, &e))
		errx(1, "%s", e.text);
}

static void setup_standard(struct worker *w)
{
	struct nvq_ring_options opt = {
		.entries = o.depth * w->nr_files,
		.flags = NVQ_RING_FIXED_FILES,
	};
	struct nvq *queues[MAX_FILES];
	struct nvq_error e;
	struct iovec *iov;
	unsigned int i;

	for (i = 0; i < w->nr_files; i++)
		queues[i] = &w->files[i].q;
	if (nvq_ring_init(&w->ring, queues, w->nr_files, &opt, &e))
		errx(1, "%s", e.text);
	iov = calloc(opt.entries, sizeof(*iov));
	if (!iov)
		err(1, "memory");
	for (i = 0; i < opt.entries; i++) {
		iov[i].iov_base = w->mem + i * w->stride;
		iov[i].iov_len = o.bs;
		nvq_slot_init(&w->ring, i, i);
	}
	if (o.fixed && nvq_ring_buffers(&w->ring, iov, opt.entries, &e))
		errx(1, "%s", e.text);
	for (i = 0; o.fixed && i < opt.entries; i++)
		nvq_slot_fixed(&w->ring, i, i);
	free(iov);
}

static void setup(struct worker *w)
{
	unsigned int i;

	w->seed = 0x9e3779b97f4a7c15ull * (w->index + 1);
	for (i = w->index % o.nr_files; i < o.nr_files;
	     i += o.threads < o.nr_files ? o.threads : o.nr_files)
		open_file(w, &w->files[w->nr_files++], o.files[i]);
	get_memory(w);
	if (o.path == PATH_STANDARD)
		setup_standard(w);
	else
		setup_native(w);
}

static void teardown(struct worker *w)
{
	unsigned int i;

	nvq_ring_exit(&w->ring);
	nvq_native_ring_exit(&w->nring);
	for (i = 0; i < w->nr_files; i++) {
		if (o.path != PATH_STANDARD)
			nvq_native_exit(&w->files[i].n);
		nvq_close(&w->files[i].q);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t t;

	/* here, as a registered ring descriptor is its thread's */
	setup(w);
	pthread_barrier_wait(&barrier);
	t = now_ns();
	if (o.path == PATH_STANDARD)
		run_standard(w);
	else
		run_native(w);
	w->ns = now_ns() - t;
	pthread_barrier_wait(&barrier);
	/* told by main() in between */
	pthread_barrier_wait(&barrier);
	teardown(w);
	return NULL;
}

/* ---- Telling --------------------------------------------------------------- */

static void sum_counters(const struct worker *workers, uint64_t *sq, uint64_t *cq,
			 uint64_t *done)
{
	unsigned int i, k;

	*sq = *cq = *done = 0;
	for (i = 0; i < o.threads; i++)
		for (k = 0; k < workers[i].nr_files; k++) {
			const struct nvq_kpage *p = workers[i].files[k].q.kpage;

			*sq += p->sq_doorbells;
			*cq += p->cq_doorbells;
			*done += p->submitted;
		}
}

static int tell(const struct worker *workers)
{
	uint64_t ios = 0, empty = 0, calls = 0, failed = 0, sq, cq, done;
	uint64_t reap_empty = 0, wakeups = 0;
	double iops = 0, ns = 0, wait = 0;
	unsigned int i;

	for (i = 0; i < o.threads; i++) {
		const struct worker *w = &workers[i];

		ios += w->ios;
		ns += w->ns;
		empty += w->empty;
		calls += w->calls;
		wakeups += w->wakeups;
		failed += w->failed;
		reap_empty += w->reap_empty;
		wait += w->empty * w->look_ns;
		iops += w->ios * 1e9 / w->ns;
		if (w->failed)
			fprintf(stderr, "%s: %llu I/Os failed, the first: %s\n",
				w->files[0].q.name,
				(unsigned long long)w->failed,
				nvq_status_name(w->first_res));
	}
	sum_counters(workers, &sq, &cq, &done);
	printf("path=%s bs=%u depth=%u batch=%u complete=%u threads=%u files=%u\n",
	       path_names[o.path], o.bs, o.depth, o.batch, o.complete, o.threads,
	       o.nr_files);
	printf("IOPS=%.0f ns/IO=%.1f waiting=%.1f net=%.1f\n", iops, ns / ios,
	       wait / ios, (ns - wait) / ios);
	printf("ios=%llu failed=%llu calls=%llu wakeups=%llu IOS/call=%.1f empty_looks=%llu reaps_for_nothing=%llu doorbells/IO=%.4f (sq %llu cq %llu)\n",
	       (unsigned long long)ios, (unsigned long long)failed,
	       (unsigned long long)calls, (unsigned long long)wakeups,
	       calls ? (double)done / calls : 0, (unsigned long long)empty,
	       (unsigned long long)reap_empty, (double)(sq + cq) / done,
	       (unsigned long long)sq, (unsigned long long)cq);
	return failed != 0;
}

static void on_signal(int sig)
{
	(void)sig;
	stop = true;
}

/* ---- Options --------------------------------------------------------------- */

static const struct argp_option options[] = {
	{ NULL, 'b', "BYTES", 0, "block size (512)", 0 },
	{ NULL, 'd', "N", 0, "commands in flight on each file (128)", 0 },
	{ NULL, 's', "N", 0, "commands submitted at once (32)", 0 },
	{ NULL, 'c', "N", 0, "completions waited for (32)", 0 },
	{ NULL, 'n', "N", 0, "threads (1); thread i drives file i, or every n-th",
	  0 },
	{ NULL, 'B', "0|1", 0, "standard: registered buffers (1)", 0 },
	{ NULL, 'p', "0|1", 0, "controller given: claim poll queues (1)", 0 },
	{ NULL, 'r', "SECONDS", 0, "how long (until interrupted)", 0 },
	{ NULL, 'N', "N", 0, "how many I/Os", 0 },
	{ NULL, 'u', "PATH", 0,
	  "native-uring (default), native-ioctl, native-sqpoll or standard", 0 },
	{ NULL, 'C', "CPU", 0, "native-sqpoll: CPU of the kernel's thread", 0 },
	{ NULL, 'W', NULL, 0, "write, which destroys what is there", 0 },
	{ NULL, 'H', "0|1", 0, "huge pages (0)", 0 },
	{ 0 }
};

static void number(struct argp_state *state, int key, const char *arg,
		   uint64_t min, uint64_t max, uint64_t *val)
{
	char *end;

	errno = 0;
	*val = strtoull(arg, &end, 0);
	if (*end == 'k' || *end == 'K') {
		*val <<= 10;
		end++;
	}
	if (errno || end == arg || *end || *val < min || *val > max)
		argp_error(state, "-%c %s: %llu to %llu is meant", key, arg,
			   (unsigned long long)min, (unsigned long long)max);
}

static enum path path_of(struct argp_state *state, const char *arg)
{
	unsigned int i;

	for (i = 0; i <= PATH_STANDARD; i++)
		if (!strcmp(arg, path_names[i]))
			return i;
	argp_error(state, "-u %s: no such path", arg);
	return 0;
}

static int parse(int key, char *arg, struct argp_state *state)
{
	uint64_t v = 0;

#define NUM(c, field, min, max) \
	case c: \
		number(state, key, arg, min, max, &v); \
		o.field = v; \
		return 0
	switch (key) {
	NUM('b', bs, 512, 1 << 20);
	NUM('d', depth, 1, MAX_DEPTH);
	NUM('s', batch, 1, MAX_DEPTH);
	NUM('c', complete, 1, MAX_DEPTH);
	NUM('n', threads, 1, 256);
	NUM('B', fixed, 0, 1);
	NUM('p', polled, 0, 1);
	NUM('r', seconds, 1, 1000000);
	NUM('N', total, 1, UINT64_MAX);
	NUM('C', sq_cpu, 0, 4095);
	NUM('H', huge, 0, 1);
#undef NUM
	case 'u':
		o.path = path_of(state, arg);
		return 0;
	case 'W':
		o.write = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o.nr_files == MAX_FILES)
			argp_error(state, "more than %d files", MAX_FILES);
		o.files[o.nr_files++] = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which queue file, or controller?");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "FILE...",
	.doc = "Random reads through nvqueue's paths: IOPS, system calls, doorbells, and waiting apart.",
};

int main(int argc, char **argv)
{
	struct worker *workers;
	unsigned int i;
	int ret;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (o.batch > o.depth)
		o.batch = o.depth;
	if (o.complete > o.batch)
		o.complete = o.batch;
	workers = calloc(o.threads, sizeof(*workers));
	if (!workers)
		err(1, "memory");
	wanted_per_worker = o.total ? (o.total + o.threads - 1) / o.threads :
				      UINT64_MAX;
	signal(SIGINT, on_signal);
	signal(SIGALRM, on_signal);
	pthread_barrier_init(&barrier, NULL, o.threads + 1);
	for (i = 0; i < o.threads; i++) {
		workers[i].index = i;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			errx(1, "no thread");
	}
	pthread_barrier_wait(&barrier);
	if (o.seconds)
		alarm(o.seconds);
	pthread_barrier_wait(&barrier);
	ret = tell(workers);
	pthread_barrier_wait(&barrier);
	for (i = 0; i < o.threads; i++)
		pthread_join(workers[i].thread, NULL);
	free(workers);
	return ret;
}
