// SPDX-License-Identifier: GPL-2.0
/*
 * Registered buffers of a native file: pinned and DMA-mapped once, their
 * addresses laid out as PRP lists (stage.h says how), charged to
 * RLIMIT_MEMLOCK.
 *
 * q->mutex around mapping, unmapping and the table of buffers; what submission
 * reads (the views) is published and withdrawn under q->lock.  A buffer is
 * unmapped only when no command in flight names it, and unpinned after that.
 */
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nvqueue.h"

#define PIN_CHUNK	512

/* Pins [@first page, ...): returns how far it came. */
static int pin_all(struct nvq_buf *b, u64 addr, u32 nr)
{
	unsigned int gup = FOLL_LONGTERM | (b->readonly ? 0 : FOLL_WRITE);
	int got;

	while (b->nr_pages < nr) {
		got = pin_user_pages_fast((addr & PAGE_MASK) +
					  (u64)b->nr_pages * PAGE_SIZE,
					  min_t(u32, nr - b->nr_pages,
						PIN_CHUNK),
					  gup, b->pages + b->nr_pages);
		if (got <= 0)
			return got ? got : -EFAULT;
		b->nr_pages += got;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/*
 * Anonymous and shmem pages are swap-backed; of the others only hugetlb will
 * do.  FOLL_LONGTERM would take ordinary file pages too, whose file system
 * knows nothing of a device writing to them.
 */
static int check_pages(const struct nvq_buf *b)
{
	u32 i;

	for (i = 0; i < b->nr_pages; i++) {
		struct folio *folio = page_folio(b->pages[i]);

		if (is_zone_device_page(b->pages[i]))
			return -EOPNOTSUPP;
		if (folio_test_swapbacked(folio) || folio_test_hugetlb(folio))
			continue;
		/* the zero page, where memory was never written */
		if (b->readonly && is_zero_pfn(page_to_pfn(b->pages[i])))
			continue;
		return -EOPNOTSUPP;
	}
	return 0;
}

static struct page *list_page(struct device *dev, struct nvq_buf_list *l)
{
	struct page *page = alloc_page(GFP_KERNEL_ACCOUNT);
	dma_addr_t dma;

	if (!page)
		return NULL;
	dma = dma_map_page(dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dev, dma)) {
		__free_page(page);
		return NULL;
	}
	l->va = page_address(page);
	l->dma = dma;
	return page;
}

static void free_lists(struct device *dev, struct nvq_buf *b)
{
	u32 i;

	for (i = 0; b->lists && i < b->nr_lists; i++) {
		if (!b->lists[i].va)
			continue;
		dma_unmap_page(dev, b->lists[i].dma, PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
		__free_page(virt_to_page(b->lists[i].va));
	}
	kvfree(b->lists);
	b->lists = NULL;
	kvfree(b->table);
	b->table = NULL;
}

static int alloc_lists(struct nvq_ctrl *ctrl, struct nvq_buf *b)
{
	u32 i, k;

	BUILD_BUG_ON(NVQ_CTRL_PAGE != PAGE_SIZE);
	b->nr_lists = DIV_ROUND_UP(b->nr_pages, NVQ_LIST_STEP);
	b->lists = kvcalloc(b->nr_lists, sizeof(*b->lists),
			    GFP_KERNEL_ACCOUNT);
	b->table = kvcalloc(b->nr_pages, sizeof(*b->table),
			    GFP_KERNEL_ACCOUNT);
	if (!b->lists || !b->table)
		return -ENOMEM;
	for (i = 0; i < b->nr_lists; i++) {
		if (!list_page(&ctrl->pdev->dev, &b->lists[i]))
			return -ENOMEM;
		for (k = 0; k < NVQ_PRP_LIST_MAX; k++)
			b->lists[i].va[k] = cpu_to_le64(ctrl->guard_data.dma);
		cond_resched();
	}
	return 0;
}

/* Page @page of the buffer is at @dma: in both lists that cover it, too. */
static void set_page_dma(struct nvq_buf *b, u32 page, u64 dma)
{
	u32 i = page / NVQ_LIST_STEP, at = page % NVQ_LIST_STEP;

	b->table[page] = (struct nvq_buf_page){
		.dma = dma,
		.list = b->lists[i].dma + (at + 1) * sizeof(__le64),
	};
	b->lists[i].va[at] = cpu_to_le64(dma);
	if (i)
		b->lists[i - 1].va[at + NVQ_LIST_STEP] = cpu_to_le64(dma);
}

static int fill_lists(struct device *dev, struct nvq_buf *b)
{
	struct scatterlist *sg;
	u32 page = 0;
	unsigned int i;

	for_each_sgtable_dma_sg(&b->sgt, sg, i) {
		u64 dma = sg_dma_address(sg), end = dma + sg_dma_len(sg);

		/* A mapping that is never synced must not bounce. */
		if (nvq_dma_bounces(dev, dma))
			return -EOPNOTSUPP;
		for (; dma < end && page < b->nr_pages; dma += PAGE_SIZE)
			set_page_dma(b, page++, dma);
	}
	return page == b->nr_pages ? 0 : -EIO;
}

static int map_buf(struct nvq_ctrl *ctrl, struct nvq_buf *b)
{
	struct device *dev = &ctrl->pdev->dev;
	int err;

	err = alloc_lists(ctrl, b);
	if (err)
		return err;
	err = sg_alloc_table_from_pages_segment(&b->sgt, b->pages, b->nr_pages,
			0, (unsigned long)b->nr_pages * PAGE_SIZE,
			NVQ_MAX_XFER, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	err = dma_map_sgtable(dev, &b->sgt, b->readonly ? DMA_TO_DEVICE :
			      DMA_BIDIRECTIONAL, 0);
	if (err) {
		sg_free_table(&b->sgt);
		return err;
	}
	b->dma_mapped = true;
	return fill_lists(dev, b);
}

/* DMA is over, or never began. */
static void unmap_buf(struct nvq_ctrl *ctrl, struct nvq_buf *b)
{
	struct device *dev = &ctrl->pdev->dev;

	if (b->dma_mapped) {
		dma_unmap_sgtable(dev, &b->sgt, b->readonly ? DMA_TO_DEVICE :
				  DMA_BIDIRECTIONAL, 0);
		sg_free_table(&b->sgt);
		b->dma_mapped = false;
	}
	free_lists(dev, b);
}

/* Whoever releases last: pages go back to, and the charge off, the same mm. */
static void release_buf(struct nvq_buf *b, u32 charged)
{
	if (b->nr_pages)
		unpin_user_pages_dirty_lock(b->pages, b->nr_pages,
					    !b->readonly);
	kvfree(b->pages);
	if (b->mm) {
		account_locked_vm(b->mm, charged, false);
		mmdrop(b->mm);
	}
	memset(b, 0, sizeof(*b));
}

static int check_range(const struct nvq_register *reg)
{
	if (reg->flags & ~NVQ_REG_READONLY)
		return -EINVAL;
	if (!reg->len || reg->len > NVQ_MAX_BUF_LEN || (reg->addr & 3))
		return -EINVAL;
	if (reg->addr + reg->len < reg->addr)
		return -EINVAL;
	return 0;
}

static u32 pages_of(const struct nvq_register *reg)
{
	return DIV_ROUND_UP(offset_in_page(reg->addr) + reg->len, PAGE_SIZE);
}

/*
 * Without q->mutex: a page fault takes as long as who serves it likes (FUSE,
 * userfaultfd), and a reset of the controller waits for that mutex.
 */
static int pin_buf(struct nvq_buf *b, const struct nvq_register *reg)
{
	u32 nr = pages_of(reg);
	int err;

	b->readonly = reg->flags & NVQ_REG_READONLY;
	err = account_locked_vm(current->mm, nr, true);
	if (err)
		return err;
	b->mm = current->mm;
	mmgrab(b->mm);
	b->pages = kvcalloc(nr, sizeof(*b->pages), GFP_KERNEL_ACCOUNT);
	err = b->pages ? pin_all(b, reg->addr, nr) : -ENOMEM;
	if (!err)
		err = check_pages(b);
	if (err)
		release_buf(b, nr);
	return err;
}

static int free_index(struct nvq_native *n)
{
	u32 i;

	for (i = 0; i < NVQ_MAX_BUFS; i++)
		if (!n->bufs[i].pages)
			return i;
	return -ENOSPC;
}

/* Under q->mutex: @b, which is pinned, becomes the next free one. */
static int add_buf(struct nvq_queue *q, struct nvq_buf *b,
		   const struct nvq_register *reg)
{
	struct nvq_native *n = q->native;
	int i, err;

	/* A dead queue's device is no more to map for. */
	if (READ_ONCE(q->hw) == NVQ_HW_DEAD)
		return -ENODEV;
	i = free_index(n);
	if (i < 0)
		return i;
	err = map_buf(q->ctrl, b);
	if (err) {
		unmap_buf(q->ctrl, b);
		return err;
	}
	n->bufs[i] = *b;
	spin_lock_irq(&q->lock);
	n->views[i] = (struct nvq_buf_view){
		.pages = b->table,
		.len = reg->len,
		.start = offset_in_page(reg->addr),
		.len_in = b->readonly ? 0 : reg->len,
	};
	n->nr_bufs = max_t(u32, n->nr_bufs, i + 1);
	spin_unlock_irq(&q->lock);
	return i;
}

int nvq_buf_register(struct nvq_queue *q, struct nvq_register *reg)
{
	struct nvq_buf b = { 0 };
	int ret;

	ret = check_range(reg);
	if (!ret)
		ret = pin_buf(&b, reg);
	if (ret)
		return ret;
	mutex_lock(&q->mutex);
	ret = add_buf(q, &b, reg);
	mutex_unlock(&q->mutex);
	if (ret < 0) {
		release_buf(&b, b.nr_pages);
		return ret;
	}
	reg->index = ret;
	return 0;
}

/* Any command in flight that names buffer @i?  Harvests on the way. */
static bool buf_busy(struct nvq_queue *q, u32 i)
{
	struct nvq_native *n = q->native;
	bool busy = false;
	u32 cid;

	nvq_reap(q);
	spin_lock_irq(&q->lock);
	for (cid = 0; cid < q->ring.depth && !busy; cid++)
		busy = nvq_nslot_inflight(&n->slots[cid]) &&
		       n->slots[cid].buf == i;
	spin_unlock_irq(&q->lock);
	return busy;
}

static void withdraw(struct nvq_queue *q, u32 i, const struct nvq_buf_view *v)
{
	spin_lock_irq(&q->lock);
	q->native->views[i] = *v;
	spin_unlock_irq(&q->lock);
}

/*
 * No new command can name it from the first step on; those in flight are waited
 * for without q->mutex, which recovery needs to end them.  -EINTR: killed, and
 * the buffer is as before.
 */
int nvq_buf_unregister(struct nvq_queue *q, u32 index)
{
	const struct nvq_buf_view none = { 0 };
	struct nvq_native *n = q->native;
	struct nvq_buf_view old;
	u32 charged;

	if (index >= NVQ_MAX_BUFS)
		return -ENOENT;
	index = array_index_nospec(index, NVQ_MAX_BUFS);
	mutex_lock(&q->mutex);
	old = n->views[index];
	if (old.len)
		withdraw(q, index, &none);
	mutex_unlock(&q->mutex);
	if (!old.len)
		return -ENOENT;
	while (buf_busy(q, index)) {
		if (fatal_signal_pending(current)) {
			withdraw(q, index, &old);
			return -EINTR;
		}
		schedule_timeout_killable(1);
	}
	mutex_lock(&q->mutex);
	charged = n->bufs[index].nr_pages;
	if (!q->ctrl->leak) {
		unmap_buf(q->ctrl, &n->bufs[index]);
		release_buf(&n->bufs[index], charged);
	}
	mutex_unlock(&q->mutex);
	return 0;
}

/* Removal, DMA over: the addresses go, the pages stay until release. */
void nvq_bufs_unmap(struct nvq_queue *q)
{
	const struct nvq_buf_view none = { 0 };
	struct nvq_native *n = q->native;
	u32 i;

	for (i = 0; n && i < n->nr_bufs; i++) {
		withdraw(q, i, &none);
		unmap_buf(q->ctrl, &n->bufs[i]);
	}
}

/* The last close, after nvq_bufs_unmap(). */
void nvq_bufs_free(struct nvq_queue *q)
{
	struct nvq_native *n = q->native;
	u32 i;

	for (i = 0; i < n->nr_bufs; i++)
		if (!q->ctrl->leak)
			release_buf(&n->bufs[i], n->bufs[i].nr_pages);
}
