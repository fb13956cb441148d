// SPDX-License-Identifier: MIT
/*
 * nvq: every kind of use that must keep a drive from being taken is found, and
 * a neighbour's use is not taken for the drive's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "inuse.h"

#define BDF	"0000:03:00.0"
#define PCI	"/sys/devices/pci0000:00/" BDF

/* One drive of two namespaces, the first with two partitions; a neighbour. */
static int setup(void **state)
{
	fixture_setup(state);
	fixture_nvme(BDF, "nvme0");
	fixture_block(BDF, "nvme0", "nvme0n1", NULL, "259:0\n");
	fixture_block(BDF, "nvme0", "nvme0n1", "nvme0n1p1", "259:1\n");
	fixture_block(BDF, "nvme0", "nvme0n1", "nvme0n1p2", "259:2\n");
	fixture_block(BDF, "nvme0", "nvme0n2", NULL, "259:3\n");
	fixture_file(PCI "/nvme/nvme0/ng0n1/dev", "235:0\n");
	fixture_link("/sys/class/nvme-generic/ng0n1", PCI "/nvme/nvme0/ng0n1");
	fixture_dir(PCI "/nvme/nvme0/hwmon0");
	fixture_nvme("0000:04:00.0", "nvme1");
	fixture_block("0000:04:00.0", "nvme1", "nvme1n1", NULL, "259:10\n");
	fixture_block("0000:04:00.0", "nvme1", "nvme1n1", "nvme1n1p1",
		      "259:11\n");
	return 0;
}

typedef void finder(const struct drive *drive, struct strlist *reasons);

static void expect(finder *find, size_t nr, const char *const reason[])
{
	struct strlist reasons = { 0 };
	struct drive drive;

	drive_scan(&drive, BDF);
	find(&drive, &reasons);
	drive_free(&drive);
	for (size_t i = 0; i < reasons.nr; i++)
		if (i < nr)
			assert_string_equal(reasons.str[i], reason[i]);
	assert_int_equal(reasons.nr, nr);
	strlist_free(&reasons);
}

#define EXPECT(find, ...)						\
	do {								\
		const char *const reason_[] = { __VA_ARGS__ };		\
									\
		expect(find, sizeof(reason_) / sizeof(reason_[0]),	\
		       reason_);					\
	} while (0)

static void expect_none(finder *find)
{
	expect(find, 0, NULL);
}

static void scan_finds_all_nodes(void **state)
{
	static const char *const name[] = {
		"nvme0", "nvme0n1", "nvme0n1p1", "nvme0n1p2", "ng0n1",
		"nvme0n2",
	};
	struct drive drive;

	(void)state;
	drive_scan(&drive, BDF);
	assert_string_equal(drive.ctrl, "nvme0");
	assert_int_equal(drive.others.nr, 0);
	assert_int_equal(drive.nr, 6);
	for (size_t i = 0; i < drive.nr; i++) {
		bool found = false;

		for (size_t n = 0; n < 6; n++)
			found |= !strcmp(drive.node[i].name, name[n]);
		assert_true(found);
	}
	assert_ptr_equal(drive_find(&drive, true, 259, 10), NULL);
	assert_non_null(drive_find(&drive, true, 259, 2));
	assert_null(drive_find(&drive, false, 259, 2));
	drive_free(&drive);
}

static void scan_without_nvme_finds_none(void **state)
{
	struct drive drive;

	(void)state;
	fixture_pci("0000:05:00.0", "0x010802\n", NULL);
	drive_scan(&drive, "0000:05:00.0");
	assert_int_equal(drive.nr, 0);
	drive_free(&drive);
}

static void unused_drive_has_no_reason(void **state)
{
	(void)state;
	fixture_file("/proc/self/mountinfo",
		     "25 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
		     "26 25 259:11 / /n rw - ext4 /dev/nvme1n1p1 rw\n"
		     "27 25 0:22 / /proc rw - proc proc rw\n");
	fixture_file("/proc/swaps", "Filename Type Size Used Priority\n"
		     "/dev/nvme1n1 partition 8 0 -2\n"
		     "/swapfile file 8 0 -3\n");
	expect_none(mounts_find);
	expect_none(swaps_find);
	expect_none(holders_find);
	expect_none(procs_find);
}

static void mounted_disk(void **state)
{
	(void)state;
	fixture_file("/proc/self/mountinfo",
		     "30 25 259:3 / /data rw shared:1 - xfs /dev/nvme0n2 rw\n");
	EXPECT(mounts_find,
	       "/dev/nvme0n2 is mounted on /data; umount it first");
}

static void mounted_partition_under_another_name(void **state)
{
	(void)state;
	fixture_file("/proc/self/mountinfo",
		     "30 25 259:2 / /home rw - ext4 /dev/disk/by-label/h rw\n"
		     "31 25 259:2 /x /srv/a\\040b rw - ext4 /dev/root rw\n");
	EXPECT(mounts_find,
	       "/dev/nvme0n1p2 is mounted on /home; umount it first",
	       "/dev/nvme0n1p2 is mounted on /srv/a b; umount it first");
}

static void mounted_with_anonymous_number(void **state)
{
	(void)state;
	fixture_file("/proc/self/mountinfo",
		     "30 25 0:41 / /b rw a:1 b:2 - btrfs /dev/nvme0n1p1 rw\n");
	EXPECT(mounts_find,
	       "/dev/nvme0n1p1 is mounted on /b; umount it first");
}

static void btrfs_second_member(void **state)
{
	(void)state;
	fixture_file("/proc/self/mountinfo",
		     "30 25 0:41 / /b rw - btrfs /dev/nvme1n1p1 rw\n");
	fixture_file("/sys/fs/btrfs/1234-abcd/devices/nvme0n2", "");
	EXPECT(mounts_find,
	       "/dev/nvme0n2 is part of the mounted btrfs 1234-abcd; umount it first");
}

static void broken_mountinfo_is_survived(void **state)
{
	(void)state;
	fixture_file("/proc/self/mountinfo",
		     "\n30\n30 25 x:y / /b\n30 25 259:0\n"
		     "30 25 8:1 / /c rw -\n30 25 8:1 / /c rw - ext4\n"
		     "30 25 259:0 / /d");
	EXPECT(mounts_find,
	       "/dev/nvme0n1 is mounted on /d; umount it first");
}

static void mounted_in_another_namespace(void **state)
{
	(void)state;
	fixture_dangling("/proc/self/ns/mnt", "mnt:[1]");
	fixture_dangling("/proc/10/ns/mnt", "mnt:[1]");
	fixture_file("/proc/10/mountinfo",
		     "30 25 259:0 / /no rw - ext4 /dev/nvme0n1 rw\n");
	fixture_dangling("/proc/20/ns/mnt", "mnt:[2]");
	fixture_file("/proc/20/comm", "podman\n");
	fixture_file("/proc/20/mountinfo",
		     "30 25 259:0 / /c rw - ext4 /dev/nvme0n1 rw\n");
	fixture_dangling("/proc/30/ns/mnt", "mnt:[2]");
	fixture_file("/proc/30/mountinfo",
		     "30 25 259:0 / /c rw - ext4 /dev/nvme0n1 rw\n");
	EXPECT(mounts_find_elsewhere,
	       "/dev/nvme0n1 is mounted on /c in the mount namespace of process 20 (podman); umount it there first");
}

static void swap_on_partition(void **state)
{
	(void)state;
	fixture_file("/proc/swaps",
		     "Filename\t\t\tType\t\tSize\tUsed\tPriority\n"
		     "/dev/nvme0n1p1 partition\t1048572\t0\t-2\n");
	EXPECT(swaps_find,
	       "/dev/nvme0n1p1 is swap; swapoff /dev/nvme0n1p1 first");
}

static void lvm_and_crypt_and_md(void **state)
{
	(void)state;
	fixture_file("/sys/class/block/dm-0/dm/name", "vg0-home\n");
	fixture_file("/sys/class/block/dm-0/dm/uuid", "LVM-abc\n");
	fixture_file("/sys/class/block/dm-1/dm/name", "secret\n");
	fixture_file("/sys/class/block/dm-1/dm/uuid", "CRYPT-LUKS2-1\n");
	fixture_file("/sys/class/block/dm-2/dm/name", "odd\n");
	fixture_file("/sys/class/block/dm-2/dm/uuid", "\n");
	fixture_dir(PCI "/nvme/nvme0/nvme0n1/nvme0n1p1/holders/dm-0");
	fixture_dir(PCI "/nvme/nvme0/nvme0n1/nvme0n1p2/holders/dm-1");
	fixture_dir(PCI "/nvme/nvme0/nvme0n2/holders/md127");
	fixture_dir(PCI "/nvme/nvme0/nvme0n2/holders/dm-2");
	fixture_dir(PCI "/nvme/nvme0/nvme0n2/holders/bcache0");
	EXPECT(holders_find,
	       "/dev/nvme0n1p1 is a physical volume of the LVM volume vg0-home (dm-0); deactivate its volume group first: vgchange -an",
	       "/dev/nvme0n1p2 carries the open encrypted volume secret (dm-1); cryptsetup close secret first",
	       "/dev/nvme0n2 is held by bcache0; release it there first",
	       "/dev/nvme0n2 is used by the device mapper's odd (dm-2); dmsetup remove odd first",
	       "/dev/nvme0n2 is a member of the RAID array md127; mdadm --stop /dev/md127 first");
}

static void loop_device(void **state)
{
	(void)state;
	fixture_file("/sys/class/block/loop3/loop/backing_file",
		     "/dev/nvme0n2\n");
	fixture_file("/sys/class/block/loop4/loop/backing_file",
		     "/dev/nvme1n1\n");
	EXPECT(holders_find,
	       "/dev/nvme0n2 backs /dev/loop3; losetup -d /dev/loop3 first");
}

#define NVMET	"/sys/kernel/config/nvmet/subsystems"

static void nvme_target(void **state)
{
	(void)state;
	fixture_file(NVMET "/nqn.a/namespaces/1/enable", "1\n");
	fixture_file(NVMET "/nqn.a/namespaces/1/device_path", "/dev/nvme0n1\n");
	fixture_file(NVMET "/nqn.a/namespaces/2/enable", "0\n");
	fixture_file(NVMET "/nqn.a/namespaces/2/device_path", "/dev/nvme0n2\n");
	fixture_file(NVMET "/nqn.b/passthru/enable", "1\n");
	fixture_file(NVMET "/nqn.b/passthru/device_path", "/dev/nvme0\n");
	EXPECT(holders_find,
	       "/dev/nvme0n1 is exported by the NVMe target nqn.a; disable " NVMET "/nqn.a/namespaces/1 first",
	       "/dev/nvme0 is exported by the NVMe target nqn.b; disable " NVMET "/nqn.b/passthru first");
}

static void virtual_functions(void **state)
{
	(void)state;
	fixture_file(PCI "/sriov_numvfs", "2\n");
	EXPECT(holders_find,
	       "it has 2 virtual functions; write 0 to /sys/bus/pci/devices/" BDF "/sriov_numvfs first");
}

static void open_in_a_process(void **state)
{
	(void)state;
	fixture_file("/proc/77/comm", "smartd\n");
	fixture_dangling("/proc/77/fd/0", "/dev/null");
	fixture_dangling("/proc/77/fd/3", "/dev/nvme0");
	fixture_dangling("/proc/77/fd/4", "/dev/nvme0");
	fixture_dangling("/proc/77/fd/5", "/dev/ng0n1");
	fixture_dangling("/proc/78/fd/3", "/dev/nvme1");
	fixture_dangling("/proc/78/fd/4", "socket:[1]");
	fixture_file("/proc/79/comm", "dd\n");
	fixture_dangling("/proc/79/fd/3", "/dev/nvme0n1p2");
	EXPECT(procs_find,
	       "/dev/nvme0 is open in process 77 (smartd); end it first",
	       "/dev/ng0n1 is open in process 77 (smartd); end it first",
	       "/dev/nvme0n1p2 is open in process 79 (dd); end it first");
}

/*
 * A drive that two controllers reach: nvme2 of subsystem 5 has the hidden path
 * nvme5c2n1, the node is the subsystem's nvme5n1.
 */
static void multipath_head(void **state)
{
	static const char head[] =
		"/sys/devices/virtual/nvme-subsystem/nvme-subsys5";
	char path[256];
	struct drive drive;

	(void)state;
	fixture_nvme("0000:06:00.0", "nvme2");
	fixture_nvme("0000:07:00.0", "nvme3");
	fixture_file("/sys/devices/pci0000:00/0000:06:00.0/nvme/nvme2/"
		     "nvme5c2n1/hidden", "1\n");
	snprintf(path, sizeof(path), "%s/nvme5n1/dev", head);
	fixture_file(path, "259:20\n");
	snprintf(path, sizeof(path), "%s/nvme5n1/nvme5n1p1/dev", head);
	fixture_file(path, "259:21\n");
	snprintf(path, sizeof(path), "%s/nvme5n1/nvme5n1p1/partition", head);
	fixture_file(path, "1\n");
	snprintf(path, sizeof(path), "%s/nvme5n1", head);
	fixture_link("/sys/class/block/nvme5n1", path);
	snprintf(path, sizeof(path), "%s/nvme5n1/nvme5n1p1", head);
	fixture_link("/sys/class/block/nvme5n1p1", path);
	fixture_link("/sys/class/nvme-subsystem/nvme-subsys5", head);
	snprintf(path, sizeof(path), "%s/nvme2", head);
	fixture_link(path, "/sys/class/nvme/nvme2");
	snprintf(path, sizeof(path), "%s/nvme3", head);
	fixture_link(path, "/sys/class/nvme/nvme3");

	drive_scan(&drive, "0000:06:00.0");
	assert_non_null(drive_find(&drive, true, 259, 20));
	assert_non_null(drive_find(&drive, true, 259, 21));
	assert_int_equal(drive.nr, 3);
	assert_int_equal(drive.others.nr, 1);
	assert_string_equal(drive.others.str[0], "nvme3");
	drive_free(&drive);
}

#define CASE(name)	cmocka_unit_test_setup_teardown(name, setup, \
							fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(scan_finds_all_nodes),
		CASE(scan_without_nvme_finds_none),
		CASE(unused_drive_has_no_reason),
		CASE(mounted_disk),
		CASE(mounted_partition_under_another_name),
		CASE(mounted_with_anonymous_number),
		CASE(btrfs_second_member),
		CASE(broken_mountinfo_is_survived),
		CASE(mounted_in_another_namespace),
		CASE(swap_on_partition),
		CASE(lvm_and_crypt_and_md),
		CASE(loop_device),
		CASE(nvme_target),
		CASE(virtual_functions),
		CASE(open_in_a_process),
		CASE(multipath_head),
	};

	return cmocka_run_group_tests_name("inuse", tests, NULL, NULL);
}
