/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nvqueue.ko, internal: the objects and who guards them.
 *
 * A command passes these rooms, one file each:
 *
 *	uring.c, ioctl.c   the two ways in (a ring, a waiting ioctl)
 *	passthru.c         user's words -> a validated NVMe command and its data
 *	opcode.h           the table of opcodes: direction, length, write (pure)
 *	map.c, dptr.h      user pages -> DMA -> PRPs or SGLs (dptr.h is pure)
 *	queue.c            slots, submission, reaping; sync.c waits for one
 *	poll.c             the iopoll callback
 *	ring.c             the hardware rings and doorbells
 *
 * or, natively, in batches:
 *
 *	native.c, stage.h  SUBMIT: staged commands -> SQ entries (stage.h is pure)
 *	buffer.c           registered buffers
 *	native_wait.c      waiting for completions; native_stop.c: when things stop
 *
 * and around them: pci.c (probe, remove), ctrl.c (bring-up), admin.c (admin
 * queue), ns.c (namespaces and the watch on their format), life.c (a queue from
 * open to close), recover.c (time-out, reset, removal: one mechanism), nodes.c
 * (devices and references), qfile.c and cfile.c (the char devices), sysfs.c;
 * fault.c, for tests, is not there by default.
 *
 * Locks, outermost first:
 *
 *	ctrl->freeze_lock (mutex) a format change through our own node
 *	ctrl->lock (mutex)	state changes of the controller: reset,
 *				suspend, removal
 *	q->mutex		creating and deleting the hardware queue
 *	ctrl->rescan_lock (mutex) reading the namespaces again
 *	ctrl->ns_lock (mutex)	the cached list of namespaces, ctrl->queues
 *				against their release
 *	q->lock (spin, irqs off) rings, slots, state, counters
 *	admin->lock (spin, irqs off) the admin queue's ring and slots
 */
#ifndef NVQ_DRIVER_H
#define NVQ_DRIVER_H

#include <linux/bvec.h>
#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/interrupt.h>
#include <linux/dma-mapping.h>
#include <linux/mutex.h>
#include <linux/nvme.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <nvqueue/uapi.h>

#include "dptr.h"
#include "fault.h"
#include "stage.h"

struct dma_pool;
struct io_uring_cmd;
struct iov_iter;
struct nvq_ctrl;
struct nvq_queue;

#define NVQ_ADMIN_DEPTH		32
/* One PRP list page covers it (256 entries and PRP1), so no list chains. */
#define NVQ_MAX_XFER		(1U << 20)
#define NVQ_REAP_BATCH		32
#define NVQ_NO_SLOT		U16_MAX	/* the end of the free list */

/* NVMe base 2.0 figure 126: SCT 3h (path), SC 71h, "Command Aborted By Host" */
#define NVQ_SC_HOST_ABORTED	0x371

/* ------------------------------------------------------------------ ring.c */

/*
 * A hardware SQ/CQ pair.  The owner's lock guards all of it; user space may be
 * reading the CQ's pages at any time.
 */
struct nvq_ring {
	struct nvme_command *sqes;
	struct nvme_completion *cqes;
	u32 __iomem *sq_db;
	u32 __iomem *cq_db;
	__le32 *sq_shadow;	/* NULL without shadow doorbells */
	__le32 *cq_shadow;
	__le32 *sq_event;
	__le32 *cq_event;
	u16 depth;
	u16 sq_tail;		/* next free SQ entry */
	u16 sq_rung;		/* tail the controller was told */
	u16 cq_head;
	u8 cq_phase;
	u64 sq_doorbells;	/* MMIO writes */
	u64 cq_doorbells;

	/* cold */
	struct nvq_ctrl *ctrl;
	u16 qid;
	unsigned int sq_order;
	unsigned int cq_order;
	struct page *sq_pages;	/* split: each page holds its own reference */
	struct page *cq_pages;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	bool mapped;
};

bool nvq_dma_bounces(struct device *dev, dma_addr_t dma);
int nvq_ring_alloc(struct nvq_ring *r, struct nvq_ctrl *ctrl, u16 qid,
		   u16 depth);
void nvq_ring_unmap(struct nvq_ring *r);
void nvq_ring_free(struct nvq_ring *r);
void nvq_ring_reset(struct nvq_ring *r);
void nvq_ring_push(struct nvq_ring *r, const struct nvme_command *cmd);
void nvq_ring_kick(struct nvq_ring *r);
void nvq_ring_ack_to(struct nvq_ring *r, u16 head);

/* Gives back all that was consumed. */
static inline void nvq_ring_ack(struct nvq_ring *r)
{
	nvq_ring_ack_to(r, r->cq_head);
}

/* True if the controller has posted the entry at the head. */
static inline bool nvq_ring_pending(const struct nvq_ring *r)
{
	const struct nvme_completion *cqe = &r->cqes[r->cq_head];

	return (le16_to_cpu(READ_ONCE(cqe->status)) & 1) == r->cq_phase;
}

static inline void nvq_ring_advance(struct nvq_ring *r)
{
	if (++r->cq_head == r->depth) {
		r->cq_head = 0;
		r->cq_phase ^= 1;
	}
}

/* ------------------------------------------------------------------- map.c */

/*
 * The data of one command: user pages, their DMA addresses, and the page that
 * holds its PRP list or SGL segment.  Belongs to whoever holds the slot.
 */
struct nvq_map {
	struct bio_vec one;	/* the common case needs no allocation */
	struct bio_vec *bv;	/* &one, or kmalloc'ed; NULL: no data */
	u32 nr;
	u32 len;
	dma_addr_t dma;		/* of a single segment */
	enum dma_data_direction dir;
	bool pinned;		/* we hold a pin on each bv's page */
	bool dma_mapped;
	u16 list_used;		/* PRP list entries to turn back into guards */

	/* cold: more than one segment, or memory the device cannot reach */
	struct sg_table sgt;
	struct bio_vec *bounce;
	u32 nr_bounce;
};

struct nvq_list {
	__le64 *va;		/* NVQ_LIST_BYTES; unused entries are guards */
	dma_addr_t dma;
};

int nvq_map_user(struct nvq_map *m, u64 addr, u32 len,
		 enum dma_data_direction dir);
int nvq_map_iovec(struct nvq_map *m, u64 addr, u32 nr, u32 len,
		  enum dma_data_direction dir);
int nvq_map_fixed(struct nvq_map *m, struct iov_iter *iter,
		  enum dma_data_direction dir);
int nvq_map_dma(struct nvq_ctrl *ctrl, struct nvq_map *m,
		struct nvq_list *list, struct nvme_command *cmd, bool sgl);
void nvq_unmap_dma(struct nvq_ctrl *ctrl, struct nvq_map *m,
		   struct nvq_list *list);
void nvq_map_unbounce(struct nvq_map *m);
void nvq_map_release(struct nvq_map *m, bool ok);
void nvq_map_leak(struct nvq_map *m);
void nvq_map_move(struct nvq_map *to, struct nvq_map *from);
int nvq_list_alloc(struct nvq_ctrl *ctrl, struct nvq_list *list);
int nvq_guard_alloc(struct nvq_ctrl *ctrl);
void nvq_guard_free(struct nvq_ctrl *ctrl);
void nvq_guard_restore(struct nvq_ctrl *ctrl);
void nvq_list_free(struct nvq_ctrl *ctrl, struct nvq_list *list);

/* -------------------------------------------------------------------- ns.c */

struct nvq_ns {
	u32 nsid;
	u32 lba_shift;
	u64 nsze;
	u16 ms;
	u8 csi;
	bool ext;		/* metadata at the end of each LBA */
};

/*
 * Format and identity of what a queue file addresses, in one word: a command
 * made from one is not sent under another.
 */
#define NVQ_NS_KEY_SHIFT_MASK	0x3f

static inline u32 nvq_ns_key(u32 old, const struct nvq_ns *ns)
{
	return ((old & ~NVQ_NS_KEY_SHIFT_MASK) + NVQ_NS_KEY_SHIFT_MASK + 1) |
	       ns->lba_shift;
}

int nvq_ns_identify(struct nvq_ctrl *ctrl, u32 nsid, struct nvq_ns *ns);
int nvq_ns_default(struct nvq_ctrl *ctrl, struct nvq_ns *ns);
int nvq_ns_rescan(struct nvq_ctrl *ctrl);
void nvq_aer_work(struct work_struct *work);
int nvq_queue_refresh(struct nvq_queue *q);
int nvq_queue_select(struct nvq_queue *q, u32 nsid);
int nvq_ns_freeze(struct nvq_ctrl *ctrl);
void nvq_ns_thaw(struct nvq_ctrl *ctrl);

enum nvq_slot_state {
	NVQ_SLOT_FREE,
	NVQ_SLOT_HELD,		/* being mapped by a submitter; native: has ended,
				   its Abort has not */
	NVQ_SLOT_INFLIGHT,	/* the controller may write its data */
	NVQ_SLOT_DONE,		/* ended; its owner has not been told yet */
	NVQ_SLOT_TOLD,		/* an IOPOLL callback is about to free it */
	NVQ_SLOT_ABORTING,	/* native: in flight, and its Abort is, too */
};

/* ---------------------------------------------------- native.c, buffer.c */

/* A command id of the native path: 8 bytes, one per depth. */
struct nvq_nslot {
	u32 deadline;		/* low half of jiffies */
	u16 buf;
	u8 state;		/* NVQ_SLOT_FREE, _INFLIGHT, _ABORTING, _HELD */
	bool late;		/* was out of time once, and had its Abort */
};

/* A registered buffer; q->mutex, but for what its view holds. */
struct nvq_buf {
	struct page **pages;
	u32 nr_pages;
	u32 nr_lists;
	struct nvq_buf_list *lists;
	struct nvq_buf_page *table;
	struct sg_table sgt;
	struct mm_struct *mm;	/* charged */
	bool readonly;
	bool dma_mapped;
};

/*
 * What a native file has besides its rings.  Made once and freed at the last
 * close, under q->mutex; q->lock guards the fields.
 */
struct nvq_native {
	struct nvq_upage *upage;
	const __le64 *staging;	/* 8 words an entry */
	struct nvq_nslot *slots;
	struct nvq_stage_ctx ctx;	/* ctx.bufs is views */
	u32 stage_mask;
	u32 sq_head;		/* staged commands accepted */
	u32 posted;		/* completions harvested */
	u32 consumed;		/* of these, read by user space as it says */
	u32 acked;		/* of these, given back to the controller */
	u32 sent;		/* commands submitted since the queue was made */
	u16 cq_ack;		/* CQ index that acked stands for */
	u32 timeout;		/* jiffies */

	/* cold */
	u64 dropped;
	u32 nr_held;		/* ids in state NVQ_SLOT_HELD */
	u32 nr_bufs;		/* of views and bufs, at most in use */
	struct nvq_buf_view *views;
	struct nvq_buf *bufs;
	unsigned int staging_order;
	struct page *staging_pages;
	struct page *upage_page;
	/* the one wait for completions */
	void *waiter;		/* io_uring_cmd, or a struct nvq_waiter */
	u32 wait_target;	/* posted that it waits for */
	u16 wait_index;		/* CQ entry to look at, and its phase */
	u8 wait_phase;
	bool wait_sync;
	unsigned long wait_deadline;
};

/* The CQ index @by entries further on. */
static inline u16 nvq_cq_index_add(const struct nvq_ring *r, u32 index, u32 by)
{
	index += by;
	return index < r->depth ? index : index - r->depth;
}

/*
 * Under q->lock: what user space says it has read, never more than was posted.
 * Nonsense costs its writer the entries it did not read.
 */
static inline void nvq_native_consume(struct nvq_native *n, u32 head)
{
	u32 said = head - n->consumed, most = n->posted - n->consumed;

	n->consumed += min(said, most);
}

static inline bool nvq_nslot_inflight(const struct nvq_nslot *slot)
{
	return slot->state == NVQ_SLOT_INFLIGHT ||
	       slot->state == NVQ_SLOT_ABORTING;
}

int nvq_native_get(struct nvq_queue *q);
void nvq_native_free(struct nvq_queue *q);
void nvq_native_end_all(struct nvq_queue *q, u16 status);
bool nvq_native_expired(struct nvq_queue *q, u16 *cid, u32 max, u32 *nr,
			bool *late);
void nvq_native_aborted(struct nvq_queue *q, u16 cid);
u32 nvq_native_harvest(struct nvq_queue *q);
void nvq_native_take_ns(struct nvq_queue *q);
void nvq_native_wake(struct nvq_queue *q, bool stopped);
int nvq_native_submit(struct nvq_queue *q, u32 max, bool writable,
		      bool nonblock);
bool nvq_native_unread(struct nvq_queue *q);
int nvq_native_submit_from(struct nvq_queue *q,
			   const struct nvq_submit_from *from, bool writable);
int nvq_native_wait_sync(struct nvq_queue *q, u32 want, u32 timeout_ms);
int nvq_native_wait_uring(struct nvq_queue *q, u32 want, u32 timeout_ms,
			  struct io_uring_cmd *cmd);
int nvq_native_resync(struct nvq_queue *q);
int nvq_native_drop(struct nvq_queue *q, u32 index);
void nvq_native_irq(struct nvq_queue *q);

int nvq_buf_register(struct nvq_queue *q, struct nvq_register *reg);
int nvq_buf_unregister(struct nvq_queue *q, u32 index);
void nvq_bufs_unmap(struct nvq_queue *q);
void nvq_bufs_free(struct nvq_queue *q);

/* --------------------------------- queue.c, poll.c, sync.c, life.c */

enum nvq_slot_kind {
	NVQ_IO_IOPOLL,		/* owner: io_uring_cmd on an IOPOLL ring */
	NVQ_IO_TASK,		/* owner: io_uring_cmd, done by task work */
	NVQ_IO_SYNC,		/* owner: struct nvq_waiter */
	NVQ_IO_ORPHAN,		/* the waiter was killed; nobody to tell */
};

struct nvq_slot {
	void *owner;
	u64 result;
	u64 seq;		/* the how manieth command of this owner */
	unsigned long deadline;	/* jiffies */
	u16 status;		/* CQE status without the phase bit */
	u16 next;		/* free list */
	u8 state;
	u8 kind;
	bool aborted;
	bool aborting;		/* an Abort names this id: do not use it */
	u32 timeout;		/* jiffies */
	struct nvq_map map;
	struct nvq_list list;	/* kept from one command to the next */
};

struct nvq_waiter {
	struct completion done;
};

/* A command ready to go: what passthru.c hands to queue.c. */
struct nvq_io {
	struct nvme_command sqe;
	struct nvq_map map;
	void *owner;
	u32 timeout;		/* jiffies */
	u8 kind;
	bool sgl;		/* must be described by SGLs */
	u32 ns_key;		/* what sqe and its lengths were made from */
	struct nvq_slot *slot;	/* out */
};

enum nvq_hw_state {
	NVQ_HW_NONE,		/* no hardware queue exists */
	NVQ_HW_LIVE,
	NVQ_HW_STOPPED,		/* recovery: nobody submits */
	NVQ_HW_DEAD,		/* the controller is gone */
};

struct nvq_queue {
	/* fast path; lock guards all of it */
	spinlock_t lock ____cacheline_aligned_in_smp;
	u8 hw;			/* enum nvq_hw_state */
	u8 kind;		/* enum nvq_kind, constant */
	bool frozen;		/* a format change is under way */
	bool stale;		/* the format changed, the owner has not seen */
	u16 free;		/* head of the free list of slots */
	u16 inflight;
	u16 held;
	u16 slot_waiters;
	struct nvq_slot *slots;
	u16 *order;		/* command ids in order of submission, by seq */
	struct nvq_kpage *kpage;
	struct nvq_ring ring;
	u64 submitted;
	u64 completed;
	u64 reap_empty;
	u64 iopoll_empty;
	u64 pass_seq;		/* see account() */
	bool pass_open;
	bool used;		/* a command was sent: the namespace is fixed */
	bool resync;		/* native: stopped until the owner agrees */
	struct nvq_native *native;	/* NULL: standard, or nothing yet */
	u32 generation;
	u32 ns_key;		/* nvq_ns_key() of ns, read without the lock */
	struct nvq_ns ns;

	/* cold */
	struct nvq_ctrl *ctrl;
	struct mutex mutex;
	wait_queue_head_t wait;	/* slots, drain, owner, poll(2) */
	struct delayed_work watch;	/* time-outs; runs while open */
	struct page *kpage_page;
	unsigned long claimed;	/* bit 0: owned */
	pid_t owner;		/* for sysfs and messages */
	bool opened;		/* between open and release; mutex */
	bool on_ctrl;		/* the controller may have the queue; mutex */
	u16 qid;
	u16 index;		/* M of nvqNpollM */
	bool irq_on;		/* its interrupt is requested */
	u16 vector;
	struct device dev;
	struct cdev cdev;
};

int nvq_queue_open(struct nvq_queue *q);
void nvq_queue_close(struct nvq_queue *q);
int nvq_queue_create_hw(struct nvq_queue *q);
int nvq_submit(struct nvq_queue *q, struct nvq_io *io, bool nonblock);
int nvq_reap(struct nvq_queue *q);
int nvq_poll(struct nvq_queue *q, struct nvq_slot *slot);
void nvq_slot_free(struct nvq_queue *q, struct nvq_slot *slot);
void nvq_slot_put(struct nvq_queue *q, struct nvq_slot *slot);
void nvq_slot_aborted(struct nvq_queue *q, struct nvq_slot *slot);
void nvq_queue_end_all(struct nvq_queue *q, u16 status);
void nvq_queue_dma_done(struct nvq_queue *q);
irqreturn_t nvq_irq(int irq, void *data);
void nvq_publish(struct nvq_queue *q);
int nvq_sync(struct nvq_queue *q, struct nvq_io *io, u64 *result);
void nvq_queue_bury(struct nvq_queue *q);

/* uring.c: called by queue.c and native.c when a command, a wait has ended */
void nvq_uring_wait_done(struct io_uring_cmd *cmd, int res);
void nvq_uring_end(struct nvq_queue *q, struct nvq_slot *slot);
void nvq_uring_done_iopoll(struct io_uring_cmd *cmd, u16 status, u64 result);

/* ----------------------------------------------------------------- admin.c */

struct nvq_admin_slot {
	struct completion done;
	u64 result;
	u16 status;
	u8 state;		/* enum nvq_slot_state */
	u8 opcode;
};

struct nvq_admin {
	spinlock_t lock;
	bool live;
	struct nvq_ring ring;
	struct nvq_admin_slot slots[NVQ_ADMIN_DEPTH];
	struct semaphore sem;	/* users: free slots but the AER's */
	bool aer_armed;
};

/*
 * The AER has a command id no waiter can get, a full SQ has a free entry, and
 * one place is for whoever resets: it must not wait for those it is to end.
 */
#define NVQ_AER_CID		(NVQ_ADMIN_DEPTH - 1)
#define NVQ_ADMIN_USERS		(NVQ_ADMIN_DEPTH - 3)

int nvq_admin_alloc(struct nvq_ctrl *ctrl);
void nvq_admin_free(struct nvq_ctrl *ctrl);
void nvq_admin_start(struct nvq_ctrl *ctrl);
void nvq_admin_stop(struct nvq_ctrl *ctrl);
void nvq_admin_drain(struct nvq_ctrl *ctrl);
int nvq_admin_cmd(struct nvq_ctrl *ctrl, struct nvme_command *cmd, void *buf,
		  u32 len, u64 *result, u32 timeout);
void nvq_aer_arm(struct nvq_ctrl *ctrl);
irqreturn_t nvq_admin_irq(int irq, void *data);

/* ------------------------------------------------------------------ ctrl.c */

enum nvq_ctrl_state {
	NVQ_CTRL_NEW,
	NVQ_CTRL_LIVE,
	NVQ_CTRL_RESETTING,
	NVQ_CTRL_DELETING,
	NVQ_CTRL_DEAD,
};

/*
 * A kind of queue and the hardware queue ids it got.  A further set (blk-mq's
 * "default" queues, say) is a further line in nvq_ctrl_share_queues().
 */
struct nvq_qset {
	const char *name;	/* "poll": the node is nvqNpollM */
	u16 kind;		/* enum nvq_kind */
	u16 first;		/* qid */
	u16 count;
};

enum { NVQ_SET_POLL, NVQ_SET_IRQ, NVQ_NR_SETS };

struct nvq_ctrl {
	struct pci_dev *pdev;
	void __iomem *bar;
	u32 db_stride;		/* in u32s */
	u16 depth;		/* of each I/O queue */
	u32 max_xfer;		/* bytes */
	bool sgl;
	bool has_sgl;		/* even if sgl is switched off */
	bool vwc;
	bool leak;		/* DMA could not be stopped: free nothing */
	bool sick;		/* it may not answer: disable it at once */
	u32 instance;

	enum nvq_ctrl_state state;	/* state_lock; read without */
	struct mutex lock;
	spinlock_t state_lock;
	wait_queue_head_t wait;		/* for the end of a reset */
	struct task_struct *bringup;	/* may use a controller not yet live */
	struct mutex freeze_lock;	/* one format change at a time */
	struct work_struct reset_work;
	struct work_struct aer_work;
	u32 aer_result;
	u32 generation;

	struct nvq_admin admin;
	struct nvq_qset sets[NVQ_NR_SETS];
	struct nvq_queue **queues;	/* nr_queues of them, by qid - 1 */
	u16 nr_queues;
	u16 nr_vectors;
	struct dma_pool *list_pool;
	struct nvq_list guard;		/* its entries point at guard_data */
	struct nvq_list guard_data;
	__le32 *dbbuf;		/* shadow page, then event page */
	__le32 *eventidx;
	dma_addr_t dbbuf_dma;
	dma_addr_t eventidx_dma;
	bool dbbuf_on;

	u64 cap;
	u32 vs;
	u32 oaes;
	u16 oacs;
	u32 nn;
	u8 acl;
	char model[41];
	char serial[21];
	char firmware[9];

	struct mutex rescan_lock;	/* one rescan at a time */
	struct mutex ns_lock;
	u32 ns_seq;		/* rises with each new list */
	struct nvq_ns *ns_list;	/* active namespaces, rising nsid */
	u32 nr_ns;

	struct nvq_faults faults;
	struct device dev;
	struct cdev cdev;
};

#define nvq_for_each_queue(ctrl, q, i) \
	for ((i) = 0; (i) < (ctrl)->nr_queues && \
	     ((q) = (ctrl)->queues[i], true); (i)++)

int nvq_ctrl_caps(struct nvq_ctrl *ctrl);
int nvq_ctrl_enable(struct nvq_ctrl *ctrl);
int nvq_ctrl_disable(struct nvq_ctrl *ctrl, bool shutdown);
int nvq_ctrl_identify(struct nvq_ctrl *ctrl);
int nvq_ctrl_configure(struct nvq_ctrl *ctrl);
int nvq_ctrl_request_queues(struct nvq_ctrl *ctrl, u16 want);
void nvq_ctrl_share_queues(struct nvq_ctrl *ctrl, u16 granted);
int nvq_hw_create(struct nvq_ctrl *ctrl, struct nvq_ring *r, bool irq,
		  u16 vector);
int nvq_hw_delete(struct nvq_ctrl *ctrl, u16 qid);
void nvq_dbbuf_free(struct nvq_ctrl *ctrl);
void nvq_dbbuf_set(struct nvq_ctrl *ctrl);
void nvq_dbbuf_attach(struct nvq_ring *r);

static inline u32 nvq_ctrl_status(struct nvq_ctrl *ctrl)
{
	u32 csts = readl(ctrl->bar + NVME_REG_CSTS);

	if (nvq_fault(ctrl, NVQ_FAULT_CFS, -1))
		csts |= NVME_CSTS_CFS;
	if (nvq_fault(ctrl, NVQ_FAULT_GONE, -1))
		csts = ~0U;
	return csts;
}

static inline bool nvq_ctrl_present(struct nvq_ctrl *ctrl)
{
	/*
	 * An unplugged device reads as all ones, or as whatever answers in its
	 * place; the slot may have told the PCI core.
	 */
	return pci_device_is_present(ctrl->pdev) &&
	       readl(ctrl->bar + NVME_REG_CSTS) != ~0U;
}

/* There, enabled, and not in a fatal state: it can be asked for something. */
static inline bool nvq_ctrl_well(struct nvq_ctrl *ctrl)
{
	u32 csts = nvq_ctrl_present(ctrl) ? nvq_ctrl_status(ctrl) : ~0U;

	return csts != ~0U &&
	       (csts & (NVME_CSTS_RDY | NVME_CSTS_CFS)) == NVME_CSTS_RDY;
}

/* --------------------------------------------------------------- recover.c */

/* How often an open queue is looked at. */
#define NVQ_WATCH_PERIOD	(HZ / 2)

void nvq_watch(struct work_struct *work);
void nvq_queue_retire(struct nvq_queue *q);
void nvq_reset_work(struct work_struct *work);
bool nvq_reset_schedule(struct nvq_ctrl *ctrl, const char *why, bool sick);
void nvq_reset_wait(struct nvq_ctrl *ctrl);
bool nvq_ctrl_was_reset(struct nvq_ctrl *ctrl, u32 then);
int nvq_ctrl_wait_live(struct nvq_ctrl *ctrl);
void nvq_ctrl_halt(struct nvq_ctrl *ctrl, bool shutdown);
int nvq_ctrl_start(struct nvq_ctrl *ctrl);
bool nvq_ctrl_pause(struct nvq_ctrl *ctrl, bool shutdown);
void nvq_ctrl_resume(struct nvq_ctrl *ctrl);
void nvq_ctrl_remove(struct nvq_ctrl *ctrl);
bool nvq_ctrl_set_state(struct nvq_ctrl *ctrl, enum nvq_ctrl_state state);

/* -------------------------------------------------------------- passthru.c */

struct nvme_uring_cmd;
struct nvme_passthru_cmd64;

/* The user's words, each read once. */
struct nvq_user_cmd {
	u8 opcode;
	u8 flags;
	u32 nsid;
	u32 cdw2;
	u32 cdw3;
	u64 metadata;
	u64 addr;
	u32 metadata_len;
	u32 data_len;		/* or the number of iovecs */
	u32 cdw10;
	u32 cdw11;
	u32 cdw12;
	u32 cdw13;
	u32 cdw14;
	u32 cdw15;
	u32 timeout_ms;
};

/* A user's time-out in jiffies: a default in s, and a day at the most. */
static inline u32 nvq_timeout(u32 ms, u32 default_s)
{
	return ms ? msecs_to_jiffies(min(ms, 24U * 3600 * 1000)) :
		    default_s * HZ;
}

int nvq_user_cmd_check(struct nvq_queue *q, const struct nvq_user_cmd *u,
		       struct file *file, bool vec, struct nvq_io *io, u32 *len);
int nvq_user_cmd_data(struct nvq_io *io, const struct nvq_user_cmd *u, u32 len,
		      bool vec, struct iov_iter *fixed);

/* ------------------------------------------------------- ioctl.c, *file.c */

long nvq_queue_ioctl(struct file *file, unsigned int op, unsigned long arg);
int nvq_put_result(void __user *arg, bool wide, u64 result);
void nvq_geometry_fill(struct nvq_ctrl *ctrl, struct nvq_geometry *g);
void nvq_geometry_ns(struct nvq_geometry *g, const struct nvq_ns *ns);
int nvq_ctrl_user_reset(struct nvq_ctrl *ctrl);

extern const struct file_operations nvq_queue_fops;
extern const struct file_operations nvq_ctrl_fops;

/* ----------------------------------------------------------------- uring.c */

struct io_comp_batch;

int nvq_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);
int nvq_uring_iopoll(struct io_uring_cmd *cmd, struct io_comp_batch *iob,
		     unsigned int flags);

/* ------------------------------------------------ nodes.c, sysfs.c, main.c */

int nvq_nodes_add(struct nvq_ctrl *ctrl);
void nvq_nodes_del(struct nvq_ctrl *ctrl);
struct nvq_ctrl *nvq_ctrl_new(struct pci_dev *pdev);
int nvq_queues_new(struct nvq_ctrl *ctrl);
int nvq_nodes_init(void);
void nvq_nodes_exit(void);

extern const struct attribute_group *nvq_ctrl_groups[];
extern const struct attribute_group *nvq_queue_groups[];
extern struct pci_driver nvq_pci_driver;
extern struct workqueue_struct *nvq_wq;

extern unsigned int nvq_user_poll_queues;
extern unsigned int nvq_user_irq_queues;
extern unsigned int nvq_queue_depth;
extern unsigned int nvq_io_timeout;
extern unsigned int nvq_admin_timeout;
extern bool nvq_use_sgl;

#endif /* NVQ_DRIVER_H */
