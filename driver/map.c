// SPDX-License-Identifier: GPL-2.0
/*
 * The data of a standard command: pinned for the one I/O, mapped for DMA,
 * described to the controller, and all of it undone again.
 *
 * Two halves, because they have different neighbours.  Pinning may fault and
 * so sleep without a bound; it happens before a slot is taken and unpinning
 * after it was given back.  DMA mapping happens between, while the slot is
 * held, so that removal can wait for it; unmapping happens at once when the
 * command ends, in whatever context that is.
 *
 * Called by passthru.c (pin), queue.c (everything else).  A map belongs to one
 * submitter or one slot at a time; nothing here locks.
 */
#include <linux/dmapool.h>
#include <linux/compat.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "nvqueue.h"

#define PIN_BATCH	16

int nvq_list_alloc(struct nvq_ctrl *ctrl, struct nvq_list *list)
{
	unsigned int i;

	list->va = dma_pool_alloc(ctrl->list_pool, GFP_KERNEL, &list->dma);
	if (!list->va)
		return -ENOMEM;
	for (i = 0; i < NVQ_LIST_BYTES / sizeof(__le64); i++)
		list->va[i] = cpu_to_le64(ctrl->guard_data.dma);
	return 0;
}

/*
 * Two of them: unused entries of a list point at guard_data, which may be
 * scribbled on; an unused PRP2 points at the guard list, so that a controller
 * that takes it for a list finds guards in it.
 */
int nvq_guard_alloc(struct nvq_ctrl *ctrl)
{
	int err;

	/* its content is never an address, whatever it is taken for */
	ctrl->guard_data.va = dma_pool_zalloc(ctrl->list_pool, GFP_KERNEL,
					      &ctrl->guard_data.dma);
	if (!ctrl->guard_data.va)
		return -ENOMEM;
	err = nvq_list_alloc(ctrl, &ctrl->guard);
	if (err)
		nvq_list_free(ctrl, &ctrl->guard_data);
	return err;
}

void nvq_guard_free(struct nvq_ctrl *ctrl)
{
	nvq_list_free(ctrl, &ctrl->guard);
	nvq_list_free(ctrl, &ctrl->guard_data);
}

/* A format changed under us: data may have gone where a list is expected. */
void nvq_guard_restore(struct nvq_ctrl *ctrl)
{
	unsigned int i;

	for (i = 0; i < NVQ_LIST_BYTES / sizeof(__le64); i++)
		WRITE_ONCE(ctrl->guard.va[i],
			   cpu_to_le64(ctrl->guard_data.dma));
}

void nvq_list_free(struct nvq_ctrl *ctrl, struct nvq_list *list)
{
	if (list->va)
		dma_pool_free(ctrl->list_pool, list->va, list->dma);
	list->va = NULL;
}

static void unpin(struct nvq_map *m, bool dirty)
{
	u32 i;

	if (!m->pinned)
		return;
	for (i = 0; i < m->nr; i++)
		unpin_user_pages_dirty_lock(&m->bv[i].bv_page, 1, dirty);
	m->pinned = false;
}

static void free_bvecs(struct nvq_map *m)
{
	if (m->bv != &m->one)
		kfree(m->bv);
	m->bv = NULL;
	m->nr = 0;
}

static int alloc_bvecs(struct nvq_map *m, u32 nr)
{
	if (nr == 1) {
		m->bv = &m->one;
		return 0;
	}
	m->bv = kmalloc_array(nr, sizeof(*m->bv), GFP_KERNEL);
	return m->bv ? 0 : -ENOMEM;
}

static u32 pages_of(u64 addr, u32 len)
{
	return DIV_ROUND_UP(offset_in_page(addr) + len, PAGE_SIZE);
}

/* Pins @len > 0 bytes at @addr and appends them. */
static int pin_range(struct nvq_map *m, u64 addr, u32 len)
{
	unsigned int gup = m->dir == DMA_FROM_DEVICE ? FOLL_WRITE : 0;
	struct page *pages[PIN_BATCH];
	u32 off = offset_in_page(addr);
	int want, got, i;

	if (addr + len < addr)
		return -EFAULT;
	m->pinned = true;
	while (len) {
		want = min_t(u32, pages_of(addr, len), PIN_BATCH);
		got = pin_user_pages_fast(addr & PAGE_MASK, want, gup, pages);
		if (got <= 0)
			return got ? got : -EFAULT;
		for (i = 0; i < got; i++) {
			u32 n = min_t(u32, len, PAGE_SIZE - off);

			m->bv[m->nr].bv_page = pages[i];
			m->bv[m->nr].bv_offset = off;
			m->bv[m->nr++].bv_len = n;
			m->len += n;
			addr += n;
			len -= n;
			off = 0;
		}
	}
	return 0;
}

/* On error nothing stays pinned. */
static int pin_failed(struct nvq_map *m, int err)
{
	unpin(m, false);
	free_bvecs(m);
	return err;
}

int nvq_map_user(struct nvq_map *m, u64 addr, u32 len,
		 enum dma_data_direction dir)
{
	int err;

	m->dir = dir;
	err = alloc_bvecs(m, pages_of(addr, len));
	if (err)
		return err;
	err = pin_range(m, addr, len);
	return err ? pin_failed(m, err) : 0;
}

static int pin_iovecs(struct nvq_map *m, const struct iovec *iov, u32 nr,
		      u32 len)
{
	u32 i;
	int err;

	for (i = 0; i < nr && len; i++) {
		u32 n = min_t(size_t, len, iov[i].iov_len);

		if (!n)
			continue;
		err = pin_range(m, (u64)(uintptr_t)iov[i].iov_base, n);
		if (err)
			return err;
		len -= n;
	}
	/* The vectors hold less than the command moves. */
	return len ? -EINVAL : 0;
}

int nvq_map_iovec(struct nvq_map *m, u64 addr, u32 nr, u32 len,
		  enum dma_data_direction dir)
{
	struct iovec *iov;
	u32 i, pages = 0, left = len;
	int err;

	/* struct iovec of a 32-bit caller has another layout */
	if (!nr || nr > UIO_MAXIOV || in_compat_syscall())
		return -EINVAL;
	iov = memdup_user(u64_to_user_ptr(addr), nr * sizeof(*iov));
	if (IS_ERR(iov))
		return PTR_ERR(iov);
	for (i = 0; i < nr && left; i++) {
		u32 n = min_t(size_t, left, iov[i].iov_len);

		if (n)
			pages += pages_of((uintptr_t)iov[i].iov_base, n);
		left -= n;
	}
	m->dir = dir;
	err = pages ? alloc_bvecs(m, pages) : -EINVAL;
	if (!err) {
		err = pin_iovecs(m, iov, nr, len);
		if (err)
			pin_failed(m, err);
	}
	kfree(iov);
	return err;
}

/* A registered buffer of the ring, which pins it until the command ends. */
int nvq_map_fixed(struct nvq_map *m, struct iov_iter *iter,
		  enum dma_data_direction dir)
{
	const struct bio_vec *bv = iter->bvec;
	size_t skip = iter->iov_offset, left = iter->count;
	u32 nr = iter->nr_segs;
	int err;

	m->dir = dir;
	if (!nr || !left)
		return -EINVAL;
	err = alloc_bvecs(m, skip + left <= bv->bv_len ? 1 : nr);
	if (err)
		return err;
	for (; left && nr; bv++, nr--) {
		u32 n;

		if (skip >= bv->bv_len) {
			skip -= bv->bv_len;
			continue;
		}
		n = min_t(size_t, left, bv->bv_len - skip);
		m->bv[m->nr].bv_page = bv->bv_page;
		m->bv[m->nr].bv_offset = bv->bv_offset + skip;
		m->bv[m->nr++].bv_len = n;
		m->len += n;
		left -= n;
		skip = 0;
	}
	return left ? pin_failed(m, -EINVAL) : 0;
}

/* Copies between the user's pages and the bounce pages, byte for byte. */
static void bounce_copy(struct nvq_map *m, bool to_user)
{
	u32 ui = 0, uo = 0, bi = 0, bo = 0;

	while (ui < m->nr && bi < m->nr_bounce) {
		struct bio_vec *u = &m->bv[ui], *b = &m->bounce[bi];
		u32 off = u->bv_offset + uo;
		struct page *page = u->bv_page + off / PAGE_SIZE;
		u32 n = min(u->bv_len - uo, b->bv_len - bo);

		off = offset_in_page(off);
		n = min_t(u32, n, PAGE_SIZE - off);
		if (to_user)
			memcpy_page(page, off, b->bv_page, bo, n);
		else
			memcpy_page(b->bv_page, bo, page, off, n);
		uo += n;
		bo += n;
		if (uo == u->bv_len) {
			ui++;
			uo = 0;
		}
		if (bo == b->bv_len) {
			bi++;
			bo = 0;
		}
	}
}

/* Process context or a spinlock: frees pages only. */
void nvq_map_unbounce(struct nvq_map *m)
{
	u32 i;

	for (i = 0; i < m->nr_bounce; i++)
		__free_page(m->bounce[i].bv_page);
	kfree(m->bounce);
	m->bounce = NULL;
	m->nr_bounce = 0;
}

/* Zeroed pages: a command that moves less than it said must leak nothing. */
static int bounce_alloc(struct nvq_map *m)
{
	u32 nr = DIV_ROUND_UP(m->len, PAGE_SIZE), left = m->len, i;

	m->bounce = kcalloc(nr, sizeof(*m->bounce), GFP_KERNEL_ACCOUNT);
	if (!m->bounce)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

		if (!page) {
			nvq_map_unbounce(m);
			return -ENOMEM;
		}
		m->bounce[i].bv_page = page;
		m->bounce[i].bv_len = min_t(u32, left, PAGE_SIZE);
		left -= m->bounce[i].bv_len;
		m->nr_bounce++;
	}
	if (m->dir == DMA_TO_DEVICE)
		bounce_copy(m, false);
	return 0;
}

/*
 * What the controller cannot reach as it is: addresses that are not a multiple
 * of 4 (base 2.0, PRP entry and SGL address), and with PRPs a gap between
 * pages.  The stock driver bounces these too.
 */
static bool reachable(const struct nvq_map *m, bool sgl)
{
	u32 i;

	for (i = 0; i < m->nr; i++) {
		u32 start = m->bv[i].bv_offset;
		u32 end = start + m->bv[i].bv_len;

		if ((start | m->bv[i].bv_len) & 3)
			return false;
		if (sgl)
			continue;
		if ((i && start % NVQ_CTRL_PAGE) ||
		    (i + 1 < m->nr && end % NVQ_CTRL_PAGE))
			return false;
	}
	return true;
}

static int map_sg(struct device *dev, struct nvq_map *m,
		  const struct bio_vec *bv, u32 nr)
{
	struct scatterlist *sg;
	unsigned int i;
	int err;

	err = sg_alloc_table(&m->sgt, nr, GFP_KERNEL);
	if (err)
		return err;
	for_each_sg(m->sgt.sgl, sg, nr, i)
		sg_set_page(sg, bv[i].bv_page, bv[i].bv_len, bv[i].bv_offset);
	err = dma_map_sgtable(dev, &m->sgt, m->dir, 0);
	if (err)
		sg_free_table(&m->sgt);
	return err;
}

static int map_pages(struct nvq_ctrl *ctrl, struct nvq_map *m, bool sgl)
{
	struct device *dev = &ctrl->pdev->dev;
	const struct bio_vec *bv = m->bv;
	u32 nr = m->nr;
	int err;

	m->sgt.sgl = NULL;
	if (unlikely(!reachable(m, sgl))) {
		err = bounce_alloc(m);
		if (err)
			return err;
		bv = m->bounce;
		nr = m->nr_bounce;
	}
	if (nr > 1) {
		err = map_sg(dev, m, bv, nr);
		if (err)
			return err;
	} else {
		m->dma = dma_map_page(dev, bv->bv_page, bv->bv_offset,
				      bv->bv_len, m->dir);
		if (dma_mapping_error(dev, m->dma))
			return -ENOMEM;
	}
	m->dma_mapped = true;
	return 0;
}

static int describe_prp(struct nvq_ctrl *ctrl, struct nvq_map *m,
			struct nvq_list *list, struct nvme_command *cmd)
{
	struct nvq_prp_builder b;
	struct scatterlist *sg;
	unsigned int i;
	int err = 0;

	nvq_prp_init(&b, list->va);
	if (!m->sgt.sgl)
		err = nvq_prp_add(&b, m->dma, m->len);
	else
		for_each_sgtable_dma_sg(&m->sgt, sg, i) {
			err = nvq_prp_add(&b, sg_dma_address(sg),
					  sg_dma_len(sg));
			if (err)
				break;
		}
	m->list_used = nvq_prp_used(&b);
	cmd->common.dptr.prp1 = cpu_to_le64(b.prp1);
	cmd->common.dptr.prp2 = cpu_to_le64(nvq_prp2(&b, list->dma,
						     ctrl->guard.dma));
	return err;
}

static int describe_sgl(struct nvq_map *m, struct nvq_list *list,
			struct nvme_command *cmd)
{
	struct nvq_sgl_desc *d = (void *)&cmd->common.dptr.sgl;
	struct nvq_sgl_builder b = { .list = (void *)list->va };
	struct scatterlist *sg;
	unsigned int i;
	int err = 0;

	BUILD_BUG_ON(sizeof(*d) != sizeof(cmd->common.dptr.sgl));
	cmd->common.flags |= NVME_CMD_SGL_METABUF;
	if (!m->sgt.sgl) {
		nvq_sgl_fill(d, m->dma, m->len, NVQ_SGL_DATA);
		return 0;
	}
	if (m->sgt.nents == 1) {
		sg = m->sgt.sgl;
		nvq_sgl_fill(d, sg_dma_address(sg), sg_dma_len(sg),
			     NVQ_SGL_DATA);
		return 0;
	}
	for_each_sgtable_dma_sg(&m->sgt, sg, i) {
		err = nvq_sgl_add(&b, sg_dma_address(sg), sg_dma_len(sg));
		if (err)
			break;
	}
	m->list_used = b.nr * sizeof(*d) / sizeof(__le64);
	nvq_sgl_segment(d, list->dma, b.nr);
	return err;
}

/*
 * Maps the pinned pages and fills the command's data pointer.  On error the
 * map is as before, still pinned.
 */
int nvq_map_dma(struct nvq_ctrl *ctrl, struct nvq_map *m,
		struct nvq_list *list, struct nvme_command *cmd, bool sgl)
{
	int err;

	if (!m->bv)
		return 0;
	if (!list->va && (m->nr > 1 ||
			  m->bv->bv_offset % NVQ_CTRL_PAGE + m->len >
			  NVQ_CTRL_PAGE)) {
		err = nvq_list_alloc(ctrl, list);
		if (err)
			return err;
	}
	err = map_pages(ctrl, m, sgl);
	if (!err) {
		err = sgl ? describe_sgl(m, list, cmd) :
			    describe_prp(ctrl, m, list, cmd);
	}
	if (err) {
		nvq_unmap_dma(ctrl, m, list);
		nvq_map_unbounce(m);
	}
	return err;
}

/* Any context.  The controller must be past touching the pages. */
void nvq_unmap_dma(struct nvq_ctrl *ctrl, struct nvq_map *m,
		   struct nvq_list *list)
{
	struct device *dev = &ctrl->pdev->dev;
	u32 i;

	if (!m->dma_mapped)
		return;
	m->dma_mapped = false;
	for (i = 0; i < m->list_used; i++)
		list->va[i] = cpu_to_le64(ctrl->guard_data.dma);
	m->list_used = 0;
	if (!m->sgt.sgl) {
		dma_unmap_page(dev, m->dma, m->bounce ? m->bounce->bv_len :
			       m->bv->bv_len, m->dir);
		return;
	}
	dma_unmap_sgtable(dev, &m->sgt, m->dir, 0);
	sg_free_table(&m->sgt);
	m->sgt.sgl = NULL;
}

/*
 * May sleep.  After nvq_unmap_dma(), or before the DMA mapping was made.
 * @ok: the command moved its data.
 */
void nvq_map_release(struct nvq_map *m, bool ok)
{
	if (!m->bv)
		return;
	if (m->bounce) {
		if (ok && m->dir == DMA_FROM_DEVICE)
			bounce_copy(m, true);
		nvq_map_unbounce(m);
	}
	unpin(m, m->dir == DMA_FROM_DEVICE);
	free_bvecs(m);
}

/* From the submitter's stack into the slot, which then owns it. */
void nvq_map_move(struct nvq_map *to, struct nvq_map *from)
{
	*to = *from;
	if (from->bv == &from->one)
		to->bv = &to->one;
	from->bv = NULL;
}

/* The controller may still write: whatever it can reach stays pinned. */
void nvq_map_leak(struct nvq_map *m)
{
	u32 i;

	/* registered buffers are io_uring's to unpin, so hold their pages */
	for (i = 0; m->bv && !m->pinned && i < m->nr; i++)
		get_page(m->bv[i].bv_page);
	memset(m, 0, sizeof(*m));
}
