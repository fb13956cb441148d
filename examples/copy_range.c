// SPDX-License-Identifier: MIT
/*
 * copy_range FILE FROM TO COUNT - copies COUNT LBAs of a drive.
 *
 * Batches on the native path: up to BATCH reads of as much as one command may
 * move are handed over in one system call and waited for, then as many writes
 * of the same memory; a flush at the end makes them durable.  It overwrites
 * what is at TO.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvq.h>
#include <nvq_native.h>

#define BATCH	4U

static uint64_t number(const char *arg)
{
	char *end;
	uint64_t val;

	errno = 0;
	val = strtoull(arg, &end, 0);
	if (errno || end == arg || *end || *arg == '-')
		errx(2, "%s: a number of LBAs is meant", arg);
	return val;
}

/* Hands over what is staged, waits for all of it, and ends on any failure. */
static void run(struct nvq_native *n, const char *what)
{
	unsigned int nr = nvq_native_staged(n);
	const struct nvq_cqe *c;
	char text[128];
	int ret;

	/* a batch may be accepted in part: the rest stays staged */
	while (nvq_native_staged(n)) {
		ret = nvq_native_submit(n);
		if (ret <= 0)
			errx(1, "%s: a %s was not accepted: %s; the kernel's log may say why",
			     n->q->name, what, strerror(-ret));
	}
	ret = nvq_native_wait(n, nr, 60000);
	if (ret)
		errx(1, "%s: no answer to %u %s command(s) within 60 s: %s; the kernel's log says what became of them",
		     n->q->name, nr, what, strerror(-ret));
	while (nr--) {
		c = nvq_native_next(n);
		if (nvq_native_res(c))
			errx(1, "%s: a %s failed: %s; what is at TO is not complete",
			     n->q->name, what,
			     nvq_status_text(nvq_native_res(c), text,
					     sizeof(text)));
	}
}

/* Stages @count LBAs from @slba in commands of @most; ids and memory go along. */
static void stage(struct nvq_native *n, enum nvq_opcode opcode, uint64_t slba,
		  uint32_t count, uint32_t most, int buf)
{
	uint32_t done, nlb;

	for (done = 0; done < count; done += nlb) {
		nlb = count - done < most ? count - done : most;
		nvq_stage_rw(n, done / most, opcode, slba + done, nlb, buf,
			     (uint64_t)done << n->q->lba_shift);
	}
}

int main(int argc, char **argv)
{
	uint64_t from, to, left;
	uint32_t most, batch, count;
	struct nvq_native n;
	struct nvq_error e;
	struct nvq q;
	void *mem;
	int buf;

	if (argc != 5)
		errx(2, "usage: copy_range FILE FROM TO COUNT (in LBAs; FILE: see nvq list)");
	from = number(argv[2]);
	to = number(argv[3]);
	left = number(argv[4]);
	if (nvq_open(&q, argv[1], O_RDWR, &e) || nvq_native_init(&n, &q, &e))
		errx(1, "%s", e.text);
	if (left > q.geo.nsze || from > q.geo.nsze - left ||
	    to > q.geo.nsze - left)
		errx(1, "%s has %llu LBAs, and %llu from %llu or %llu are beyond: lower COUNT",
		     q.name, (unsigned long long)q.geo.nsze,
		     (unsigned long long)left, (unsigned long long)from,
		     (unsigned long long)to);
	if (from < to + left && to < from + left)
		errx(1, "the ranges overlap: take a TO that is %llu LBAs off",
		     (unsigned long long)left);

	/* depth - 1 commands may be under way */
	batch = q.depth - 1 < BATCH ? q.depth - 1 : BATCH;
	most = q.geo.mdts >> q.lba_shift;
	mem = aligned_alloc(4096, (size_t)batch * q.geo.mdts);
	if (!mem)
		errx(1, "no memory for %u buffers of %u bytes: lower BATCH",
		     batch, q.geo.mdts);
	buf = nvq_native_register(&n, mem, (size_t)batch * q.geo.mdts, 0, &e);
	if (buf < 0)
		errx(1, "%s", e.text);
	for (; left; left -= count, from += count, to += count) {
		count = left < batch * most ? left : batch * most;
		stage(&n, NVQ_READ, from, count, most, buf);
		run(&n, "read");
		stage(&n, NVQ_WRITE, to, count, most, buf);
		run(&n, "write");
	}
	nvq_stage_flush(&n, 0);
	run(&n, "flush");

	/* before nvq_close(), which gives the queue back */
	nvq_native_exit(&n);
	nvq_close(&q);
	free(mem);
	return 0;
}
