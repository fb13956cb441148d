// SPDX-License-Identifier: MIT
/*
 * The hostile process and the file itself: opening, passing and closing
 * descriptors, mappings of every region in every wrong way, memory that changes
 * with I/O in flight, registrations, fork, poll(2), signals, threads that die,
 * and the ioctls that send nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static long failed(long ret)
{
	return ret < 0 ? -errno : ret;
}

/* ---- descriptors ------------------------------------------------------------- */

static void op_open(struct thread *t)
{
	static const char *const others[] = {
		"/dev/nvq0", "/dev/nvq0poll2", "/dev/nvq0irq2",
	};
	int fd, flags = below(t, 3) | O_CLOEXEC;

	if (one_in(t, 3))
		fd = open(others[below(t, 3)], flags);
	else
		fd = open(epoch.node, flags | (one_in(t, 20) ? 0 : O_NONBLOCK));
	if (fd >= 0) {
		wrong(t, "a queue that is owned, or not ours, is opened");
		close(fd);
		return;
	}
	note(C_OPEN, -errno);
}

static void op_dup(struct thread *t)
{
	struct nvq_geometry g;
	int fd = dup(epoch.n.q.fd);

	if (one_in(t, 2))
		note(C_GEOMETRY, failed(ioctl(fd, NVQ_IOC_GEOMETRY, &g)));
	close(fd);
}

static void op_pass(struct thread *t)
{
	char data = 'x', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &data, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2], fd = epoch.n.q.fd;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	/* now and then nobody fetches it */
	if (sendmsg(pair[0], &m, 0) == 1 && !one_in(t, 4) &&
	    recvmsg(pair[1], &m, 0) == 1 && (c = CMSG_FIRSTHDR(&m))) {
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
		note(C_OTHER, failed(ioctl(fd, NVME_IOCTL_ID)));
		close(fd);
	}
	close(pair[0]);
	close(pair[1]);
}

/* ---- ioctls that send nothing ------------------------------------------------- */

static void op_geometry(struct thread *t)
{
	struct nvq_geometry g = { .nsid = random64(&t->rnd) };
	void *arg = one_in(t, 8) ? (void *)(uintptr_t)below(t, 4096) : &g;
	long ret;

	/* it would make a stale queue live before anybody has met it */
	if (epoch.formats && !one_in(t, 4))
		return;
	ret = note(C_GEOMETRY, failed(ioctl(epoch.n.q.fd, NVQ_IOC_GEOMETRY,
					    arg)));
	if (!ret && g.nsid != NS_OURS)
		wrong(t, "the geometry is of namespace %u", g.nsid);
}

static void op_select(struct thread *t)
{
	static const uint32_t nsids[] = {
		NS_OURS, NS_OURS, NS_METADATA, 0, 4, 77, 0xfffffffe, 0xffffffff
	};
	uint32_t nsid = nsids[below(t, 8)];
	void *arg = one_in(t, 8) ? (void *)(uintptr_t)below(t, 4096) : &nsid;

	note(C_SELECT_NS, failed(ioctl(epoch.n.q.fd, NVQ_IOC_SELECT_NS, arg)));
}

static void op_unknown(struct thread *t)
{
	static const unsigned long ops[] = {
		NVME_IOCTL_RESET, NVME_IOCTL_SUBSYS_RESET, NVME_IOCTL_RESCAN,
		_IO(NVQ_IOC_MAGIC, 8), _IOW(NVQ_IOC_MAGIC, 2, uint32_t),
		_IOR(NVQ_IOC_MAGIC, 0, struct nvq_geometry), FIONREAD, TCGETS,
	};
	unsigned long op = ops[below(t, 8)];

	if (one_in(t, 2))
		op = (uint32_t)random64(&t->rnd);
	/* not those of every file: FIOCLEX, FIONBIO, FIOASYNC and the like */
	if ((op >> 8 & 0xff) == 0x54 && op != TCGETS && op != FIONREAD)
		op = 0;
	note(C_OTHER, failed(ioctl(epoch.n.q.fd, op, random64(&t->rnd))));
}

static void op_identify(struct thread *t)
{
	static const uint8_t cns[] = { 0, 0, 1, 3, 5, 6, 2, 0x10, 0xff };
	struct nvme_passthru_cmd c = {
		.opcode = 0x06, .nsid = NS_OURS, .data_len = 4096,
		.addr = (uintptr_t)epoch.scratch, .cdw10 = cns[below(t, 9)],
	};
	long ret;

	switch (below(t, 8)) {
	case 0:
		c.opcode = random64(&t->rnd);
		break;
	case 1:
		c.nsid = NS_NEIGHBOUR;
		break;
	case 2:
		c.data_len = random64(&t->rnd);
		break;
	case 3:
		c.addr = random64(&t->rnd);
		break;
	case 4:
		c.flags = 0x40;
		break;
	case 5:
		c.cdw10 = random64(&t->rnd);
	}
	ret = ioctl(epoch.n.q.fd, one_in(t, 2) ? NVME_IOCTL_ADMIN_CMD :
		    NVME_IOCTL_ADMIN64_CMD, &c);
	note(C_ADMIN, failed(ret));
}

/* ---- mappings ----------------------------------------------------------------- */

static const off_t regions[] = {
	NVQ_MMAP_CQ, NVQ_MMAP_KPAGE, NVQ_MMAP_SQ, NVQ_MMAP_UPAGE,
};

/*
 * Everything that can be done to a mapping, of which we keep nothing.  How much of
 * it is gone already, where another thread may have mapped something since.
 */
static size_t ill_use(struct thread *t, char *p, size_t len)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DOFORK,
		MADV_DODUMP, MADV_MERGEABLE, MADV_HUGEPAGE, MADV_COLD,
		MADV_PAGEOUT, MADV_POPULATE_READ, MADV_WILLNEED,
		MADV_DONTFORK,
	};
	struct iovec iov = { p, len };
	int pipes[2];
	void *q;

	switch (below(t, 8)) {
	case 0:
		mprotect(p, len, below(t, 8));
		break;
	case 1:
		/* the old trick that makes a second mapping of a shared one */
		q = mremap(p, 0, len, MREMAP_MAYMOVE);
		if (q != MAP_FAILED)
			munmap(q, len);
		break;
	case 2:
		q = mremap(p, len, len * 2 + PAGE, MREMAP_MAYMOVE);
		if (q != MAP_FAILED)
			wrong(t, "a mapping grew");
		break;
	case 3:
		madvise(p, len, advice[below(t, 12)]);
		break;
	case 4:
		mlock(p, len);
		break;
	case 5:
		/* unmaps before it asks the driver */
		if (syscall(SYS_remap_file_pages, p, PAGE, 0, below(t, 4), 0))
			return PAGE;
		break;
	case 6:
		if (pipe(pipes))
			break;
		if (vmsplice(pipes[1], &iov, 1, SPLICE_F_NONBLOCK) < 0)
			errno = 0;
		close(pipes[0]);
		close(pipes[1]);
		break;
	default:
		/* not munmap: the place must stay ours until all of it goes */
		mmap(p, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
		     MAP_FIXED, -1, 0);
	}
	return 0;
}

static void op_mmap(struct thread *t)
{
	size_t len = (1 + below(t, 8)) * PAGE - below(t, 2) * below(t, PAGE);
	off_t off = regions[below(t, 4)];
	int prot = below(t, 8), flags = MAP_SHARED;
	size_t gone;
	char *p;

	switch (below(t, 8)) {
	case 0:
		off += below(t, 16) * PAGE;
		break;
	case 1:
		off = (random64(&t->rnd) >> below(t, 64)) & ~(PAGE - 1);
		off &= INT64_MAX;
		break;
	case 2:
		flags = MAP_PRIVATE;
		break;
	case 3:
		len = (size_t)below(t, 1 << 16) * PAGE + PAGE;
		break;
	case 4:
		flags = MAP_SHARED_VALIDATE | MAP_POPULATE;
		break;
	default:
		prot = PROT_READ | (off >= (off_t)NVQ_MMAP_SQ ? PROT_WRITE : 0);
		len = PAGE;
	}
	p = mmap(NULL, len, prot, flags, epoch.n.q.fd, off);
	if (note(C_MMAP, p == MAP_FAILED ? -errno : 0) < 0)
		return;
	if (prot & PROT_WRITE && off < (off_t)NVQ_MMAP_SQ)
		wrong(t, "what the kernel writes is mapped writable");
	len = (len + PAGE - 1) & ~(PAGE - 1);
	gone = ill_use(t, p, len);
	if (gone < len)
		munmap(p + gone, len - gone);
}

/* The mappings that are in use: what the rings hold goes on without them. */
static void op_protect(struct thread *t)
{
	void *at[] = { (void *)epoch.n.cq, (void *)epoch.n.k };
	void *p = at[below(t, 2)];

	if (!p)
		return;
	if (!mprotect(p, PAGE, PROT_READ | (one_in(t, 2) ? PROT_WRITE :
					    PROT_EXEC)))
		wrong(t, "the CQ or the kernel page is made writable");
}

/* ---- registrations ------------------------------------------------------------- */

static void unregister(int index)
{
	note(C_UNREGISTER, native_unregister(epoch.n.q.fd, index));
}

static int reg(void *p, size_t len, uint32_t flags)
{
	return note(C_REGISTER, native_register(epoch.n.q.fd, p, len, flags));
}

/* Until one of the limits is met; then all go. */
static void fill_table(void)
{
	static int index[NVQ_MAX_BUFS];
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	unsigned int n = 0;

	if (pthread_mutex_trylock(&one))
		return;
	while (n < NVQ_MAX_BUFS &&
	       (index[n] = reg(epoch.scratch, 4, 0)) >= 0)
		n++;
	while (n--)
		unregister(index[n]);
	pthread_mutex_unlock(&one);
}

/* Memory of all kinds, most of them wrong; what was taken is let go of. */
static void op_register(struct thread *t)
{
	size_t len = 4 * (1 + below(t, 4 * PAGE));
	char *p = epoch.scratch;
	void *file = MAP_FAILED;
	uint32_t flags = 0;
	int i, fd;

	switch (below(t, 12)) {
	case 0:
		p += 1 + below(t, 3);
		break;
	case 1:
		len = one_in(t, 2) ? 0 : NVQ_MAX_BUF_LEN + 1 + below(t, 5000);
		break;
	case 2:
		p = (char *)(random64(&t->rnd) & ~3ul);
		break;
	case 3:
		flags = 1 << below(t, 32);
		break;
	case 4:
		len = SCRATCH_LEN + 4 * below(t, 1 << 20);
		break;
	case 5:
		p = epoch.n.k ? (char *)epoch.n.k : p;
		len = 64;
		flags = NVQ_REG_READONLY;
		break;
	case 6:
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		file = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
		if (file == MAP_FAILED)
			break;
		p = file;
		len = PAGE;
		flags = NVQ_REG_READONLY;
		break;
	case 7:
		/* over RLIMIT_MEMLOCK */
		len = 64ul << 20;
		file = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			    MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		p = file;
		break;
	case 8:
		if (one_in(t, 8))
			fill_table();
	}
	i = reg(p, len, flags);
	if (i >= 0)
		unregister(i);
	if (file != MAP_FAILED)
		munmap(file, len);
}

static void op_unregister(struct thread *t)
{
	uint32_t index = below(t, 2) ? NVQ_MAX_BUFS - 2 - below(t, 8) :
				       random64(&t->rnd);

	/* ours only with all that goes with it */
	if (index < 64)
		index += 64;
	note(C_UNREGISTER, native_unregister(epoch.n.q.fd, index));
}

/* The big one, with commands in flight that name it. */
static void op_reregister(struct thread *t)
{
	int i;

	if (epoch.rw_index < 0)
		return;
	native_burst(t);
	pthread_mutex_lock(&epoch.lock);
	i = native_unregister(epoch.n.q.fd, epoch.rw_index);
	if (note(C_UNREGISTER, i) < 0 && !shared->dead)
		wrong(t, "our buffer does not let go: %d", i);
	i = reg(epoch.rw + MARGIN, REGISTERED, 0);
	if (i < 0 && !shared->dead)
		wrong(t, "our buffer cannot be registered again: %d", i);
	epoch.rw_index = i;
	native_nothing_known();
	pthread_mutex_unlock(&epoch.lock);
}

/* ---- processes, signals, time ---------------------------------------------------- */

static void child(unsigned int what)
{
	struct nvq_geometry g;
	int fd = epoch.n.q.fd;

	alarm(20);
	switch (what) {
	case 0:
		_exit(*(volatile char *)epoch.n.cq);
	case 1:
		/* what a pinned page holds is ours, not the child's */
		memset(epoch.rw, 0x5a, RW_LEN);
		break;
	case 2:
		ioctl(fd, NVQ_IOC_GEOMETRY, &g);
		ioctl(fd, NVQ_IOC_SUBMIT, NULL);
		break;
	default:
		native_register(fd, epoch.scratch, PAGE, 0);
	}
	_exit(0);
}

static void op_fork(struct thread *t)
{
	unsigned int what = below(t, 4);
	int status;
	pid_t pid;

	/* a child's SUBMIT would be one that nobody judges */
	if (what == 2 && !epoch.racy)
		what = 1;
	pid = fork();
	if (!pid)
		child(what);
	if (pid < 0)
		return;
	if (one_in(t, 3))
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (what == 0 && epoch.n.cq && WIFEXITED(status))
		wrong(t, "a child inherited the CQ");
}

static void op_poll(struct thread *t)
{
	struct pollfd p = {
		.fd = epoch.n.q.fd,
		.events = one_in(t, 4) ? random64(&t->rnd) : POLLIN,
	};

	note(C_POLL, failed(poll(&p, 1, one_in(t, 4) ? below(t, 5) : 0)));
	if (p.revents & POLLHUP && !shared->dead)
		wrong(t, "poll(2) says POLLHUP, and the drive is there");
}

static void op_signal(struct thread *t)
{
	unsigned int who = below(t, epoch.nr_threads);

	pthread_kill(t->all[who], SIGUSR1);
}

static void op_read(struct thread *t)
{
	char c[16];

	/* what every file has and this one does not */
	if (read(epoch.n.q.fd, c, below(t, 16)) > 0 ||
	    write(epoch.n.q.fd, c, 1 + below(t, 15)) > 0)
		wrong(t, "read(2) or write(2) did something");
	lseek(epoch.n.q.fd, random64(&t->rnd), SEEK_SET);
	fcntl(epoch.n.q.fd, F_SETFL, one_in(t, 2) ? O_NONBLOCK : 0);
}

const struct op file_ops[] = {
	{ "open", op_open, { 2, 2, 2, 2, 2 } },
	{ "dup", op_dup, { 2, 2, 2, 2, 2 } },
	{ "pass the descriptor", op_pass, { 1, 1, 1, 1, 1 } },
	{ "geometry", op_geometry, { 2, 2, 2, 2, 8 } },
	{ "select namespace", op_select, { 2, 2, 2, 2, 30 } },
	{ "unknown ioctls", op_unknown, { 3, 3, 3, 3, 3 } },
	{ "identify", op_identify, { 2, 2, 6, 6, 6 } },
	{ "mmap", op_mmap, { 6, 6, 6, 6, 6 } },
	{ "mprotect", op_protect, { 2, 2, 2, 2, 1 } },
	{ "register", op_register, { 6, 6, 2, 2, 6 } },
	{ "unregister", op_unregister, { 2, 2, 1, 1, 2 } },
	{ "register again", op_reregister, { 1, 1, 0, 0, 0 } },
	{ "fork", op_fork, { 1, 1, 1, 1, 1 } },
	{ "poll", op_poll, { 3, 3, 3, 3, 3 } },
	{ "signal", op_signal, { 2, 2, 2, 2, 2 } },
	{ "read, write, seek", op_read, { 2, 2, 2, 2, 2 } },
	{ NULL, NULL, { 0 } }
};
