// SPDX-License-Identifier: MIT
/*
 * The trust boundary of the native path, a row of doc/boundary.md each: what a
 * process may stage, register, map and do to itself, and what becomes of it.
 * After each group the neighbour queue of the same drive must still read back
 * what it wrote.
 *
 *	boundary DEVICE NEIGHBOUR	(two queue files of one controller)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

#define BUF	(4 * PAGE)
#define LBA	512

static const char *device;
static struct queue neighbour;
static void *neighbour_buf;

static void neighbour_is_well(const char *after)
{
	memset(neighbour_buf, 0, PAGE);
	ok(!sync_rw(&neighbour, OP_READ, 1000, 8, neighbour_buf) &&
	   differs(neighbour_buf, PAGE, 77) < 0, "neighbour unharmed: %s",
	   after);
}

/* A native file, one registered buffer between inaccessible pages. */
struct world {
	struct native n;
	char *buf;
	int index;
};

static struct world world_new(void)
{
	struct world w = { .n = native_open(device), .buf = buffer_new(BUF) };

	fill(w.buf, BUF, 1);
	w.index = native_register(w.n.q.fd, w.buf, BUF, 0);
	if (w.index < 0)
		die("register: %s", strerror(-w.index));
	return w;
}

static void world_end(struct world *w)
{
	native_close(&w->n);
	buffer_free(w->buf, BUF);
}

static struct nvq_sqe read_at(const struct world *w, uint64_t offset,
			      unsigned int nlb)
{
	return native_rw(&w->n, OP_READ, 9, 0, nlb, w->index, offset);
}

static void works(void)
{
	struct world w = world_new();
	struct nvq_sqe s = native_rw(&w.n, OP_WRITE, 3, 64, 32, w.index, 0);

	is(native_run(&w.n, &s), 0, "a write of four pages");
	memset(w.buf, 0, BUF);
	s = native_rw(&w.n, OP_READ, 4, 64, 32, w.index, 0);
	is(native_run(&w.n, &s), 0, "a read of them");
	is(differs(w.buf, BUF, 1), -1, "reads back what was written");
	s = native_rw(&w.n, OP_FLUSH, 5, 0, 1, 0, 0);
	is(native_run(&w.n, &s), 0, "a flush, which names no buffer");
	world_end(&w);
}

static void buffers_and_lengths(void)
{
	struct world w = world_new();
	struct nvq_sqe s;
	unsigned int i;
	static const struct {
		uint64_t offset;
		unsigned int nlb;
		int want;
		const char *name;
	} t[] = {
		{ BUF - LBA, 1, 0, "the last LBA of the buffer" },
		{ BUF - LBA, 2, -EINVAL, "NLB one beyond the buffer" },
		{ BUF - LBA + 4, 1, -EINVAL, "offset that ends 4 beyond" },
		{ BUF, 1, -EINVAL, "offset at the end" },
		{ 0, BUF / LBA + 1, -EINVAL, "NLB beyond the whole buffer" },
		{ 0, 65536, -EINVAL, "the largest NLB" },
		{ -512ull, 1, -EINVAL, "offset that wraps with the length" },
		{ -4ull, 1, -EINVAL, "offset at the end of 64 bits" },
		{ 1ull << 63, 1, -EINVAL, "offset of 2^63" },
		{ 1, 1, -EINVAL, "offset 1" },
		{ 2, 1, -EINVAL, "offset 2" },
		{ 4, 1, 0, "offset 4" },
		{ 4092, 1, 0, "offset across a page" },
	};

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		s = read_at(&w, t[i].offset, t[i].nlb);
		is(native_run(&w.n, &s), t[i].want, "%s", t[i].name);
	}
	s = read_at(&w, 0, 1);
	s.buf = w.index + 1;
	is(native_run(&w.n, &s), -EINVAL, "a buffer index never registered");
	s.buf = NVQ_MAX_BUFS;
	is(native_run(&w.n, &s), -EINVAL, "a buffer index past the table");
	s.buf = ~0u;
	is(native_run(&w.n, &s), -EINVAL, "the largest buffer index");
	s = read_at(&w, 0, 1);
	s.cdw10 = s.cdw11 = ~0u;
	is(native_run(&w.n, &s), -EINVAL, "an LBA at the end of 64 bits");
	s = native_rw(&w.n, OP_READ, 1, w.n.q.g.nsze, 1, w.index, 0);
	is(native_run(&w.n, &s), -EINVAL, "an LBA just past the namespace");
	s = native_rw(&w.n, OP_READ, 1, w.n.q.g.nsze - 1, 1, w.index, 0);
	is(native_run(&w.n, &s), 0, "the last LBA");
	world_end(&w);
}

static void opcodes_and_fields(void)
{
	struct world w = world_new();
	unsigned int op, refused = 0;
	struct nvq_sqe s;

	for (op = 0x80; op < 0x100; op++) {
		s = read_at(&w, 0, 1);
		s.opcode = op;
		refused += native_run(&w.n, &s) == -EOPNOTSUPP;
	}
	is(refused, 0x80, "vendor opcodes are not taken, root or not");
	s = read_at(&w, 0, 1);
	s.opcode = 0x0d;
	is(native_run(&w.n, &s), -EOPNOTSUPP, "reservation register neither");
	s = read_at(&w, 0, 1);
	s.nsid++;
	is(native_run(&w.n, &s), -EINVAL, "another namespace");
	s.nsid = ~0u;
	is(native_run(&w.n, &s), -EINVAL, "the broadcast namespace");
	s = read_at(&w, 0, 1);
	s.flags = 0xff;
	s.ignored = ~0ull;
	s.length = ~0u;
	is(native_run(&w.n, &s), 0, "flags, metadata pointer, length ignored");
	world_end(&w);
}

static void command_ids(void)
{
	struct world w = world_new();
	struct nvq_sqe s = read_at(&w, 0, 1);
	uint16_t cid;

	s.cid = w.n.q.g.depth;
	is(native_run(&w.n, &s), -EINVAL, "a command id of depth");
	s.cid = 0xffff;
	is(native_run(&w.n, &s), -EINVAL, "a command id of 65535");
	s.cid = w.n.q.g.depth - 1;
	is(native_run(&w.n, &s), 0, "the highest command id");
	s.cid = 5;
	native_stage(&w.n, &s);
	native_stage(&w.n, &s);
	is(native_submit(&w.n), 1, "twice in one batch: the first is taken");
	is(w.n.k->submit_error, -EBUSY, "and the second says EBUSY");
	native_drop(&w.n);
	is(native_reap(&w.n, &cid, 5000), 0, "the first completes");
	is(cid, 5, "as itself");
	is(native_reap(&w.n, &cid, 100), -ETIME, "and nothing else does");
	is(native_run(&w.n, &s), 0, "its id is free again");
	world_end(&w);
}

static void heads_and_tails(void)
{
	struct world w = world_new();
	struct nvq_sqe s = read_at(&w, 0, 1);
	uint32_t tail = w.n.tail;

	w.n.u->sq_tail = tail + w.n.mask + 2;
	is(native_submit(&w.n), -EINVAL, "a tail beyond the staging SQ");
	w.n.u->sq_tail = tail - 1;
	is(native_submit(&w.n), -EINVAL, "a tail behind the head");
	w.n.u->sq_tail = tail;
	is(native_submit(&w.n), 0, "nothing staged is no error");
	is(native_run(&w.n, &s), 0, "and a command still works");
	/* claims to have read what was never there */
	w.n.u->cq_head = w.n.head + 12345;
	is(native_submit(&w.n), 0, "a consumed head ahead of the CQ");
	w.n.u->cq_head = w.n.head - 1;
	is(native_submit(&w.n), 0, "a consumed head that goes back");
	w.n.u->cq_head = w.n.head;
	is(native_run(&w.n, &s), 0, "and a command still works");
	world_end(&w);
}

/* Fills the queue without reading: depth - 1 go in, then ENOSPC. */
static void full_queue(void)
{
	struct world w = world_new();
	unsigned int depth = w.n.q.g.depth, i, taken = 0, got = 0;
	int ret = 0;

	for (i = 0; i < depth; i++) {
		struct nvq_sqe s = native_rw(&w.n, OP_READ, i, i, 1, w.index,
					     0);

		native_stage(&w.n, &s);
	}
	for (i = 0; i < 10 && taken < depth && ret >= 0; i++) {
		ret = native_submit(&w.n);
		if (ret > 0)
			taken += ret;
	}
	is(taken, depth - 1, "depth - 1 commands fit");
	is(ret, -ENOSPC, "the next is ENOSPC until completions are read");
	while (got < taken && !native_reap(&w.n, NULL, 5000))
		got++;
	is(got, taken, "all complete");
	is(native_submit(&w.n), 1, "then there is room");
	is(native_reap(&w.n, NULL, 5000), 0, "and it completes");
	world_end(&w);
}

/* Over the wrap of both rings many times, at once and one by one. */
static void wraps(void)
{
	struct world w = world_new();
	unsigned int i, bad = 0, rounds = w.n.q.g.depth * 3 + 7;

	for (i = 0; i < rounds && !bad; i++) {
		struct nvq_sqe s = native_rw(&w.n, OP_READ, i % 7, 1000, 8,
					     w.index, 0);

		bad += native_run(&w.n, &s) != 0 ||
		       differs(w.buf, PAGE, 77) >= 0;
		memset(w.buf, 0, PAGE);
	}
	is(bad, 0, "%u commands one by one, over the wrap", rounds);
	world_end(&w);
}

/* ---- a command rewritten while it is submitted ------------------------------ */

static volatile bool racing;

static void *race(void *arg)
{
	struct native *n = arg;
	uint64_t seed = 7;

	while (racing) {
		volatile struct nvq_sqe *s = &n->sq[n->tail & n->mask];

		s->nsid = n->q.g.nsid;
		s->opcode = random64(&seed) & 1 ? OP_READ : 0xff;
		s->offset = random64(&seed);
		s->buf = random64(&seed);
		s->cdw12 = random64(&seed);
		s->cid = random64(&seed);
		s->offset = 0;
		s->buf = 0;
		s->cdw12 = 0;
		s->opcode = OP_READ;
		s->cid = 1;
	}
	return NULL;
}

static void rewritten_while_submitted(void)
{
	struct world w = world_new();
	struct tap_loop l = { "a command rewritten while it is submitted",
			      .count = 20000, .floor = 500, .seconds = 8 };
	unsigned int taken = 0, refused = 0;
	pthread_t t;

	racing = true;
	pthread_create(&t, NULL, race, &w.n);
	while (tap_loop(&l)) {
		int ret;

		/* the entry under the tail is the racer's */
		__atomic_store_n(&w.n.u->sq_tail, w.n.tail + 1,
				 __ATOMIC_RELEASE);
		ret = native_submit(&w.n);
		if (ret == 1) {
			uint16_t cid;

			taken++;
			w.n.tail++;
			tap_loop_check(&l, native_reap(&w.n, &cid, 5000) >= 0,
				       "taken, never completed");
		} else {
			refused++;
			native_drop(&w.n);
			tap_loop_check(&l, ret == -EINVAL || ret == -EOPNOTSUPP,
				       "SUBMIT says %d", ret);
		}
	}
	racing = false;
	pthread_join(t, NULL);
	diag("%u taken, %u refused", taken, refused);
	ok(taken && refused, "both happened");
	world_end(&w);
}

/* ---- modes and rights ------------------------------------------------------- */

static void standard_and_native(void)
{
	struct world w = world_new();
	struct nvme_uring_cmd c = rw_cmd(&w.n.q, OP_READ, 0, 1, w.buf);
	struct queue q;

	is(sync_cmd(w.n.q.fd, &c, NULL), -EBUSY,
	   "a standard command on a native file");
	world_end(&w);
	q = queue_open(device, O_RDWR);
	is(sync_rw(&q, OP_READ, 0, 1, neighbour_buf), 0,
	   "reopened, it is a standard one");
	is(native_register(q.fd, neighbour_buf, PAGE, 0), -EBUSY,
	   "a native registration on a standard file");
	ok(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, q.fd,
		NVQ_MMAP_SQ) == MAP_FAILED && errno == EBUSY,
	   "a mapping of the staging SQ on it");
	queue_close(&q);
}

static int submit_from(int fd, const struct nvq_sqe *s, uint32_t nr,
		       uint32_t head)
{
	struct nvq_submit_from f = {
		.sqes = (uintptr_t)s,
		.nr = nr,
		.cq_head = head,
	};
	int ret = ioctl(fd, NVQ_IOC_SUBMIT_FROM, &f);

	return ret < 0 ? -errno : ret;
}

/* As nobody, with permission on the file: reads, not writes. */
static int readonly_owner(void *arg)
{
	struct native n = { .q = queue_open(device, O_RDONLY), .phase = 1 };
	struct nvq_sqe s;
	void *buf = buffer_new(PAGE);
	int index;

	(void)arg;
	drop_rights();
	n.cq = mmap(NULL, n.q.g.cq_bytes, PROT_READ, MAP_SHARED, n.q.fd,
		    NVQ_MMAP_CQ);
	n.k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, n.q.fd, NVQ_MMAP_KPAGE);
	if (n.cq == MAP_FAILED || n.k == MAP_FAILED)
		return 1;
	if (mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, n.q.fd,
		 NVQ_MMAP_SQ) != MAP_FAILED)
		return 2;
	index = native_register(n.q.fd, buf, PAGE, 0);
	if (index < 0)
		return 3;
	s = native_rw(&n, OP_WRITE, 1, 0, 1, index, 0);
	if (submit_from(n.q.fd, &s, 1, 0) != -EACCES)
		return 4;
	s = native_rw(&n, OP_READ, 1, 1000, 8, index, 0);
	if (submit_from(n.q.fd, &s, 1, 0) != 1)
		return 5;
	for (index = 0; index < 5000 && !(n.cq[0].status & 1); index++)
		usleep(1000);
	if (n.cq[0].status != 1 || differs(buf, PAGE, 77) >= 0)
		return 6;
	if (submit_from(n.q.fd, (void *)8, 1, 1) != -EFAULT)
		return 7;
	return 0;
}

/* ---- memory ----------------------------------------------------------------- */

static void registration(void)
{
	struct world w = world_new();
	int fd = w.n.q.fd, i, file;
	void *p;

	is(native_register(fd, w.buf, 0, 0), -EINVAL, "length 0");
	is(native_register(fd, w.buf + 1, PAGE, 0), -EINVAL, "address + 1");
	is(native_register(fd, (void *)-4096, 8192, 0), -EINVAL,
	   "a range that wraps");
	is(native_register(fd, w.buf, (1ull << 30) + 1, 0), -EINVAL,
	   "more than 1 GiB");
	is(native_register(fd, w.buf, BUF + PAGE, 0), -EFAULT,
	   "into an inaccessible page");
	is(native_register(fd, w.buf, PAGE, ~0u), -EINVAL, "unknown flags");
	is(native_unregister(fd, 4095), -ENOENT, "unregister of none");
	is(native_unregister(fd, ~0u), -ENOENT, "unregister past the table");

	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	i = native_register(fd, p, PAGE, 0);
	ok(i >= 0 && !native_unregister(fd, i), "shmem");
	munmap(p, PAGE);

	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	is(native_register(fd, p, PAGE, 0), -EFAULT,
	   "PROT_READ memory, to be written");
	i = native_register(fd, p, PAGE, NVQ_REG_READONLY);
	ok(i >= 0, "PROT_READ memory, to be read only (%d)", i);
	if (i >= 0) {
		struct nvq_sqe s = native_rw(&w.n, OP_READ, 1, 0, 1, i, 0);

		is(native_run(&w.n, &s), -EACCES, "a read into it is refused");
		s = native_rw(&w.n, OP_COMPARE, 1, 1000, 1, i, 0);
		ok(native_run(&w.n, &s) > 0, "a compare with it goes out");
	}
	munmap(p, PAGE);

	file = open("/proc/self/exe", O_RDONLY);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	is(native_register(fd, p, PAGE, NVQ_REG_READONLY), -EOPNOTSUPP,
	   "file-backed memory");
	munmap(p, PAGE);
	close(file);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, NVQ_MMAP_KPAGE);
	is(native_register(fd, p, PAGE, NVQ_REG_READONLY), -EOPNOTSUPP,
	   "a mapping of our own device");
	munmap(p, PAGE);
	world_end(&w);
}

static void hugepages(void)
{
	struct world w = world_new();
	size_t len = 2 << 20;
	struct nvq_sqe s;
	void *p;
	int i;

	file_write("8", "/proc/sys/vm/nr_hugepages");
	p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED) {
		skip("no huge pages in this guest", "hugetlb");
		world_end(&w);
		return;
	}
	fill(p, len, 5);
	i = native_register(w.n.q.fd, p, len, 0);
	ok(i >= 0, "hugetlb (%d)", i);
	s = native_rw(&w.n, OP_WRITE, 1, 4096, w.n.q.g.mdts / LBA, i,
		      len - w.n.q.g.mdts);
	is(native_run(&w.n, &s), 0, "a write of MDTS from its end");
	memset(p, 0, len);
	s.opcode = OP_READ;
	s.offset = 0;
	is(native_run(&w.n, &s), 0, "a read of it to its start");
	munmap(p, len);
	world_end(&w);
}

/* Every page offset around the edges of the lists, several lengths. */
static void list_edges(void)
{
	static const unsigned int first[] = { 0, 1, 254, 255, 256, 257, 510,
					      511, 512, 513 };
	static const unsigned int nlbs[] = { 1, 8, 9, 16, 17, 2040, 2048 };
	struct native n = native_open(device);
	size_t len = 800 * PAGE;
	char *buf = buffer_new(len), *want = buffer_new(1 << 20);
	unsigned int f, k, o, bad = 0, nr = 0;
	int index = native_register(n.q.fd, buf, len, 0);

	ok(index >= 0, "a buffer of 800 pages (%d)", index);
	fill(want, 1 << 20, 9);
	memcpy(buf, want, 1 << 20);
	for (k = 0; k < (1 << 20) / n.q.g.mdts; k++) {
		struct nvq_sqe s = native_rw(&n, OP_WRITE, 0,
					     8192 + k * n.q.g.mdts / LBA,
					     n.q.g.mdts / LBA, index,
					     (uint64_t)k * n.q.g.mdts);

		bad += native_run(&n, &s) != 0;
	}
	for (f = 0; f < sizeof(first) / sizeof(first[0]); f++)
		for (k = 0; k < sizeof(nlbs) / sizeof(nlbs[0]); k++)
			for (o = 0; o < 2; o++) {
				uint64_t at = first[f] * PAGE + o * 516;
				size_t bytes = nlbs[k] * LBA;
				struct nvq_sqe s = native_rw(&n, OP_READ, 1,
						8192, nlbs[k], index, at);

				if (bytes > n.q.g.mdts || at + bytes > len)
					continue;
				memset(buf, 0xee, len);
				nr++;
				bad += native_run(&n, &s) != 0 ||
				       memcmp(buf + at, want, bytes) ||
				       !all_bytes(buf, at, 0xee) ||
				       !all_bytes(buf + at + bytes,
						  len - at - bytes, 0xee);
			}
	is(bad, 0, "%u transfers at the edges of the lists, nothing beside",
	   nr);
	native_close(&n);
	buffer_free(buf, len);
	buffer_free(want, 1 << 20);
}

/* ---- the process's memory changes with I/O in flight -------------------------- */

/* Keeps reads in flight on the buffer; the address space may change under it. */
static unsigned int in_flight(struct world *w, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct nvq_sqe s = native_rw(&w->n, OP_READ, i, 1000, 8,
					     w->index, (i % 4) * PAGE);

		native_stage(&w->n, &s);
	}
	return native_submit(&w->n) == (int)nr ? nr : 0;
}

static unsigned int drain(struct world *w, unsigned int nr)
{
	unsigned int got = 0;

	while (got < nr && !native_reap(&w->n, NULL, 5000))
		got++;
	return got;
}

static void address_space_changes(void)
{
	struct world w = world_new();
	char *other, *moved;
	pid_t pid;
	int status;

	is(in_flight(&w, 64), 64, "64 reads in flight");
	is(native_unregister(w.n.q.fd, w.index), 0,
	   "unregister waits for them");
	is(drain(&w, 64), 64, "they have completed");
	w.index = native_register(w.n.q.fd, w.buf, BUF, 0);

	memset(w.buf, 0, BUF);
	is(in_flight(&w, 64), 64, "64 more");
	pid = fork();
	if (!pid) {
		/* the child has its own pages; writing must not split ours */
		memset(w.buf, 0x55, BUF);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	is(drain(&w, 64), 64, "fork with I/O in flight");
	is(differs(w.buf, PAGE, 77), -1, "the data is the parent's");

	is(in_flight(&w, 64), 64, "64 more");
	moved = mremap(w.buf, BUF, BUF, MREMAP_MAYMOVE | MREMAP_FIXED,
		       w.buf + 64 * PAGE);
	is(drain(&w, 64), 64, "mremap with I/O in flight");
	is(differs(moved, PAGE, 77), -1, "the data went along with the pages");

	is(in_flight(&w, 64), 64, "64 more");
	munmap(moved, BUF);
	other = mmap(moved, BUF, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(other, 0x33, BUF);
	is(drain(&w, 64), 64, "munmap with I/O in flight");
	usleep(10000);
	ok(all_bytes(other, BUF, 0x33), "what is mapped there now is untouched");
	native_close(&w.n);
	munmap(other, BUF);
}

static void mappings_stay_readonly(void)
{
	struct world w = world_new();

	ok(mprotect((void *)w.n.cq, PAGE, PROT_READ | PROT_WRITE) &&
	   errno == EACCES, "mprotect of the CQ");
	ok(mprotect((void *)w.n.k, PAGE, PROT_READ | PROT_WRITE) &&
	   errno == EACCES, "mprotect of the kernel page");
	ok(mprotect(w.n.sq, PAGE, PROT_READ | PROT_EXEC) && errno == EACCES,
	   "mprotect of the staging SQ to PROT_EXEC");
	ok(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, w.n.q.fd,
		NVQ_MMAP_SQ) == MAP_FAILED && errno == EACCES,
	   "a private mapping of the staging SQ");
	world_end(&w);
}

/* Registers in a child that is gone when its parent uses the file. */
static int registrar(void *arg)
{
	int fd = *(int *)arg;
	void *buf = buffer_new(PAGE);

	return native_register(fd, buf, PAGE, 0) == 1 ? 0 : 1;
}

static void registrar_gone(void)
{
	struct world w = world_new();
	struct nvq_sqe s;

	is(in_child(registrar, &w.n.q.fd), 0,
	   "another process registers, and ends");
	s = native_rw(&w.n, OP_READ, 1, 1000, 8, 1, 0);
	is(native_run(&w.n, &s), 0, "I/O stays on its pinned pages");
	is(native_unregister(w.n.q.fd, 1), 0, "whoever unregisters");
	s = read_at(&w, 0, 1);
	is(native_run(&w.n, &s), 0, "our own buffer is still there");
	world_end(&w);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		die("usage: boundary DEVICE NEIGHBOUR");
	device = argv[1];
	neighbour = queue_open(argv[2], O_RDWR);
	neighbour_buf = buffer_new(PAGE);
	fill(neighbour_buf, PAGE, 77);
	is(sync_rw(&neighbour, OP_WRITE, 1000, 8, neighbour_buf), 0,
	   "the neighbour writes");

	works();
	buffers_and_lengths();
	neighbour_is_well("buffers and lengths");
	opcodes_and_fields();
	command_ids();
	heads_and_tails();
	full_queue();
	wraps();
	neighbour_is_well("ids, heads and tails");
	rewritten_while_submitted();
	neighbour_is_well("rewritten commands");
	standard_and_native();
	is(in_child(readonly_owner, NULL), 0,
	   "a read-only, unprivileged owner reads and cannot write");
	registration();
	hugepages();
	list_edges();
	neighbour_is_well("memory");
	address_space_changes();
	mappings_stay_readonly();
	registrar_gone();
	neighbour_is_well("the end");
	return tap_done();
}
