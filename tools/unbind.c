// SPDX-License-Identifier: MIT
/*
 * nvq unbind: gives a drive back to nvme.ko.
 */
#include "config.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inuse.h"
#include "tool.h"

#define NODE_TRIES	50
#define NODE_MS		100

struct options {
	char bdf[BDF_LEN];
	bool force;
};

/* Complains about each queue that has an owner; their number. */
static int count_owners(const char *bdf)
{
	char ctrl[NAME_LEN], name[NAME_LEN];
	struct strlist queues = { 0 };
	int owners = 0;

	if (nodes_ctrl(bdf, ctrl))
		return 0;
	nodes_queues(ctrl, &queues);
	for (size_t i = 0; i < queues.nr; i++) {
		long pid = sys_number(0, "/sys/class/nvqueue/%s/owner",
				      queues.str[i]);

		if (!pid)
			continue;
		process_name(pid, name);
		complain("%s: /dev/%s is open in process %ld (%s); end it first, or use --force",
			 bdf, queues.str[i], pid, name);
		owners++;
	}
	strlist_free(&queues);
	return owners;
}

/* nvme.ko brings a drive up in the background; not waited for beyond this. */
static void print_node(const char *bdf)
{
	struct drive drive;

	for (int i = 0; i < NODE_TRIES; i++) {
		drive_scan(&drive, bdf);
		if (drive.ctrl[0] && sys_exists("/dev/%s", drive.ctrl)) {
			printf("%s: bound to nvme, /dev/%s\n", bdf, drive.ctrl);
			drive_free(&drive);
			return;
		}
		drive_free(&drive);
		sleep_ms(NODE_MS);
	}
	printf("%s: bound to nvme; it has no device node yet, see dmesg\n",
	       bdf);
}

static int unbind_drive(const struct options *opt)
{
	char driver[NAME_LEN];
	int ret;

	pci_driver(opt->bdf, driver);
	if (!strcmp(driver, "nvme")) {
		printf("%s: already bound to nvme\n", opt->bdf);
		return 0;
	}
	if (driver[0] && strcmp(driver, "nvqueue")) {
		complain("%s: it belongs to %s, not to nvqueue", opt->bdf,
			 driver);
		return -1;
	}
	if (!opt->force && count_owners(opt->bdf))
		return -1;
	if (load_driver("nvme"))
		return -1;
	hold_signals(true);
	ret = rebind_start(opt->bdf, "");
	if (!ret)
		ret = rebind_finish(opt->bdf, "nvme");
	hold_signals(false);
	if (!ret)
		print_node(opt->bdf);
	return ret;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *opt = state->input;

	switch (key) {
	case 'f':
		opt->force = true;
		return 0;
	case ARGP_KEY_ARG:
		if (opt->bdf[0])
			argp_error(state, "one drive at a time");
		if (pci_resolve(arg, opt->bdf))
			exit(EXIT_FAILURE);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which drive?  See nvq list");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_unbind(int argc, char **argv)
{
	static const struct argp_option option[] = {
		{ "force", 'f', NULL, 0,
		  "Even if a process has a queue open: its commands end with "
		  "an error", 0 },
		{ 0 },
	};
	static const struct argp argp = {
		.options = option,
		.parser = parse,
		.args_doc = "DRIVE",
		.doc = "Give a drive back to the nvme driver.\v"
		       "DRIVE is a PCI address (0000:03:00.0 or 03:00.0) or a "
		       "device of the drive (/dev/nvq0, /dev/nvq0poll0).",
	};
	struct options opt = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &opt);
	if (need_root() || unbind_drive(&opt))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
