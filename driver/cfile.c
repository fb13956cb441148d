// SPDX-License-Identifier: GPL-2.0
/*
 * The char device of a controller: geometry without owning a queue, admin
 * passthrough for the administrator, reset and rescan.
 *
 * What would undermine the driver is refused whoever asks: queues are created
 * by opening their files, events are ours, and no command gets to name memory.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nvme_ioctl.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nvqueue.h"

/* Geometry any queue of this controller has. */
void nvq_geometry_fill(struct nvq_ctrl *ctrl, struct nvq_geometry *g)
{
	BUILD_BUG_ON(sizeof(*g) != 128);
	*g = (struct nvq_geometry){
		.abi = NVQ_ABI_VERSION,
		.kind = NVQ_KIND_CTRL,
		.depth = ctrl->depth,
		.sqe_size = sizeof(struct nvme_command),
		.cqe_size = sizeof(struct nvme_completion),
		.mdts = ctrl->max_xfer,
		.numa_node = dev_to_node(&ctrl->pdev->dev),
		.flags = (ctrl->vwc ? NVQ_GEO_VWC : 0) |
			 (ctrl->sgl ? NVQ_GEO_SGL : 0) |
			 (ctrl->dbbuf_on ? NVQ_GEO_DBBUF : 0),
		.instance = ctrl->instance,
		.nr_poll = ctrl->sets[NVQ_SET_POLL].count,
		.nr_irq = ctrl->sets[NVQ_SET_IRQ].count,
		.cq_bytes = PAGE_ALIGN(ctrl->depth *
				       sizeof(struct nvme_completion)),
		.kpage_bytes = PAGE_SIZE,
		.generation = ctrl->generation,
	};
}

void nvq_geometry_ns(struct nvq_geometry *g, const struct nvq_ns *ns)
{
	g->nsid = ns->nsid;
	g->lba_size = 1U << ns->lba_shift;
	g->nsze = ns->nsze;
	g->metadata_size = ns->ms;
	g->csi = ns->csi;
}

/* From the cache: a reader costs the controller nothing. */
static int geometry(struct nvq_ctrl *ctrl, void __user *arg)
{
	struct nvq_geometry g;
	u32 nsid, i;
	int err = -EINVAL;

	if (get_user(nsid, &((struct nvq_geometry __user *)arg)->nsid))
		return -EFAULT;
	nvq_geometry_fill(ctrl, &g);
	mutex_lock(&ctrl->ns_lock);
	for (i = 0; i < ctrl->nr_ns && err; i++) {
		if (nsid && ctrl->ns_list[i].nsid != nsid)
			continue;
		nvq_geometry_ns(&g, &ctrl->ns_list[i]);
		err = 0;
	}
	mutex_unlock(&ctrl->ns_lock);
	if (err)
		return err;
	return copy_to_user(arg, &g, sizeof(g)) ? -EFAULT : 0;
}

/* Queues, events and memory are the driver's (doc/design.md, section 4) */
static bool refused(const struct nvme_passthru_cmd *c)
{
	switch (c->opcode) {
	case nvme_admin_delete_sq:
	case nvme_admin_create_sq:
	case nvme_admin_delete_cq:
	case nvme_admin_create_cq:
	case nvme_admin_async_event:
	case nvme_admin_dbbuf:
		return true;
	case nvme_admin_set_features:
		switch (c->cdw10 & 0xff) {
		case NVME_FEAT_NUM_QUEUES:
		case NVME_FEAT_ASYNC_EVENT:
		/* its dwords 13 and 14 are a host address */
		case NVME_FEAT_HOST_MEM_BUF:
			return true;
		}
	}
	return false;
}

/* Commands after which a namespace may have another format, or be gone. */
static bool changes_format(u8 opcode)
{
	switch (opcode) {
	case nvme_admin_format_nvm:
	case nvme_admin_ns_mgmt:
	case nvme_admin_ns_attach:
	case nvme_admin_sanitize_nvm:
		return true;
	}
	return false;
}

/*
 * What the controller will move, where the command's fields say so: the buffer
 * must hold it even if the user asked for less (nvq_admin_cmd() rounds up to a
 * page, which covers the fixed structures).  An opcode that moves something
 * gets a page in any case, since without a buffer its PRPs would be address 0.
 */
static u64 admin_length(const struct nvme_passthru_cmd *c)
{
	u64 numd;

	switch (c->opcode) {
	case nvme_admin_identify:
		return NVME_IDENTIFY_DATA_SIZE;
	case nvme_admin_get_log_page:
		numd = (c->cdw10 >> 16) | (u64)(c->cdw11 & 0xffff) << 16;
		return (numd + 1) * 4;
	case nvme_admin_download_fw:
		return ((u64)c->cdw10 + 1) * 4;
	case nvme_admin_directive_recv:
	case nvme_admin_directive_send:
		return ((u64)c->cdw10 + 1) * 4;
	case nvme_admin_security_send:
	case nvme_admin_security_recv:
		return c->cdw11;
	default:
		/* direction bits, base 2.0 figure 138 */
		return c->opcode & 3 ? NVQ_CTRL_PAGE : 0;
	}
}

static void build(struct nvme_command *cmd, const struct nvme_passthru_cmd *c)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->common.opcode = c->opcode;
	cmd->common.nsid = cpu_to_le32(c->nsid);
	cmd->common.cdw2[0] = cpu_to_le32(c->cdw2);
	cmd->common.cdw2[1] = cpu_to_le32(c->cdw3);
	cmd->common.cdw10 = cpu_to_le32(c->cdw10);
	cmd->common.cdw11 = cpu_to_le32(c->cdw11);
	cmd->common.cdw12 = cpu_to_le32(c->cdw12);
	cmd->common.cdw13 = cpu_to_le32(c->cdw13);
	cmd->common.cdw14 = cpu_to_le32(c->cdw14);
	cmd->common.cdw15 = cpu_to_le32(c->cdw15);
}

/* Sends @c with @buf of @len bytes, queues frozen where a format may change. */
static int run(struct nvq_ctrl *ctrl, const struct nvme_passthru_cmd *c,
	       void *buf, u32 len, u64 *result)
{
	/*
	 * A time-out resets the controller, so only who may reset it anyway
	 * says how short it is.
	 */
	u32 timeout = nvq_timeout(capable(CAP_SYS_ADMIN) ? c->timeout_ms : 0,
				  nvq_admin_timeout);
	bool freeze = changes_format(c->opcode);
	struct nvme_command cmd;
	int err;

	build(&cmd, c);
	if (freeze) {
		err = nvq_ns_freeze(ctrl);
		if (err)
			return err;
	}
	err = nvq_admin_cmd(ctrl, &cmd, buf, len, result, timeout);
	if (freeze)
		nvq_ns_thaw(ctrl);
	return err;
}

static int admin_cmd(struct nvq_ctrl *ctrl, void __user *arg, bool wide)
{
	struct nvme_passthru_cmd c;
	void *buf = NULL;
	u64 result = 0;
	u32 len;
	int err;

	if (copy_from_user(&c, arg, sizeof(c)))
		return -EFAULT;
	if (c.opcode != nvme_admin_identify && !capable(CAP_SYS_ADMIN))
		return -EACCES;
	if (refused(&c))
		return -EACCES;
	if (c.flags || c.metadata || c.metadata_len)
		return -EINVAL;
	if (c.data_len > NVQ_MAX_XFER || admin_length(&c) > NVQ_MAX_XFER)
		return -EINVAL;
	len = max_t(u32, c.data_len, admin_length(&c));
	if (len) {
		buf = kvzalloc(len, GFP_KERNEL_ACCOUNT);
		if (!buf)
			return -ENOMEM;
	}
	err = -EFAULT;
	if ((c.opcode & 1) && c.data_len &&
	    copy_from_user(buf, u64_to_user_ptr(c.addr), c.data_len))
		goto free;
	err = run(ctrl, &c, buf, len, &result);
	if (err >= 0 && (c.opcode & 2) && c.data_len &&
	    copy_to_user(u64_to_user_ptr(c.addr), buf, c.data_len))
		err = -EFAULT;
	if (err >= 0 && nvq_put_result(arg, wide, result))
		err = -EFAULT;
free:
	kvfree(buf);
	return err;
}

/* Returns once the controller is live again. */
int nvq_ctrl_user_reset(struct nvq_ctrl *ctrl)
{
	int err;

	nvq_reset_schedule(ctrl, "asked for by the administrator", false);
	err = wait_event_killable(ctrl->wait, READ_ONCE(ctrl->state) !=
					      NVQ_CTRL_RESETTING);
	if (err)
		return err;
	return READ_ONCE(ctrl->state) == NVQ_CTRL_LIVE ? 0 : -ENODEV;
}

static int default_nsid(struct nvq_ctrl *ctrl)
{
	int nsid;

	mutex_lock(&ctrl->ns_lock);
	nsid = ctrl->nr_ns ? ctrl->ns_list[0].nsid : -ENXIO;
	mutex_unlock(&ctrl->ns_lock);
	return nsid;
}

static int admin_only(struct nvq_ctrl *ctrl, int (*fn)(struct nvq_ctrl *))
{
	return capable(CAP_SYS_ADMIN) ? fn(ctrl) : -EACCES;
}

static long ctrl_ioctl(struct file *file, unsigned int op, unsigned long arg)
{
	struct nvq_ctrl *ctrl = file->private_data;
	void __user *p = (void __user *)arg;

	int err = nvq_ctrl_wait_live(ctrl);

	if (err)
		return err;
	switch (op) {
	case NVQ_IOC_GEOMETRY:
		return geometry(ctrl, p);
	case NVME_IOCTL_ID:
		return default_nsid(ctrl);
	case NVME_IOCTL_ADMIN_CMD:
		return admin_cmd(ctrl, p, false);
	case NVME_IOCTL_ADMIN64_CMD:
		return admin_cmd(ctrl, p, true);
	case NVME_IOCTL_RESET:
		return admin_only(ctrl, nvq_ctrl_user_reset);
	case NVME_IOCTL_RESCAN:
		return admin_only(ctrl, nvq_ns_rescan);
	default:
		return -ENOTTY;
	}
}

static int ctrl_open(struct inode *inode, struct file *file)
{
	struct nvq_ctrl *ctrl = container_of(inode->i_cdev, struct nvq_ctrl,
					     cdev);

	if (READ_ONCE(ctrl->state) == NVQ_CTRL_DEAD)
		return -ENODEV;
	file->private_data = ctrl;
	file->f_mode |= FMODE_CAN_ODIRECT;
	return nonseekable_open(inode, file);
}

const struct file_operations nvq_ctrl_fops = {
	.owner		= THIS_MODULE,
	.open		= ctrl_open,
	.unlocked_ioctl	= ctrl_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};
