// SPDX-License-Identifier: MIT
/*
 * What was acknowledged is there: a workload that keeps a queue full and notes,
 * outside of itself, what it sent and what the drive acknowledged, whatever
 * happens to it, to the queue, to the drive or to the machine meanwhile; and the
 * check afterwards.  Each LBA must hold the last write that was acknowledged, or
 * one that was sent after it.
 *
 * usage: acked write RECORD NODE standard|native BASE
 *	  acked check RECORD NODE
 *	  acked image RECORD FILE	(on the host, without a driver)
 *	  acked show RECORD		"ACKED ABORTED RESYNCS READS"
 *
 * In the environment: ACKED_NSID, the namespace (default the lowest);
 * ACKED_TIMEOUT_MS, the time-out of standard commands (default the driver's).
 *
 * BASE counts blocks of 4 KiB; BLOCKS of them are used, one command each.
 * write ends with SIGTERM, having collected all (status 0), or when the queue
 * says ENODEV (3); 1: a command was lost, ended twice or otherwise than it may,
 * or data were wrong.  A RECORD is gone on with if there is one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "native.h"
#include "tap.h"

#define BLOCKS		64
#define BLOCK		4096
#define UNIT		512	/* the smallest LBA: each is checked by itself */
#define MAGIC		0x6e76712d61636b31ULL
#define HOST_ABORTED	0x371
#define ABORT_REQUESTED	0x007
/* Every command ends in that time, escalation and all. */
#define LIMIT_MS	(150000 * tap_env("NVQ_SLOW", 1))
#define STATUS_DEAD	3

/* The file: written as a whole, so that it is never half of anything. */
struct record {
	uint64_t magic, base, seq;
	uint64_t acked, aborted, resyncs, reads;
	struct {
		uint64_t sent, acked;
	} block[BLOCKS];
};

struct writer {
	struct native n;	/* .q alone if standard */
	struct io_uring r;
	bool native, dead;
	struct record rec;
	int rec_fd;
	char *buf;
	int buf_index;
	unsigned int nr;	/* commands in flight at most, blocks used */
	unsigned int flying;
	struct {
		bool busy, write;
		uint64_t seq;
	} op[BLOCKS];
	uint64_t rnd;
	char wrong[120];
};

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void wrong(struct writer *w, const char *what, unsigned int i, int res)
{
	if (!w->wrong[0])
		snprintf(w->wrong, sizeof(w->wrong),
			 "%s (block %u, result %d)", what, i, res);
}

/* ---- the record, the data ------------------------------------------------- */

static bool record_load(struct record *rec, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 &&
		    pread(fd, rec, sizeof(*rec), 0) == sizeof(*rec) &&
		    rec->magic == MAGIC;

	if (fd >= 0)
		close(fd);
	return good;
}

static void record_save(struct writer *w)
{
	if (pwrite(w->rec_fd, &w->rec, sizeof(w->rec), 0) != sizeof(w->rec))
		die("the record: %s", strerror(errno));
}

static uint64_t unit_address(const struct record *rec, unsigned int i,
			     unsigned int j)
{
	return (rec->base + i) * (BLOCK / UNIT) + j;
}

static void unit_fill(char *p, uint64_t address, uint64_t seq)
{
	uint64_t head[2] = { seq, address };

	fill(p, UNIT, seq * 1000003 + address);
	memcpy(p, head, sizeof(head));
}

/* NULL, or what is wrong with block @i as it was read. */
static const char *block_wrong(const struct record *rec, unsigned int i,
			       const char *p, uint64_t *found)
{
	uint64_t acked = rec->block[i].acked, sent = rec->block[i].sent;
	char want[UNIT];
	unsigned int j;

	for (j = 0; j < BLOCK / UNIT; j++, p += UNIT) {
		memcpy(found, p, sizeof(*found));
		if (!acked && all_bytes(p, UNIT, 0))
			continue;
		if (*found < acked)
			return "an acknowledged write is lost";
		if (*found > sent)
			return "it was never sent";
		unit_fill(want, unit_address(rec, i, j), *found);
		if (memcmp(want, p, UNIT))
			return "it is torn";
	}
	return NULL;
}

/* ---- commands ------------------------------------------------------------- */

static void prepare(struct writer *w, unsigned int i)
{
	char *p = w->buf + (size_t)i * BLOCK;
	unsigned int j;

	w->op[i].write = random_below(&w->rnd, 4) || !w->rec.block[i].sent;
	if (!w->op[i].write) {
		memset(p, 0x55, BLOCK);
		return;
	}
	w->op[i].seq = ++w->rec.seq;
	w->rec.block[i].sent = w->rec.seq;
	for (j = 0; j < BLOCK / UNIT; j++)
		unit_fill(p + (size_t)j * UNIT, unit_address(&w->rec, i, j),
			  w->rec.seq);
}

static void ended(struct writer *w, unsigned int i, int res)
{
	const char *bad;
	uint64_t found;

	if (i >= w->nr || !w->op[i].busy) {
		wrong(w, "an end of a command that has none to come", i, res);
		return;
	}
	w->op[i].busy = false;
	w->flying--;
	if (res == -ENODEV) {
		w->dead = true;
	} else if ((res & 0x7ff) == HOST_ABORTED ||
		   (res & 0x7ff) == ABORT_REQUESTED) {
		w->rec.aborted++;
	} else if (res) {
		wrong(w, "a command ended otherwise", i, res);
	} else if (w->op[i].write) {
		w->rec.block[i].acked = w->op[i].seq;
		w->rec.acked++;
	} else {
		bad = block_wrong(&w->rec, i, w->buf + (size_t)i * BLOCK,
				  &found);
		if (bad)
			wrong(w, bad, i, 0);
		w->rec.reads++;
	}
}

static void launch(struct writer *w, unsigned int i)
{
	unsigned int nlb = BLOCK / w->n.q.g.lba_size;
	uint8_t op = w->op[i].write ? OP_WRITE : OP_READ;
	uint64_t slba = (w->rec.base + i) * nlb;

	if (w->native) {
		struct nvq_sqe s = native_rw(&w->n, op, i, slba, nlb,
					     w->buf_index, (uint64_t)i * BLOCK);

		native_stage(&w->n, &s);
	} else {
		struct nvme_uring_cmd c = rw_cmd(&w->n.q, op, slba, nlb,
						 w->buf + (size_t)i * BLOCK);

		c.timeout_ms = tap_env("ACKED_TIMEOUT_MS", 0);
		ring_put(&w->r, w->n.q.fd, NVME_URING_CMD_IO, &c, i);
	}
	w->op[i].busy = true;
	w->flying++;
}

/* After all has been read: the queue is made anew. */
static void resync(struct writer *w)
{
	uint64_t end = now_ms() + LIMIT_MS;
	int err;

	do {
		err = ioctl(w->n.q.fd, NVQ_IOC_RESYNC) ? -errno : 0;
		if (err)
			sleep_ms(20);
	} while (err && err != -ENODEV && err != -EBUSY && now_ms() < end);
	if (err == -ENODEV) {
		/* the rings are as they were */
		w->dead = true;
		return;
	}
	if (err)
		wrong(w, "no resync", 0, err);
	native_restart(&w->n);
	w->rec.resyncs++;
}

/* One end; false if there is none within @ms. */
static bool collect(struct writer *w, unsigned int ms)
{
	struct end e;
	uint16_t cid;
	int res;

	if (!w->native) {
		if (ring_get(&w->r, &e, ms))
			return false;
		ended(w, e.tag, e.res);
		return true;
	}
	res = native_reap(&w->n, &cid, ms);
	if (res == -ETIME)
		return false;
	ended(w, cid, res);
	return true;
}

static void collect_all(struct writer *w)
{
	while (w->flying && !w->wrong[0])
		if (!collect(w, LIMIT_MS))
			wrong(w, "a command never ended", w->flying, 0);
	if (!w->wrong[0])
		collect(w, 20);
}

/* What was not taken is not in flight; @order: how it was staged. */
static void submit_native(struct writer *w, const unsigned int *order,
			  unsigned int staged)
{
	int n = native_submit(&w->n);
	unsigned int i, taken = n > 0 ? n : 0;

	for (i = taken; i < staged; i++) {
		w->op[order[i]].busy = false;
		w->flying--;
	}
	if (taken == staged)
		return;
	native_drop(&w->n);
	if (n == -ENODEV) {
		w->dead = true;
	} else if (n == -ESTALE) {
		collect_all(w);
		resync(w);
	} else if (n < 0 && n != -EINTR && n != -ENOSPC) {
		wrong(w, "SUBMIT", staged, n);
	}
}

static void submit_all(struct writer *w)
{
	unsigned int order[BLOCKS], i, nr = 0;

	for (i = 0; i < w->nr; i++)
		if (!w->op[i].busy) {
			prepare(w, i);
			order[nr++] = i;
		}
	/* before any of it is on its way */
	record_save(w);
	for (i = 0; i < nr; i++)
		launch(w, order[i]);
	if (!nr)
		return;
	if (w->native)
		submit_native(w, order, nr);
	else if (io_uring_submit(&w->r) != (int)nr)
		wrong(w, "io_uring_submit", nr, 0);
}

/* Natively, on an irq queue, the kernel wakes us. */
static void wait_one(struct writer *w)
{
	struct nvq_submit s = { .wait = 1, .timeout_ms = 1000 };

	if (w->native && !is_poll(&w->n.q) && w->flying)
		ioctl(w->n.q.fd, NVQ_IOC_SUBMIT, &s);
}

static void run(struct writer *w)
{
	while (!stop && !w->dead && !w->wrong[0]) {
		submit_all(w);
		if (!w->flying)
			continue;
		wait_one(w);
		if (!collect(w, LIMIT_MS))
			wrong(w, "a command never ended", w->flying, 0);
		while (w->flying && !w->wrong[0] && collect(w, 0))
			;
	}
	collect_all(w);
	record_save(w);
}

/* ---- the four things to do ------------------------------------------------ */

/* With the namespace that ACKED_NSID names. */
static struct queue open_ns(const char *node, int flags)
{
	struct queue q = queue_open_as_is(node, flags);
	uint32_t nsid = tap_env("ACKED_NSID", 0);

	if (nsid && ioctl(q.fd, NVQ_IOC_SELECT_NS, &nsid))
		die("namespace %u: %s", nsid, strerror(errno));
	if (ioctl(q.fd, NVQ_IOC_GEOMETRY, &q.g))
		die("geometry of %s: %s", node, strerror(errno));
	return q;
}

static void writer_open(struct writer *w, const char *node)
{
	w->n.q = open_ns(node, O_RDWR);
	w->nr = w->n.q.g.depth - 1 < BLOCKS ? w->n.q.g.depth - 1 : BLOCKS;
	w->buf = buffer_new(BLOCKS * BLOCK);
	if (!w->native) {
		ring_open_for(&w->r, BLOCKS, &w->n.q);
		return;
	}
	w->n = native_attach(w->n.q);
	w->buf_index = native_register(w->n.q.fd, w->buf, BLOCKS * BLOCK, 0);
	if (w->buf_index < 0)
		die("register: %s", strerror(-w->buf_index));
}

static int write_on(const char *record, const char *node, bool native,
		    uint64_t base)
{
	static struct writer w;

	w.native = native;
	if (!record_load(&w.rec, record))
		w.rec = (struct record){ .magic = MAGIC, .base = base };
	w.rnd = w.rec.seq + base;
	w.rec_fd = open(record, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	signal(SIGTERM, on_term);
	writer_open(&w, node);
	run(&w);
	printf("%s, %s: %llu writes acknowledged, %llu commands aborted, %llu resyncs, %llu reads%s%s\n",
	       node, native ? "native" : "standard",
	       (unsigned long long)w.rec.acked,
	       (unsigned long long)w.rec.aborted,
	       (unsigned long long)w.rec.resyncs,
	       (unsigned long long)w.rec.reads, w.wrong[0] ? ": " : "",
	       w.wrong);
	fflush(stdout);
	if (w.wrong[0])
		return 1;
	return w.dead ? STATUS_DEAD : 0;
}

/* Reads block @i of a node or of an image. */
static int block_read(const struct queue *q, int image,
		      const struct record *rec, unsigned int i, char *buf)
{
	unsigned int nlb;

	if (image >= 0)
		return pread(image, buf, BLOCK, (off_t)(rec->base + i) *
			     BLOCK) == BLOCK ? 0 : -EIO;
	nlb = BLOCK / q->g.lba_size;
	return sync_rw(q, OP_READ, (rec->base + i) * nlb, nlb, buf);
}

static int check(const char *record, const char *path)
{
	struct record rec = { 0 };
	struct queue q = { .fd = -1 };
	char *buf = buffer_new(BLOCK);
	unsigned int i, sent = 0, bad = 0;
	int image = -1, err;
	uint64_t found = 0;
	const char *what;
	struct stat st;

	if (!record_load(&rec, record) || !rec.acked || stat(path, &st))
		die("%s: no record of an acknowledged write, or no %s", record,
		    path);
	if (S_ISCHR(st.st_mode))
		q = open_ns(path, O_RDONLY);
	else
		image = open(path, O_RDONLY | O_CLOEXEC);
	for (i = 0; i < BLOCKS; i++) {
		if (!rec.block[i].sent)
			continue;
		sent++;
		err = block_read(&q, image, &rec, i, buf);
		what = err ? "it cannot be read" :
			     block_wrong(&rec, i, buf, &found);
		if (!what)
			continue;
		bad++;
		printf("block %u: %s (%d): holds write %llu, acknowledged %llu, sent %llu\n",
		       i, what, err, (unsigned long long)found,
		       (unsigned long long)rec.block[i].acked,
		       (unsigned long long)rec.block[i].sent);
	}
	printf("%s: %u blocks, %u wrong\n", path, sent, bad);
	return bad || !sent;
}

static int show(const char *record)
{
	struct record rec = { 0 };

	record_load(&rec, record);
	printf("%llu %llu %llu %llu\n", (unsigned long long)rec.acked,
	       (unsigned long long)rec.aborted,
	       (unsigned long long)rec.resyncs,
	       (unsigned long long)rec.reads);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (argc == 6 && !strcmp(what, "write"))
		return write_on(argv[2], argv[3], !strcmp(argv[4], "native"),
				strtoull(argv[5], NULL, 0));
	if (argc == 4 && (!strcmp(what, "check") || !strcmp(what, "image")))
		return check(argv[2], argv[3]);
	if (argc == 3 && !strcmp(what, "show"))
		return show(argv[2]);
	die("usage: acked write|check|image|show RECORD ...");
}
