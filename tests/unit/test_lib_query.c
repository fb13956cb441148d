// SPDX-License-Identifier: MIT
/*
 * What can be known without opening a queue, from a sysfs made of files in a
 * directory; /dev/null plays the device nodes.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "internal.h"

static char root[64];

static void make_dir(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (mkdir(path, 0700) && errno != EEXIST)
		fail_msg("%s: %s", path, strerror(errno));
}

static void put(const char *dev, const char *attr, const char *val)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "class/nvqueue/%s", dev);
	make_dir(path);
	snprintf(path, sizeof(path), "%s/class/nvqueue/%s/%s", root, dev, attr);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%s\n", val);
	fclose(f);
}

/* /dev/null, character device 1:3, is called @name from now on. */
static void call_it(const char *name)
{
	char link[128], target[128];

	snprintf(link, sizeof(link), "%s/dev/char/1:3", root);
	snprintf(target, sizeof(target), "../../devices/virtual/nvqueue/%s",
		 name);
	unlink(link);
	assert_int_equal(symlink(target, link), 0);
}

static int make_sysfs(void **state)
{
	(void)state;
	strcpy(root, "/tmp/nvq-test-XXXXXX");
	if (!mkdtemp(root))
		return 1;
	make_dir("dev");
	make_dir("dev/char");
	make_dir("class");
	make_dir("class/nvqueue");
	put("nvq12", "mdts", "131072");
	put("nvq12", "depth", "1024");
	put("nvq12", "namespaces", "2 512 4096 0 0\n5 4096 1000 8 0");
	put("nvq12poll0", "owner", "0");
	put("nvq12poll1", "owner", "1");
	put("nvq12poll2", "owner", "0");
	put("nvq12irq0", "owner", "0");
	nvq_sysfs = root;
	return 0;
}

static int remove_sysfs(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	return system(cmd);
}

static void a_queue_is_described(void **state)
{
	struct nvq_error err;
	struct nvq_info info;

	(void)state;
	call_it("nvq12poll1");
	assert_int_equal(nvq_query(&info, "/dev/null", 0, &err), 0);
	assert_string_equal(info.name, "nvq12poll1");
	assert_string_equal(info.ctrl, "nvq12");
	assert_int_equal(info.number, 1);
	assert_int_equal(info.kind, NVQ_KIND_POLL);
	assert_int_equal(info.owner, 1);
	assert_int_equal(info.geo.instance, 12);
	assert_int_equal(info.geo.depth, 1024);
	assert_int_equal(info.geo.mdts, 131072);
	/* the lowest active namespace */
	assert_int_equal(info.geo.nsid, 2);
	assert_int_equal(info.geo.lba_size, 512);
	assert_int_equal(info.geo.nsze, 4096);
}

static void another_namespace_is_described(void **state)
{
	struct nvq_error err;
	struct nvq_info info;

	(void)state;
	call_it("nvq12irq0");
	assert_int_equal(nvq_query(&info, "/dev/null", 5, &err), 0);
	assert_int_equal(info.kind, NVQ_KIND_IRQ);
	assert_int_equal(info.geo.nsid, 5);
	assert_int_equal(info.geo.lba_size, 4096);
	assert_int_equal(info.geo.metadata_size, 8);
	assert_int_equal(nvq_query(&info, "/dev/null", 3, &err), -EINVAL);
	assert_string_equal(
		err.text,
		"nvq12 has no active namespace 3: `nvq list` shows what it has");
}

static void a_controller_is_described(void **state)
{
	struct nvq_info info;

	(void)state;
	call_it("nvq12");
	assert_int_equal(nvq_query(&info, "/dev/null", 0, NULL), 0);
	assert_int_equal(info.kind, NVQ_KIND_CTRL);
	assert_string_equal(info.ctrl, "nvq12");
	assert_int_equal(info.geo.nsid, 2);
}

static void other_files_are_refused(void **state)
{
	static const char *const names[] = {
		"null", "nvme0", "nvq", "nvqpoll0", "nvq1poll", "nvq1poll2x",
		"nvq1irqx", "nvq1q0", "xnvq1",
	};
	struct nvq_error err;
	struct nvq_info info;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		call_it(names[i]);
		assert_int_equal(nvq_query(&info, "/dev/null", 0, &err),
				 -ENOTTY);
	}
	assert_int_equal(err.code, -ENOTTY);
	assert_non_null(strstr(err.text, "/dev/null is not an nvqueue file"));
	assert_int_equal(nvq_query(&info, "/etc/passwd", 0, &err), -ENOTTY);
	assert_int_equal(nvq_query(&info, "/nonexistent", 0, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nvq list"));
}

static void queues_are_counted(void **state)
{
	unsigned int exist, unowned;

	(void)state;
	nvq_count("nvq12", NVQ_KIND_POLL, &exist, &unowned);
	assert_int_equal(exist, 3);
	assert_int_equal(unowned, 2);
	nvq_count("nvq12", NVQ_KIND_IRQ, &exist, &unowned);
	assert_int_equal(exist, 1);
	assert_int_equal(nvq_count("nvq1", NVQ_KIND_POLL, &exist, &unowned), 0);
	assert_int_equal(exist, 0);
}

/* Queues that cannot be looked at are not said to be missing. */
static void files_run_out(void **state)
{
	unsigned int exist, unowned;
	struct rlimit was, none;
	char why[NVQ_WHY_LEN];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(nvq_count("nvq12", NVQ_KIND_POLL, &exist, &unowned),
			 -EMFILE);
	nvq_why(-EMFILE, why, sizeof(why));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_non_null(strstr(why, "RLIMIT_NOFILE is 0 "));
	assert_non_null(strstr(why, "ulimit -n"));
	assert_string_equal(nvq_why(-EIO, why, sizeof(why)), strerror(EIO));
}

static void owner_is_named(void **state)
{
	char buf[64], pid[16];

	(void)state;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	put("nvq12poll2", "owner", pid);
	nvq_owner_text("nvq12poll2", buf, sizeof(buf));
	assert_non_null(strstr(buf, pid));
	assert_non_null(strstr(buf, "test_lib_query"));
	put("nvq12poll2", "owner", "0");
	assert_string_equal(nvq_owner_text("nvq12poll2", buf, sizeof(buf)),
			    "another process");
}

static void numbers_are_read_strictly(void **state)
{
	uint64_t val;

	(void)state;
	put("nvq12poll2", "x", "18446744073709551615");
	assert_int_equal(nvq_attr_u64("nvq12poll2", "x", &val), 0);
	assert_int_equal(val, UINT64_MAX);
	put("nvq12poll2", "x", "12 34");
	assert_int_equal(nvq_attr_u64("nvq12poll2", "x", &val), -EINVAL);
	put("nvq12poll2", "x", "");
	assert_int_equal(nvq_attr_u64("nvq12poll2", "x", &val), -EINVAL);
	assert_int_equal(nvq_attr_u64("nvq12poll2", "y", &val), -ENOENT);
}

static void claim_tells_what_is_missing(void **state)
{
	struct nvq_error err;
	struct nvq q;

	(void)state;
	call_it("nvq1");
	assert_int_equal(nvq_claim(&q, "/dev/null", NVQ_KIND_POLL, 0, O_RDWR,
				   &err),
			 -ENOENT);
	assert_string_equal(
		err.text,
		"nvq1 has no poll queue (it has 0 irq queues): load nvqueue with some (user_poll_queues=)");
	call_it("nvq12poll0");
	assert_int_equal(nvq_claim(&q, "/dev/null", NVQ_KIND_POLL, 0, O_RDWR,
				   NULL),
			 -ENOTTY);
	nvq_close(&q);
}

static void opening_something_else_is_undone(void **state)
{
	struct nvq_error err;
	struct nvq q;

	(void)state;
	call_it("nvq12poll0");
	/* /dev/null by another name knows no geometry */
	assert_int_equal(nvq_open(&q, "/dev/null", O_RDWR, &err), -ENOTTY);
	assert_int_equal(q.fd, -1);
	nvq_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_is_described),
		cmocka_unit_test(another_namespace_is_described),
		cmocka_unit_test(a_controller_is_described),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(queues_are_counted),
		cmocka_unit_test(files_run_out),
		cmocka_unit_test(owner_is_named),
		cmocka_unit_test(numbers_are_read_strictly),
		cmocka_unit_test(claim_tells_what_is_missing),
		cmocka_unit_test(opening_something_else_is_undone),
	};

	return cmocka_run_group_tests(tests, make_sysfs, remove_sysfs);
}
