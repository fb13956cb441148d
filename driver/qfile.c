// SPDX-License-Identifier: GPL-2.0
/*
 * The char device of a queue: open makes the hardware queue, the last close
 * deletes it; one owner at a time.  mmap of the CQ and the kernel page.
 *
 * q->claimed is the ownership; it is set before the hardware queue exists and
 * cleared after it is gone.  A mapping holds the file, so pages are never freed
 * under a reader.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched.h>

#include "compat.h"
#include "nvqueue.h"

/*
 * io_uring lets go of registered files and pending commands some time after
 * the process is gone (15 to 19 ms measured), so an owner that is going away
 * is waited for.
 */
#define NVQ_OPEN_WAIT		(HZ / 2)

static int claim(struct nvq_queue *q, bool nonblock)
{
	long left;

	if (!test_and_set_bit(0, &q->claimed))
		return 0;
	if (nonblock)
		return -EBUSY;
	left = wait_event_killable_timeout(q->wait,
			!test_and_set_bit(0, &q->claimed), NVQ_OPEN_WAIT);
	if (left < 0)
		return left;
	return left ? 0 : -EBUSY;
}

static void unclaim(struct nvq_queue *q)
{
	q->owner = 0;
	clear_bit_unlock(0, &q->claimed);
	wake_up_all(&q->wait);
}

static int queue_open(struct inode *inode, struct file *file)
{
	struct nvq_queue *q = container_of(inode->i_cdev, struct nvq_queue,
					   cdev);
	int err;

	err = claim(q, file->f_flags & O_NONBLOCK);
	if (err)
		return err;
	q->owner = task_tgid_nr(current);
	err = nvq_queue_open(q);
	if (err) {
		unclaim(q);
		return err < 0 ? err : -EIO;
	}
	file->private_data = q;
	/* O_DIRECT asks for what we do anyway; nearly every fio job has it */
	file->f_mode |= FMODE_CAN_ODIRECT;
	return nonseekable_open(inode, file);
}

static int queue_release(struct inode *inode, struct file *file)
{
	struct nvq_queue *q = file->private_data;

	nvq_queue_close(q);
	unclaim(q);
	return 0;
}

/* Pages one by one: they outlive the device, the mapping need not be torn. */
static int map_pages(struct vm_area_struct *vma, struct page *first,
		     unsigned long nr)
{
	unsigned long i, want = vma_pages(vma);
	int err;

	if (want > nr)
		return -EINVAL;
	for (i = 0; i < want; i++) {
		err = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE,
				     first + i);
		if (err)
			return err;
	}
	return 0;
}

/* Staging SQ and user page: shared, writable, and the file turns native. */
static int mmap_writable(struct nvq_queue *q, struct vm_area_struct *vma,
			 unsigned long off)
{
	int err;

	if (!(vma->vm_flags & VM_MAYSHARE) || (vma->vm_flags & VM_EXEC))
		return -EACCES;
	err = nvq_native_get(q);
	if (err)
		return err;
	nvq_vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
			 VM_MAYEXEC);
	if (off == NVQ_MMAP_UPAGE)
		return map_pages(vma, q->native->upage_page, 1);
	return map_pages(vma, q->native->staging_pages,
			 1UL << q->native->staging_order);
}

/*
 * Shared and read-only, and so for ever: VM_MAYWRITE would let mprotect undo
 * it.  VM_MAYSHARE says MAP_SHARED; VM_SHARED is clear on a read-only
 * descriptor.
 */
static int mmap_readonly(struct nvq_queue *q, struct vm_area_struct *vma,
			 unsigned long off)
{
	if (!(vma->vm_flags & VM_MAYSHARE) ||
	    (vma->vm_flags & (VM_WRITE | VM_EXEC)))
		return -EACCES;
	/* A forked child would keep the queue owned. */
	nvq_vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
			 VM_MAYWRITE | VM_MAYEXEC);
	if (off == NVQ_MMAP_KPAGE)
		return map_pages(vma, q->kpage_page, 1);
	return map_pages(vma, q->ring.cq_pages, 1UL << q->ring.cq_order);
}

static int queue_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct nvq_queue *q = file->private_data;
	unsigned long off = vma->vm_pgoff << PAGE_SHIFT;

	switch (off) {
	case NVQ_MMAP_CQ:
	case NVQ_MMAP_KPAGE:
		return mmap_readonly(q, vma, off);
	case NVQ_MMAP_SQ:
	case NVQ_MMAP_UPAGE:
		return mmap_writable(q, vma, off);
	default:
		return -EINVAL;
	}
}

static __poll_t queue_poll(struct file *file, poll_table *wait)
{
	struct nvq_queue *q = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &q->wait, wait);
	spin_lock_irq(&q->lock);
	if (q->native ? nvq_native_unread(q) : nvq_ring_pending(&q->ring))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (q->hw == NVQ_HW_DEAD)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLHUP | EPOLLERR;
	spin_unlock_irq(&q->lock);
	return mask;
}

const struct file_operations nvq_queue_fops = {
	.owner			= THIS_MODULE,
	.open			= queue_open,
	.release		= queue_release,
	.mmap			= queue_mmap,
	.poll			= queue_poll,
	.unlocked_ioctl		= nvq_queue_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
	.uring_cmd		= nvq_uring_cmd,
	.uring_cmd_iopoll	= nvq_uring_iopoll,
};
