// SPDX-License-Identifier: GPL-2.0
/*
 * Controller bring-up by the specification, and the admin commands it takes:
 * enable and disable, Identify Controller, features, queues, shadow doorbells.
 *
 * Runs under ctrl->lock, from probe or a reset; hw create and delete also
 * under a q->mutex.  The order of calls is in recover.c, nvq_ctrl_start().
 */
#include <linux/delay.h>
#include <linux/dmapool.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/slab.h>

#include "nvqueue.h"

/* Waits for CSTS.RDY to be @ready, for as long as CAP.TO allows. */
static int wait_ready(struct nvq_ctrl *ctrl, bool ready)
{
	/* CAP.TO is in units of 500 ms; its field may be 0 */
	u32 ms = (NVME_CAP_TIMEOUT(ctrl->cap) + 1) * 500;
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	u32 csts;

	if (!ready && nvq_fault(ctrl, NVQ_FAULT_RDY, -1))
		return -ETIMEDOUT;
	for (;;) {
		csts = nvq_ctrl_status(ctrl);
		if (csts == ~0U)
			return -ENODEV;
		/*
		 * A fatal status stands until the controller is disabled, so
		 * it says nothing on the way down.
		 */
		if (ready && (csts & NVME_CSTS_CFS)) {
			dev_err(&ctrl->dev, "fatal status (CSTS 0x%x) while enabling\n",
				csts);
			return -EIO;
		}
		if (!!(csts & NVME_CSTS_RDY) == ready)
			return 0;
		if (time_after(jiffies, end))
			break;
		usleep_range(100, 1000);
	}
	dev_err(&ctrl->dev, "CSTS 0x%x: not %s after %u ms (CAP.TO)\n", csts,
		ready ? "ready" : "disabled", ms);
	return -ETIMEDOUT;
}

static int shutdown_notify(struct nvq_ctrl *ctrl, u32 cc)
{
	unsigned long end = jiffies + 10 * HZ;
	u32 csts;

	writel((cc & ~NVME_CC_SHN_MASK) | NVME_CC_SHN_NORMAL,
	       ctrl->bar + NVME_REG_CC);
	do {
		csts = readl(ctrl->bar + NVME_REG_CSTS);
		if (csts == ~0U)
			return -ENODEV;
		if ((csts & NVME_CSTS_SHST_MASK) == NVME_CSTS_SHST_CMPLT)
			return 0;
		usleep_range(100, 1000);
	} while (time_before(jiffies, end));
	dev_warn(&ctrl->dev, "no shutdown completion after 10 s (CSTS 0x%x)\n",
		 csts);
	return -ETIMEDOUT;
}

/*
 * Confirmed, the controller has no queues and touches no memory (base 2.0
 * section 3.7.2).  @shutdown: first let it write back its caches.
 */
int nvq_ctrl_disable(struct nvq_ctrl *ctrl, bool shutdown)
{
	u32 cc = readl(ctrl->bar + NVME_REG_CC);

	if (cc == ~0U)
		return -ENODEV;
	if (shutdown && (cc & NVME_CC_ENABLE))
		shutdown_notify(ctrl, cc);
	cc &= ~(NVME_CC_ENABLE | NVME_CC_SHN_MASK);
	writel(cc, ctrl->bar + NVME_REG_CC);
	return wait_ready(ctrl, false);
}

/* At probe: the depth and the doorbells of rings follow from it. */
int nvq_ctrl_caps(struct nvq_ctrl *ctrl)
{
	ctrl->cap = lo_hi_readq(ctrl->bar + NVME_REG_CAP);
	if (ctrl->cap == ~0ULL)
		return -ENODEV;
	ctrl->cap = nvq_fault_cap(ctrl->cap);
	ctrl->vs = readl(ctrl->bar + NVME_REG_VS);
	ctrl->db_stride = 1 << NVME_CAP_STRIDE(ctrl->cap);
	if (NVME_CAP_MPSMIN(ctrl->cap)) {
		dev_err(&ctrl->dev, "the controller's smallest page is %u bytes, nvqueue needs 4096\n",
			4096U << NVME_CAP_MPSMIN(ctrl->cap));
		return -ENODEV;
	}
	/* MQES is 0's based; a queue has at least 2 entries. */
	ctrl->depth = clamp_t(u32, nvq_queue_depth, 2,
			      min_t(u32, NVME_CAP_MQES(ctrl->cap) + 1, 32768));
	return 0;
}

/* Also for a controller handed over enabled, by firmware or another driver. */
int nvq_ctrl_enable(struct nvq_ctrl *ctrl)
{
	struct nvq_ring *r = &ctrl->admin.ring;
	u32 cc = NVME_CC_ENABLE | NVME_CC_IOSQES | NVME_CC_IOCQES |
		 NVME_CC_AMS_RR | NVME_CC_SHN_NONE;
	int err;

	err = nvq_ctrl_disable(ctrl, false);
	if (err)
		return err;
	nvq_admin_start(ctrl);
	writel((r->depth - 1) << 16 | (r->depth - 1),
	       ctrl->bar + NVME_REG_AQA);
	lo_hi_writeq(r->sq_dma, ctrl->bar + NVME_REG_ASQ);
	lo_hi_writeq(r->cq_dma, ctrl->bar + NVME_REG_ACQ);
	/* All I/O command sets (zoned too) where the controller has several. */
	cc |= NVME_CAP_CSS(ctrl->cap) & NVME_CAP_CSS_CSI ? NVME_CC_CSS_CSI :
							    NVME_CC_CSS_NVM;
	writel(cc, ctrl->bar + NVME_REG_CC);
	return wait_ready(ctrl, true);
}

/* A fixed-width field of spaces becomes a string. */
static void copy_field(char *to, const char *from, size_t n)
{
	memcpy(to, from, n);
	to[n] = '\0';
	strim(to);
}

static void take_limits(struct nvq_ctrl *ctrl, const struct nvme_id_ctrl *id)
{
	u32 sgls = le32_to_cpu(id->sgls);
	size_t dma_max = dma_max_mapping_size(&ctrl->pdev->dev);

	ctrl->max_xfer = NVQ_MAX_XFER;
	/* MDTS 0: no limit.  2^8 pages are NVQ_MAX_XFER already. */
	if (id->mdts && id->mdts < 8)
		ctrl->max_xfer = NVQ_CTRL_PAGE << id->mdts;
	ctrl->max_xfer = min_t(size_t, ctrl->max_xfer,
			       round_down(dma_max, NVQ_CTRL_PAGE));
	ctrl->max_xfer = nvq_fault_max_xfer(ctrl->max_xfer);
	/* Base 2.0 figure 275, SGLS bits 1:0; 10b wants dwords, as PRPs do. */
	ctrl->sgl = (sgls & 3) && nvq_use_sgl;
	ctrl->has_sgl = sgls & 3;
}

int nvq_ctrl_identify(struct nvq_ctrl *ctrl)
{
	struct nvme_command cmd = {
		.identify.opcode = nvme_admin_identify,
		.identify.cns = NVME_ID_CNS_CTRL,
	};
	struct nvme_id_ctrl *id;
	int err;

	id = kzalloc(sizeof(*id), GFP_KERNEL);
	if (!id)
		return -ENOMEM;
	err = nvq_admin_cmd(ctrl, &cmd, id, sizeof(*id), NULL,
			    nvq_admin_timeout * HZ);
	if (err) {
		dev_err(&ctrl->dev, "Identify Controller failed (%d)\n", err);
		err = err < 0 ? err : -EIO;
		goto free;
	}
	nvq_fault_identify(id);
	if ((id->sqes & 0xf) > 6 || (id->cqes & 0xf) > 4) {
		dev_err(&ctrl->dev, "queue entries of 64 and 16 bytes are not supported (SQES 0x%x, CQES 0x%x)\n",
			id->sqes, id->cqes);
		err = -ENODEV;
		goto free;
	}
	copy_field(ctrl->model, id->mn, sizeof(id->mn));
	copy_field(ctrl->serial, id->sn, sizeof(id->sn));
	copy_field(ctrl->firmware, id->fr, sizeof(id->fr));
	ctrl->oacs = le16_to_cpu(id->oacs);
	ctrl->oaes = le32_to_cpu(id->oaes);
	ctrl->nn = le32_to_cpu(id->nn);
	ctrl->acl = id->acl;
	ctrl->vwc = id->vwc & NVME_CTRL_VWC_PRESENT;
	take_limits(ctrl, id);
free:
	kfree(id);
	return err;
}

static int set_feature(struct nvq_ctrl *ctrl, u8 fid, u32 dword11, u32 *result)
{
	struct nvme_command cmd = {
		.features.opcode = nvme_admin_set_features,
		.features.fid = cpu_to_le32(fid),
		.features.dword11 = cpu_to_le32(dword11),
	};
	u64 res = 0;
	int err;

	err = nvq_admin_cmd(ctrl, &cmd, NULL, 0, &res,
			    nvq_admin_timeout * HZ);
	if (result)
		*result = res;
	return err;
}

/* What we must know of the controller and it of us, queues apart. */
int nvq_ctrl_configure(struct nvq_ctrl *ctrl)
{
	/* critical warnings (all), and the notices that it offers */
	u32 events = 0x1f;
	int err;

	err = nvq_ctrl_identify(ctrl);
	if (err)
		return err;
	events |= ctrl->oaes & NVME_AEN_CFG_NS_ATTR;
	err = set_feature(ctrl, NVME_FEAT_ASYNC_EVENT, events, NULL);
	if (err > 0) {
		dev_warn(&ctrl->dev, "the controller refuses to report events 0x%x (status 0x%x): a format change from elsewhere will not be noticed\n",
			 events, err);
		err = 0;
	}
	return err;
}

/* Returns how many I/O queue pairs there are, at most @want; or an errno. */
int nvq_ctrl_request_queues(struct nvq_ctrl *ctrl, u16 want)
{
	u32 n = want - 1, got;
	int err;

	if (!want)
		return -EINVAL;
	err = set_feature(ctrl, NVME_FEAT_NUM_QUEUES, n << 16 | n, &got);
	if (err) {
		dev_err(&ctrl->dev, "asking for %u queues failed (%d)\n", want,
			err);
		return err < 0 ? err : -EIO;
	}
	return min3((u32)want, (got & 0xffff) + 1, (got >> 16) + 1);
}

/*
 * Who gets the queue ids: poll queues first, then irq queues as far as there
 * are interrupt vectors besides the admin queue's.
 */
void nvq_ctrl_share_queues(struct nvq_ctrl *ctrl, u16 granted)
{
	struct nvq_qset *poll = &ctrl->sets[NVQ_SET_POLL];
	struct nvq_qset *irq = &ctrl->sets[NVQ_SET_IRQ];
	u16 vectors = ctrl->nr_vectors - 1;

	*poll = (struct nvq_qset){
		.name = "poll",
		.kind = NVQ_KIND_POLL,
		.first = 1,
		.count = min_t(u32, nvq_user_poll_queues, granted),
	};
	*irq = (struct nvq_qset){
		.name = "irq",
		.kind = NVQ_KIND_IRQ,
		.first = 1 + poll->count,
		.count = min3(nvq_user_irq_queues,
			      (u32)granted - poll->count, (u32)vectors),
	};
	if (poll->count < nvq_user_poll_queues ||
	    irq->count < nvq_user_irq_queues)
		dev_warn(&ctrl->dev, "asked for %u poll and %u irq queues, got %u and %u (%u queue pairs, %u interrupt vectors for them)\n",
			 nvq_user_poll_queues, nvq_user_irq_queues,
			 poll->count, irq->count, granted, vectors);
}

static int hw_delete_one(struct nvq_ctrl *ctrl, u8 opcode, u16 qid)
{
	struct nvme_command cmd = {
		.delete_queue.opcode = opcode,
		.delete_queue.qid = cpu_to_le16(qid),
	};

	return nvq_admin_cmd(ctrl, &cmd, NULL, 0, NULL,
			     nvq_admin_timeout * HZ);
}

/* SQ first: base 2.0 section 5.6.  0 only if the controller confirmed both. */
int nvq_hw_delete(struct nvq_ctrl *ctrl, u16 qid)
{
	int err;

	if (nvq_fault(ctrl, NVQ_FAULT_DELETE, qid))
		return NVME_SC_INTERNAL;
	err = hw_delete_one(ctrl, nvme_admin_delete_sq, qid);
	if (!err)
		err = hw_delete_one(ctrl, nvme_admin_delete_cq, qid);
	if (err > 0)
		dev_err(&ctrl->dev, "deleting queue %u failed (status 0x%x)\n",
			qid, err);
	return err;
}

/* Positive: refused with that status, and there is no queue. */
int nvq_hw_create(struct nvq_ctrl *ctrl, struct nvq_ring *r, bool irq,
		  u16 vector)
{
	struct nvme_command cq = {
		.create_cq.opcode = nvme_admin_create_cq,
		.create_cq.prp1 = cpu_to_le64(r->cq_dma),
		.create_cq.cqid = cpu_to_le16(r->qid),
		.create_cq.qsize = cpu_to_le16(r->depth - 1),
		.create_cq.cq_flags = cpu_to_le16(NVME_QUEUE_PHYS_CONTIG |
				(irq ? NVME_CQ_IRQ_ENABLED : 0)),
		.create_cq.irq_vector = cpu_to_le16(irq ? vector : 0),
	};
	struct nvme_command sq = {
		.create_sq.opcode = nvme_admin_create_sq,
		.create_sq.prp1 = cpu_to_le64(r->sq_dma),
		.create_sq.sqid = cpu_to_le16(r->qid),
		.create_sq.qsize = cpu_to_le16(r->depth - 1),
		.create_sq.sq_flags = cpu_to_le16(NVME_QUEUE_PHYS_CONTIG),
		.create_sq.cqid = cpu_to_le16(r->qid),
	};
	int err, undo;

	if (nvq_fault(ctrl, NVQ_FAULT_CREATE, r->qid))
		return NVME_SC_INTERNAL;
	err = nvq_admin_cmd(ctrl, &cq, NULL, 0, NULL, nvq_admin_timeout * HZ);
	if (err) {
		dev_err(&ctrl->dev, "creating CQ %u failed (%d)\n", r->qid,
			err);
		return err;
	}
	err = nvq_admin_cmd(ctrl, &sq, NULL, 0, NULL, nvq_admin_timeout * HZ);
	if (!err)
		return 0;
	dev_err(&ctrl->dev, "creating SQ %u failed (%d)\n", r->qid, err);
	if (err < 0)
		return err;
	undo = hw_delete_one(ctrl, nvme_admin_delete_cq, r->qid);
	return undo ? -EIO : err;
}

/* --------------------------------------------------------- shadow doorbells */

void nvq_dbbuf_free(struct nvq_ctrl *ctrl)
{
	struct device *dev = &ctrl->pdev->dev;

	if (ctrl->leak)
		return;
	if (ctrl->dbbuf)
		dma_free_coherent(dev, NVQ_CTRL_PAGE, ctrl->dbbuf,
				  ctrl->dbbuf_dma);
	if (ctrl->eventidx)
		dma_free_coherent(dev, NVQ_CTRL_PAGE, ctrl->eventidx,
				  ctrl->eventidx_dma);
	ctrl->dbbuf = NULL;
	ctrl->eventidx = NULL;
}

/* Optional: without memory for it, plain doorbells do. */
static void dbbuf_alloc(struct nvq_ctrl *ctrl)
{
	struct device *dev = &ctrl->pdev->dev;

	if (!(ctrl->oacs & NVME_CTRL_OACS_DBBUF_SUPP))
		return;
	ctrl->dbbuf = dma_alloc_coherent(dev, NVQ_CTRL_PAGE, &ctrl->dbbuf_dma,
					 GFP_KERNEL);
	ctrl->eventidx = dma_alloc_coherent(dev, NVQ_CTRL_PAGE,
					    &ctrl->eventidx_dma, GFP_KERNEL);
	if (!ctrl->dbbuf || !ctrl->eventidx)
		nvq_dbbuf_free(ctrl);
}

/* Before any I/O queue is created; a reset switches it off. */
void nvq_dbbuf_set(struct nvq_ctrl *ctrl)
{
	struct nvme_command cmd = {
		.dbbuf.opcode = nvme_admin_dbbuf,
	};

	ctrl->dbbuf_on = false;
	if (!ctrl->dbbuf)
		dbbuf_alloc(ctrl);
	if (!ctrl->dbbuf)
		return;
	cmd.dbbuf.prp1 = cpu_to_le64(ctrl->dbbuf_dma);
	cmd.dbbuf.prp2 = cpu_to_le64(ctrl->eventidx_dma);
	memset(ctrl->dbbuf, 0, NVQ_CTRL_PAGE);
	memset(ctrl->eventidx, 0, NVQ_CTRL_PAGE);
	if (nvq_admin_cmd(ctrl, &cmd, NULL, 0, NULL, nvq_admin_timeout * HZ))
		dev_warn(&ctrl->dev, "shadow doorbells refused, using plain ones\n");
	else
		ctrl->dbbuf_on = true;
}

/* Points a fresh ring at its four words, which start at 0 like its indices. */
void nvq_dbbuf_attach(struct nvq_ring *r)
{
	struct nvq_ctrl *ctrl = r->ctrl;
	u32 sq = r->qid * 2 * ctrl->db_stride, cq = sq + ctrl->db_stride;

	r->cq_shadow = NULL;
	/* one page of words is all the command hands over */
	if (!ctrl->dbbuf_on || cq >= NVQ_CTRL_PAGE / sizeof(__le32))
		return;
	r->sq_shadow = &ctrl->dbbuf[sq];
	r->cq_shadow = &ctrl->dbbuf[cq];
	r->sq_event = &ctrl->eventidx[sq];
	r->cq_event = &ctrl->eventidx[cq];
	WRITE_ONCE(*r->sq_shadow, 0);
	WRITE_ONCE(*r->cq_shadow, 0);
	WRITE_ONCE(*r->sq_event, 0);
	WRITE_ONCE(*r->cq_event, 0);
}
