/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A staged command becomes an SQ entry: the trust boundary of the native path.
 * Pure: no kernel call, no lock; native.c calls it under q->lock, the unit tests
 * and the fuzzer compile it natively.
 *
 * The staging SQ is memory that user space may rewrite at any moment.  Each
 * 8-byte word is read once, everything is checked on and built from that copy,
 * and nothing of the staged entry is looked at again.  An SQ entry may be
 * half-built: the controller does not look beyond the tail it was told.
 *
 * A registered buffer's DMA addresses are kept as PRP lists already: list i
 * covers the buffer's pages 256 i .. 256 i + 511, overlapping its neighbour, so
 * that a transfer of up to NVQ_MAX_XFER has its list in one page wherever it
 * starts, and PRP2 is an address looked up, not a list filled.  Entries beyond
 * the buffer are guards.
 */
#ifndef NVQ_STAGE_H
#define NVQ_STAGE_H

#include "dptr.h"
#include "opcode.h"

/* Pages by which the next list starts later. */
#define NVQ_LIST_STEP		256U

struct nvq_buf_list {
	__le64 *va;		/* NVQ_PRP_LIST_MAX entries */
	u64 dma;
};

/*
 * A page of a buffer: its address for PRP1, and where the list of what follows
 * it begins, for PRP2 of a transfer of three pages or more.
 */
struct nvq_buf_page {
	u64 dma;
	u64 list;
};

/* What the validation needs of a buffer, two of them in a cache line. */
struct nvq_buf_view {
	const struct nvq_buf_page *pages;
	u64 len;		/* bytes that commands may read; 0: no such buffer */
	u64 len_in;		/* that they may write: as many, or none */
	u32 start;		/* offset of its first byte in its first page */
};

/*
 * Constant while the lock is held.  Tables that user space indexes have a power
 * of two of entries: masking an index that was checked keeps speculation within
 * them too, for one instruction.
 */
struct nvq_stage_ctx {
	const struct nvq_buf_view *bufs;
	u32 buf_mask;
	u32 cid_mask;
	u32 nsid;
	u32 lba_shift;
	u64 max_xfer;
	u64 nsze;
	u64 guard;
	/* what the usual commands look like: nvq_stage_set_keys() */
	u64 read_key, write_key;
	u32 depth;
	bool writable;
};

/* Where a command has its opcode and its nsid: what the keys are of. */
#define NVQ_STAGE_KEY		0xffffffff000000ffULL

/* To be called whenever nsid or writable has changed. */
static inline void nvq_stage_set_keys(struct nvq_stage_ctx *c)
{
	c->read_key = (u64)c->nsid << 32 | 0x02;
	/* ~0 has bits that no command's key has */
	c->write_key = c->writable ? (u64)c->nsid << 32 | 0x01 : ~0ULL;
}

/* The words of a staged command that need a look, each read once. */
struct nvq_staged {
	u64 dw0;		/* opcode, flags, cid, nsid */
	u64 offset;
	u64 buf;		/* low half */
	u64 dw10;		/* slba where there is one */
	u64 dw12;
};

static inline void nvq_stage_read(struct nvq_staged *s, const __le64 *w)
{
	s->dw0 = le64_to_cpu(READ_ONCE(w[0]));
	s->offset = le64_to_cpu(READ_ONCE(w[3]));
	s->buf = le64_to_cpu(READ_ONCE(w[4]));
	s->dw10 = le64_to_cpu(READ_ONCE(w[5]));
	s->dw12 = le64_to_cpu(READ_ONCE(w[6]));
}

/*
 * The others go straight into the SQ entry: CDW2, 3, 14 and 15 mean nothing to
 * us.  The metadata pointer is 0 by construction.
 */
static inline void nvq_stage_pass(const __le64 *w, __le64 *sqe)
{
	sqe[1] = READ_ONCE(w[1]);
	sqe[2] = 0;
	sqe[7] = READ_ONCE(w[7]);
}

static inline u8 nvq_stage_opcode(const struct nvq_staged *s)
{
	return s->dw0;
}

static inline u32 nvq_stage_cid(const struct nvq_staged *s)
{
	return (u32)s->dw0 >> 16;
}

/* LBAs of commands that name a range, so that it can be checked. */
static inline bool nvq_stage_in_range(const struct nvq_stage_ctx *c,
				      u64 slba, u64 dw12)
{
	u64 end;

	return !__builtin_add_overflow(slba, (dw12 & 0xffff) + 1, &end) &&
	       end <= c->nsze;
}

/* Opcodes whose CDW10..12 are SLBA and NLB but that carry no data. */
static inline bool nvq_opcode_has_range(u8 opcode)
{
	return opcode == 0x04 || opcode == 0x08 || opcode == 0x0c;
}

/*
 * PRP1 and PRP2 of @len bytes at @offset of buffer @b, which hold them; @len is
 * 1..NVQ_MAX_XFER.  A buffer is NVQ_MAX_BUF_LEN at most, so that its end, counted
 * from the start of its first page, is below 2^32, hence 32 bits.
 *
 * From page p on the list begins at entry p % 256 + 1, and 256 more pages are
 * the most: within the list's 512 entries, and all of them filled.
 */
static inline void nvq_stage_prps(const struct nvq_buf_view *b, u32 offset,
				  u32 len, u64 guard, __le64 *sqe)
{
	u32 first = b->start + offset, off = first & (NVQ_CTRL_PAGE - 1);
	const struct nvq_buf_page *page = &b->pages[first / NVQ_CTRL_PAGE];
	u64 prp2 = guard;

	if (off + len > 2 * NVQ_CTRL_PAGE)
		prp2 = page->list;
	else if (off + len > NVQ_CTRL_PAGE)
		prp2 = page[1].dma;
	sqe[3] = cpu_to_le64(page->dma + off);
	sqe[4] = cpu_to_le64(prp2);
}

/*
 * Checks where the command's data lies and fills its PRPs.  @len is 1 at least,
 * so that a buffer that is not there has no room for it.
 */
static __always_inline int nvq_stage_data(const struct nvq_stage_ctx *c,
					  const struct nvq_staged *s,
					  enum nvq_dir dir, u64 len,
					  __le64 *sqe)
{
	const struct nvq_buf_view *b;
	u32 buf = s->buf;
	u64 end;

	if (unlikely(buf > c->buf_mask))
		return -EINVAL;
	b = &c->bufs[buf & c->buf_mask];
	if (unlikely(len > c->max_xfer || (s->offset & 3)))
		return -EINVAL;
	if (unlikely(__builtin_add_overflow(s->offset, len, &end)))
		return -EINVAL;
	if (unlikely(end > (dir == NVQ_DIR_IN ? b->len_in : b->len)))
		return end > b->len ? -EINVAL : -EACCES;
	nvq_stage_prps(b, s->offset, len, c->guard, sqe);
	return 0;
}

/* A command of NLB LBAs from SLBA on; who may send it, and where, is known. */
static __always_inline int nvq_stage_rw(const struct nvq_stage_ctx *c,
					const struct nvq_staged *s,
					enum nvq_dir dir, __le64 *sqe)
{
	u64 len = ((s->dw12 & 0xffff) + 1) << c->lba_shift;

	if (unlikely(!nvq_stage_in_range(c, s->dw10, s->dw12)))
		return -EINVAL;
	return nvq_stage_data(c, s, dir, len, sqe);
}

/*
 * Any command but the usual ones, or what is wrong with it.  Apart, and on a
 * copy of its own, so that the words of those can stay in registers.
 */
static noinline int nvq_stage_other(const struct nvq_stage_ctx *c,
				    struct nvq_staged s, __le64 *sqe)
{
	u8 opcode = nvq_stage_opcode(&s);
	const struct nvq_opcode *op = nvq_opcode_find(opcode, s.dw12 >> 32);

	if (!op)
		return -EOPNOTSUPP;
	if (op->write && !c->writable)
		return -EACCES;
	if ((u32)(s.dw0 >> 32) != c->nsid)
		return -EINVAL;
	if (op->len == NVQ_LEN_NLB)
		return nvq_stage_rw(c, &s, op->dir, sqe);
	if (nvq_opcode_has_range(opcode) &&
	    !nvq_stage_in_range(c, s.dw10, s.dw12))
		return -EINVAL;
	if (op->len != NVQ_LEN_NONE)
		return nvq_stage_data(c, &s, op->dir,
				      nvq_opcode_length(op, c->lba_shift,
							s.dw10, s.dw12), sqe);
	/* never address 0, should the controller see data where we see none */
	sqe[3] = cpu_to_le64(c->guard);
	sqe[4] = cpu_to_le64(c->guard);
	return 0;
}

/*
 * Builds the rest of SQ entry @sqe (8 words) from the copy @s, what
 * nvq_stage_pass() left.  0, or why not: -EOPNOTSUPP, -EACCES, -EINVAL (see
 * NVQ_IOC_SUBMIT).  The command id is the caller's to check.
 */
static __always_inline int nvq_stage_build(const struct nvq_stage_ctx *c,
					   const struct nvq_staged *s,
					   __le64 *sqe)
{
	u64 key = s->dw0 & NVQ_STAGE_KEY;
	int err;

	/* a read or write that is listed, allowed, and of our namespace */
	if (likely(key == c->read_key))
		err = nvq_stage_rw(c, s, NVQ_DIR_IN, sqe);
	else if (key == c->write_key)
		err = nvq_stage_rw(c, s, NVQ_DIR_OUT, sqe);
	else
		err = nvq_stage_other(c, *s, sqe);
	if (unlikely(err))
		return err;
	/* fused bits and PSDT are 0 by construction */
	sqe[0] = cpu_to_le64(s->dw0 & ~0xff00ULL);
	sqe[5] = cpu_to_le64(s->dw10);
	sqe[6] = cpu_to_le64(s->dw12);
	return 0;
}

#endif /* NVQ_STAGE_H */
