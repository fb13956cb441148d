// SPDX-License-Identifier: MIT
/*
 * nvq: lists of strings, messages, running a program.
 */
#include "config.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

static void out_of_memory(void)
{
	fputs("nvq: out of memory\n", stderr);
	exit(EXIT_FAILURE);
}

void *xrealloc(void *ptr, size_t nr, size_t size)
{
	ptr = reallocarray(ptr, nr, size);
	if (!ptr)
		out_of_memory();
	return ptr;
}

void strlist_add(struct strlist *list, const char *fmt, ...)
{
	va_list args;
	char *str;

	va_start(args, fmt);
	if (vasprintf(&str, fmt, args) < 0)
		out_of_memory();
	va_end(args);
	list->str = xrealloc(list->str, list->nr + 1, sizeof(*list->str));
	list->str[list->nr++] = str;
}

bool strlist_has(const struct strlist *list, const char *str)
{
	for (size_t i = 0; i < list->nr; i++)
		if (!strcmp(list->str[i], str))
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

void strlist_sort(struct strlist *list)
{
	if (list->nr)
		qsort(list->str, list->nr, sizeof(*list->str), compare);
}

void strlist_free(struct strlist *list)
{
	for (size_t i = 0; i < list->nr; i++)
		free(list->str[i]);
	free(list->str);
	*list = (struct strlist){ 0 };
}

void complain(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fputs("nvq: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

const char *human_size(uint64_t bytes, char buf[16])
{
	static const char unit[][4] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	double size = bytes;
	int i = -1;

	if (bytes < 1024) {
		snprintf(buf, 16, "%u B", (unsigned int)bytes);
		return buf;
	}
	while (size >= 1024 && i < 4) {
		size /= 1024;
		i++;
	}
	snprintf(buf, 16, "%.1f %s", size, unit[i]);
	return buf;
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = {
		.tv_sec = ms / 1000,
		.tv_nsec = (long)(ms % 1000) * 1000000,
	};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

int run(const char *const argv[])
{
	int status, ret;
	pid_t pid;

	ret = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv,
			   environ);
	if (ret)
		return -ret;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}
