// SPDX-License-Identifier: MIT
/*
 * Who owns a queue: one opener at a time, waited for a moment; descriptors that
 * go to other processes; the choice of the namespace before the first command.
 * Needs two namespaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

static const char *path;

static int try_open(int flags, unsigned int *ms)
{
	uint64_t begun = now_ms();
	int fd = open(path, O_RDWR | O_CLOEXEC | flags);
	int err = -errno;

	*ms = now_ms() - begun;
	if (fd < 0)
		return err;
	close(fd);
	return 0;
}

/* A child that holds the queue for @ms; returns when it does. */
static pid_t holder(unsigned int ms)
{
	int p[2];
	pid_t pid;
	char c;

	fflush(stdout);
	if (pipe(p))
		die("pipe");
	pid = fork();
	if (!pid) {
		struct queue q = queue_open(path, O_RDWR);

		if (write(p[1], "x", 1) != 1)
			_exit(1);
		sleep_ms(ms);
		queue_close(&q);
		_exit(0);
	}
	if (read(p[0], &c, 1) != 1)
		die("the holder died");
	close(p[0]);
	close(p[1]);
	return pid;
}

/* The driver waits for half a second, which a slow kernel needs to close a file. */
static int patient_open(void)
{
	unsigned int ms, tries = tap_env("NVQ_SLOW", 1);
	int err;

	do
		err = try_open(0, &ms);
	while (err == -EBUSY && --tries);
	return err;
}

static void one_owner(void)
{
	unsigned int ms;
	pid_t pid = holder(10000);

	is(try_open(O_NONBLOCK, &ms), -EBUSY, "%s: a second O_NONBLOCK open",
	   path);
	ok(ms < 200, "is refused at once (%u ms)", ms);
	is(try_open(0, &ms), -EBUSY, "a second blocking open");
	ok(ms >= 200 && ms < 3000, "is refused after a moment (%u ms)", ms);
	is(file_number("/sys/class/nvqueue/%s/owner", path + 5), pid,
	   "sysfs names the owner");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	is(patient_open(), 0, "a killed owner's queue is free");
	pid = holder(200);
	is(patient_open(), 0, "an open waits for the owner to go");
	waitpid(pid, NULL, 0);
	is(file_number("/sys/class/nvqueue/%s/owner", path + 5), 0,
	   "nobody owns it");
}

static bool io_works(const struct queue *q)
{
	char *buf = buffer_new(4096);
	struct nvme_uring_cmd c = rw_cmd(q, OP_READ, 0, 1, buf);
	struct io_uring r;
	bool good;

	ring_open_for(&r, 4, q);
	good = !ring_run(&r, q->fd, NVME_URING_CMD_IO, &c).res &&
	       !sync_cmd(q->fd, &c, NULL);
	io_uring_queue_exit(&r);
	buffer_free(buf, 4096);
	return good;
}

static int in_forked_child(void *arg)
{
	return !io_works(arg);
}

static void over_fork(void)
{
	struct queue q = queue_open(path, O_RDWR);
	unsigned int ms;

	is(in_child(in_forked_child, &q), 0, "a descriptor works in a child");
	ok(io_works(&q), "and in the parent after it");
	queue_close(&q);
	is(try_open(0, &ms), 0, "and is gone afterwards");
}

static void send_fd(int sock, int fd)
{
	char c = 'x', space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(int));
	if (sendmsg(sock, &m, 0) != 1)
		die("sendmsg");
}

static int take_fd(int sock)
{
	char c, space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	int fd;

	if (recvmsg(sock, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

static int receiver(int sock)
{
	struct queue q = { .fd = take_fd(sock) };
	char *buf = buffer_new(4096);

	drop_rights();
	if (ioctl(q.fd, NVQ_IOC_GEOMETRY, &q.g))
		return 2;
	/* what it was opened for counts, not who uses it */
	if (sync_rw(&q, OP_WRITE, 0, 1, buf) || !io_works(&q))
		return 3;
	return read(sock, buf, 1) == 1 ? 0 : 4;
}

static void passed_on(void)
{
	struct queue q = queue_open(path, O_RDWR);
	unsigned int ms;
	int sock[2], status;
	pid_t pid;

	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		die("socketpair");
	pid = fork();
	if (!pid) {
		queue_close(&q);
		close(sock[0]);
		_exit(receiver(sock[1]));
	}
	close(sock[1]);
	send_fd(sock[0], q.fd);
	queue_close(&q);
	sleep_ms(300);
	is(try_open(O_NONBLOCK, &ms), -EBUSY,
	   "a descriptor sent away still owns the queue");
	if (write(sock[0], "x", 1) != 1)
		die("write");
	waitpid(pid, &status, 0);
	is(status, 0, "and works for an unprivileged receiver");
	close(sock[0]);
	is(try_open(0, &ms), 0, "and frees it when that is gone");
}

static int select_ns(const struct queue *q, uint32_t nsid)
{
	return ioctl(q->fd, NVQ_IOC_SELECT_NS, &nsid) ? -errno : 0;
}

static uint32_t geometry_nsid(struct queue *q)
{
	return ioctl(q->fd, NVQ_IOC_GEOMETRY, &q->g) ? 0 : q->g.nsid;
}

static void namespaces(void)
{
	struct queue q = queue_open(path, O_RDWR);
	char *buf = buffer_new(4096);
	uint32_t id;

	is(q.g.nsid, 1, "the lowest namespace at first");
	is(select_ns(&q, 3), -EINVAL, "no such namespace is EINVAL");
	is(select_ns(&q, 0), -EINVAL, "namespace 0 is EINVAL");
	is(select_ns(&q, ~0U), -EINVAL, "all namespaces is EINVAL");
	is(select_ns(&q, 2), 0, "namespace 2 is selected");
	is(ioctl(q.fd, NVQ_IOC_SELECT_NS, 8) ? -errno : 0, -EFAULT,
	   "a bad pointer is EFAULT");
	id = geometry_nsid(&q);
	is(id, 2, "the geometry says so");
	is(ioctl(q.fd, NVME_IOCTL_ID), 2, "and NVME_IOCTL_ID");
	is(select_ns(&q, 1), 0, "and back");
	is(select_ns(&q, 2), 0, "and forth");
	fill(buf, 512, 2);
	geometry_nsid(&q);
	is(sync_rw(&q, OP_WRITE, 7, 1, buf), 0, "a write to it");
	is(select_ns(&q, 1), -EBUSY, "then it is too late");
	is(geometry_nsid(&q), 2, "and the namespace stays");
	queue_close(&q);

	q = queue_open(path, O_RDWR);
	is(q.g.nsid, 1, "the next owner begins with the lowest");
	fill(buf, 512, 1);
	is(sync_rw(&q, OP_WRITE, 7, 1, buf), 0, "a write there");
	queue_close(&q);
	q = queue_open_as_is(path, O_RDWR);
	is(select_ns(&q, 2), 0, "namespace 2 again");
	geometry_nsid(&q);
	is(sync_rw(&q, OP_READ, 7, 1, buf), 0, "a read of it");
	ok(differs(buf, 512, 2) < 0, "finds what was written to it");
	queue_close(&q);
	buffer_free(buf, 4096);
}

static void all(const char *node)
{
	path = node;
	one_owner();
	over_fork();
	passed_on();
	namespaces();
}

int main(void)
{
	tap_alarm(120);
	all("/dev/nvq0poll1");
	all("/dev/nvq0irq1");
	return tap_done();
}
