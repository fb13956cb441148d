/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The native path, internal: what a file has that took that way, and what its
 * rooms (native.c, native_wait.c, native_stop.c, buffer.c) offer the others.
 *
 * Included by nvqueue.h, where it says what guards what.
 */
#ifndef NVQ_DRIVER_NATIVE_H
#define NVQ_DRIVER_NATIVE_H

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

#endif /* NVQ_DRIVER_NATIVE_H */
