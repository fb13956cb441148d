// SPDX-License-Identifier: MIT
/*
 * One command at a time, waited for in an ioctl.
 */
#include <errno.h>
#include <sys/ioctl.h>

#include "internal.h"

int nvq_sync(struct nvq *q, enum nvq_opcode opcode, uint64_t slba, uint32_t nlb,
	     void *buf)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = opcode,
		.nsid = q->nsid,
	};
	int ret;

	switch (opcode) {
	case NVQ_READ:
	case NVQ_WRITE:
		if (!nlb || nlb > 65536)
			return -EINVAL;
		cmd.addr = (uintptr_t)buf;
		cmd.data_len = nlb << q->lba_shift;
		cmd.cdw10 = (uint32_t)slba;
		cmd.cdw11 = slba >> 32;
		cmd.cdw12 = nlb - 1;
		break;
	case NVQ_FLUSH:
		break;
	default:
		return -EOPNOTSUPP;
	}
	ret = ioctl(q->fd, NVME_IOCTL_IO_CMD, &cmd);
	return ret < 0 ? -errno : ret;
}
