// SPDX-License-Identifier: GPL-2.0
/*
 * A hardware SQ/CQ pair: its pages, their DMA mapping, indices, doorbells.
 *
 * Knows nothing of slots or files.  The owner (admin.c, queue.c) serialises
 * every call but alloc and free with its own lock.
 *
 * The rings are ordinary pages, mapped for DMA once and inserted into user
 * mappings one by one: unlike coherent memory they stay valid after the driver
 * has left the device, until the last reference to each page is gone.
 */
#include <linux/dma-map-ops.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/slab.h>

#include "nvqueue.h"

static void ring_put_pages(struct page *pages, unsigned int order)
{
	unsigned int i;

	if (!pages)
		return;
	for (i = 0; i < 1U << order; i++)
		__free_page(pages + i);
}

/*
 * Would the device use a copy (swiotlb) that is only synced on request?  The
 * IOMMU's DMA ops answer yes for every address, as they have sync callbacks;
 * they bounce parts of pages at most, and rings are whole ones.
 */
bool nvq_dma_bounces(struct device *dev, dma_addr_t dma)
{
#ifdef CONFIG_IOMMU_API
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	if (domain && iommu_is_dma_domain(domain))
		return !dev_is_dma_coherent(dev);
#endif
	return dma_need_sync(dev, dma);
}

static struct page *ring_pages(struct nvq_ctrl *ctrl, size_t bytes,
			       unsigned int *order, dma_addr_t *dma)
{
	struct device *dev = &ctrl->pdev->dev;
	struct page *pages;

	*order = get_order(bytes);
	pages = alloc_pages_node(dev_to_node(dev), GFP_KERNEL | __GFP_ZERO,
				 *order);
	if (!pages)
		return NULL;
	split_page(pages, *order);
	*dma = dma_map_page(dev, pages, 0, PAGE_SIZE << *order,
			    DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dev, *dma))
		goto free;
	/*
	 * A mapping that lives as long as the queue is never synced, so one
	 * that goes through a bounce buffer would never see the device.
	 */
	if (nvq_dma_bounces(dev, *dma)) {
		dev_err(dev, "nvqueue: DMA to ring memory would bounce (swiotlb or non-coherent device); this driver needs direct access\n");
		dma_unmap_page(dev, *dma, PAGE_SIZE << *order,
			       DMA_BIDIRECTIONAL);
		goto free;
	}
	return pages;
free:
	ring_put_pages(pages, *order);
	return NULL;
}

int nvq_ring_alloc(struct nvq_ring *r, struct nvq_ctrl *ctrl, u16 qid,
		   u16 depth)
{
	u32 __iomem *db = ctrl->bar + NVME_REG_DBS;

	memset(r, 0, sizeof(*r));
	r->ctrl = ctrl;
	r->qid = qid;
	r->depth = depth;
	r->sq_pages = ring_pages(ctrl, depth * sizeof(struct nvme_command),
				 &r->sq_order, &r->sq_dma);
	if (!r->sq_pages)
		return -ENOMEM;
	r->cq_pages = ring_pages(ctrl, depth * sizeof(struct nvme_completion),
				 &r->cq_order, &r->cq_dma);
	if (!r->cq_pages) {
		dma_unmap_page(&ctrl->pdev->dev, r->sq_dma,
			       PAGE_SIZE << r->sq_order, DMA_BIDIRECTIONAL);
		ring_put_pages(r->sq_pages, r->sq_order);
		r->sq_pages = NULL;
		return -ENOMEM;
	}
	r->mapped = true;
	r->sqes = page_address(r->sq_pages);
	r->cqes = page_address(r->cq_pages);
	r->sq_db = db + qid * 2 * ctrl->db_stride;
	r->cq_db = db + (qid * 2 + 1) * ctrl->db_stride;
	nvq_ring_reset(r);
	return 0;
}

/* Only once the controller no longer has the queue. */
void nvq_ring_unmap(struct nvq_ring *r)
{
	struct device *dev;

	if (!r->mapped)
		return;
	dev = &r->ctrl->pdev->dev;
	dma_unmap_page(dev, r->sq_dma, PAGE_SIZE << r->sq_order,
		       DMA_BIDIRECTIONAL);
	dma_unmap_page(dev, r->cq_dma, PAGE_SIZE << r->cq_order,
		       DMA_BIDIRECTIONAL);
	r->mapped = false;
	/* The register window goes with the device. */
	r->sq_db = NULL;
	r->cq_db = NULL;
}

void nvq_ring_free(struct nvq_ring *r)
{
	ring_put_pages(r->sq_pages, r->sq_order);
	ring_put_pages(r->cq_pages, r->cq_order);
	r->sq_pages = NULL;
	r->cq_pages = NULL;
	r->sqes = NULL;
	r->cqes = NULL;
}

/* Before each creation: phase starts afresh, so old entries must be gone. */
void nvq_ring_reset(struct nvq_ring *r)
{
	memset(r->sqes, 0, r->depth * sizeof(*r->sqes));
	memset(r->cqes, 0, r->depth * sizeof(*r->cqes));
	r->sq_tail = 0;
	r->sq_rung = 0;
	r->cq_head = 0;
	r->cq_phase = 1;
	r->sq_shadow = NULL;
	if (r->qid)
		nvq_dbbuf_attach(r);
}

void nvq_ring_push(struct nvq_ring *r, const struct nvme_command *cmd)
{
	memcpy(&r->sqes[r->sq_tail], cmd, sizeof(*cmd));
	if (++r->sq_tail == r->depth)
		r->sq_tail = 0;
}

/* NVMe base 2.0 annex B.5: does the move from @old to @new pass @event? */
static bool db_needed(u16 event, u16 new, u16 old)
{
	return (u16)(new - event - 1) < (u16)(new - old);
}

/* True if the controller must be told by MMIO. */
static bool shadow_write(u16 value, __le32 *shadow, __le32 *event)
{
	u16 old;

	if (!shadow)
		return true;
	/*
	 * The entries before the index that publishes them; the controller
	 * reads the shadow with no doorbell between.
	 */
	wmb();
	old = le32_to_cpu(READ_ONCE(*shadow));
	WRITE_ONCE(*shadow, cpu_to_le32(value));
	/*
	 * Our index must be visible before we look at theirs, as theirs is
	 * before they look at ours: or both sides go to sleep.
	 */
	mb();
	return db_needed(le32_to_cpu(READ_ONCE(*event)), value, old);
}

/* Tells the controller about all entries pushed; one MMIO write at most. */
void nvq_ring_kick(struct nvq_ring *r)
{
	if (r->sq_tail == r->sq_rung)
		return;
	r->sq_rung = r->sq_tail;
	if (!shadow_write(r->sq_tail, r->sq_shadow, r->sq_event))
		return;
	/* writel orders the entries before itself */
	writel(r->sq_tail, r->sq_db);
	r->sq_doorbells++;
}

/* Gives the CQ entries before @head back to the controller. */
void nvq_ring_ack_to(struct nvq_ring *r, u16 head)
{
	if (!shadow_write(head, r->cq_shadow, r->cq_event))
		return;
	writel(head, r->cq_db);
	r->cq_doorbells++;
}
