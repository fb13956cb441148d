// SPDX-License-Identifier: MIT
/*
 * Opening, mapping and claiming queue files.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static int open_failed(const char *path, const char *name, int code,
		       struct nvq_error *err)
{
	char owner[64], why[NVQ_WHY_LEN];

	switch (code) {
	case -EBUSY:
		return nvq_fail(err, code,
				"%s is busy: %s owns it; take another queue or wait",
				path,
				nvq_owner_text(name, owner, sizeof(owner)));
	case -EACCES:
	case -EPERM:
		return nvq_fail(err, code,
				"%s: %s; nodes are root's until a udev rule or chmod says otherwise",
				path, strerror(-code));
	case -ENODEV:
	case -ENXIO:
		return nvq_fail(err, code,
				"%s: %s; the controller is dead or was removed, see the kernel log",
				path, strerror(-code));
	default:
		return nvq_fail(err, code, "%s: %s", path,
				nvq_why(code, why, sizeof(why)));
	}
}

static void take_geometry(struct nvq *q, const struct nvq_geometry *geo)
{
	q->geo = *geo;
	q->depth = geo->depth;
	q->nsid = geo->nsid;
	q->lba_shift = geo->lba_size ? __builtin_ctz(geo->lba_size) : 0;
}

int nvq_reload(struct nvq *q, struct nvq_error *err)
{
	struct nvq_geometry geo = { 0 };

	if (ioctl(q->fd, NVQ_IOC_GEOMETRY, &geo))
		return nvq_fail(err, -errno, "%s: reading the geometry: %s",
				q->name, strerror(errno));
	if (geo.abi != NVQ_ABI_VERSION)
		return nvq_fail(err, -EPROTO,
				"%s: the nvqueue module speaks version %u of the interface, this program %u: install both from one build",
				q->name, geo.abi, NVQ_ABI_VERSION);
	take_geometry(q, &geo);
	return 0;
}

static int map_queue(struct nvq *q, struct nvq_error *err)
{
	void *cq, *kpage;

	cq = mmap(NULL, q->geo.cq_bytes, PROT_READ, MAP_SHARED, q->fd,
		  NVQ_MMAP_CQ);
	if (cq == MAP_FAILED)
		goto failed;
	q->cq = cq;
	kpage = mmap(NULL, q->geo.kpage_bytes, PROT_READ, MAP_SHARED, q->fd,
		     NVQ_MMAP_KPAGE);
	if (kpage == MAP_FAILED)
		goto failed;
	q->kpage = kpage;
	return 0;

failed:
	return nvq_fail(err, -errno, "%s: mapping the completion queue: %s",
			q->name, strerror(errno));
}

int nvq_open(struct nvq *q, const char *path, int flags, struct nvq_error *err)
{
	struct nvq_info info;
	int ret;

	memset(q, 0, sizeof(*q));
	q->fd = -1;
	ret = nvq_identify(&info, path, err);
	if (ret)
		return ret;
	strcpy(q->name, info.name);
	q->fd = open(path, flags | O_CLOEXEC);
	if (q->fd < 0)
		return open_failed(path, info.name, -errno, err);
	q->sqe_fd = q->fd;
	ret = nvq_reload(q, err);
	if (!ret && q->geo.kind != NVQ_KIND_CTRL)
		ret = map_queue(q, err);
	if (ret)
		nvq_close(q);
	return ret;
}

void nvq_close(struct nvq *q)
{
	if (!q->name[0])
		return;
	if (q->kpage)
		munmap((void *)q->kpage, q->geo.kpage_bytes);
	if (q->cq)
		munmap((void *)q->cq, q->geo.cq_bytes);
	if (q->fd >= 0)
		close(q->fd);
	memset(q, 0, sizeof(*q));
	q->fd = -1;
}

int nvq_select_ns(struct nvq *q, uint32_t nsid, struct nvq_error *err)
{
	__u32 arg = nsid;

	if (!ioctl(q->fd, NVQ_IOC_SELECT_NS, &arg))
		return nvq_reload(q, err);
	switch (errno) {
	case EINVAL:
		return nvq_fail(err, -EINVAL,
				"%s: no active namespace %u: `nvq list` shows what there is",
				q->name, nsid);
	case EOPNOTSUPP:
		return nvq_fail(err, -EOPNOTSUPP,
				"%s: namespace %u is formatted with metadata, which nvqueue does not carry",
				q->name, nsid);
	default:
		return nvq_fail(err, -errno, "%s: selecting namespace %u: %s",
				q->name, nsid, strerror(errno));
	}
}

/* One attempt at every queue, from @first around; the last failure counts. */
static int try_all(struct nvq *q, const char *dir, const char *ctrl,
		   enum nvq_kind kind, unsigned int first, unsigned int nr,
		   int flags, struct nvq_error *err)
{
	char path[PATH_MAX];
	unsigned int i;
	int ret = -ENOENT, busy = 0;

	for (i = 0; i < nr; i++) {
		if (snprintf(path, sizeof(path), "%s/%s%s%u", dir, ctrl,
			     nvq_kind_name(kind), (first + i) % nr) >=
		    (int)sizeof(path))
			return nvq_fail(err, -ENAMETOOLONG, "%s/%s: %s", dir,
					ctrl, strerror(ENAMETOOLONG));
		ret = nvq_open(q, path, flags | O_NONBLOCK, err);
		if (!ret)
			return 0;
		busy |= ret == -EBUSY;
	}
	return busy ? -EBUSY : ret;
}

static int none_of_kind(const struct nvq_info *info, enum nvq_kind kind,
			struct nvq_error *err)
{
	enum nvq_kind other = kind == NVQ_KIND_POLL ? NVQ_KIND_IRQ :
						      NVQ_KIND_POLL;
	unsigned int exist, unowned;

	nvq_count(info->ctrl, other, &exist, &unowned);
	return nvq_fail(err, -ENOENT,
			"%s has no %s queue (it has %u %s queues): load nvqueue with some (user_%s_queues=)",
			info->ctrl, nvq_kind_name(kind), exist,
			nvq_kind_name(other), nvq_kind_name(kind));
}

static int none_free(const struct nvq_info *info, enum nvq_kind kind, int code,
		     struct nvq_error *err)
{
	char name[NVQ_NAME_LEN * 2], owner[64];
	unsigned int exist, unowned;

	nvq_count(info->ctrl, kind, &exist, &unowned);
	snprintf(name, sizeof(name), "%s%s0", info->ctrl, nvq_kind_name(kind));
	return nvq_fail(err, code,
			"%s: no free %s queue: %u exist, %u are owned (%s by %s); close one, or load nvqueue with more (user_%s_queues=)",
			info->ctrl, nvq_kind_name(kind), exist, exist - unowned,
			name, nvq_owner_text(name, owner, sizeof(owner)),
			nvq_kind_name(kind));
}

int nvq_claim(struct nvq *q, const char *path, enum nvq_kind kind,
	      unsigned int first, int flags, struct nvq_error *err)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	unsigned int exist, unowned, tries;
	char real[PATH_MAX], why[NVQ_WHY_LEN];
	struct nvq_info info;
	int ret;

	memset(q, 0, sizeof(*q));
	q->fd = -1;
	ret = nvq_identify(&info, path, err);
	if (ret)
		return ret;
	if (info.kind != NVQ_KIND_CTRL)
		return nvq_fail(err, -ENOTTY, "%s is not a controller node",
				path);
	ret = nvq_count(info.ctrl, kind, &exist, &unowned);
	if (ret)
		return nvq_fail(err, ret, "%s: counting its queues: %s",
				info.ctrl, nvq_why(ret, why, sizeof(why)));
	if (!exist)
		return none_of_kind(&info, kind, err);
	if (!realpath(path, real))
		return nvq_fail(err, -errno, "%s: %s", path, strerror(errno));
	*strrchr(real, '/') = '\0';

	for (tries = 0; tries < 100; tries++) {
		ret = try_all(q, real, info.ctrl, kind, first, exist, flags,
			      err);
		if (ret != -EBUSY)
			break;
		nanosleep(&pause, NULL);
	}
	if (ret)
		return ret == -EBUSY ? none_free(&info, kind, ret, err) : ret;
	/* O_NONBLOCK was for open() alone */
	fcntl(q->fd, F_SETFL, flags & ~O_NONBLOCK);
	return 0;
}
