// SPDX-License-Identifier: MIT
/*
 * Owners that die with a full queue: killed, by a fault of their own, for want
 * of memory; while they wait for completions; with a full CQ that nobody read;
 * closing file or ring under what is in flight.  Standard and native, poll and
 * irq.  Soon afterwards the next owner has the queue, and it works.
 *
 * The drive is slow (some 100 ms), so that commands are in flight for sure.
 *
 * usage: dying [CGROUP]	(a cgroup with a memory limit: dying of OOM)
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

#define NR_MAX	1024

struct owner {
	struct native n;	/* .q alone if standard */
	struct io_uring r;
	bool native, poll;
	unsigned int nr;
	char *buf;
	int index;
};

static const char *cgroup;

/* ---- the owner, in a process of its own ----------------------------------- */

static void owner_open(struct owner *o, const char *node)
{
	o->n.q = queue_open(node, O_RDWR);
	o->poll = is_poll(&o->n.q);
	o->nr = o->n.q.g.depth - 1;
	o->buf = buffer_new(o->nr * PAGE);
	if (!o->native) {
		ring_open_for(&o->r, NR_MAX, &o->n.q);
		return;
	}
	/* for waits; a plain ring carries SUBMIT on either queue */
	ring_open(&o->r, 8, 0);
	o->n = native_attach(o->n.q);
	o->index = native_register(o->n.q.fd, o->buf, o->nr * PAGE, 0);
}

static void fill_queue(struct owner *o)
{
	unsigned int i;

	for (i = 0; i < o->nr; i++) {
		uint8_t op = i & 1 ? OP_WRITE : OP_READ;

		if (o->native) {
			struct nvq_sqe s = native_rw(&o->n, op, i, i * 8, 8,
						     o->index, i * PAGE);

			native_stage(&o->n, &s);
		} else {
			struct nvme_uring_cmd c = rw_cmd(&o->n.q, op, i * 8, 8,
							 o->buf + i * PAGE);

			ring_put(&o->r, o->n.q.fd, NVME_URING_CMD_IO, &c, i);
		}
	}
	if (o->native ? native_submit(&o->n) != (int)o->nr :
			io_uring_submit(&o->r) != (int)o->nr)
		_exit(1);
}

static void stay(struct owner *o)
{
	(void)o;
	for (;;)
		pause();
}

/* A standard owner that waits has one command of its own in flight. */
static void wait_by_ioctl(struct owner *o)
{
	struct nvq_submit s = { .wait = o->nr, .timeout_ms = 60000 };

	if (o->native)
		ioctl(o->n.q.fd, NVQ_IOC_SUBMIT, &s);
	else
		sync_rw(&o->n.q, OP_READ, 0, 1, o->buf);
	stay(o);
}

static void put_wait(struct owner *o)
{
	struct nvq_submit s = { .wait = o->nr, .timeout_ms = 60000 };
	struct io_uring_sqe *sqe;

	sqe = ring_put(&o->r, o->n.q.fd, NVQ_URING_SUBMIT,
		       &(struct nvme_uring_cmd){ 0 }, 1);
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), &s, sizeof(s));
	io_uring_submit(&o->r);
}

static void wait_by_ring(struct owner *o)
{
	struct io_uring_cqe *cqe;

	if (o->native)
		put_wait(o);
	io_uring_wait_cqe_nr(&o->r, &cqe, o->native ? 1 : o->nr);
	stay(o);
}

static void fault(struct owner *o)
{
	(void)o;
	raise(SIGSEGV);
}

/* All have completed, and nobody has looked. */
static void leave_unread(struct owner *o)
{
	uint64_t end = now_ms() + 10000;

	if (o->native) {
		volatile struct cqe *last = &o->n.cq[o->nr - 1];

		while (!(last->status & 1) && now_ms() < end)
			sleep_ms(1);
		_exit(last->status & 1 ? 0 : 2);
	}
	sleep_ms(1000);
	_exit(0);
}

static void close_file(struct owner *o)
{
	close(o->n.q.fd);
	_exit(0);
}

static void close_ring(struct owner *o)
{
	if (o->native && !o->poll)
		put_wait(o);
	io_uring_queue_exit(&o->r);
	_exit(0);
}

/* Takes memory until the kernel has had enough. */
static void take_memory(struct owner *o)
{
	char path[200], pid[20];
	size_t i;
	char *p;

	(void)o;
	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	snprintf(pid, sizeof(pid), "%d", getpid());
	if (file_write(pid, "%s", path))
		_exit(3);
	p = mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (i = 0; p != MAP_FAILED && i < 1 << 30; i += PAGE)
		p[i] = 1;
	_exit(4);
}

/* ---- what becomes of it ---------------------------------------------------- */

static const struct death {
	const char *name;
	void (*act)(struct owner *o);
	int signal;		/* what we send, once it says that it is full */
	int end;		/* the signal it dies of, 0: none */
} deaths[] = {
	{ "killed", stay, SIGKILL, SIGKILL },
	{ "by a fault", fault, 0, SIGSEGV },
	{ "killed in a waiting ioctl", wait_by_ioctl, SIGKILL, SIGKILL },
	{ "killed waiting at its ring", wait_by_ring, SIGKILL, SIGKILL },
	{ "exits, nothing read", leave_unread, 0, 0 },
	{ "closes the file", close_file, 0, 0 },
	{ "closes the ring", close_ring, 0, 0 },
}, oom = { "out of memory", take_memory, 0, SIGKILL };

static void owner_main(const struct death *d, const char *node, bool native,
		       int say)
{
	struct owner o = { .native = native };

	owner_open(&o, node);
	fill_queue(&o);
	if (write(say, "x", 1) != 1)
		_exit(5);
	d->act(&o);
	_exit(6);
}

static bool dies(const struct death *d, const char *node, bool native)
{
	int p[2], status = 0;
	bool full;
	pid_t pid;
	char c;

	fflush(stdout);
	if (pipe(p))
		die("pipe");
	pid = fork();
	if (!pid) {
		close(p[0]);
		owner_main(d, node, native, p[1]);
	}
	close(p[1]);
	full = read(p[0], &c, 1) == 1;
	close(p[0]);
	/* into its wait */
	sleep_ms(20);
	if (d->signal)
		kill(pid, d->signal);
	waitpid(pid, &status, 0);
	if (full && (d->end ? WIFSIGNALED(status) && WTERMSIG(status) == d->end :
			      WIFEXITED(status) && !WEXITSTATUS(status)))
		return true;
	diag("%s: full %d, status 0x%x", d->name, full, status);
	return false;
}

/* The next owner waits no longer than commands take; how long it did. */
static bool next_owner(const char *node, bool native, unsigned int *ms)
{
	uint64_t begun = now_ms(), end = begun + 20000;
	char *buf = buffer_new(PAGE);
	struct queue q;
	struct native n;
	struct nvq_sqe s;
	bool good;

	do {
		q.fd = open(node, O_RDWR | O_CLOEXEC);
	} while (q.fd < 0 && errno == EBUSY && now_ms() < end);
	*ms = now_ms() - begun;
	if (q.fd < 0 || ioctl(q.fd, NVQ_IOC_GEOMETRY, &q.g))
		return false;
	memset(buf, 0x55, PAGE);
	if (native) {
		n = native_attach(q);
		s = native_rw(&n, OP_READ, 0, 0, 8,
			      native_register(q.fd, buf, PAGE, 0), 0);
		good = !native_run(&n, &s) && all_bytes(buf, PAGE, 0);
		native_close(&n);
	} else {
		good = !sync_rw(&q, OP_READ, 0, 8, buf) &&
		       all_bytes(buf, PAGE, 0);
		queue_close(&q);
	}
	buffer_free(buf, PAGE);
	return good;
}

static void try(const struct death *d, const char *node, bool native)
{
	const char *way = native ? "native" : "standard";
	unsigned int ms = 0;

	ok(dies(d, node, native), "%s, %s: %s", node, way, d->name);
	/* the next one is of the other way, which is its free choice */
	ok(next_owner(node, !native, &ms),
	   "the next owner has the queue after %u ms, and it works", ms);
}

static void all_deaths(const char *node, bool native)
{
	unsigned int i;

	if (cgroup)
		try(&oom, node, native);
	for (i = 0; !cgroup && i < sizeof(deaths) / sizeof(deaths[0]); i++)
		try(&deaths[i], node, native);
}

int main(int argc, char **argv)
{
	static const char *const nodes[] = { "/dev/nvq0poll0", "/dev/nvq0irq0" };
	struct tap_loop l = { "all of it, again and again", .count = 10,
			      .floor = 1, .seconds = 30 };
	unsigned int cell;

	signal(SIGPIPE, SIG_IGN);
	cgroup = argc > 1 ? argv[1] : NULL;
	while (tap_loop(&l))
		for (cell = 0; cell < 4; cell++)
			all_deaths(nodes[cell / 2], cell & 1);
	return tap_done();
}
