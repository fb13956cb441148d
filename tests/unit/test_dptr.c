// SPDX-License-Identifier: MIT
/*
 * The driver's PRP and SGL builders, at every edge, and against a slow model:
 * what a controller that follows the specification would touch, byte by byte,
 * is what the segments say, in that order, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dptr.h"

#define P	((u64)NVQ_CTRL_PAGE)
#define BASE	0x7000000000ULL
#define GUARD	0xdead000000ULL
#define LIST	0xbeef000000ULL
#define ENTRIES	(NVQ_LIST_BYTES / sizeof(__le64))

/* As long as the driver's, so that a sanitizer sees one entry too many. */
static __le64 *list;
static struct nvq_prp_builder b;

static int fresh(void **state)
{
	size_t i;

	(void)state;
	free(list);
	list = malloc(NVQ_LIST_BYTES);
	for (i = 0; i < ENTRIES; i++)
		list[i] = cpu_to_le64(GUARD);
	nvq_prp_init(&b, list);
	return 0;
}

static int done(void **state)
{
	(void)state;
	free(list);
	list = NULL;
	return 0;
}

static u64 prp2(void)
{
	return nvq_prp2(&b, LIST, GUARD);
}

/* Entries the builder does not count are as they were. */
static void rest_is_guard(u32 used)
{
	size_t i;

	assert_int_equal(nvq_prp_used(&b), used);
	for (i = used; i < ENTRIES; i++)
		assert_int_equal(le64_to_cpu(list[i]), GUARD);
}

static void nothing(void **state)
{
	(void)state;
	assert_int_equal(nvq_prp_add(&b, BASE + 1, 0), 0);
	assert_int_equal(b.nr, 0);
	assert_int_equal(prp2(), GUARD);
	rest_is_guard(0);
}

static void inside_a_page(void **state)
{
	u32 off;

	for (off = 0; off < P; off += 4) {
		fresh(state);
		assert_int_equal(nvq_prp_add(&b, BASE + off, P - off), 0);
		assert_int_equal(b.nr, 1);
		assert_int_equal(b.prp1, BASE + off);
		assert_int_equal(prp2(), GUARD);
		rest_is_guard(0);
	}
}

static void one_byte_more_is_a_second_page(void **state)
{
	u32 off;

	for (off = 0; off < P; off += 4) {
		fresh(state);
		assert_int_equal(nvq_prp_add(&b, BASE + off, P - off + 1), 0);
		assert_int_equal(b.nr, 2);
		assert_int_equal(b.prp1, BASE + off);
		assert_int_equal(prp2(), BASE + P);
		rest_is_guard(1);
	}
}

static void two_pages_need_no_list(void **state)
{
	(void)state;
	assert_int_equal(nvq_prp_add(&b, BASE, 2 * P), 0);
	assert_int_equal(b.nr, 2);
	assert_int_equal(prp2(), BASE + P);
}

static void three_need_one(void **state)
{
	(void)state;
	assert_int_equal(nvq_prp_add(&b, BASE + 4, 2 * P), 0);
	assert_int_equal(b.nr, 3);
	assert_int_equal(prp2(), LIST);
	assert_int_equal(le64_to_cpu(list[0]), BASE + P);
	assert_int_equal(le64_to_cpu(list[1]), BASE + 2 * P);
	rest_is_guard(2);
}

static void full_list(void **state)
{
	u64 i;

	(void)state;
	assert_int_equal(NVQ_PRP_LIST_MAX, 512);
	assert_int_equal(nvq_prp_add(&b, BASE, 513 * P), 0);
	assert_int_equal(b.nr, 513);
	for (i = 0; i < 512; i++)
		assert_int_equal(le64_to_cpu(list[i]), BASE + (i + 1) * P);
	rest_is_guard(512);
	assert_int_equal(nvq_prp_add(&b, BASE, 4), -E2BIG);
	rest_is_guard(512);
}

static void longer_than_a_list(void **state)
{
	(void)state;
	assert_int_equal(nvq_prp_add(&b, BASE, 513 * P + 1), -E2BIG);
	rest_is_guard(512);
	fresh(state);
	assert_int_equal(nvq_prp_add(&b, BASE, ~0ULL >> 1), -E2BIG);
	rest_is_guard(512);
}

static void only_multiples_of_four(void **state)
{
	u32 off;

	for (off = 0; off < 64; off++) {
		fresh(state);
		assert_int_equal(nvq_prp_add(&b, BASE + off, 512),
				 off % 4 ? -EINVAL : 0);
	}
}

static void only_the_first_may_have_an_offset(void **state)
{
	(void)state;
	assert_int_equal(nvq_prp_add(&b, BASE + 512, P - 512), 0);
	assert_int_equal(nvq_prp_add(&b, BASE + 4 * P + 4, 8), -EINVAL);
	assert_int_equal(nvq_prp_add(&b, BASE + 4 * P, 8), 0);
}

static void only_the_last_may_end_inside(void **state)
{
	(void)state;
	assert_int_equal(nvq_prp_add(&b, BASE, P - 4), 0);
	assert_int_equal(nvq_prp_add(&b, BASE + P, P), -EINVAL);
	/* not even where the two would touch */
	fresh(state);
	assert_int_equal(nvq_prp_add(&b, BASE, P - 4), 0);
	assert_int_equal(nvq_prp_add(&b, BASE + P - 4, 4), -EINVAL);
}

/* ---- against a model -------------------------------------------------------- */

struct seg {
	u64 addr, len;
};

static u64 rnd = 1;

static u64 roll(u64 n)
{
	rnd = rnd * 6364136223846793005ULL + 1442695040888963407ULL;
	return (rnd >> 33) % n;
}

/* Where a controller finds byte @i of the transfer. */
static u64 prp_byte(u64 i, u64 len)
{
	u64 first = P - b.prp1 % P, page, entry;

	if (i < first)
		return b.prp1 + i;
	page = (i - first) / P;
	/* PRP2 is a list if more than two pages are moved in all */
	if (len <= first + P)
		entry = prp2();
	else
		entry = prp2() == LIST ? le64_to_cpu(list[page]) : 0;
	return entry + (i - first) % P;
}

static u64 seg_byte(const struct seg *s, u64 i)
{
	for (; i >= s->len; s++)
		i -= s->len;
	return s->addr + i;
}

static unsigned int random_segs(struct seg *s, unsigned int max)
{
	unsigned int i, n = 1 + roll(max);

	for (i = 0; i < n; i++) {
		u64 off = roll(8) ? 0 : roll(2 * P) & ~(u64)(roll(4) ? 3 : 0);

		s[i].addr = BASE + roll(1 << 20) * 16 * P + off;
		s[i].len = roll(6) ? (1 + roll(5)) * P - off % P :
				     roll(3 * P);
	}
	return n;
}

/* What base 2.0 section 4.1.1 allows, said once more and slowly. */
static int model(const struct seg *s, unsigned int n)
{
	u64 pages = 0;
	bool ended = false;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!s[i].len)
			continue;
		if (s[i].addr % 4 || ended || (pages && s[i].addr % P))
			return -EINVAL;
		pages += (s[i].addr % P + s[i].len + P - 1) / P;
		if (pages > 513)
			return -E2BIG;
		ended = (s[i].addr + s[i].len) % P;
	}
	return 0;
}

static void prps_of_random_segments(void **state)
{
	struct seg s[256];
	unsigned int round, i, n, good = 0;
	u64 len, at;
	int err;

	for (round = 0; round < 20000; round++) {
		fresh(state);
		n = random_segs(s, round % 16 ? 6 : 256);
		for (i = 0, err = 0, len = 0; i < n && !err; i++) {
			err = nvq_prp_add(&b, s[i].addr, s[i].len);
			len += s[i].len;
		}
		assert_int_equal(err, model(s, n));
		if (err)
			continue;
		good += !!len;
		rest_is_guard(b.nr ? b.nr - 1 : 0);
		/* both ends of each page, or so */
		for (at = 0; at < len; at += 1 + roll(P / 2))
			assert_int_equal(prp_byte(at, len), seg_byte(s, at));
		if (len)
			assert_int_equal(prp_byte(len - 1, len),
					 seg_byte(s, len - 1));
	}
	assert_true(good > 1000);
}

/* ---- SGLs ------------------------------------------------------------------- */

static void descriptor_layout(void **state)
{
	struct nvq_sgl_desc d;
	static const u8 want[16] = {
		0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
		0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0x30
	};

	(void)state;
	assert_int_equal(sizeof(d), 16);
	memset(&d, 0xff, sizeof(d));
	nvq_sgl_fill(&d, 0x0123456789abcdefULL, 0x11223344, NVQ_SGL_LAST_SEG);
	assert_memory_equal(&d, want, sizeof(d));
}

static void sgl_up_to_its_limit(void **state)
{
	struct nvq_sgl_builder s = { .list = (struct nvq_sgl_desc *)list };
	struct nvq_sgl_desc d;
	u32 i;

	(void)state;
	/* 1 MiB of scattered pages that begins inside one, at least */
	assert_true(NVQ_SGL_LIST_MAX >= 257);
	assert_int_equal(nvq_sgl_add(&s, BASE, 0), 0);
	assert_int_equal(s.nr, 0);
	for (i = 0; i < NVQ_SGL_LIST_MAX; i++)
		assert_int_equal(nvq_sgl_add(&s, BASE + i, i + 1), 0);
	assert_int_equal(nvq_sgl_add(&s, BASE, 1), -E2BIG);
	assert_int_equal(nvq_sgl_add(&s, BASE, 0), 0);
	assert_int_equal(s.nr, NVQ_SGL_LIST_MAX);
	for (i = 0; i < s.nr; i++) {
		assert_int_equal(le64_to_cpu(s.list[i].addr), BASE + i);
		assert_int_equal(le32_to_cpu(s.list[i].length), i + 1);
		assert_int_equal(s.list[i].type, NVQ_SGL_DATA);
	}
	nvq_sgl_segment(&d, LIST, s.nr);
	assert_int_equal(le64_to_cpu(d.addr), LIST);
	assert_int_equal(le32_to_cpu(d.length), NVQ_LIST_BYTES);
	assert_int_equal(d.type, NVQ_SGL_LAST_SEG);
	/* what lies behind the last descriptor is no part of the list */
	nvq_sgl_segment(&d, LIST, 3);
	assert_int_equal(le32_to_cpu(d.length), 3 * 16);
}

#define T(name)	cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing),
		T(inside_a_page),
		T(one_byte_more_is_a_second_page),
		T(two_pages_need_no_list),
		T(three_need_one),
		T(full_list),
		T(longer_than_a_list),
		T(only_multiples_of_four),
		T(only_the_first_may_have_an_offset),
		T(only_the_last_may_end_inside),
		T(prps_of_random_segments),
		T(descriptor_layout),
		T(sgl_up_to_its_limit),
	};

	return cmocka_run_group_tests_name("dptr", tests, NULL, NULL);
}
