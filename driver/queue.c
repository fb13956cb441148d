// SPDX-License-Identifier: GPL-2.0
/*
 * An I/O queue's slots: submission and reaping.
 *
 * A slot is a command id.  It goes FREE -> HELD (its submitter maps the data,
 * which takes bounded time) -> INFLIGHT (the controller has the command) ->
 * DONE (it ended, by its CQE or by a synthesized one) -> FREE (its owner was
 * told; TOLD for a moment between on an IOPOLL ring).  q->lock guards all of
 * these steps; the DMA mapping of a slot exists only in HELD and INFLIGHT.
 *
 * Called by the ways in (uring.c, sync.c), the interrupt, poll.c, and those who
 * end commands (life.c, recover.c).
 */
#include <linux/blkdev.h>
#include <linux/interrupt.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nvqueue.h"

/* ------------------------------------------------------------- publishing */

/* Under q->lock: what user space may see of the CQ and our state. */
void nvq_publish(struct nvq_queue *q)
{
	struct nvq_kpage *k = q->kpage;
	u32 state = NVQ_STATE_LIVE;

	if (!k)
		return;
	if (q->hw == NVQ_HW_DEAD)
		state = NVQ_STATE_DEAD;
	else if (q->resync)
		state = NVQ_STATE_RESYNC;
	else if (q->stale)
		state = NVQ_STATE_STALE;
	else if (q->hw != NVQ_HW_LIVE || q->frozen)
		state = NVQ_STATE_RECOVERING;
	WRITE_ONCE(k->state, state);
	WRITE_ONCE(k->generation, q->generation);
	WRITE_ONCE(k->cq_head, q->ring.cq_head |
		   (q->ring.cq_phase ? NVQ_CQ_HEAD_PHASE : 0));
	WRITE_ONCE(k->sq_doorbells, q->ring.sq_doorbells);
	WRITE_ONCE(k->cq_doorbells, q->ring.cq_doorbells);
	WRITE_ONCE(k->reap_empty, q->reap_empty);
	WRITE_ONCE(k->iopoll_empty, q->iopoll_empty);
}

/* ------------------------------------------------------------------ slots */

/* Under q->lock: the owner knows. */
void nvq_slot_free(struct nvq_queue *q, struct nvq_slot *slot)
{
	slot->state = NVQ_SLOT_FREE;
	slot->owner = NULL;
	/* nvq_slot_aborted() lists it */
	if (unlikely(slot->aborting))
		return;
	slot->next = q->free;
	q->free = slot - q->slots;
}

/* The Abort of @slot's command has returned: the id may be used again. */
void nvq_slot_aborted(struct nvq_queue *q, struct nvq_slot *slot)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	slot->aborting = false;
	if (slot->state == NVQ_SLOT_FREE)
		nvq_slot_free(q, slot);
	spin_unlock_irqrestore(&q->lock, flags);
	wake_up_all(&q->wait);
}

/* Gives a slot back whose map is released. */
void nvq_slot_put(struct nvq_queue *q, struct nvq_slot *slot)
{
	unsigned long flags;
	bool wake;

	spin_lock_irqsave(&q->lock, flags);
	nvq_slot_free(q, slot);
	wake = q->slot_waiters;
	spin_unlock_irqrestore(&q->lock, flags);
	if (wake)
		wake_up_all(&q->wait);
}

/*
 * Under q->lock.  -EAGAIN: not now (no slot, or a recovery or format change is
 * under way); anything else is final.
 */
static int slot_get(struct nvq_queue *q, struct nvq_slot **slot)
{
	if (unlikely(q->hw == NVQ_HW_DEAD))
		return -ENODEV;
	if (unlikely(q->native))
		return -EBUSY;
	if (unlikely(q->stale))
		return -ESTALE;
	if (unlikely(q->hw != NVQ_HW_LIVE || q->frozen || q->free == NVQ_NO_SLOT))
		return -EAGAIN;
	*slot = &q->slots[q->free];
	q->free = (*slot)->next;
	(*slot)->state = NVQ_SLOT_HELD;
	q->held++;
	/* The namespace can no longer be selected. */
	q->used = true;
	return 0;
}

static int slot_try(struct nvq_queue *q, struct nvq_slot **slot)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&q->lock, flags);
	err = slot_get(q, slot);
	spin_unlock_irqrestore(&q->lock, flags);
	return err;
}

/*
 * One turn of waiting.  0: *@err is what slot_try() said, or the turn's time is
 * up.  A task may hold slots of its own, whose commands have ended and wait for
 * its task work to free them; it must get to that, so what it waits for by ioctl
 * begins again after it.  A worker of io_uring has no such work.
 */
static int slot_wait_turn(struct nvq_queue *q, struct nvq_slot **slot,
			  u32 timeout, bool sync, int *err)
{
	long left;

	if (!sync) {
		left = wait_event_killable_timeout(q->wait,
				(*err = slot_try(q, slot)) != -EAGAIN,
				timeout);
		return min(left, 0L);
	}
	left = wait_event_interruptible_timeout(q->wait,
			(*err = slot_try(q, slot)) != -EAGAIN, timeout);
	if (left >= 0)
		return 0;
	return fatal_signal_pending(current) ? left : -ERESTARTNOINTR;
}

/*
 * Waits for a slot, and not for ever.  On a poll queue nobody may be polling but
 * us, so we do.
 */
static int slot_wait(struct nvq_queue *q, struct nvq_slot **slot, u32 timeout,
		     bool sync)
{
	unsigned long end = jiffies + timeout, flags;
	bool poll = q->kind == NVQ_KIND_POLL;
	int err, stop;

	spin_lock_irqsave(&q->lock, flags);
	q->slot_waiters++;
	spin_unlock_irqrestore(&q->lock, flags);
	for (;;) {
		stop = slot_wait_turn(q, slot, poll ? 1 : timeout, sync, &err);
		if (err != -EAGAIN)
			break;
		if (stop) {
			err = stop;
			break;
		}
		if (time_after_eq(jiffies, end)) {
			err = -ETIMEDOUT;
			break;
		}
		if (poll)
			nvq_reap(q);
	}
	spin_lock_irqsave(&q->lock, flags);
	q->slot_waiters--;
	spin_unlock_irqrestore(&q->lock, flags);
	return err;
}

/* Under q->lock: the submitter is past its DMA mapping. */
static void slot_unhold(struct nvq_queue *q)
{
	/* recovery and freeze wait for held and inflight to reach 0 */
	if (!--q->held && (q->hw != NVQ_HW_LIVE || q->frozen))
		wake_up_all(&q->wait);
}

/* -------------------------------------------------------------- doorbells */

/*
 * One doorbell per batch: io_uring plugs a batch of submissions, and the plug
 * calls us at its end, or before its task sleeps.  (No block layer in this: a
 * plug is a list of callbacks on the task.)
 */
struct nvq_plug {
	struct blk_plug_cb cb;
	bool ref;		/* the block layer zeroes what it allocates */
};

static void queue_kick(struct nvq_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (q->hw == NVQ_HW_LIVE)
		nvq_ring_kick(&q->ring);
	spin_unlock_irqrestore(&q->lock, flags);
}

static void unplug(struct blk_plug_cb *cb, bool from_schedule)
{
	struct nvq_queue *q = cb->data;

	queue_kick(q);
	kfree(cb);
	/*
	 * A reset may have ended every command between, so that the file is
	 * gone already: the plug has its own reference.  Last of all, as the
	 * module may go with it.
	 */
	put_device(&q->dev);
}

/* True if somebody will kick later; before q->lock, as it allocates. */
static bool plugged(struct nvq_queue *q)
{
	struct blk_plug_cb *cb;
	struct nvq_plug *plug;

	if (!current->plug)
		return false;
	cb = blk_check_plugged(unplug, q, sizeof(*plug));
	if (!cb)
		return false;
	plug = container_of(cb, struct nvq_plug, cb);
	if (!plug->ref) {
		get_device(&q->dev);
		plug->ref = true;
	}
	return true;
}

/* ------------------------------------------------------------- submission */

/* Under q->lock: the slot is the controller's from here. */
static void slot_launch(struct nvq_queue *q, struct nvq_slot *slot,
			struct nvq_io *io)
{
	slot->owner = io->owner;
	slot->kind = io->kind;
	slot->timeout = io->timeout;
	slot->deadline = jiffies + io->timeout;
	slot->aborted = false;
	slot->state = NVQ_SLOT_INFLIGHT;
	q->inflight++;
	slot->seq = ++q->submitted;
	q->order[slot->seq % q->ring.depth] = slot - q->slots;
	io->slot = slot;
	WRITE_ONCE(q->kpage->submitted, q->submitted);
	if (nvq_fault_sqes(q, &io->sqe, 1))
		nvq_ring_push(&q->ring, &io->sqe);
}

/*
 * Maps and submits into a held slot.  -EAGAIN: the queue stopped between; the
 * slot is gone, the map is back with the caller.
 */
static int slot_submit(struct nvq_queue *q, struct nvq_slot *slot,
		       struct nvq_io *io)
{
	unsigned long flags;
	bool later;
	int err;

	io->sqe.common.command_id = slot - q->slots;
	nvq_map_move(&slot->map, &io->map);
	err = nvq_map_dma(q->ctrl, &slot->map, &slot->list, &io->sqe, io->sgl);
	later = !err && plugged(q);

	spin_lock_irqsave(&q->lock, flags);
	if (!err && likely(q->hw == NVQ_HW_LIVE && !q->frozen &&
			   q->ns_key == io->ns_key)) {
		slot_launch(q, slot, io);
		if (!later)
			nvq_ring_kick(&q->ring);
		q->held--;
		spin_unlock_irqrestore(&q->lock, flags);
		return 0;
	}
	/* Undone under the lock: whoever waits for held must not come first. */
	if (!err) {
		nvq_unmap_dma(q->ctrl, &slot->map, &slot->list);
		/* lengths were derived from a format that is gone: no retry */
		err = q->ns_key == io->ns_key ? -EAGAIN : -ESTALE;
	}
	nvq_map_move(&io->map, &slot->map);
	nvq_slot_free(q, slot);
	slot_unhold(q);
	spin_unlock_irqrestore(&q->lock, flags);
	nvq_map_unbounce(&io->map);
	return err;
}

/*
 * Takes a slot for @io and submits it.  0: the command will end exactly once,
 * by io->kind.  Otherwise nothing happened and io->map is still the caller's:
 * -EAGAIN (only if @nonblock), -ETIMEDOUT, -ERESTARTSYS (killed),
 * -ERESTARTNOINTR (NVQ_IO_SYNC: has other work first), -ESTALE, -ENODEV, or what
 * mapping said.
 */
int nvq_submit(struct nvq_queue *q, struct nvq_io *io, bool nonblock)
{
	struct nvq_slot *slot;
	int err;

	do {
		err = slot_try(q, &slot);
		if (err == -EAGAIN && !nonblock)
			err = slot_wait(q, &slot, io->timeout,
					io->kind == NVQ_IO_SYNC);
		if (err)
			return err;
		err = slot_submit(q, slot, io);
	} while (err == -EAGAIN && !nonblock);
	return err;
}

/* ---------------------------------------------------------------- reaping */

/* Under q->lock: the controller is past the slot's data. */
static void slot_end(struct nvq_queue *q, struct nvq_slot *slot, u16 status,
		     u64 result)
{
	slot->state = NVQ_SLOT_DONE;
	slot->status = status;
	slot->result = result;
	if (unlikely(q->ctrl->leak))
		nvq_map_leak(&slot->map);
	else
		nvq_unmap_dma(q->ctrl, &slot->map, &slot->list);
	q->inflight--;
	q->completed++;
	/* Under the lock, so that a killed waiter cannot leave before. */
	if (slot->kind == NVQ_IO_SYNC)
		complete(&((struct nvq_waiter *)slot->owner)->done);
}

/* What one hold of the lock reaped. */
struct batch {
	u16 cid[NVQ_REAP_BATCH];	/* plain ring commands, to be told */
	u16 nr;
	u16 ended;			/* all that ended */
};

/*
 * Under q->lock.  What ended and who is told when:
 *
 *	plain ring	by our caller, through task work (the batch)
 *	IOPOLL ring	by the ring's own callback, nvq_poll(); DONE until then
 *	ioctl		was woken by slot_end(); the slot is its owner's from
 *			there, and may be free and in flight again any moment
 */
static void harvest(struct nvq_queue *q, struct batch *b)
{
	unsigned int seen = 0;

	b->nr = 0;
	b->ended = 0;
	while (b->ended < NVQ_REAP_BATCH && seen < q->ring.depth &&
	       nvq_ring_pending(&q->ring)) {
		struct nvme_completion *cqe;
		struct nvq_slot *slot;
		u16 cid;

		/* The phase bit says that the rest of the entry is there. */
		dma_rmb();
		cqe = &q->ring.cqes[q->ring.cq_head];
		cid = cqe->command_id;	/* opaque to the controller */
		nvq_ring_advance(&q->ring);
		seen++;
		if (cid < q->ring.depth)
			cid = array_index_nospec(cid, q->ring.depth);
		if (unlikely(cid >= q->ring.depth ||
			     q->slots[cid].state != NVQ_SLOT_INFLIGHT)) {
			dev_warn_ratelimited(&q->dev, "the controller completed command id %u, which is not in flight; ignored\n",
					     cid);
			continue;
		}
		slot = &q->slots[cid];
		slot_end(q, slot, le16_to_cpu(cqe->status) >> 1,
			 le64_to_cpu(cqe->result.u64));
		b->ended++;
		if (slot->kind == NVQ_IO_TASK)
			b->cid[b->nr++] = cid;
	}
	if (!seen)
		return;
	/* A deleted queue has no doorbell. */
	if (q->hw == NVQ_HW_LIVE)
		nvq_ring_ack(&q->ring);
	WRITE_ONCE(q->kpage->completed, q->completed);
	nvq_publish(q);
}

/*
 * Any context.  Returns the number of commands that ended; those of IOPOLL
 * rings are told by their rings' callbacks only.
 */
int nvq_reap(struct nvq_queue *q)
{
	unsigned long flags;
	struct batch b;
	int i, total = 0;
	bool wake;

	do {
		b.nr = b.ended = 0;
		spin_lock_irqsave(&q->lock, flags);
		if (q->native)
			total = nvq_native_harvest(q);
		else if (q->slots)
			harvest(q, &b);
		wake = b.ended && (q->hw != NVQ_HW_LIVE || q->frozen);
		spin_unlock_irqrestore(&q->lock, flags);
		for (i = 0; i < b.nr; i++)
			nvq_uring_end(q, &q->slots[b.cid[i]]);
		if (wake)
			wake_up_all(&q->wait);
		total += b.ended;
	} while (b.ended == NVQ_REAP_BATCH);
	return total;
}

/* Claims each interrupt: with a vector of its own nobody else can have. */
irqreturn_t nvq_irq(int irq, void *data)
{
	struct nvq_queue *q = data;

	if (nvq_fault(q->ctrl, NVQ_FAULT_IRQ, q->qid))
		return IRQ_HANDLED;
	/* set once while the file is open; the handlers lock and look again */
	if (READ_ONCE(q->native))
		nvq_native_irq(q);
	else
		nvq_reap(q);
	return IRQ_HANDLED;
}
