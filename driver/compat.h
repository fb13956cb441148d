/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the kernels we build for differ, and nothing else: 6.1 is the oldest.
 */
#ifndef NVQ_COMPAT_H
#define NVQ_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

/* Commit a0d45c3f596b ("io_uring: add io_uring_sqe_cmd() helper"), 6.6 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
static inline const void *nvq_sqe_cmd(struct io_uring_cmd *cmd)
{
	return cmd->cmd;
}
#else
static inline const void *nvq_sqe_cmd(struct io_uring_cmd *cmd)
{
	return io_uring_sqe_cmd(cmd->sqe);
}
#endif

/* Commit bc292ab00f6c ("mm: introduce vma->vm_flags wrapper functions"), 6.3 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void nvq_vm_flags_mod(struct vm_area_struct *vma,
				    unsigned long set, unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#else
static inline void nvq_vm_flags_mod(struct vm_area_struct *vma,
				    unsigned long set, unsigned long clear)
{
	vm_flags_mod(vma, set, clear);
}
#endif

/* Commit 1aaba11da9aa ("driver core: class: remove module * from
 * class_create()"), 6.4
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define nvq_class_create()	class_create(THIS_MODULE, "nvqueue")
#else
#define nvq_class_create()	class_create("nvqueue")
#endif

#endif /* NVQ_COMPAT_H */
