// SPDX-License-Identifier: MIT
/*
 * A process registers memory whose page fault nobody serves: a file of a FUSE
 * file system of its own, which does not answer a read.  That is its own affair;
 * a reset of the controller and the neighbour queue must not wait for it.
 *
 *	stuck DEVICE NEIGHBOUR		(two queue files of one controller)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

#define FILE_INO	2

/* ---- the file system: one file of one page --------------------------------------- */

static int fuse_fd = -1;
static volatile uint64_t stuck_read;	/* its unique number, once it is there */
static volatile bool serving = true;

static void answer(uint64_t unique, int error, void *data, size_t len)
{
	struct fuse_out_header h = {
		.unique = unique,
		.error = error,
		.len = sizeof(h) + len,
	};
	struct iovec iov[] = { { &h, sizeof(h) }, { data, len } };

	/* a request that was interrupted is gone */
	if (writev(fuse_fd, iov, len ? 2 : 1) < 0 && errno != ENOENT)
		die("answering a FUSE request: %s", strerror(errno));
}

static struct fuse_attr attr_of(uint64_t ino)
{
	bool file = ino == FILE_INO;

	return (struct fuse_attr){
		.ino = ino,
		.mode = file ? S_IFREG | 0444 : S_IFDIR | 0555,
		.size = file ? PAGE : 0,
		.nlink = 1,
		.blksize = PAGE,
	};
}

static void serve(const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_init_in *asked = arg;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_write = PAGE,
		.max_background = 4,
	};
	struct fuse_entry_out entry = {
		.nodeid = FILE_INO,
		.attr_valid = 3600,
		.entry_valid = 3600,
		.attr = attr_of(FILE_INO),
	};
	struct fuse_attr_out attr = {
		.attr_valid = 3600,
		.attr = attr_of(in->nodeid),
	};
	struct fuse_open_out opened = { .fh = 1 };

	switch (in->opcode) {
	case FUSE_INIT:
		if (asked->minor < init.minor)
			init.minor = asked->minor;
		answer(in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		stuck_read = in->unique;
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(in->unique, -ENOSYS, NULL, 0);
	}
}

static void *server(void *arg)
{
	static char buf[1 << 16];
	struct pollfd p = { .fd = fuse_fd, .events = POLLIN };
	ssize_t n;

	(void)arg;
	while (serving) {
		if (poll(&p, 1, 100) <= 0)
			continue;
		n = read(fuse_fd, buf, sizeof(buf));
		if (n < (ssize_t)sizeof(struct fuse_in_header))
			continue;
		serve((void *)buf, buf + sizeof(struct fuse_in_header));
	}
	return NULL;
}

/* ---- the test ------------------------------------------------------------------- */

static const char *other_device, *dir;

/*
 * In a child, as what waits holds its own address space up.  Its exit status
 * says whether it was told that the memory is a file's.
 */
static pid_t registers(int fd)
{
	pid_t pid = fork();
	char path[300];
	void *mem;
	int file;

	if (pid)
		return pid;
	snprintf(path, sizeof(path), "%s/f", dir);
	file = open(path, O_RDONLY);
	mem = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
	if (file < 0 || mem == MAP_FAILED)
		_exit(1);
	_exit(native_register(fd, mem, PAGE, NVQ_REG_READONLY) == -EOPNOTSUPP ?
	      0 : 2);
}

/* 0, or what does not go on. */
static int reset_and_read(struct neighbour *nb)
{
	if (file_write("1", "/sys/class/nvqueue/nvq%u/reset_controller",
		       nb->q.g.instance))
		return 1;
	return neighbour_is_well(nb) ? 0 : 2;
}

/* In a child that may be left behind, should it not come back in 20 s. */
static int goes_on(struct neighbour *nb)
{
	uint64_t end = now_ms() + 20000;
	int status, ret = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(reset_and_read(nb));
	while (!ret && now_ms() < end) {
		sleep_ms(10);
		ret = waitpid(pid, &status, WNOHANG);
	}
	return ret == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -ETIME;
}

static void try(const char *device)
{
	struct neighbour nb = neighbour_open(other_device);
	struct queue q = queue_open(device, O_RDWR);
	static char page[PAGE];
	uint64_t end = now_ms() + 10000;
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = registers(q.fd);
	while (!stuck_read && now_ms() < end)
		sleep_ms(5);
	ok(stuck_read && !waitpid(pid, &status, WNOHANG),
	   "a registration waits for its memory");
	is(goes_on(&nb), 0,
	   "meanwhile the controller is reset, and the neighbour goes on");
	is(waitpid(pid, &status, WNOHANG), 0, "it still waits");
	answer(stuck_read, 0, page, sizeof(page));
	waitpid(pid, &status, 0);
	is(status, 0, "it gets its memory, and EOPNOTSUPP, as it is a file's");
	queue_close(&q);
	queue_close(&nb.q);
}

int main(int argc, char **argv)
{
	char name[] = "/tmp/stuck.XXXXXX", options[80];
	pthread_t t;

	if (argc != 3)
		die("usage: stuck DEVICE NEIGHBOUR");
	other_device = argv[2];
	dir = mkdtemp(name);
	fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse_fd);
	if (fuse_fd < 0 || !dir ||
	    mount("stuck", dir, "fuse", MS_NOSUID | MS_NODEV, options))
		die("no FUSE: %s", strerror(errno));
	pthread_create(&t, NULL, server, NULL);
	try(argv[1]);
	umount2(dir, MNT_DETACH);
	serving = false;
	pthread_join(t, NULL);
	close(fuse_fd);
	rmdir(dir);
	return tap_done();
}
