// SPDX-License-Identifier: GPL-2.0
/*
 * A user's passthrough command becomes an NVMe command: every word was read
 * once by the caller, what is sent is built afresh from the copies and checked
 * here, and the length of its data is what its own fields say.
 *
 * Called by uring.c and ioctl.c; takes no locks.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/uio.h>

#include "nvqueue.h"
#include "opcode.h"

/*
 * A descriptor open for writing, or an administrator: nvme-cli opens read-only
 * whatever it is about to send, and the stock driver lets it.
 */
static bool may_write(const struct file *file)
{
	return (file->f_mode & FMODE_WRITE) || capable(CAP_SYS_ADMIN);
}

/*
 * An opcode the table does not list: allowed to who could do worse anyway, and
 * only where an SGL bounds the transfer whatever the opcode means by its
 * fields.  Direction is in the opcode's low bits (base 2.0 figure 86).
 */
static int check_unlisted(struct nvq_queue *q, const struct nvq_user_cmd *u,
			  struct file *file, struct nvq_io *io, u32 *len)
{
	if (!may_write(file) || !capable(CAP_SYS_RAWIO))
		return -EACCES;
	if (u->data_len && !q->ctrl->has_sgl)
		return -EOPNOTSUPP;
	/* 11b, both ways, has no form in PCIe passthrough */
	if (u->data_len && ((u->opcode & 3) == 0 || (u->opcode & 3) == 3))
		return -EINVAL;
	*len = u->data_len;
	io->sgl = true;
	io->map.dir = u->opcode & 1 ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	return 0;
}

static int check_listed(const struct nvq_opcode *op,
			const struct nvq_user_cmd *u, struct file *file,
			u32 lba_shift, struct nvq_io *io, u32 *len)
{
	u64 need;

	if (op->write && !may_write(file))
		return -EACCES;
	need = nvq_opcode_length(op, lba_shift, u->cdw10, u->cdw12);
	if (need > U32_MAX)
		return -EINVAL;
	if (!need && u->data_len)
		return -EINVAL;
	*len = need;
	io->map.dir = op->dir == NVQ_DIR_OUT ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	return 0;
}

/* PSDT, FUSE and the metadata pointer are ours: user flags must be 0. */
static void build(struct nvme_command *c, const struct nvq_user_cmd *u)
{
	memset(c, 0, sizeof(*c));
	c->common.opcode = u->opcode;
	c->common.nsid = cpu_to_le32(u->nsid);
	c->common.cdw2[0] = cpu_to_le32(u->cdw2);
	c->common.cdw2[1] = cpu_to_le32(u->cdw3);
	c->common.cdw10 = cpu_to_le32(u->cdw10);
	c->common.cdw11 = cpu_to_le32(u->cdw11);
	c->common.cdw12 = cpu_to_le32(u->cdw12);
	c->common.cdw13 = cpu_to_le32(u->cdw13);
	c->common.cdw14 = cpu_to_le32(u->cdw14);
	c->common.cdw15 = cpu_to_le32(u->cdw15);
}

/*
 * A command without data still has a data pointer, which must not be address 0
 * in case the controller sees data where we see none: the guard page, or for an
 * opcode we know nothing of a descriptor of no length.
 */
static void point_nowhere(struct nvq_ctrl *ctrl, struct nvme_command *c,
			  bool listed)
{
	if (!listed && ctrl->has_sgl) {
		c->common.flags |= NVME_CMD_SGL_METABUF;
		nvq_sgl_fill((void *)&c->common.dptr.sgl, 0, 0, NVQ_SGL_DATA);
		return;
	}
	c->common.dptr.prp1 = cpu_to_le64(ctrl->guard.dma);
	c->common.dptr.prp2 = cpu_to_le64(ctrl->guard.dma);
}

/*
 * Checks @u and fills io->sqe, io->sgl, io->timeout, io->ns_key and the
 * direction; *@len is what the command moves.  @file says what is allowed.
 */
int nvq_user_cmd_check(struct nvq_queue *q, const struct nvq_user_cmd *u,
		       struct file *file, bool vec, struct nvq_io *io, u32 *len)
{
	const struct nvq_opcode *op = nvq_opcode_find(u->opcode, u->cdw13);
	int err;

	if (u->flags || u->metadata || u->metadata_len)
		return -EINVAL;
	/* One word, so that shift and identity are of one moment. */
	io->ns_key = smp_load_acquire(&q->ns_key);
	if (u->nsid != READ_ONCE(q->ns.nsid))
		return -EINVAL;
	io->sgl = q->ctrl->sgl;
	io->map.bv = NULL;
	io->map.dma_mapped = false;
	io->map.bounce = NULL;
	io->map.nr = 0;
	io->map.nr_bounce = 0;
	io->map.len = 0;
	io->map.list_used = 0;
	io->map.pinned = false;
	/* data_len counts vectors, so it bounds nothing */
	if (!op && vec)
		return -EINVAL;
	if (op)
		err = check_listed(op, u, file,
				   io->ns_key & NVQ_NS_KEY_SHIFT_MASK, io, len);
	else
		err = check_unlisted(q, u, file, io, len);
	if (err)
		return err;
	/* the device would refuse it; the pinning must be bounded before */
	if (*len > q->ctrl->max_xfer)
		return -EINVAL;
	io->timeout = nvq_timeout(u->timeout_ms, nvq_io_timeout);
	build(&io->sqe, u);
	if (!*len)
		point_nowhere(q->ctrl, &io->sqe, op);
	return 0;
}

/*
 * Pins the @len bytes the command moves.  @fixed: a registered buffer of the
 * ring, already sized.  @vec: u->addr is an array of u->data_len iovecs.
 */
int nvq_user_cmd_data(struct nvq_io *io, const struct nvq_user_cmd *u, u32 len,
		      bool vec, struct iov_iter *fixed)
{
	enum dma_data_direction dir = io->map.dir;

	if (!len)
		return 0;
	if (vec)
		return nvq_map_iovec(&io->map, u->addr, u->data_len, len, dir);
	/* What the command moves must fit what the user offers. */
	if (!u->addr || len > u->data_len)
		return -EINVAL;
	if (fixed)
		return nvq_map_fixed(&io->map, fixed, dir);
	return nvq_map_user(&io->map, u->addr, len, dir);
}
