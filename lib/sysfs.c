// SPDX-License-Identifier: MIT
/*
 * What sysfs says about controllers and queues, without opening any of them:
 * names, kinds, owners, sizes.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "internal.h"

const char *nvq_sysfs = "/sys";

static int read_file(const char *path, char *buf, size_t len)
{
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	while (n && isspace((unsigned char)buf[n - 1]))
		n--;
	buf[n] = '\0';
	return 0;
}

int nvq_attr(const char *name, const char *attr, char *buf, size_t len)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/class/nvqueue/%s/%s", nvq_sysfs, name,
		 attr);
	return read_file(path, buf, len);
}

int nvq_attr_u64(const char *name, const char *attr, uint64_t *val)
{
	char buf[64], *end;
	int ret;

	ret = nvq_attr(name, attr, buf, sizeof(buf));
	if (ret)
		return ret;
	errno = 0;
	*val = strtoull(buf, &end, 0);
	return errno || end == buf || *end ? -EINVAL : 0;
}

const char *nvq_owner_text(const char *name, char *buf, size_t len)
{
	char path[64], comm[32];
	uint64_t pid;

	if (nvq_attr_u64(name, "owner", &pid) || !pid)
		return "another process";
	snprintf(path, sizeof(path), "/proc/%llu/comm",
		 (unsigned long long)pid);
	if (read_file(path, comm, sizeof(comm)))
		strcpy(comm, "gone");
	snprintf(buf, len, "pid %llu (%s)", (unsigned long long)pid, comm);
	return buf;
}

const char *nvq_kind_name(enum nvq_kind kind)
{
	switch (kind) {
	case NVQ_KIND_POLL:
		return "poll";
	case NVQ_KIND_IRQ:
		return "irq";
	default:
		return "controller";
	}
}

/* The kernel's name of a device number: where its /sys/dev/char link ends. */
static int kernel_name(dev_t dev, char *name, size_t len)
{
	char link[PATH_MAX], target[PATH_MAX];
	const char *base;
	ssize_t n;

	snprintf(link, sizeof(link), "%s/dev/char/%u:%u", nvq_sysfs, major(dev),
		 minor(dev));
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	base = strrchr(target, '/');
	base = base ? base + 1 : target;
	if (strlen(base) >= len)
		return -ENAMETOOLONG;
	strcpy(name, base);
	return 0;
}

/* "nvq0", "nvq0poll1", "nvq0irq2": a name of ours, or -ENOTTY. */
static int parse_name(struct nvq_info *info, const char *name)
{
	unsigned int ctrl;
	int end = 0;

	info->number = 0;
	if (sscanf(name, "nvq%u%n", &ctrl, &end) != 1)
		return -ENOTTY;
	snprintf(info->name, sizeof(info->name), "%s", name);
	snprintf(info->ctrl, sizeof(info->ctrl), "nvq%u", ctrl);
	info->geo.instance = ctrl;
	name += end;
	if (!*name) {
		info->kind = NVQ_KIND_CTRL;
		return 0;
	}
	info->kind = NVQ_KIND_POLL;
	if (sscanf(name, "poll%u%n", &info->number, &end) == 1 && !name[end])
		return 0;
	info->kind = NVQ_KIND_IRQ;
	if (sscanf(name, "irq%u%n", &info->number, &end) == 1 && !name[end])
		return 0;
	return -ENOTTY;
}

int nvq_identify(struct nvq_info *info, const char *path, struct nvq_error *err)
{
	char name[NVQ_NAME_LEN];
	struct stat st;

	memset(info, 0, sizeof(*info));
	if (stat(path, &st)) {
		if (errno != ENOENT)
			return nvq_fail(err, -errno, "%s: %s", path,
					strerror(errno));
		return nvq_fail(err, -ENOENT,
				"%s does not exist: is the controller bound to nvqueue? `nvq list` shows the queues there are",
				path);
	}
	if (!S_ISCHR(st.st_mode) ||
	    kernel_name(st.st_rdev, name, sizeof(name)) ||
	    parse_name(info, name))
		return nvq_fail(err, -ENOTTY,
				"%s is not an nvqueue file: name a queue (/dev/nvq0poll0, /dev/nvq0irq0) or a controller (/dev/nvq0)",
				path);
	return 0;
}

/* What one line of a controller's "namespaces" says. */
static int parse_namespace(struct nvq_geometry *geo, const char *line)
{
	unsigned long long nsze;
	unsigned int ms, csi;

	if (sscanf(line, "%u %u %llu %u %u", &geo->nsid, &geo->lba_size, &nsze,
		   &ms, &csi) != 5 || !geo->lba_size)
		return -ENODATA;
	geo->nsze = nsze;
	geo->metadata_size = ms;
	geo->csi = csi;
	return 0;
}

static int no_namespace(const struct nvq_info *info, uint32_t nsid,
			struct nvq_error *err)
{
	return nvq_fail(err, -EINVAL,
			"%s has no active namespace %u: `nvq list` shows what it has",
			info->ctrl, nsid);
}

/* Namespace @nsid, 0: the first, that is the lowest active one. */
static int sizes_from_sysfs(struct nvq_info *info, uint32_t nsid,
			    struct nvq_error *err)
{
	struct nvq_geometry *geo = &info->geo;
	char buf[4096], *line, *save;
	uint64_t mdts, depth;

	if (nvq_attr_u64(info->ctrl, "mdts", &mdts) ||
	    nvq_attr_u64(info->ctrl, "depth", &depth) ||
	    nvq_attr(info->ctrl, "namespaces", buf, sizeof(buf)))
		return -ENODATA;
	geo->mdts = mdts;
	geo->depth = depth;
	for (line = strtok_r(buf, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (parse_namespace(geo, line))
			return -ENODATA;
		if (!nsid || geo->nsid == nsid)
			return 0;
	}
	return no_namespace(info, nsid, err);
}

/* The controller's node: beside @path, whatever directory that is. */
static int ctrl_path(const struct nvq_info *info, const char *path, char *out,
		     size_t len)
{
	char real[PATH_MAX];
	int n;

	if (info->kind == NVQ_KIND_CTRL)
		n = snprintf(out, len, "%s", path);
	else if (realpath(path, real))
		n = snprintf(out, len, "%.*s/%s",
			     (int)(strrchr(real, '/') - real), real,
			     info->ctrl);
	else
		return -errno;
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

static int sizes_from_ctrl(struct nvq_info *info, const char *path,
			   uint32_t nsid, struct nvq_error *err)
{
	struct nvq_geometry geo = { .nsid = nsid };
	char node[PATH_MAX], why[NVQ_WHY_LEN];
	int fd, ret;

	ret = ctrl_path(info, path, node, sizeof(node));
	if (ret)
		return nvq_fail(err, ret, "%s: %s", path, strerror(-ret));
	fd = open(node, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return nvq_fail(err, -errno,
				"%s: %s; the sizes of namespace %u are asked of it",
				node, nvq_why(-errno, why, sizeof(why)), nsid);
	ret = ioctl(fd, NVQ_IOC_GEOMETRY, &geo) ? -errno : 0;
	close(fd);
	if (ret == -EINVAL)
		return no_namespace(info, nsid, err);
	if (ret)
		return nvq_fail(err, ret, "%s: %s", node, strerror(-ret));
	info->geo = geo;
	return 0;
}

int nvq_query(struct nvq_info *info, const char *path, uint32_t nsid,
	      struct nvq_error *err)
{
	uint64_t val;
	int ret;

	ret = nvq_identify(info, path, err);
	if (ret)
		return ret;
	if (!nvq_attr_u64(info->name, "owner", &val))
		info->owner = val;
	ret = sizes_from_sysfs(info, nsid, err);
	if (ret != -ENODATA)
		return ret;
	return sizes_from_ctrl(info, path, nsid, err);
}

int nvq_count(const char *ctrl, enum nvq_kind kind, unsigned int *exist,
	      unsigned int *unowned)
{
	const char *word = nvq_kind_name(kind);
	char name[NVQ_NAME_LEN * 2];
	uint64_t owner;
	int ret;

	*exist = *unowned = 0;
	for (;; ++*exist) {
		snprintf(name, sizeof(name), "%s%s%u", ctrl, word, *exist);
		ret = nvq_attr_u64(name, "owner", &owner);
		if (ret)
			return ret == -EMFILE || ret == -ENFILE ? ret : 0;
		*unowned += !owner;
	}
}
