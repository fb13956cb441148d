// SPDX-License-Identifier: MIT
/*
 * A small ublk server: a block device /dev/ublkbN whose I/O this process does, by
 * io_uring, to a file (the loop target), or does not do at all (null).
 *
 * It is what the thread of February 2025 measured beside NVMe passthrough
 * (jobs/2025-02-ublk.fio), in the way it was before zero copy: the kernel copies
 * data between the requests' pages and a buffer of ours for each tag.
 *
 *	ublk_server [-q QUEUES] [-d DEPTH] [-b MAX-IO-BYTES] [-D] null:BYTES|FILE
 *
 * -D opens the file with O_DIRECT.  Prints the device's name once it is there,
 * serves until SIGTERM or SIGINT, and deletes the device.  Linux 6.3 or later (the
 * opcodes are those of ioctls).
 *
 * Per tag there is always one command of ours in the kernel, which says in one "the
 * result of the last request is this" and "give me the next": a thread has a
 * queue, a ring and its tags, and waits for completions of two kinds, requests that
 * come in (FETCH) and file I/O that is done (TARGET).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <liburing.h>
#include <linux/falloc.h>
#include <linux/ublk_cmd.h>

/* Not in the header of Linux 6.1; the numbers are made of what is. */
#define CTRL_OP(nr)	_IOWR('u', nr, struct ublksrv_ctrl_cmd)
#define IO_OP(nr)	_IOWR('u', nr, struct ublksrv_io_cmd)
#ifndef UBLK_F_CMD_IOCTL_ENCODE
#define UBLK_F_CMD_IOCTL_ENCODE	(1UL << 6)
#endif

enum { FETCH = 0, TARGET = 1 };

struct server {
	unsigned int queues, depth, max_io;
	bool direct;
	unsigned long long bytes;
	int target;		/* the file; -1: null */
	int control;		/* /dev/ublk-control */
	int dev;		/* /dev/ublkcN, shared by the threads */
	unsigned int id;	/* N */
	struct io_uring ring;	/* of the control commands */
};

struct queue {
	const struct server *srv;
	unsigned int id;
	unsigned int open_tags;	/* that have a command in the kernel, or a request */
	const struct ublksrv_io_desc *desc;
	char *buffers;
	struct io_uring ring;
	pthread_t thread;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "ublk_server: %s: %s\n", what, strerror(error));
	exit(1);
}

/* ---- Control commands ---------------------------------------------------------- */

/* One at a time; @addr and @len a buffer that it reads or writes, @data inline. */
static int control(struct server *srv, unsigned int nr, void *addr,
		   unsigned int len, unsigned long long data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&srv->ring);
	struct ublksrv_ctrl_cmd *cmd;
	struct io_uring_cqe *cqe;
	int ret;

	if (!sqe)
		return -EBUSY;
	/* both halves of the SQE */
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = srv->control;
	sqe->cmd_op = CTRL_OP(nr);
	cmd = (void *)sqe->cmd;
	cmd->dev_id = srv->id;
	cmd->queue_id = (__u16)-1;
	cmd->addr = (unsigned long)addr;
	cmd->len = len;
	cmd->data[0] = data;
	ret = io_uring_submit_and_wait(&srv->ring, 1);
	if (ret < 0)
		return ret;
	ret = io_uring_wait_cqe(&srv->ring, &cqe);
	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(&srv->ring, cqe);
	return ret;
}

static void must_control(struct server *srv, const char *what, unsigned int nr,
			 void *addr, unsigned int len, unsigned long long data)
{
	int ret = control(srv, nr, addr, len, data);

	if (ret < 0)
		die(what, -ret);
}

static void set_params(struct server *srv)
{
	struct ublk_params p = {
		.len = sizeof(p),
		.types = UBLK_PARAM_TYPE_BASIC,
		.basic = {
			.attrs = UBLK_ATTR_VOLATILE_CACHE,
			.logical_bs_shift = 9,
			.physical_bs_shift = 12,
			.io_opt_shift = 12,
			.io_min_shift = 9,
			.max_sectors = srv->max_io >> 9,
			.dev_sectors = srv->bytes >> 9,
		},
	};

	if (srv->direct) {
		p.basic.logical_bs_shift = 12;
		p.basic.io_min_shift = 12;
	}
	if (srv->target >= 0) {
		p.types |= UBLK_PARAM_TYPE_DISCARD;
		p.discard.discard_granularity = 4096;
		p.discard.max_discard_sectors = 1 << 20;
		p.discard.max_write_zeroes_sectors = 1 << 20;
		p.discard.max_discard_segments = 1;
	}
	must_control(srv, "SET_PARAMS", UBLK_CMD_SET_PARAMS, &p, sizeof(p), 0);
}

/* Adds the device, and opens its character side, which devtmpfs brings. */
static void add_device(struct server *srv)
{
	struct ublksrv_ctrl_dev_info info = {
		.nr_hw_queues = srv->queues,
		.queue_depth = srv->depth,
		.max_io_buf_bytes = srv->max_io,
		.dev_id = -1,
		.ublksrv_pid = getpid(),
		.flags = UBLK_F_CMD_IOCTL_ENCODE,
	};
	char name[32];

	srv->id = -1;
	must_control(srv, "ADD_DEV", UBLK_CMD_ADD_DEV, &info, sizeof(info), 0);
	/* the kernel may have given less */
	srv->id = info.dev_id;
	srv->queues = info.nr_hw_queues;
	srv->depth = info.queue_depth;
	snprintf(name, sizeof(name), "/dev/ublkc%u", srv->id);
	for (int tries = 0; tries < 100; tries++) {
		srv->dev = open(name, O_RDWR);
		if (srv->dev >= 0)
			return;
		usleep(50000);
	}
	die(name, errno);
}

/* ---- One queue ----------------------------------------------------------------- */

static char *buffer_of(const struct queue *q, unsigned int tag)
{
	return q->buffers + (size_t)tag * q->srv->max_io;
}

/* As many SQEs as two a tag are there, so that there is always one. */
static struct io_uring_sqe *get_sqe(struct queue *q, unsigned int tag, int kind)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);

	if (!sqe)
		die("no SQE", EBUSY);
	memset(sqe, 0, sizeof(*sqe));
	sqe->user_data = (unsigned long long)kind << 32 | tag;
	return sqe;
}

/* Asks for the tag's next request; @nr says whether it answers one as well. */
static void fetch(struct queue *q, unsigned int tag, unsigned int nr, int result)
{
	struct io_uring_sqe *sqe = get_sqe(q, tag, FETCH);
	struct ublksrv_io_cmd *cmd = (void *)sqe->cmd;

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = q->srv->dev;
	sqe->cmd_op = IO_OP(nr);
	cmd->q_id = q->id;
	cmd->tag = tag;
	cmd->result = result;
	cmd->addr = (unsigned long)buffer_of(q, tag);
}

static void answer(struct queue *q, unsigned int tag, int result)
{
	fetch(q, tag, UBLK_IO_COMMIT_AND_FETCH_REQ, result);
}

/* The file I/O for a request; false if we do not know it. */
static bool prepare_target(struct queue *q, unsigned int tag)
{
	const struct ublksrv_io_desc *d = &q->desc[tag];
	unsigned long long offset = d->start_sector << 9;
	unsigned int op = ublksrv_get_op(d), bytes = d->nr_sectors << 9;
	int fd = q->srv->target;
	struct io_uring_sqe *sqe;

	if (op != UBLK_IO_OP_READ && op != UBLK_IO_OP_WRITE &&
	    op != UBLK_IO_OP_FLUSH && op != UBLK_IO_OP_DISCARD &&
	    op != UBLK_IO_OP_WRITE_ZEROES)
		return false;
	sqe = get_sqe(q, tag, TARGET);
	if (op == UBLK_IO_OP_READ)
		io_uring_prep_read(sqe, fd, buffer_of(q, tag), bytes, offset);
	else if (op == UBLK_IO_OP_WRITE)
		io_uring_prep_write(sqe, fd, buffer_of(q, tag), bytes, offset);
	else if (op == UBLK_IO_OP_FLUSH)
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
	else
		io_uring_prep_fallocate(sqe, fd, FALLOC_FL_KEEP_SIZE |
					(op == UBLK_IO_OP_DISCARD ? FALLOC_FL_PUNCH_HOLE :
					 FALLOC_FL_ZERO_RANGE), offset, bytes);
	/* the prep functions clear it */
	sqe->user_data = (unsigned long long)TARGET << 32 | tag;
	return true;
}

/* A request came in: null has it done at once. */
static void serve(struct queue *q, unsigned int tag)
{
	if (q->srv->target < 0)
		answer(q, tag, q->desc[tag].nr_sectors << 9);
	else if (!prepare_target(q, tag))
		answer(q, tag, -EOPNOTSUPP);
}

/* The file I/O is done.  The answer to what has no data is its length as well. */
static void served(struct queue *q, unsigned int tag, int result)
{
	if (!result && ublksrv_get_op(&q->desc[tag]) != UBLK_IO_OP_READ)
		result = q->desc[tag].nr_sectors << 9;
	answer(q, tag, result);
}

static void handle(struct queue *q, const struct io_uring_cqe *cqe)
{
	unsigned int tag = (__u32)cqe->user_data;

	if (cqe->user_data >> 32 == TARGET)
		served(q, tag, cqe->res);
	else if (cqe->res == UBLK_IO_RES_OK)
		serve(q, tag);
	else
		/* the device stops, or did not take the answer */
		q->open_tags--;
}

static void set_up_queue(struct queue *q)
{
	const struct server *srv = q->srv;
	size_t all = UBLK_MAX_QUEUE_DEPTH * sizeof(*q->desc);
	int ret;

	q->desc = mmap(NULL, srv->depth * sizeof(*q->desc), PROT_READ,
		       MAP_SHARED | MAP_POPULATE, srv->dev,
		       UBLKSRV_CMD_BUF_OFFSET + q->id * all);
	if (q->desc == MAP_FAILED)
		die("mmap of descriptors", errno);
	if (posix_memalign((void **)&q->buffers, 4096,
			   (size_t)srv->depth * srv->max_io))
		die("buffers", ENOMEM);
	ret = io_uring_queue_init(2 * srv->depth, &q->ring,
				  IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER);
	if (ret)
		die("io_uring", -ret);
}

/* Which thread fetches, answers: the kernel holds it to that. */
static void *queue_thread(void *arg)
{
	struct queue *q = arg;
	struct io_uring_cqe *cqe;
	unsigned int tag, head, n;

	set_up_queue(q);
	for (tag = 0; tag < q->srv->depth; tag++)
		fetch(q, tag, UBLK_IO_FETCH_REQ, 0);
	q->open_tags = q->srv->depth;
	while (q->open_tags) {
		int ret = io_uring_submit_and_wait(&q->ring, 1);

		if (ret < 0 && ret != -EINTR)
			die("io_uring_enter", -ret);
		n = 0;
		io_uring_for_each_cqe(&q->ring, head, cqe) {
			handle(q, cqe);
			n++;
		}
		io_uring_cq_advance(&q->ring, n);
	}
	io_uring_queue_exit(&q->ring);
	munmap((void *)q->desc, q->srv->depth * sizeof(*q->desc));
	free(q->buffers);
	return NULL;
}

/* ---- The device's life ----------------------------------------------------------- */

static void open_target(struct server *srv, const char *what)
{
	struct stat st;

	if (!strncmp(what, "null:", 5)) {
		srv->target = -1;
		srv->bytes = strtoull(what + 5, NULL, 0);
	} else {
		srv->target = open(what, O_RDWR | (srv->direct ? O_DIRECT : 0));
		if (srv->target < 0 || fstat(srv->target, &st))
			die(what, errno);
		srv->bytes = st.st_size;
	}
	if (srv->bytes < 4096)
		die("the target is smaller than a block", EINVAL);
	srv->bytes &= ~4095ull;
}

static void run(struct server *srv, const sigset_t *signals)
{
	struct queue *queues = calloc(srv->queues, sizeof(*queues));
	unsigned int i;
	int sig;

	if (!queues)
		die("queues", ENOMEM);
	for (i = 0; i < srv->queues; i++) {
		queues[i].srv = srv;
		queues[i].id = i;
		if (pthread_create(&queues[i].thread, NULL, queue_thread, &queues[i]))
			die("thread", errno);
	}
	/* waits for all tags of all queues */
	must_control(srv, "START_DEV", UBLK_CMD_START_DEV, NULL, 0, getpid());
	printf("/dev/ublkb%u\n", srv->id);
	fflush(stdout);
	sigwait(signals, &sig);
	must_control(srv, "STOP_DEV", UBLK_CMD_STOP_DEV, NULL, 0, 0);
	for (i = 0; i < srv->queues; i++)
		pthread_join(queues[i].thread, NULL);
	free(queues);
}

static int usage(void)
{
	fprintf(stderr, "usage: ublk_server [-q QUEUES] [-d DEPTH] [-b MAX-IO-BYTES] [-D] null:BYTES|FILE\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct server srv = { .queues = 1, .depth = 128, .max_io = 512 << 10 };
	sigset_t signals;
	int opt, ret;

	while ((opt = getopt(argc, argv, "q:d:b:D")) != -1) {
		switch (opt) {
		case 'q':
			srv.queues = atoi(optarg);
			break;
		case 'd':
			srv.depth = atoi(optarg);
			break;
		case 'b':
			srv.max_io = atoi(optarg);
			break;
		case 'D':
			srv.direct = true;
			break;
		default:
			return usage();
		}
	}
	if (optind + 1 != argc)
		return usage();
	/* for sigwait(), and so that no thread gets them */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	open_target(&srv, argv[optind]);
	srv.control = open("/dev/ublk-control", O_RDWR);
	if (srv.control < 0)
		die("/dev/ublk-control (modprobe ublk_drv)", errno);
	ret = io_uring_queue_init(4, &srv.ring, IORING_SETUP_SQE128);
	if (ret)
		die("io_uring", -ret);
	add_device(&srv);
	set_params(&srv);
	run(&srv, &signals);
	/* the kernel waits for whoever has it open */
	close(srv.dev);
	must_control(&srv, "DEL_DEV", UBLK_CMD_DEL_DEV, NULL, 0, 0);
	return 0;
}
