// SPDX-License-Identifier: GPL-2.0
/*
 * An I/O queue: its slots, submission and reaping, and its life from open to
 * close.
 *
 * A slot is a command id.  It goes FREE -> HELD (its submitter maps the data,
 * which takes bounded time) -> INFLIGHT (the controller has the command) ->
 * DONE (it ended, by its CQE or by a synthesized one) -> FREE (its owner was
 * told; TOLD for a moment between on an IOPOLL ring).  q->lock guards all of these steps; the DMA mapping of a slot exists
 * only in HELD and INFLIGHT.
 *
 * Called by the two ways in (uring.c, ioctl.c), the interrupt, qfile.c (open,
 * close) and recover.c.
 */
#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nvqueue.h"

#define NO_SLOT		U16_MAX

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

/* Under q->lock. */
static void slot_free(struct nvq_queue *q, struct nvq_slot *slot)
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
		slot_free(q, slot);
	spin_unlock_irqrestore(&q->lock, flags);
	wake_up_all(&q->wait);
}

/* Gives a slot back whose map is released. */
void nvq_slot_put(struct nvq_queue *q, struct nvq_slot *slot)
{
	unsigned long flags;
	bool wake;

	spin_lock_irqsave(&q->lock, flags);
	slot_free(q, slot);
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
	if (unlikely(q->hw != NVQ_HW_LIVE || q->frozen || q->free == NO_SLOT))
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
 * Waits for a slot, killably and not for ever.  On a poll queue nobody may be
 * polling but us, so we do.
 */
static int slot_wait(struct nvq_queue *q, struct nvq_slot **slot, u32 timeout)
{
	unsigned long end = jiffies + timeout, flags;
	long left;
	int err;

	spin_lock_irqsave(&q->lock, flags);
	q->slot_waiters++;
	spin_unlock_irqrestore(&q->lock, flags);
	for (;;) {
		bool poll = q->kind == NVQ_KIND_POLL;

		left = wait_event_killable_timeout(q->wait,
				(err = slot_try(q, slot)) != -EAGAIN,
				poll ? 1 : timeout);
		if (err != -EAGAIN)
			break;
		if (left < 0) {
			err = left;
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
	/*
	 * A reset may have ended every command between, so that the file is
	 * gone already: the plug has its own reference.
	 */
	put_device(&q->dev);
	kfree(cb);
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
	slot_free(q, slot);
	slot_unhold(q);
	spin_unlock_irqrestore(&q->lock, flags);
	nvq_map_unbounce(&io->map);
	return err;
}

/*
 * Takes a slot for @io and submits it.  0: the command will end exactly once,
 * by io->kind.  Otherwise nothing happened and io->map is still the caller's:
 * -EAGAIN (only if @nonblock), -ETIMEDOUT, -ERESTARTSYS (killed), -ESTALE,
 * -ENODEV, or what mapping said.
 */
int nvq_submit(struct nvq_queue *q, struct nvq_io *io, bool nonblock)
{
	struct nvq_slot *slot;
	int err;

	do {
		err = slot_try(q, &slot);
		if (err == -EAGAIN && !nonblock)
			err = slot_wait(q, &slot, io->timeout);
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

/* ---------------------------------------------------------------- polling */

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
		slot_free(q, end[i].slot);
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

/* Claims each interrupt: with a vector of its own nobody else can have. */
irqreturn_t nvq_irq(int irq, void *data)
{
	struct nvq_queue *q = data;

	/* set once while the file is open; the handlers lock and look again */
	if (READ_ONCE(q->native))
		nvq_native_irq(q);
	else
		nvq_reap(q);
	return IRQ_HANDLED;
}

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

/* --------------------------------------------------------- open and close */

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
	q->free = NO_SLOT;
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

/* By the one owner: makes the hardware queue. */
int nvq_queue_open(struct nvq_queue *q)
{
	int err;

	do {
		err = nvq_ctrl_wait_live(q->ctrl);
		if (err)
			return err;
		mutex_lock(&q->mutex);
		err = queue_open_locked(q);
		mutex_unlock(&q->mutex);
		if (!err)
			break;
		nvq_queue_close(q);
		/* a reset that began meanwhile is waited out like any other */
	} while (READ_ONCE(q->ctrl->state) == NVQ_CTRL_RESETTING);
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
