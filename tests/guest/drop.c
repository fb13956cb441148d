// SPDX-License-Identifier: MIT
/*
 * native.test: batches with a command in them that is refused, through libnvq, by
 * each way of handing over: it is dropped, once, whatever else is under way, and
 * all others complete, once, with their own data.
 *
 * usage: drop FILE ioctl|uring|sqpoll|readonly LBAS
 *
 * LBA n's first 4 bytes are n + 1, little endian (native.test wrote them).
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include <nvq.h>
#include <nvq_native.h>

#include "tap.h"

#define SLOTS	64

static struct nvq q;
static struct nvq_native n;
static struct nvq_native_ring ring;
static unsigned char *mem;
static bool by_ring;
static int buf;
static unsigned int nr_lbas, lba_size;

/* What is known of each command id. */
static uint64_t slba_of[SLOTS];
static bool staged[SLOTS], bad[SLOTS];
static unsigned int completed, dropped, wrong, refused_good, strange;

static void read_all(void)
{
	const struct nvq_cqe *c;

	while ((c = nvq_native_next(&n))) {
		unsigned int cid = nvq_native_cid(c);
		uint32_t v;

		if (cid >= SLOTS || !staged[cid] || bad[cid] ||
		    nvq_native_res(c)) {
			strange++;
			continue;
		}
		memcpy(&v, mem + cid * lba_size, sizeof(v));
		if (le32toh(v) != (uint32_t)slba_of[cid] + 1)
			wrong++;
		staged[cid] = false;
		completed++;
	}
}

static void drop_first(void)
{
	unsigned int cid = le16toh(nvq_native_first(&n)->cid);

	if (nvq_native_drop(&n)) {
		nvq_native_accepted(&n);
		return;
	}
	if (!bad[cid])
		refused_good++;
	staged[cid] = false;
	bad[cid] = false;
	dropped++;
}

static int hand_over(void)
{
	return by_ring ? nvq_native_ring_submit(&ring, 0) :
			 nvq_native_submit(&n);
}

/* Until nothing is staged and nothing under way; false: it does not end. */
static bool run_dry(void)
{
	unsigned int i, tries;
	int ret;

	for (tries = 0; tries < 200000; tries++) {
		if (nvq_native_staged(&n)) {
			ret = hand_over();
			if (ret == -EINVAL)
				drop_first();
			else if (ret < 0)
				strange++;
		}
		read_all();
		for (i = 0; i < SLOTS && !staged[i]; i++)
			;
		if (i == SLOTS && !nvq_native_staged(&n))
			return true;
		/* others have work to do, too */
		if (tries > 16)
			usleep(10);
	}
	return false;
}

/* Any, none, the first, the last, several in a row of a batch are bad. */
static void stage_batch(unsigned int *seed, unsigned int *nr_bad)
{
	unsigned int cid, kind = rand_r(seed) % 8;

	for (cid = 0; cid < SLOTS; cid++) {
		bad[cid] = kind == 0 ? false : kind == 1 ? cid == 0 :
			   kind == 2 ? cid == SLOTS - 1 :
			   rand_r(seed) % kind == 0;
		*nr_bad += bad[cid];
		slba_of[cid] = rand_r(seed) % nr_lbas;
		staged[cid] = true;
		nvq_stage_rw(&n, cid, NVQ_READ,
			     bad[cid] ? q.geo.nsze : slba_of[cid], 1, buf,
			     cid * lba_size);
		/* also while a thread is at it */
		if (by_ring && cid % 16 == 15)
			hand_over();
	}
}

static void setup(const char *path, const char *way)
{
	struct nvq_native_ring_options opt = { .sq_cpu = -1 };
	struct nvq_error err = { 0 };
	struct nvq_native *queues[] = { &n };
	int mode = strcmp(way, "readonly") ? O_RDWR : O_RDONLY;

	ok(!nvq_open(&q, path, mode, &err), "opens: %s", err.text);
	ok(!nvq_native_init(&n, &q, &err), "is native: %s", err.text);
	lba_size = q.geo.lba_size;
	mem = mmap(NULL, SLOTS * lba_size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	buf = nvq_native_register(&n, mem, SLOTS * lba_size, 0, &err);
	ok(buf >= 0, "registers: %s", err.text);
	by_ring = !strcmp(way, "uring") || !strcmp(way, "sqpoll");
	if (!strcmp(way, "sqpoll"))
		opt.flags = NVQ_NATIVE_SQPOLL;
	if (by_ring)
		ok(!nvq_native_ring_init(&ring, queues, 1, &opt, &err),
		   "has a ring: %s", err.text);
}

int main(int argc, char **argv)
{
	struct tap_loop l = { "batches end", .count = 2000, .floor = 20,
			      .seconds = 5 };
	unsigned int seed = 1, nr_bad = 0;

	if (argc != 4)
		return 2;
	nr_lbas = atoi(argv[3]);
	setup(argv[1], argv[2]);
	while (tap_loop(&l)) {
		stage_batch(&seed, &nr_bad);
		tap_loop_check(&l, run_dry(), "round %u does not end", l.done);
	}
	is(dropped, nr_bad, "%s: each bad command is dropped, once", argv[2]);
	is(refused_good, 0, "%s: and no good one", argv[2]);
	is(completed, l.done * SLOTS - nr_bad, "%s: all others complete",
	   argv[2]);
	is(strange, 0, "%s: no command ends twice, or otherwise", argv[2]);
	is(wrong, 0, "%s: each has its own data", argv[2]);
	if (strcmp(argv[2], "readonly"))
		is(q.kpage->dropped, nr_bad, "%s: the kernel counts them",
		   argv[2]);
	nvq_native_ring_exit(&ring);
	nvq_native_exit(&n);
	nvq_close(&q);
	return tap_done();
}
