// SPDX-License-Identifier: MIT
/*
 * nvq: moving a drive from one driver to another, through sysfs.
 *
 * driver_override makes a device match that driver and no other; without it
 * nvqueue.ko, which has no table of devices, matches none.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define DEVICE	"/sys/bus/pci/devices/%s"

int need_root(void)
{
	char path[PATH_MAX];

	sys_path(path, "/sys/bus/pci/drivers_probe");
	if (!access(path, W_OK))
		return 0;
	complain("cannot write %s: %m; only root may move a drive to another driver",
		 path);
	return -1;
}

void hold_signals(bool on)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTERM);
	sigprocmask(on ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static bool has_driver(const char *driver)
{
	return sys_exists("/sys/bus/pci/drivers/%s", driver);
}

int load_driver(const char *driver)
{
	const char *const argv[] = { "modprobe", driver, NULL };
	int ret;

	if (has_driver(driver))
		return 0;
	ret = run(argv);
	if (has_driver(driver))
		return 0;
	if (ret < 0)
		complain("driver %s is not loaded, and modprobe cannot be run: %s; insmod %s.ko by hand",
			 driver, strerror(-ret), driver);
	else
		complain("driver %s is not loaded, and modprobe %s ended with status %d; install the module for this kernel, or insmod %s.ko by hand",
			 driver, driver, ret, driver);
	return -1;
}

void read_override(const char *bdf, char override[NAME_LEN])
{
	sys_read(override, NAME_LEN, DEVICE "/driver_override", bdf);
	if (!strcmp(override, "(null)"))
		override[0] = '\0';
}

static int write_override(const char *bdf, const char *override)
{
	char line[NAME_LEN + 1];
	int ret;

	snprintf(line, sizeof(line), "%s\n", override);
	ret = sys_write(line, DEVICE "/driver_override", bdf);
	if (ret)
		complain("%s: cannot set driver_override to \"%s\": %s", bdf,
			 override, strerror(-ret));
	return ret;
}

static int unbind(const char *bdf)
{
	char driver[NAME_LEN];
	int ret;

	pci_driver(bdf, driver);
	if (!driver[0])
		return 0;
	ret = sys_write(bdf, DEVICE "/driver/unbind", bdf);
	if (ret)
		complain("%s: cannot unbind it from %s: %s", bdf, driver,
			 strerror(-ret));
	return ret;
}

int rebind_start(const char *bdf, const char *override)
{
	return write_override(bdf, override) || unbind(bdf) ? -1 : 0;
}

int rebind_finish(const char *bdf, const char *driver)
{
	char now[NAME_LEN];
	int ret;

	ret = sys_write(bdf, "/sys/bus/pci/drivers_probe");
	pci_driver(bdf, now);
	if (!strcmp(now, driver))
		return 0;
	if (now[0])
		complain("%s: %s took it, not %s; see dmesg", bdf, now, driver);
	else
		complain("%s: %s did not take it%s%s; see dmesg", bdf, driver,
			 ret ? ": " : "", ret ? strerror(-ret) : "");
	return -1;
}

int rebind_undo(const char *bdf, const char *override, const char *driver)
{
	char now[NAME_LEN];

	pci_driver(bdf, now);
	if (write_override(bdf, override))
		return -1;
	if (!strcmp(now, driver))
		return 0;
	if (unbind(bdf))
		return -1;
	return driver[0] ? rebind_finish(bdf, driver) : 0;
}
