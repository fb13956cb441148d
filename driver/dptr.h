/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The data pointer of a command: PRPs or SGLs from a walk over DMA segments.
 * Pure: no kernel call, no state but the builder's, compiled by the unit tests
 * too.  map.c is the only caller in the driver.
 *
 * A list holds NVQ_LIST_BYTES.  Entries a command does not use point at a guard
 * page, and so do those of the guard list, at which an unused PRP2 points: a
 * controller that disagrees with us on the length of a transfer (a namespace
 * that another host reformatted a moment ago) is led there.  That does not hold
 * for a PRP2 that is the second page of our transfer and the list of theirs;
 * SGLs, which bound a transfer, are used wherever the controller has them.  Hence a builder only ever writes entries it counts, and whoever ends
 * the command turns exactly those back into guards.
 */
#ifndef NVQ_DPTR_H
#define NVQ_DPTR_H

#include "pure.h"

/* The controller's page, CC.MPS = 0, whatever the CPU's page is. */
#define NVQ_CTRL_PAGE		4096U

/*
 * 1 MiB of scattered pages that starts inside a page takes 257 SGL data
 * blocks, one more than a 4 KiB segment holds; SGL segments may be any length.
 */
#define NVQ_LIST_BYTES		8192U
#define NVQ_PRP_LIST_MAX	(NVQ_CTRL_PAGE / sizeof(__le64))
#define NVQ_SGL_LIST_MAX	(NVQ_LIST_BYTES / sizeof(struct nvq_sgl_desc))

/* NVMe base 2.0 figure 89 ff.: SGL descriptor */
struct nvq_sgl_desc {
	__le64 addr;
	__le32 length;
	__u8 reserved[3];
	__u8 type;		/* type in the high nibble, sub type 0 */
};

#define NVQ_SGL_DATA		(0x0U << 4)
#define NVQ_SGL_LAST_SEG	(0x3U << 4)

struct nvq_prp_builder {
	u64 prp1;
	__le64 *list;
	u32 nr;			/* PRPs so far, PRP1 included */
	bool ended;		/* the last segment stopped inside a page */
};

static inline void nvq_prp_init(struct nvq_prp_builder *b, __le64 *list)
{
	b->prp1 = 0;
	b->list = list;
	b->nr = 0;
	b->ended = false;
}

/*
 * Adds @len bytes at @addr.  -EINVAL: PRPs cannot describe it, because only
 * the first may have an offset (a multiple of 4, base 2.0 section 4.1.1) and
 * only the last may stop inside a page.  -E2BIG: more than one list page.
 */
static inline int nvq_prp_add(struct nvq_prp_builder *b, u64 addr, u64 len)
{
	u32 off = addr & (NVQ_CTRL_PAGE - 1);
	u64 n;

	if (!len)
		return 0;
	if (b->ended || (addr & 3) || (b->nr && off))
		return -EINVAL;
	while (len) {
		n = NVQ_CTRL_PAGE - off;
		if (!b->nr) {
			b->prp1 = addr;
		} else {
			if (b->nr > NVQ_PRP_LIST_MAX)
				return -E2BIG;
			b->list[b->nr - 1] = cpu_to_le64(addr);
		}
		b->nr++;
		if (n > len) {
			b->ended = true;
			return 0;
		}
		addr += n;
		len -= n;
		off = 0;
	}
	return 0;
}

/* Entries of the list that hold addresses; all others are guards. */
static inline u32 nvq_prp_used(const struct nvq_prp_builder *b)
{
	return b->nr ? b->nr - 1 : 0;
}

/* PRP2: the second page, the list, or the guard page where none is due. */
static inline u64 nvq_prp2(const struct nvq_prp_builder *b, u64 list_dma,
			   u64 guard_dma)
{
	if (b->nr <= 1)
		return guard_dma;
	if (b->nr == 2)
		return le64_to_cpu(b->list[0]);
	return list_dma;
}

struct nvq_sgl_builder {
	struct nvq_sgl_desc *list;
	u32 nr;
};

static inline void nvq_sgl_fill(struct nvq_sgl_desc *d, u64 addr, u32 len,
				u8 type)
{
	*d = (struct nvq_sgl_desc){
		.addr = cpu_to_le64(addr),
		.length = cpu_to_le32(len),
		.type = type,
	};
}

static inline int nvq_sgl_add(struct nvq_sgl_builder *b, u64 addr, u32 len)
{
	if (!len)
		return 0;
	if (b->nr >= NVQ_SGL_LIST_MAX)
		return -E2BIG;
	nvq_sgl_fill(&b->list[b->nr++], addr, len, NVQ_SGL_DATA);
	return 0;
}

/* The descriptor in the command that points at a list of @nr data blocks. */
static inline void nvq_sgl_segment(struct nvq_sgl_desc *d, u64 list_dma, u32 nr)
{
	nvq_sgl_fill(d, list_dma, nr * sizeof(struct nvq_sgl_desc),
		     NVQ_SGL_LAST_SEG);
}

#endif /* NVQ_DPTR_H */
