// SPDX-License-Identifier: MIT
/*
 * nvq: main(), which finds the command and hands it the rest of the line.
 */
#include "config.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

const char *argp_program_version = PACKAGE_STRING;

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} command[] = {
	{ "list", cmd_list },
	{ "bind", cmd_bind },
	{ "unbind", cmd_unbind },
	{ "stats", cmd_stats },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(command) / sizeof(command[0]); i++)
		if (!strcmp(command[i].name, name))
			return &command[i];
	return NULL;
}

/* The command parses from its own name on, which then says "nvq bind". */
static void run_command(const struct command *cmd, struct argp_state *state)
{
	char **argv = &state->argv[state->next - 1];
	int argc = state->argc - state->next + 1;
	char name[32];

	snprintf(name, sizeof(name), "nvq %s", cmd->name);
	argv[0] = name;
	exit(cmd->run(argc, argv));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const struct command *cmd;

	switch (key) {
	case ARGP_KEY_ARG:
		cmd = find_command(arg);
		if (!cmd)
			argp_error(state, "there is no command \"%s\"", arg);
		else
			run_command(cmd, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which command?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = "NVMe hardware queues as files: which drives, which "
		       "queues.\v"
		       "Commands:\n"
		       "  list           the NVMe controllers of this machine\n"
		       "  bind DRIVE     give a drive to nvqueue, unless it is "
		       "in use\n"
		       "  unbind DRIVE   give it back to the nvme driver\n"
		       "  stats [NODE]   what has passed each queue\n"
		       "\n"
		       "nvq COMMAND --help says more about each; so does "
		       "nvq(8).",
	};

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, NULL);
	return EXIT_FAILURE;
}
