/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * nvqueue: the contract at the device file.
 *
 * The kernel module and every user of it include this one file.  Everything
 * that crosses the boundary is here: ioctls, mmap layout, sysfs file names
 * are in doc/nvqueue.4.
 *
 *	/dev/nvqN	the controller: geometry, admin passthrough, reset
 *	/dev/nvqNpollM	a user_poll queue: no interrupt, completions are polled
 *	/dev/nvqNirqM	a user_irq queue: an interrupt vector of its own
 *
 * Commands travel as the kernel's own NVMe passthrough (linux/nvme_ioctl.h):
 * NVME_URING_CMD_IO and NVME_URING_CMD_IO_VEC on a ring set up with
 * IORING_SETUP_SQE128 | IORING_SETUP_CQE32, or NVME_IOCTL_IO_CMD (and its
 * 64-bit form), which wait.
 *
 * Which ring works on which queue (each cell has a test):
 *
 *	ring			poll queue	irq queue
 *	IOPOLL			works		EOPNOTSUPP
 *	IOPOLL | SQPOLL		works		EOPNOTSUPP
 *	plain			EOPNOTSUPP	works
 *	SQPOLL			EOPNOTSUPP	works
 *	no ring, ioctl		works (polls)	works (sleeps)
 *
 * A plain ring on a poll queue is refused at submission because nobody would
 * ever reap the command; an IOPOLL ring on an irq queue because it would spin
 * on completions that the interrupt handler takes away.
 *
 * Errors of a command at submission (the io_uring CQE's res, or the ioctl's
 * errno); a status from the drive is a positive res, as on /dev/ngXnY:
 *
 *	EINVAL		nsid, flags, metadata or length do not fit the command
 *	EACCES		a command that writes, on a read-only descriptor
 *			without CAP_SYS_ADMIN; an opcode the driver's table
 *			does not list, without CAP_SYS_RAWIO; an admin command
 *			this file does not take
 *	EOPNOTSUPP	the table above; an unlisted opcode with data on a
 *			controller without SGLs; a ring without SQE128 or CQE32; a
 *			namespace formatted with metadata
 *	ESTALE		the namespace changed under the file: read the geometry
 *			again (NVQ_IOC_GEOMETRY or Identify Namespace)
 *	ETIMEDOUT	no free slot within the time-out
 *	ENODEV		the controller is gone or dead
 */
#ifndef _UAPI_NVQUEUE_H
#define _UAPI_NVQUEUE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Raised when anything below changes its meaning or its layout. */
#define NVQ_ABI_VERSION		2

#define NVQ_IOC_MAGIC		0xed

enum nvq_kind {
	NVQ_KIND_CTRL	= 0,	/* /dev/nvqN: owns no queue */
	NVQ_KIND_POLL	= 1,
	NVQ_KIND_IRQ	= 2,
};

/* struct nvq_geometry.flags */
enum nvq_geometry_flags {
	NVQ_GEO_VWC	= 1 << 0,	/* volatile write cache: flush matters */
	NVQ_GEO_SGL	= 1 << 1,	/* data is described by SGLs, not PRPs */
	NVQ_GEO_DBBUF	= 1 << 2,	/* shadow doorbells are in use */
};

/*
 * NVQ_IOC_GEOMETRY: what a file addresses.
 *
 * On a queue file: the queue and its namespace; clears a stale state
 * (NVQ_STATE_STALE), so that reading it is agreeing to it; the nsid passed in
 * is ignored.  On the controller node: the namespace whose nsid is passed in
 * (0: the lowest active one), with the depth and sizes any queue of this
 * controller would have, qid 0; it owns nothing.
 *
 * Errors: ENODEV, EINVAL (no such active namespace), EFAULT.
 */
struct nvq_geometry {
	__u32 abi;		/* NVQ_ABI_VERSION */
	__u16 kind;		/* enum nvq_kind */
	__u16 qid;		/* hardware queue id, 1.. */
	__u32 depth;		/* entries; depth - 1 commands in flight */
	__u16 sqe_size;		/* bytes, 64 */
	__u16 cqe_size;		/* bytes, 16 */
	__u32 nsid;		/* in (controller node), out */
	__u32 lba_size;		/* bytes */
	__u64 nsze;		/* LBAs */
	__u32 mdts;		/* bytes one command may move */
	__s32 numa_node;	/* of the controller, -1: none */
	__u32 flags;		/* enum nvq_geometry_flags */
	__u32 instance;		/* N of /dev/nvqN */
	__u32 nr_poll;		/* poll queues of this controller */
	__u32 nr_irq;		/* irq queues of this controller */
	__u32 cq_bytes;		/* length of the mapping at NVQ_MMAP_CQ */
	__u32 kpage_bytes;	/* length of the mapping at NVQ_MMAP_KPAGE */
	__u32 generation;	/* rises each time the queue was recreated */
	__u16 metadata_size;	/* bytes per LBA; 0 wherever I/O is possible */
	__u8 csi;		/* command set: 0 NVM, 2 zoned */
	__u8 reserved8;
	__u64 reserved[7];
};

/*
 * NVQ_IOC_SELECT_NS: address another active namespace (a __u32 nsid).  Only
 * before the first command.  Errors: EBUSY after it, EINVAL if there is no
 * such active namespace, EOPNOTSUPP if it carries metadata.
 */
#define NVQ_IOC_GEOMETRY	_IOWR(NVQ_IOC_MAGIC, 0, struct nvq_geometry)
#define NVQ_IOC_SELECT_NS	_IOW(NVQ_IOC_MAGIC, 1, __u32)

/*
 * mmap offsets of a queue file.  Both mappings are MAP_SHARED and PROT_READ;
 * writable or private ones are EACCES.  They are not inherited over fork(), survive reset
 * and removal of the drive, and keep the queue owned until unmapped.
 */
#define NVQ_MMAP_CQ		0x00000000UL	/* hardware CQ, 16 B entries */
#define NVQ_MMAP_KPAGE		0x10000000UL	/* struct nvq_kpage */

/*
 * The native path only, writable (MAP_SHARED, descriptor open for writing):
 * mapping either makes the file a native one.
 */
#define NVQ_MMAP_SQ		0x20000000UL	/* staging SQ, struct nvq_sqe */
#define NVQ_MMAP_UPAGE		0x30000000UL	/* struct nvq_upage */

enum nvq_state {
	NVQ_STATE_LIVE		= 0,
	NVQ_STATE_RECOVERING	= 1,	/* commands wait until it is over */
	NVQ_STATE_STALE		= 2,	/* commands fail ESTALE */
	NVQ_STATE_DEAD		= 3,	/* commands fail ENODEV */
	NVQ_STATE_RESYNC	= 4,	/* native: ESTALE until NVQ_IOC_RESYNC */
};

/* struct nvq_kpage.cq_head: index in the low half, expected phase above it */
#define NVQ_CQ_HEAD_INDEX	0x0000ffffU
#define NVQ_CQ_HEAD_PHASE	0x00010000U

/*
 * The kernel page: written by the kernel, read by user space.
 *
 * cq_head names the entry the kernel will consume next and the phase bit that
 * entry will carry once it is there, in one word so that they are read
 * together.  If CQ[index] shows that phase, entering the kernel to reap finds
 * something.  It also does when completed is ahead of what the ring handed
 * over: a ring hands over commands that completed out of order a run at a time,
 * and the kernel consumes entries by itself when it looks into a time-out, on
 * reset and on removal.
 */
struct nvq_kpage {
	__u32 cq_head;		/* NVQ_CQ_HEAD_* */
	__u32 state;		/* enum nvq_state */
	__u32 generation;
	__u32 sq_head;		/* native: staged commands accepted so far */
	__u64 completed;	/* commands ended since open, either way */
	__u64 submitted;	/* commands accepted since open */
	__s32 submit_error;	/* native: what stopped the last SUBMIT, or 0 */
	__u32 pad;
	__u64 dropped;		/* native: staged commands dropped by RESYNC or DROP */
	/* statistics from here, the same numbers as in sysfs */
	__u64 sq_doorbells;	/* MMIO writes to the SQ tail doorbell */
	__u64 cq_doorbells;	/* MMIO writes to the CQ head doorbell */
	/*
	 * polling passes of a ring that found nothing on this queue; on a ring
	 * that carries several queues they may have found it on another
	 */
	__u64 reap_empty;
	__u64 iopoll_empty;	/* iopoll callbacks that found nothing */
	__u64 reserved[54];
};

/* ---------------------------------------------------------- the native path */

/*
 * A file is native from the first mapping of NVQ_MMAP_SQ or NVQ_MMAP_UPAGE, the
 * first NVQ_IOC_REGISTER, SUBMIT or NVQ_IOC_SUBMIT_FROM; standard commands are EBUSY on
 * it from then on, and these on a file that sent a standard command.
 *
 * User space writes commands into the staging SQ, picks their command ids
 * (0..depth - 1, one in flight each), moves the tail and asks the kernel to take
 * them: NVQ_URING_SUBMIT or NVQ_IOC_SUBMIT.  Completions show in the mapped CQ
 * by their phase bit, which starts at 1 and toggles at each wrap; user space
 * says in cq_head how many it has read.
 *
 * The two counters run freely, modulo 2^32.  The staging SQ has as many entries
 * as the next power of two not below the queue's depth; entry n lies at n modulo
 * that.
 */
struct nvq_upage {
	__u32 sq_tail;		/* commands staged so far */
	__u32 cq_head;		/* completions read so far */
	__u64 reserved[7];
};

/*
 * A staged command: an NVMe SQ entry that names a registered buffer where NVMe
 * has a metadata pointer and PRPs.  The kernel reads each word once and builds
 * its own entry; flags and what else is not listed here is ignored.
 */
struct nvq_sqe {
	__u8 opcode;		/* one the kernel's table lists */
	__u8 flags;		/* ignored */
	__u16 cid;
	__u32 nsid;		/* the file's */
	__u32 cdw2;
	__u32 cdw3;
	__u64 ignored;
	__u64 offset;		/* into the buffer, bytes, a multiple of 4 */
	__u32 buf;		/* index NVQ_IOC_REGISTER gave */
	__u32 length;		/* ignored: it follows from the command */
	__u32 cdw10;
	__u32 cdw11;
	__u32 cdw12;
	__u32 cdw13;
	__u32 cdw14;
	__u32 cdw15;
};

/*
 * SUBMIT: takes what is staged, in order, until a command is refused or the
 * queue is full; kpage.sq_head says how many were taken so far and
 * kpage.submit_error what stopped it.  A refused command stays where it is:
 * mend it, or move the tail back to sq_head.
 *
 * NVQ_IOC_SUBMIT returns how many it took, or the error if it took none;
 * NVQ_URING_SUBMIT (any ring, no SQE128 needed) has res 0, or that error.
 *
 *	EINVAL	tail out of range; nsid, cid or buffer index out of range; offset
 *		misaligned; the command's length is not within the buffer, is 0
 *		or exceeds mdts; LBAs beyond the namespace
 *	EBUSY	the command id is in flight
 *	ENOSPC	the queue is full: consume completions, say so in cq_head
 *	EACCES	the command writes, the descriptor is read-only; or it would
 *		write to a buffer registered read-only
 *	EOPNOTSUPP an opcode the table does not list
 *	ESTALE	state STALE or RESYNC		ENODEV	dead
 *	ETIMEDOUT a recovery, a format change, or the Abort of a command that has
 *		ended and whose id is used again, outlasts the I/O time-out
 *
 * @wait: complete only when so many unread completions are there (clamped to
 * what is in flight), at the latest when the queue stops or after timeout_ms
 * (0: the driver's I/O time-out; ETIME).  On irq queues only (EOPNOTSUPP).
 * One such wait at a time (EBUSY).
 */
struct nvq_submit {	/* NVQ_IOC_SUBMIT: NULL means all zeroes */
	__u32 max;		/* take at most so many; 0: all */
	__u32 wait;
	__u32 timeout_ms;
	__u32 reserved;		/* 0 */
};

/*
 * NVQ_IOC_SUBMIT_FROM: the same from the caller's memory, for who cannot map a
 * writable ring (a read-only descriptor).  cq_head is passed here, and counts even
 * where the call fails with ESTALE: NVQ_IOC_RESYNC asks for it.
 */
struct nvq_submit_from {
	__u64 sqes;		/* struct nvq_sqe [nr] */
	__u32 nr;
	__u32 cq_head;
	__u32 reserved[4];	/* 0 */
};

/*
 * NVQ_IOC_REGISTER: pins memory and maps it for DMA, until NVQ_IOC_UNREGISTER
 * or the last close; charged to RLIMIT_MEMLOCK of the caller's mm, page by page
 * and buffer by buffer, and given back to that mm, whoever lets go of the buffer.
 * CAP_IPC_LOCK exempts from the limit, not from the accounting.  Anonymous, shared
 * (shmem) and hugetlb memory.
 *
 *	EINVAL	address not a multiple of 4, length 0, over NVQ_MAX_BUF_LEN or
 *		wrapping
 *	EFAULT	not mapped, or not writable and NVQ_REG_READONLY was not given
 *	EOPNOTSUPP file-backed or device memory; memory the device cannot reach
 *		without a bounce buffer
 *	ENOMEM	RLIMIT_MEMLOCK, memory	ENOSPC	all NVQ_MAX_BUFS in use
 *	ENODEV	dead
 */
#define NVQ_MAX_BUFS		4096
/* with its offset in the first page still below 2^32 */
#define NVQ_MAX_BUF_LEN		((1ULL << 32) - 4096)
#define NVQ_REG_READONLY	(1 << 0)	/* commands only read it */

struct nvq_register {
	__u64 addr;
	__u64 len;		/* bytes */
	__u32 flags;		/* NVQ_REG_* */
	__u32 index;		/* out */
};

#define NVQ_IOC_SUBMIT		_IOW(NVQ_IOC_MAGIC, 2, struct nvq_submit)
#define NVQ_IOC_SUBMIT_FROM	_IOW(NVQ_IOC_MAGIC, 3, struct nvq_submit_from)
#define NVQ_IOC_REGISTER	_IOWR(NVQ_IOC_MAGIC, 4, struct nvq_register)
/* A __u32 index.  Waits for commands that use it to end.  ENOENT, EINTR */
#define NVQ_IOC_UNREGISTER	_IOW(NVQ_IOC_MAGIC, 5, __u32)
/*
 * After a reset or a queue recovery (NVQ_STATE_RESYNC): the owner has read all
 * completions and said so in cq_head (EBUSY otherwise).  Recreates the queue;
 * both counters of the user page are 0 again, the CQ starts at entry 0 with
 * phase 1, and staged commands that were not accepted are gone (kpage.dropped).
 * EINVAL on a file that is not native.
 */
#define NVQ_IOC_RESYNC		_IO(NVQ_IOC_MAGIC, 6)
/*
 * A __u32: the free running index of a staged command that is not to be taken any
 * more, which must be the next one in turn: the one that a submission was refused
 * for.  0: it is passed over, kpage.sq_head is beyond it, and kpage.dropped counts
 * it.  EAGAIN: it is not the next one, a submission that was still under way (of
 * another thread, a worker of io_uring, SQPOLL) has taken it.  EINVAL on a file that
 * is not native, or if nothing is staged.
 */
#define NVQ_IOC_DROP		_IOW(NVQ_IOC_MAGIC, 7, __u32)

/* io_uring: a struct nvq_submit in the SQE's command area */
#define NVQ_URING_SUBMIT	_IOW(NVQ_IOC_MAGIC, 2, struct nvq_submit)

#endif /* _UAPI_NVQUEUE_H */
