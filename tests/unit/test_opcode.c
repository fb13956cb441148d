// SPDX-License-Identifier: MIT
/*
 * The driver's table of opcodes: what is listed, which commands need a
 * writable descriptor, and how long a command's own fields say it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "opcode.h"

struct row {
	u8 opcode, dir;
	bool write;
};

/* The specification's, not the driver's. */
static const struct row rows[] = {
	{ 0x00, NVQ_DIR_NONE, false }, { 0x01, NVQ_DIR_OUT, true },
	{ 0x02, NVQ_DIR_IN, false }, { 0x04, NVQ_DIR_NONE, true },
	{ 0x05, NVQ_DIR_OUT, false }, { 0x08, NVQ_DIR_NONE, true },
	{ 0x09, NVQ_DIR_OUT, true }, { 0x0c, NVQ_DIR_NONE, false },
	{ 0x19, NVQ_DIR_OUT, true }, { 0x79, NVQ_DIR_NONE, true },
	{ 0x7a, NVQ_DIR_IN, false }, { 0x7d, NVQ_DIR_OUT, true },
};

static const struct row *expected(unsigned int opcode)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].opcode == opcode)
			return &rows[i];
	return NULL;
}

static void every_opcode(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 256; i++) {
		const struct nvq_opcode *op = nvq_opcode_find(i, 0);
		const struct row *want = expected(i);

		assert_int_equal(!op, !want);
		if (!op)
			continue;
		assert_int_equal(op->dir, want->dir);
		assert_int_equal(op->write, want->write);
	}
}

/* Direction is also in the opcode's low bits, where data is moved at all. */
static void directions_agree_with_the_opcode(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(nvq_opcodes); i++) {
		const struct nvq_opcode *op = &nvq_opcodes[i];

		if (op->dir == NVQ_DIR_OUT)
			assert_int_equal(i & 3, 1);
		else if (op->dir == NVQ_DIR_IN)
			assert_int_equal(i & 3, 2);
		assert_int_equal(op->dir == NVQ_DIR_NONE,
				 op->len == NVQ_LEN_NONE);
	}
}

/* "Set Zone Descriptor Extension" has data of a length not in the command. */
static void one_zone_action_is_unlisted(void **state)
{
	unsigned int action;

	(void)state;
	for (action = 0; action < 256; action++) {
		assert_int_equal(!nvq_opcode_find(0x79, action),
				 action == 0x10);
		assert_int_equal(!nvq_opcode_find(0x79, 0xffffff00 | action),
				 action == 0x10);
		assert_non_null(nvq_opcode_find(0x7a, action));
	}
}

static u64 length(u8 opcode, u32 shift, u32 cdw10, u32 cdw12)
{
	return nvq_opcode_length(nvq_opcode_find(opcode, 0), shift, cdw10,
				 cdw12);
}

static void blocks(void **state)
{
	static const u8 ops[] = { 0x01, 0x02, 0x05, 0x7d };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops); i++) {
		assert_int_equal(length(ops[i], 9, 0, 0), 512);
		assert_int_equal(length(ops[i], 12, 0, 7), 32768);
		assert_int_equal(length(ops[i], 9, 0, 0xffff), 65536 * 512);
		/* flags beside the number of blocks, and CDW10, are no length */
		assert_int_equal(length(ops[i], 9, ~0U, 0xffff0000), 512);
		assert_int_equal(length(ops[i], 20, 0, ~0U), 1ULL << 36);
	}
}

static void no_data(void **state)
{
	static const u8 ops[] = { 0x00, 0x04, 0x08, 0x0c, 0x79 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops); i++)
		assert_int_equal(length(ops[i], 12, ~0U, ~0U), 0);
}

static void dwords(void **state)
{
	(void)state;
	assert_int_equal(length(0x7a, 9, ~0U, 0), 4);
	assert_int_equal(length(0x7a, 9, 0, 1023), 4096);
	assert_int_equal(length(0x7a, 12, 0, ~0U), 1ULL << 34);
}

static void ranges(void **state)
{
	(void)state;
	assert_int_equal(length(0x09, 9, 0, ~0U), 16);
	assert_int_equal(length(0x09, 12, 0xff, 0), 4096);
	assert_int_equal(length(0x09, 12, 0xffffff00, 0), 16);
}

static void copies(void **state)
{
	unsigned int format;

	(void)state;
	assert_int_equal(length(0x19, 9, ~0U, 0), 32);
	assert_int_equal(length(0x19, 9, 0, 0xff), 8192);
	assert_int_equal(length(0x19, 9, 0, 0xfffff000), 32);
	assert_int_equal(length(0x19, 9, 0, 0x100), 40);
	assert_int_equal(length(0x19, 9, 0, 0x1ff), 10240);
	assert_int_equal(length(0x19, 9, 0, 0x27f), 4096);
	assert_int_equal(length(0x19, 9, 0, 0x300), 40);
	/* unknown: longer than any buffer */
	for (format = 4; format < 16; format++)
		assert_true(length(0x19, 9, 0, format << 8) > UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_opcode),
		cmocka_unit_test(directions_agree_with_the_opcode),
		cmocka_unit_test(one_zone_action_is_unlisted),
		cmocka_unit_test(blocks),
		cmocka_unit_test(no_data),
		cmocka_unit_test(dwords),
		cmocka_unit_test(ranges),
		cmocka_unit_test(copies),
	};

	return cmocka_run_group_tests_name("opcode", tests, NULL, NULL);
}
