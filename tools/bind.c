// SPDX-License-Identifier: MIT
/*
 * nvq bind: takes a drive that nobody uses from nvme.ko and gives it to
 * nvqueue.ko, or leaves everything as it was.
 */
#include "config.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inuse.h"
#include "tool.h"

#define READY_TRIES	100
#define READY_MS	100

static void warn_others(const struct drive *drive)
{
	for (size_t i = 0; i < drive->others.nr; i++)
		complain("%s: warning: %s reaches its namespaces as well and keeps doing so; do not use them there",
			 drive->bdf, drive->others.str[i]);
}

/* Puts the drive back; there is nothing more to do if that fails too. */
static void restore(const char *bdf, const char *override, const char *driver)
{
	if (rebind_undo(bdf, override, driver))
		complain("%s: it could not be given back; try: nvq unbind %s",
			 bdf, bdf);
	else if (driver[0])
		complain("%s: it is with %s as before", bdf, driver);
}

/*
 * The hold ends with the unbind: there is nothing left to hold, and while it is
 * open the old controller keeps its number, so that a drive given back would
 * come up under another name.
 */
static int move(const char *bdf, struct hold *hold)
{
	int ret = rebind_start(bdf, "nvqueue");

	hold_release(hold);
	return ret ? ret : rebind_finish(bdf, "nvqueue");
}

static int take(struct drive *drive, const char *old_driver)
{
	char old_override[NAME_LEN];
	struct hold hold;
	int ret;

	if (hold_unused(&hold, drive))
		return -1;
	warn_others(drive);
	read_override(drive->bdf, old_override);
	hold_signals(true);
	ret = move(drive->bdf, &hold);
	if (ret)
		restore(drive->bdf, old_override, old_driver);
	hold_signals(false);
	return ret;
}

static int wait_ready(const char *bdf)
{
	for (int i = 0; i < READY_TRIES; i++) {
		if (nodes_ready(bdf))
			return 0;
		sleep_ms(READY_MS);
	}
	complain("%s: bound to nvqueue, but it is not up after %d s; see dmesg, and give it back with nvq unbind %s",
		 bdf, READY_TRIES * READY_MS / 1000, bdf);
	return -1;
}

static int bind_drive(const char *bdf)
{
	char driver[NAME_LEN];
	struct drive drive;
	int ret;

	pci_driver(bdf, driver);
	if (!strcmp(driver, "nvqueue")) {
		printf("%s: already bound to nvqueue\n", bdf);
		nodes_print(bdf);
		return 0;
	}
	if (driver[0] && strcmp(driver, "nvme")) {
		complain("%s: it belongs to %s, which may have given it to a virtual machine or another program; if it has not: echo %s > /sys/bus/pci/drivers/%s/unbind",
			 bdf, driver, bdf, driver);
		return -1;
	}
	if (load_driver("nvqueue"))
		return -1;
	drive_scan(&drive, bdf);
	ret = take(&drive, driver);
	drive_free(&drive);
	if (ret || wait_ready(bdf))
		return -1;
	printf("%s: bound to nvqueue\n", bdf);
	nodes_print(bdf);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *bdf = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (bdf[0])
			argp_error(state, "one drive at a time");
		if (pci_resolve(arg, bdf))
			exit(EXIT_FAILURE);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which drive?  See nvq list");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_bind(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "DRIVE",
		.doc = "Give a drive to nvqueue, unless it is in use.\v"
		       "DRIVE is a PCI address (0000:03:00.0 or 03:00.0) or a "
		       "device of the drive (/dev/nvme0, /dev/nvme0n1).",
	};
	char bdf[BDF_LEN] = "";

	argp_parse(&argp, argc, argv, 0, NULL, bdf);
	if (need_root() || bind_drive(bdf))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
