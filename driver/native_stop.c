// SPDX-License-Identifier: GPL-2.0
/*
 * The native path when it does not simply go on: commands out of time, the end of
 * all commands (recovery, reset, removal), the owner's RESYNC after it, and a staged
 * command that is passed over.
 *
 * q->lock guards everything here; RESYNC holds q->mutex, too, as it creates the
 * hardware queue again.  Called by recover.c (time-outs, end) and ioctl.c (resync,
 * drop).
 */
#include "nvqueue.h"

/*
 * The controller is past touching memory: real completions are harvested, the
 * rest get CQEs of our own behind them, with the phase user space waits for.
 */
void nvq_native_end_all(struct nvq_queue *q, u16 status)
{
	struct nvq_native *n = q->native;
	struct nvq_ring *r = &q->ring;
	unsigned long flags;
	u16 cid;

	spin_lock_irqsave(&q->lock, flags);
	nvq_native_harvest(q);
	/* sent - acked <= depth - 1, so nothing unread is overwritten */
	for (cid = 0; cid < r->depth && q->inflight; cid++) {
		struct nvme_completion *cqe = &r->cqes[r->cq_head];

		if (!nvq_nslot_inflight(&n->slots[cid]))
			continue;
		cqe->command_id = cid;
		cqe->result.u64 = 0;
		/* user space looks at the phase while we write */
		smp_store_release(&cqe->status,
				  cpu_to_le16(status << 1 | r->cq_phase));
		n->slots[cid].state = NVQ_SLOT_FREE;
		nvq_ring_advance(r);
		n->posted++;
		q->inflight--;
		q->completed++;
	}
	/* user space and we must agree on where the rings begin again */
	q->resync = true;
	nvq_publish(q);
	WRITE_ONCE(q->kpage->completed, q->completed);
	spin_unlock_irqrestore(&q->lock, flags);
	nvq_native_wake(q, true);
	wake_up_all(&q->wait);
}

/* recover.c: ids out of time, as expired() there does for slots. */
bool nvq_native_expired(struct nvq_queue *q, u16 *cid, u32 max, u32 *nr,
			bool *late)
{
	struct nvq_native *n = q->native;
	u32 now = jiffies;
	bool any = false;
	u32 i;

	spin_lock_irq(&q->lock);
	nvq_native_harvest(q);
	for (i = 0; i < q->ring.depth && q->inflight; i++) {
		struct nvq_nslot *slot = &n->slots[i];

		if (!nvq_nslot_inflight(slot) ||
		    (s32)(now - slot->deadline) < 0)
			continue;
		any = true;
		*late |= slot->late;
		slot->late = true;
		slot->deadline = now + n->timeout;
		if (*nr == max)
			continue;
		slot->state = NVQ_SLOT_ABORTING;
		cid[(*nr)++] = i;
	}
	spin_unlock_irq(&q->lock);
	return any;
}

/*
 * The Abort of command @cid has returned.  Until then the id was in use, or it
 * could have hit a command that took the id meanwhile.
 */
void nvq_native_aborted(struct nvq_queue *q, u16 cid)
{
	struct nvq_nslot *slot = &q->native->slots[cid];

	spin_lock_irq(&q->lock);
	if (slot->state == NVQ_SLOT_HELD) {
		slot->state = NVQ_SLOT_FREE;
		WRITE_ONCE(q->native->nr_held, q->native->nr_held - 1);
	} else if (slot->state == NVQ_SLOT_ABORTING) {
		slot->state = NVQ_SLOT_INFLIGHT;
	}
	spin_unlock_irq(&q->lock);
	wake_up_all(&q->wait);
}

/* Under q->lock: the rings begin anew. */
static int resync_begin(struct nvq_queue *q)
{
	struct nvq_native *n = q->native;
	u32 staged;

	if (q->hw == NVQ_HW_DEAD)
		return -ENODEV;
	if (!q->resync)
		return 0;
	nvq_native_consume(n, READ_ONCE(n->upage->cq_head));
	if (n->consumed != n->posted)
		return -EBUSY;
	staged = READ_ONCE(n->upage->sq_tail) - n->sq_head;
	n->dropped += min(staged, n->stage_mask + 1);
	n->sq_head = n->posted = n->consumed = n->acked = n->sent = 0;
	n->cq_ack = 0;
	WRITE_ONCE(n->upage->sq_tail, 0);
	WRITE_ONCE(n->upage->cq_head, 0);
	WRITE_ONCE(q->kpage->sq_head, 0);
	WRITE_ONCE(q->kpage->submit_error, 0);
	WRITE_ONCE(q->kpage->dropped, n->dropped);
	return 1;
}

/*
 * Passes over the staged command @index, if it is the next in turn.  Under the
 * lock that takes commands: user space cannot move the ones behind it up while
 * somebody may be taking them.
 */
int nvq_native_drop(struct nvq_queue *q, u32 index)
{
	struct nvq_native *n = q->native;
	int err = 0;
	u32 staged;

	spin_lock_irq(&q->lock);
	staged = READ_ONCE(n->upage->sq_tail) - n->sq_head;
	if (index != n->sq_head) {
		err = -EAGAIN;
	} else if (!staged || staged > n->stage_mask + 1) {
		err = -EINVAL;
	} else {
		n->sq_head++;
		WRITE_ONCE(q->kpage->dropped, ++n->dropped);
		WRITE_ONCE(q->kpage->submit_error, 0);
		/* last, as after a submission */
		smp_store_release(&q->kpage->sq_head, n->sq_head);
	}
	spin_unlock_irq(&q->lock);
	return err;
}

static int resync_once(struct nvq_queue *q)
{
	int err;

	mutex_lock(&q->mutex);
	spin_lock_irq(&q->lock);
	err = resync_begin(q);
	spin_unlock_irq(&q->lock);
	if (err > 0)
		err = nvq_queue_create_hw(q);
	mutex_unlock(&q->mutex);
	return err;
}

/* A reset that comes between leaves the queue as it was: then again. */
int nvq_native_resync(struct nvq_queue *q)
{
	u32 then;
	int err;

	do {
		err = nvq_ctrl_wait_live(q->ctrl);
		if (err)
			return err;
		then = READ_ONCE(q->ctrl->generation);
		err = resync_once(q);
	} while (err && err != -EBUSY && nvq_ctrl_was_reset(q->ctrl, then));
	return err;
}
