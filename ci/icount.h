/* SPDX-License-Identifier: MIT */
/*
 * What the marker in the guest and the plugin in QEMU agree on: a mark is an
 * eight-byte nop that no compiler makes,
 *
 *	0f 1f 84 00 disp32	nopl disp32(%rax,%rax,1)
 *
 * and the displacement says that it is ours and which mark it is.
 */
#ifndef NVQ_ICOUNT_H
#define NVQ_ICOUNT_H

#include <stdint.h>

#define MARK_BYTES	8
#define MARK_OPCODE	0x00841f0fu	/* as a little-endian word */
#define MARK_MAGIC	0x4e560000u	/* the displacement's high half */
#define MARK_MAX	0xffffu

static inline uint64_t mark_nop(uint32_t number)
{
	return MARK_OPCODE | (uint64_t)(MARK_MAGIC | number) << 32;
}

#endif
