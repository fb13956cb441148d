/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault points: what an emulated drive cannot be made to do, done to ourselves
 * for tests/guest/faultpoints.test.  Without configure's --enable-fault-points
 * there is nothing of it in the module.
 *
 * A line written to /sys/class/nvqueue/nvqN/fault arms a point or, with
 * "off", disarms all:
 *
 *	NAME [WHICH [SKIP [COUNT]]]
 *
 * WHICH is a queue id or an opcode (default -1: any); SKIP occasions pass, then
 * COUNT (default 1) are hit.  Reading lists NAME WHICH SKIP COUNT HITS.
 *
 * And what the controller claims to be able to do is made less, by parameters of
 * the module (claim_*), for shapes that no emulated drive has; claim_nsze may be
 * written at any time, and is believed at the next look at the namespaces.
 * Another, fail_alloc, lets one of the driver's own allocations fail (fault_alloc.h).
 */
#ifndef NVQ_FAULT_H
#define NVQ_FAULT_H

struct nvme_command;
struct nvme_id_ctrl;
struct nvq_ctrl;
struct nvq_ns;
struct nvq_queue;

enum nvq_fault_id {
	NVQ_FAULT_LOST,		/* qid: the controller never sees the command */
	NVQ_FAULT_STRAY,	/* qid: it completes it under an id nobody has */
	NVQ_FAULT_IRQ,		/* qid, 0 for admin: the handler does nothing */
	NVQ_FAULT_ADMIN,	/* opcode: its completion is ignored */
	NVQ_FAULT_DELETE,	/* qid: refused, the queue stays */
	NVQ_FAULT_CREATE,	/* qid: refused */
	NVQ_FAULT_CFS,		/* CSTS says fatal */
	NVQ_FAULT_GONE,		/* CSTS reads as all ones */
	NVQ_FAULT_RDY,		/* CSTS does not confirm a disable */
	NVQ_FAULT_FLR,		/* a function level reset fails */
	NVQ_FAULT_ABORT,	/* qid: an Abort returns when all is disarmed */
	NVQ_NR_FAULTS,
};

/* No ring is deep enough to have it. */
#define NVQ_FAULT_CID		0xffff

#ifdef NVQ_FAULT_POINTS

#include "fault_alloc.h"

struct nvq_faults {
	spinlock_t lock;	/* inside every other */
	struct {
		int which;
		u32 skip;
		u32 left;
		u32 hits;
	} point[NVQ_NR_FAULTS];
};

extern const struct attribute_group nvq_fault_group;
#define NVQ_FAULT_GROUPS	&nvq_fault_group,

void nvq_fault_init(struct nvq_ctrl *ctrl);
bool nvq_fault(struct nvq_ctrl *ctrl, enum nvq_fault_id id, int which);
void nvq_fault_hold(struct nvq_ctrl *ctrl, enum nvq_fault_id id, int which);
u32 nvq_fault_sqes(struct nvq_queue *q, struct nvme_command *sqes, u32 nr);
u64 nvq_fault_cap(u64 cap);
u32 nvq_fault_max_xfer(u32 bytes);
void nvq_fault_identify(struct nvme_id_ctrl *id);
void nvq_fault_ns(struct nvq_ns *ns);

#else

struct nvq_faults { };

#define NVQ_FAULT_GROUPS

static inline void nvq_fault_init(struct nvq_ctrl *ctrl)
{
}

static inline bool nvq_fault(struct nvq_ctrl *ctrl, enum nvq_fault_id id,
			     int which)
{
	return false;
}

static inline void nvq_fault_hold(struct nvq_ctrl *ctrl, enum nvq_fault_id id,
				  int which)
{
}

/* Under q->lock: how many of @nr entries, about to be sent, remain. */
static inline u32 nvq_fault_sqes(struct nvq_queue *q,
				 struct nvme_command *sqes, u32 nr)
{
	return nr;
}

static inline u64 nvq_fault_cap(u64 cap)
{
	return cap;
}

static inline u32 nvq_fault_max_xfer(u32 bytes)
{
	return bytes;
}

static inline void nvq_fault_identify(struct nvme_id_ctrl *id)
{
}

static inline void nvq_fault_ns(struct nvq_ns *ns)
{
}

#endif

#endif /* NVQ_FAULT_H */
