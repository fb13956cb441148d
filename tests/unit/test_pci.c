// SPDX-License-Identifier: MIT
/*
 * nvq: the names a user may give a drive, and those that name none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fixture.h"
#include "tool.h"

#define BDF	"0000:03:00.0"
#define BOUND	"0000:04:00.0"

static int setup(void **state)
{
	fixture_setup(state);
	fixture_nvme(BDF, "nvme0");
	fixture_block(BDF, "nvme0", "nvme0n1", NULL, "259:0\n");
	fixture_block(BDF, "nvme0", "nvme0n1", "nvme0n1p1", "259:1\n");
	fixture_pci(BOUND, "0x010802\n", "nvqueue");
	fixture_file("/sys/devices/pci0000:00/" BOUND
		     "/nvqueue/nvq0/nvq0poll0/qid", "1\n");
	fixture_link("/sys/class/nvqueue/nvq0", "/sys/devices/pci0000:00/" BOUND
		     "/nvqueue/nvq0");
	fixture_link("/sys/class/nvqueue/nvq0poll0", "/sys/devices/pci0000:00/"
		     BOUND "/nvqueue/nvq0/nvq0poll0");
	fixture_pci("0000:00:1f.2", "0x010601\n", "ahci");
	return 0;
}

static void expect(const char *name, const char *wanted)
{
	char bdf[BDF_LEN];

	assert_int_equal(pci_resolve(name, bdf), 0);
	assert_string_equal(bdf, wanted);
}

static void addresses(void **state)
{
	(void)state;
	expect("0000:03:00.0", BDF);
	expect("03:00.0", BDF);
	expect("3:0.0", BDF);
}

static void nodes(void **state)
{
	(void)state;
	expect("/dev/nvme0", BDF);
	expect("nvme0", BDF);
	expect("/dev/nvme0n1", BDF);
	expect("/dev/nvme0n1p1", BDF);
	expect("/dev/nvq0", BOUND);
	expect("/dev/nvq0poll0", BOUND);
}

static void refused(void **state)
{
	static const char *const name[] = {
		"", "/", "nvme", "nvme9", "/dev/sda", "03:00", "03:00.8",
		"03:00.0x", "0000:03:00.0:1", "05:00.0", "0000:00:1f.2", "..",
		"/dev/nvq0poll1",
	};
	char bdf[BDF_LEN];

	(void)state;
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		assert_int_equal(pci_resolve(name[i], bdf), -1);
}

static void head_of_one_controller(void **state)
{
	(void)state;
	fixture_file("/sys/devices/virtual/nvme-subsystem/nvme-subsys7/nvme7n1/"
		     "dev", "259:9\n");
	fixture_link("/sys/class/block/nvme7n1", "/sys/devices/virtual/"
		     "nvme-subsystem/nvme-subsys7/nvme7n1");
	fixture_link("/sys/class/nvme-subsystem/nvme-subsys7",
		     "/sys/devices/virtual/nvme-subsystem/nvme-subsys7");
	fixture_link("/sys/devices/virtual/nvme-subsystem/nvme-subsys7/nvme0",
		     "/sys/class/nvme/nvme0");
	expect("/dev/nvme7n1", BDF);
}

static void head_of_two_controllers(void **state)
{
	char bdf[BDF_LEN];

	head_of_one_controller(state);
	fixture_nvme("0000:08:00.0", "nvme8");
	fixture_link("/sys/devices/virtual/nvme-subsystem/nvme-subsys7/nvme8",
		     "/sys/class/nvme/nvme8");
	assert_int_equal(pci_resolve("/dev/nvme7n1", bdf), -1);
}

static void list_in_order(void **state)
{
	struct strlist list = { 0 };

	(void)state;
	pci_list(&list);
	assert_int_equal(list.nr, 2);
	assert_string_equal(list.str[0], BDF);
	assert_string_equal(list.str[1], BOUND);
	strlist_free(&list);
}

#define CASE(name)	cmocka_unit_test_setup_teardown(name, setup, \
							fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(addresses),
		CASE(nodes),
		CASE(refused),
		CASE(head_of_one_controller),
		CASE(head_of_two_controllers),
		CASE(list_in_order),
	};

	return cmocka_run_group_tests_name("pci", tests, NULL, NULL);
}
