/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The driver's own allocations, for tests that let each of them fail in turn: with
 * --enable-fault-points, the names below ask nvq_fault_alloc() first.  The kernel's
 * own fault injection reaches no worker, which is where a reset runs, and fails
 * allocations of the kernel around us as well, not all of which survive it.
 *
 * Included by fault.h, after the kernel's headers.
 */
#ifndef NVQ_FAULT_ALLOC_H
#define NVQ_FAULT_ALLOC_H

#include <linux/dma-mapping.h>
#include <linux/dmapool.h>
#include <linux/gfp.h>
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/slab.h>

/* True for the one that is to fail, see the parameter fail_alloc. */
bool nvq_fault_alloc(void);

/* Some of these are macros in some kernels, so functions keep what they mean. */
static inline void *nvq_real_kzalloc(size_t size, gfp_t gfp)
{
	return kzalloc(size, gfp);
}

static inline void *nvq_real_kzalloc_node(size_t size, gfp_t gfp, int node)
{
	return kzalloc_node(size, gfp, node);
}

static inline void *nvq_real_kcalloc(size_t nr, size_t size, gfp_t gfp)
{
	return kcalloc(nr, size, gfp);
}

static inline void *nvq_real_kvzalloc(size_t size, gfp_t gfp)
{
	return kvzalloc(size, gfp);
}

static inline void *nvq_real_kvcalloc(size_t nr, size_t size, gfp_t gfp)
{
	return kvcalloc(nr, size, gfp);
}

static inline struct page *nvq_real_alloc_page(gfp_t gfp)
{
	return alloc_page(gfp);
}

static inline struct page *nvq_real_alloc_pages(gfp_t gfp, unsigned int order)
{
	return alloc_pages(gfp, order);
}

static inline struct page *nvq_real_alloc_pages_node(int node, gfp_t gfp,
						     unsigned int order)
{
	return alloc_pages_node(node, gfp, order);
}

static inline void *nvq_real_dma_alloc_coherent(struct device *dev, size_t size,
						dma_addr_t *dma, gfp_t gfp)
{
	return dma_alloc_coherent(dev, size, dma, gfp);
}

static inline void *nvq_real_dma_pool_alloc(struct dma_pool *pool, gfp_t gfp,
					    dma_addr_t *dma)
{
	return dma_pool_alloc(pool, gfp, dma);
}

#undef kzalloc
#undef kzalloc_node
#undef kcalloc
#undef kvzalloc
#undef kvcalloc
#undef alloc_page
#undef alloc_pages
#undef alloc_pages_node
#undef dma_pool_zalloc

#define nvq_or_null(call) (nvq_fault_alloc() ? NULL : (call))

#define kzalloc(size, gfp) nvq_or_null(nvq_real_kzalloc(size, gfp))
#define kzalloc_node(size, gfp, node) \
	nvq_or_null(nvq_real_kzalloc_node(size, gfp, node))
#define kcalloc(nr, size, gfp) nvq_or_null(nvq_real_kcalloc(nr, size, gfp))
#define kvzalloc(size, gfp) nvq_or_null(nvq_real_kvzalloc(size, gfp))
#define kvcalloc(nr, size, gfp) nvq_or_null(nvq_real_kvcalloc(nr, size, gfp))
#define alloc_page(gfp) nvq_or_null(nvq_real_alloc_page(gfp))
#define alloc_pages(gfp, order) nvq_or_null(nvq_real_alloc_pages(gfp, order))
#define alloc_pages_node(node, gfp, order) \
	nvq_or_null(nvq_real_alloc_pages_node(node, gfp, order))
#define dma_alloc_coherent(dev, size, dma, gfp) \
	nvq_or_null(nvq_real_dma_alloc_coherent(dev, size, dma, gfp))
#define dma_pool_alloc(pool, gfp, dma) \
	nvq_or_null(nvq_real_dma_pool_alloc(pool, gfp, dma))
#define dma_pool_zalloc(pool, gfp, dma) \
	dma_pool_alloc(pool, (gfp) | __GFP_ZERO, dma)
#define dma_pool_create(name, dev, size, align, boundary) \
	nvq_or_null(dma_pool_create(name, dev, size, align, boundary))

#endif /* NVQ_FAULT_ALLOC_H */
