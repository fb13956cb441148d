// SPDX-License-Identifier: GPL-2.0
/*
 * The native path: batches of staged commands, one kernel entry each.
 *
 * SUBMIT takes what user space staged, validates and builds each command from
 * its own copy (stage.h) and rings once.  On the way it harvests: ids whose CQEs
 * have arrived are free again, and CQ entries that user space has read go back
 * to the controller.  User space finds completions by itself in the mapped CQ.
 *
 * Indices that live in user memory (staged tail, consumed head) are read once a
 * call and clamped to what we know; nothing a user can write is state.  q->lock
 * guards everything here; freeing happens under q->mutex.
 *
 * Called by ioctl.c and uring.c (submit), qfile.c (mmap), queue.c (close) and
 * native_wait.c; what ends commands is in native_stop.c.
 */
#include <linux/log2.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nvqueue.h"

/* Commands per hold of the lock. */
#define HOLD_BATCH	256

/* ----------------------------------------------------------- life and death */

static void native_release(struct nvq_native *n)
{
	u32 i;

	if (n->staging_pages)
		for (i = 0; i < 1U << n->staging_order; i++)
			__free_page(n->staging_pages + i);
	if (n->upage_page)
		__free_page(n->upage_page);
	kvfree(n->slots);
	kvfree(n->views);
	kvfree(n->bufs);
	kfree(n);
}

static struct nvq_native *native_alloc(struct nvq_queue *q)
{
	u32 entries = roundup_pow_of_two(q->ring.depth);
	struct nvq_native *n;

	BUILD_BUG_ON(sizeof(struct nvq_sqe) != sizeof(struct nvme_command));
	BUILD_BUG_ON(sizeof(struct nvq_upage) != 64);
	BUILD_BUG_ON(sizeof(struct nvq_nslot) != 8);
	BUILD_BUG_ON(!is_power_of_2(NVQ_MAX_BUFS));
	n = kzalloc(sizeof(*n), GFP_KERNEL);
	if (!n)
		return NULL;
	n->staging_order = get_order(entries * sizeof(struct nvq_sqe));
	n->staging_pages = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO,
				       n->staging_order);
	if (n->staging_pages)
		split_page(n->staging_pages, n->staging_order);
	n->upage_page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	/* beyond the depth they stay free: room for a masked index */
	n->slots = kvcalloc(entries, sizeof(*n->slots), GFP_KERNEL);
	n->views = kvcalloc(NVQ_MAX_BUFS, sizeof(*n->views), GFP_KERNEL);
	n->bufs = kvcalloc(NVQ_MAX_BUFS, sizeof(*n->bufs), GFP_KERNEL);
	if (!n->staging_pages || !n->upage_page || !n->slots || !n->views ||
	    !n->bufs) {
		native_release(n);
		return NULL;
	}
	n->staging = page_address(n->staging_pages);
	n->upage = page_address(n->upage_page);
	n->stage_mask = entries - 1;
	n->timeout = nvq_io_timeout * HZ;
	n->ctx.bufs = n->views;
	n->ctx.buf_mask = NVQ_MAX_BUFS - 1;
	n->ctx.cid_mask = entries - 1;
	n->ctx.max_xfer = q->ctrl->max_xfer;
	n->ctx.guard = q->ctrl->guard.dma;
	n->ctx.depth = q->ring.depth;
	return n;
}

/* Under q->lock: what the format says now. */
void nvq_native_take_ns(struct nvq_queue *q)
{
	struct nvq_stage_ctx *c = &q->native->ctx;

	c->nsid = q->ns.nsid;
	c->lba_shift = q->ns.lba_shift;
	c->nsze = q->ns.nsze;
	nvq_stage_set_keys(c);
}

/* Under q->lock: of the descriptor that submits. */
static void native_set_writable(struct nvq_native *n, bool writable)
{
	if (likely(n->ctx.writable == writable))
		return;
	n->ctx.writable = writable;
	nvq_stage_set_keys(&n->ctx);
}

/*
 * Makes the file a native one.  -EBUSY: it sent standard commands.  May be
 * called again.  Not under q->mutex: mmap(2) calls with the mm's lock held,
 * which registering a buffer takes under that mutex.
 */
int nvq_native_get(struct nvq_queue *q)
{
	struct nvq_native *n;
	int err = 0;

	/* set once while the file is open */
	if (READ_ONCE(q->native))
		return 0;
	n = native_alloc(q);
	if (!n)
		return -ENOMEM;
	spin_lock_irq(&q->lock);
	/* another thread may have been faster, with this or a command */
	if (!q->native && q->used) {
		err = -EBUSY;
	} else if (!q->native) {
		/* release: who finds it without the lock finds it whole */
		smp_store_release(&q->native, n);
		q->used = true;
		nvq_native_take_ns(q);
		n = NULL;
	}
	spin_unlock_irq(&q->lock);
	if (n)
		native_release(n);
	return err;
}

/* The last close, q->mutex held, DMA over. */
void nvq_native_free(struct nvq_queue *q)
{
	struct nvq_native *n = q->native;

	if (!n)
		return;
	nvq_bufs_free(q);
	spin_lock_irq(&q->lock);
	q->native = NULL;
	spin_unlock_irq(&q->lock);
	if (!q->ctrl->leak)
		native_release(n);
}

/* --------------------------------------------------------------- harvesting */

/*
 * It fills a CQ entry that no command of ours accounts for, so it counts as one
 * sent: native_room() bounds what is in flight and unread together.
 */
static noinline void stray_cqe(struct nvq_queue *q, u16 cid)
{
	q->native->sent++;
	dev_warn_ratelimited(&q->dev, "the controller completed command id %u, which is not in flight; ignored\n",
			     cid);
}

/*
 * Under q->lock: frees the ids of the CQEs that have arrived from the head on, up
 * to where the ring wraps.  Returns how many CQEs; *@stray: of these, nobody's.
 */
static __always_inline u32 harvest_run(struct nvq_queue *q, u32 *stray)
{
	struct nvq_native *n = q->native;
	struct nvq_ring *r = &q->ring;
	const struct nvme_completion *cqe = &r->cqes[r->cq_head];
	const struct nvme_completion *end = r->cqes + r->depth;
	u32 depth = n->ctx.depth, mask = n->ctx.cid_mask;
	struct nvq_nslot *slots = n->slots, *slot;
	u32 phase = r->cq_phase, cid, seen;

	for (; cqe < end; cqe++) {
		if ((le16_to_cpu(READ_ONCE(cqe->status)) & 1) != phase)
			break;
		/* The phase bit says that the rest of the entry is there. */
		dma_rmb();
		cid = READ_ONCE(cqe->command_id);
		if (likely(cid < depth)) {
			slot = &slots[cid & mask];
			if (likely(slot->state == NVQ_SLOT_INFLIGHT)) {
				slot->state = NVQ_SLOT_FREE;
				continue;
			}
			if (slot->state == NVQ_SLOT_ABORTING) {
				slot->state = NVQ_SLOT_HELD;
				WRITE_ONCE(n->nr_held, n->nr_held + 1);
				continue;
			}
		}
		++*stray;
		stray_cqe(q, cid);
	}
	seen = cqe - &r->cqes[r->cq_head];
	r->cq_head += seen;
	if (cqe == end) {
		r->cq_head = 0;
		r->cq_phase ^= 1;
	}
	return seen;
}

static __always_inline u32 harvest(struct nvq_queue *q)
{
	u32 seen, stray = 0;

	seen = harvest_run(q, &stray);
	/* around the corner, once: no more than a ring full in one go */
	if (!q->ring.cq_head && seen)
		seen += harvest_run(q, &stray);
	q->inflight -= seen - stray;
	q->completed += seen - stray;
	q->native->posted += seen;
	return seen;
}

/* Under q->lock: frees the ids whose CQEs have arrived; how many CQEs. */
u32 nvq_native_harvest(struct nvq_queue *q)
{
	return harvest(q);
}

/* Under q->lock: @nr entries that were read go back to the controller. */
static noinline void give_back(struct nvq_queue *q, u32 nr)
{
	struct nvq_native *n = q->native;

	n->acked += nr;
	n->cq_ack = nvq_cq_index_add(&q->ring, n->cq_ack, nr);
	nvq_ring_ack_to(&q->ring, n->cq_ack);
}

/*
 * Under q->lock: gives read entries back.  A doorbell each time would double
 * the doorbells, so it waits until half of the CQ is at stake, or until the
 * room is needed.
 */
static __always_inline void native_ack(struct nvq_queue *q, bool needed)
{
	struct nvq_native *n = q->native;
	u32 nr = n->consumed - n->acked;

	if (unlikely(nr && (needed || nr >= q->ring.depth / 2U)))
		give_back(q, nr);
}

/* --------------------------------------------------------------- submission */

/* Under q->lock. */
static int native_check(struct nvq_queue *q)
{
	if (unlikely(q->hw == NVQ_HW_DEAD))
		return -ENODEV;
	if (unlikely(q->stale || q->resync))
		return -ESTALE;
	if (unlikely(q->hw != NVQ_HW_LIVE || q->frozen))
		return -EAGAIN;
	return 0;
}

/* Its owner has seen a held id come back, and waits for the Abort to do so. */
static noinline int id_taken(const struct nvq_nslot *slot)
{
	return slot->state == NVQ_SLOT_HELD ? -EAGAIN : -EBUSY;
}

/* How many commands were taken, and why not all: by value, for registers. */
struct native_taken {
	u32 nr;
	int err;
};

/*
 * Under q->lock: takes up to @nr commands that lie one after the other, from
 * shared or copied memory, into SQ entries that do, too.  The controller does
 * not look beyond the tail it was told, so a refused command leaves nothing
 * behind.
 */
static __always_inline struct native_taken
native_take_run(struct nvq_native *n, const __le64 *entry,
		struct nvme_command *to, u32 nr, u32 deadline)
{
	const struct nvq_stage_ctx *c = &n->ctx;
	const __le64 *end = entry + nr * 8;
	__le64 *sqe = (__le64 *)to;
	struct nvq_nslot *slot;
	struct nvq_staged s;
	int err = 0;
	u32 cid;

	for (; entry < end; entry += 8, sqe += 8) {
		nvq_stage_read(&s, entry);
		nvq_stage_pass(entry, sqe);
		cid = nvq_stage_cid(&s);
		if (unlikely(cid >= c->depth)) {
			err = -EINVAL;
			break;
		}
		slot = &n->slots[cid & c->cid_mask];
		if (unlikely(slot->state != NVQ_SLOT_FREE)) {
			err = id_taken(slot);
			break;
		}
		err = nvq_stage_build(c, &s, sqe);
		if (unlikely(err))
			break;
		*slot = (struct nvq_nslot){
			.deadline = deadline,
			.buf = s.buf,
			.state = NVQ_SLOT_INFLIGHT,
		};
	}
	return (struct native_taken){ (sqe - (__le64 *)to) / 8, err };
}

/* Under q->lock: how many commands both rings have room for. */
static __always_inline u32 native_room(struct nvq_queue *q, u32 want)
{
	struct nvq_native *n = q->native;
	u32 limit = q->ring.depth - 1;

	/*
	 * A command holds its SQ entry at most until its CQE, and needs room
	 * for that until the entry is given back: one bound for both.
	 */
	if (unlikely(n->sent - n->acked + want > limit))
		native_ack(q, true);
	return limit - (n->sent - n->acked);
}

struct native_batch {
	const __le64 *base;	/* staging ring, or a copy */
	u32 mask;		/* of its index */
	u32 from;		/* free running index of the first */
	u32 nr;
};

/* Under q->lock. */
static __always_inline struct native_taken
native_take_batch(struct nvq_queue *q, const struct native_batch *b)
{
	struct nvq_native *n = q->native;
	struct nvq_ring *r = &q->ring;
	u32 deadline = (u32)jiffies + n->timeout;
	u32 room = native_room(q, b->nr), left = min(b->nr, room), taken = 0;
	struct native_taken run = { 0 };

	/* in runs that wrap neither here nor there */
	while (left && !run.err) {
		u32 from = (b->from + taken) & b->mask, nr;

		nr = min3(left, r->depth - (u32)r->sq_tail,
			  b->mask - from + 1);
		run = native_take_run(n, b->base + from * 8,
				      &r->sqes[r->sq_tail], nr, deadline);
		taken += run.nr;
		left -= run.nr;
		r->sq_tail += nvq_fault_sqes(q, &r->sqes[r->sq_tail], run.nr);
		if (r->sq_tail == r->depth)
			r->sq_tail = 0;
	}
	if (unlikely(!run.err && b->nr > room))
		run.err = -ENOSPC;
	n->sent += taken;
	q->inflight += taken;
	q->submitted += taken;
	nvq_ring_kick(r);
	return (struct native_taken){ taken, run.err };
}

/* Under q->lock: the kernel page after a call. */
static void native_publish(struct nvq_queue *q, int err)
{
	struct nvq_kpage *k = q->kpage;

	WRITE_ONCE(k->submitted, q->submitted);
	WRITE_ONCE(k->completed, q->completed);
	WRITE_ONCE(k->submit_error, err);
	WRITE_ONCE(k->sq_doorbells, q->ring.sq_doorbells);
	WRITE_ONCE(k->cq_doorbells, q->ring.cq_doorbells);
	/* last, release: who sees the head sees the error beside it */
	smp_store_release(&k->sq_head, q->native->sq_head);
}

/* One hold of the lock.  Returns how many were taken, or the error. */
static __always_inline int native_hold(struct nvq_queue *q, u32 max,
				       bool writable, bool *more)
{
	struct nvq_native *n = q->native;
	struct native_batch b;
	struct native_taken t = { 0 };
	u32 staged;

	spin_lock_irq(&q->lock);
	native_set_writable(n, writable);
	t.err = native_check(q);
	if (unlikely(t.err))
		goto unlock;
	harvest(q);
	nvq_native_consume(n, READ_ONCE(n->upage->cq_head));
	native_ack(q, false);
	/*
	 * Acquire: the commands below the tail were written before it.  They
	 * may still change under us; each word is read once.
	 */
	staged = smp_load_acquire(&n->upage->sq_tail) - n->sq_head;
	if (unlikely(staged > n->stage_mask + 1)) {
		t.err = -EINVAL;
		goto publish;
	}
	b = (struct native_batch){
		.base = n->staging,
		.mask = n->stage_mask,
		.from = n->sq_head,
		.nr = min3(staged, max, (u32)HOLD_BATCH),
	};
	t = native_take_batch(q, &b);
	n->sq_head += t.nr;
	*more = t.nr == HOLD_BATCH && staged > t.nr && max > t.nr;
publish:
	native_publish(q, t.err);
unlock:
	spin_unlock_irq(&q->lock);
	return t.nr ? t.nr : t.err;
}

/* A recovery, format change or Abort is under way: until it is over, killably. */
static noinline int native_wait_live(struct nvq_queue *q)
{
	long ret;

	ret = wait_event_killable_timeout(q->wait,
			READ_ONCE(q->hw) == NVQ_HW_DEAD ||
			READ_ONCE(q->resync) ||
			(READ_ONCE(q->hw) == NVQ_HW_LIVE &&
			 !READ_ONCE(q->frozen) &&
			 !READ_ONCE(q->native->nr_held)), q->native->timeout);
	if (ret <= 0)
		return ret ? -EINTR : -ETIMEDOUT;
	return 0;
}

/*
 * Takes up to @max staged commands.  Returns how many, or the error if none
 * was; a recovery, a format change or an Abort under way is waited out.
 */
int nvq_native_submit(struct nvq_queue *q, u32 max, bool writable,
		      bool nonblock)
{
	int ret, total = 0;
	bool more;

	for (;;) {
		more = false;
		ret = native_hold(q, max - total, writable, &more);
		if (ret > 0)
			total += ret;
		if (likely(!more && ret != -EAGAIN))
			return total ? total : ret;
		/* who stages more meanwhile must not keep us here for ever */
		if (total > (int)q->native->stage_mask)
			return total;
		if (ret != -EAGAIN)
			continue;
		if (total || nonblock)
			return total ? total : -EAGAIN;
		ret = native_wait_live(q);
		if (ret)
			return ret;
	}
}

/* One hold of the lock, with commands from a private copy. */
static struct native_taken native_hold_copy(struct nvq_queue *q,
					    const struct native_batch *b,
					    u32 cq_head, bool writable)
{
	struct nvq_native *n = q->native;
	struct native_taken t = { 0 };

	spin_lock_irq(&q->lock);
	native_set_writable(n, writable);
	/*
	 * Where SUBMIT, RESYNC and poll(2) look for it: there is no mapping.  Of a
	 * queue that takes nothing, too, or nobody could say that all was read.
	 */
	WRITE_ONCE(n->upage->cq_head, cq_head);
	t.err = native_check(q);
	if (!t.err) {
		nvq_native_harvest(q);
		nvq_native_consume(n, cq_head);
		native_ack(q, false);
		t = native_take_batch(q, b);
		native_publish(q, t.err);
	}
	spin_unlock_irq(&q->lock);
	return t;
}

/* SUBMIT from the caller's memory; a recovery under way is waited out, too. */
int nvq_native_submit_from(struct nvq_queue *q,
			   const struct nvq_submit_from *from, bool writable)
{
	u32 nr = min_t(u32, from->nr, HOLD_BATCH);
	struct native_batch b = { .mask = HOLD_BATCH - 1, .nr = nr };
	struct native_taken t;
	__le64 *copy;

	copy = memdup_user(u64_to_user_ptr(from->sqes),
			   nr * sizeof(struct nvq_sqe));
	if (IS_ERR(copy))
		return PTR_ERR(copy);
	b.base = copy;
	for (;;) {
		t = native_hold_copy(q, &b, from->cq_head, writable);
		if (t.err != -EAGAIN)
			break;
		t.err = native_wait_live(q);
		if (t.err)
			break;
	}
	kfree(copy);
	return t.nr ? t.nr : t.err;
}
