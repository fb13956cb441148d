// SPDX-License-Identifier: MIT
/*
 * The hostile process: a staged command that is good, and what can be wrong with
 * it, one field at a time, or all of it.
 */
#include <errno.h>

#include "hostile.h"

static const short expected[NR_FLAWS] = {
	[F_OPCODE] = EOPNOTSUPP, [F_NSID] = EINVAL, [F_OTHER_NS] = EINVAL,
	[F_CID] = EINVAL, [F_CID_BUSY] = ANY_ERRNO, [F_BUF] = EINVAL,
	[F_NO_BUF] = EINVAL, [F_OFFSET_ODD] = EINVAL, [F_OFFSET_END] = EINVAL,
	[F_OFFSET_WRAP] = EINVAL, [F_BEYOND] = EINVAL, [F_MDTS] = EINVAL,
	[F_LBA] = EINVAL, [F_LBA_WRAP] = EINVAL, [F_RO_BUF] = EACCES,
	[F_READONLY] = EACCES, [F_NOISE] = ANY_ERRNO, [F_SCRIBBLED] = ANY_ERRNO,
};

int flaw_errno(enum flaw flaw)
{
	return expected[flaw];
}

struct nvq_sqe command_good(struct thread *t)
{
	static const uint8_t ops[] = { OP_READ, OP_READ, OP_WRITE, OP_COMPARE };
	unsigned int lba = epoch.n.q.g.lba_size, nlb = 1 + below(t, 16);
	uint8_t op = ops[below(t, epoch.mode == NATIVE_RO ? 2 : 4)];

	if (one_in(t, 16))
		nlb = 1 + below(t, (1u << 20) / lba);
	return native_rw(&epoch.n, op, epoch.next_cid++ % epoch.n.q.g.depth,
			 below(t, epoch.n.q.g.nsze - nlb), nlb, epoch.rw_index,
			 below(t, (REGISTERED - nlb * lba) / 4) * 4);
}

static void noise(struct thread *t, struct nvq_sqe *s)
{
	uint64_t *w = (uint64_t *)s;
	unsigned int i;

	for (i = 0; i < sizeof(*s) / 8; i++)
		w[i] = random64(&t->rnd);
	/* half of it gets past the first checks */
	if (one_in(t, 2)) {
		s->opcode = OP_READ;
		s->nsid = epoch.n.q.g.nsid;
		s->cid %= epoch.n.q.g.depth;
		s->buf %= 8;
		s->cdw11 = 0;
	}
}

static void spoil_place(struct thread *t, struct nvq_sqe *s, enum flaw flaw)
{
	unsigned int lba = epoch.n.q.g.lba_size;

	switch (flaw) {
	case F_OFFSET_ODD:
		s->offset |= 1 + below(t, 3);
		break;
	case F_OFFSET_END:
		s->offset = REGISTERED - below(t, lba / 4) * 4;
		break;
	case F_OFFSET_WRAP:
		s->offset = -(uint64_t)(4 * (1 + below(t, 4096)));
		break;
	case F_BEYOND:
		s->cdw12 = (REGISTERED - (1 << 19)) / lba;
		s->cdw10 = s->cdw11 = 0;
		s->offset = 1 << 19;
		break;
	case F_MDTS:
		s->cdw12 = (1u << 20) / lba + below(t, 8);
		s->cdw10 = s->cdw11 = 0;
		s->offset = 0;
		break;
	case F_LBA:
		s->cdw10 = epoch.n.q.g.nsze - (s->cdw12 & 0xffff) +
			   below(t, 4096);
		break;
	default:	/* F_LBA_WRAP */
		s->cdw10 = ~0u - below(t, 2);
		s->cdw11 = ~0u;
	}
}

void command_spoil(struct thread *t, struct nvq_sqe *s, enum flaw flaw)
{
	switch (flaw) {
	case F_NONE:
		break;
	case F_FLAGS:
		s->flags = random64(&t->rnd);
		break;
	case F_MPTR:
		s->ignored = random64(&t->rnd);
		break;
	case F_PASSED:
		s->cdw2 = random64(&t->rnd);
		s->cdw3 = random64(&t->rnd);
		break;
	case F_LENGTH:
		s->length = random64(&t->rnd);
		break;
	case F_DATALESS:
		s->opcode = one_in(t, 2) ? OP_FLUSH : OP_VERIFY;
		s->buf = random64(&t->rnd);
		s->offset = random64(&t->rnd);
		break;
	case F_OPCODE:
		s->opcode = 0x80 | random64(&t->rnd);
		break;
	case F_NSID:
		s->nsid = below(t, 2) ? 0 : ~below(t, 3);
		break;
	case F_OTHER_NS:
		s->nsid = NS_NEIGHBOUR;
		break;
	case F_CID:
		s->cid = epoch.n.q.g.depth + below(t, 3) * 1000;
		break;
	case F_CID_BUSY:
		s->cid = (epoch.next_cid - 2u) % epoch.n.q.g.depth;
		break;
	case F_BUF:
		s->buf = NVQ_MAX_BUFS << below(t, 20);
		break;
	case F_NO_BUF:
		s->buf = NVQ_MAX_BUFS - 1;
		break;
	case F_RO_BUF:
		s->opcode = OP_READ;
		s->buf = epoch.ro_index;
		s->offset = 0;
		s->cdw12 = 0;
		break;
	case F_READONLY:
		s->opcode = one_in(t, 2) ? OP_WRITE : OP_ZEROES;
		break;
	case F_NOISE:
	case F_SCRIBBLED:
		noise(t, s);
		break;
	default:
		spoil_place(t, s, flaw);
	}
}

/* Valid, with one field changed, or noise: 45, 42 and 13 of a hundred. */
enum flaw flaw_pick(struct thread *t)
{
	unsigned int what = below(t, 100);
	enum flaw flaw;

	if (what < 45)
		return F_NONE;
	if (what >= 87)
		return F_NOISE;
	flaw = 1 + below(t, F_NOISE - 1);
	/* only a read-only descriptor refuses those */
	if (flaw == F_READONLY && epoch.mode != NATIVE_RO)
		return F_NONE;
	return flaw;
}
