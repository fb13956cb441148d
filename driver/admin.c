// SPDX-License-Identifier: GPL-2.0
/*
 * The admin queue: one command at a time per waiter, and the outstanding
 * asynchronous event request.
 *
 * admin->lock guards the ring and the slots.  A waiter's data buffer is the
 * controller's until the command ended: a waiter whose time is up asks for a
 * reset and goes on waiting, because the reset ends the command once DMA has
 * stopped.  Called by ctrl.c, ns.c, recover.c, cfile.c, ioctl.c.
 */
#include <linux/dmapool.h>
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "nvqueue.h"

int nvq_admin_alloc(struct nvq_ctrl *ctrl)
{
	struct nvq_admin *a = &ctrl->admin;

	spin_lock_init(&a->lock);
	sema_init(&a->sem, NVQ_ADMIN_USERS);
	return nvq_ring_alloc(&a->ring, ctrl, 0, NVQ_ADMIN_DEPTH);
}

/* After nvq_admin_stop() and the release of the interrupt. */
void nvq_admin_free(struct nvq_ctrl *ctrl)
{
	if (ctrl->leak)
		return;
	nvq_ring_unmap(&ctrl->admin.ring);
	nvq_ring_free(&ctrl->admin.ring);
}

/* Before the controller is enabled: it must find fresh rings. */
void nvq_admin_start(struct nvq_ctrl *ctrl)
{
	struct nvq_admin *a = &ctrl->admin;

	spin_lock_irq(&a->lock);
	nvq_ring_reset(&a->ring);
	a->aer_armed = false;
	a->live = true;
	spin_unlock_irq(&a->lock);
}

/* DMA has stopped: ends every command in flight. */
void nvq_admin_stop(struct nvq_ctrl *ctrl)
{
	struct nvq_admin *a = &ctrl->admin;
	int i;

	spin_lock_irq(&a->lock);
	a->live = false;
	for (i = 0; i < NVQ_ADMIN_DEPTH; i++) {
		if (a->slots[i].state != NVQ_SLOT_INFLIGHT)
			continue;
		a->slots[i].status = NVQ_SC_HOST_ABORTED;
		a->slots[i].state = NVQ_SLOT_DONE;
		complete(&a->slots[i].done);
	}
	spin_unlock_irq(&a->lock);
}

static void aer_done(struct nvq_ctrl *ctrl, const struct nvme_completion *cqe)
{
	ctrl->admin.aer_armed = false;
	/* An aborted or refused AER is not an event. */
	if (le16_to_cpu(cqe->status) >> 1)
		return;
	ctrl->aer_result = le32_to_cpu(cqe->result.u32);
	queue_work(nvq_wq, &ctrl->aer_work);
}

/* Under admin->lock. */
static int admin_reap(struct nvq_ctrl *ctrl)
{
	struct nvq_admin *a = &ctrl->admin;
	int n = 0;

	while (a->live && nvq_ring_pending(&a->ring)) {
		struct nvme_completion *cqe = &a->ring.cqes[a->ring.cq_head];
		struct nvq_admin_slot *slot;
		u16 cid;

		dma_rmb();	/* phase before the rest */
		cid = cqe->command_id;
		n++;
		nvq_ring_advance(&a->ring);
		if (cid == NVQ_AER_CID) {
			aer_done(ctrl, cqe);
			continue;
		}
		if (cid >= NVQ_AER_CID ||
		    a->slots[cid].state != NVQ_SLOT_INFLIGHT) {
			dev_warn_ratelimited(&ctrl->dev, "admin completion for command id %u, which is not in flight; ignored\n",
					     cid);
			continue;
		}
		slot = &a->slots[cid];
		if (nvq_fault(ctrl, NVQ_FAULT_ADMIN, slot->opcode))
			continue;
		slot->status = le16_to_cpu(cqe->status) >> 1;
		slot->result = le64_to_cpu(cqe->result.u64);
		slot->state = NVQ_SLOT_DONE;
		complete(&slot->done);
	}
	if (n)
		nvq_ring_ack(&a->ring);
	return n;
}

irqreturn_t nvq_admin_irq(int irq, void *data)
{
	struct nvq_ctrl *ctrl = data;
	int n;

	if (nvq_fault(ctrl, NVQ_FAULT_IRQ, 0))
		return IRQ_HANDLED;
	spin_lock(&ctrl->admin.lock);
	n = admin_reap(ctrl);
	spin_unlock(&ctrl->admin.lock);
	/* The line may be shared where the device has no MSI. */
	return IRQ_RETVAL(n || ctrl->pdev->msix_enabled ||
			  ctrl->pdev->msi_enabled);
}

static bool admin_allowed(struct nvq_ctrl *ctrl)
{
	return READ_ONCE(ctrl->state) == NVQ_CTRL_LIVE ||
	       READ_ONCE(ctrl->bringup) == current;
}

/* Takes a slot and sends; the semaphore says that there is one. */
static int admin_send(struct nvq_ctrl *ctrl, struct nvme_command *cmd)
{
	struct nvq_admin *a = &ctrl->admin;
	int i;

	spin_lock_irq(&a->lock);
	if (!a->live || !admin_allowed(ctrl)) {
		spin_unlock_irq(&a->lock);
		return -ENODEV;
	}
	for (i = 0; a->slots[i].state != NVQ_SLOT_FREE; i++)
		;
	a->slots[i].state = NVQ_SLOT_INFLIGHT;
	a->slots[i].opcode = cmd->common.opcode;
	init_completion(&a->slots[i].done);
	cmd->common.command_id = i;
	nvq_ring_push(&a->ring, cmd);
	nvq_ring_kick(&a->ring);
	spin_unlock_irq(&a->lock);
	return i;
}

/* The command's time is up. */
static void admin_timeout(struct nvq_ctrl *ctrl, struct nvq_admin_slot *slot,
			  u8 opcode)
{
	int found;

	spin_lock_irq(&ctrl->admin.lock);
	found = admin_reap(ctrl);
	spin_unlock_irq(&ctrl->admin.lock);
	if (slot->state == NVQ_SLOT_DONE) {
		dev_warn(&ctrl->dev, "%d admin completions without an interrupt\n",
			 found);
		return;
	}
	dev_err(&ctrl->dev, "admin command (opcode 0x%02x) timed out\n",
		opcode);
	/* During bring-up there is no reset to ask: we are it. */
	if (READ_ONCE(ctrl->bringup) == current)
		nvq_ctrl_halt(ctrl, false);
	else
		nvq_reset_schedule(ctrl, "an admin command timed out", true);
}

/* Returns the NVMe status, or a negative errno if it was not sent. */
static int admin_run(struct nvq_ctrl *ctrl, struct nvme_command *cmd,
		     u64 *result, u32 timeout)
{
	struct nvq_admin *a = &ctrl->admin;
	struct nvq_admin_slot *slot;
	int i, status;

	i = admin_send(ctrl, cmd);
	if (i < 0)
		return i;
	slot = &a->slots[i];
	if (!wait_for_completion_timeout(&slot->done, timeout)) {
		admin_timeout(ctrl, slot, cmd->common.opcode);
		/* bounded: the reset ends it */
		wait_for_completion(&slot->done);
	}
	status = slot->status;
	if (result)
		*result = slot->result;
	spin_lock_irq(&a->lock);
	slot->state = NVQ_SLOT_FREE;
	spin_unlock_irq(&a->lock);
	return status;
}

struct admin_buf {
	void *va;
	dma_addr_t dma;
	size_t size;
	struct nvq_list list;
};

/*
 * Pages of our own, whole ones: a controller that returns a full data structure
 * to somebody who asked for half of it writes into the rest of the page.
 */
static int admin_map(struct nvq_ctrl *ctrl, struct admin_buf *b, u32 len,
		     struct nvme_command *cmd)
{
	struct nvq_prp_builder prp;
	int err;

	b->size = ALIGN(len, NVQ_CTRL_PAGE);
	b->va = dma_alloc_coherent(&ctrl->pdev->dev, b->size, &b->dma,
				   GFP_KERNEL);
	if (!b->va)
		return -ENOMEM;
	err = nvq_list_alloc(ctrl, &b->list);
	if (err) {
		dma_free_coherent(&ctrl->pdev->dev, b->size, b->va, b->dma);
		return err;
	}
	nvq_prp_init(&prp, b->list.va);
	/* Cannot fail: aligned, and no longer than NVQ_MAX_XFER. */
	nvq_prp_add(&prp, b->dma, b->size);
	cmd->common.dptr.prp1 = cpu_to_le64(prp.prp1);
	cmd->common.dptr.prp2 = cpu_to_le64(nvq_prp2(&prp, b->list.dma,
						     ctrl->guard.dma));
	return 0;
}

static void admin_unmap(struct nvq_ctrl *ctrl, struct admin_buf *b)
{
	if (ctrl->leak)
		return;
	nvq_list_free(ctrl, &b->list);
	dma_free_coherent(&ctrl->pdev->dev, b->size, b->va, b->dma);
}

static int admin_data(struct nvq_ctrl *ctrl, struct nvme_command *cmd,
		      void *buf, u32 len, u64 *result, u32 timeout)
{
	struct admin_buf b;
	int err;

	if (len > NVQ_MAX_XFER)
		return -EINVAL;
	/* Before the DMA interface is used: the device may be gone. */
	if (!admin_allowed(ctrl))
		return -ENODEV;
	err = admin_map(ctrl, &b, len, cmd);
	if (err)
		return err;
	memcpy(b.va, buf, len);
	err = admin_run(ctrl, cmd, result, timeout);
	if (err >= 0)
		memcpy(buf, b.va, len);
	admin_unmap(ctrl, &b);
	return err;
}

/*
 * Runs one admin command and waits for its end; @timeout in jiffies.  @buf (or
 * NULL) is kernel memory of @len <= NVQ_MAX_XFER bytes, copied both ways.
 * Returns the NVMe status (0: success) or a negative errno.
 */
int nvq_admin_cmd(struct nvq_ctrl *ctrl, struct nvme_command *cmd, void *buf,
		  u32 len, u64 *result, u32 timeout)
{
	/* who brings the controller up has a place of its own */
	bool ours = READ_ONCE(ctrl->bringup) == current;
	int err;

	if (!ours)
		down(&ctrl->admin.sem);
	err = len ? admin_data(ctrl, cmd, buf, len, result, timeout) :
		    admin_run(ctrl, cmd, result, timeout);
	if (!ours)
		up(&ctrl->admin.sem);
	return err;
}

/*
 * Removal, after nvq_admin_stop(): waits for those who are still about to undo
 * the mapping of their data.  Who comes later is turned away at once.
 */
void nvq_admin_drain(struct nvq_ctrl *ctrl)
{
	int i;

	for (i = 0; i < NVQ_ADMIN_USERS; i++)
		down(&ctrl->admin.sem);
	for (i = 0; i < NVQ_ADMIN_USERS; i++)
		up(&ctrl->admin.sem);
}

/* Keeps one event request outstanding; it has no data and no time-out. */
void nvq_aer_arm(struct nvq_ctrl *ctrl)
{
	struct nvq_admin *a = &ctrl->admin;
	struct nvme_command cmd = {
		.common.opcode = nvme_admin_async_event,
		.common.command_id = NVQ_AER_CID,
	};

	spin_lock_irq(&a->lock);
	if (a->live && !a->aer_armed) {
		a->aer_armed = true;
		nvq_ring_push(&a->ring, &cmd);
		nvq_ring_kick(&a->ring);
	}
	spin_unlock_irq(&a->lock);
}
