// SPDX-License-Identifier: MIT
/*
 * nvq: a drive as nvqueue.ko shows it: nvqN and its queues.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tool.h"

#define CLASS	"/sys/class/nvqueue"

int nodes_ctrl(const char *bdf, char ctrl[NAME_LEN])
{
	struct strlist names = { 0 };
	int ret = -1;

	sys_list(&names, "/sys/bus/pci/devices/%s/nvqueue", bdf);
	if (names.nr) {
		snprintf(ctrl, NAME_LEN, "%s", names.str[0]);
		ret = 0;
	}
	strlist_free(&names);
	return ret;
}

/* nvq1poll0 is nvq1's, and nvq10poll0 is not. */
static bool is_queue_of(const char *name, const char *ctrl)
{
	size_t len = strlen(ctrl);

	return !strncmp(name, ctrl, len) &&
	       (!strncmp(name + len, "poll", 4) ||
		!strncmp(name + len, "irq", 3));
}

static void add_kind(const struct strlist *names, const char *ctrl, char kind,
		     struct strlist *list)
{
	for (size_t i = 0; i < names->nr; i++)
		if (is_queue_of(names->str[i], ctrl) &&
		    names->str[i][strlen(ctrl)] == kind)
			strlist_add(list, "%s", names->str[i]);
}

void nodes_queues(const char *ctrl, struct strlist *list)
{
	struct strlist names = { 0 };

	sys_list(&names, CLASS);
	add_kind(&names, ctrl, 'p', list);
	add_kind(&names, ctrl, 'i', list);
	strlist_free(&names);
}

bool nodes_ready(const char *bdf)
{
	struct strlist queues = { 0 };
	char ctrl[NAME_LEN], state[NAME_LEN];
	bool ready;

	if (nodes_ctrl(bdf, ctrl))
		return false;
	sys_read(state, sizeof(state), CLASS "/%s/state", ctrl);
	nodes_queues(ctrl, &queues);
	ready = !strcmp(state, "live") && sys_exists("/dev/%s", ctrl) &&
		(int64_t)queues.nr ==
			sys_number(-1, CLASS "/%s/nr_poll", ctrl) +
			sys_number(0, CLASS "/%s/nr_irq", ctrl);
	for (size_t i = 0; ready && i < queues.nr; i++)
		ready = sys_exists("/dev/%s", queues.str[i]);
	strlist_free(&queues);
	return ready;
}

static void print_queue(const char *queue)
{
	char kind[NAME_LEN];

	sys_read(kind, sizeof(kind), CLASS "/%s/kind", queue);
	printf("  /dev/%-12s  %s, depth %d\n", queue, kind,
	       (int)sys_number(0, CLASS "/%s/depth", queue));
}

void nodes_print(const char *bdf)
{
	struct strlist queues = { 0 };
	char ctrl[NAME_LEN], model[NAME_LEN];

	if (nodes_ctrl(bdf, ctrl))
		return;
	sys_read(model, sizeof(model), CLASS "/%s/model", ctrl);
	printf("  /dev/%-12s  controller, %s\n", ctrl, model);
	nodes_queues(ctrl, &queues);
	for (size_t i = 0; i < queues.nr; i++)
		print_queue(queues.str[i]);
	strlist_free(&queues);
}
