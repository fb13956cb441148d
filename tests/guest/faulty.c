// SPDX-License-Identifier: MIT
/* Fault points for the guest test programs: see faulty.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faulty.h"

#define NLB	8
#define FAULT	"/sys/class/nvqueue/nvq0/fault"

/* ---- arming ---------------------------------------------------------------- */

void fault_arm(const char *fmt, ...)
{
	char line[64];
	va_list ap;
	int err;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	err = file_write(line, FAULT);
	if (err)
		die("cannot arm '%s': %s (--enable-fault-points?)", line,
		    strerror(-err));
}

unsigned int fault_hits(const char *name)
{
	unsigned int hits = 0, n;
	char word[32];
	FILE *f = fopen(FAULT, "r");

	if (!f)
		die("cannot read %s", FAULT);
	while (fscanf(f, "%31s %*d %*u %*u %u", word, &n) == 2)
		if (!strcmp(word, name))
			hits = n;
	fclose(f);
	return hits;
}

/* ---- the kernel's log ------------------------------------------------------ */

static int log_fd = -1;
static char log_buf[65536];
static size_t log_len;

void log_begin(void)
{
	if (log_fd < 0)
		log_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (log_fd < 0 || lseek(log_fd, 0, SEEK_END) < 0)
		die("/dev/kmsg: %s", strerror(errno));
	log_len = 0;
	log_buf[0] = '\0';
}

const char *log_text(void)
{
	char line[2048], *text;
	ssize_t n;

	while ((n = read(log_fd, line, sizeof(line) - 1)) > 0) {
		line[n] = '\0';
		text = strchr(line, ';');
		if (!text || !strstr(text, "nvq"))
			continue;
		/* what follows the first line are key=value pairs */
		text[strcspn(text, "\n")] = '\0';
		if (log_len + strlen(text) + 2 < sizeof(log_buf))
			log_len += sprintf(log_buf + log_len, "%s\n", text + 1);
	}
	return log_buf;
}

bool log_order(const char *first, ...)
{
	const char *at = log_text(), *part;
	va_list ap;

	va_start(ap, first);
	for (part = first; part && at; part = va_arg(ap, const char *)) {
		at = strstr(at, part);
		if (!at)
			printf("# not in the log, in this place: %s\n", part);
		else
			at += strlen(part);
	}
	va_end(ap);
	if (!at)
		printf("# the log:\n# %s\n", log_buf);
	return at;
}

bool log_lacks(const char *part)
{
	bool there = strstr(log_text(), part);

	if (there)
		printf("# in the log: %s\n", part);
	return !there;
}

/* ---- a batch --------------------------------------------------------------- */

static uint64_t lba_of(const struct batch *b, unsigned int i)
{
	return b->base + i * NLB;
}

static size_t block_len(const struct batch *b)
{
	return NLB * b->n.q.g.lba_size;
}

static char *block(const struct batch *b, unsigned int i)
{
	return b->buf + i * block_len(b);
}

/* What block @i holds: even ones what batch_open() wrote, odd ones the last. */
static uint64_t seed_of(const struct batch *b, unsigned int i)
{
	return (i & 1 ? b->seed : 1) * 1000003 + lba_of(b, i);
}

/* By a descriptor of the batch's own kind: the way in is fixed by the first. */
static bool prepare(struct batch *b)
{
	unsigned int i;
	bool good = true;

	for (i = 0; i < BATCH_NR; i += 2) {
		fill(block(b, i), block_len(b), seed_of(b, i));
		if (b->way == WAY_NATIVE) {
			struct nvq_sqe s = native_rw(&b->n, OP_WRITE, i,
						     lba_of(b, i), NLB,
						     b->buf_index,
						     i * block_len(b));

			good &= !native_run(&b->n, &s);
		} else {
			good &= !sync_rw(&b->n.q, OP_WRITE, lba_of(b, i), NLB,
					 block(b, i));
		}
	}
	return good;
}

void batch_open(struct batch *b, const char *node, enum way way, uint64_t base)
{
	*b = (struct batch){ .node = node, .way = way, .base = base };
	if (way == WAY_NATIVE) {
		b->n = native_open(node);
		b->k = b->n.k;
	} else {
		b->n.q = queue_open(node, O_RDWR);
		b->k = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, b->n.q.fd,
			    NVQ_MMAP_KPAGE);
		ring_open_for(&b->r, BATCH_NR, &b->n.q);
	}
	b->buf = buffer_new(BATCH_NR * block_len(b));
	if (way == WAY_NATIVE)
		b->buf_index = native_register(b->n.q.fd, b->buf, BATCH_NR *
					       block_len(b), 0);
	if (b->k == MAP_FAILED || b->buf_index < 0 || !prepare(b))
		die("%s: no batch", node);
}

void batch_close(struct batch *b)
{
	size_t len = BATCH_NR * block_len(b);

	if (b->way == WAY_NATIVE) {
		native_close(&b->n);
	} else {
		io_uring_queue_exit(&b->r);
		munmap((void *)b->k, PAGE);
		queue_close(&b->n.q);
	}
	buffer_free(b->buf, len);
}

static void put(struct batch *b, unsigned int i)
{
	uint8_t op = i & 1 ? OP_WRITE : OP_READ;

	if (b->way == WAY_NATIVE) {
		struct nvq_sqe s = native_rw(&b->n, op, i, lba_of(b, i), NLB,
					     b->buf_index, i * block_len(b));

		native_stage(&b->n, &s);
	} else {
		struct nvme_uring_cmd c = rw_cmd(&b->n.q, op, lba_of(b, i), NLB,
						 block(b, i));

		ring_put(&b->r, b->n.q.fd, NVME_URING_CMD_IO, &c, i);
	}
}

void batch_submit(struct batch *b)
{
	unsigned int i;
	int n;

	memset(b->ends, 0, sizeof(b->ends));
	b->strays = 0;
	b->seed++;
	for (i = 0; i < BATCH_NR; i++) {
		if (i & 1)
			fill(block(b, i), block_len(b), seed_of(b, i));
		else
			memset(block(b, i), 0x55, block_len(b));
		put(b, i);
	}
	n = b->way == WAY_NATIVE ? native_submit(&b->n) :
				   io_uring_submit(&b->r);
	if (n != BATCH_NR)
		die("%s: %d of %d commands taken", b->node, n, BATCH_NR);
}

/* One end: its command, or -ETIME; strays are counted apart. */
static int get(struct batch *b, int *res, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	struct end e;
	uint16_t cid;

	if (b->way == WAY_STANDARD) {
		if (ring_get(&b->r, &e, ms))
			return -ETIME;
		*res = e.res;
		return e.tag;
	}
	for (;;) {
		uint64_t now = now_ms();

		*res = native_reap(&b->n, &cid, now < end ? end - now : 0);
		if (*res == -ETIME)
			return -ETIME;
		if (cid != STRAY_CID)
			return cid;
		b->strays++;
	}
}

bool batch_collect(struct batch *b, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	unsigned int n;
	bool good = true;
	int i, res;

	for (n = 0; n < BATCH_NR; n++) {
		uint64_t now = now_ms();

		i = get(b, &res, now < end ? end - now : 0);
		if (i == -ETIME) {
			printf("# %u ends in %u ms\n", n, ms);
			return false;
		}
		if (i < 0 || i >= BATCH_NR || b->ends[i]++) {
			printf("# an end of command %d, which has none to come\n",
			       i);
			good = false;
			continue;
		}
		b->res[i] = res;
	}
	return good;
}

bool batch_quiet(struct batch *b, unsigned int ms)
{
	int res;

	return get(b, &res, ms) == -ETIME;
}

unsigned int batch_count(const struct batch *b, int status)
{
	unsigned int i, n = 0;

	for (i = 0; i < BATCH_NR; i++) {
		bool other = b->res[i] && b->res[i] != HOST_ABORTED;

		n += status < 0 ? other : b->res[i] == status;
		if (status < 0 && other)
			printf("# command %u: 0x%x\n", i, b->res[i]);
	}
	return n;
}

static int read_block(struct batch *b, unsigned int i)
{
	if (b->way == WAY_NATIVE) {
		struct nvq_sqe s = native_rw(&b->n, OP_READ, i, lba_of(b, i),
					     NLB, b->buf_index,
					     i * block_len(b));

		return native_run(&b->n, &s);
	}
	return sync_rw(&b->n.q, OP_READ, lba_of(b, i), NLB, block(b, i));
}

bool batch_data(struct batch *b)
{
	unsigned int i;
	long at;

	for (i = 0; i < BATCH_NR; i++) {
		if (b->res[i])
			continue;
		if (i & 1) {
			memset(block(b, i), 0x55, block_len(b));
			if (read_block(b, i))
				return false;
		}
		at = differs(block(b, i), block_len(b), seed_of(b, i));
		if (at < 0)
			continue;
		printf("# block %u differs at %ld\n", i, at);
		return false;
	}
	return true;
}

static bool becomes(const struct batch *b, unsigned int state)
{
	uint64_t end = now_ms() + 30000;

	while (b->k->state != state && now_ms() < end)
		sleep_ms(5);
	return b->k->state == state;
}

bool batch_resync(struct batch *b)
{
	if (b->way == WAY_NATIVE) {
		if (!becomes(b, NVQ_STATE_RESYNC) ||
		    ioctl(b->n.q.fd, NVQ_IOC_RESYNC))
			return false;
		b->n.tail = b->n.head = 0;
		b->n.index = 0;
		b->n.phase = 1;
	}
	return becomes(b, NVQ_STATE_LIVE);
}

bool batch_works(struct batch *b)
{
	batch_submit(b);
	return batch_collect(b, 30000) && batch_count(b, 0) == BATCH_NR &&
	       /* natively the kernel counts an end when it is next entered */
	       batch_data(b) && (b->way == WAY_NATIVE ||
				 b->k->submitted == b->k->completed);
}

unsigned int batch_generation(const struct batch *b)
{
	return b->k->generation;
}

/* ---- a neighbour ----------------------------------------------------------- */

static bool ended_well(struct busy_neighbour *n, int res)
{
	if (!res)
		n->done++;
	else if (res == HOST_ABORTED)
		n->aborted++;
	else
		n->wrong = "a command ended otherwise";
	return !res;
}

static void *verified_io(void *arg)
{
	struct busy_neighbour *n = arg;
	size_t len = NLB * n->q.g.lba_size;
	char *buf = buffer_new(len);
	uint64_t seed = n->base;

	while (!n->stop && !n->wrong) {
		struct nvme_uring_cmd c = rw_cmd(&n->q, OP_WRITE, n->base, NLB,
						 buf);

		/* its time-out is never to be the reason */
		c.timeout_ms = 120000;
		fill(buf, len, ++seed);
		if (!ended_well(n, sync_cmd(n->q.fd, &c, NULL)))
			continue;
		c.opcode = OP_READ;
		memset(buf, 0x55, len);
		if (ended_well(n, sync_cmd(n->q.fd, &c, NULL)) &&
		    differs(buf, len, seed) >= 0)
			n->wrong = "wrong data";
		sleep_ms(2);
	}
	buffer_free(buf, len);
	return NULL;
}

void neighbour_start(struct busy_neighbour *n, const char *node, uint64_t base)
{
	*n = (struct busy_neighbour){ .node = node, .base = base };
	n->q = queue_open(node, O_RDWR);
	pthread_create(&n->thread, NULL, verified_io, n);
}

bool neighbour_goes_on(struct busy_neighbour *n)
{
	unsigned long before = n->done;
	uint64_t end = now_ms() + 30000;

	while (n->done < before + 4 && !n->wrong && now_ms() < end)
		sleep_ms(5);
	return n->done >= before + 4;
}

bool neighbour_end(struct busy_neighbour *n)
{
	bool good = neighbour_goes_on(n);

	n->stop = true;
	pthread_join(n->thread, NULL);
	ioctl(n->q.fd, NVQ_IOC_GEOMETRY, &n->q.g);
	queue_close(&n->q);
	if (!good || n->wrong)
		printf("# neighbour %s: %lu done, %lu aborted, %s\n", n->node,
		       n->done, n->aborted, n->wrong ? n->wrong : "stuck");
	return good && !n->wrong;
}

/* ---- the controller -------------------------------------------------------- */

unsigned int ctrl_generation(void)
{
	return file_number("/sys/class/nvqueue/nvq0/generation");
}

bool ctrl_becomes(const char *state, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	char word[32];

	do {
		file_word(word, sizeof(word), "/sys/class/nvqueue/nvq0/state");
		if (!strcmp(word, state))
			return true;
		sleep_ms(5);
	} while (now_ms() < end);
	printf("# the controller is %s, not %s\n", word, state);
	return false;
}
