// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of a queue file: geometry, and the synchronous half of the NVMe
 * passthrough interface (linux/nvme_ioctl.h) as nvme-cli and fio use it.
 *
 * Administration is limited to Identify of what the file addresses anyway; the
 * rest belongs to the controller node (cfile.c).
 */
#include <linux/nvme_ioctl.h>
#include <linux/ptrace.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nvqueue.h"

/* Both passthrough structures begin alike; only the result's width differs. */
static int read_cmd(struct nvq_user_cmd *u, const void __user *arg)
{
	struct nvme_passthru_cmd c;

	BUILD_BUG_ON(offsetof(struct nvme_passthru_cmd, timeout_ms) !=
		     offsetof(struct nvme_passthru_cmd64, timeout_ms));
	if (copy_from_user(&c, arg, sizeof(c)))
		return -EFAULT;
	*u = (struct nvq_user_cmd){
		.opcode = c.opcode,
		.flags = c.flags,
		.nsid = c.nsid,
		.cdw2 = c.cdw2,
		.cdw3 = c.cdw3,
		.metadata = c.metadata,
		.addr = c.addr,
		.metadata_len = c.metadata_len,
		.data_len = c.data_len,
		.cdw10 = c.cdw10,
		.cdw11 = c.cdw11,
		.cdw12 = c.cdw12,
		.cdw13 = c.cdw13,
		.cdw14 = c.cdw14,
		.cdw15 = c.cdw15,
		.timeout_ms = c.timeout_ms,
	};
	return 0;
}

int nvq_put_result(void __user *arg, bool wide, u64 result)
{
	if (wide)
		return put_user(result, &((struct nvme_passthru_cmd64 __user *)
					  arg)->result);
	return put_user((u32)result, &((struct nvme_passthru_cmd __user *)
				       arg)->result);
}

static int run(struct nvq_queue *q, struct file *file,
	       const struct nvq_user_cmd *u, bool vec, u64 *result)
{
	struct nvq_io io;
	u32 len;
	int err;

	err = nvq_user_cmd_check(q, u, file, vec, &io, &len);
	if (!err)
		err = nvq_user_cmd_data(&io, u, len, vec, NULL);
	return err ? err : nvq_sync(q, &io, result);
}

static int io_cmd(struct nvq_queue *q, struct file *file, void __user *arg,
		  bool wide, bool vec)
{
	struct nvq_user_cmd u;
	u64 result = 0;
	int err;

	err = read_cmd(&u, arg);
	if (!err)
		err = run(q, file, &u, vec, &result);
	if (err >= 0 && nvq_put_result(arg, wide, result))
		return -EFAULT;
	return err;
}

/* The oldest form: reads, writes and compares by block numbers. */
static int submit_io(struct nvq_queue *q, struct file *file, void __user *arg)
{
	struct nvme_user_io c;
	struct nvq_user_cmd u = { 0 };
	u64 result;

	if (copy_from_user(&c, arg, sizeof(c)))
		return -EFAULT;
	if (c.opcode != nvme_cmd_read && c.opcode != nvme_cmd_write &&
	    c.opcode != nvme_cmd_compare)
		return -EINVAL;
	u.opcode = c.opcode;
	u.flags = c.flags;
	u.nsid = READ_ONCE(q->ns.nsid);
	u.metadata = c.metadata;
	u.addr = c.addr;
	u.data_len = ((u32)c.nblocks + 1) <<
		     (READ_ONCE(q->ns_key) & NVQ_NS_KEY_SHIFT_MASK);
	u.cdw10 = c.slba;
	u.cdw11 = c.slba >> 32;
	u.cdw12 = c.nblocks | (u32)c.control << 16;
	u.cdw13 = c.dsmgmt;
	u.cdw14 = c.reftag;
	u.cdw15 = c.appmask << 16 | c.apptag;
	return run(q, file, &u, false, &result);
}

/* What the file addresses, and the controller behind it. */
static bool identify_allowed(struct nvq_queue *q, u8 cns, u32 nsid)
{
	switch (cns) {
	case NVME_ID_CNS_CTRL:
	case NVME_ID_CNS_CS_CTRL:
		return true;
	case NVME_ID_CNS_NS:
	case NVME_ID_CNS_CS_NS:
	case NVME_ID_CNS_NS_DESC_LIST:
	case NVME_ID_CNS_NS_CS_INDEP:
		return nsid == READ_ONCE(q->ns.nsid);
	default:
		return false;
	}
}

static int identify(struct nvq_queue *q, void __user *arg, bool wide)
{
	struct nvme_command cmd = { 0 };
	struct nvq_user_cmd u;
	u64 result = 0;
	void *buf;
	int err;

	err = read_cmd(&u, arg);
	if (err)
		return err;
	if (u.opcode != nvme_admin_identify ||
	    !identify_allowed(q, u.cdw10 & 0xff, u.nsid))
		return -EACCES;
	if (u.data_len != NVME_IDENTIFY_DATA_SIZE || u.metadata_len || u.flags)
		return -EINVAL;
	buf = kzalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	cmd.common.opcode = nvme_admin_identify;
	cmd.common.nsid = cpu_to_le32(u.nsid);
	cmd.common.cdw10 = cpu_to_le32(u.cdw10);
	cmd.common.cdw11 = cpu_to_le32(u.cdw11);
	err = nvq_admin_cmd(q->ctrl, &cmd, buf, NVME_IDENTIFY_DATA_SIZE,
			    &result, nvq_admin_timeout * HZ);
	if (err >= 0 && copy_to_user(u64_to_user_ptr(u.addr), buf,
				     NVME_IDENTIFY_DATA_SIZE))
		err = -EFAULT;
	kfree(buf);
	/* Who has read the format may go on: a stale queue is no longer. */
	if (!err && (u.cdw10 & 0xff) == NVME_ID_CNS_NS)
		err = nvq_queue_refresh(q);
	if (err >= 0 && nvq_put_result(arg, wide, result))
		return -EFAULT;
	return err;
}

static int geometry(struct nvq_queue *q, void __user *arg)
{
	struct nvq_geometry g;
	int err;

	err = nvq_queue_refresh(q);
	if (err)
		return err < 0 ? err : -EIO;
	nvq_geometry_fill(q->ctrl, &g);
	spin_lock_irq(&q->lock);
	nvq_geometry_ns(&g, &q->ns);
	g.generation = q->generation;
	spin_unlock_irq(&q->lock);
	g.kind = q->kind;
	g.qid = q->qid;
	g.depth = q->ring.depth;
	return copy_to_user(arg, &g, sizeof(g)) ? -EFAULT : 0;
}

static int select_ns(struct nvq_queue *q, void __user *arg)
{
	u32 nsid;

	if (get_user(nsid, (u32 __user *)arg))
		return -EFAULT;
	return nvq_queue_select(q, nsid);
}

/* Submits, and waits if asked to. */
static noinline long submit_and_wait(struct nvq_queue *q, void __user *arg,
				     bool writable)
{
	struct nvq_submit s;
	int ret, err;

	if (copy_from_user(&s, arg, sizeof(s)))
		return -EFAULT;
	if (s.reserved)
		return -EINVAL;
	if (s.wait && q->kind != NVQ_KIND_IRQ)
		return -EOPNOTSUPP;
	err = nvq_native_get(q);
	if (err)
		return err;
	ret = nvq_native_submit(q, s.max ?: U32_MAX, writable, false);
	if (ret < 0 || !s.wait)
		return ret;
	err = nvq_native_wait_sync(q, s.wait, s.timeout_ms);
	return err ? err : ret;
}

/* All that is staged, as nearly every call asks: nothing to copy. */
static long submit(struct nvq_queue *q, struct file *file, void __user *arg)
{
	bool writable = file->f_mode & FMODE_WRITE;
	int err;

	if (arg)
		return submit_and_wait(q, arg, writable);
	err = likely(READ_ONCE(q->native)) ? 0 : nvq_native_get(q);
	return err ? err : nvq_native_submit(q, U32_MAX, writable, false);
}

static long submit_from(struct nvq_queue *q, struct file *file,
			void __user *arg)
{
	struct nvq_submit_from s;
	int err;

	if (copy_from_user(&s, arg, sizeof(s)))
		return -EFAULT;
	if (memchr_inv(s.reserved, 0, sizeof(s.reserved)))
		return -EINVAL;
	err = nvq_native_get(q);
	return err ? err : nvq_native_submit_from(q, &s,
						  file->f_mode & FMODE_WRITE);
}

static long register_buf(struct nvq_queue *q, void __user *arg)
{
	struct nvq_register reg;
	int err;

	if (copy_from_user(&reg, arg, sizeof(reg)))
		return -EFAULT;
	err = nvq_native_get(q);
	if (!err)
		err = nvq_buf_register(q, &reg);
	if (err)
		return err;
	if (!copy_to_user(arg, &reg, sizeof(reg)))
		return 0;
	nvq_buf_unregister(q, reg.index);
	return -EFAULT;
}

static long unregister_buf(struct nvq_queue *q, void __user *arg)
{
	u32 index;

	if (get_user(index, (u32 __user *)arg))
		return -EFAULT;
	return READ_ONCE(q->native) ? nvq_buf_unregister(q, index) : -ENOENT;
}

static long resync(struct nvq_queue *q)
{
	return READ_ONCE(q->native) ? nvq_native_resync(q) : -EINVAL;
}

static long drop(struct nvq_queue *q, void __user *arg)
{
	u32 index;

	if (get_user(index, (u32 __user *)arg))
		return -EFAULT;
	return READ_ONCE(q->native) ? nvq_native_drop(q, index) : -EINVAL;
}

static int ask_once(struct nvq_queue *q, unsigned int op, void __user *arg)
{
	switch (op) {
	case NVQ_IOC_GEOMETRY:
		return geometry(q, arg);
	case NVQ_IOC_SELECT_NS:
		return select_ns(q, arg);
	default:
		return identify(q, arg, op == NVME_IOCTL_ADMIN64_CMD);
	}
}

/*
 * Calls that ask the controller: a reset that is on is waited out, and one that
 * comes between, which turns away or ends what they ask, is not their affair.
 */
static int ask(struct nvq_queue *q, unsigned int op, void __user *arg)
{
	u32 then;
	int err;

	do {
		err = nvq_ctrl_wait_live(q->ctrl);
		if (err)
			return err;
		then = READ_ONCE(q->ctrl->generation);
		err = ask_once(q, op, arg);
	} while (err && nvq_ctrl_was_reset(q->ctrl, then));
	return err;
}

static noinline long other_ioctl(struct nvq_queue *q, struct file *file,
				 unsigned int op, unsigned long arg)
{
	void __user *p = (void __user *)arg;

	switch (op) {
	case NVQ_IOC_GEOMETRY:
	case NVQ_IOC_SELECT_NS:
	case NVME_IOCTL_ADMIN_CMD:
	case NVME_IOCTL_ADMIN64_CMD:
		return ask(q, op, p);
	case NVME_IOCTL_ID:
		force_successful_syscall_return();
		return READ_ONCE(q->ns.nsid);
	case NVQ_IOC_SUBMIT_FROM:
		return submit_from(q, file, p);
	case NVQ_IOC_REGISTER:
		return register_buf(q, p);
	case NVQ_IOC_UNREGISTER:
		return unregister_buf(q, p);
	case NVQ_IOC_RESYNC:
		return resync(q);
	case NVQ_IOC_DROP:
		return drop(q, p);
	case NVME_IOCTL_SUBMIT_IO:
		return submit_io(q, file, p);
	case NVME_IOCTL_IO_CMD:
		return io_cmd(q, file, p, false, false);
	case NVME_IOCTL_IO64_CMD:
		return io_cmd(q, file, p, true, false);
	case NVME_IOCTL_IO64_CMD_VEC:
		return io_cmd(q, file, p, true, true);
	default:
		return -ENOTTY;
	}
}

long nvq_queue_ioctl(struct file *file, unsigned int op, unsigned long arg)
{
	struct nvq_queue *q = file->private_data;

	/* first, as it is the fast path */
	if (likely(op == NVQ_IOC_SUBMIT))
		return submit(q, file, (void __user *)arg);
	return other_ioctl(q, file, op, arg);
}
