/* SPDX-License-Identifier: MIT */
/*
 * What driver/stage.h ought to do, said slowly: a world of buffers with known
 * DMA addresses, a judgement of a staged command by the specification's words
 * in unbounded arithmetic, and a controller that follows an SQ entry's PRPs and
 * reports every byte it would touch.  For the unit test and the fuzzer.
 */
#ifndef STAGE_MODEL_H
#define STAGE_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "stage.h"

#define MODEL_BUFS	7
#define MODEL_BIG	5	/* as large as a buffer may be, at the worst start */
#define MODEL_BIG_LEN	((1ULL << 32) - 4096)
#define MODEL_BIG_START	4092
#define MODEL_GUARD	0x7777777000ULL

struct model {
	struct nvq_stage_ctx ctx;
	struct nvq_buf_view views[8];
	struct nvq_buf_page *table[MODEL_BUFS];
	unsigned int pages[MODEL_BUFS];
};

/*
 * Scattered, so that no two neighbours are neighbours for the device too, and no
 * two of a buffer's 2^20 pages the same.
 */
static inline u64 model_page(unsigned int buf, unsigned int page)
{
	return ((u64)(buf + 1) << 40) + (u64)((page * 7919U) % (1U << 20)) * 4096;
}

static inline u64 model_list(unsigned int buf, unsigned int list)
{
	return ((u64)(buf + 1) << 50) + (u64)list * 2 * 4096;
}

/* What list @list holds at @at: pages 256 * list and on, guards beyond the last. */
static inline u64 model_entry(const struct model *m, unsigned int buf,
			      unsigned int list, unsigned int at)
{
	u64 page = (u64)list * 256 + at;

	return page < m->pages[buf] ? model_page(buf, page) : MODEL_GUARD;
}

static inline void model_buf(struct model *m, unsigned int b,
			     unsigned int start, u64 len, bool readonly)
{
	unsigned int pages = (start + len + 4095) / 4096, i;

	if (m->pages[b] != pages) {
		free(m->table[b]);
		m->table[b] = calloc(pages, sizeof(*m->table[b]));
		if (!m->table[b])
			abort();
	}
	m->pages[b] = pages;
	for (i = 0; i < pages; i++) {
		m->table[b][i].dma = model_page(b, i);
		m->table[b][i].list = model_list(b, i / 256) + (i % 256 + 1) * 8;
	}
	m->views[b].pages = m->table[b];
	m->views[b].len = len;
	m->views[b].start = start;
	m->views[b].len_in = readonly ? 0 : len;
}

/* Of a model that is zeroes, or was one before; buffers 6 and 7 do not exist. */
static inline void model_init(struct model *m, unsigned int lba_shift,
			      u64 nsze, bool writable)
{
	m->ctx = (struct nvq_stage_ctx){
		.bufs = m->views, .buf_mask = 7, .cid_mask = 63, .nsid = 3,
		.lba_shift = lba_shift, .max_xfer = 1 << 20, .nsze = nsze,
		.guard = MODEL_GUARD, .depth = 64, .writable = writable,
	};
	nvq_stage_set_keys(&m->ctx);
	model_buf(m, 0, 0, 1100 * 4096, false);
	model_buf(m, 1, 512, 600 * 4096 + 12, false);
	model_buf(m, 2, 4092, 4, false);
	model_buf(m, 3, 0, 300 * 4096, true);
	model_buf(m, 4, 4, 8192, false);
	model_buf(m, MODEL_BIG, MODEL_BIG_START, MODEL_BIG_LEN, false);
}

/* The command's fields, as the controller reads them. */
struct model_cmd {
	unsigned int opcode, nsid, buf;
	u64 offset, slba;
	u32 cdw10, cdw12, cdw13;
};

static inline struct model_cmd model_parse(const __le64 *w)
{
	return (struct model_cmd){
		.opcode = le64_to_cpu(w[0]) & 0xff,
		.nsid = le64_to_cpu(w[0]) >> 32,
		.offset = le64_to_cpu(w[3]),
		.buf = (u32)le64_to_cpu(w[4]),
		.slba = le64_to_cpu(w[5]),
		.cdw10 = (u32)le64_to_cpu(w[5]),
		.cdw12 = (u32)le64_to_cpu(w[6]),
		.cdw13 = le64_to_cpu(w[6]) >> 32,
	};
}

/* Bytes moved, -1: an opcode nobody should send. */
static inline __int128 model_length(const struct model_cmd *c, unsigned int s)
{
	switch (c->opcode) {
	case 0x00: case 0x04: case 0x08: case 0x0c:
		return 0;
	case 0x01: case 0x02: case 0x05: case 0x7d:
		return ((__int128)(c->cdw12 & 0xffff) + 1) << s;
	case 0x09:
		return ((c->cdw10 & 0xff) + 1) * 16;
	case 0x19:
		if ((c->cdw12 >> 8 & 15) > 3)
			return (__int128)1 << 80;
		return ((c->cdw12 & 0xff) + 1) *
		       ((c->cdw12 >> 8 & 1) ? 40 : 32);
	case 0x79:
		return (c->cdw13 & 0xff) == 0x10 ? -1 : 0;
	case 0x7a:
		return ((__int128)c->cdw12 + 1) * 4;
	default:
		return -1;
	}
}

static inline bool model_changes(unsigned int opcode)
{
	return opcode == 0x01 || opcode == 0x04 || opcode == 0x08 ||
	       opcode == 0x09 || opcode == 0x19 || opcode == 0x79 ||
	       opcode == 0x7d;
}

/* Is the command to be accepted? */
static inline bool model_accepts(const struct model *m, const __le64 *w)
{
	struct model_cmd c = model_parse(w);
	__int128 len = model_length(&c, m->ctx.lba_shift);
	const struct nvq_buf_view *b;

	if (len < 0 || c.nsid != m->ctx.nsid)
		return false;
	if (model_changes(c.opcode) && !m->ctx.writable)
		return false;
	switch (c.opcode) {
	case 0x01: case 0x02: case 0x04: case 0x05: case 0x08: case 0x0c:
	case 0x7d:
		if ((__int128)c.slba + (c.cdw12 & 0xffff) + 1 > m->ctx.nsze)
			return false;
	}
	if (!len)
		return true;
	if (c.buf >= MODEL_BUFS || c.offset % 4)
		return false;
	b = &m->views[c.buf];
	if (len > m->ctx.max_xfer ||
	    (__int128)c.offset + len > b->len)
		return false;
	return !((c.opcode == 0x02 || c.opcode == 0x7a) && !b->len_in);
}

/* The device reads 8 bytes of a list; 0: no list is there. */
static inline u64 model_fetch(const struct model *m, u64 addr)
{
	u64 buf = (addr >> 50) - 1, list = addr % (1ULL << 50) / 8192;

	if (buf >= MODEL_BUFS || list * 256 >= m->pages[buf] ||
	    addr & 4096 || addr & 7)
		return 0;
	return model_entry(m, buf, list, (addr & 4095) / 8);
}

/* The address of page @n of the transfer, as the device finds it. */
static inline u64 model_device_page(const struct model *m, const __le64 *sqe,
				    unsigned int n, unsigned int pages)
{
	u64 prp1 = le64_to_cpu(sqe[3]), prp2 = le64_to_cpu(sqe[4]);
	u64 at;

	if (!n)
		return prp1;
	if (pages == 2)
		return prp2;
	at = prp2 + (u64)(n - 1) * 8;
	/* a list that leaves its page would be read as chained */
	if ((prp2 & 4095) + (u64)(pages - 1) * 8 > 4096)
		return 0;
	return model_fetch(m, at);
}

/*
 * NULL, or what is wrong with SQ entry @sqe made from the staged words @w: every
 * byte the device touches must be the buffer's, in order.
 */
static inline const char *model_check(const struct model *m, const __le64 *w,
				      const __le64 *sqe)
{
	struct model_cmd c = model_parse(w);
	__int128 len = model_length(&c, m->ctx.lba_shift);
	unsigned int off = le64_to_cpu(sqe[3]) & 4095, pages, n;
	u64 first;

	if ((le64_to_cpu(sqe[0]) ^ le64_to_cpu(w[0])) & ~0xff00ULL)
		return "opcode, cid or nsid changed";
	if (le64_to_cpu(sqe[0]) & 0xff00)
		return "flags got through";
	if (sqe[2])
		return "a metadata pointer";
	if (sqe[1] != w[1] || memcmp(&sqe[5], &w[5], 3 * sizeof(*w)))
		return "command dwords changed";
	if (!len)
		return le64_to_cpu(sqe[3]) == MODEL_GUARD &&
		       le64_to_cpu(sqe[4]) == MODEL_GUARD ? NULL :
		       "a data pointer without data";
	first = m->views[c.buf].start + c.offset;
	if (off != (first & 4095))
		return "PRP1 has another offset";
	pages = (off + (u64)len + 4095) / 4096;
	for (n = 0; n < pages; n++) {
		u64 want = model_page(c.buf, first / 4096 + n);

		if (model_device_page(m, sqe, n, pages) !=
		    want + (n ? 0 : off))
			return "the device touches another page";
	}
	if (pages == 1 && le64_to_cpu(sqe[4]) != MODEL_GUARD)
		return "PRP2 is no guard";
	return NULL;
}

/* Runs both; NULL, or what they disagree on. */
static inline const char *model_run(const struct model *m, const __le64 *w)
{
	__le64 sqe[8];
	struct nvq_staged s;
	int err;

	memset(sqe, 0xa5, sizeof(sqe));
	nvq_stage_read(&s, w);
	nvq_stage_pass(w, sqe);
	err = nvq_stage_build(&m->ctx, &s, sqe);
	if (!err != model_accepts(m, w))
		return err ? "refused what is right" : "accepted what is wrong";
	return err ? NULL : model_check(m, w, sqe);
}

#endif /* STAGE_MODEL_H */
