// SPDX-License-Identifier: MIT
/*
 * Data of every shape, on every way in: sizes up to MDTS, buffers that begin at
 * any byte, vectors with odd splits and gaps, registered buffers, against a
 * model of what the drive must hold.  Around each buffer lie bytes that must
 * not change.
 *
 * usage: transfers [SEED]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "queue.h"
#include "tap.h"

#define SLACK	(2 * PAGE)
#define MAX_VEC	40
#define AREA	(4U << 20)	/* of the drive */
#define GUARD	0xa7

enum way { RING, RING_VEC, RING_FIXED, SYNC, SYNC_VEC, NR_WAYS };

static const char *const way_name[] = {
	"ring", "ring, vector", "ring, registered buffer", "ioctl",
	"ioctl, vector"
};

static struct queue q;
static struct io_uring ring;
static uint64_t rnd;
static char *model, *arena;	/* the drive's bytes; where buffers lie */
static size_t arena_len, arena_used;
static char *flat;

/* One transfer: where its bytes lie in the arena. */
struct shape {
	enum way way;
	uint64_t slba;
	unsigned int nlb;
	size_t len;
	struct iovec iov[MAX_VEC];
	unsigned int nr;
};

static void one_piece(struct shape *s, size_t misalign)
{
	s->iov[0].iov_base = arena + SLACK + misalign;
	s->iov[0].iov_len = s->len;
	s->nr = 1;
}

/* Pieces of odd lengths in rising order, gaps between some, an empty one. */
static void many_pieces(struct shape *s)
{
	size_t left = s->len, at = SLACK + random_below(&rnd, PAGE);

	s->nr = 0;
	while (left) {
		size_t n = 1 + random_below(&rnd, left);

		if (random_below(&rnd, 2))
			n = n < 4 ? n : n & ~3UL;
		if (s->nr == MAX_VEC - 2)
			n = left;
		s->iov[s->nr].iov_base = arena + at;
		s->iov[s->nr++].iov_len = n;
		at += n + (random_below(&rnd, 2) ? random_below(&rnd, PAGE) :
			   0);
		left -= n;
		if (s->nr == 3)
			s->iov[s->nr++] = (struct iovec){ arena, 0 };
	}
}

/* Pieces of whole pages in falling order: nothing has to be bounced. */
static void whole_pages(struct shape *s)
{
	size_t left = s->len, at = SLACK + s->len * 2 + PAGE;

	at &= ~(PAGE - 1);
	for (s->nr = 0; left; s->nr++) {
		size_t n = PAGE * (1 + random_below(&rnd, 16));

		if (n > left || s->nr == MAX_VEC - 1)
			n = left;
		at -= (n + PAGE - 1) & ~(PAGE - 1);
		s->iov[s->nr].iov_base = arena + at;
		s->iov[s->nr].iov_len = n;
		left -= n;
	}
}

static void gather(const struct shape *s, char *to)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++) {
		memcpy(to, s->iov[i].iov_base, s->iov[i].iov_len);
		to += s->iov[i].iov_len;
	}
}

static void scatter(const struct shape *s, const char *from)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++) {
		memcpy(s->iov[i].iov_base, from, s->iov[i].iov_len);
		from += s->iov[i].iov_len;
	}
}

static int send_sync(const struct shape *s, struct nvme_uring_cmd *c)
{
	struct nvme_passthru_cmd64 p;
	int ret;

	if (s->way == SYNC)
		return sync_cmd(q.fd, c, NULL);
	p = sync_form(c);
	p.addr = (uintptr_t)s->iov;
	p.vec_cnt = s->nr;
	ret = ioctl(q.fd, NVME_IOCTL_IO64_CMD_VEC, &p);
	return ret < 0 ? -errno : ret;
}

static int transfer(const struct shape *s, uint8_t op)
{
	struct nvme_uring_cmd c = rw_cmd(&q, op, s->slba, s->nlb,
					 s->iov[0].iov_base);
	struct io_uring_sqe *sqe;
	struct end e;

	if (s->way == SYNC || s->way == SYNC_VEC)
		return send_sync(s, &c);
	if (s->way == RING_VEC) {
		c.addr = (uintptr_t)s->iov;
		c.data_len = s->nr;
	}
	sqe = ring_put(&ring, q.fd, s->way == RING_VEC ? NVME_URING_CMD_IO_VEC :
		       NVME_URING_CMD_IO, &c, 5);
	if (s->way == RING_FIXED) {
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		sqe->buf_index = 0;
	}
	if (io_uring_submit(&ring) != 1 || ring_get(&ring, &e, 20000))
		return -EIO;
	return e.tag == 5 ? e.res : -EIO;
}

/* The drive as an unrelated command sees it. */
static bool drive_matches(const struct shape *s)
{
	return !sync_rw(&q, OP_READ, s->slba, s->nlb, flat) &&
	       !memcmp(flat, model + s->slba * q.g.lba_size, s->len);
}

/* Everything in the arena but the pieces still is as it was set. */
static bool guards_whole(const struct shape *s)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		memset(s->iov[i].iov_base, GUARD, s->iov[i].iov_len);
	return all_bytes(arena, arena_used, GUARD);
}

static bool round_trip(const struct shape *s)
{
	char *expect = model + s->slba * q.g.lba_size;
	int err;

	fill(expect, s->len, random64(&rnd) >> 20);
	memset(arena, GUARD, arena_used);
	scatter(s, expect);
	err = transfer(s, OP_WRITE);
	if (err || !drive_matches(s)) {
		diag("write: %d", err);
		return false;
	}
	memset(arena, GUARD, arena_used);
	err = transfer(s, OP_READ);
	gather(s, flat);
	if (err || memcmp(flat, expect, s->len)) {
		diag("read: %d", err);
		return false;
	}
	if (!guards_whole(s)) {
		diag("bytes beside the buffer changed");
		return false;
	}
	return true;
}

static void size_is(struct shape *s, size_t len)
{
	/* what a shape of this size can touch, and some */
	arena_used = 3 * len + (MAX_VEC + 24) * PAGE;
	s->len = len;
	s->nlb = len / q.g.lba_size;
	s->slba = random_below(&rnd, (AREA - len) / q.g.lba_size + 1);
}

static bool is_vec(enum way way)
{
	return way == RING_VEC || way == SYNC_VEC;
}

static void describe(const struct shape *s)
{
	unsigned int i;

	diag("%s: %zu bytes at LBA %llu in %u pieces", way_name[s->way],
	     s->len, (unsigned long long)s->slba, s->nr);
	for (i = 0; i < s->nr && i < 8; i++)
		diag("  arena + %zd, %zu bytes",
		     (char *)s->iov[i].iov_base - arena, s->iov[i].iov_len);
}

static bool try_shape(const struct shape *s)
{
	if (round_trip(s))
		return true;
	describe(s);
	return false;
}

/* Every way, at offsets around what PRPs can say, sizes around pages. */
static void edges(enum way way)
{
	static const size_t misalign[] = {
		0, 1, 2, 3, 4, 8, 511, 512, 2048, 3584, 4092, 4094, 4095
	};
	size_t lba = q.g.lba_size, mdts = q.g.mdts;
	size_t sizes[] = { lba, 4096, 4096 + lba, 8192 - lba, 8192, 8192 + lba,
			   65536, mdts - 4096, mdts - lba, mdts };
	struct shape s = { .way = way };
	unsigned int i, j;
	bool good = true;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (j = 0; j < sizeof(misalign) / sizeof(misalign[0]); j++) {
			/* the large ones take time: a few offsets do */
			if (sizes[i] > 65536 && j > 4 && j % 4)
				continue;
			size_is(&s, sizes[i] / lba * lba);
			if (!s.len)
				continue;
			one_piece(&s, misalign[j]);
			good = good && try_shape(&s);
		}
	ok(good, "%s: sizes and offsets around pages", way_name[way]);
}

static size_t random_size(void)
{
	size_t max = q.g.mdts / q.g.lba_size;

	if (random_below(&rnd, 4))
		max = max < 64 ? max : 64;
	return (1 + random_below(&rnd, max)) * q.g.lba_size;
}

static void random_shape(struct shape *s)
{
	s->way = random_below(&rnd, NR_WAYS);
	size_is(s, random_size());
	if (!is_vec(s->way))
		one_piece(s, random_below(&rnd, 2 * PAGE));
	else if (random_below(&rnd, 2))
		many_pieces(s);
	else
		whole_pages(s);
}

static void random_shapes(void)
{
	struct tap_loop l = { "random shapes", .count = 2000, .floor = 150,
			      .seconds = 12 };
	struct shape s;

	while (tap_loop(&l)) {
		random_shape(&s);
		tap_loop_check(&l, try_shape(&s), "round %u", l.done);
	}
}

/* MDTS is the limit, from the device or from us; nothing moves beyond it. */
static void beyond_mdts(enum way way)
{
	struct shape s = { .way = way };

	size_is(&s, q.g.mdts + q.g.lba_size);
	one_piece(&s, 0);
	memset(arena, GUARD, arena_used);
	is(transfer(&s, OP_READ), -EINVAL, "%s: MDTS and one LBA is EINVAL",
	   way_name[way]);
	ok(all_bytes(arena, arena_used, GUARD), "%s: and moves nothing",
	   way_name[way]);
}

/* Vectors that hold less than the command moves, and impossible ones. */
static void bad_vectors(enum way way)
{
	struct shape s = { .way = way };

	size_is(&s, 8192);
	s.iov[0] = (struct iovec){ arena + SLACK, 4096 };
	s.iov[1] = (struct iovec){ arena + 4 * SLACK, 4095 };
	s.nr = 2;
	memset(arena, GUARD, arena_used);
	is(transfer(&s, OP_READ), -EINVAL, "%s: one byte short is EINVAL",
	   way_name[way]);
	ok(all_bytes(arena, arena_used, GUARD), "%s: and moves nothing",
	   way_name[way]);
	s.nr = 0;
	is(transfer(&s, OP_READ), -EINVAL, "%s: no vector is EINVAL",
	   way_name[way]);
	s.nr = 0x7fffffff;
	is(transfer(&s, OP_READ), -EINVAL, "%s: 2^31 vectors are EINVAL",
	   way_name[way]);
	s.nr = 2;
	s.iov[1] = (struct iovec){ (void *)8, 4096 };
	is(transfer(&s, OP_READ), -EFAULT, "%s: a bad address is EFAULT",
	   way_name[way]);
	s.iov[1] = (struct iovec){ (void *)-PAGE, 0x7fffffffffffffff };
	is(transfer(&s, OP_READ), -EFAULT, "%s: a wrapping vector is EFAULT",
	   way_name[way]);
}

static void long_vectors(enum way way)
{
	struct shape s = { .way = way };

	/* more than needed: the rest is not touched */
	size_is(&s, 4096);
	s.iov[0] = (struct iovec){ arena + SLACK, 1024 };
	s.iov[1] = (struct iovec){ arena + SLACK + 2048, 3072 };
	s.iov[2] = (struct iovec){ (void *)8, 4096 };
	s.nr = 3;
	memset(arena, GUARD, arena_used);
	is(transfer(&s, OP_READ), 0, "%s: longer than the command is fine",
	   way_name[way]);
	s.nr = 2;
	ok(guards_whole(&s), "%s: and its rest is left alone", way_name[way]);
}

static void all(const char *path)
{
	struct iovec reg;
	unsigned int w;

	q = queue_open(path, O_RDWR);
	diag("%s: MDTS %u, LBA %u, %s", path, q.g.mdts, q.g.lba_size,
	     q.g.flags & NVQ_GEO_SGL ? "SGL" : "PRP");
	arena_len = 4 * (size_t)q.g.mdts + (MAX_VEC + 24) * PAGE;
	arena = buffer_new(arena_len);
	flat = buffer_new(q.g.mdts);
	model = buffer_new(AREA);
	reg = (struct iovec){ arena, arena_len };
	ring_open_for(&ring, 4, &q);
	if (io_uring_register_buffers(&ring, &reg, 1))
		die("io_uring_register_buffers");
	for (w = 0; w < NR_WAYS; w++) {
		edges(w);
		beyond_mdts(w);
		if (!is_vec(w))
			continue;
		bad_vectors(w);
		long_vectors(w);
	}
	random_shapes();
	io_uring_queue_exit(&ring);
	buffer_free(model, AREA);
	buffer_free(flat, q.g.mdts);
	buffer_free(arena, arena_len);
	queue_close(&q);
}

int main(int argc, char **argv)
{
	tap_alarm(300);
	rnd = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	diag("seed %llu", (unsigned long long)rnd);
	all("/dev/nvq0poll0");
	all("/dev/nvq0irq0");
	return tap_done();
}
