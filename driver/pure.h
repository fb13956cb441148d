/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What dptr.h and opcode.h need of the kernel, so that the unit tests can
 * compile the very same text natively.  Nothing here calls anything.
 */
#ifndef NVQ_PURE_H
#define NVQ_PURE_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <asm/byteorder.h>
#else
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define cpu_to_le64(x)	((__le64)htole64(x))
#define cpu_to_le32(x)	((__le32)htole32(x))
#define le64_to_cpu(x)	le64toh((u64)(x))
#define le32_to_cpu(x)	le32toh((u32)(x))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
/* the C library may have one of its own */
#undef __always_inline
#define __always_inline	inline __attribute__((always_inline))
#define noinline	__attribute__((noinline))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

#endif /* NVQ_PURE_H */
