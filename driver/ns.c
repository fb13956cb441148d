// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces: what is there, and the watch on its format.
 *
 * ctrl->ns_list caches the active namespaces (ns_lock); it is read again at
 * bring-up, after a format change through our own node, and when the controller
 * reports an event.  A queue whose namespace changed goes stale: its commands
 * fail ESTALE until the owner has read the geometry, because lengths were
 * derived from a format that is gone.
 *
 * A change through our own node first freezes every queue and waits for what
 * is in flight (freeze_lock: one at a time).
 */
#include <linux/slab.h>

#include "nvqueue.h"

static int identify(struct nvq_ctrl *ctrl, u8 cns, u32 nsid, void *buf)
{
	struct nvme_command cmd = {
		.identify.opcode = nvme_admin_identify,
		.identify.nsid = cpu_to_le32(nsid),
		.identify.cns = cns,
	};

	return nvq_admin_cmd(ctrl, &cmd, buf, NVME_IDENTIFY_DATA_SIZE, NULL,
			     nvq_admin_timeout * HZ);
}

/* Base 2.0 figure 283: descriptors of type, length, 2 reserved, value */
static u8 find_csi(const u8 *desc)
{
	u32 pos = 0;

	while (pos + 4 < NVME_IDENTIFY_DATA_SIZE && desc[pos + 1]) {
		if (desc[pos] == NVME_NIDT_CSI)
			return desc[pos + 4];
		pos += 4 + desc[pos + 1];
	}
	return NVME_CSI_NVM;
}

static int parse_ns(struct nvq_ns *ns, const struct nvme_id_ns *id)
{
	const struct nvme_lbaf *lbaf;
	u8 i = id->flbas & NVME_NS_FLBAS_LBA_MASK;

	/* an inactive namespace is all zeroes */
	if (!id->nsze)
		return -EINVAL;
	/* Format index bits 6:5, where there are more than 16 formats */
	if (id->nlbaf > 15)
		i |= (id->flbas & 0x60) >> 1;
	lbaf = &id->lbaf[i];
	if (lbaf->ds < 9 || lbaf->ds > 20)
		return -EINVAL;
	ns->lba_shift = lbaf->ds;
	ns->nsze = le64_to_cpu(id->nsze);
	ns->ms = le16_to_cpu(lbaf->ms);
	ns->ext = ns->ms && (id->flbas & NVME_NS_FLBAS_META_EXT);
	nvq_fault_ns(ns);
	return 0;
}

/* -EINVAL: not an active namespace. */
int nvq_ns_identify(struct nvq_ctrl *ctrl, u32 nsid, struct nvq_ns *ns)
{
	void *buf;
	int err;

	if (!nsid || nsid > ctrl->nn)
		return -EINVAL;
	buf = kzalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	memset(ns, 0, sizeof(*ns));
	ns->nsid = nsid;
	err = identify(ctrl, NVME_ID_CNS_NS, nsid, buf);
	if (!err)
		err = parse_ns(ns, buf);
	else if (err > 0)
		err = -EINVAL;
	if (err)
		goto free;
	if (ctrl->vs >= NVME_VS(1, 3, 0) || NVME_CAP_CSS(ctrl->cap) &
	    NVME_CAP_CSS_CSI) {
		memset(buf, 0, NVME_IDENTIFY_DATA_SIZE);
		/* Optional before 2.0: without an answer it is NVM. */
		err = identify(ctrl, NVME_ID_CNS_NS_DESC_LIST, nsid, buf);
		if (err < 0)
			goto free;
		ns->csi = err ? NVME_CSI_NVM : find_csi(buf);
		err = 0;
	}
free:
	kfree(buf);
	return err;
}

/* Fills @list with up to 1024 active ids, ended by 0.  An errno on failure. */
static int active_list(struct nvq_ctrl *ctrl, __le32 *list)
{
	u32 i, nr = NVME_IDENTIFY_DATA_SIZE / sizeof(*list);
	int err;

	err = identify(ctrl, NVME_ID_CNS_NS_ACTIVE_LIST, 0, list);
	if (err <= 0)
		return err;
	/* Before 1.1 there is no list: every id may be one. */
	for (i = 0; i < nr; i++)
		list[i] = cpu_to_le32(i < ctrl->nn ? i + 1 : 0);
	return 0;
}

static bool same_ns(const struct nvq_ns *a, const struct nvq_ns *b)
{
	return a->nsid == b->nsid && a->lba_shift == b->lba_shift &&
	       a->nsze == b->nsze && a->ms == b->ms && a->csi == b->csi;
}

static const struct nvq_ns *find_ns(struct nvq_ctrl *ctrl, u32 nsid)
{
	u32 i;

	for (i = 0; i < ctrl->nr_ns; i++)
		if (ctrl->ns_list[i].nsid == nsid)
			return &ctrl->ns_list[i];
	return NULL;
}

/* Under ns_lock: queues whose namespace is not what it was; or @all. */
static void mark_stale(struct nvq_ctrl *ctrl, bool all)
{
	struct nvq_queue *q;
	unsigned int i;

	nvq_for_each_queue(ctrl, q, i) {
		const struct nvq_ns *ns;
		bool warn = false;

		spin_lock_irq(&q->lock);
		ns = find_ns(ctrl, q->ns.nsid);
		if (q->slots && !q->stale &&
		    (all || !ns || !same_ns(ns, &q->ns))) {
			q->stale = warn = true;
			nvq_publish(q);
			nvq_guard_restore(ctrl);
		}
		spin_unlock_irq(&q->lock);
		if (warn) {
			wake_up_all(&q->wait);
			dev_warn(&q->dev, "namespace %u changed: commands fail ESTALE until the geometry is read again\n",
				 q->ns.nsid);
		}
	}
}

static int rescan(struct nvq_ctrl *ctrl)
{
	struct nvq_ns *list = NULL, *old;
	u32 i, nr = 0;
	__le32 *ids;
	int err;

	ids = kzalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	if (!ids)
		return -ENOMEM;
	err = active_list(ctrl, ids);
	if (err)
		goto free;
	while (nr < 1024 && ids[nr])
		nr++;
	list = kvcalloc(max(nr, 1U), sizeof(*list), GFP_KERNEL);
	if (!list) {
		err = -ENOMEM;
		goto free;
	}
	for (i = 0, nr = 0; i < 1024 && ids[i]; i++) {
		err = nvq_ns_identify(ctrl, le32_to_cpu(ids[i]), &list[nr]);
		if (!err)
			nr++;
		else if (err != -EINVAL)
			goto free;
	}
	err = 0;
	mutex_lock(&ctrl->ns_lock);
	old = ctrl->ns_list;
	ctrl->ns_list = list;
	ctrl->nr_ns = nr;
	/*
	 * Before the queues are marked: who takes a format under q->lock that
	 * it read before this list either sees the number move, or is marked.
	 */
	WRITE_ONCE(ctrl->ns_seq, ctrl->ns_seq + 1);
	mark_stale(ctrl, false);
	mutex_unlock(&ctrl->ns_lock);
	list = old;
free:
	kvfree(list);
	kfree(ids);
	return err;
}

/* Reads all namespaces again.  0 or an errno; none at all is no error. */
int nvq_ns_rescan(struct nvq_ctrl *ctrl)
{
	int err;

	mutex_lock(&ctrl->rescan_lock);
	err = rescan(ctrl);
	mutex_unlock(&ctrl->rescan_lock);
	return err;
}

static int check_format(struct nvq_ctrl *ctrl, const struct nvq_ns *ns)
{
	/* The table of opcodes speaks of these two command sets only. */
	if (ns->csi != NVME_CSI_NVM && ns->csi != NVME_CSI_ZNS) {
		dev_warn_ratelimited(&ctrl->dev, "namespace %u uses command set %u; nvqueue knows NVM (0) and zoned (2)\n",
			 ns->nsid, ns->csi);
		return -EOPNOTSUPP;
	}
	if (!ns->ms)
		return 0;
	dev_warn_ratelimited(&ctrl->dev, "namespace %u is formatted with %u bytes of %s metadata per %u byte LBA, which nvqueue does not support yet; nvme format --lbaf=N with ms:0\n",
		 ns->nsid, ns->ms, ns->ext ? "interleaved" : "separate",
		 1U << ns->lba_shift);
	return -EOPNOTSUPP;
}

/* The lowest active namespace, as it is now. */
int nvq_ns_default(struct nvq_ctrl *ctrl, struct nvq_ns *ns)
{
	u32 nsid;
	int err;

	mutex_lock(&ctrl->ns_lock);
	nsid = ctrl->nr_ns ? ctrl->ns_list[0].nsid : 0;
	mutex_unlock(&ctrl->ns_lock);
	if (!nsid) {
		dev_warn_ratelimited(&ctrl->dev, "no active namespace; attach one (nvme attach-ns) and open again\n");
		return -ENXIO;
	}
	err = nvq_ns_identify(ctrl, nsid, ns);
	return err ? err : check_format(ctrl, ns);
}

/* Under q->lock. */
static void take_ns(struct nvq_queue *q, const struct nvq_ns *ns)
{
	q->ns = *ns;
	/* release: who reads the key finds the namespace it stands for */
	smp_store_release(&q->ns_key, nvq_ns_key(q->ns_key, ns));
	q->stale = false;
	if (q->native)
		nvq_native_take_ns(q);
	nvq_publish(q);
}

/*
 * Reads namespace @nsid and takes it, unless it may have changed since: then
 * again.  @select: another than before, so only as long as no command was sent.
 */
static int read_and_take(struct nvq_queue *q, u32 nsid, bool select)
{
	struct nvq_ctrl *ctrl = q->ctrl;
	struct nvq_ns ns;
	bool again;
	u32 seq;
	int err;

	do {
		seq = READ_ONCE(ctrl->ns_seq);
		err = nvq_ns_identify(ctrl, nsid, &ns);
		if (!err)
			err = check_format(ctrl, &ns);
		if (err)
			return err;
		spin_lock_irq(&q->lock);
		again = seq != READ_ONCE(ctrl->ns_seq);
		if (select && q->used)
			err = -EBUSY;
		else if (!again && (q->stale || !same_ns(&ns, &q->ns)))
			take_ns(q, &ns);
		spin_unlock_irq(&q->lock);
	} while (again && !err);
	return err;
}

/* The owner reads its geometry: takes the namespace as it is now. */
int nvq_queue_refresh(struct nvq_queue *q)
{
	return read_and_take(q, READ_ONCE(q->ns.nsid), false);
}

int nvq_queue_select(struct nvq_queue *q, u32 nsid)
{
	return read_and_take(q, nsid, true);
}

/* ------------------------------------------------------------------ freeze */

static void set_frozen(struct nvq_ctrl *ctrl, bool frozen)
{
	struct nvq_queue *q;
	unsigned int i;

	nvq_for_each_queue(ctrl, q, i) {
		spin_lock_irq(&q->lock);
		q->frozen = frozen;
		nvq_publish(q);
		spin_unlock_irq(&q->lock);
		wake_up_all(&q->wait);
	}
}

static bool drained(struct nvq_queue *q)
{
	bool yes;

	/* On a poll queue nobody else may be looking. */
	nvq_reap(q);
	spin_lock_irq(&q->lock);
	yes = !q->inflight && !q->held;
	spin_unlock_irq(&q->lock);
	return yes;
}

/*
 * Before a command that may change a format: no queue takes commands, and none
 * has any.  Bounded by what time-outs take to end them.  -EBUSY: not drained.
 */
int nvq_ns_freeze(struct nvq_ctrl *ctrl)
{
	unsigned long end = jiffies + (3 * nvq_io_timeout + nvq_admin_timeout)
			    * HZ;
	struct nvq_queue *q;
	unsigned int i;

	mutex_lock(&ctrl->freeze_lock);
	set_frozen(ctrl, true);
	nvq_for_each_queue(ctrl, q, i)
		while (!drained(q)) {
			if (time_after(jiffies, end) ||
			    fatal_signal_pending(current)) {
				set_frozen(ctrl, false);
				mutex_unlock(&ctrl->freeze_lock);
				return -EBUSY;
			}
			wait_event_timeout(q->wait, drained(q), HZ / 100 + 1);
		}
	return 0;
}

/* Where nobody can tell what the namespaces are now, all of them have changed. */
static void rescan_or_stale(struct nvq_ctrl *ctrl)
{
	int err = nvq_ns_rescan(ctrl);

	if (!err)
		return;
	dev_warn(&ctrl->dev, "reading the namespaces again failed (%d): every queue is stale\n",
		 err);
	mutex_lock(&ctrl->ns_lock);
	WRITE_ONCE(ctrl->ns_seq, ctrl->ns_seq + 1);
	mark_stale(ctrl, true);
	mutex_unlock(&ctrl->ns_lock);
}

/* After it: whoever's namespace changed goes stale before it thaws. */
void nvq_ns_thaw(struct nvq_ctrl *ctrl)
{
	rescan_or_stale(ctrl);
	set_frozen(ctrl, false);
	mutex_unlock(&ctrl->freeze_lock);
}

/* ------------------------------------------------------------------ events */

/*
 * Reading the event's log page acknowledges it (base 2.0 section 5.2), or the
 * controller would not report the next of its kind.  0, a status or an errno.
 */
static int read_log(struct nvq_ctrl *ctrl, u8 lid)
{
	u32 len = lid == NVME_LOG_CHANGED_NS ? 4096 : 512;
	struct nvme_command cmd = {
		.get_log_page.opcode = nvme_admin_get_log_page,
		.get_log_page.nsid = cpu_to_le32(NVME_NSID_ALL),
		.get_log_page.lid = lid,
		.get_log_page.numdl = cpu_to_le16(len / 4 - 1),
	};
	void *buf = kzalloc(len, GFP_KERNEL);
	int err;

	if (!buf)
		return -ENOMEM;
	err = nvq_admin_cmd(ctrl, &cmd, buf, len, NULL, nvq_admin_timeout * HZ);
	kfree(buf);
	return err;
}

/*
 * Bring-up, before the namespaces are read: a change whose event ended with the
 * reset, or before, is not left unacknowledged.  The list of changes outlives a
 * reset, and with it the controller's silence about more of them.  -ENOMEM, or
 * it is tried.
 */
int nvq_ns_acknowledge(struct nvq_ctrl *ctrl)
{
	if (!(ctrl->oaes & NVME_AEN_CFG_NS_ATTR))
		return 0;
	return read_log(ctrl, NVME_LOG_CHANGED_NS) == -ENOMEM ? -ENOMEM : 0;
}

/* aer_work: one event.  Figure 144: type, information, log page. */
void nvq_aer_work(struct work_struct *work)
{
	struct nvq_ctrl *ctrl = container_of(work, struct nvq_ctrl, aer_work);
	u32 result = READ_ONCE(ctrl->aer_result);
	u8 type = result & 7, info = result >> 8, lid = result >> 16;

	dev_info(&ctrl->dev, "event: type %u information 0x%02x log page 0x%02x\n",
		 type, info, lid);
	/*
	 * Before the request goes out again, the queues must know; commands
	 * that are sent meanwhile are as foreign a race as before the event.
	 * Should there be no memory to read the log, a reset will.
	 */
	if (lid && read_log(ctrl, lid) == -ENOMEM)
		nvq_reset_schedule(ctrl, "no memory to acknowledge an event",
				   false);
	if (type == NVME_AER_NOTICE && info == NVME_AER_NOTICE_NS_CHANGED)
		rescan_or_stale(ctrl);
	nvq_aer_arm(ctrl);
}
