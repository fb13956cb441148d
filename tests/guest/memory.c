// SPDX-License-Identifier: MIT
/*
 * The trust boundary of the native path, the rows of doc/boundary.md about
 * memory: what may be registered, who is charged for it, where a transfer goes,
 * and what a process may do to its memory meanwhile.  The neighbour queue must
 * see nothing of it.
 *
 *	memory DEVICE NEIGHBOUR		(two queue files of one controller)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nvq_native.h>

#include "native.h"
#include "tap.h"

static const char *device;
static struct neighbour neighbour;

/* ---- memory ----------------------------------------------------------------- */

static void registration(void)
{
	struct world w = world_new(device);
	int fd = w.n.q.fd, i, file;
	void *p;

	is(native_register(fd, w.buf, 0, 0), -EINVAL, "length 0");
	is(native_register(fd, w.buf + 1, PAGE, 0), -EINVAL, "address + 1");
	is(native_register(fd, (void *)-4096, 8192, 0), -EINVAL,
	   "a range that wraps");
	is(native_register(fd, w.buf, NVQ_MAX_BUF_LEN + 1, 0), -EINVAL,
	   "more than 4 GiB less a page");
	is(native_register(fd, w.buf, 1ull << 32, 0), -EINVAL, "4 GiB");
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
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
	is(native_register(fd, p, PAGE, NVQ_REG_READONLY), -EOPNOTSUPP,
	   "file-backed memory");
	munmap(p, PAGE);
	/* from 6.2 on pinning makes a copy of it first, which is anonymous */
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	i = native_register(fd, p, PAGE, NVQ_REG_READONLY);
	ok(i == -EOPNOTSUPP || i >= 0,
	   "a private mapping of a file: refused, or a copy (%d)", i);
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
	struct world w = world_new(device);
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

/*
 * As much as a buffer may be, from one small piece of memory that is mapped over
 * and over: what lies at x also lies at x + PIECE.
 */
#define PIECE	(32ul << 20)

static void largest_buffer(void)
{
	size_t span = NVQ_MAX_BUF_LEN + PAGE, at;
	int fd = memfd_create("piece", MFD_CLOEXEC), i;
	struct native n = native_open(device);
	struct nvq_sqe s;
	char *p, *start;

	p = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || fd < 0 || ftruncate(fd, PIECE))
		die("4 GiB of addresses: %s", strerror(errno));
	for (at = 0; at < span; at += PIECE)
		if (mmap(p + at, PIECE < span - at ? PIECE : span - at,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			die("mapping: %s", strerror(errno));
	/* the worst start in its first page: it ends 4 bytes below 2^32 */
	start = p + PAGE - 4;
	i = native_register(n.q.fd, start, NVQ_MAX_BUF_LEN, 0);
	ok(i >= 0, "4 GiB less a page, from the end of a page (%d)", i);
	at = NVQ_MAX_BUF_LEN - PAGE;
	s = native_rw(&n, OP_READ, 1, 1000, 8, i, at);
	is(native_run(&n, &s), 0, "a read to its end");
	is(differs(start + at, PAGE, NEIGHBOUR_SEED), -1,
	   "is where it should be");
	memset(start + at, 0xee, PAGE);
	s.offset = 3ul << 30;
	is(native_run(&n, &s), 0, "a read at 3 GiB");
	is(differs(start + s.offset, PAGE, NEIGHBOUR_SEED), -1,
	   "is where it should be");
	ok(all_bytes(start + at, PAGE, 0xee), "and not elsewhere");
	s.offset = at + 4;
	is(native_run(&n, &s), -EINVAL, "4 bytes beyond the end");
	s.offset = 1ull << 32;
	is(native_run(&n, &s), -EINVAL, "offset 2^32");
	is(native_unregister(n.q.fd, i), 0, "unregister");
	native_close(&n);
	munmap(p, span);
	close(fd);
}

/* ---- who is charged ---------------------------------------------------------- */

#define LIMIT	(16 * PAGE)

/* KiB that this process has locked, as RLIMIT_MEMLOCK counts. */
static long locked_kib(void)
{
	char line[128];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void limit_locked(void)
{
	const struct rlimit lim = { LIMIT, LIMIT };

	if (setrlimit(RLIMIT_MEMLOCK, &lim))
		die("setrlimit: %s", strerror(errno));
}

/* As nobody: to the limit, not beyond, and again once it was given back. */
static int limited(void *arg)
{
	int fd = *(int *)arg, i, k;
	char *buf = buffer_new(2 * LIMIT);

	drop_rights();
	limit_locked();
	if (native_register(fd, buf, LIMIT + 1, 0) != -ENOMEM)
		return 1;
	i = native_register(fd, buf, LIMIT - PAGE, 0);
	if (i < 0 || locked_kib() != (long)(LIMIT - PAGE) >> 10)
		return 2;
	/* two pages, as it begins inside one; and the same pages count again */
	if (native_register(fd, buf + 4, PAGE, 0) != -ENOMEM)
		return 3;
	k = native_register(fd, buf, PAGE, 0);
	if (k < 0 || native_register(fd, buf, 4, 0) != -ENOMEM)
		return 4;
	if (native_unregister(fd, i) || native_unregister(fd, k) ||
	    locked_kib())
		return 5;
	/* what was not registered is not charged either */
	if (native_register(fd, buf + 2 * LIMIT - PAGE, 2 * PAGE, 0) !=
	    -EFAULT || locked_kib())
		return 6;
	i = native_register(fd, buf, LIMIT, 0);
	return i < 0 || native_unregister(fd, i) ? 7 : 0;
}

/* Root with its capabilities, CAP_IPC_LOCK among them. */
static int exempt(void *arg)
{
	int fd = *(int *)arg, i;
	char *buf = buffer_new(2 * LIMIT);

	limit_locked();
	i = native_register(fd, buf, 2 * LIMIT, 0);
	if (i < 0 || locked_kib() != (long)(2 * LIMIT) >> 10)
		return 1;
	return native_unregister(fd, i) || locked_kib() ? 2 : 0;
}

/* The library says how much is needed and what the limit is. */
static int told(void *arg)
{
	char *buf = buffer_new(2 * LIMIT);
	struct nvq_error err;
	struct nvq_native n;
	struct nvq q;

	(void)arg;
	if (nvq_open(&q, device, O_RDWR, &err) ||
	    nvq_native_init(&n, &q, &err))
		return 1;
	drop_rights();
	limit_locked();
	if (nvq_native_register(&n, buf, 2 * LIMIT, 0, &err) != -ENOMEM)
		return 2;
	diag("%s", err.text);
	if (!strstr(err.text, "128 KiB") ||
	    !strstr(err.text, "RLIMIT_MEMLOCK is 64 KiB"))
		return 3;
	return 0;
}

/*
 * A child registers and closes; we, another process, close last.  What it was
 * charged is given back to it, not to us.
 */
static void charged_elsewhere(void)
{
	struct world w = world_new(device);
	long ours = locked_kib();
	int go[2], done[2], status;
	char c = 0;
	pid_t pid;

	if (pipe(go) || pipe(done))
		die("pipe: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		char *buf = buffer_new(LIMIT);
		bool bad;

		bad = native_register(w.n.q.fd, buf, LIMIT, 0) < 0 ||
		      locked_kib() != (long)LIMIT >> 10;
		close(w.n.q.fd);
		bad |= locked_kib() != (long)LIMIT >> 10;
		bad |= write(done[1], &c, 1) != 1 || read(go[0], &c, 1) != 1;
		_exit(bad ? 1 : locked_kib() ? 2 : 0);
	}
	if (read(done[0], &c, 1) != 1)
		die("the child is gone");
	is(locked_kib(), ours, "what a child registers is not charged to us");
	world_end(&w);
	is(locked_kib(), ours - (long)(BUF >> 10), "we close last: ours is back");
	if (write(go[1], &c, 1) != 1 || waitpid(pid, &status, 0) != pid)
		die("the child is gone");
	is(WEXITSTATUS(status), 0, "and the child's is back with the child");
	close(go[0]);
	close(go[1]);
	close(done[0]);
	close(done[1]);
}

static void locked_memory(void)
{
	struct world w = world_new(device);

	is(in_child(limited, &w.n.q.fd), 0,
	   "RLIMIT_MEMLOCK binds a process without CAP_IPC_LOCK");
	is(in_child(exempt, &w.n.q.fd), 0, "and exempts one with it");
	world_end(&w);
	is(in_child(told, NULL), 0, "the library says need and limit");
	charged_elsewhere();
}

/* ---- the process's memory changes with I/O in flight -------------------------- */

static void address_space_changes(void)
{
	struct world w = world_new(device);
	char *other, *moved;
	pid_t pid;
	int status;

	is(world_in_flight(&w, 64), 64, "64 reads in flight");
	is(native_unregister(w.n.q.fd, w.index), 0,
	   "unregister waits for them");
	is(world_drain(&w, 64), 64, "they have completed");
	w.index = native_register(w.n.q.fd, w.buf, BUF, 0);

	memset(w.buf, 0, BUF);
	is(world_in_flight(&w, 64), 64, "64 more");
	pid = fork();
	if (!pid) {
		/* the child has its own pages; writing must not split ours */
		memset(w.buf, 0x55, BUF);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	is(world_drain(&w, 64), 64, "fork with I/O in flight");
	is(differs(w.buf, PAGE, NEIGHBOUR_SEED), -1, "the data is the parent's");

	is(world_in_flight(&w, 64), 64, "64 more");
	moved = mremap(w.buf, BUF, BUF, MREMAP_MAYMOVE | MREMAP_FIXED,
		       w.buf + 64 * PAGE);
	is(world_drain(&w, 64), 64, "mremap with I/O in flight");
	is(differs(moved, PAGE, NEIGHBOUR_SEED), -1, "the data went along with the pages");

	is(world_in_flight(&w, 64), 64, "64 more");
	munmap(moved, BUF);
	other = mmap(moved, BUF, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(other, 0x33, BUF);
	is(world_drain(&w, 64), 64, "munmap with I/O in flight");
	usleep(10000);
	ok(all_bytes(other, BUF, 0x33), "what is mapped there now is untouched");
	native_close(&w.n);
	munmap(other, BUF);
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
	struct world w = world_new(device);
	struct nvq_sqe s;

	is(in_child(registrar, &w.n.q.fd), 0,
	   "another process registers, and ends");
	s = native_rw(&w.n, OP_READ, 1, 1000, 8, 1, 0);
	is(native_run(&w.n, &s), 0, "I/O stays on its pinned pages");
	is(native_unregister(w.n.q.fd, 1), 0, "whoever unregisters");
	s = native_rw(&w.n, OP_READ, 1, 0, 1, w.index, 0);
	is(native_run(&w.n, &s), 0, "our own buffer is still there");
	world_end(&w);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		die("usage: memory DEVICE NEIGHBOUR");
	device = argv[1];
	neighbour = neighbour_open(argv[2]);

	registration();
	hugepages();
	list_edges();
	largest_buffer();
	ok(neighbour_is_well(&neighbour), "neighbour unharmed: registration");
	locked_memory();
	ok(neighbour_is_well(&neighbour), "neighbour unharmed: accounting");
	address_space_changes();
	registrar_gone();
	ok(neighbour_is_well(&neighbour), "neighbour unharmed: the end");
	return tap_done();
}
