// SPDX-License-Identifier: MIT
/*
 * driver/stage.h, the trust boundary of the native path, natively: named edges
 * one by one, then many random commands against the slow model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "stage_model.h"

static struct model m;

static void stage(__le64 *w, unsigned int opcode, unsigned int buf, u64 offset,
		  u64 slba, u32 cdw12)
{
	memset(w, 0, 64);
	w[0] = cpu_to_le64(opcode | 7 << 16 | 3ULL << 32);
	w[3] = cpu_to_le64(offset);
	w[4] = cpu_to_le64(buf);
	w[5] = cpu_to_le64(slba);
	w[6] = cpu_to_le64(cdw12);
}

/* What the code says, after it agreed with the model. */
static int run(const __le64 *w)
{
	const char *wrong = model_run(&m, w);
	struct nvq_staged s;
	__le64 sqe[8];

	if (wrong)
		fail_msg("%s", wrong);
	nvq_stage_read(&s, w);
	nvq_stage_pass(w, sqe);
	return nvq_stage_build(&m.ctx, &s, sqe);
}

static int try(unsigned int opcode, unsigned int buf, u64 offset, u64 slba,
	       u32 cdw12)
{
	__le64 w[8];

	stage(w, opcode, buf, offset, slba, cdw12);
	return run(w);
}

static void lengths_must_fit_the_buffer(void **state)
{
	u64 len = m.views[1].len;

	(void)state;
	assert_int_equal(try(2, 1, len - 512, 0, 0), 0);
	assert_int_equal(try(2, 1, len - 508, 0, 0), -EINVAL);
	assert_int_equal(try(2, 1, len, 0, 0), -EINVAL);
	assert_int_equal(try(2, 1, ~0ULL & ~3ULL, 0, 0), -EINVAL);
	assert_int_equal(try(2, 1, 0ULL - 512, 0, 0), -EINVAL);
	assert_int_equal(try(2, 2, 0, 0, 0), -EINVAL);
	assert_int_equal(try(2, 4, 0, 0, 15), 0);
	assert_int_equal(try(2, 4, 4, 0, 15), -EINVAL);
}

/* The end of the largest buffer is the last dword below 2^32 from its first page. */
static void the_largest_buffer_fits_32_bits(void **state)
{
	u64 len = MODEL_BIG_LEN, at;

	(void)state;
	assert_int_equal(MODEL_BIG_START + len, (1ULL << 32) - 4);
	assert_int_equal(m.pages[MODEL_BIG], 1 << 20);
	for (at = len - (2 << 20); at <= len - (1 << 20); at += 4096 - 4)
		assert_int_equal(try(2, MODEL_BIG, at, 0, 2047), 0);
	for (at = 1ULL << 30; at < len - 512; at += (1ULL << 30) - 4)
		assert_int_equal(try(2, MODEL_BIG, at, 0, 0), 0);
	assert_int_equal(try(2, MODEL_BIG, len - (1 << 20), 0, 2047), 0);
	assert_int_equal(try(2, MODEL_BIG, len - 512, 0, 0), 0);
	assert_int_equal(try(2, MODEL_BIG, len - 508, 0, 0), -EINVAL);
	assert_int_equal(try(2, MODEL_BIG, len - 4, 0, 0), -EINVAL);
	assert_int_equal(try(2, MODEL_BIG, len, 0, 0), -EINVAL);
	/* 2^32 and what its low half would be */
	assert_int_equal(try(2, MODEL_BIG, 1ULL << 32, 0, 0), -EINVAL);
	assert_int_equal(try(2, 0, 1ULL << 32, 0, 0), -EINVAL);
}

static void offsets_are_multiples_of_4(void **state)
{
	(void)state;
	assert_int_equal(try(2, 0, 4, 0, 0), 0);
	assert_int_equal(try(2, 0, 1, 0, 0), -EINVAL);
	assert_int_equal(try(2, 0, 2, 0, 0), -EINVAL);
	assert_int_equal(try(2, 0, 4095, 0, 0), -EINVAL);
}

static void buffer_indices_are_checked(void **state)
{
	(void)state;
	assert_int_equal(try(2, 6, 0, 0, 0), -EINVAL);
	assert_int_equal(try(2, ~0U, 0, 0, 0), -EINVAL);
	assert_int_equal(try(2, 7, 0, 0, 0), -EINVAL);
	assert_int_equal(try(2, 8, 0, 0, 0), -EINVAL);
	/* withdrawn */
	m.views[0] = (struct nvq_buf_view){ 0 };
	assert_int_equal(try(2, 0, 0, 0, 0), -EINVAL);
	/* a flush names none */
	assert_int_equal(try(0, ~0U, 1, ~0ULL, ~0U), 0);
}

/*
 * A mask on an index that was checked changes nothing but what the processor
 * may speculate on.  A mask with a hole in it, which the driver never has, makes
 * it show: index 2 passes the check, and what is used is 2 & 5.
 */
static void buffer_indices_are_masked(void **state)
{
	struct nvq_staged s;
	__le64 w[8], sqe[8] = { 0 };

	(void)state;
	m.ctx.buf_mask = 5;
	stage(w, 2, 2, 0, 0, 0);
	nvq_stage_read(&s, w);
	assert_int_equal(nvq_stage_build(&m.ctx, &s, sqe), 0);
	assert_int_equal(le64_to_cpu(sqe[3]), model_page(0, 0));
}

static void lbas_must_be_in_the_namespace(void **state)
{
	(void)state;
	assert_int_equal(try(2, 0, 0, (1 << 20) - 1, 0), 0);
	assert_int_equal(try(2, 0, 0, (1 << 20) - 1, 1), -EINVAL);
	assert_int_equal(try(2, 0, 0, 1 << 20, 0), -EINVAL);
	assert_int_equal(try(2, 0, 0, ~0ULL, 0), -EINVAL);
	assert_int_equal(try(8, 0, 0, ~0ULL - 2, 0xffff), -EINVAL);
	assert_int_equal(try(8, 0, 0, 0, 0xffff), 0);
	m.ctx.nsze = 5;
	assert_int_equal(try(2, 0, 0, 0, 4), 0);
	assert_int_equal(try(2, 0, 0, 1, 4), -EINVAL);
	assert_int_equal(try(2, 0, 0, 0, 5), -EINVAL);
	assert_int_equal(try(2, 0, 0, 7, 6), -EINVAL);
}

static void transfers_end_at_mdts(void **state)
{
	(void)state;
	assert_int_equal(try(2, 0, 0, 0, 2047), 0);
	assert_int_equal(try(2, 0, 0, 0, 2048), -EINVAL);
	m.ctx.max_xfer = 4096;
	assert_int_equal(try(2, 0, 0, 0, 7), 0);
	assert_int_equal(try(2, 0, 0, 0, 8), -EINVAL);
}

/* 2^32 dwords are not none. */
static void dwords_are_counted_in_64_bits(void **state)
{
	(void)state;
	assert_int_equal(try(0x7a, 0, 0, 0, ~0U), -EINVAL);
	assert_int_equal(try(0x7a, 0, 0, 0, (1U << 30) - 1), -EINVAL);
	assert_int_equal(try(0x7a, 0, 0, 0, 1023), 0);
}

static void opcodes_must_be_listed(void **state)
{
	unsigned int opcode, ok = 0;

	(void)state;
	for (opcode = 0; opcode < 256; opcode++)
		ok += try(opcode, 0, 0, 0, 0) != -EOPNOTSUPP;
	assert_int_equal(ok, 12);
}

static void writes_need_a_writable_file(void **state)
{
	(void)state;
	m.ctx.writable = false;
	nvq_stage_set_keys(&m.ctx);
	assert_int_equal(try(1, 0, 0, 0, 0), -EACCES);
	assert_int_equal(try(8, 0, 0, 0, 0), -EACCES);
	assert_int_equal(try(9, 0, 0, 0, 0), -EACCES);
	assert_int_equal(try(0x19, 0, 0, 0, 0), -EACCES);
	assert_int_equal(try(0x7d, 0, 0, 0, 0), -EACCES);
	assert_int_equal(try(2, 0, 0, 0, 0), 0);
	assert_int_equal(try(5, 0, 0, 0, 0), 0);
}

static void readonly_memory_is_only_read(void **state)
{
	(void)state;
	assert_int_equal(try(2, 3, 0, 0, 0), -EACCES);
	assert_int_equal(try(0x7a, 3, 0, 0, 255), -EACCES);
	assert_int_equal(try(1, 3, 0, 0, 0), 0);
}

static void another_namespace_is_refused(void **state)
{
	__le64 w[8];

	(void)state;
	stage(w, 2, 0, 0, 0, 0);
	w[0] = cpu_to_le64(2 | 4ULL << 32);
	assert_int_equal(run(w), -EINVAL);
}

/* Every start page and offset around each list's edges, every length class. */
static void lists_are_right_at_every_edge(void **state)
{
	static const unsigned int pages[] = { 0, 1, 254, 255, 256, 257, 511,
					      512, 513, 767, 768, 843 };
	static const unsigned int offs[] = { 0, 4, 512, 3584, 4092 };
	static const unsigned int nlbs[] = { 1, 7, 8, 9, 15, 16, 17, 24, 2040,
					     2047, 2048 };
	unsigned int p, o, n;

	(void)state;
	for (p = 0; p < ARRAY_SIZE(pages); p++)
		for (o = 0; o < ARRAY_SIZE(offs); o++)
			for (n = 0; n < ARRAY_SIZE(nlbs); n++)
				assert_int_equal(try(2, 0, pages[p] * 4096ULL +
						     offs[o], 0, nlbs[n] - 1),
						 0);
}

static u64 rnd(void)
{
	static u64 x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static void random_commands_agree_with_the_model(void **state)
{
	static const unsigned int ops[] = { 0, 1, 2, 4, 5, 8, 9, 0x0c, 0x19,
					    0x79, 0x7a, 0x7d, 0x0d, 0x80 };
	unsigned int i, accepted = 0;
	__le64 w[8];

	(void)state;
	for (i = 0; i < 1000000; i++) {
		u64 r = rnd(), buf = r >> 8 & 7, at;

		/* about as far as the largest goes, or the next one */
		at = rnd() % (buf == MODEL_BIG ? (1ULL << 32) : 1101 * 4096);
		stage(w, ops[r % ARRAY_SIZE(ops)], buf,
		      at & (r >> 60 ? ~3ULL : ~0ULL),
		      rnd() % ((1 << 20) + 1000), rnd() % 2100);
		if (!(r >> 40 & 7))
			((u8 *)w)[rnd() % 64] = rnd();
		accepted += !run(w);
	}
	/* or the test would be about refusals only */
	assert_true(accepted > 300000);
}

static int setup(void **state)
{
	(void)state;
	/* tests withdraw buffers */
	memset(m.views, 0, sizeof(m.views));
	model_init(&m, 9, 1 << 20, true);
	return 0;
}

#define test(f)	cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(lengths_must_fit_the_buffer),
		test(the_largest_buffer_fits_32_bits),
		test(offsets_are_multiples_of_4),
		test(buffer_indices_are_checked),
		test(buffer_indices_are_masked),
		test(lbas_must_be_in_the_namespace),
		test(transfers_end_at_mdts),
		test(dwords_are_counted_in_64_bits),
		test(opcodes_must_be_listed),
		test(writes_need_a_writable_file),
		test(readonly_memory_is_only_read),
		test(another_namespace_is_refused),
		test(lists_are_right_at_every_edge),
		test(random_commands_agree_with_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
