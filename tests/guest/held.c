// SPDX-License-Identifier: MIT
/*
 * An id may be used again when its command has ended, and yet the driver may not
 * take it: the Abort of that command is still on its way, and would hit the next
 * one.  SUBMIT waits for it, by ioctl and by a ring, and refuses nothing.
 *
 * The drive completes two commands a second, and time is up after two seconds (see
 * stall.test), so that some are late.  The first of their Aborts returns 1.5 seconds
 * after it should (driver/fault.h), and meanwhile the next of them ends.
 *
 * usage: held DEVICE
 */
#include <errno.h>
#include <stdlib.h>

#include "faulty.h"
#include "tap.h"

/* The last ends after 3.5 seconds: out of time, but not a second time. */
#define NR	8
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

static void again(struct world *w, struct io_uring *r, const char *how)
{
	unsigned int left = NR;
	struct nvq_sqe s;
	uint64_t begun;
	uint16_t cid;
	int res;

	sleep_ms(1500);	/* the drive is ready to take the first at once */
	log_begin();
	fault_arm("abort %d", w->n.q.g.qid);
	is(world_in_flight(w, NR), NR, "%s: reads are in flight", how);
	begun = now_ms();
	while (!fault_hits("abort") && now_ms() - begun < MS)
		sleep_ms(1);
	/* Those that ended in time. */
	while (left && !native_reap(&w->n, NULL, 0))
		left--;
	res = native_reap(&w->n, &cid, MS);
	left--;
	ok(!res, "%s: a late one has ended", how);
	s = native_rw(&w->n, OP_READ, cid, 1000, 8, w->index, 0);
	native_stage(&w->n, &s);
	begun = now_ms();
	res = r ? ring_submit(r, &w->n) : native_submit(&w->n);
	is(res, r ? 0 : 1, "%s: its id is taken again", how);
	ok(now_ms() - begun > 50, "%s: after the Abort (%llu ms)", how,
	   (unsigned long long)(now_ms() - begun));
	is(w->n.k->submit_error, 0, "%s: nothing was refused", how);
	ok(log_order("timed out: abort sent", NULL), "%s: it was sent", how);
	is(w->n.k->sq_head, w->n.tail, "%s: all that was staged is taken", how);
	ok(ends(&w->n, left + 1) && log_lacks("deleted"),
	   "%s: each ends well, and once", how);
	is(native_reap(&w->n, NULL, 100), -ETIME, "%s: no more than that", how);
	fault_arm("off");
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
