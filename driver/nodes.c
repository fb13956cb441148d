// SPDX-License-Identifier: GPL-2.0
/*
 * The objects as devices: allocation, the class, /dev nodes, reference counts.
 *
 * A controller lives until its last queue is released, a queue until its last
 * file is closed: each queue holds a reference to its controller's device, and
 * an open file holds its queue's through the cdev.  Nodes are root's (devtmpfs
 * gives 0600) until a udev rule says otherwise.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "nvqueue.h"

#define NVQ_MINORS	4096

static dev_t nvq_base;
static struct class *nvq_class;
static DEFINE_IDA(nvq_minors);
static DEFINE_IDA(nvq_instances);
/* the last controller is released */
static DECLARE_WAIT_QUEUE_HEAD(nvq_gone);

static void ctrl_release(struct device *dev)
{
	struct nvq_ctrl *ctrl = container_of(dev, struct nvq_ctrl, dev);
	u32 instance = ctrl->instance;

	kvfree(ctrl->ns_list);
	kfree(ctrl->queues);
	pci_dev_put(ctrl->pdev);
	kfree(ctrl);
	ida_free(&nvq_instances, instance);
	wake_up_all(&nvq_gone);
}

static void queue_release(struct device *dev)
{
	struct nvq_queue *q = container_of(dev, struct nvq_queue, dev);

	put_device(&q->ctrl->dev);
	kfree(q);
}

/* A controller not yet visible; put_device() frees it. */
struct nvq_ctrl *nvq_ctrl_new(struct pci_dev *pdev)
{
	struct nvq_ctrl *ctrl;
	int id;

	ctrl = kzalloc_node(sizeof(*ctrl), GFP_KERNEL,
			    dev_to_node(&pdev->dev));
	if (!ctrl)
		return NULL;
	id = ida_alloc(&nvq_instances, GFP_KERNEL);
	if (id < 0) {
		kfree(ctrl);
		return NULL;
	}
	ctrl->instance = id;
	/* its node answers for the device until the last file is closed */
	ctrl->pdev = pci_dev_get(pdev);
	mutex_init(&ctrl->lock);
	mutex_init(&ctrl->freeze_lock);
	mutex_init(&ctrl->rescan_lock);
	mutex_init(&ctrl->ns_lock);
	spin_lock_init(&ctrl->state_lock);
	init_waitqueue_head(&ctrl->wait);
	INIT_WORK(&ctrl->reset_work, nvq_reset_work);
	INIT_WORK(&ctrl->aer_work, nvq_aer_work);
	device_initialize(&ctrl->dev);
	ctrl->dev.class = nvq_class;
	ctrl->dev.parent = &pdev->dev;
	ctrl->dev.release = ctrl_release;
	ctrl->dev.groups = nvq_ctrl_groups;
	dev_set_drvdata(&ctrl->dev, ctrl);
	nvq_fault_init(ctrl);
	if (dev_set_name(&ctrl->dev, "nvq%u", ctrl->instance)) {
		put_device(&ctrl->dev);
		return NULL;
	}
	return ctrl;
}

static struct nvq_queue *queue_new(struct nvq_ctrl *ctrl,
				   const struct nvq_qset *set, u16 index)
{
	struct nvq_queue *q;

	q = kzalloc_node(sizeof(*q), GFP_KERNEL, dev_to_node(&ctrl->pdev->dev));
	if (!q)
		return NULL;
	q->ctrl = ctrl;
	get_device(&ctrl->dev);
	q->kind = set->kind;
	q->qid = set->first + index;
	q->index = index;
	q->hw = NVQ_HW_NONE;
	q->vector = index + 1;	/* 0 is the admin queue's */
	spin_lock_init(&q->lock);
	mutex_init(&q->mutex);
	init_waitqueue_head(&q->wait);
	INIT_DELAYED_WORK(&q->watch, nvq_watch);
	device_initialize(&q->dev);
	q->dev.class = nvq_class;
	q->dev.parent = &ctrl->dev;
	q->dev.release = queue_release;
	q->dev.groups = nvq_queue_groups;
	dev_set_drvdata(&q->dev, q);
	if (dev_set_name(&q->dev, "nvq%u%s%u", ctrl->instance, set->name,
			 index)) {
		put_device(&q->dev);
		return NULL;
	}
	return q;
}

/* All queues of all sets, by qid. */
int nvq_queues_new(struct nvq_ctrl *ctrl)
{
	unsigned int s, i, nr = 0;
	struct nvq_queue *q;

	for (s = 0; s < NVQ_NR_SETS; s++)
		nr += ctrl->sets[s].count;
	ctrl->queues = kcalloc(max(nr, 1U), sizeof(*ctrl->queues), GFP_KERNEL);
	if (!ctrl->queues)
		return -ENOMEM;
	for (s = 0; s < NVQ_NR_SETS; s++)
		for (i = 0; i < ctrl->sets[s].count; i++) {
			q = queue_new(ctrl, &ctrl->sets[s], i);
			if (!q)
				return -ENOMEM;
			ctrl->queues[ctrl->nr_queues++] = q;
		}
	return 0;
}

static int node_add(struct device *dev, struct cdev *cdev,
		    const struct file_operations *fops)
{
	int minor, err;

	minor = ida_alloc_max(&nvq_minors, NVQ_MINORS - 1, GFP_KERNEL);
	if (minor < 0)
		return minor;
	dev->devt = nvq_base + minor;
	cdev_init(cdev, fops);
	cdev->owner = THIS_MODULE;
	err = cdev_device_add(cdev, dev);
	if (err) {
		ida_free(&nvq_minors, minor);
		dev->devt = 0;
	}
	return err;
}

static void node_del(struct device *dev, struct cdev *cdev)
{
	if (!dev->devt)
		return;
	cdev_device_del(cdev, dev);
	ida_free(&nvq_minors, MINOR(dev->devt) - MINOR(nvq_base));
}

int nvq_nodes_add(struct nvq_ctrl *ctrl)
{
	struct nvq_queue *q;
	unsigned int i;
	int err;

	err = node_add(&ctrl->dev, &ctrl->cdev, &nvq_ctrl_fops);
	if (err)
		return err;
	nvq_for_each_queue(ctrl, q, i) {
		err = node_add(&q->dev, &q->cdev, &nvq_queue_fops);
		if (err)
			return err;	/* nvq_nodes_del() undoes the rest */
	}
	return 0;
}

/* No new opens from here; files already open go on living. */
void nvq_nodes_del(struct nvq_ctrl *ctrl)
{
	struct nvq_queue *q;
	unsigned int i;

	nvq_for_each_queue(ctrl, q, i)
		node_del(&q->dev, &q->cdev);
	node_del(&ctrl->dev, &ctrl->cdev);
}

int nvq_nodes_init(void)
{
	int err;

	err = alloc_chrdev_region(&nvq_base, 0, NVQ_MINORS, "nvqueue");
	if (err)
		return err;
	nvq_class = nvq_class_create();
	if (IS_ERR(nvq_class)) {
		unregister_chrdev_region(nvq_base, NVQ_MINORS);
		return PTR_ERR(nvq_class);
	}
	return 0;
}

/*
 * The release functions are ours, and the last reference need not be a file's,
 * which holds the module (queue.c, unplug()).
 */
void nvq_nodes_exit(void)
{
	wait_event(nvq_gone, ida_is_empty(&nvq_instances));
	class_destroy(nvq_class);
	unregister_chrdev_region(nvq_base, NVQ_MINORS);
	ida_destroy(&nvq_minors);
	ida_destroy(&nvq_instances);
}
