// SPDX-License-Identifier: GPL-2.0
/*
 * When things go wrong: time-outs, resets, removal.  One mechanism, whose steps
 * are always the same:
 *
 *	stop accepting -> stop DMA -> harvest real completions -> end the rest
 *	as "aborted by host" -> begin again, or dead
 *
 * at one of two sizes: a queue (delete it, create it again) or the controller
 * (disable it, bring it up again).  A command out of time first costs a look
 * at the CQ, then an Abort, then its queue; the controller is reset only when
 * it does not answer administration or says that it is in a fatal state.
 *
 * Locks: ctrl->lock around a whole reset or removal, q->mutex around each
 * queue's part.  An admin command may be waited for under q->mutex, since a
 * reset ends all of them before it takes that mutex.
 */
#include <linux/delay.h>
#include <linux/sched.h>

#include "nvqueue.h"

/* A second of them, as a reset is waited for. */
#define NVQ_START_TRIES		6
#define NVQ_START_PAUSE_MS	200

/* -------------------------------------------------------- controller state */

/* Removal is for good; a reset that loses against it changes nothing. */
bool nvq_ctrl_set_state(struct nvq_ctrl *ctrl, enum nvq_ctrl_state state)
{
	bool ok = true;

	spin_lock_irq(&ctrl->state_lock);
	if (ctrl->state == NVQ_CTRL_DEAD ||
	    (ctrl->state == NVQ_CTRL_DELETING && state != NVQ_CTRL_DEAD))
		ok = false;
	else
		WRITE_ONCE(ctrl->state, state);
	spin_unlock_irq(&ctrl->state_lock);
	wake_up_all(&ctrl->wait);
	return ok;
}

/* True if the reset is the caller's to make. */
static bool reset_begin(struct nvq_ctrl *ctrl)
{
	bool start;

	spin_lock_irq(&ctrl->state_lock);
	start = ctrl->state == NVQ_CTRL_LIVE;
	if (start)
		WRITE_ONCE(ctrl->state, NVQ_CTRL_RESETTING);
	spin_unlock_irq(&ctrl->state_lock);
	return start;
}

/*
 * True if a reset was started; false if one is on, or the controller is not.
 * @sick: it is not to be asked anything before it is disabled.
 */
bool nvq_reset_schedule(struct nvq_ctrl *ctrl, const char *why, bool sick)
{
	if (!reset_begin(ctrl))
		return false;
	ctrl->sick = sick;
	dev_warn(&ctrl->dev, "resetting the controller: %s\n", why);
	queue_work(nvq_wq, &ctrl->reset_work);
	return true;
}

/* Returns once no reset or removal is under way; both are bounded. */
void nvq_reset_wait(struct nvq_ctrl *ctrl)
{
	wait_event(ctrl->wait, READ_ONCE(ctrl->state) == NVQ_CTRL_LIVE ||
			       READ_ONCE(ctrl->state) == NVQ_CTRL_DEAD);
}

/*
 * For user entry points that talk to the controller, before they do: a reset
 * under way is waited out.  0, -ENODEV, or -ERESTARTSYS (killed).
 */
int nvq_ctrl_wait_live(struct nvq_ctrl *ctrl)
{
	int err;

	err = wait_event_killable(ctrl->wait,
			READ_ONCE(ctrl->state) == NVQ_CTRL_LIVE ||
			READ_ONCE(ctrl->state) == NVQ_CTRL_DEAD);
	if (err)
		return err;
	return READ_ONCE(ctrl->state) == NVQ_CTRL_LIVE ? 0 : -ENODEV;
}

/* ------------------------------------------------------------------ a queue */

/* Nobody submits from here; what is between slot and doorbell backs out. */
static void queue_stop(struct nvq_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (q->hw == NVQ_HW_LIVE)
		q->hw = NVQ_HW_STOPPED;
	nvq_publish(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

/*
 * The hardware queue is gone for good when this returns: deleted, or the
 * controller that had it was disabled.  Waits for a reset where deletion could
 * not be confirmed, so q->mutex is not held over that.
 */
void nvq_queue_retire(struct nvq_queue *q)
{
	struct nvq_ctrl *ctrl = q->ctrl;
	unsigned long flags;
	bool dead, gone = true;

	queue_stop(q);
	mutex_lock(&q->mutex);
	spin_lock_irqsave(&q->lock, flags);
	dead = q->hw == NVQ_HW_DEAD;
	if (!dead)
		q->hw = NVQ_HW_NONE;
	spin_unlock_irqrestore(&q->lock, flags);
	/* not to wait for an answer that cannot come */
	if (!dead && q->on_ctrl)
		gone = nvq_ctrl_well(ctrl) && !nvq_hw_delete(ctrl, q->qid);
	/* Before the mutex is free: a reset that is over by then is no help. */
	if (!gone)
		nvq_reset_schedule(ctrl, "a queue could not be deleted",
				   true);
	q->on_ctrl = false;
	mutex_unlock(&q->mutex);
	if (!gone || dead)
		nvq_reset_wait(ctrl);
}

/* Under q->mutex: delete and create again; neighbours see nothing of it. */
static void queue_recover(struct nvq_queue *q)
{
	struct nvq_ctrl *ctrl = q->ctrl;
	u16 lost = READ_ONCE(q->inflight);

	queue_stop(q);
	if (nvq_hw_delete(ctrl, q->qid)) {
		nvq_reset_schedule(ctrl, "a timed out queue could not be deleted",
				   true);
		return;
	}
	q->on_ctrl = false;
	nvq_queue_end_all(q, NVQ_SC_HOST_ABORTED);
	if (q->native) {
		dev_warn(&q->dev, "queue %u deleted, up to %u commands aborted by host; its owner recreates it (NVQ_IOC_RESYNC)\n",
			 q->qid, lost);
		return;
	}
	if (nvq_queue_create_hw(q)) {
		nvq_reset_schedule(ctrl, "a timed out queue could not be created again",
				   true);
		return;
	}
	dev_warn(&q->dev, "queue %u recreated (generation %u), up to %u commands aborted by host\n",
		 q->qid, q->generation, lost);
}

/* ---------------------------------------------------------------- time-outs */

/* The id may be used again. */
static void abort_over(struct nvq_queue *q, u16 cid)
{
	if (q->native)
		nvq_native_aborted(q, cid);
	else
		nvq_slot_aborted(q, &q->slots[cid]);
}

/*
 * The id stays out of use until the Abort has returned, or it could hit a
 * command that took the id meanwhile.
 */
static void abort_cmd(struct nvq_queue *q, u16 cid)
{
	struct nvme_command cmd = {
		.abort.opcode = nvme_admin_abort_cmd,
		.abort.sqid = cpu_to_le16(q->qid),
		.abort.cid = cid,
	};
	int err;

	err = nvq_admin_cmd(q->ctrl, &cmd, NULL, 0, NULL,
			    nvq_admin_timeout * HZ);
	dev_warn(&q->dev, "command id %u timed out: abort %s (%d)\n", cid,
		 err ? "failed" : "sent", err);
	nvq_fault_hold(q->ctrl, NVQ_FAULT_ABORT, q->qid);
	abort_over(q, cid);
}

/* The ids out of time; @late: their abort did not help either. */
static u32 expired(struct nvq_queue *q, u16 *cid, u32 max, bool *late)
{
	unsigned long flags;
	u32 i, n = 0;

	spin_lock_irqsave(&q->lock, flags);
	for (i = 0; i < q->ring.depth; i++) {
		struct nvq_slot *slot = &q->slots[i];

		if (slot->state != NVQ_SLOT_INFLIGHT ||
		    time_before(jiffies, slot->deadline))
			continue;
		*late |= slot->aborted;
		/* One try each, then as long again as the first time. */
		slot->aborted = true;
		slot->deadline = jiffies + slot->timeout;
		if (n < max) {
			slot->aborting = true;
			cid[n++] = i;
		}
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return n;
}

static bool any_expired(struct nvq_queue *q)
{
	unsigned long flags;
	bool found = false;
	u32 i;

	spin_lock_irqsave(&q->lock, flags);
	for (i = 0; i < q->ring.depth && q->inflight && !found; i++)
		found = q->slots[i].state == NVQ_SLOT_INFLIGHT &&
			time_after_eq(jiffies, q->slots[i].deadline);
	spin_unlock_irqrestore(&q->lock, flags);
	return found;
}

/* Under q->mutex, queue live. */
static void queue_check(struct nvq_queue *q)
{
	u16 cid[4];
	u32 max = min_t(u32, ARRAY_SIZE(cid), q->ctrl->acl + 1);
	bool late = false;
	u32 n = 0, i, csts;
	int found;

	csts = nvq_ctrl_status(q->ctrl);
	if (csts == ~0U) {
		nvq_reset_schedule(q->ctrl, "it does not answer (unplugged?)",
				   true);
		return;
	}
	if (csts & NVME_CSTS_CFS) {
		nvq_reset_schedule(q->ctrl, "it reports a fatal status (CSTS.CFS)",
				   true);
		return;
	}
	/*
	 * Nobody but a reset of ours clears it, and that waits for q->mutex
	 * before it is over: a loss of power, or a reset behind our back.
	 */
	if (!(csts & NVME_CSTS_RDY)) {
		nvq_reset_schedule(q->ctrl, "it is not ready any more (reset or without power?)",
				   true);
		return;
	}
	if (q->native) {
		if (!nvq_native_expired(q, cid, max, &n, &late))
			return;
		goto act;
	}
	if (!any_expired(q))
		return;
	/* A lost interrupt, or a poll queue that nobody polls. */
	found = nvq_reap(q);
	if (found && q->kind == NVQ_KIND_IRQ)
		dev_warn(&q->dev, "%d completions without an interrupt\n",
			 found);
	n = expired(q, cid, max, &late);
act:
	if (late)
		queue_recover(q);
	for (i = 0; i < n; i++)
		if (late)
			abort_over(q, cid[i]);
		else
			abort_cmd(q, cid[i]);
}

/* While the file is open, twice a second. */
void nvq_watch(struct work_struct *work)
{
	struct nvq_queue *q = container_of(to_delayed_work(work),
					   struct nvq_queue, watch);

	mutex_lock(&q->mutex);
	if (q->opened) {
		/*
		 * Otherwise a reset is on, which ends everything by itself;
		 * one that begins now must still pass this mutex.
		 */
		if (READ_ONCE(q->hw) == NVQ_HW_LIVE &&
		    READ_ONCE(q->ctrl->state) == NVQ_CTRL_LIVE)
			queue_check(q);
		nvq_queue_bury(q);
		/* in the place of one that was lost */
		if (q->native)
			nvq_native_irq(q);
		schedule_delayed_work(&q->watch, NVQ_WATCH_PERIOD);
	}
	mutex_unlock(&q->mutex);
}

/* ------------------------------------------------------------ a controller */

/*
 * Stops all DMA, by the mildest means that can be confirmed, then ends the
 * admin commands.  As the last resort says that memory must be leaked.
 */
void nvq_ctrl_halt(struct nvq_ctrl *ctrl, bool shutdown)
{
	struct pci_dev *pdev = ctrl->pdev;

	/* present again after the failure: it may have been pulled meanwhile */
	if (nvq_ctrl_present(ctrl) && nvq_ctrl_disable(ctrl, shutdown) &&
	    nvq_ctrl_present(ctrl)) {
		dev_err(&ctrl->dev, "the controller does not confirm that it is disabled: bus mastering off, function level reset\n");
		pci_clear_master(pdev);
		if (nvq_fault(ctrl, NVQ_FAULT_FLR, -1) ||
		    pcie_reset_flr(pdev, PCI_RESET_DO_RESET)) {
			dev_err(&ctrl->dev, "function level reset failed: memory the controller knows of is leaked\n");
			ctrl->leak = true;
		}
		pci_restore_state(pdev);
		pci_clear_master(pdev);
	}
	nvq_admin_stop(ctrl);
}

/*
 * A controller that is well gives its queues back first, as base 2.0 section
 * 3.6.1 asks for before a shutdown; and QEMU's, disabled with submissions it has
 * not looked at, goes on to use the queues that it freed.  Failure is no matter:
 * the queues end with what follows.
 */
static void delete_queues(struct nvq_ctrl *ctrl)
{
	struct nvq_queue *q;
	unsigned int i;

	if (ctrl->sick || !nvq_ctrl_well(ctrl))
		return;
	WRITE_ONCE(ctrl->bringup, current);
	nvq_for_each_queue(ctrl, q, i) {
		/* its holder may wait for an admin command, and that for us */
		if (!mutex_trylock(&q->mutex))
			continue;
		if (q->on_ctrl && !nvq_hw_delete(ctrl, q->qid))
			q->on_ctrl = false;
		mutex_unlock(&q->mutex);
	}
	WRITE_ONCE(ctrl->bringup, NULL);
}

/* Under ctrl->lock: no DMA, and every command has ended, when it returns. */
static void ctrl_stop(struct nvq_ctrl *ctrl, bool shutdown)
{
	struct nvq_queue *q;
	unsigned int i;

	nvq_for_each_queue(ctrl, q, i)
		queue_stop(q);
	delete_queues(ctrl);
	nvq_ctrl_halt(ctrl, shutdown);
	nvq_for_each_queue(ctrl, q, i) {
		mutex_lock(&q->mutex);
		/* A creation under way may have made it live after the stop. */
		queue_stop(q);
		q->on_ctrl = false;
		if (q->slots)
			nvq_queue_end_all(q, NVQ_SC_HOST_ABORTED);
		mutex_unlock(&q->mutex);
	}
}

static void queue_kill(struct nvq_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	q->hw = NVQ_HW_DEAD;
	nvq_publish(q);
	spin_unlock_irqrestore(&q->lock, flags);
	wake_up_all(&q->wait);
}

static int restart_queue(struct nvq_queue *q, u16 granted)
{
	int err = 0;

	mutex_lock(&q->mutex);
	if (q->qid > granted) {
		dev_err(&q->dev, "the controller offers %u queues after the reset, queue %u is dead\n",
			granted, q->qid);
		queue_kill(q);
	} else if (q->opened && q->hw != NVQ_HW_DEAD && !q->resync) {
		/*
		 * A native owner first reads what ended, then says so; but not
		 * one that became native after everything had ended.
		 */
		err = nvq_queue_create_hw(q);
	}
	mutex_unlock(&q->mutex);
	return err;
}

/* Under ctrl->lock, after ctrl_stop() or at first. */
int nvq_ctrl_start(struct nvq_ctrl *ctrl)
{
	struct nvq_queue *q;
	unsigned int i;
	int err, granted = 0;

	if (!nvq_ctrl_present(ctrl))
		return -ENODEV;
	if (ctrl->leak)
		return -EIO;
	WRITE_ONCE(ctrl->bringup, current);
	pci_set_master(ctrl->pdev);
	/* Restoring consumes what was saved, and there may be a next time. */
	pci_save_state(ctrl->pdev);
	err = nvq_ctrl_enable(ctrl);
	if (!err)
		err = nvq_ctrl_configure(ctrl);
	if (!err)
		granted = err = nvq_ctrl_request_queues(ctrl, ctrl->nr_queues ?:
			nvq_user_poll_queues + nvq_user_irq_queues);
	if (err >= 0)
		err = nvq_ns_acknowledge(ctrl);
	if (!err)
		err = nvq_ns_rescan(ctrl);
	if (!err) {
		nvq_dbbuf_set(ctrl);
		nvq_for_each_queue(ctrl, q, i) {
			err = restart_queue(q, granted);
			if (err)
				break;
		}
	}
	WRITE_ONCE(ctrl->bringup, NULL);
	/* A time-out on the way halted it; some commands may fail, not that. */
	if (!err && !READ_ONCE(ctrl->admin.live))
		err = -EIO;
	if (err)
		return err;
	nvq_aer_arm(ctrl);
	return granted;
}

/* Under ctrl->lock, after ctrl_stop(): ENODEV and POLLHUP from here. */
static void ctrl_kill(struct nvq_ctrl *ctrl)
{
	struct nvq_queue *q;
	unsigned int i;

	nvq_for_each_queue(ctrl, q, i)
		queue_kill(q);
	nvq_ctrl_set_state(ctrl, NVQ_CTRL_DEAD);
}

/*
 * A bring-up needs some pages for a moment.  That there are none just now is no
 * reason to give up a drive that is well.
 */
static int start_again(struct nvq_ctrl *ctrl)
{
	unsigned int tries = 0;
	int err;

	for (;;) {
		err = nvq_ctrl_start(ctrl);
		if (err != -ENOMEM || ++tries == NVQ_START_TRIES)
			return err;
		dev_warn(&ctrl->dev, "no memory for a reset, trying again\n");
		ctrl_stop(ctrl, false);
		msleep(NVQ_START_PAUSE_MS);
	}
}

/* Under ctrl->lock, stopped: live again, or dead. */
static void restart(struct nvq_ctrl *ctrl)
{
	int err;

	err = start_again(ctrl);
	if (err < 0) {
		dev_err(&ctrl->dev, "reset failed (%d): the controller is dead; nvq unbind and bind it again\n",
			err);
		ctrl->sick = true;
		ctrl_stop(ctrl, false);
		ctrl_kill(ctrl);
		return;
	}
	ctrl->sick = false;
	ctrl->generation++;
	if (nvq_ctrl_set_state(ctrl, NVQ_CTRL_LIVE))
		dev_info(&ctrl->dev, "reset done, %d queues\n", err);
}

void nvq_reset_work(struct work_struct *work)
{
	struct nvq_ctrl *ctrl = container_of(work, struct nvq_ctrl,
					     reset_work);

	mutex_lock(&ctrl->lock);
	if (READ_ONCE(ctrl->state) == NVQ_CTRL_RESETTING) {
		ctrl_stop(ctrl, false);
		restart(ctrl);
	}
	mutex_unlock(&ctrl->lock);
}

/*
 * The first half of a reset, for somebody else's (a function level reset, a
 * PCI error, suspend): commands wait until nvq_ctrl_resume().  False if the
 * controller is dead or leaving.
 */
bool nvq_ctrl_pause(struct nvq_ctrl *ctrl, bool shutdown)
{
	while (!reset_begin(ctrl)) {
		nvq_reset_wait(ctrl);
		if (READ_ONCE(ctrl->state) == NVQ_CTRL_DEAD)
			return false;
	}
	mutex_lock(&ctrl->lock);
	ctrl_stop(ctrl, shutdown);
	mutex_unlock(&ctrl->lock);
	return true;
}

void nvq_ctrl_resume(struct nvq_ctrl *ctrl)
{
	mutex_lock(&ctrl->lock);
	if (READ_ONCE(ctrl->state) == NVQ_CTRL_RESETTING)
		restart(ctrl);
	mutex_unlock(&ctrl->lock);
}

/*
 * For good: removal, shutdown.  Afterwards nothing of ours is in the
 * controller and no DMA address of an I/O queue is left.
 */
void nvq_ctrl_remove(struct nvq_ctrl *ctrl)
{
	struct nvq_queue *q;
	unsigned int i;

	nvq_ctrl_set_state(ctrl, NVQ_CTRL_DELETING);
	/* A reset under way finishes first; none can begin. */
	cancel_work_sync(&ctrl->reset_work);
	mutex_lock(&ctrl->lock);
	ctrl_stop(ctrl, true);
	cancel_work_sync(&ctrl->aer_work);
	ctrl_kill(ctrl);
	nvq_for_each_queue(ctrl, q, i) {
		mutex_lock(&q->mutex);
		nvq_queue_dma_done(q);
		mutex_unlock(&q->mutex);
	}
	mutex_unlock(&ctrl->lock);
	nvq_admin_drain(ctrl);
}
