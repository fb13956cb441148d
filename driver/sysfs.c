// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/class/nvqueue: what a controller and its queues are, who owns them and
 * what they did.  One value per file; counters are those of the present owner,
 * or of the last one (doc/nvqueue.4 lists all).
 */
#include <linux/sysfs.h>

#include "nvqueue.h"

static struct nvq_ctrl *to_ctrl(struct device *dev)
{
	return container_of(dev, struct nvq_ctrl, dev);
}

static struct nvq_queue *to_queue(struct device *dev)
{
	return container_of(dev, struct nvq_queue, dev);
}

#define CTRL_ATTR(name, fmt, value)					\
static ssize_t ctrl_##name##_show(struct device *dev,			\
				  struct device_attribute *attr,	\
				  char *buf)				\
{									\
	struct nvq_ctrl *ctrl = to_ctrl(dev);				\
									\
	return sysfs_emit(buf, fmt "\n", value);			\
}									\
static struct device_attribute ctrl_attr_##name =			\
	__ATTR(name, 0444, ctrl_##name##_show, NULL)

static const char *const ctrl_states[] = {
	[NVQ_CTRL_NEW] = "new",
	[NVQ_CTRL_LIVE] = "live",
	[NVQ_CTRL_RESETTING] = "resetting",
	[NVQ_CTRL_DELETING] = "deleting",
	[NVQ_CTRL_DEAD] = "dead",
};

CTRL_ATTR(model, "%s", ctrl->model);
CTRL_ATTR(serial, "%s", ctrl->serial);
CTRL_ATTR(firmware_rev, "%s", ctrl->firmware);
CTRL_ATTR(address, "%s", pci_name(ctrl->pdev));
CTRL_ATTR(state, "%s", ctrl_states[READ_ONCE(ctrl->state)]);
CTRL_ATTR(nr_poll, "%u", ctrl->sets[NVQ_SET_POLL].count);
CTRL_ATTR(nr_irq, "%u", ctrl->sets[NVQ_SET_IRQ].count);
CTRL_ATTR(numa_node, "%d", dev_to_node(&ctrl->pdev->dev));
CTRL_ATTR(mdts, "%u", ctrl->max_xfer);
CTRL_ATTR(depth, "%u", ctrl->depth);
CTRL_ATTR(generation, "%u", ctrl->generation);
CTRL_ATTR(shadow_doorbells, "%u", ctrl->dbbuf_on);
CTRL_ATTR(sgl, "%u", ctrl->sgl);

/* One line each: nsid lba_size nsze metadata_size csi */
static ssize_t ctrl_namespaces_show(struct device *dev,
				    struct device_attribute *attr, char *buf)
{
	struct nvq_ctrl *ctrl = to_ctrl(dev);
	ssize_t n = 0;
	u32 i;

	mutex_lock(&ctrl->ns_lock);
	for (i = 0; i < ctrl->nr_ns; i++) {
		const struct nvq_ns *ns = &ctrl->ns_list[i];

		n += sysfs_emit_at(buf, n, "%u %u %llu %u %u\n", ns->nsid,
				   1U << ns->lba_shift, ns->nsze, ns->ms,
				   ns->csi);
	}
	mutex_unlock(&ctrl->ns_lock);
	return n;
}

static struct device_attribute ctrl_attr_namespaces =
	__ATTR(namespaces, 0444, ctrl_namespaces_show, NULL);

static ssize_t reset_store(struct device *dev, struct device_attribute *attr,
			   const char *buf, size_t count)
{
	int err = nvq_ctrl_user_reset(to_ctrl(dev));

	return err ? err : count;
}

static struct device_attribute ctrl_attr_reset =
	__ATTR(reset_controller, 0200, NULL, reset_store);

static struct attribute *ctrl_attrs[] = {
	&ctrl_attr_model.attr,
	&ctrl_attr_serial.attr,
	&ctrl_attr_firmware_rev.attr,
	&ctrl_attr_address.attr,
	&ctrl_attr_state.attr,
	&ctrl_attr_nr_poll.attr,
	&ctrl_attr_nr_irq.attr,
	&ctrl_attr_numa_node.attr,
	&ctrl_attr_mdts.attr,
	&ctrl_attr_depth.attr,
	&ctrl_attr_generation.attr,
	&ctrl_attr_shadow_doorbells.attr,
	&ctrl_attr_sgl.attr,
	&ctrl_attr_namespaces.attr,
	&ctrl_attr_reset.attr,
	NULL
};

static const struct attribute_group ctrl_group = { .attrs = ctrl_attrs };
const struct attribute_group *nvq_ctrl_groups[] = {
	&ctrl_group,
	NVQ_FAULT_GROUPS
	NULL
};

#define QUEUE_ATTR(name, fmt, value)					\
static ssize_t queue_##name##_show(struct device *dev,			\
				   struct device_attribute *attr,	\
				   char *buf)				\
{									\
	struct nvq_queue *q = to_queue(dev);				\
									\
	return sysfs_emit(buf, fmt "\n", value);			\
}									\
static struct device_attribute queue_attr_##name =			\
	__ATTR(name, 0444, queue_##name##_show, NULL)

/* The owner's namespace, or the one an owner would get. */
static struct nvq_ns queue_ns(struct nvq_queue *q)
{
	struct nvq_ctrl *ctrl = q->ctrl;
	struct nvq_ns ns = { 0 };

	if (READ_ONCE(q->slots)) {
		spin_lock_irq(&q->lock);
		ns = q->ns;
		spin_unlock_irq(&q->lock);
		return ns;
	}
	mutex_lock(&ctrl->ns_lock);
	if (ctrl->nr_ns)
		ns = ctrl->ns_list[0];
	mutex_unlock(&ctrl->ns_lock);
	return ns;
}

static const char *queue_state(struct nvq_queue *q)
{
	/* a native queue whose owner has yet to agree on where it begins anew */
	if (READ_ONCE(q->resync) && READ_ONCE(q->hw) == NVQ_HW_STOPPED)
		return "resync";
	switch (READ_ONCE(q->hw)) {
	case NVQ_HW_NONE:
		return "closed";
	case NVQ_HW_DEAD:
		return "dead";
	case NVQ_HW_STOPPED:
		return "recovering";
	default:
		if (READ_ONCE(q->stale))
			return "stale";
		return READ_ONCE(q->frozen) ? "recovering" : "live";
	}
}

static u32 lba_size(struct nvq_queue *q)
{
	struct nvq_ns ns = queue_ns(q);

	return ns.nsid ? 1U << ns.lba_shift : 0;
}

static u64 capacity(struct nvq_queue *q)
{
	struct nvq_ns ns = queue_ns(q);

	return ns.nsze << ns.lba_shift;
}

QUEUE_ATTR(kind, "%s", q->kind == NVQ_KIND_POLL ? "user_poll" : "user_irq");
QUEUE_ATTR(qid, "%u", q->qid);
QUEUE_ATTR(depth, "%u", q->ctrl->depth);
QUEUE_ATTR(owner, "%d", READ_ONCE(q->owner));
QUEUE_ATTR(state, "%s", queue_state(q));
QUEUE_ATTR(nsid, "%u", queue_ns(q).nsid);
QUEUE_ATTR(lba_size, "%u", lba_size(q));
QUEUE_ATTR(nsze, "%llu", queue_ns(q).nsze);
QUEUE_ATTR(capacity, "%llu", capacity(q));
QUEUE_ATTR(mdts, "%u", q->ctrl->max_xfer);
QUEUE_ATTR(numa_node, "%d", dev_to_node(&q->ctrl->pdev->dev));
QUEUE_ATTR(generation, "%u", READ_ONCE(q->generation));
QUEUE_ATTR(vector, "%d", q->kind == NVQ_KIND_IRQ ? q->vector : -1);
QUEUE_ATTR(submitted, "%llu", READ_ONCE(q->submitted));
QUEUE_ATTR(completed, "%llu", READ_ONCE(q->completed));
QUEUE_ATTR(sq_doorbells, "%llu", READ_ONCE(q->ring.sq_doorbells));
QUEUE_ATTR(cq_doorbells, "%llu", READ_ONCE(q->ring.cq_doorbells));
QUEUE_ATTR(reap_empty, "%llu", READ_ONCE(q->reap_empty));
QUEUE_ATTR(iopoll_empty, "%llu", READ_ONCE(q->iopoll_empty));

static struct attribute *queue_attrs[] = {
	&queue_attr_kind.attr,
	&queue_attr_qid.attr,
	&queue_attr_depth.attr,
	&queue_attr_owner.attr,
	&queue_attr_state.attr,
	&queue_attr_nsid.attr,
	&queue_attr_lba_size.attr,
	&queue_attr_nsze.attr,
	&queue_attr_capacity.attr,
	&queue_attr_mdts.attr,
	&queue_attr_numa_node.attr,
	&queue_attr_generation.attr,
	&queue_attr_vector.attr,
	&queue_attr_submitted.attr,
	&queue_attr_completed.attr,
	&queue_attr_sq_doorbells.attr,
	&queue_attr_cq_doorbells.attr,
	&queue_attr_reap_empty.attr,
	&queue_attr_iopoll_empty.attr,
	NULL
};

static const struct attribute_group queue_group = { .attrs = queue_attrs };
const struct attribute_group *nvq_queue_groups[] = { &queue_group, NULL };
