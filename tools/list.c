// SPDX-License-Identifier: MIT
/*
 * nvq list: every NVMe controller of the machine, whichever driver has it.
 */
#include "config.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inuse.h"
#include "json.h"
#include "tool.h"

#define PCI	"/sys/bus/pci/devices"
#define CLASS	"/sys/class/nvqueue"

struct space {
	int64_t nsid, lba_size, size;
	char node[NAME_LEN];	/* "" under nvqueue */
};

struct queue {
	char name[NAME_LEN], kind[NAME_LEN], state[NAME_LEN];
	int64_t qid, depth, owner;
};

struct entry {
	const char *bdf;
	char driver[NAME_LEN], node[NAME_LEN];
	char model[NAME_LEN], serial[NAME_LEN], firmware[NAME_LEN];
	char state[NAME_LEN];
	int64_t numa_node;
	struct space *space;
	size_t nr_spaces;
	struct queue *queue;
	size_t nr_queues;
};

static struct space *add_space(struct entry *entry)
{
	entry->space = xrealloc(entry->space, entry->nr_spaces + 1,
				sizeof(*entry->space));
	return memset(&entry->space[entry->nr_spaces++], 0,
		      sizeof(*entry->space));
}

/* ---- under nvme.ko ---- */

static void add_disk(struct entry *entry, const char *disk)
{
	struct space *space = add_space(entry);

	snprintf(space->node, sizeof(space->node), "%s", disk);
	space->nsid = sys_number(0, "/sys/class/block/%s/nsid", disk);
	space->lba_size = sys_number(
		0, "/sys/class/block/%s/queue/logical_block_size", disk);
	space->size = 512 * sys_number(0, "/sys/class/block/%s/size", disk);
}

static void fill_nvme(struct entry *entry)
{
	struct drive drive;

	drive_scan(&drive, entry->bdf);
	snprintf(entry->node, sizeof(entry->node), "%s", drive.ctrl);
	for (size_t i = 0; i < drive.nr; i++)
		if (drive.node[i].kind == NODE_DISK)
			add_disk(entry, drive.node[i].name);
	drive_free(&drive);
}

/* ---- under nvqueue.ko ---- */

/* Lines of: nsid lba_size nsze metadata_size csi */
static void fill_spaces(struct entry *entry)
{
	int64_t nsid, lba_size, nsze;
	char path[PATH_MAX], line[NAME_LEN];
	struct space *space;
	FILE *file;

	sys_path(path, CLASS "/%s/namespaces", entry->node);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNd64 " %" SCNd64 " %" SCNd64, &nsid,
			   &lba_size, &nsze) != 3)
			continue;
		space = add_space(entry);
		space->nsid = nsid;
		space->lba_size = lba_size;
		space->size = lba_size * nsze;
	}
	fclose(file);
}

static void fill_queue(struct queue *queue, const char *name)
{
	snprintf(queue->name, sizeof(queue->name), "%s", name);
	sys_read(queue->kind, NAME_LEN, CLASS "/%s/kind", name);
	sys_read(queue->state, NAME_LEN, CLASS "/%s/state", name);
	queue->qid = sys_number(0, CLASS "/%s/qid", name);
	queue->depth = sys_number(0, CLASS "/%s/depth", name);
	queue->owner = sys_number(0, CLASS "/%s/owner", name);
}

static void fill_nvqueue(struct entry *entry)
{
	struct strlist queues = { 0 };

	if (nodes_ctrl(entry->bdf, entry->node))
		return;
	fill_spaces(entry);
	nodes_queues(entry->node, &queues);
	entry->queue = xrealloc(NULL, queues.nr + 1, sizeof(*entry->queue));
	for (size_t i = 0; i < queues.nr; i++)
		fill_queue(&entry->queue[entry->nr_queues++], queues.str[i]);
	strlist_free(&queues);
}

static void fill(struct entry *entry, const char *bdf)
{
	const char *class = "nvme";

	*entry = (struct entry){ .bdf = bdf };
	pci_driver(bdf, entry->driver);
	entry->numa_node = sys_number(-1, PCI "/%s/numa_node", bdf);
	if (!strcmp(entry->driver, "nvqueue")) {
		class = "nvqueue";
		fill_nvqueue(entry);
	} else {
		fill_nvme(entry);
	}
	if (!entry->node[0])
		return;
	sys_read(entry->model, NAME_LEN, "/sys/class/%s/%s/model", class,
		 entry->node);
	sys_read(entry->serial, NAME_LEN, "/sys/class/%s/%s/serial", class,
		 entry->node);
	sys_read(entry->firmware, NAME_LEN, "/sys/class/%s/%s/firmware_rev",
		 class, entry->node);
	sys_read(entry->state, NAME_LEN, "/sys/class/%s/%s/state", class,
		 entry->node);
}

static void release(struct entry *entry)
{
	free(entry->space);
	free(entry->queue);
}

/* ---- output ---- */

static void json_space(const struct space *space)
{
	json_object(NULL);
	json_number("nsid", space->nsid);
	json_string("node", space->node);
	json_number("lba_size", space->lba_size);
	json_number("size", space->size);
	json_end();
}

static void json_queue(const struct queue *queue)
{
	json_object(NULL);
	json_string("node", queue->name);
	json_string("kind", queue->kind);
	json_number("qid", queue->qid);
	json_number("depth", queue->depth);
	json_string("state", queue->state);
	json_number("owner", queue->owner);
	json_end();
}

static void json_entry(const struct entry *entry)
{
	json_object(NULL);
	json_string("address", entry->bdf);
	json_string("driver", entry->driver);
	json_string("node", entry->node);
	json_string("state", entry->state);
	json_string("model", entry->model);
	json_string("serial", entry->serial);
	json_string("firmware_rev", entry->firmware);
	json_number("numa_node", entry->numa_node);
	json_array("namespaces");
	for (size_t i = 0; i < entry->nr_spaces; i++)
		json_space(&entry->space[i]);
	json_end();
	json_array("queues");
	for (size_t i = 0; i < entry->nr_queues; i++)
		json_queue(&entry->queue[i]);
	json_end();
	json_end();
}

static void print_space(const struct space *space)
{
	char size[16], node[NAME_LEN + 8] = "namespace";

	if (space->node[0])
		snprintf(node, sizeof(node), "/dev/%s", space->node);
	printf("  %-17s  nsid %" PRId64 ", %s, LBA %" PRId64 " B\n", node,
	       space->nsid, human_size(space->size, size), space->lba_size);
}

static void print_queue(const struct queue *queue)
{
	char owner[NAME_LEN];

	printf("  /dev/%-12s  %-9s  depth %" PRId64 ", ", queue->name,
	       queue->kind, queue->depth);
	if (!queue->owner) {
		puts("free");
		return;
	}
	process_name(queue->owner, owner);
	printf("owner %" PRId64 " (%s)\n", queue->owner, owner);
}

static void print_entry(const struct entry *entry)
{
	printf("%s  %s", entry->bdf,
	       entry->driver[0] ? entry->driver : "(no driver)");
	if (entry->node[0])
		printf("  /dev/%s  %s  serial %s  %s", entry->node,
		       entry->model, entry->serial, entry->state);
	putchar('\n');
	for (size_t i = 0; i < entry->nr_spaces; i++)
		print_space(&entry->space[i]);
	for (size_t i = 0; i < entry->nr_queues; i++)
		print_queue(&entry->queue[i]);
}

static void list(bool json)
{
	struct strlist bdfs = { 0 };
	struct entry entry;

	pci_list(&bdfs);
	if (json) {
		json_object(NULL);
		json_array("controllers");
	} else if (!bdfs.nr) {
		puts("no NVMe controller in this machine");
	}
	for (size_t i = 0; i < bdfs.nr; i++) {
		fill(&entry, bdfs.str[i]);
		(json ? json_entry : print_entry)(&entry);
		release(&entry);
	}
	if (json) {
		json_end();
		json_end();
	}
	strlist_free(&bdfs);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	bool *json = state->input;

	switch (key) {
	case 'j':
		*json = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is too much: it lists all", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_list(int argc, char **argv)
{
	static const struct argp_option option[] = {
		{ "json", 'j', NULL, 0, "Print JSON", 0 },
		{ 0 },
	};
	static const struct argp argp = {
		.options = option,
		.parser = parse,
		.doc = "List the NVMe controllers of this machine: address, "
		       "driver, nodes, namespaces, and the queues of those "
		       "that nvqueue has.",
	};
	bool json = false;

	argp_parse(&argp, argc, argv, 0, NULL, &json);
	list(json);
	return EXIT_SUCCESS;
}
