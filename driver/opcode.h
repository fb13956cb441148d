/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one table of I/O opcodes: which way data moves, how long it is, whether
 * the command changes the namespace.  Pure: compiled by the unit tests too.
 *
 * The length of a transfer is what the command's own fields say to the
 * controller, never what the user says beside them: the two disagreeing is how
 * a PRP runs past a buffer.
 */
#ifndef NVQ_OPCODE_H
#define NVQ_OPCODE_H

#include "pure.h"

enum nvq_dir { NVQ_DIR_NONE, NVQ_DIR_OUT, NVQ_DIR_IN };

enum nvq_len {
	NVQ_LEN_NONE,
	NVQ_LEN_NLB,		/* CDW12[15:0] + 1 LBAs */
	NVQ_LEN_NUMD,		/* CDW12 + 1 dwords */
	NVQ_LEN_NR16,		/* CDW10[7:0] + 1 ranges of 16 bytes */
	NVQ_LEN_COPY,		/* CDW12[7:0] + 1 ranges, format in [11:8] */
};

struct nvq_opcode {
	u8 dir;
	u8 len;
	bool listed;
	bool write;		/* needs a descriptor open for writing */
};

#define OP(_dir, _len, _write) \
	{ .dir = NVQ_DIR_##_dir, .len = NVQ_LEN_##_len, \
	  .listed = true, .write = _write }

/*
 * NVM command set 1.0 figure 13, zoned namespace command set 1.1 figure 23.  By
 * opcode, so that the native path needs no search.
 */
static const struct nvq_opcode nvq_opcodes[256] = {
	[0x00] = OP(NONE, NONE, false),	/* flush */
	[0x01] = OP(OUT, NLB, true),	/* write */
	[0x02] = OP(IN, NLB, false),	/* read */
	[0x04] = OP(NONE, NONE, true),	/* write uncorrectable */
	[0x05] = OP(OUT, NLB, false),	/* compare */
	[0x08] = OP(NONE, NONE, true),	/* write zeroes */
	[0x09] = OP(OUT, NR16, true),	/* dataset management */
	[0x0c] = OP(NONE, NONE, false),	/* verify */
	[0x19] = OP(OUT, COPY, true),	/* copy */
	[0x79] = OP(NONE, NONE, true),	/* zone management send */
	[0x7a] = OP(IN, NUMD, false),	/* zone management receive */
	[0x7d] = OP(OUT, NLB, true),	/* zone append */
};

#undef OP

/* Zone Send Action "Set Zone Descriptor Extension" carries data. */
#define NVQ_ZSA_SET_DESC_EXT	0x10

/* NULL: not in the table. */
static inline const struct nvq_opcode *nvq_opcode_find(u8 opcode, u32 cdw13)
{
	const struct nvq_opcode *op = &nvq_opcodes[opcode];

	/* The one action of a listed opcode whose length is not derivable. */
	if (opcode == 0x79 && (cdw13 & 0xff) == NVQ_ZSA_SET_DESC_EXT)
		return NULL;
	return op->listed ? op : NULL;
}

/*
 * NVM command set 1.0 figures 40 and 41, 1.1 for formats 2 and 3: a source
 * range has 32 bytes, or 40 with the large tags of formats 1 and 3.  Of others
 * nothing is known, so they fit no buffer.
 */
static inline u64 nvq_copy_length(u32 cdw12)
{
	u32 format = cdw12 >> 8 & 0xf;

	if (format > 3)
		return ~0ULL;
	return ((u64)(cdw12 & 0xff) + 1) * (format & 1 ? 40 : 32);
}

/* Bytes the controller will move; up to 16 GiB for NUMD, hence 64 bits. */
static inline u64 nvq_opcode_length(const struct nvq_opcode *op, u32 lba_shift,
				    u32 cdw10, u32 cdw12)
{
	switch (op->len) {
	case NVQ_LEN_NLB:
		return ((u64)(cdw12 & 0xffff) + 1) << lba_shift;
	case NVQ_LEN_NUMD:
		return ((u64)cdw12 + 1) * 4;
	case NVQ_LEN_NR16:
		return ((u64)(cdw10 & 0xff) + 1) * 16;
	case NVQ_LEN_COPY:
		return nvq_copy_length(cdw12);
	default:
		return 0;
	}
}

#endif /* NVQ_OPCODE_H */
