// SPDX-License-Identifier: MIT
/*
 * libnvq's native path: staging, submission, completions, recovery, buffers and
 * what errors say, against the kernel of native_kernel.h.
 */
#include "native_kernel.h"

/* ---- Staging --------------------------------------------------------------- */

static void a_command_is_laid_out_as_the_contract_says(void **state)
{
	static const struct nvq_sqe want = {
		.opcode = NVQ_WRITE, .cid = 0x1234, .nsid = NSID,
		.offset = 0x123456780, .buf = 77,
		.cdw10 = 0x9abcdef0, .cdw11 = 0x12345678, .cdw12 = 0xffff,
	};
	struct nvq_sqe got;

	(void)state;
	nvq_stage_rw(&n, 0x1234, NVQ_WRITE, 0x123456789abcdef0, 65536, 77,
		     0x123456780);
	got = sq[0];
	got.ignored = 0;
	assert_memory_equal(&got, &want, sizeof(want));
	assert_int_equal(nvq_native_staged(&n), 1);
}

static void the_other_commands_leave_nothing_behind(void **state)
{
	static const struct nvq_sqe flush = {
		.opcode = NVQ_FLUSH, .cid = 4, .nsid = NSID,
	};
	static const struct nvq_sqe dsm = {
		.opcode = NVQ_DSM, .cid = 0xffff, .nsid = NSID, .offset = 64,
		.buf = 8, .cdw10 = 255, .cdw11 = 4,
	};
	static const struct nvq_sqe any = {
		.opcode = 0x79, .cid = 2, .nsid = NSID,
	};
	unsigned int i;

	(void)state;
	nvq_stage_flush(&n, 4);
	nvq_stage_deallocate(&n, 0xffff, 256, 8, 64);
	assert_ptr_equal(nvq_stage_any(&n, 2, 0x79), &sq[2]);
	for (i = 0; i < 3; i++)
		sq[i].ignored = 0;
	assert_memory_equal(&sq[0], &flush, sizeof(flush));
	assert_memory_equal(&sq[1], &dsm, sizeof(dsm));
	assert_memory_equal(&sq[2], &any, sizeof(any));
}

static void staging_wraps_where_its_own_ring_does(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 40; i += 4) {
		stage(i, 4);
		assert_int_equal(nvq_native_staged(&n), 4);
		assert_int_equal(nvq_native_submit(&n), 4);
		assert_int_equal(nvq_native_staged(&n), 0);
	}
	assert_int_equal(k.nr, 40);
	for (i = 0; i < 40; i++)
		assert_int_equal(le16toh(k.sqe[i].cid), i);
	assert_int_equal(upage.sq_tail, 40);
	assert_int_equal(n.stats.submit_calls, 10);
	assert_int_equal(k.calls, 10);
}

static void counters_pass_the_end_of_their_32_bits(void **state)
{
	(void)state;
	n.sq_tail = n.sq_sent = k.head = -2u;
	stage(0, 5);
	assert_int_equal(nvq_native_staged(&n), 5);
	assert_int_equal(nvq_native_submit(&n), 5);
	assert_int_equal(upage.sq_tail, 3);
	assert_int_equal(nvq_native_staged(&n), 0);
	assert_int_equal(le16toh(k.sqe[4].cid), 4);
}

/* ---- Submission ------------------------------------------------------------ */

static void a_batch_is_one_call_and_seen_by_its_tail(void **state)
{
	(void)state;
	stage(0, 3);
	/* not before: a batch half staged is nobody's business */
	assert_int_equal(upage.sq_tail, 0);
	assert_int_equal(k.calls, 0);
	assert_int_equal(nvq_native_submit(&n), 3);
	assert_int_equal(upage.sq_tail, 3);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.op, NVQ_IOC_SUBMIT);
	assert_int_equal(k.submit.wait, 0);
}

static void a_part_taken_leaves_the_rest_staged(void **state)
{
	(void)state;
	k.take = 2;
	stage(0, 5);
	assert_int_equal(nvq_native_submit(&n), 2);
	assert_int_equal(nvq_native_staged(&n), 3);
	assert_int_equal(le16toh(nvq_native_first(&n)->cid), 2);
	k.fail = ENOSPC;
	assert_int_equal(nvq_native_submit(&n), -ENOSPC);
	assert_int_equal(nvq_native_staged(&n), 3);
	k.take = 5;
	assert_int_equal(nvq_native_submit(&n), 3);
	assert_null(nvq_native_first(&n));
	assert_int_equal(le16toh(k.sqe[4].cid), 4);
}

static void a_dropped_command_is_passed_over(void **state)
{
	unsigned int i;

	(void)state;
	/* the ring wraps between them */
	stage(0, 5);
	assert_int_equal(nvq_native_submit(&n), 5);
	k.nr = 0;
	stage(10, 5);
	k.fail = EINVAL;
	assert_int_equal(nvq_native_submit(&n), -EINVAL);
	assert_int_equal(le16toh(nvq_native_first(&n)->cid), 10);
	assert_int_equal(nvq_native_drop(&n), 0);
	assert_int_equal(nvq_native_staged(&n), 4);
	assert_int_equal(nvq_native_submit(&n), 4);
	assert_int_equal(upage.sq_tail, 10);
	assert_int_equal(k.nr, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(le16toh(k.sqe[i].cid), 11 + i);
	k.calls = 0;
	assert_int_equal(nvq_native_drop(&n), -EINVAL);
	assert_int_equal(k.calls, 0);
	assert_int_equal(nvq_native_staged(&n), 0);
	/* the kernel is told of one that it has not seen staged */
	stage(20, 1);
	assert_int_equal(nvq_native_drop(&n), 0);
	assert_int_equal(upage.sq_tail, 11);
	assert_int_equal(nvq_native_staged(&n), 0);
}

static void a_command_accepted_meanwhile_is_not_dropped(void **state)
{
	(void)state;
	stage(0, 3);
	nvq_native_publish(&n);
	k.head = kpage.sq_head = 2;
	assert_int_equal(nvq_native_drop(&n), -EAGAIN);
	assert_int_equal(nvq_native_accepted(&n), 2);
	assert_int_equal(le16toh(nvq_native_first(&n)->cid), 2);
	assert_int_equal(nvq_native_drop(&n), 0);
	assert_null(nvq_native_first(&n));
}

static void a_readonly_descriptor_drops_by_itself(void **state)
{
	(void)state;
	stage(0, 2);
	k.calls = 0;
	assert_int_equal(nvq_native_drop(&n), 0);
	assert_int_equal(k.calls, 0);
	assert_int_equal(le16toh(nvq_native_first(&n)->cid), 1);
	assert_int_equal(nvq_native_drop(&n), 0);
	assert_int_equal(nvq_native_drop(&n), -EINVAL);
}

static void accepted_says_each_command_once(void **state)
{
	(void)state;
	stage(0, 5);
	nvq_native_publish(&n);
	assert_int_equal(nvq_native_accepted(&n), 0);
	kpage.sq_head = 3;
	assert_int_equal(nvq_native_accepted(&n), 3);
	assert_int_equal(nvq_native_accepted(&n), 0);
	assert_int_equal(nvq_native_staged(&n), 2);
}

static void a_submission_that_waits_says_how_long_and_for_what(void **state)
{
	(void)state;
	q.geo.kind = NVQ_KIND_IRQ;
	stage(0, 4);
	assert_int_equal(nvq_native_submit_wait(&n, 3, 250), 4);
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.submit.wait, 3);
	assert_int_equal(k.submit.timeout_ms, 250);
	assert_int_equal(k.submit.max, 0);
	assert_int_equal(n.stats.wait_calls, 1);
	/* the time is over, the commands were accepted all the same */
	stage(4, 1);
	kpage.sq_head = 5;
	k.fail = ETIME;
	assert_int_equal(nvq_native_submit_wait(&n, 5, 1), -ETIME);
	assert_int_equal(nvq_native_staged(&n), 0);
}

/* ---- Completions ----------------------------------------------------------- */

static void completions_are_read_once_and_in_order_over_the_wrap(void **state)
{
	const struct nvq_cqe *c;
	unsigned int i, id = 0;

	(void)state;
	assert_null(nvq_native_next(&n));
	for (i = 0; i < 20; i++) {
		post(id, 4);
		for (; id % 4 || id == 4 * i; id++) {
			c = nvq_native_next(&n);
			assert_non_null(c);
			assert_int_equal(nvq_native_cid(c), id);
			assert_int_equal(nvq_native_res(c), 0);
			assert_int_equal(nvq_native_read(&n), id + 1);
		}
		/* what lies there from the last round is no completion */
		assert_null(nvq_native_next(&n));
		assert_false(nvq_native_has(&n, 1));
	}
	assert_int_equal(id, 80);
}

static void has_looks_at_the_last_of_them(void **state)
{
	unsigned int round, want;

	(void)state;
	for (round = 0; round < 3 * DEPTH; round++) {
		post(0, 3);
		for (want = 1; want < DEPTH; want++)
			assert_int_equal(nvq_native_has(&n, want), want <= 3);
		for (want = 0; want < 3; want++)
			assert_non_null(nvq_native_next(&n));
	}
}

static void runs_end_where_the_queue_wraps(void **state)
{
	uint32_t run, left, id = 0;
	unsigned int round;

	(void)state;
	for (round = 0; round < 2 * DEPTH; round++) {
		post(id, 5);
		assert_true(nvq_native_has(&n, 5));
		for (left = 5; left; left -= run) {
			uint32_t i;

			run = nvq_native_run(&n, left);
			assert_in_range(run, 1, left);
			for (i = 0; i < run; i++)
				assert_int_equal(nvq_native_cid(
					nvq_native_entry(&n) + i), id++);
			assert_true(nvq_native_entry(&n) + run <= hw + DEPTH);
			nvq_native_skip(&n, run);
		}
		assert_int_equal(nvq_native_read(&n), id);
		assert_false(nvq_native_has(&n, 1));
	}
}

static void a_result_is_the_status_without_its_phase(void **state)
{
	const struct nvq_cqe *c;

	(void)state;
	post(5, 1);
	hw[0].status = htole16(0x4281 << 1 | 1);
	c = nvq_native_next(&n);
	assert_int_equal(nvq_native_res(c), 0x4281);
	assert_int_equal(nvq_native_cid(c), 5);
}

static void the_head_goes_along_with_the_next_batch(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		post(0, 5);
		while (nvq_native_next(&n))
			;
		assert_int_equal(k.cq_head, 5 * i);
		stage(0, 5);
		assert_int_equal(nvq_native_submit(&n), 5);
		assert_int_equal(k.cq_head, 5 * i + 5);
	}
}

static void a_poll_queue_is_waited_for_without_a_call(void **state)
{
	(void)state;
	post(0, 2);
	assert_int_equal(nvq_native_wait(&n, 2, 1), 0);
	assert_int_equal(nvq_native_wait(&n, 3, 5), -ETIME);
	assert_int_equal(k.calls, 0);
}

static void an_irq_queue_sleeps_unless_they_are_there(void **state)
{
	(void)state;
	q.geo.kind = NVQ_KIND_IRQ;
	post(0, 2);
	assert_int_equal(nvq_native_wait(&n, 2, 7), 0);
	assert_int_equal(k.calls, 0);
	k.fail = ESTALE;
	assert_int_equal(nvq_native_wait(&n, 3, 7), -ESTALE);
	assert_int_equal(k.calls, 1);
	stage(2, 1);
	assert_int_equal(nvq_native_wait(&n, 3, 7), -ETIME);
	assert_int_equal(k.submit.wait, 3);
	assert_int_equal(k.nr, 1);
}

/* ---- Read-only descriptors ------------------------------------------------- */

static void a_readonly_descriptor_submits_from_its_own_memory(void **state)
{
	unsigned int i, id = 0;

	(void)state;
	/* the first call made the file a native one */
	assert_int_equal(k.calls, 1);
	assert_int_equal(k.op, NVQ_IOC_SUBMIT_FROM);
	assert_int_equal(k.from.nr, 0);
	assert_true(n.readonly);
	post(0, 4);
	while (nvq_native_next(&n))
		;
	for (i = 0; i < 6; i++, id += 5) {
		stage(id, 5);
		while (nvq_native_staged(&n))
			assert_true(nvq_native_submit(&n) > 0);
		assert_int_equal(k.op, NVQ_IOC_SUBMIT_FROM);
		assert_int_equal(k.cq_head, 4);
	}
	assert_int_equal(k.nr, 30);
	for (i = 0; i < 30; i++)
		assert_int_equal(le16toh(k.sqe[i].cid), i);
	/* nobody wrote to a page that is not mapped */
	assert_int_equal(upage.sq_tail, 0);
	stage(30, 1);
	q.geo.kind = NVQ_KIND_IRQ;
	assert_int_equal(nvq_native_submit_wait(&n, 1, 0), 1);
	assert_int_equal(k.op, NVQ_IOC_SUBMIT);
	assert_int_equal(nvq_native_staged(&n), 0);
}

static void a_readonly_descriptor_has_no_ring(void **state)
{
	struct nvq_native_ring_options opt = { .sq_cpu = -1 };
	struct nvq_native *queues[] = { &n };
	struct nvq_native_ring r;

	(void)state;
	assert_int_equal(nvq_native_ring_init(&r, queues, 1, &opt, &e), -EINVAL);
	assert_non_null(strstr(e.text, "nvq7poll3"));
	nvq_native_ring_exit(&r);
}

/* ---- Recovery -------------------------------------------------------------- */

static void staged_survives_a_resync(void **state)
{
	unsigned int i;

	(void)state;
	/* both rings are somewhere in their second round */
	for (i = 0; i < 2; i++) {
		stage(0, 5);
		assert_int_equal(nvq_native_submit(&n), 5);
		post(0, 5);
		while (nvq_native_next(&n))
			;
	}
	stage(20, 3);
	k.nr = 0;
	assert_int_equal(nvq_native_resync(&n, &e), 0);
	assert_int_equal(nvq_native_staged(&n), 3);
	assert_int_equal(nvq_native_read(&n), 0);
	assert_null(nvq_native_next(&n));
	assert_int_equal(nvq_native_submit(&n), 3);
	assert_int_equal(upage.sq_tail, 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(le16toh(k.sqe[i].cid), 20 + i);
	post(20, 1);
	assert_int_equal(nvq_native_cid(nvq_native_next(&n)), 20);
}

static void a_resync_wants_all_completions_read(void **state)
{
	(void)state;
	stage(0, 2);
	assert_int_equal(nvq_native_submit(&n), 2);
	post(0, 2);
	nvq_native_next(&n);
	assert_int_equal(nvq_native_resync(&n, &e), -EBUSY);
	assert_non_null(strstr(e.text, "not all completions were read"));
	assert_int_equal(nvq_native_read(&n), 1);
	nvq_native_next(&n);
	assert_int_equal(nvq_native_resync(&n, &e), 0);
}

static void a_readonly_resync_says_its_head_by_a_call(void **state)
{
	(void)state;
	stage(0, 2);
	assert_int_equal(nvq_native_submit(&n), 2);
	post(0, 2);
	while (nvq_native_next(&n))
		;
	stage(7, 1);
	k.fail = ESTALE;
	assert_int_equal(nvq_native_resync(&n, &e), 0);
	assert_int_equal(nvq_native_staged(&n), 1);
	assert_int_equal(le16toh(nvq_native_first(&n)->cid), 7);
}

static void stopped_is_what_the_kernel_page_says(void **state)
{
	(void)state;
	assert_int_equal(nvq_native_stopped(&n), NVQ_STATE_LIVE);
	kpage.state = NVQ_STATE_RESYNC;
	assert_int_equal(nvq_native_stopped(&n), NVQ_STATE_RESYNC);
}

/* ---- Buffers, and what errors say ------------------------------------------ */

static void a_buffer_is_registered_as_given(void **state)
{
	(void)state;
	assert_int_equal(nvq_native_register(&n, (void *)0x7004, 12345,
					     NVQ_REG_READONLY, &e), 9);
	assert_int_equal(k.reg.addr, 0x7004);
	assert_int_equal(k.reg.len, 12345);
	assert_int_equal(k.reg.flags, NVQ_REG_READONLY);
	assert_int_equal(nvq_native_unregister(&n, 9, &e), 0);
	assert_int_equal(k.unregistered, 9);
}

static void expect_text(int code, size_t len, const char *a, const char *b)
{
	k.fail = -code;
	assert_int_equal(nvq_native_register(&n, (void *)0x7ffc, len, 0, &e),
			 code);
	assert_int_equal(e.code, code);
	assert_non_null(strstr(e.text, "nvq7poll3"));
	assert_non_null(strstr(e.text, a));
	assert_non_null(strstr(e.text, b));
}

static void errors_say_the_numbers(void **state)
{
	(void)state;
	/* pages, not bytes: 4 bytes of the first one, and 16 more */
	expect_text(-ENOMEM, 65540, "locks 68 KiB", "is 64 KiB");
	expect_text(-ENOMEM, 16, "of 8 KiB", "(64 KiB)");
	expect_text(-EINVAL, 4711, "4711 bytes", "multiple of 4");
	expect_text(-EFAULT, 4711, "4711 bytes", "NVQ_REG_READONLY");
	expect_text(-EOPNOTSUPP, 4711, "4711 bytes", "anonymous");
	expect_text(-ENOSPC, 4711, "4711 bytes", "too many");
	expect_text(-ENODEV, 4711, "4711 bytes", strerror(ENODEV));
	k.fail = ENOENT;
	assert_int_equal(nvq_native_unregister(&n, 83, &e), -ENOENT);
	assert_non_null(strstr(e.text, "buffer 83"));
}

static void a_file_of_standard_commands_is_refused(void **state)
{
	struct nvq_native other;

	(void)state;
	k.map_fail = EBUSY;
	assert_int_equal(nvq_native_init(&other, &q, &e), -EBUSY);
	assert_non_null(strstr(e.text, "nvq7poll3"));
	assert_non_null(strstr(e.text, "reopen"));
	nvq_native_exit(&other);
	k.map_fail = 0;
	k.mode = O_RDONLY;
	k.fail = EBUSY;
	assert_int_equal(nvq_native_init(&other, &q, &e), -EBUSY);
	nvq_native_exit(&other);
	assert_int_equal(k.unmapped, 0);
	/* a queue that is stopped is told by the first submission */
	k.fail = ESTALE;
	assert_int_equal(nvq_native_init(&other, &q, &e), 0);
	nvq_native_exit(&other);
	nvq_native_exit(&n);
	assert_int_equal(k.unmapped, 2);
	nvq_native_exit(&n);
	assert_int_equal(k.unmapped, 2);
}

#define test(f)	cmocka_unit_test_setup_teardown(f, reset, stop)
#define ro(f)	cmocka_unit_test_setup_teardown(f, reset_readonly, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_command_is_laid_out_as_the_contract_says),
		test(the_other_commands_leave_nothing_behind),
		test(staging_wraps_where_its_own_ring_does),
		test(counters_pass_the_end_of_their_32_bits),
		test(a_batch_is_one_call_and_seen_by_its_tail),
		test(a_part_taken_leaves_the_rest_staged),
		test(a_dropped_command_is_passed_over),
		test(a_command_accepted_meanwhile_is_not_dropped),
		ro(a_readonly_descriptor_drops_by_itself),
		test(accepted_says_each_command_once),
		test(a_submission_that_waits_says_how_long_and_for_what),
		test(completions_are_read_once_and_in_order_over_the_wrap),
		test(has_looks_at_the_last_of_them),
		test(runs_end_where_the_queue_wraps),
		test(a_result_is_the_status_without_its_phase),
		test(the_head_goes_along_with_the_next_batch),
		test(a_poll_queue_is_waited_for_without_a_call),
		test(an_irq_queue_sleeps_unless_they_are_there),
		ro(a_readonly_descriptor_submits_from_its_own_memory),
		ro(a_readonly_descriptor_has_no_ring),
		test(staged_survives_a_resync),
		test(a_resync_wants_all_completions_read),
		ro(a_readonly_resync_says_its_head_by_a_call),
		test(stopped_is_what_the_kernel_page_says),
		test(a_buffer_is_registered_as_given),
		test(errors_say_the_numbers),
		test(a_file_of_standard_commands_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
