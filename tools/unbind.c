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

#define NODE_TRIES	30
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

/* Namespaces that nvqueue sees, each of which nvme.ko will make a node for. */
static size_t count_namespaces(const char *bdf)
{
	char ctrl[NAME_LEN], path[PATH_MAX];
	size_t nr = 0;
	FILE *file;
	int c;

	if (nodes_ctrl(bdf, ctrl))
		return 0;
	sys_path(path, "/sys/class/nvqueue/%s/namespaces", ctrl);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while ((c = getc(file)) != EOF)
		nr += c == '\n';
	fclose(file);
	return nr;
}

/* Nodes of namespaces that are there; ctrl is "" if even the controller's is not */
static size_t count_disks(const char *bdf, char ctrl[NAME_LEN])
{
	struct drive drive;
	size_t nr = 0;

	drive_scan(&drive, bdf);
	snprintf(ctrl, NAME_LEN, "%s", drive.ctrl);
	for (size_t i = 0; i < drive.nr; i++)
		if (drive.node[i].kind == NODE_DISK &&
		    sys_exists("/dev/%s", drive.node[i].name))
			nr++;
	drive_free(&drive);
	return nr;
}

/* nvme.ko brings a drive up in the background: waits a while for its nodes. */
static void print_node(const char *bdf, size_t namespaces)
{
	char ctrl[NAME_LEN];

	for (int i = 0; i < NODE_TRIES; i++) {
		if (count_disks(bdf, ctrl) >= namespaces && ctrl[0])
			break;
		sleep_ms(NODE_MS);
	}
	if (ctrl[0])
		printf("%s: bound to nvme, /dev/%s\n", bdf, ctrl);
	else
		printf("%s: bound to nvme, which has no device node for it yet; see dmesg\n",
		       bdf);
}

static int unbind_drive(const struct options *opt)
{
	char driver[NAME_LEN];
	size_t namespaces;
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
	namespaces = count_namespaces(opt->bdf);
	hold_signals(true);
	ret = rebind_start(opt->bdf, "");
	if (!ret)
		ret = rebind_finish(opt->bdf, "nvme");
	hold_signals(false);
	if (!ret)
		print_node(opt->bdf, namespaces);
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
