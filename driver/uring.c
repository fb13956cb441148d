// SPDX-License-Identifier: GPL-2.0
/*
 * The way in and out for io_uring: NVME_URING_CMD_IO and _IO_VEC, taken as
 * /dev/ngXnY takes them.
 *
 * Which ring works on which queue is the table in uapi.h; check_ring() is its
 * code.  A command on an IOPOLL ring is completed by the ring's own iopoll
 * callback, whoever reaped its CQE.  One on a plain ring is completed in its
 * task, since the interrupt must not touch the ring.
 */
#include <linux/nvme_ioctl.h>
#include <linux/uio.h>

#include "compat.h"
#include "nvqueue.h"

/* Our part of struct io_uring_cmd. */
struct nvq_pdu {
	union {
		struct nvq_slot *slot;	/* IOPOLL: once issued; task: ended */
		int res;		/* of a wait */
	};
};

static struct nvq_pdu *pdu_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct nvq_pdu) > sizeof(cmd->pdu));
	return (struct nvq_pdu *)&cmd->pdu;
}

static int check_ring(struct nvq_queue *q, unsigned int issue_flags)
{
	bool iopoll = issue_flags & IO_URING_F_IOPOLL;

	if (!(issue_flags & IO_URING_F_SQE128) ||
	    !(issue_flags & IO_URING_F_CQE32))
		return -EOPNOTSUPP;
	return iopoll == (q->kind == NVQ_KIND_POLL) ? 0 : -EOPNOTSUPP;
}

/* The SQE is memory the user can write: each word once. */
static void read_sqe(struct nvq_user_cmd *u, const struct nvme_uring_cmd *s)
{
	u->opcode = READ_ONCE(s->opcode);
	u->flags = READ_ONCE(s->flags);
	u->nsid = READ_ONCE(s->nsid);
	u->cdw2 = READ_ONCE(s->cdw2);
	u->cdw3 = READ_ONCE(s->cdw3);
	u->metadata = READ_ONCE(s->metadata);
	u->addr = READ_ONCE(s->addr);
	u->metadata_len = READ_ONCE(s->metadata_len);
	u->data_len = READ_ONCE(s->data_len);
	u->cdw10 = READ_ONCE(s->cdw10);
	u->cdw11 = READ_ONCE(s->cdw11);
	u->cdw12 = READ_ONCE(s->cdw12);
	u->cdw13 = READ_ONCE(s->cdw13);
	u->cdw14 = READ_ONCE(s->cdw14);
	u->cdw15 = READ_ONCE(s->cdw15);
	u->timeout_ms = READ_ONCE(s->timeout_ms);
}

static int take_data(struct io_uring_cmd *cmd, struct nvq_io *io,
		     const struct nvq_user_cmd *u, u32 len, bool vec)
{
	struct iov_iter iter;
	int err;

	if (!len || !(cmd->flags & IORING_URING_CMD_FIXED))
		return nvq_user_cmd_data(io, u, len, vec, NULL);
	/* a registered buffer is not a vector */
	if (vec || len > u->data_len)
		return -EINVAL;
	err = io_uring_cmd_import_fixed(u->addr, len,
			io->map.dir == DMA_TO_DEVICE ? WRITE : READ, &iter,
			cmd);
	return err ? err : nvq_user_cmd_data(io, u, len, false, &iter);
}

static int issue(struct nvq_queue *q, struct io_uring_cmd *cmd,
		 unsigned int issue_flags, bool vec)
{
	bool iopoll = issue_flags & IO_URING_F_IOPOLL;
	struct nvq_user_cmd u;
	struct nvq_io io;
	u32 len;
	int err;

	read_sqe(&u, nvq_sqe_cmd(cmd));
	err = nvq_user_cmd_check(q, &u, cmd->file, vec, &io, &len);
	if (err)
		return err;
	err = take_data(cmd, &io, &u, len, vec);
	if (err)
		return err;
	io.owner = cmd;
	io.kind = iopoll ? NVQ_IO_IOPOLL : NVQ_IO_TASK;
	err = nvq_submit(q, &io, issue_flags & IO_URING_F_NONBLOCK);
	if (err) {
		nvq_map_release(&io.map, false);
		return err == -ERESTARTSYS ? -EINTR : err;
	}
	/*
	 * On an IOPOLL ring the command cannot be freed before it is on the
	 * ring's list, where it goes when we return.  On a plain ring it can
	 * be gone already.
	 */
	if (iopoll)
		pdu_of(cmd)->slot = io.slot;
	return -EIOCBQUEUED;
}

/* ---------------------------------------------------------- the native path */

static void wait_done(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	io_uring_cmd_done(cmd, pdu_of(cmd)->res, 0, issue_flags);
}

/* native.c: a wait for completions has ended; any context. */
void nvq_uring_wait_done(struct io_uring_cmd *cmd, int res)
{
	pdu_of(cmd)->res = res;
	io_uring_cmd_complete_in_task(cmd, wait_done);
}

/*
 * Done means 0, never a count: a positive res would post a CQE in spite of
 * IOSQE_CQE_SKIP_SUCCESS and break links.
 *
 * On an IOPOLL ring it cannot be returned: 6.1 both completes such a request and
 * puts it on its list of those to poll, where it is polled, and freed, twice.  One
 * that is complete when it gets there is not polled.
 */
static int submit_done(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	if (!(issue_flags & IO_URING_F_IOPOLL))
		return 0;
	nvq_uring_done_iopoll(cmd, 0, 0);
	return -EIOCBQUEUED;
}

/* NVQ_URING_SUBMIT */
static int submit(struct nvq_queue *q, struct io_uring_cmd *cmd,
		  unsigned int issue_flags)
{
	const struct nvq_submit *s = nvq_sqe_cmd(cmd);
	u32 max = READ_ONCE(s->max), wait = READ_ONCE(s->wait);
	u32 timeout_ms = READ_ONCE(s->timeout_ms);
	int ret;

	if (READ_ONCE(s->reserved))
		return -EINVAL;
	/* an IOPOLL ring would poll for it */
	if (wait && (q->kind != NVQ_KIND_IRQ ||
		     (issue_flags & IO_URING_F_IOPOLL)))
		return -EOPNOTSUPP;
	if (unlikely(!READ_ONCE(q->native))) {
		ret = nvq_native_get(q);
		if (ret)
			return ret;
	}
	ret = nvq_native_submit(q, max ?: U32_MAX,
				cmd->file->f_mode & FMODE_WRITE,
				issue_flags & IO_URING_F_NONBLOCK);
	if (ret < 0)
		return ret;
	if (!wait)
		return submit_done(cmd, issue_flags);
	ret = nvq_native_wait_uring(q, wait, timeout_ms, cmd);
	if (ret < 0)
		return ret;
	return ret ? 0 : -EIOCBQUEUED;
}

int nvq_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct nvq_queue *q = cmd->file->private_data;
	int err;

	if (cmd->cmd_op == NVQ_URING_SUBMIT)
		return submit(q, cmd, issue_flags);
	err = check_ring(q, issue_flags);
	if (err)
		return err;
	switch (cmd->cmd_op) {
	case NVME_URING_CMD_IO:
		return issue(q, cmd, issue_flags, false);
	case NVME_URING_CMD_IO_VEC:
		return issue(q, cmd, issue_flags, true);
	default:
		return -ENOTTY;
	}
}

/*
 * Never negative: io_uring's ring exit would spin on it for ever.  On a dead
 * queue every command has ended, and is told here like any other.
 */
int nvq_uring_iopoll(struct io_uring_cmd *cmd, struct io_comp_batch *iob,
		     unsigned int flags)
{
	return nvq_poll(cmd->file->private_data, pdu_of(cmd)->slot);
}

/* In the command's task, or a worker in its stead. */
static void task_done(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct nvq_queue *q = cmd->file->private_data;
	struct nvq_slot *slot = pdu_of(cmd)->slot;
	u16 status = slot->status;
	u64 result = slot->result;

	nvq_map_release(&slot->map, !status);
	nvq_slot_put(q, slot);
	io_uring_cmd_done(cmd, status, result, issue_flags);
}

/* queue.c: a plain ring's command ended; any context. */
void nvq_uring_end(struct nvq_queue *q, struct nvq_slot *slot)
{
	struct io_uring_cmd *cmd = slot->owner;

	pdu_of(cmd)->slot = slot;
	io_uring_cmd_complete_in_task(cmd, task_done);
}

/* queue.c: an IOPOLL ring's command ended; its slot is free already. */
void nvq_uring_done_iopoll(struct io_uring_cmd *cmd, u16 status, u64 result)
{
	io_uring_cmd_done(cmd, status, result, IO_URING_F_UNLOCKED);
}
