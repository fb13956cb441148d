// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI driver: probe, removal, and the resets and power transitions that
 * others impose on the function.
 *
 * No id table: a drive comes to us only by driver_override (nvq bind), never
 * by being there.
 */
#include <linux/dmapool.h>
#include <linux/interrupt.h>
#include <linux/module.h>

#include "nvqueue.h"

static int map_device(struct nvq_ctrl *ctrl)
{
	struct pci_dev *pdev = ctrl->pdev;
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = pci_request_mem_regions(pdev, "nvqueue");
	if (err)
		goto disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto release;
	/* A bounce buffer keeps the offset in the page, which PRPs need. */
	dma_set_min_align_mask(&pdev->dev, NVQ_CTRL_PAGE - 1);
	dma_set_max_seg_size(&pdev->dev, NVQ_MAX_XFER);
	err = -ENOMEM;
	ctrl->bar = pci_ioremap_bar(pdev, 0);
	if (!ctrl->bar)
		goto release;
	return 0;
release:
	pci_release_mem_regions(pdev);
disable:
	pci_disable_device(pdev);
	return err;
}

static void unmap_device(struct nvq_ctrl *ctrl)
{
	iounmap(ctrl->bar);
	pci_release_mem_regions(ctrl->pdev);
	pci_disable_device(ctrl->pdev);
}

/* Vector 0 for the admin queue, one more for each irq queue. */
static int get_vectors(struct nvq_ctrl *ctrl)
{
	struct pci_dev *pdev = ctrl->pdev;
	int nr, err;

	nr = pci_alloc_irq_vectors(pdev, 1, 1 + nvq_user_irq_queues,
				   PCI_IRQ_ALL_TYPES);
	if (nr < 0)
		return nr;
	ctrl->nr_vectors = nr;
	err = request_irq(pci_irq_vector(pdev, 0), nvq_admin_irq, IRQF_SHARED,
			  dev_name(&ctrl->dev), ctrl);
	if (err)
		pci_free_irq_vectors(pdev);
	return err;
}

static void put_vectors(struct nvq_ctrl *ctrl)
{
	struct nvq_queue *q;
	unsigned int i;

	nvq_for_each_queue(ctrl, q, i)
		if (q->irq_on)
			free_irq(pci_irq_vector(ctrl->pdev, q->vector), q);
	free_irq(pci_irq_vector(ctrl->pdev, 0), ctrl);
	pci_free_irq_vectors(ctrl->pdev);
}

static int request_queue_irqs(struct nvq_ctrl *ctrl)
{
	struct nvq_queue *q;
	unsigned int i;
	int err;

	nvq_for_each_queue(ctrl, q, i) {
		if (q->kind != NVQ_KIND_IRQ)
			continue;
		err = request_irq(pci_irq_vector(ctrl->pdev, q->vector),
				  nvq_irq, 0, dev_name(&q->dev), q);
		if (err)
			return err;
		q->irq_on = true;
	}
	return 0;
}

static int alloc_memory(struct nvq_ctrl *ctrl)
{
	int err;

	ctrl->list_pool = dma_pool_create("nvqueue lists", &ctrl->pdev->dev,
					  NVQ_LIST_BYTES, NVQ_CTRL_PAGE, 0);
	if (!ctrl->list_pool)
		return -ENOMEM;
	err = nvq_guard_alloc(ctrl);
	if (err)
		goto destroy;
	err = nvq_admin_alloc(ctrl);
	if (err)
		goto guard;
	return 0;
guard:
	nvq_guard_free(ctrl);
destroy:
	dma_pool_destroy(ctrl->list_pool);
	return err;
}

static void free_memory(struct nvq_ctrl *ctrl)
{
	if (ctrl->leak) {
		dev_err(&ctrl->dev, "the controller may still write to memory: leaking its admin queue and lists\n");
		return;
	}
	nvq_admin_free(ctrl);
	nvq_dbbuf_free(ctrl);
	nvq_guard_free(ctrl);
	dma_pool_destroy(ctrl->list_pool);
}

/* The controller is up: its queues and their nodes. */
static int add_queues(struct nvq_ctrl *ctrl, u16 granted)
{
	int err;

	nvq_ctrl_share_queues(ctrl, granted);
	err = nvq_queues_new(ctrl);
	if (!err)
		err = request_queue_irqs(ctrl);
	if (err)
		return err;
	nvq_ctrl_set_state(ctrl, NVQ_CTRL_LIVE);
	return nvq_nodes_add(ctrl);
}

static void put_queues(struct nvq_ctrl *ctrl)
{
	unsigned int i, nr;

	/*
	 * Who walks the queues from an open file of the controller's node
	 * (format change, rescan) holds one of these and finds none from here.
	 */
	mutex_lock(&ctrl->freeze_lock);
	mutex_lock(&ctrl->ns_lock);
	nr = ctrl->nr_queues;
	ctrl->nr_queues = 0;
	mutex_unlock(&ctrl->ns_lock);
	mutex_unlock(&ctrl->freeze_lock);
	for (i = 0; i < nr; i++)
		put_device(&ctrl->queues[i]->dev);
	put_device(&ctrl->dev);
}

static void announce(struct nvq_ctrl *ctrl)
{
	dev_info(&ctrl->dev, "%s: %s, serial %s: %u poll and %u irq queues of depth %u, MDTS %u, %s%s\n",
		 pci_name(ctrl->pdev), ctrl->model, ctrl->serial,
		 ctrl->sets[NVQ_SET_POLL].count, ctrl->sets[NVQ_SET_IRQ].count,
		 ctrl->depth, ctrl->max_xfer, ctrl->sgl ? "SGL" : "PRP",
		 ctrl->dbbuf_on ? ", shadow doorbells" : "");
}

static int nvq_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct nvq_ctrl *ctrl;
	int err;

	if (pdev->class != PCI_CLASS_STORAGE_EXPRESS) {
		dev_err(&pdev->dev, "nvqueue: not an NVMe controller (class 0x%06x)\n",
			pdev->class);
		return -ENODEV;
	}
	ctrl = nvq_ctrl_new(pdev);
	if (!ctrl)
		return -ENOMEM;
	pci_set_drvdata(pdev, ctrl);
	err = map_device(ctrl);
	if (err)
		goto put;
	err = nvq_ctrl_caps(ctrl);
	if (!err)
		err = alloc_memory(ctrl);
	if (err)
		goto unmap;
	err = get_vectors(ctrl);
	if (err)
		goto free;
	mutex_lock(&ctrl->lock);
	err = nvq_ctrl_start(ctrl);
	mutex_unlock(&ctrl->lock);
	if (err >= 0)
		err = add_queues(ctrl, err);
	if (err)
		goto stop;
	announce(ctrl);
	return 0;
stop:
	nvq_nodes_del(ctrl);
	nvq_ctrl_remove(ctrl);
	put_vectors(ctrl);
free:
	free_memory(ctrl);
unmap:
	unmap_device(ctrl);
put:
	put_queues(ctrl);
	return err;
}

static void nvq_remove(struct pci_dev *pdev)
{
	struct nvq_ctrl *ctrl = pci_get_drvdata(pdev);

	/* first: the nodes' removal waits for a writer of reset_controller */
	nvq_ctrl_set_state(ctrl, NVQ_CTRL_DELETING);
	nvq_nodes_del(ctrl);
	nvq_ctrl_remove(ctrl);
	put_vectors(ctrl);
	free_memory(ctrl);
	unmap_device(ctrl);
	put_queues(ctrl);
}

/* Reboot or kexec: no DMA may outlive us. */
static void nvq_shutdown(struct pci_dev *pdev)
{
	nvq_ctrl_remove(pci_get_drvdata(pdev));
}

static pci_ers_result_t error_detected(struct pci_dev *pdev,
				       pci_channel_state_t state)
{
	struct nvq_ctrl *ctrl = pci_get_drvdata(pdev);

	dev_warn(&ctrl->dev, "PCI error (channel state %d)\n", state);
	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	ctrl->sick = true;
	if (state == pci_channel_io_perm_failure ||
	    !nvq_ctrl_pause(ctrl, false))
		return PCI_ERS_RESULT_DISCONNECT;
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	struct nvq_ctrl *ctrl = pci_get_drvdata(pdev);

	pci_restore_state(pdev);
	nvq_ctrl_resume(ctrl);
	return READ_ONCE(ctrl->state) == NVQ_CTRL_LIVE ?
	       PCI_ERS_RESULT_RECOVERED : PCI_ERS_RESULT_DISCONNECT;
}

static void reset_prepare(struct pci_dev *pdev)
{
	nvq_ctrl_pause(pci_get_drvdata(pdev), false);
}

static void reset_done(struct pci_dev *pdev)
{
	nvq_ctrl_resume(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers nvq_error_handlers = {
	.error_detected	= error_detected,
	.slot_reset	= slot_reset,
	.reset_prepare	= reset_prepare,
	.reset_done	= reset_done,
};

static int nvq_suspend(struct device *dev)
{
	nvq_ctrl_pause(pci_get_drvdata(to_pci_dev(dev)), true);
	return 0;
}

static int nvq_resume(struct device *dev)
{
	nvq_ctrl_resume(pci_get_drvdata(to_pci_dev(dev)));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(nvq_pm, nvq_suspend, nvq_resume);

struct pci_driver nvq_pci_driver = {
	.name		= "nvqueue",
	.probe		= nvq_probe,
	.remove		= nvq_remove,
	.shutdown	= nvq_shutdown,
	.err_handler	= &nvq_error_handlers,
	.driver.pm	= pm_sleep_ptr(&nvq_pm),
};
