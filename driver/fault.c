// SPDX-License-Identifier: GPL-2.0
/*
 * Fault points: armed by sysfs, asked where something can go wrong; and claims of
 * the controller made less, by module parameters; see fault.h.
 *
 * Any context; the lock is inside every other.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sysfs.h>

#include "nvqueue.h"

static const char *const names[NVQ_NR_FAULTS] = {
	[NVQ_FAULT_LOST] = "lost",
	[NVQ_FAULT_STRAY] = "stray",
	[NVQ_FAULT_IRQ] = "irq",
	[NVQ_FAULT_ADMIN] = "admin",
	[NVQ_FAULT_DELETE] = "delete",
	[NVQ_FAULT_CREATE] = "create",
	[NVQ_FAULT_CFS] = "cfs",
	[NVQ_FAULT_GONE] = "gone",
	[NVQ_FAULT_RDY] = "rdy",
	[NVQ_FAULT_FLR] = "flr",
	[NVQ_FAULT_ABORT] = "abort",
};

void nvq_fault_init(struct nvq_ctrl *ctrl)
{
	spin_lock_init(&ctrl->faults.lock);
	dev_warn(&ctrl->pdev->dev, "nvqueue: built with fault points, for tests only\n");
}

/* True if this occasion is to go wrong. */
bool nvq_fault(struct nvq_ctrl *ctrl, enum nvq_fault_id id, int which)
{
	typeof(&ctrl->faults.point[0]) p = &ctrl->faults.point[id];
	unsigned long flags;
	bool hit = false;

	spin_lock_irqsave(&ctrl->faults.lock, flags);
	if (p->left && (p->which < 0 || p->which == which)) {
		if (p->skip) {
			p->skip--;
		} else {
			p->left--;
			p->hits++;
			hit = true;
		}
	}
	spin_unlock_irqrestore(&ctrl->faults.lock, flags);
	return hit;
}

/* If this occasion is to go wrong: sleeps until it is disarmed, ten seconds at most. */
void nvq_fault_hold(struct nvq_ctrl *ctrl, enum nvq_fault_id id, int which)
{
	unsigned int ms;

	if (!nvq_fault(ctrl, id, which))
		return;
	for (ms = 0; ms < 10000 && READ_ONCE(ctrl->faults.point[id].hits); ms += 10)
		msleep(10);
}

/*
 * Under q->lock, for entries that are about to be sent: a lost command is taken
 * out, so that nothing of it will ever be seen; a stray one goes out under an
 * id that is nobody's.  How many remain.
 */
u32 nvq_fault_sqes(struct nvq_queue *q, struct nvme_command *sqes, u32 nr)
{
	u32 i, kept = 0;

	for (i = 0; i < nr; i++) {
		if (nvq_fault(q->ctrl, NVQ_FAULT_LOST, q->qid))
			continue;
		if (kept != i)
			sqes[kept] = sqes[i];
		if (nvq_fault(q->ctrl, NVQ_FAULT_STRAY, q->qid))
			sqes[kept].common.command_id = NVQ_FAULT_CID;
		kept++;
	}
	return kept;
}

/* ------------------------------------------------------------------ claims */

static unsigned int claim_entries;
module_param(claim_entries, uint, 0644);
MODULE_PARM_DESC(claim_entries, "entries of a queue that CAP.MQES is to allow at most");

static int claim_to = -1;
module_param(claim_to, int, 0644);
MODULE_PARM_DESC(claim_to, "CAP.TO, in units of 500 ms");

static unsigned int claim_max_xfer;
module_param(claim_max_xfer, uint, 0644);
MODULE_PARM_DESC(claim_max_xfer, "bytes that a command may move at most");

static bool claim_no_dbbuf;
module_param(claim_no_dbbuf, bool, 0644);
MODULE_PARM_DESC(claim_no_dbbuf, "no Doorbell Buffer Config");

static bool claim_no_vwc;
module_param(claim_no_vwc, bool, 0644);
MODULE_PARM_DESC(claim_no_vwc, "no volatile write cache");

static unsigned long long claim_nsze;
module_param(claim_nsze, ullong, 0644);
MODULE_PARM_DESC(claim_nsze, "LBAs that a namespace has at most");

/* MQES is 0's based, in bits 15:0; TO is in bits 31:24. */
u64 nvq_fault_cap(u64 cap)
{
	u64 most = claim_entries - 1;

	if (claim_entries && most < NVME_CAP_MQES(cap))
		cap = (cap & ~0xffffULL) | most;
	if (claim_to >= 0)
		cap = (cap & ~(0xffULL << 24)) | (claim_to & 0xffULL) << 24;
	return cap;
}

u32 nvq_fault_max_xfer(u32 bytes)
{
	return claim_max_xfer ? min(bytes, claim_max_xfer) : bytes;
}

void nvq_fault_identify(struct nvme_id_ctrl *id)
{
	if (claim_no_dbbuf)
		id->oacs &= cpu_to_le16(~NVME_CTRL_OACS_DBBUF_SUPP);
	if (claim_no_vwc)
		id->vwc &= ~NVME_CTRL_VWC_PRESENT;
}

void nvq_fault_ns(struct nvq_ns *ns)
{
	u64 most = READ_ONCE(claim_nsze);

	if (most)
		ns->nsze = min(ns->nsze, most);
}

/* ------------------------------------------------------------- allocations */

static unsigned int fail_alloc;
module_param(fail_alloc, uint, 0644);
MODULE_PARM_DESC(fail_alloc, "the n-th allocation of the driver from now fails; 0: none");

static DEFINE_SPINLOCK(alloc_lock);

/* Any context; the lock is inside every other. */
bool nvq_fault_alloc(void)
{
	unsigned long flags;
	bool hit;

	spin_lock_irqsave(&alloc_lock, flags);
	hit = fail_alloc == 1;
	if (fail_alloc)
		fail_alloc--;
	spin_unlock_irqrestore(&alloc_lock, flags);
	return hit;
}

/* ------------------------------------------------------------------- sysfs */

static void disarm_all(struct nvq_ctrl *ctrl)
{
	spin_lock_irq(&ctrl->faults.lock);
	memset(ctrl->faults.point, 0, sizeof(ctrl->faults.point));
	spin_unlock_irq(&ctrl->faults.lock);
}

static ssize_t fault_store(struct device *dev, struct device_attribute *attr,
			   const char *buf, size_t count)
{
	struct nvq_ctrl *ctrl = container_of(dev, struct nvq_ctrl, dev);
	u32 skip = 0, nr = 1;
	int which = -1, id;
	char name[16];

	if (sscanf(buf, "%15s %i %u %u", name, &which, &skip, &nr) < 1)
		return -EINVAL;
	if (!strcmp(name, "off")) {
		disarm_all(ctrl);
		return count;
	}
	id = match_string(names, NVQ_NR_FAULTS, name);
	if (id < 0)
		return -EINVAL;
	spin_lock_irq(&ctrl->faults.lock);
	ctrl->faults.point[id].which = which;
	ctrl->faults.point[id].skip = skip;
	ctrl->faults.point[id].left = nr;
	ctrl->faults.point[id].hits = 0;
	spin_unlock_irq(&ctrl->faults.lock);
	return count;
}

static ssize_t fault_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	struct nvq_ctrl *ctrl = container_of(dev, struct nvq_ctrl, dev);
	ssize_t n = 0;
	int i;

	spin_lock_irq(&ctrl->faults.lock);
	for (i = 0; i < NVQ_NR_FAULTS; i++)
		n += sysfs_emit_at(buf, n, "%s %d %u %u %u\n", names[i],
				   ctrl->faults.point[i].which,
				   ctrl->faults.point[i].skip,
				   ctrl->faults.point[i].left,
				   ctrl->faults.point[i].hits);
	spin_unlock_irq(&ctrl->faults.lock);
	return n;
}

static struct device_attribute fault_attr =
	__ATTR(fault, 0600, fault_show, fault_store);

static struct attribute *fault_attrs[] = { &fault_attr.attr, NULL };

const struct attribute_group nvq_fault_group = { .attrs = fault_attrs };

/* modinfo says it of the file */
MODULE_INFO(fault_points, "Y");
