// SPDX-License-Identifier: MIT
/*
 * NVMe statuses in words; libnvme is the second opinion.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "nvq.h"

/* libnvme's header needs types of its own headers only for this one. */
const char *nvme_status_to_string(int status, bool fabrics);

static bool known(int status)
{
	return strcmp(nvq_status_name(status), "unknown status");
}

/* libnvme words differ, but it must know whatever our table names. */
static void libnvme_knows_every_status_named(void **state)
{
	const char *theirs;
	int status;

	(void)state;
	for (status = 1; status < 0x800; status++) {
		if (!known(status))
			continue;
		theirs = nvme_status_to_string(status, false);
		if (!strcmp(theirs, "Unknown status"))
			fail_msg("0x%x (%s) is unknown to libnvme", status,
				 nvq_status_name(status));
	}
}

static void common_ones_have_names(void **state)
{
	static const int common[] = {
		0x002, 0x004, 0x006, 0x007, 0x008, 0x00b, 0x080, 0x081, 0x082,
		0x1bc, 0x280, 0x281, 0x285, 0x287, 0x370, 0x371,
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		assert_true(known(common[i]));
	assert_string_equal(nvq_status_name(0x281), "Unrecovered Read Error");
	assert_string_equal(nvq_status_name(0x371), "Command Aborted By Host");
}

static void extra_bits_do_not_matter_to_the_name(void **state)
{
	(void)state;
	/* do not retry, more, retry delay */
	assert_string_equal(nvq_status_name(0x4281), nvq_status_name(0x281));
	assert_string_equal(nvq_status_name(0x7a81), nvq_status_name(0x281));
	assert_int_equal(nvq_status_type(0x7a81), 2);
	assert_int_equal(nvq_status_code(0x7a81), 0x81);
}

static void text_has_type_code_and_name(void **state)
{
	char buf[160];

	(void)state;
	assert_string_equal(
		nvq_status_text(0x4281, buf, sizeof(buf)),
		"NVMe status 0x4281: type 2 (media and data integrity), code 0x81 (Unrecovered Read Error), do not retry");
	assert_string_equal(
		nvq_status_text(0x700, buf, sizeof(buf)),
		"NVMe status 0x0700: type 7 (vendor specific), code 0x00 (unknown status)");
	assert_string_equal(nvq_status_text(-EIO, buf, sizeof(buf)),
			    "Input/output error (errno 5)");
	assert_string_equal(nvq_status_text(0, buf, sizeof(buf)), "success");
}

static void text_fits_the_buffer(void **state)
{
	char buf[8];

	(void)state;
	assert_int_equal(strlen(nvq_status_text(0x281, buf, sizeof(buf))), 7);
}

static void opcodes_have_names(void **state)
{
	(void)state;
	assert_string_equal(nvq_opcode_name(NVQ_FLUSH), "flush");
	assert_string_equal(nvq_opcode_name(NVQ_READ), "read");
	assert_string_equal(nvq_opcode_name(NVQ_WRITE), "write");
	assert_string_equal(nvq_opcode_name(NVQ_DSM), "deallocate");
	assert_string_equal(nvq_opcode_name(0xc0), "opcode");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libnvme_knows_every_status_named),
		cmocka_unit_test(common_ones_have_names),
		cmocka_unit_test(extra_bits_do_not_matter_to_the_name),
		cmocka_unit_test(text_has_type_code_and_name),
		cmocka_unit_test(text_fits_the_buffer),
		cmocka_unit_test(opcodes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
