// SPDX-License-Identifier: MIT
/*
 * What the hostile process did and how it was refused: counts, and the table of
 * the rejections that include/nvqueue/uapi.h names.
 *
 * An errno that the header does not name for a call is wrong, and so is a named
 * one that nobody met.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

#define MAX_TOLD	20	/* of what is wrong */

struct shared *shared;

static const char *const call_names[NR_CALLS] = {
	[C_OPEN] = "open", [C_MMAP] = "mmap", [C_GEOMETRY] = "GEOMETRY",
	[C_SELECT_NS] = "SELECT_NS", [C_ADMIN] = "NVME_IOCTL_ADMIN_CMD",
	[C_IOCTL] = "standard ioctl", [C_RING] = "standard uring_cmd",
	[C_REGISTER] = "REGISTER", [C_UNREGISTER] = "UNREGISTER",
	[C_SUBMIT] = "SUBMIT", [C_SUBMIT_FROM] = "SUBMIT_FROM",
	[C_SUBMIT_RING] = "NVQ_URING_SUBMIT", [C_WAIT] = "SUBMIT with a wait",
	[C_RESYNC] = "RESYNC", [C_DROP] = "DROP", [C_POLL] = "poll",
	[C_OTHER] = "other ioctl",
};

enum need { ALWAYS, POLL_ONLY, IRQ_ONLY, MAY };

struct rejection {
	uint8_t call, need;
	short err;
};

/*
 * In the order of uapi.h.  MAY: named, and met by chance only.  EINTR, which only
 * who is killed gets, nobody can count; nor what needs CAP_SYS_RAWIO.
 */
static const struct rejection named[] = {
	{ C_IOCTL, ALWAYS, EINVAL }, { C_RING, ALWAYS, EINVAL },
	{ C_IOCTL, ALWAYS, EACCES }, { C_RING, ALWAYS, EACCES },
	{ C_ADMIN, ALWAYS, EACCES }, { C_ADMIN, ALWAYS, EINVAL },
	{ C_RING, ALWAYS, EOPNOTSUPP },
	{ C_IOCTL, ALWAYS, ESTALE }, { C_RING, ALWAYS, ESTALE },
	{ C_IOCTL, ALWAYS, ETIMEDOUT }, { C_RING, MAY, ETIMEDOUT },
	{ C_IOCTL, ALWAYS, ENODEV }, { C_RING, ALWAYS, ENODEV },
	{ C_ADMIN, ALWAYS, ENODEV },
	{ C_IOCTL, ALWAYS, EBUSY }, { C_RING, ALWAYS, EBUSY },
	{ C_GEOMETRY, ALWAYS, ENODEV }, { C_GEOMETRY, ALWAYS, EFAULT },
	{ C_SELECT_NS, ALWAYS, EBUSY }, { C_SELECT_NS, ALWAYS, EINVAL },
	{ C_SELECT_NS, ALWAYS, EOPNOTSUPP }, { C_SELECT_NS, MAY, ENODEV },
	{ C_MMAP, ALWAYS, EACCES }, { C_MMAP, ALWAYS, EBUSY },
	{ C_MMAP, ALWAYS, EINVAL },
	{ C_SUBMIT, ALWAYS, EINVAL }, { C_SUBMIT, ALWAYS, EBUSY },
	{ C_SUBMIT, ALWAYS, ENOSPC }, { C_SUBMIT, ALWAYS, EACCES },
	{ C_SUBMIT, ALWAYS, EOPNOTSUPP }, { C_SUBMIT, ALWAYS, ESTALE },
	{ C_SUBMIT, ALWAYS, ENODEV }, { C_SUBMIT, MAY, ETIMEDOUT },
	{ C_SUBMIT_RING, ALWAYS, EINVAL }, { C_SUBMIT_RING, ALWAYS, EBUSY },
	{ C_SUBMIT_RING, MAY, ENOSPC }, { C_SUBMIT_RING, MAY, EACCES },
	{ C_SUBMIT_RING, ALWAYS, EOPNOTSUPP },
	{ C_SUBMIT_RING, ALWAYS, ESTALE }, { C_SUBMIT_RING, ALWAYS, ENODEV },
	{ C_SUBMIT_RING, MAY, ETIME },
	{ C_SUBMIT_FROM, ALWAYS, EINVAL }, { C_SUBMIT_FROM, ALWAYS, EBUSY },
	{ C_SUBMIT_FROM, MAY, ENOSPC }, { C_SUBMIT_FROM, ALWAYS, EACCES },
	{ C_SUBMIT_FROM, ALWAYS, EOPNOTSUPP },
	{ C_SUBMIT_FROM, ALWAYS, ESTALE }, { C_SUBMIT_FROM, ALWAYS, ENODEV },
	{ C_WAIT, POLL_ONLY, EOPNOTSUPP }, { C_WAIT, IRQ_ONLY, ETIME },
	{ C_WAIT, IRQ_ONLY, EBUSY }, { C_WAIT, MAY, EINVAL },
	{ C_WAIT, MAY, ENOSPC }, { C_WAIT, MAY, EACCES },
	{ C_WAIT, MAY, EOPNOTSUPP }, { C_WAIT, MAY, ESTALE },
	{ C_WAIT, MAY, ENODEV },
	{ C_REGISTER, ALWAYS, EINVAL }, { C_REGISTER, ALWAYS, EFAULT },
	{ C_REGISTER, ALWAYS, EOPNOTSUPP }, { C_REGISTER, ALWAYS, ENOMEM },
	{ C_REGISTER, ALWAYS, ENOSPC }, { C_REGISTER, ALWAYS, ENODEV },
	{ C_REGISTER, ALWAYS, EBUSY },
	{ C_UNREGISTER, ALWAYS, ENOENT },
	{ C_RESYNC, ALWAYS, EBUSY }, { C_RESYNC, ALWAYS, EINVAL },
	{ C_RESYNC, MAY, ENODEV },
	{ C_DROP, ALWAYS, EAGAIN }, { C_DROP, ALWAYS, EINVAL },
	{ C_OPEN, ALWAYS, EBUSY }, { C_OPEN, ALWAYS, EACCES },
	{ C_OTHER, ALWAYS, ENOTTY }, { C_POLL, MAY, EINTR },
};

#define NR_NAMED	(sizeof(named) / sizeof(named[0]))

/* Any call may say these: memory that is not there, or not to be had. */
static bool of_the_system(enum call call, int err)
{
	if (err == EFAULT || err == ENOMEM)
		return true;
	/* an open that lost against removal finds no node */
	return call == C_OPEN && (err == ENODEV || err == ENXIO ||
				  err == ENOENT);
}

static bool is_named(enum call call, int err)
{
	unsigned int i;

	for (i = 0; i < NR_NAMED; i++)
		if (named[i].call == call && named[i].err == err)
			return true;
	return false;
}

long note(enum call call, long ret)
{
	int err = ret < 0 ? -ret : 0;

	if (!err) {
		shared->good[call]++;
		return ret;
	}
	if (err >= MAX_ERRNO)
		err = MAX_ERRNO - 1;
	shared->errors[call][err]++;
	if (err == ENODEV && !shared->dead)
		wrong(NULL, "%s is ENODEV, and the drive is there",
		      call_names[call]);
	else if (!is_named(call, err) && !of_the_system(call, err))
		wrong(NULL, "%s: %s, which uapi.h does not name",
		      call_names[call], strerror(err));
	return ret;
}

void wrong(const struct thread *t, const char *fmt, ...)
{
	char why[200];
	va_list ap;

	if (shared->wrong++ >= MAX_TOLD)
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	printf("# epoch %u mode %u thread %d operation %d: %s\n", epoch.number,
	       epoch.mode, t ? (int)t->id : -1, t ? (int)t->index : -1, why);
	fflush(stdout);
}

static const char *const flaw_names[NR_FLAWS] = {
	[F_NONE] = "nothing", [F_FLAGS] = "flags",
	[F_MPTR] = "metadata pointer", [F_PASSED] = "CDW2, 3, 14, 15",
	[F_LENGTH] = "length", [F_DATALESS] = "flush, verify: no buffer",
	[F_OPCODE] = "opcode", [F_NSID] = "nsid",
	[F_OTHER_NS] = "the neighbour's nsid", [F_CID] = "cid out of range",
	[F_CID_BUSY] = "cid in flight", [F_BUF] = "buffer out of range",
	[F_NO_BUF] = "no such buffer", [F_OFFSET_ODD] = "offset misaligned",
	[F_OFFSET_END] = "offset at the end", [F_OFFSET_WRAP] = "offset wraps",
	[F_BEYOND] = "nlb beyond the buffer", [F_MDTS] = "nlb beyond mdts",
	[F_LBA] = "slba beyond the namespace", [F_LBA_WRAP] = "slba wraps",
	[F_RO_BUF] = "reads into a read-only buffer",
	[F_READONLY] = "writes, read-only descriptor", [F_NOISE] = "noise",
	[F_SCRIBBLED] = "rewritten meanwhile",
};

void report(void)
{
	unsigned int i, e;

	for (i = 0; i < NR_CALLS; i++) {
		printf("# %-21s %8lu good", call_names[i], shared->good[i]);
		for (e = 1; e < MAX_ERRNO; e++)
			if (shared->errors[i][e])
				printf(", %lu %s", shared->errors[i][e],
				       strerrorname_np(e));
		printf("\n");
	}
	printf("# commands: %lu ended with a status of the drive, %lu aborted by host\n",
	       shared->statuses, shared->aborted);
	for (i = 0; i < NR_FLAWS; i++)
		printf("# staged, wrong is %-30s %8lu taken %8lu refused\n",
		       flaw_names[i], shared->flaw_taken[i],
		       shared->flaw_refused[i]);
	printf("# staged: %lu, taken by the device's queue: %lu\n",
	       shared->staged, shared->taken);
}

unsigned int never_met(bool poll)
{
	unsigned int i, n = 0;

	for (i = 0; i < NR_NAMED; i++) {
		const struct rejection *r = &named[i];

		if (r->need == MAY || (r->need == POLL_ONLY && !poll) ||
		    (r->need == IRQ_ONLY && poll) ||
		    shared->errors[r->call][r->err])
			continue;
		printf("# never met: %s, %s\n", call_names[r->call],
		       strerrorname_np(r->err));
		n++;
	}
	/* the reasons of SUBMIT's EINVAL and EACCES, one by one */
	for (i = F_OPCODE; i < F_NOISE; i++)
		if (!shared->flaw_refused[i]) {
			printf("# never refused: %s\n", flaw_names[i]);
			n++;
		}
	return n;
}
