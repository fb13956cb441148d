// SPDX-License-Identifier: MIT
/*
 * The hostile process, natively: staged commands with one field that is wrong,
 * or none, or noise; SUBMIT in all its forms; heads and tails that are nonsense;
 * RESYNC and DROP.
 *
 * What must become of a command is known from what is wrong with it, and is
 * checked, unless the epoch is a racy one, where entries are rewritten while
 * another thread submits them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"

static uint64_t submitted_before;

static bool checks(void)
{
	return !epoch.racy && !epoch.formats;
}

/* ---- the begin and the end of an epoch -------------------------------------- */

void native_begin(void)
{
	struct native *n = &epoch.n;

	submitted_before = 0;
	memset(epoch.rw, CANARY, RW_LEN);
	epoch.rw_index = note(C_REGISTER, native_register(n->q.fd, epoch.rw +
							  MARGIN, REGISTERED, 0));
	epoch.ro_index = note(C_REGISTER, native_register(n->q.fd, epoch.ro,
							  RO_LEN,
							  NVQ_REG_READONLY));
	if ((epoch.rw_index < 0 || epoch.ro_index < 0) && !shared->dead)
		wrong(NULL, "no buffers: %d, %d", epoch.rw_index,
		      epoch.ro_index);
}

/* Under the lock. */
static void count_taken(void)
{
	uint64_t now = epoch.n.k->submitted;

	shared->taken += now - submitted_before;
	submitted_before = now;
}

static bool mapped(void)
{
	return epoch.n.sq && epoch.n.u;
}

static void submit_none(void)
{
	struct nvq_submit_from f = { .cq_head = epoch.n.head + 0x40000000 };

	if (!mapped()) {
		ioctl(epoch.n.q.fd, NVQ_IOC_SUBMIT_FROM, &f);
		return;
	}
	epoch.n.tail = epoch.n.k->sq_head;
	epoch.n.u->sq_tail = epoch.n.tail;
	ioctl(epoch.n.q.fd, NVQ_IOC_SUBMIT, NULL);
}

/* Under the lock: whatever may be unread has been read. */
static void forget_unread(void)
{
	if (mapped())
		epoch.n.u->cq_head = epoch.n.head + 0x40000000;
	else
		submit_none();
}

static void canaries(struct thread *t)
{
	if (!all_bytes(epoch.rw, MARGIN, CANARY) ||
	    !all_bytes(epoch.rw + RW_LEN - MARGIN, MARGIN, CANARY))
		wrong(t, "bytes beside the registered buffer have changed");
	if (differs(epoch.ro, RO_LEN, RO_SEED) >= 0)
		wrong(t, "a read-only buffer has changed");
}

void native_settled(struct thread *t)
{
	volatile struct nvq_kpage *k = epoch.n.k;
	uint64_t end = now_ms() + 60000;

	do {
		submit_none();
		if (k->completed == k->submitted)
			break;
		usleep(1000);
	} while (now_ms() < end);
	if (k->completed != k->submitted)
		wrong(t, "%llu commands accepted, %llu ended",
		      (unsigned long long)k->submitted,
		      (unsigned long long)k->completed);
	count_taken();
	canaries(t);
}

/* ---- staging, and what becomes of it ------------------------------------------ */

/* Under the lock. */
static void stage(struct thread *t)
{
	struct native *n = &epoch.n;
	enum flaw flaw = flaw_pick(t);
	struct nvq_sqe s = command_good(t);

	if (n->tail - n->k->sq_head > n->mask)
		return;
	command_spoil(t, &s, flaw);
	epoch.flaws[n->tail & n->mask] = flaw;
	native_stage(n, &s);
	shared->staged++;
}

/* A refused command is one that its flaw, or an id in flight, accounts for. */
static void judge_refusal(struct thread *t, enum flaw flaw, int err)
{
	/* who knows what it was when it was looked at */
	if (!checks())
		flaw = F_SCRIBBLED;
	shared->flaw_refused[flaw]++;
	if (flaw_errno(flaw) != ANY_ERRNO && err != EBUSY &&
	    err != flaw_errno(flaw))
		wrong(t, "a command with flaw %u is refused with %d", flaw,
		      err);
}

static void judge_taken(struct thread *t, enum flaw flaw)
{
	if (!checks())
		flaw = F_SCRIBBLED;
	shared->flaw_taken[flaw]++;
	if (flaw_errno(flaw) && flaw_errno(flaw) != ANY_ERRNO)
		wrong(t, "a command with flaw %u is taken", flaw);
}

/* Of the command's own making, not of the queue's. */
static bool is_refusal(int err)
{
	return err == EINVAL || err == EACCES || err == EBUSY ||
	       err == EOPNOTSUPP;
}

/* Did a command stop the SUBMIT that returned @ret?  Or something before it. */
static bool stopped(long ret)
{
	int err = epoch.n.k->submit_error;

	return is_refusal(-err) && (ret >= 0 || ret == err);
}

/* Under the lock, after a SUBMIT that began at @head. */
static void judge(struct thread *t, uint32_t head, long ret)
{
	struct native *n = &epoch.n;
	uint32_t now = n->k->sq_head;
	int err = -n->k->submit_error;

	/* a resync of the reset that came between begins at 0 again */
	for (; head != now && now - head <= n->mask + 1; head++)
		judge_taken(t, epoch.flaws[head & n->mask]);
	if (stopped(ret) && now != n->tail)
		judge_refusal(t, epoch.flaws[now & n->mask], err);
}

/* Under the lock. */
static void reap(void)
{
	unsigned int most = epoch.n.q.g.depth;
	int res;

	while (most-- && (res = native_reap(&epoch.n, NULL, 0)) >= 0) {
		if (res == HOST_ABORTED)
			shared->aborted++;
		else if (res)
			shared->statuses++;
	}
}

static long resync_once(void)
{
	return note(C_RESYNC, ioctl(epoch.n.q.fd, NVQ_IOC_RESYNC) ? -errno : 0);
}

/* Under the lock. */
static void resync(struct thread *t)
{
	struct native *n = &epoch.n;
	long ret;

	ret = resync_once();
	if (ret == -EBUSY && mapped()) {
		reap();
		ret = resync_once();
	}
	if (ret == -EBUSY) {
		/* entries that were given back unread */
		forget_unread();
		ret = resync_once();
		if (ret == -EBUSY)
			wrong(t, "all was read, and RESYNC is EBUSY");
	}
	if (!ret && mapped() && !n->k->sq_head && !n->u->sq_tail)
		native_restart(n);
}

static long drop(uint32_t index)
{
	return note(C_DROP, ioctl(epoch.n.q.fd, NVQ_IOC_DROP, &index) ?
		    -errno : 0);
}

static long submit_ring(struct thread *t, const struct nvq_submit *s)
{
	static const unsigned int shapes[] = {
		0, 0, 0, IORING_SETUP_IOPOLL, IORING_SETUP_SQE128,
		IORING_SETUP_SQE128 | IORING_SETUP_CQE32, IORING_SETUP_CQE32,
		IORING_SETUP_SQPOLL,
	};
	struct io_uring_sqe *sqe;
	struct io_uring r;
	struct end e = { .res = 0 };
	unsigned int shape = shapes[below(t, 8)];

	if (ring_open_raw(&r, 4, shape))
		return 0;
	sqe = io_uring_get_sqe(&r);
	memset(sqe, 0, shape & IORING_SETUP_SQE128 ? 128 : 64);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = epoch.n.q.fd;
	sqe->cmd_op = NVQ_URING_SUBMIT;
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), s, sizeof(*s));
	io_uring_submit(&r);
	/* a wait may be left pending, in the racy epochs */
	if (!(s->wait && epoch.racy && one_in(t, 2)) &&
	    ring_get(&r, &e, 60000))
		wrong(t, "NVQ_URING_SUBMIT does not end");
	io_uring_queue_exit(&r);
	if (e.res == -EINTR || e.res == -ECANCELED)
		return 0;
	note(C_SUBMIT_RING, e.res);
	/* an IOPOLL ring cannot wait, whatever the queue: nothing was looked at */
	if (s->wait && (is_poll(&epoch.n.q) || shape & IORING_SETUP_IOPOLL))
		return -ETIME;
	return e.res;
}

static long submit(struct thread *t)
{
	struct nvq_submit s = { 0 };
	int fd = epoch.n.q.fd;
	unsigned int how = below(t, 16);
	long ret;

	if (how < 8)
		return note(C_SUBMIT, ioctl(fd, NVQ_IOC_SUBMIT, NULL) < 0 ?
			    -errno : 1);
	if (one_in(t, 3))
		s.max = below(t, 8);
	if (how >= 12 && !(how == 15 && one_in(t, 2))) {
		s.wait = 1 + below(t, 4) * below(t, 64);
		s.timeout_ms = 1 + below(t, 20);
	}
	if (how == 15 || how == 11)
		return submit_ring(t, &s);
	ret = note(s.wait ? C_WAIT : C_SUBMIT,
		   ioctl(fd, NVQ_IOC_SUBMIT, &s) < 0 ? -errno : 1);
	return s.wait && is_poll(&epoch.n.q) ? -ETIME : ret;
}

/*
 * What would be luck otherwise, before there are threads: a wait that is too short,
 * and a reset with completions that were not read.
 */
void native_for_certain(struct thread *t)
{
	struct nvq_submit wait = { .wait = 100, .timeout_ms = 1 };
	unsigned int i, lba = epoch.n.q.g.lba_size;
	uint64_t end = now_ms() + 30000;

	for (i = 0; i < 100; i++) {
		struct nvq_sqe s = native_rw(&epoch.n, OP_READ, i, 0,
					     (1u << 20) / lba, epoch.rw_index,
					     0);

		epoch.flaws[epoch.n.tail & epoch.n.mask] = F_NONE;
		native_stage(&epoch.n, &s);
		shared->staged++;
	}
	note(C_SUBMIT, ioctl(epoch.n.q.fd, NVQ_IOC_SUBMIT, NULL) < 0 ?
	     -errno : 1);
	note(C_WAIT, ioctl(epoch.n.q.fd, NVQ_IOC_SUBMIT, &wait) < 0 ?
	     -errno : 1);
	shared->want_reset = true;
	while (epoch.n.k->state != NVQ_STATE_RESYNC && now_ms() < end)
		sleep_ms(2);
	if (resync_once() != -EBUSY)
		wrong(t, "a RESYNC with 100 that were not read");
	resync(t);
	count_taken();
}

/* ---- operations ---------------------------------------------------------------- */

static void lock(void)
{
	pthread_mutex_lock(&epoch.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&epoch.lock);
}

static void op_stage(struct thread *t)
{
	unsigned int nr = 1 + below(t, 4);

	if (!mapped())
		return;
	lock();
	while (nr--)
		stage(t);
	unlock();
}

/* SUBMIT until nothing is staged, passing over what is refused. */
static void op_submit(struct thread *t)
{
	unsigned int tries = 1 + below(t, 12);
	uint32_t head;
	long ret = 0;

	if (!mapped())
		return;
	lock();
	while (tries-- && epoch.n.tail != epoch.n.k->sq_head) {
		head = epoch.n.k->sq_head;
		if (epoch.racy)
			unlock();
		ret = submit(t);
		if (epoch.racy)
			lock();
		judge(t, head, ret);
		/* not always at once: others are to find it so */
		if (ret == -ESTALE) {
			if (one_in(t, 4))
				resync(t);
			break;
		}
		/* nor is all read at once, so that RESYNC finds some that is not */
		if (one_in(t, 2))
			reap();
		if (stopped(ret))
			drop(epoch.n.k->sq_head);
	}
	count_taken();
	unlock();
}

/* As fast as it goes, without the lock: in the racy epochs only. */
static void op_scribble(struct thread *t)
{
	struct nvq_sqe s;
	unsigned int i;

	if (!mapped() || !epoch.racy)
		return;
	s = command_good(t);
	if (one_in(t, 2))
		command_spoil(t, &s, 1 + below(t, F_NOISE));
	for (i = 0; i < 20; i++) {
		uint32_t at = (epoch.n.k->sq_head + below(t, 4)) &
			      epoch.n.mask;

		epoch.n.sq[at] = s;
		s.cdw12 ^= 1 << below(t, 16);
		s.buf ^= one_in(t, 4);
	}
}

static void op_nonsense(struct thread *t)
{
	struct native *n = &epoch.n;
	uint32_t tail;

	if (!mapped())
		return;
	lock();
	tail = n->u->sq_tail;
	if (one_in(t, 2)) {
		n->u->sq_tail = n->k->sq_head + n->mask + 2 +
				below(t, 0x7fffffff);
		note(C_SUBMIT, ioctl(n->q.fd, NVQ_IOC_SUBMIT, NULL) < 0 ?
		     -errno : 1);
		drop(n->k->sq_head);
	} else {
		n->u->cq_head = random64(&t->rnd);
		note(C_SUBMIT, ioctl(n->q.fd, NVQ_IOC_SUBMIT, 8) < 0 ?
		     -errno : 1);
	}
	n->u->sq_tail = tail;
	n->u->cq_head = n->head;
	unlock();
}

static void op_resync(struct thread *t)
{
	if (!epoch.n.k)
		return;
	lock();
	if (mapped() && one_in(t, 2))
		resync(t);
	else
		resync_once();
	unlock();
}

static void op_drop(struct thread *t)
{
	uint32_t at = below(t, 3) * below(t, 1000);

	lock();
	drop(at + (epoch.n.k ? epoch.n.k->sq_head : 0));
	unlock();
}

/* Commands from private memory; what was refused is at the count's place. */
static void op_submit_from(struct thread *t)
{
	unsigned int nr = 1 + below(t, 6), i;
	struct nvq_sqe s[6];
	uint8_t flaws[6];
	struct nvq_submit_from f = { .sqes = (uintptr_t)s, .nr = nr };
	long ret;

	lock();
	for (i = 0; i < nr; i++) {
		s[i] = command_good(t);
		flaws[i] = flaw_pick(t);
		command_spoil(t, &s[i], flaws[i]);
	}
	f.cq_head = epoch.n.k ? epoch.n.k->completed : 0;
	if (one_in(t, 16))
		f.reserved[below(t, 4)] = 1;
	if (one_in(t, 16))
		f.sqes = below(t, 4096);
	else if (one_in(t, 16))
		f.cq_head = random64(&t->rnd);
	ret = ioctl(epoch.n.q.fd, NVQ_IOC_SUBMIT_FROM, &f);
	ret = note(C_SUBMIT_FROM, ret < 0 ? -errno : ret);
	if (ret == -EFAULT || f.reserved[0] | f.reserved[1] | f.reserved[2] |
	    f.reserved[3])
		goto out;
	if (is_native() || ret > 0)
		shared->staged += nr;
	for (i = 0; ret > 0 && i < ret; i++)
		judge_taken(t, flaws[i]);
	if (ret < 0 && is_refusal(-ret) && is_native())
		judge_refusal(t, flaws[0], -ret);
	if (ret == -ESTALE)
		resync(t);
	/* of other files standard commands count there, too */
	if (is_native())
		count_taken();
	else if (ret > 0)
		shared->taken += ret;
out:
	unlock();
}

/* Their buffer has gone, or has another index. */
void native_nothing_known(void)
{
	memset(epoch.flaws, F_SCRIBBLED, sizeof(epoch.flaws));
}

/* Many at once, and nobody waits. */
void native_burst(struct thread *t)
{
	unsigned int i;

	if (!mapped()) {
		op_submit_from(t);
		return;
	}
	lock();
	for (i = 0; i < 200; i++) {
		struct nvq_sqe s = command_good(t);

		if (epoch.n.tail - epoch.n.k->sq_head > epoch.n.mask)
			break;
		epoch.flaws[epoch.n.tail & epoch.n.mask] = F_NONE;
		native_stage(&epoch.n, &s);
		shared->staged++;
	}
	ioctl(epoch.n.q.fd, NVQ_IOC_SUBMIT, NULL);
	count_taken();
	unlock();
}

/* Until both rings are full. */
static void op_full(struct thread *t)
{
	unsigned int i;

	if (!mapped())
		return;
	for (i = 0; i < 3; i++) {
		native_burst(t);
		note(C_SUBMIT, ioctl(epoch.n.q.fd, NVQ_IOC_SUBMIT, NULL) < 0 ?
		     -errno : 1);
	}
}

/* An id twice, the first of them in flight for a while. */
static void op_busy(struct thread *t)
{
	static const struct nvq_submit none;
	struct native *n = &epoch.n;
	struct nvq_sqe s;
	unsigned int i;

	if (!mapped())
		return;
	lock();
	s = native_rw(n, OP_READ, epoch.next_cid++ % n->q.g.depth, 0,
		      (1u << 20) / n->q.g.lba_size, epoch.rw_index, 0);
	for (i = 0; i < 2 && n->tail - n->k->sq_head <= n->mask; i++) {
		epoch.flaws[n->tail & n->mask] = i ? F_CID_BUSY : F_NONE;
		native_stage(n, &s);
		shared->staged++;
	}
	ioctl(n->q.fd, NVQ_IOC_SUBMIT, NULL);
	if (one_in(t, 2))
		submit_ring(t, &none);
	else
		note(C_SUBMIT, ioctl(n->q.fd, NVQ_IOC_SUBMIT, NULL) < 0 ?
		     -errno : 1);
	count_taken();
	unlock();
}

const struct op native_ops[] = {
	{ "stage", op_stage, { 60, 0, 0, 0, 6 } },
	{ "submit", op_submit, { 40, 0, 0, 0, 6 } },
	{ "scribble", op_scribble, { 10, 0, 0, 0, 0 } },
	{ "heads and tails", op_nonsense, { 4, 0, 0, 0, 1 } },
	{ "resync", op_resync, { 2, 6, 1, 1, 2 } },
	{ "drop", op_drop, { 3, 3, 1, 1, 1 } },
	{ "submit_from", op_submit_from, { 4, 120, 1, 1, 10 } },
	{ "full queue", op_full, { 1, 0, 0, 0, 0 } },
	{ "an id twice", op_busy, { 3, 0, 0, 0, 0 } },
	{ NULL, NULL, { 0 } }
};
