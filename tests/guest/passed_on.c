// SPDX-License-Identifier: MIT
/*
 * A queue file passed to another process, which keeps the descriptor, while the
 * one that opened it keeps a mapping and nothing else.  Once the drive is gone:
 * what was in flight has ended once in the mapped CQ, the mapping can be read,
 * and the descriptor says ENODEV and POLLHUP.
 *
 * Says "passed on" when that is so, and in the end what is wrong, or "as it should
 * be".
 *
 * usage: passed_on NODE standard|native
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

#define HOST_ABORTED	0x371
#define NR		16

static bool native;

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
		die("sendmsg: %s", strerror(errno));
}

static int receive_fd(int sock)
{
	char c, space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	int fd;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
		die("recvmsg: %s", strerror(errno));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

/* In the process that got it: 0, or the step that went wrong. */
static int receiver(int sock)
{
	struct queue q = { .fd = receive_fd(sock) };
	struct pollfd p = { .fd = q.fd, .events = POLLPRI };
	struct nvq_geometry g;
	char *buf = buffer_new(PAGE);

	if (ioctl(q.fd, NVQ_IOC_GEOMETRY, &q.g))
		return 1;
	/* readable, too, for what has completed: that is not what is awaited */
	if (poll(&p, 1, 90000) != 1 || !(p.revents & POLLHUP))
		return 2;
	if (!ioctl(q.fd, NVQ_IOC_GEOMETRY, &g) || errno != ENODEV)
		return 3;
	if (native) {
		if (!ioctl(q.fd, NVQ_IOC_SUBMIT, NULL) || errno != ENODEV)
			return 4;
		if (!ioctl(q.fd, NVQ_IOC_RESYNC) || errno != ENODEV)
			return 5;
	} else if (sync_rw(&q, OP_READ, 0, 1, buf) != -ENODEV) {
		return 6;
	}
	return 0;
}

/* What the one with the mapping sees; it has closed its descriptor. */
static const char *holder(struct native *n, unsigned int flying)
{
	uint64_t end = now_ms() + 90000;
	unsigned int i, ends[NR] = { 0 };
	size_t at;
	int sum = 0;

	while (n->k->state != NVQ_STATE_DEAD && now_ms() < end)
		sleep_ms(5);
	if (n->k->state != NVQ_STATE_DEAD)
		return "the kernel page does not say dead";
	for (i = 0; i < flying; i++) {
		uint16_t cid;
		int res = native_reap(n, &cid, 5000);

		if (cid >= NR || ends[cid]++ || (res && res != HOST_ABORTED))
			return "a command did not end once, as it should";
	}
	if (flying && native_reap(n, NULL, 20) != -ETIME)
		return "one end too many";
	for (at = 0; at < n->q.g.cq_bytes / sizeof(*n->cq); at++)
		sum += n->cq[at].status;
	return sum < 0 ? "no status is negative" : NULL;
}

/* Both rings' mappings stay, or for a standard file the two it has. */
static struct native map_all(struct queue q)
{
	struct native n = { .q = q };

	if (native)
		return native_attach(q);
	n.cq = mmap(NULL, q.g.cq_bytes, PROT_READ, MAP_SHARED, q.fd,
		    NVQ_MMAP_CQ);
	n.k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, q.fd, NVQ_MMAP_KPAGE);
	if (n.cq == MAP_FAILED || n.k == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return n;
}

static unsigned int in_flight(struct native *n, char *buf)
{
	int i, index = native_register(n->q.fd, buf, NR * PAGE, 0);

	for (i = 0; i < NR; i++) {
		struct nvq_sqe s = native_rw(n, OP_READ, i, 8 * i, 8, index,
					     i * PAGE);

		native_stage(n, &s);
	}
	if (native_submit(n) != NR)
		die("not all were taken");
	return NR;
}

int main(int argc, char **argv)
{
	unsigned int flying = 0;
	const char *bad;
	int sock[2], status = -1;
	struct native n;
	pid_t pid;

	if (argc != 3)
		die("usage: passed_on NODE standard|native");
	native = !strcmp(argv[2], "native");
	tap_alarm(150);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		die("socketpair");
	pid = fork();
	if (!pid)
		_exit(receiver(sock[1]));
	n = map_all(queue_open(argv[1], O_RDWR));
	send_fd(sock[0], n.q.fd);
	if (native)
		flying = in_flight(&n, buffer_new(NR * PAGE));
	close(n.q.fd);
	printf("passed on\n");
	fflush(stdout);
	bad = holder(&n, flying);
	waitpid(pid, &status, 0);
	if (bad)
		printf("%s\n", bad);
	else if (status)
		printf("the receiver: step %d\n", WEXITSTATUS(status));
	else
		printf("as it should be\n");
	return 0;
}
