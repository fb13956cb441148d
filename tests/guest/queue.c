// SPDX-License-Identifier: MIT
/* Queue files, rings and data for the guest test programs: see queue.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "queue.h"

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("Bail out! ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	exit(99);
}

/* ---- queue files ---------------------------------------------------------- */

struct queue queue_open_as_is(const char *path, int flags)
{
	struct queue q = { .fd = open(path, flags | O_CLOEXEC) };

	if (q.fd < 0)
		die("open %s: %s", path, strerror(errno));
	return q;
}

struct queue queue_open(const char *path, int flags)
{
	struct queue q = queue_open_as_is(path, flags);

	if (ioctl(q.fd, NVQ_IOC_GEOMETRY, &q.g))
		die("geometry of %s: %s", path, strerror(errno));
	return q;
}

void queue_close(struct queue *q)
{
	close(q->fd);
	q->fd = -1;
}

bool is_poll(const struct queue *q)
{
	return q->g.kind == NVQ_KIND_POLL;
}

/* ---- data ----------------------------------------------------------------- */

static size_t whole_pages(size_t len)
{
	return (len + PAGE - 1) & ~(PAGE - 1);
}

void *buffer_new(size_t len)
{
	size_t n = whole_pages(len);
	char *p = mmap(NULL, n + 2 * PAGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, n, PROT_READ | PROT_WRITE))
		die("no memory for %zu bytes", len);
	return p + PAGE;
}

void buffer_free(void *buf, size_t len)
{
	munmap((char *)buf - PAGE, whole_pages(len) + 2 * PAGE);
}

uint64_t random64(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;	/* splitmix64 */

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

unsigned int random_below(uint64_t *state, unsigned int n)
{
	return random64(state) % n;
}

static uint64_t word_at(uint64_t seed, size_t i)
{
	uint64_t state = seed * 0x10001 + i;

	return random64(&state);
}

void fill(void *buf, size_t len, uint64_t seed)
{
	uint8_t *p = buf;
	uint64_t w;
	size_t i, n;

	for (i = 0; i < len; i += 8) {
		w = word_at(seed, i);
		n = len - i < 8 ? len - i : 8;
		memcpy(p + i, &w, n);
	}
}

long differs(const void *buf, size_t len, uint64_t seed)
{
	const uint8_t *p = buf;
	uint64_t w;
	size_t i, n, k;

	for (i = 0; i < len; i += 8) {
		w = word_at(seed, i);
		n = len - i < 8 ? len - i : 8;
		if (!memcmp(p + i, &w, n))
			continue;
		for (k = 0; p[i + k] == ((uint8_t *)&w)[k]; k++)
			;
		return i + k;
	}
	return -1;
}

bool all_bytes(const void *buf, size_t len, uint8_t value)
{
	const uint8_t *p = buf;

	return !len || (*p == value && !memcmp(p, p + 1, len - 1));
}

/* ---- commands ------------------------------------------------------------- */

struct nvme_uring_cmd rw_cmd(const struct queue *q, uint8_t op, uint64_t slba,
			     unsigned int nlb, void *buf)
{
	return (struct nvme_uring_cmd){
		.opcode = op,
		.nsid = q->g.nsid,
		.addr = (uintptr_t)buf,
		.data_len = nlb * q->g.lba_size,
		.cdw10 = slba,
		.cdw11 = slba >> 32,
		.cdw12 = nlb - 1,
	};
}

struct nvme_passthru_cmd64 sync_form(const struct nvme_uring_cmd *c)
{
	return (struct nvme_passthru_cmd64){
		.opcode = c->opcode,
		.flags = c->flags,
		.nsid = c->nsid,
		.cdw2 = c->cdw2,
		.cdw3 = c->cdw3,
		.metadata = c->metadata,
		.addr = c->addr,
		.metadata_len = c->metadata_len,
		.data_len = c->data_len,
		.cdw10 = c->cdw10,
		.cdw11 = c->cdw11,
		.cdw12 = c->cdw12,
		.cdw13 = c->cdw13,
		.cdw14 = c->cdw14,
		.cdw15 = c->cdw15,
		.timeout_ms = c->timeout_ms,
	};
}

int sync_cmd(int fd, const struct nvme_uring_cmd *c, uint64_t *result)
{
	struct nvme_passthru_cmd64 p = sync_form(c);
	int ret = ioctl(fd, NVME_IOCTL_IO64_CMD, &p);

	if (result)
		*result = p.result;
	return ret < 0 ? -errno : ret;
}

int sync_rw(const struct queue *q, uint8_t op, uint64_t slba, unsigned int nlb,
	    void *buf)
{
	struct nvme_uring_cmd c = rw_cmd(q, op, slba, nlb, buf);

	return sync_cmd(q->fd, &c, NULL);
}

int admin_cmd(int fd, struct nvme_passthru_cmd *c)
{
	int ret = ioctl(fd, NVME_IOCTL_ADMIN_CMD, c);

	return ret < 0 ? -errno : ret;
}

/* ---- rings ---------------------------------------------------------------- */

int ring_open_raw(struct io_uring *r, unsigned int entries, unsigned int flags)
{
	struct io_uring_params p = { .flags = flags, .sq_thread_idle = 50 };

	return io_uring_queue_init_params(entries, r, &p);
}

void ring_open(struct io_uring *r, unsigned int entries, unsigned int flags)
{
	int err = ring_open_raw(r, entries, flags | IORING_SETUP_SQE128 |
				IORING_SETUP_CQE32);

	if (err)
		die("io_uring with flags 0x%x: %s", flags, strerror(-err));
}

void ring_open_for(struct io_uring *r, unsigned int entries,
		   const struct queue *q)
{
	ring_open(r, entries, is_poll(q) ? IORING_SETUP_IOPOLL : 0);
}

struct io_uring_sqe *ring_put(struct io_uring *r, int fd, uint32_t cmd_op,
			      const struct nvme_uring_cmd *c, uint64_t tag)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(r);
	bool big = r->flags & IORING_SETUP_SQE128;

	if (!sqe)
		die("the ring has no free entry");
	memset(sqe, 0, big ? 128 : 64);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = cmd_op;
	sqe->user_data = tag;
	/* past the end of the structure as declared, as the kernel has it */
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), c,
	       big ? sizeof(*c) : 16);
	return sqe;
}

int ring_get(struct io_uring *r, struct end *e, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	struct io_uring_cqe *cqe;
	bool big = r->flags & IORING_SETUP_CQE32;

	while (io_uring_peek_cqe(r, &cqe)) {
		if (now_ms() > end)
			return -ETIME;
		if (!(r->flags & IORING_SETUP_IOPOLL) ||
		    r->flags & IORING_SETUP_SQPOLL)
			usleep(50);
	}
	e->tag = cqe->user_data;
	e->res = cqe->res;
	e->result = big ? cqe->big_cqe[0] : 0;
	io_uring_cqe_seen(r, cqe);
	return 0;
}

struct end ring_run(struct io_uring *r, int fd, uint32_t cmd_op,
		    const struct nvme_uring_cmd *c)
{
	struct end e = { .res = -ETIME };
	int n;

	ring_put(r, fd, cmd_op, c, 1);
	n = io_uring_submit(r);
	if (n < 0)
		die("io_uring_submit: %s", strerror(-n));
	ring_get(r, &e, 20000);
	return e;
}

/* ---- processes, files, time ----------------------------------------------- */

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

void sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

void file_word(char *out, size_t len, const char *fmt, ...)
{
	char path[256];
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	out[0] = '\0';
	f = fopen(path, "r");
	if (!f)
		return;
	if (!fgets(out, len, f))
		out[0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	fclose(f);
}

long long file_number(const char *fmt, ...)
{
	char path[256], word[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	file_word(word, sizeof(word), "%s", path);
	if (!word[0])
		die("%s cannot be read", path);
	return strtoll(word, NULL, 0);
}

int file_write(const char *text, const char *fmt, ...)
{
	char path[256];
	va_list ap;
	int fd, err = 0;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

void drop_rights(void)
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	    setresuid(65534, 65534, 65534) || setuid(0) != -1)
		die("cannot become nobody: %s", strerror(errno));
	prctl(PR_SET_DUMPABLE, 1);
}

int in_child(int (*fn)(void *), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid)
		_exit(fn(arg));
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
