// SPDX-License-Identifier: MIT
/*
 * nvq: reading and writing the kernel's small files.
 *
 * Every path starts with sysfs_root, so that the tests can lay out a machine of
 * their own in a directory.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

const char *sysfs_root = "";

static void vpath(char path[PATH_MAX], const char *fmt, va_list args)
{
	int len = snprintf(path, PATH_MAX, "%s", sysfs_root);

	if (len < 0 || len >= PATH_MAX)
		len = 0;
	vsnprintf(path + len, PATH_MAX - len, fmt, args);
}

#define VPATH(path, fmt)			\
	do {					\
		va_list args_;			\
						\
		va_start(args_, fmt);		\
		vpath(path, fmt, args_);	\
		va_end(args_);			\
	} while (0)

void sys_path(char path[PATH_MAX], const char *fmt, ...)
{
	VPATH(path, fmt);
}

bool sys_exists(const char *fmt, ...)
{
	char path[PATH_MAX];

	VPATH(path, fmt);
	return !access(path, F_OK);
}

static int read_line(const char *path, char *buf, size_t size)
{
	ssize_t len;
	int fd;

	buf[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, buf, size - 1);
	if (len < 0)
		len = -errno;
	close(fd);
	if (len < 0)
		return len;
	buf[len] = '\0';
	len = strcspn(buf, "\n");
	while (len && (buf[len - 1] == ' ' || buf[len - 1] == '\t'))
		len--;
	buf[len] = '\0';
	return 0;
}

int sys_read(char *buf, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];

	VPATH(path, fmt);
	return read_line(path, buf, size);
}

int64_t sys_number(int64_t fallback, const char *fmt, ...)
{
	char path[PATH_MAX], buf[64], *end;
	int64_t val;

	VPATH(path, fmt);
	if (read_line(path, buf, sizeof(buf)))
		return fallback;
	errno = 0;
	val = strtoll(buf, &end, 0);
	if (errno || end == buf || *end)
		return fallback;
	return val;
}

int sys_write(const char *value, const char *fmt, ...)
{
	char path[PATH_MAX];
	ssize_t len;
	int fd, ret = 0;

	VPATH(path, fmt);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = write(fd, value, strlen(value));
	if (len < 0)
		ret = -errno;
	close(fd);
	return ret;
}

int sys_link(char *buf, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX], target[PATH_MAX], *name;
	ssize_t len;

	buf[0] = '\0';
	VPATH(path, fmt);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	target[len] = '\0';
	name = strrchr(target, '/');
	snprintf(buf, size, "%s", name ? name + 1 : target);
	return 0;
}

void sys_list(struct strlist *list, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	VPATH(path, fmt);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			strlist_add(list, "%s", entry->d_name);
	closedir(dir);
	strlist_sort(list);
}
