// SPDX-License-Identifier: GPL-2.0
/*
 * A queue's life from open to close: memory, the hardware queue, and the end of
 * what is in flight.
 *
 * q->mutex around creating, ending and freeing; slots and state under q->lock.
 * Called by qfile.c (open, release) and recover.c.
 */
#include <linux/slab.h>

#include "nvqueue.h"

/* Resets that one open() sits out. */
#define NVQ_OPEN_TRIES		3

/*
 * Ends what is in flight: real completions first, then the others by CQEs of
 * our own, so that there is one path out.  The queue is stopped and the
 * controller past touching memory.
 */
void nvq_queue_end_all(struct nvq_queue *q, u16 status)
{
	struct nvq_ring *r = &q->ring;
	unsigned long flags;
	u16 cid, at, phase;

	if (q->native) {
		nvq_native_end_all(q, status);
		return;
	}
	nvq_reap(q);
	spin_lock_irqsave(&q->lock, flags);
	at = r->cq_head;
	phase = r->cq_phase;
	/* inflight <= depth - 1, so they fit behind the head */
	for (cid = 0; q->slots && cid < r->depth; cid++) {
		struct nvme_completion *cqe = &r->cqes[at];

		if (q->slots[cid].state != NVQ_SLOT_INFLIGHT)
			continue;
		cqe->command_id = cid;
		cqe->result.u64 = 0;
		/* user space looks at the phase while we write */
		smp_store_release(&cqe->status,
				  cpu_to_le16(status << 1 | phase));
		if (++at == r->depth) {
			at = 0;
			phase ^= 1;
		}
	}
	spin_unlock_irqrestore(&q->lock, flags);
	nvq_reap(q);
}

/*
 * No DMA address of this queue stays: lists and rings.  Submitters between
 * slot and doorbell are waited for; what they do there is bounded.
 */
void nvq_queue_dma_done(struct nvq_queue *q)
{
	u32 i;

	wait_event(q->wait, !READ_ONCE(q->held));
	if (q->ctrl->leak || !q->slots)
		return;
	for (i = 0; i < q->ring.depth; i++)
		nvq_list_free(q->ctrl, &q->slots[i].list);
	nvq_bufs_unmap(q);
	nvq_ring_unmap(&q->ring);
}

/* Under q->mutex: CQ, then SQ; live for submitters on success. */
int nvq_queue_create_hw(struct nvq_queue *q)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&q->lock, flags);
	nvq_ring_reset(&q->ring);
	q->generation++;
	nvq_publish(q);
	spin_unlock_irqrestore(&q->lock, flags);
	q->on_ctrl = true;
	err = nvq_hw_create(q->ctrl, &q->ring, q->kind == NVQ_KIND_IRQ,
			    q->vector);
	if (err > 0) {
		/* refused, so there is none */
		q->on_ctrl = false;
		err = -EIO;
	}
	if (err)
		return err;
	spin_lock_irqsave(&q->lock, flags);
	if (q->hw != NVQ_HW_DEAD)
		q->hw = NVQ_HW_LIVE;
	q->resync = false;
	nvq_publish(q);
	spin_unlock_irqrestore(&q->lock, flags);
	wake_up_all(&q->wait);
	return 0;
}

static void queue_free(struct nvq_queue *q)
{
	struct nvq_slot *slots = q->slots;
	unsigned long flags;
	struct page *kpage;
	u16 *order;

	spin_lock_irqsave(&q->lock, flags);
	q->slots = NULL;
	q->kpage = NULL;
	order = q->order;
	q->order = NULL;
	kpage = q->kpage_page;
	q->kpage_page = NULL;
	spin_unlock_irqrestore(&q->lock, flags);
	if (q->ctrl->leak) {
		dev_err(&q->dev, "the controller may still write to memory: leaking the rings of queue %u\n",
			q->qid);
		return;
	}
	if (kpage)
		__free_page(kpage);
	nvq_ring_free(&q->ring);
	kvfree(order);
	kvfree(slots);
}

static int queue_alloc(struct nvq_queue *q)
{
	u16 depth = q->ctrl->depth, *order, i;
	struct nvq_slot *slots;
	struct page *kpage;
	int err = -ENOMEM;

	BUILD_BUG_ON(sizeof(struct nvq_kpage) != 512);
	slots = kvcalloc(depth, sizeof(*slots), GFP_KERNEL);
	order = kvcalloc(depth, sizeof(*order), GFP_KERNEL);
	kpage = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (slots && order && kpage)
		err = nvq_ring_alloc(&q->ring, q->ctrl, q->qid, depth);
	if (err) {
		kvfree(slots);
		kvfree(order);
		if (kpage)
			__free_page(kpage);
		return err;
	}
	/* A full SQ has one free entry (base 2.0 section 3.3.1.5). */
	q->free = NVQ_NO_SLOT;
	for (i = depth - 1; i--;) {
		slots[i].next = q->free;
		q->free = i;
	}
	q->kpage_page = kpage;
	q->kpage = page_address(kpage);
	q->order = order;
	/* From here a changed namespace makes the queue stale (ns.c). */
	spin_lock_irq(&q->lock);
	q->slots = slots;
	spin_unlock_irq(&q->lock);
	return 0;
}

static void reset_counters(struct nvq_queue *q)
{
	q->submitted = 0;
	q->completed = 0;
	q->reap_empty = 0;
	q->iopoll_empty = 0;
	q->pass_open = false;
	q->generation = 0;
	q->used = false;
	q->stale = false;
	q->resync = false;
}

static int queue_open_locked(struct nvq_queue *q)
{
	u32 seq = READ_ONCE(q->ctrl->ns_seq);
	int err;

	if (q->hw == NVQ_HW_DEAD)
		return -ENODEV;
	reset_counters(q);
	err = nvq_ns_default(q->ctrl, &q->ns);
	if (err)
		return err;
	q->ns_key = nvq_ns_key(0, &q->ns);
	err = queue_alloc(q);
	if (err)
		return err;
	err = nvq_queue_create_hw(q);
	/* It may have changed while we were not to be marked yet. */
	if (!err && seq != READ_ONCE(q->ctrl->ns_seq))
		err = nvq_queue_refresh(q);
	q->opened = !err;
	return err;
}

/* True if a reset has begun since the controller's generation was @then. */
bool nvq_ctrl_was_reset(struct nvq_ctrl *ctrl, u32 then)
{
	return READ_ONCE(ctrl->state) == NVQ_CTRL_RESETTING ||
	       READ_ONCE(ctrl->generation) != then;
}

/* By the one owner: makes the hardware queue. */
int nvq_queue_open(struct nvq_queue *q)
{
	unsigned int tries = 0;
	u32 then;
	int err;

	do {
		err = nvq_ctrl_wait_live(q->ctrl);
		if (err)
			return err;
		then = READ_ONCE(q->ctrl->generation);
		mutex_lock(&q->mutex);
		err = queue_open_locked(q);
		mutex_unlock(&q->mutex);
		if (!err)
			break;
		nvq_queue_close(q);
		/* not the queue's fault; but it may be what costs the resets */
	} while (nvq_ctrl_was_reset(q->ctrl, then) && ++tries < NVQ_OPEN_TRIES);
	if (err)
		return err;
	schedule_delayed_work(&q->watch, NVQ_WATCH_PERIOD);
	return 0;
}

/*
 * The last reference to the file is gone: no ring command is pending, but
 * commands of killed waiters may be.
 */
void nvq_queue_close(struct nvq_queue *q)
{
	mutex_lock(&q->mutex);
	q->opened = false;
	mutex_unlock(&q->mutex);
	cancel_delayed_work_sync(&q->watch);

	nvq_queue_retire(q);
	mutex_lock(&q->mutex);
	if (q->slots) {
		nvq_queue_end_all(q, NVQ_SC_HOST_ABORTED);
		nvq_queue_dma_done(q);
		nvq_queue_bury(q);
		nvq_native_free(q);
		queue_free(q);
	}
	mutex_unlock(&q->mutex);
}
