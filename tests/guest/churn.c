// SPDX-License-Identifier: MIT
/*
 * Queues whose owners go away at the worst moment, again and again: killed with
 * 256 commands in flight, leaving a ring with commands nobody reaps, opened and
 * closed.  The drive is slow (some ms), so that commands are in flight for sure.
 * What is left behind is for lifetime.test to look at.
 *
 * usage: churn kill|exit|open SECONDS FLOOR [NODE]...
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

#include "queue.h"
#include "tap.h"

#define DEPTH	256

static uint64_t rnd = 1;

/* The previous owner's commands may take a moment. */
static int open_patiently(const char *node)
{
	uint64_t end = now_ms() + 20000;
	int fd;

	do {
		fd = open(node, O_RDWR | O_CLOEXEC);
	} while (fd < 0 && errno == EBUSY && now_ms() < end);
	return fd;
}

struct load {
	struct queue q;
	struct io_uring r;
	char *buf;
	size_t len;
};

/* False if the queue cannot be had. */
static bool load_open(struct load *l, const char *node)
{
	struct iovec iov;

	l->q.fd = open_patiently(node);
	if (l->q.fd < 0 || ioctl(l->q.fd, NVQ_IOC_GEOMETRY, &l->q.g))
		return false;
	l->len = DEPTH * 2 * PAGE;
	l->buf = buffer_new(l->len);
	ring_open_for(&l->r, DEPTH, &l->q);
	iov = (struct iovec){ l->buf, l->len };
	if (io_uring_register_buffers(&l->r, &iov, 1))
		die("io_uring_register_buffers");
	return true;
}

/* Plain and registered, one page and more, aligned and bounced. */
static bool load_submit(struct load *l, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		char *at = l->buf + i % DEPTH * 2 * PAGE;
		struct nvme_uring_cmd c;
		struct io_uring_sqe *sqe;

		at += i % 7 == 3 ? 2 : 0;
		c = rw_cmd(&l->q, i & 1 ? OP_WRITE : OP_READ, i * 16,
			   i % 3 ? 8 : 12, at);
		sqe = ring_put(&l->r, l->q.fd, NVME_URING_CMD_IO, &c, i);
		if (i % 5 == 1)
			sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	}
	return io_uring_submit(&l->r) == (int)nr;
}

/* ---- killed --------------------------------------------------------------- */

static void victim(const char *node, int say)
{
	struct load l;
	struct end e;
	unsigned int i;

	if (!load_open(&l, node) || !load_submit(&l, DEPTH) ||
	    write(say, "x", 1) != 1)
		_exit(1);
	/* keeps the queue full until the end */
	for (;;) {
		for (i = 0; i < 32; i++)
			if (ring_get(&l.r, &e, 20000) || e.res)
				_exit(2);
		load_submit(&l, 32);
	}
}

static bool kill_one(const char *node)
{
	int p[2], status;
	char c;
	pid_t pid;
	bool good;

	if (pipe(p))
		die("pipe");
	pid = fork();
	if (!pid) {
		close(p[0]);
		victim(node, p[1]);
	}
	close(p[1]);
	good = read(p[0], &c, 1) == 1;
	close(p[0]);
	if (good)
		usleep(random_below(&rnd, 6000));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return good && WIFSIGNALED(status);
}

/* ---- left with commands in flight ----------------------------------------- */

enum exit_way {
	RING_FIRST,	/* the ring goes, the file stays and works */
	FILE_FIRST,	/* the file is closed while the ring has commands */
	NO_MEMORY,	/* the buffers are unmapped first */
	JUST_EXIT,
	NR_EXITS,
};

static bool still_works(const struct queue *q)
{
	char *buf = buffer_new(PAGE);
	bool good = !sync_rw(q, OP_READ, 0, 8, buf);

	buffer_free(buf, PAGE);
	return good;
}

static bool leave(const char *node, enum exit_way way)
{
	struct load l;
	bool good;

	if (!load_open(&l, node) || !load_submit(&l, DEPTH))
		return false;
	good = true;
	switch (way) {
	case RING_FIRST:
		io_uring_queue_exit(&l.r);
		good = still_works(&l.q);
		close(l.q.fd);
		break;
	case FILE_FIRST:
		close(l.q.fd);
		io_uring_queue_exit(&l.r);
		break;
	case NO_MEMORY:
		buffer_free(l.buf, l.len);
		io_uring_queue_exit(&l.r);
		close(l.q.fd);
		return good;
	default:
		_exit(0);
	}
	buffer_free(l.buf, l.len);
	return good;
}

static bool exit_one(const char *node, enum exit_way way)
{
	int status;
	pid_t pid;

	if (way != JUST_EXIT)
		return leave(node, way);
	pid = fork();
	if (!pid)
		_exit(!leave(node, way));
	waitpid(pid, &status, 0);
	return !status;
}

static bool open_one(const char *node, unsigned int round)
{
	int fd = open_patiently(node);
	struct queue q = { .fd = fd };
	void *map = MAP_FAILED;
	bool good;

	if (fd < 0)
		return false;
	if (round & 4)
		map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd,
			   NVQ_MMAP_KPAGE);
	good = round % 16 || (!ioctl(fd, NVQ_IOC_GEOMETRY, &q.g) &&
			      still_works(&q));
	close(fd);
	if (map != MAP_FAILED)
		munmap(map, PAGE);
	return good;
}

int main(int argc, char **argv)
{
	struct tap_loop l = { .count = 200 };
	unsigned int nodes = argc - 4;

	if (argc < 5)
		die("usage: churn kill|exit|open SECONDS FLOOR NODE...");
	signal(SIGPIPE, SIG_IGN);
	l.seconds = atoi(argv[2]);
	l.floor = atoi(argv[3]);
	l.name = "killed with 256 commands in flight";
	if (!strcmp(argv[1], "exit"))
		l.name = "left with 256 commands in flight";
	if (!strcmp(argv[1], "open")) {
		l.name = "opened and closed";
		l.count = 1000;
	}
	while (tap_loop(&l)) {
		const char *node = argv[4 + l.done % nodes];
		unsigned int round = l.done / nodes;
		bool good;

		if (!strcmp(argv[1], "kill"))
			good = kill_one(node);
		else if (!strcmp(argv[1], "exit"))
			good = exit_one(node, round % NR_EXITS);
		else
			good = open_one(node, round);
		tap_loop_check(&l, good, "round %u, %s: %s", l.done, node,
			       strerror(errno));
	}
	return tap_done();
}
