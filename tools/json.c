// SPDX-License-Identifier: MIT
/*
 * nvq: writing JSON to standard output.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "json.h"

#define MAX_DEPTH	8

/* What is open, from the outside in. */
static struct {
	char close;
	bool filled;
} level[MAX_DEPTH];
static int depth;

static void print_quoted(const char *str)
{
	putchar('"');
	for (; *str; str++) {
		unsigned char c = *str;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void new_line(void)
{
	putchar('\n');
	for (int i = 0; i < depth; i++)
		fputs("  ", stdout);
}

/* All that comes before a value. */
static void begin(const char *key)
{
	if (depth) {
		if (level[depth - 1].filled)
			putchar(',');
		level[depth - 1].filled = true;
		new_line();
	}
	if (key) {
		print_quoted(key);
		fputs(": ", stdout);
	}
}

static void open_level(const char *key, char open, char close)
{
	assert(depth < MAX_DEPTH);
	begin(key);
	putchar(open);
	level[depth].close = close;
	level[depth].filled = false;
	depth++;
}

void json_object(const char *key)
{
	open_level(key, '{', '}');
}

void json_array(const char *key)
{
	open_level(key, '[', ']');
}

void json_end(void)
{
	depth--;
	if (level[depth].filled)
		new_line();
	putchar(level[depth].close);
	if (!depth)
		putchar('\n');
}

void json_string(const char *key, const char *value)
{
	begin(key);
	if (*value)
		print_quoted(value);
	else
		fputs("null", stdout);
}

void json_number(const char *key, int64_t value)
{
	begin(key);
	printf("%" PRId64, value);
}
