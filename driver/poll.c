// SPDX-License-Identifier: GPL-2.0
/*
 * The iopoll callback of a poll queue: completes the commands of IOPOLL rings,
 * in runs that io_uring takes off its list in one go, and counts the polls that
 * found nothing.
 *
 * q->lock guards the slots and the counters; called by uring.c under the ring's
 * own lock.
 */
#include "nvqueue.h"

/* An IOPOLL command's end: what is needed once its slot is free again. */
struct iopoll_end {
	struct io_uring_cmd *cmd;
	struct nvq_slot *slot;
	u64 result;
	u16 status;
};

/*
 * Under q->lock: @first, and the commands that were submitted right behind it,
 * as long as they are done.  That is the run that io_uring will take off its
 * list after this callback: it goes on from the request it polled until the
 * first that is not complete.  What is done beyond waits for a callback of its
 * own, so that a pass which finds something always ends in a callback that
 * did, and no pass is spent on a request completed behind its back.
 *
 * @next: where the run goes on, 0: at @first.
 */
static unsigned int done_run(struct nvq_queue *q, struct nvq_slot *first,
			     u64 *next, struct iopoll_end *end)
{
	unsigned int n = 0;
	u64 seq = *next ? *next : first->seq;

	while (n < NVQ_REAP_BATCH && seq <= q->submitted) {
		struct nvq_slot *slot = first;

		/* A command may be older than all the order remembers. */
		if (seq != first->seq)
			slot = &q->slots[q->order[seq % q->ring.depth]];
		/* an ioctl's, or told already: not on io_uring's list */
		if (slot->seq == seq && slot->kind == NVQ_IO_IOPOLL &&
		    slot->state != NVQ_SLOT_FREE) {
			if (slot->state != NVQ_SLOT_DONE)
				break;
			/* ours alone until it is free */
			slot->state = NVQ_SLOT_TOLD;
			end[n].cmd = slot->owner;
			end[n].slot = slot;
			end[n].status = slot->status;
			end[n++].result = slot->result;
		}
		seq++;
		if (seq + q->ring.depth <= q->submitted)
			seq = q->submitted - q->ring.depth + 1;
	}
	*next = seq;
	return n;
}

/* Slots are freed first: who sees the completion finds room. */
static void tell_run(struct nvq_queue *q, struct iopoll_end *end,
		     unsigned int n)
{
	unsigned long flags;
	unsigned int i;
	bool wake;

	for (i = 0; i < n; i++)
		nvq_map_release(&end[i].slot->map, !end[i].status);
	spin_lock_irqsave(&q->lock, flags);
	for (i = 0; i < n; i++)
		nvq_slot_free(q, end[i].slot);
	wake = q->slot_waiters;
	spin_unlock_irqrestore(&q->lock, flags);
	if (wake)
		wake_up_all(&q->wait);
	for (i = 0; i < n; i++)
		nvq_uring_done_iopoll(end[i].cmd, end[i].status,
				      end[i].result);
}

/*
 * Under q->lock: counts callbacks and passes that found nothing.  io_uring
 * walks its list in the order of submission and calls back for each request
 * until one is complete.  So a callback for a request no younger than the last
 * one starts a pass, and so does any after one that found something.
 */
static void account(struct nvq_queue *q, u64 seq, bool found)
{
	bool first = !q->pass_open || seq <= q->pass_seq;

	if (!found) {
		q->iopoll_empty++;
		/* taken back if the pass does find something */
		if (first)
			q->reap_empty++;
	} else if (!first) {
		q->reap_empty--;
	}
	q->pass_open = !found;
	q->pass_seq = seq;
}

/*
 * The iopoll callback of @slot's command, which has not been told.  Returns
 * how many commands it told the ring of.
 */
int nvq_poll(struct nvq_queue *q, struct nvq_slot *slot)
{
	struct iopoll_end end[NVQ_REAP_BATCH];
	unsigned int n, total = 0;
	unsigned long flags;
	u64 next = 0;

	nvq_reap(q);
	do {
		spin_lock_irqsave(&q->lock, flags);
		if (!total)
			account(q, slot->seq, slot->state == NVQ_SLOT_DONE);
		n = done_run(q, slot, &next, end);
		nvq_publish(q);
		spin_unlock_irqrestore(&q->lock, flags);
		tell_run(q, end, n);
		total += n;
	} while (n == NVQ_REAP_BATCH);
	return total;
}
