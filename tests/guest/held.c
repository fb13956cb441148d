// SPDX-License-Identifier: MIT
/*
 * An id may be used again when its command has ended, and yet the driver may not
 * take it: the Abort of that command is still on its way, and would hit the next
 * one.  SUBMIT waits for it, by ioctl and by a ring, and refuses nothing.
 *
 * The drive completes two commands a second, and time is up after four seconds (see
 * stall.test), so that some are late.  The first of their Aborts returns when we say
 * so (driver/fault.h), which is when SUBMIT has waited for it.
 *
 * usage: held DEVICE
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "faulty.h"
#include "tap.h"

/* The last ends after 5.5 seconds: out of time, but not a second time. */
#define NR	12
#define MS	30000

/* SUBMIT by io_uring: 0, or a negative errno. */
static int ring_submit(struct io_uring *r, struct native *n)
{
	struct end e;

	ring_put(r, n->q.fd, NVQ_URING_SUBMIT, &(struct nvme_uring_cmd){ 0 },
		 1);
	io_uring_submit(r);
	return ring_get(r, &e, MS) ? -ETIME : e.res;
}

/* Ends of good reads from now on; @nr of them. */
static bool ends(struct native *n, unsigned int nr)
{
	while (nr && !native_reap(n, NULL, MS))
		nr--;
	return !nr;
}

static volatile bool released;

static void *release(void *arg)
{
	(void)arg;
	sleep_ms(300);
	released = true;
	fault_arm("off");
	return NULL;
}

/* The id whose Abort is held back, once that is so; -1: none is. */
static int held_id(void)
{
	uint64_t begun = now_ms();
	unsigned int cid;
	const char *at;

	while (!fault_hits("abort"))
		if (now_ms() - begun > MS)
			return -1;
		else
			sleep_ms(1);
	at = strstr(log_text(), "command id ");
	return at && sscanf(at, "command id %u timed out: abort sent", &cid)
	       == 1 ? (int)cid : -1;
}

/* How many have ended well when @id has; 0: it does not. */
static unsigned int ended_with(struct native *n, int id)
{
	unsigned int nr = 0;
	uint16_t cid;

	do {
		if (native_reap(n, &cid, MS))
			return 0;
		nr++;
	} while (cid != id);
	return nr;
}

static void again(struct world *w, struct io_uring *r, const char *how)
{
	struct nvq_sqe s;
	pthread_t thread;
	unsigned int nr;
	int id, res;

	log_begin();
	released = false;
	fault_arm("abort %d", w->n.q.g.qid);
	is(world_in_flight(w, NR), NR, "%s: reads are in flight", how);
	id = held_id();
	ok(id >= 0, "%s: the Abort of one does not return", how);
	nr = ended_with(&w->n, id);
	ok(nr, "%s: but the command ends", how);
	s = native_rw(&w->n, OP_READ, id, 1000, 8, w->index, 0);
	native_stage(&w->n, &s);
	if (pthread_create(&thread, NULL, release, NULL))
		die("no thread");
	res = r ? ring_submit(r, &w->n) : native_submit(&w->n);
	is(res, r ? 0 : 1, "%s: its id is taken again", how);
	ok(released, "%s: when the Abort has returned", how);
	pthread_join(thread, NULL);
	is(w->n.k->submit_error, 0, "%s: nothing was refused", how);
	is(w->n.k->sq_head, w->n.tail, "%s: all that was staged is taken", how);
	ok(ends(&w->n, NR - nr + 1) && log_lacks("deleted"),
	   "%s: each ends well, and once", how);
	is(native_reap(&w->n, NULL, 100), -ETIME, "%s: no more than that", how);
}

int main(int argc, char **argv)
{
	struct io_uring r;
	struct world w;

	if (argc != 2)
		die("usage: held DEVICE");
	tap_alarm(150);
	w = world_new(argv[1]);
	again(&w, NULL, "ioctl");
	ring_open(&r, 8, 0);
	again(&w, &r, "ring");
	io_uring_queue_exit(&r);
	world_end(&w);
	return tap_done();
}
