// SPDX-License-Identifier: MIT
/*
 * nvq stats: the counters of queues.
 */
#include "config.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "tool.h"

#define CLASS	"/sys/class/nvqueue"

enum { NR_COUNTERS = 6 };

static const struct counter {
	const char *attr;
	const char *title;
} counter[NR_COUNTERS] = {
	{ "submitted", "submitted" },
	{ "completed", "completed" },
	{ "sq_doorbells", "sq doorbells" },
	{ "cq_doorbells", "cq doorbells" },
	{ "reap_empty", "empty reaps" },
	{ "iopoll_empty", "empty iopolls" },
};

struct sample {
	int64_t val[NR_COUNTERS];
};

struct options {
	struct strlist queues;
	bool json;
	unsigned int watch;	/* seconds, 0: once */
};

static void add_ctrl(struct strlist *queues, const char *ctrl)
{
	nodes_queues(ctrl, queues);
}

/* "/dev/nvq0poll0", "nvq0": a queue, or all of a controller's */
static int add_node(struct strlist *queues, const char *node)
{
	const char *base = strrchr(node, '/');
	const char *name = base ? base + 1 : node;

	if (!name[0] || !sys_exists(CLASS "/%s", name)) {
		complain("%s is no node of nvqueue; see nvq list", node);
		return -1;
	}
	if (sys_exists(CLASS "/%s/qid", name))
		strlist_add(queues, "%s", name);
	else
		add_ctrl(queues, name);
	return 0;
}

static void add_all(struct strlist *queues)
{
	struct strlist names = { 0 };

	sys_list(&names, CLASS);
	for (size_t i = 0; i < names.nr; i++)
		if (!sys_exists(CLASS "/%s/qid", names.str[i]))
			add_ctrl(queues, names.str[i]);
	strlist_free(&names);
}

static void read_sample(const char *queue, struct sample *sample)
{
	for (int i = 0; i < NR_COUNTERS; i++)
		sample->val[i] = sys_number(0, CLASS "/%s/%s", queue,
					    counter[i].attr);
}

/* Rates, or the totals themselves if there is no earlier sample. */
static struct sample change(const struct sample *now, const struct sample *was,
			    unsigned int seconds)
{
	struct sample diff = *now;

	if (!was)
		return diff;
	for (int i = 0; i < NR_COUNTERS; i++) {
		/* Counters start over when the queue is opened again. */
		if (diff.val[i] >= was->val[i])
			diff.val[i] -= was->val[i];
		diff.val[i] /= seconds;
	}
	return diff;
}

static void print_heading(void)
{
	printf("%-14s", "queue");
	for (int i = 0; i < NR_COUNTERS; i++)
		printf(" %14s", counter[i].title);
	putchar('\n');
}

static void print_sample(const char *queue, const struct sample *sample)
{
	printf("%-14s", queue);
	for (int i = 0; i < NR_COUNTERS; i++)
		printf(" %14" PRId64, sample->val[i]);
	putchar('\n');
}

static void json_sample(const char *queue, const struct sample *sample)
{
	json_object(NULL);
	json_string("node", queue);
	for (int i = 0; i < NR_COUNTERS; i++)
		json_number(counter[i].attr, sample->val[i]);
	json_end();
}

/* One round over all queues; was is NULL, or the round before and updated. */
static void show(const struct options *opt, struct sample *was)
{
	struct sample now, out;

	if (opt->json) {
		json_object(NULL);
		json_array("queues");
	} else {
		print_heading();
	}
	for (size_t i = 0; i < opt->queues.nr; i++) {
		read_sample(opt->queues.str[i], &now);
		out = change(&now, was ? &was[i] : NULL, opt->watch);
		(opt->json ? json_sample : print_sample)(opt->queues.str[i],
							 &out);
		if (was)
			was[i] = now;
	}
	if (opt->json) {
		json_end();
		json_end();
	}
	fflush(stdout);
}

/* Until interrupted, or nobody reads any more. */
static void watch(const struct options *opt)
{
	struct sample *was;

	was = xrealloc(NULL, opt->queues.nr, sizeof(*was));
	for (size_t i = 0; i < opt->queues.nr; i++)
		read_sample(opt->queues.str[i], &was[i]);
	while (!ferror(stdout)) {
		sleep_ms(opt->watch * 1000);
		show(opt, was);
	}
	free(was);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *opt = state->input;
	char *end;

	switch (key) {
	case 'j':
		opt->json = true;
		return 0;
	case 'w':
		opt->watch = strtoul(arg, &end, 10);
		if (*end || opt->watch < 1 || opt->watch > 3600)
			argp_error(state, "--watch takes 1 to 3600 seconds, not \"%s\"",
				   arg);
		return 0;
	case ARGP_KEY_ARG:
		if (add_node(&opt->queues, arg))
			exit(EXIT_FAILURE);
		return 0;
	case ARGP_KEY_NO_ARGS:
		add_all(&opt->queues);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_stats(int argc, char **argv)
{
	static const struct argp_option option[] = {
		{ "json", 'j', NULL, 0, "Print JSON", 0 },
		{ "watch", 'w', "SECONDS", 0,
		  "Print again and again, as rates per second", 0 },
		{ 0 },
	};
	static const struct argp argp = {
		.options = option,
		.parser = parse,
		.args_doc = "[NODE...]",
		.doc = "Print the counters of queues.\v"
		       "NODE is a queue (/dev/nvq0poll0) or a controller "
		       "(/dev/nvq0), which stands for all its queues; without "
		       "one, all queues.",
	};
	struct options opt = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &opt);
	if (!opt.queues.nr) {
		complain("no queue: no drive is bound to nvqueue; see nvq list and nvq bind");
		return EXIT_FAILURE;
	}
	if (opt.watch)
		watch(&opt);
	else
		show(&opt, NULL);
	strlist_free(&opt.queues);
	return EXIT_SUCCESS;
}
