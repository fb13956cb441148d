// SPDX-License-Identifier: MIT
/*
 * The mapped completion queue, on a fake one: phase bit, wrap, walking, and
 * commands that end without an entry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "nvq.h"

#define DEPTH	8

static struct nvq_cqe cq[DEPTH];
static struct nvq_kpage kpage;
static struct nvq q = { .cq = cq, .kpage = &kpage, .depth = DEPTH };

/* The controller's side: where it writes next, and with which phase. */
static unsigned int dev_tail, dev_phase;

static int reset(void **state)
{
	(void)state;
	memset(cq, 0, sizeof(cq));
	memset(&kpage, 0, sizeof(kpage));
	kpage.cq_head = NVQ_CQ_HEAD_PHASE;
	dev_tail = 0;
	dev_phase = 1;
	return 0;
}

static void post(unsigned int nr, unsigned int cid)
{
	while (nr--) {
		cq[dev_tail].cid = htole16(cid++);
		cq[dev_tail].status = htole16(dev_phase);
		if (++dev_tail == DEPTH) {
			dev_tail = 0;
			dev_phase ^= 1;
		}
	}
}

static void consume(unsigned int nr)
{
	unsigned int index = kpage.cq_head & NVQ_CQ_HEAD_INDEX;
	unsigned int phase = kpage.cq_head & NVQ_CQ_HEAD_PHASE;

	while (nr--) {
		if (++index == DEPTH) {
			index = 0;
			phase ^= NVQ_CQ_HEAD_PHASE;
		}
	}
	kpage.cq_head = index | phase;
}

static unsigned int walk(unsigned int first_cid)
{
	const struct nvq_cqe *c;
	struct nvq_cq_iter it;
	unsigned int n = 0;

	for (c = nvq_cq_first(&q, &it); c; c = nvq_cq_next(&q, &it))
		assert_int_equal(le16toh(c->cid), first_cid + n++);
	return n;
}

static void empty_queue_has_nothing(void **state)
{
	(void)state;
	assert_false(nvq_cq_has(&q, 1));
	assert_false(nvq_cq_has(&q, DEPTH - 1));
	assert_false(nvq_cq_pending(&q, 0));
	assert_int_equal(walk(0), 0);
}

static void entries_are_counted_by_the_nth(void **state)
{
	(void)state;
	post(3, 10);
	assert_true(nvq_cq_has(&q, 1));
	assert_true(nvq_cq_has(&q, 3));
	assert_false(nvq_cq_has(&q, 4));
	assert_true(nvq_cq_pending(&q, 0));
	assert_int_equal(walk(10), 3);
	consume(3);
	assert_false(nvq_cq_has(&q, 1));
	assert_int_equal(walk(0), 0);
}

static void phase_toggles_where_the_queue_wraps(void **state)
{
	unsigned int round, cid = 0;

	(void)state;
	/* 5 at a time in a queue of 8: the wrap falls on every position */
	for (round = 0; round < 64; round++, cid += 5) {
		assert_false(nvq_cq_has(&q, 1));
		post(5, cid);
		assert_true(nvq_cq_has(&q, 5));
		assert_false(nvq_cq_has(&q, 6));
		assert_false(nvq_cq_has(&q, 7));
		assert_int_equal(walk(cid), 5);
		consume(2);
		assert_int_equal(walk(cid + 2), 3);
		consume(3);
	}
}

static void full_queue_is_walked_once(void **state)
{
	(void)state;
	consume(6);
	dev_tail = 6;
	post(DEPTH - 1, 1);
	assert_true(nvq_cq_has(&q, DEPTH - 1));
	assert_int_equal(walk(1), DEPTH - 1);
}

static void one_per_round_with_head_at_the_end(void **state)
{
	unsigned int round;

	(void)state;
	for (round = 0; round < 3 * DEPTH; round++) {
		post(1, round);
		assert_true(nvq_cq_has(&q, 1));
		assert_false(nvq_cq_has(&q, 2));
		consume(1);
	}
}

static void commands_without_an_entry_are_noticed(void **state)
{
	(void)state;
	kpage.submitted = 5;
	assert_int_equal(nvq_in_device(&q), 5);
	assert_false(nvq_cq_pending(&q, 5));
	/* a time-out or a reset ended two of them */
	kpage.completed = 2;
	assert_true(nvq_cq_pending(&q, 5));
	/* handed back */
	assert_false(nvq_cq_pending(&q, 3));
}

static void counters_may_wrap_32_bits(void **state)
{
	(void)state;
	kpage.submitted = 0x100000002ull;
	kpage.completed = 0xfffffffeull;
	assert_int_equal(nvq_in_device(&q), 4);
	assert_false(nvq_cq_pending(&q, 4));
	assert_true(nvq_cq_pending(&q, 5));
}

static void a_recreated_queue_starts_afresh(void **state)
{
	(void)state;
	post(5, 0);
	consume(5);
	/* recreated: zeroed entries, index 0, phase 1 */
	reset(NULL);
	kpage.generation = 1;
	assert_int_equal(nvq_generation(&q), 1);
	assert_false(nvq_cq_has(&q, 1));
	post(1, 7);
	assert_int_equal(walk(7), 1);
}

static void state_is_read(void **state)
{
	(void)state;
	assert_int_equal(nvq_state(&q), NVQ_STATE_LIVE);
	kpage.state = NVQ_STATE_DEAD;
	assert_int_equal(nvq_state(&q), NVQ_STATE_DEAD);
}

#define test(f)	cmocka_unit_test_setup(f, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(empty_queue_has_nothing),
		test(entries_are_counted_by_the_nth),
		test(phase_toggles_where_the_queue_wraps),
		test(full_queue_is_walked_once),
		test(one_per_round_with_head_at_the_end),
		test(commands_without_an_entry_are_noticed),
		test(counters_may_wrap_32_bits),
		test(a_recreated_queue_starts_afresh),
		test(state_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
