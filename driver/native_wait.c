// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for native completions: one waiter a queue, an ioctl or an io_uring
 * command, woken when the entry it asked for has been written.
 *
 * The interrupt looks at that one entry, not at every one.  q->lock guards the
 * waiter; who takes it off the queue tells it, after unlocking.  Every wait ends:
 * by the entry, its time-out (the watch looks), recovery or removal.
 */
#include <linux/sched/signal.h>

#include "nvqueue.h"

/* Under q->lock, for poll(2): is there what user space has not read? */
bool nvq_native_unread(struct nvq_queue *q)
{
	struct nvq_native *n = q->native;

	nvq_native_harvest(q);
	nvq_native_consume(n, READ_ONCE(n->upage->cq_head));
	return n->posted != n->consumed;
}

/* Under q->lock: has the entry the waiter asked for been written? */
static bool wait_met(struct nvq_queue *q)
{
	struct nvq_native *n = q->native;
	const struct nvme_completion *cqe = &q->ring.cqes[n->wait_index];

	/* harvested already: the entry may have been reused since */
	if ((s32)(n->posted - n->wait_target) >= 0)
		return true;
	return (le16_to_cpu(READ_ONCE(cqe->status)) & 1) == n->wait_phase;
}

/* Under q->lock: takes the waiter off. */
static void *wait_take(struct nvq_native *n, bool *sync)
{
	void *w = n->waiter;

	*sync = n->wait_sync;
	n->waiter = NULL;
	return w;
}

static void wait_tell(void *waiter, bool sync, int res)
{
	if (!waiter)
		return;
	if (sync)
		complete(&((struct nvq_waiter *)waiter)->done);
	else
		nvq_uring_wait_done(waiter, res);
}

/*
 * Any context: wakes the waiter if its time has come.  @stopped: whatever is
 * there, as nothing more will come of itself.
 */
void nvq_native_wake(struct nvq_queue *q, bool stopped)
{
	unsigned long flags;
	void *w = NULL;
	bool sync = false;
	int res = 0;

	spin_lock_irqsave(&q->lock, flags);
	if (q->native && q->native->waiter) {
		if (wait_met(q)) {
			w = wait_take(q->native, &sync);
		} else if (stopped) {
			w = wait_take(q->native, &sync);
			res = q->hw == NVQ_HW_DEAD ? -ENODEV : -ESTALE;
		} else if (time_after(jiffies, q->native->wait_deadline)) {
			w = wait_take(q->native, &sync);
			res = -ETIME;
		}
	}
	spin_unlock_irqrestore(&q->lock, flags);
	wait_tell(w, sync, res);
}

/*
 * Under q->lock: arms for @want unread completions, clamped to what can come.
 * 1: they are there already.
 */
static int wait_arm(struct nvq_queue *q, u32 want, u32 timeout_ms, void *w,
		    bool sync)
{
	struct nvq_native *n = q->native;
	struct nvq_ring *r = &q->ring;
	u32 unread, ahead;

	if (q->hw == NVQ_HW_DEAD)
		return -ENODEV;
	if (q->resync)
		return -ESTALE;
	if (n->waiter)
		return -EBUSY;
	nvq_native_harvest(q);
	nvq_native_consume(n, READ_ONCE(n->upage->cq_head));
	unread = n->posted - n->consumed;
	want = min(want, unread + q->inflight);
	if (want <= unread)
		return 1;
	/* that many entries beyond the last one harvested */
	ahead = want - unread;
	n->wait_target = n->posted + ahead;
	n->wait_index = nvq_cq_index_add(r, r->cq_head, ahead - 1);
	n->wait_phase = r->cq_phase ^
			(r->cq_head + ahead - 1 >= r->depth);
	n->wait_deadline = jiffies + nvq_timeout(timeout_ms, nvq_io_timeout);
	n->wait_sync = sync;
	n->waiter = w;
	/*
	 * The interrupt of the last entry may have come before the waiter was
	 * there: look again.  The lock orders us with the handler, which finds
	 * the waiter from now on.
	 */
	if (!wait_met(q))
		return 0;
	n->waiter = NULL;
	return 1;
}

/* The file's own thread waits: killably, and no longer than it said. */
int nvq_native_wait_sync(struct nvq_queue *q, u32 want, u32 timeout_ms)
{
	unsigned long timeout = nvq_timeout(timeout_ms, nvq_io_timeout);
	struct nvq_waiter w;
	bool taken;
	long left;
	int ret;

	init_completion(&w.done);
	spin_lock_irq(&q->lock);
	ret = wait_arm(q, want, timeout_ms, &w, true);
	spin_unlock_irq(&q->lock);
	if (ret)
		return ret < 0 ? ret : 0;
	left = wait_for_completion_killable_timeout(&w.done, timeout);
	spin_lock_irq(&q->lock);
	taken = q->native->waiter != &w;
	if (!taken)
		q->native->waiter = NULL;
	if (q->hw == NVQ_HW_DEAD)
		ret = -ENODEV;
	else if (q->resync)
		ret = -ESTALE;
	spin_unlock_irq(&q->lock);
	/*
	 * Taken as the time was up: whoever did is about to complete what lies
	 * on our stack.
	 */
	if (taken && left <= 0) {
		wait_for_completion(&w.done);
		left = 1;
	}
	if (left < 0)
		return -EINTR;
	return left ? ret : -ETIME;
}

/* 0: pending, nvq_uring_wait_done() will tell; 1: nothing to wait for. */
int nvq_native_wait_uring(struct nvq_queue *q, u32 want, u32 timeout_ms,
			  struct io_uring_cmd *cmd)
{
	int ret;

	spin_lock_irq(&q->lock);
	ret = wait_arm(q, want, timeout_ms, cmd, false);
	spin_unlock_irq(&q->lock);
	return ret;
}

/* The interrupt: one entry is looked at, not every one. */
void nvq_native_irq(struct nvq_queue *q)
{
	nvq_native_wake(q, false);
	/* poll(2); a poller that comes now looks at the CQ after queueing */
	if (wq_has_sleeper(&q->wait))
		wake_up_all(&q->wait);
}
