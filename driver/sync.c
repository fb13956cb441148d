// SPDX-License-Identifier: GPL-2.0
/*
 * A command whose submitter waits for it (the ioctls): polls on a poll queue,
 * sleeps on an irq queue, and may be killed meanwhile.  Then its slot is an
 * orphan, which the watch buries once the command has ended.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>

#include "nvqueue.h"

/* True if the waiter let go of a command that is still in flight. */
static bool orphan(struct nvq_queue *q, struct nvq_slot *slot)
{
	unsigned long flags;
	bool inflight;

	spin_lock_irqsave(&q->lock, flags);
	inflight = slot->state == NVQ_SLOT_INFLIGHT;
	if (inflight) {
		slot->kind = NVQ_IO_ORPHAN;
		slot->owner = NULL;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return inflight;
}

static int sync_poll(struct nvq_queue *q, struct nvq_waiter *w)
{
	unsigned long spin = jiffies + 2;

	while (!try_wait_for_completion(&w->done)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (nvq_reap(q))
			continue;
		if (time_after(jiffies, spin))
			usleep_range(50, 100);
		else
			cond_resched();
	}
	return 0;
}

/*
 * Submits @io and waits for its end, which time-outs bound.  Returns the NVMe
 * status (0: success) or a negative errno; the map is released either way but
 * where nvq_submit() refused.
 */
int nvq_sync(struct nvq_queue *q, struct nvq_io *io, u64 *result)
{
	struct nvq_waiter w;
	struct nvq_slot *slot;
	int err;

	init_completion(&w.done);
	io->kind = NVQ_IO_SYNC;
	io->owner = &w;
	err = nvq_submit(q, io, false);
	if (err) {
		nvq_map_release(&io->map, false);
		return err;
	}
	slot = io->slot;
	if (q->kind == NVQ_KIND_POLL)
		err = sync_poll(q, &w);
	else
		err = wait_for_completion_killable(&w.done);
	if (err && orphan(q, slot))
		return err;	/* nvq_watch() releases it when it ends */
	err = slot->status;
	*result = slot->result;
	nvq_map_release(&slot->map, !err);
	nvq_slot_put(q, slot);
	return err;
}

/* Under q->mutex: slots whose killed waiters cannot release them. */
void nvq_queue_bury(struct nvq_queue *q)
{
	struct nvq_slot *slot;
	u32 i;

	for (i = 0; i < q->ring.depth; i++) {
		slot = &q->slots[i];
		if (READ_ONCE(slot->state) != NVQ_SLOT_DONE ||
		    slot->kind != NVQ_IO_ORPHAN)
			continue;
		nvq_map_release(&slot->map, false);
		nvq_slot_put(q, slot);
	}
}
