// SPDX-License-Identifier: MIT
/*
 * The ring without a kernel: io_uring_enter() is replaced (-Wl,--wrap) by a
 * kernel and drive of a few lines, and what is counted is how often, and with
 * what, it is entered.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "nvq.h"

#define DEPTH	16
#define ENTRIES	8

static struct io_uring_sqe sqes[2 * ENTRIES];
static struct io_uring_cqe *cqes;
static unsigned char cqe_mem[ENTRIES * 32] __attribute__((aligned(64)));
static unsigned int sq_array[ENTRIES], sq_ktail, sq_kflags, cq_ktail, cq_khead;

static struct nvq_cqe hw[2][DEPTH];
static struct nvq_kpage kpage[2];
static struct nvq q[2];
static struct nvq *queues[2] = { &q[0], &q[1] };
static struct nvq_ring r;

/* The fake kernel: what it does next, and what it was asked. */
static struct {
	unsigned int sq_head;	/* SQEs taken */
	unsigned int take;	/* at most so many per call */
	int fail;		/* or this, once */
	unsigned int calls, min, flags;
	unsigned int post;	/* completions per call that reaps */
	uint64_t user_data;	/* of the next one */
} k;

static void post_cqe(void)
{
	struct io_uring_cqe *c = &cqes[(cq_ktail++ % ENTRIES) << 1];

	c->user_data = k.user_data++;
	c->res = 0;
}

static int fake_enter(unsigned int nr, unsigned int min, unsigned int flags)
{
	unsigned int i;
	int fail = k.fail;

	k.calls++;
	k.min = min;
	k.flags = flags;
	k.fail = 0;
	if (fail)
		return fail;
	if (nr > k.take)
		nr = k.take;
	k.sq_head += nr;
	kpage[0].submitted += nr;
	/* the real one polls nothing while it believes some are unread */
	if ((flags & IORING_ENTER_GETEVENTS) && cq_khead == cq_ktail)
		for (i = 0; i < k.post; i++)
			post_cqe();
	return nr;
}

int __wrap_io_uring_enter(unsigned int fd, unsigned int nr, unsigned int min,
			  unsigned int flags, sigset_t *sig);
int __wrap_io_uring_enter2(unsigned int fd, unsigned int nr, unsigned int min,
			   unsigned int flags, sigset_t *sig, size_t sz);

int __wrap_io_uring_enter(unsigned int fd, unsigned int nr, unsigned int min,
			  unsigned int flags, sigset_t *sig)
{
	assert_int_equal(fd, 77);
	assert_null(sig);
	return fake_enter(nr, min, flags);
}

int __wrap_io_uring_enter2(unsigned int fd, unsigned int nr, unsigned int min,
			   unsigned int flags, sigset_t *sig, size_t sz)
{
	assert_int_equal(fd, 77);
	assert_non_null(sig);
	assert_int_equal(sz, sizeof(struct io_uring_getevents_arg));
	return fake_enter(nr, min, flags);
}

static void init_queue(unsigned int i)
{
	memset(hw[i], 0, sizeof(hw[i]));
	memset(&kpage[i], 0, sizeof(kpage[i]));
	memset(&q[i], 0, sizeof(q[i]));
	kpage[i].cq_head = NVQ_CQ_HEAD_PHASE;
	q[i].cq = hw[i];
	q[i].kpage = &kpage[i];
	q[i].depth = DEPTH;
	q[i].fd = q[i].sqe_fd = 40 + i;
	q[i].nsid = 3;
	q[i].lba_shift = 9;
}

static int reset(void **state)
{
	unsigned int i;

	(void)state;
	init_queue(0);
	init_queue(1);
	memset(&k, 0, sizeof(k));
	k.take = ENTRIES;
	memset(&r, 0, sizeof(r));
	memset(cqe_mem, 0, sizeof(cqe_mem));
	cqes = (struct io_uring_cqe *)cqe_mem;
	sq_ktail = sq_kflags = cq_ktail = cq_khead = 0;
	r.sq_array = sq_array;
	r.sq_mask = r.cq_mask = ENTRIES - 1;
	r.cq_ktail = &cq_ktail;
	r.cq_khead = &cq_khead;
	r.cqes = cqes;
	r.sqes = sqes;
	r.queues = queues;
	r.nr_queues = 1;
	r.kind = NVQ_KIND_POLL;
	r.enter_fd = 77;
	r.uring.sq.ktail = &sq_ktail;
	r.uring.sq.kflags = &sq_kflags;
	for (i = 0; i < ENTRIES; i++)
		nvq_slot_init(&r, i, i);
	return 0;
}

static void queue_n(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		nvq_prep_rw(&r, i, &q[0], NVQ_READ, i, 1, NULL, 512);
		nvq_queue(&r, i);
	}
}

static void send_n(unsigned int nr)
{
	queue_n(nr);
	assert_int_equal(nvq_submit(&r), nr);
	k.calls = 0;
}

/* The drive answers: @nr more entries on queue @i (no wrap in these tests). */
static void hw_post(unsigned int i, unsigned int from, unsigned int nr)
{
	while (nr--)
		hw[i][from++].status = htole16(1);
}

static void command_is_laid_out_as_passthrough_takes_it(void **state)
{
	const struct io_uring_sqe *sqe = &sqes[2 * 5];
	const struct nvme_uring_cmd *c = (const void *)sqe->cmd;
	char buf[4096];

	(void)state;
	nvq_slot_init(&r, 5, 0xabc);
	nvq_prep_rw(&r, 5, &q[0], NVQ_WRITE, 0x123456789aull, 8, buf, 4096);
	assert_int_equal(sqe->opcode, IORING_OP_URING_CMD);
	assert_int_equal(sqe->cmd_op, NVME_URING_CMD_IO);
	assert_int_equal(sqe->fd, 40);
	assert_int_equal(sqe->flags, 0);
	assert_int_equal(sqe->user_data, 0xabc);
	assert_int_equal(c->opcode, NVQ_WRITE);
	assert_int_equal(c->nsid, 3);
	assert_int_equal(c->addr, (uintptr_t)buf);
	assert_int_equal(c->data_len, 4096);
	assert_int_equal(c->cdw10, 0x3456789a);
	assert_int_equal(c->cdw11, 0x12);
	assert_int_equal(c->cdw12, 7);
	assert_int_equal(c->metadata_len, 0);
	assert_int_equal((const char *)c - (const char *)sqe, 48);
}

static void slot_remembers_fixed_file_and_buffer(void **state)
{
	const struct io_uring_sqe *sqe = &sqes[2 * 2];

	(void)state;
	r.sqe_flags = IOSQE_FIXED_FILE;
	q[0].sqe_fd = 4;
	nvq_slot_init(&r, 2, 1);
	nvq_slot_fixed(&r, 2, 6);
	nvq_prep_rw(&r, 2, &q[0], NVQ_READ, 0, 1, NULL, 512);
	assert_int_equal(sqe->fd, 4);
	assert_int_equal(sqe->flags, IOSQE_FIXED_FILE);
	assert_int_equal(sqe->uring_cmd_flags, IORING_URING_CMD_FIXED);
	assert_int_equal(sqe->buf_index, 6);
	nvq_slot_vec(&r, 2);
	assert_int_equal(sqe->cmd_op, NVME_URING_CMD_IO_VEC);
	assert_int_equal(sqe->uring_cmd_flags, 0);
}

static void flush_and_deallocate_leave_nothing_behind(void **state)
{
	static const struct nvq_dsm_range range[2];
	struct io_uring_sqe *sqe = nvq_slot(&r, 1);
	struct nvme_uring_cmd *c = nvq_slot_cmd(&r, 1);

	(void)state;
	nvq_slot_fixed(&r, 1, 1);
	nvq_prep_rw(&r, 1, &q[0], NVQ_READ, ~0ull, 65536, &r, ~0u);
	nvq_prep_flush(&r, 1, &q[0]);
	assert_int_equal(c->opcode, NVQ_FLUSH);
	assert_int_equal(c->nsid, 3);
	assert_int_equal(c->addr | c->data_len | c->cdw10 | c->cdw11 | c->cdw12,
			 0);
	nvq_prep_deallocate(&r, 1, &q[0], range, 2);
	assert_int_equal(c->opcode, NVQ_DSM);
	assert_int_equal(c->addr, (uintptr_t)range);
	assert_int_equal(c->data_len, 32);
	assert_int_equal(c->cdw10, 1);
	assert_int_equal(c->cdw11, 4);
	assert_int_equal(c->cdw12, 0);
	assert_int_equal(sqe->uring_cmd_flags, 0);
	nvq_prep_rw(&r, 1, &q[0], NVQ_READ, 1, 1, NULL, 512);
	assert_int_equal(c->cdw11, 0);
	assert_int_equal(c->cdw12, 0);
}

static void a_batch_is_one_call(void **state)
{
	(void)state;
	queue_n(6);
	assert_int_equal(nvq_queued(&r), 6);
	assert_int_equal(sq_ktail, 0);
	assert_int_equal(nvq_submit(&r), 6);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.flags & IORING_ENTER_GETEVENTS, 0);
	assert_int_equal(sq_ktail, 6);
	assert_int_equal(nvq_queued(&r), 0);
	assert_int_equal(r.inflight, 6);
	assert_int_equal(nvq_submit(&r), 0);
	assert_int_equal(k.calls, 1);
}

static void a_part_taken_is_reported_and_the_rest_kept(void **state)
{
	(void)state;
	k.take = 2;
	queue_n(5);
	assert_int_equal(nvq_submit(&r), 2);
	assert_int_equal(nvq_queued(&r), 3);
	k.fail = -EINTR;
	assert_int_equal(nvq_submit(&r), -EINTR);
	assert_int_equal(nvq_queued(&r), 3);
	k.take = 0;
	assert_int_equal(nvq_submit(&r), -EAGAIN);
	k.take = 8;
	assert_int_equal(nvq_submit(&r), 3);
	assert_int_equal(r.inflight, 5);
	assert_int_equal(k.sq_head, 5);
}

static void sqpoll_is_entered_to_wake_only(void **state)
{
	(void)state;
	r.flags = NVQ_RING_SQPOLL;
	queue_n(3);
	assert_int_equal(nvq_submit(&r), 3);
	assert_int_equal(k.calls, 0);
	assert_int_equal(sq_ktail, 3);
	sq_kflags = IORING_SQ_NEED_WAKEUP;
	queue_n(2);
	assert_int_equal(nvq_submit(&r), 2);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.flags, IORING_ENTER_SQ_WAKEUP);
	/* and never to reap */
	hw_post(0, 0, 3);
	assert_int_equal(nvq_reap(&r, 3), 0);
	assert_int_equal(k.calls, 1);
}

static void nothing_there_no_call(void **state)
{
	unsigned int i;

	(void)state;
	send_n(4);
	for (i = 0; i < 100; i++)
		assert_int_equal(nvq_reap(&r, 1), 0);
	assert_int_equal(k.calls, 0);
	assert_int_equal(r.stats.reap_calls, 0);
}

static void entered_when_as_many_as_wanted_are_there(void **state)
{
	(void)state;
	send_n(4);
	hw_post(0, 0, 2);
	assert_int_equal(nvq_reap(&r, 3), 0);
	assert_int_equal(k.calls, 0);
	hw_post(0, 2, 1);
	k.post = 3;
	assert_int_equal(nvq_reap(&r, 3), 3);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.min, 0);
	assert_int_equal(k.flags, IORING_ENTER_GETEVENTS);
	/* they are ready: no reason to enter again */
	assert_int_equal(nvq_reap(&r, 3), 3);
	assert_int_equal(k.calls, 1);
	assert_int_equal(r.stats.reap_empty, 0);
}

static void entered_when_commands_ended_without_an_entry(void **state)
{
	(void)state;
	send_n(4);
	kpage[0].completed = 1; /* 3 under way, 4 not handed back */
	k.post = 1;
	assert_int_equal(nvq_reap(&r, 4), 1);
	assert_int_equal(k.calls, 1);
	/* handed over though not yet passed over: that is the one */
	assert_int_equal(nvq_reap(&r, 4), 1);
	assert_int_equal(k.calls, 1);
	nvq_advance(&r, 1);
	assert_int_equal(nvq_reap(&r, 3), 0);
	assert_int_equal(k.calls, 1);
}

static void a_refused_command_is_no_reason_to_enter(void **state)
{
	(void)state;
	send_n(4);
	/* one of the four was not accepted; its completion is in the ring */
	kpage[0].submitted = 3;
	post_cqe();
	assert_int_equal(nvq_reap(&r, 2), 1);
	assert_int_equal(k.calls, 0);
	nvq_advance(&r, 1);
	assert_int_equal(nvq_reap(&r, 1), 0);
	assert_int_equal(k.calls, 0);
}

static void either_of_two_queues_counts(void **state)
{
	(void)state;
	r.nr_queues = 2;
	send_n(4);
	kpage[0].submitted = 2;
	kpage[1].submitted = 2;
	assert_int_equal(nvq_reap(&r, 4), 0);
	assert_int_equal(k.calls, 0);
	/* 4 of two queues: not before one of them has 2 */
	hw_post(1, 0, 1);
	hw_post(0, 0, 1);
	assert_int_equal(nvq_reap(&r, 4), 0);
	assert_int_equal(k.calls, 0);
	hw_post(1, 1, 1);
	k.post = 3;
	assert_int_equal(nvq_reap(&r, 4), 3);
	assert_int_equal(k.calls, 1);
	memset(hw, 0, sizeof(hw));
	kpage[0].completed = 1;
	kpage[1].completed = 2;
	assert_int_equal(nvq_reap(&r, 4), 3);
	assert_int_equal(k.calls, 1);
	kpage[0].completed = 2;
	k.post = 1;
	assert_int_equal(nvq_reap(&r, 4), 4);
	assert_int_equal(k.calls, 2);
}

static void counters_are_not_believed_at_once_again(void **state)
{
	unsigned int i;

	(void)state;
	send_n(4);
	/* two are held by a worker while the queue recovers */
	kpage[0].submitted = 2;
	for (i = 0; i < 100000; i++)
		assert_int_equal(nvq_reap(&r, 1), 0);
	assert_in_range(k.calls, 2, 12);
	/* an entry that shows is believed in any case */
	k.calls = 0;
	hw_post(0, 0, 1);
	k.post = 1;
	assert_int_equal(nvq_reap(&r, 1), 1);
	assert_int_equal(k.calls, 1);
	/* and after it found something the counters are again */
	nvq_advance(&r, 1);
	hw[0][0].status = 0;
	kpage[0].completed = 1;
	assert_int_equal(nvq_reap(&r, 1), 1);
	assert_int_equal(k.calls, 2);
	/* so is task work */
	nvq_advance(&r, 1);
	k.post = 0;
	nvq_reap(&r, 1);
	sq_kflags = IORING_SQ_TASKRUN;
	nvq_reap(&r, 1);
	assert_int_equal(k.calls, 4);
}

static void time_out_enters_nothing(void **state)
{
	(void)state;
	send_n(2);
	assert_int_equal(nvq_wait(&r, 1, 5), 0);
	assert_int_equal(k.calls, 0);
	/* a command that the time-out ended shows */
	kpage[0].completed = 1;
	k.post = 1;
	assert_int_equal(nvq_wait(&r, 1, 5), 1);
	assert_int_equal(k.calls, 1);
}

static void kernel_poll_asks_no_phase(void **state)
{
	(void)state;
	r.flags = NVQ_RING_KERNEL_POLL;
	send_n(4);
	k.post = 4;
	assert_int_equal(nvq_wait(&r, 4, 100), 4);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.min, 4);
	nvq_advance(&r, 4);
	send_n(1);
	k.post = 0;
	assert_int_equal(nvq_reap(&r, 1), 0);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.min, 0);
}

static void irq_queue_sleeps_or_heeds_the_flag(void **state)
{
	(void)state;
	r.kind = NVQ_KIND_IRQ;
	send_n(3);
	hw_post(0, 0, 1); /* the interrupt handler's, not ours */
	assert_int_equal(nvq_reap(&r, 1), 0);
	assert_int_equal(k.calls, 0);
	sq_kflags = IORING_SQ_TASKRUN;
	k.post = 1;
	assert_int_equal(nvq_reap(&r, 1), 1);
	assert_int_equal(k.calls, 1);
	sq_kflags = 0;
	k.post = 2;
	assert_int_equal(nvq_wait(&r, 3, 100), 3);
	assert_int_equal(k.calls, 2);
	assert_int_equal(k.min, 2); /* one was taken already */
	assert_true(k.flags & IORING_ENTER_EXT_ARG);
}

static void completions_are_read_in_order_over_the_wrap(void **state)
{
	uint64_t next = 0;
	unsigned int round, i;

	(void)state;
	for (round = 0; round < 20; round++) {
		send_n(5);
		k.post = 5;
		hw_post(0, 0, 5);
		assert_int_equal(nvq_reap(&r, 5), 5);
		for (i = 0; i < 5; i++)
			assert_int_equal(nvq_cqe(&r, i)->user_data, next++);
		nvq_advance(&r, 5);
		assert_int_equal(r.inflight, 0);
		kpage[0].completed += 5;
	}
}

static void unread_completions_do_not_stop_the_reaping(void **state)
{
	unsigned int i;

	(void)state;
	send_n(7);
	kpage[0].completed = 2;
	k.post = 2;
	assert_int_equal(nvq_reap(&r, 6), 2);
	hw_post(0, 0, 4);
	k.post = 4;
	assert_int_equal(nvq_reap(&r, 6), 6);
	assert_int_equal(k.calls, 2);
	for (i = 0; i < 6; i++)
		assert_int_equal(nvq_cqe(&r, i)->user_data, i);
	nvq_advance(&r, 6);
	assert_int_equal(r.inflight, 1);
	send_n(6);
	assert_int_equal(cq_khead, 6);
}

static void kernel_poll_waits_for_the_missing_ones(void **state)
{
	(void)state;
	r.flags = NVQ_RING_KERNEL_POLL;
	send_n(6);
	k.post = 2;
	assert_int_equal(nvq_reap(&r, 5), 2);
	k.post = 3;
	assert_int_equal(nvq_wait(&r, 5, 100), 5);
	assert_int_equal(k.min, 3);
	assert_int_equal(k.calls, 2);
}

static void interrupted_reap_is_no_error(void **state)
{
	(void)state;
	send_n(1);
	hw_post(0, 0, 1);
	k.fail = -EINTR;
	assert_int_equal(nvq_reap(&r, 1), 0);
	k.fail = -EBADF;
	assert_int_equal(nvq_reap(&r, 1), -EBADF);
}

static void unfit_rings_are_refused(void **state)
{
	struct nvq_ring_options opt = { .entries = DEPTH };
	struct nvq_error err;
	struct nvq_ring n;

	(void)state;
	q[0].geo.kind = q[1].geo.kind = NVQ_KIND_POLL;
	assert_int_equal(nvq_ring_init(&n, queues, 2, &opt, &err), -EINVAL);
	assert_non_null(strstr(err.text, "holds 15"));
	opt.entries = DEPTH - 1;
	q[1].geo.kind = NVQ_KIND_IRQ;
	assert_int_equal(nvq_ring_init(&n, queues, 2, &opt, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cannot share"));
	opt.entries = 0;
	assert_int_equal(nvq_ring_init(&n, queues, 1, &opt, NULL), -EINVAL);
	nvq_ring_exit(&n);
}

#define test(f)	cmocka_unit_test_setup(f, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(command_is_laid_out_as_passthrough_takes_it),
		test(slot_remembers_fixed_file_and_buffer),
		test(flush_and_deallocate_leave_nothing_behind),
		test(a_batch_is_one_call),
		test(a_part_taken_is_reported_and_the_rest_kept),
		test(sqpoll_is_entered_to_wake_only),
		test(nothing_there_no_call),
		test(entered_when_as_many_as_wanted_are_there),
		test(entered_when_commands_ended_without_an_entry),
		test(a_refused_command_is_no_reason_to_enter),
		test(either_of_two_queues_counts),
		test(counters_are_not_believed_at_once_again),
		test(time_out_enters_nothing),
		test(kernel_poll_asks_no_phase),
		test(irq_queue_sleeps_or_heeds_the_flag),
		test(completions_are_read_in_order_over_the_wrap),
		test(unread_completions_do_not_stop_the_reaping),
		test(kernel_poll_waits_for_the_missing_ones),
		test(interrupted_reap_is_no_error),
		test(unfit_rings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
