// SPDX-License-Identifier: MIT
/*
 * The honest process beside the hostile one: on another queue of the same drive,
 * in a namespace of its own, it writes blocks and reads them back, now and then
 * all of them.  A reset may abort a command, which leaves a block old or new;
 * nothing else may happen to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "hostile.h"

#define BLOCKS	256
#define NLB	8

struct book {
	struct queue q;
	char *buf;
	uint64_t now[BLOCKS];	/* seeds; 0: never written */
	uint64_t maybe[BLOCKS];	/* of an aborted write, or 0 */
	uint64_t next;
};

static size_t bytes(const struct book *b)
{
	return NLB * b->q.g.lba_size;
}

/* False if it was aborted; anything else is wrong. */
static bool run(struct book *b, uint8_t op, unsigned int i)
{
	struct nvme_uring_cmd c = rw_cmd(&b->q, op, i * NLB, NLB, b->buf);
	int res;

	/* its time-out is never to be the reason */
	c.timeout_ms = 600000;
	res = sync_cmd(b->q.fd, &c, NULL);
	if (res == HOST_ABORTED)
		shared->nb.aborted++;
	else if (res)
		wrong(NULL, "the neighbour's command ended with %d", res);
	return !res;
}

static void write_block(struct book *b, unsigned int i)
{
	uint64_t seed = ++b->next * BLOCKS + i;

	fill(b->buf, bytes(b), seed);
	if (run(b, OP_WRITE, i)) {
		b->now[i] = seed;
		b->maybe[i] = 0;
		shared->nb.written += bytes(b);
	} else if (!b->maybe[i]) {
		b->maybe[i] = seed;
	} else {
		/* two aborted in a row: one of three, so write until it is one */
		write_block(b, i);
	}
}

static void verify_block(struct book *b, unsigned int i)
{
	if (!b->now[i])
		return;
	memset(b->buf, 0x55, bytes(b));
	if (!run(b, OP_READ, i))
		return;
	if (b->maybe[i] && differs(b->buf, bytes(b), b->maybe[i]) < 0)
		b->now[i] = b->maybe[i];
	b->maybe[i] = 0;
	if (differs(b->buf, bytes(b), b->now[i]) >= 0)
		wrong(NULL, "block %u of the neighbour is not what it wrote",
		      i);
	shared->nb.verified += bytes(b);
}

int neighbour_run(const char *node)
{
	struct book *b = calloc(1, sizeof(*b));
	uint64_t rnd = epoch.seed;
	uint32_t nsid = NS_NEIGHBOUR;
	unsigned int i;

	b->q = queue_open(node, O_RDWR);
	if (ioctl(b->q.fd, NVQ_IOC_SELECT_NS, &nsid) ||
	    ioctl(b->q.fd, NVQ_IOC_GEOMETRY, &b->q.g))
		die("the neighbour has no namespace %u: %s", nsid,
		    strerror(errno));
	b->buf = buffer_new(bytes(b));
	while (!shared->nb.stop) {
		i = random_below(&rnd, BLOCKS);
		if (random_below(&rnd, 3))
			verify_block(b, i);
		else
			write_block(b, i);
		sleep_ms(2);
	}
	for (i = 0; i < BLOCKS; i++)
		verify_block(b, i);
	queue_close(&b->q);
	return 0;
}
