// SPDX-License-Identifier: MIT
/*
 * copy: a file to a queue, or from one, through libnvq and nothing else, with
 * the buffers where they are asked to be.
 *
 * usage: copy [options] to|from NODE SLBA LENGTH FILE
 *
 *	-b BYTES	of one command (4096); the last one may be smaller
 *	-q N		commands in flight (8)
 *	-a BYTES	offset of each buffer in its page (0)
 *	-f		registered buffers
 *	-v N		each buffer as a vector of N pieces
 *	-s		commands that wait (nvq_sync), no ring
 *	-k		polls in the kernel;  -p: SQPOLL
 *	-n		natively, by ioctl;  -u: natively, by io_uring
 *	-m KIND		memory: anon (the default), shm, huge, hugeshm
 */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nvq.h>
#include <nvq_native.h>

#define MAX_PIECES	8
#define PAGE		4096UL
#define HUGE_PAGE	(2UL << 20)

struct slot {
	unsigned char *buf;
	struct iovec piece[MAX_PIECES];
	off_t offset;
	size_t len;
};

static unsigned int bs = 4096, qd = 8, align, pieces;
static bool fixed, sync_only, to_queue, native, native_uring;
static int memory = MAP_PRIVATE;
static struct nvq_ring_options opt;
static struct nvq q, *queues[] = { &q };
static struct nvq_ring ring;
static struct nvq_native nat;
static struct nvq_native_ring nring;
static struct slot *slots;
static unsigned char *mem;
static size_t mem_bytes;
static int mem_index;	/* as a registered buffer, natively */
static uint64_t slba;
static off_t length, done;
static int file;

static void file_io(struct slot *s)
{
	ssize_t n = to_queue ? pread(file, s->buf, s->len, s->offset) :
			       pwrite(file, s->buf, s->len, s->offset);

	if (n != (ssize_t)s->len)
		err(1, "file at %lld", (long long)s->offset);
}

static void check(const struct slot *s, int res)
{
	char text[128];

	if (res)
		errx(1, "LBA %llu, %zu bytes: %s",
		     (unsigned long long)(slba + (s->offset >> q.lba_shift)),
		     s->len, nvq_status_text(res, text, sizeof(text)));
	if (!to_queue)
		file_io((struct slot *)s);
	done += s->len;
}

static bool next(struct slot *s)
{
	static off_t offset;

	if (offset >= length)
		return false;
	s->offset = offset;
	s->len = length - offset < bs ? length - offset : bs;
	offset += s->len;
	if (to_queue)
		file_io(s);
	else
		memset(s->buf, 0xdb, s->len);
	return true;
}

/* Pieces of four bytes' granularity, the first ones short and odd. */
static unsigned int cut(struct slot *s)
{
	unsigned char *p = s->buf;
	size_t left = s->len;
	unsigned int i;

	for (i = 0; i + 1 < pieces && left > 64; i++) {
		s->piece[i].iov_base = p;
		s->piece[i].iov_len = left / 3 & ~3UL;
		p += s->piece[i].iov_len;
		left -= s->piece[i].iov_len;
	}
	s->piece[i].iov_base = p;
	s->piece[i].iov_len = left;
	return i + 1;
}

static void start(unsigned int i)
{
	struct slot *s = &slots[i];
	const void *addr = s->buf;
	unsigned int len = s->len;

	if (pieces) {
		len = cut(s);
		addr = s->piece;
	}
	nvq_prep_rw(&ring, i, &q, to_queue ? NVQ_WRITE : NVQ_READ,
		    slba + (s->offset >> q.lba_shift), s->len >> q.lba_shift,
		    addr, len);
	nvq_queue(&ring, i);
}

static void submit(void)
{
	int n;

	while (nvq_queued(&ring)) {
		n = nvq_submit(&ring);
		if (n < 0)
			errx(1, "submit: %s", strerror(-n));
	}
}

static void with_ring(void)
{
	unsigned int i, busy = 0;
	int n;

	for (i = 0; i < qd && next(&slots[i]); i++, busy++)
		start(i);
	while (busy) {
		submit();
		n = nvq_wait(&ring, 1, 20000);
		if (n <= 0)
			errx(1, "wait: %s", n ? strerror(-n) : "20 s are over");
		for (i = 0; i < (unsigned int)n; i++) {
			const struct io_uring_cqe *c = nvq_cqe(&ring, i);
			unsigned int nr = c->user_data;

			check(&slots[nr], c->res);
			busy--;
			if (next(&slots[nr])) {
				start(nr);
				busy++;
			}
		}
		nvq_advance(&ring, n);
	}
}

static void stage(unsigned int i)
{
	const struct slot *s = &slots[i];

	nvq_stage_rw(&nat, i, to_queue ? NVQ_WRITE : NVQ_READ,
		     slba + (s->offset >> q.lba_shift), s->len >> q.lba_shift,
		     mem_index, s->buf - mem);
}

static void hand_over(void)
{
	int n;

	while (nvq_native_staged(&nat)) {
		n = native_uring ? nvq_native_ring_submit(&nring, 0) :
				   nvq_native_submit(&nat);
		if (n < 0)
			errx(1, "submit: %s", strerror(-n));
	}
}

static void natively(void)
{
	const struct nvq_cqe *c;
	unsigned int i, busy = 0;
	int err;

	for (i = 0; i < qd && next(&slots[i]); i++, busy++)
		stage(i);
	while (busy) {
		hand_over();
		err = nvq_native_wait(&nat, 1, 20000);
		if (err)
			errx(1, "wait: %s", strerror(-err));
		while ((c = nvq_native_next(&nat))) {
			i = nvq_native_cid(c);
			check(&slots[i], nvq_native_res(c));
			busy--;
			if (next(&slots[i])) {
				stage(i);
				busy++;
			}
		}
	}
}

static void make_native(void)
{
	static const struct nvq_native_ring_options ropt = { .sq_cpu = -1 };
	struct nvq_native *nats[] = { &nat };
	struct nvq_error e;

	if (nvq_native_init(&nat, &q, &e))
		errx(1, "%s", e.text);
	mem_index = nvq_native_register(&nat, mem, mem_bytes, 0, &e);
	if (mem_index < 0)
		errx(1, "%s", e.text);
	if (native_uring && nvq_native_ring_init(&nring, nats, 1, &ropt, &e))
		errx(1, "%s", e.text);
}

static void end_native(void)
{
	nvq_native_ring_exit(&nring);
	nvq_native_exit(&nat);
}

static void one_by_one(void)
{
	struct slot *s = &slots[0];

	while (next(s))
		check(s, nvq_sync(&q, to_queue ? NVQ_WRITE : NVQ_READ,
				  slba + (s->offset >> q.lba_shift),
				  s->len >> q.lba_shift, s->buf));
}

static void make_slots(void)
{
	size_t room = (bs + align + 2 * PAGE) & ~(PAGE - 1);
	unsigned int i;

	mem_bytes = room * qd;
	if (memory & MAP_HUGETLB)
		mem_bytes = (mem_bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	mem = mmap(NULL, mem_bytes, PROT_READ | PROT_WRITE,
		   memory | MAP_ANONYMOUS, -1, 0);
	slots = calloc(qd, sizeof(*slots));
	if (mem == MAP_FAILED || !slots)
		err(1, "memory");
	for (i = 0; i < qd; i++)
		slots[i].buf = mem + i * room + align;
}

static void make_ring(void)
{
	struct iovec *iov = calloc(qd, sizeof(*iov));
	struct nvq_error e;
	unsigned int i;

	if (!iov)
		err(1, "memory");
	opt.entries = qd;
	opt.sq_cpu = -1;
	if (nvq_ring_init(&ring, queues, 1, &opt, &e))
		errx(1, "%s", e.text);
	for (i = 0; i < qd; i++) {
		nvq_slot_init(&ring, i, i);
		iov[i].iov_base = slots[i].buf;
		iov[i].iov_len = bs;
	}
	if (fixed && nvq_ring_buffers(&ring, iov, qd, &e))
		errx(1, "%s", e.text);
	for (i = 0; i < qd && (fixed || pieces); i++) {
		if (fixed)
			nvq_slot_fixed(&ring, i, i);
		else
			nvq_slot_vec(&ring, i);
	}
	free(iov);
}

static int memory_of(const char *kind)
{
	static const struct {
		const char *name;
		int flags;
	} kinds[] = {
		{ "anon", MAP_PRIVATE },
		{ "shm", MAP_SHARED },
		{ "huge", MAP_PRIVATE | MAP_HUGETLB },
		{ "hugeshm", MAP_SHARED | MAP_HUGETLB },
	};
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, kind))
			return kinds[i].flags;
	errx(2, "-m %s: anon, shm, huge or hugeshm", kind);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "b:q:a:fv:skpnum:")) != -1) {
		switch (c) {
		case 'b': bs = strtoul(optarg, NULL, 0); break;
		case 'q': qd = strtoul(optarg, NULL, 0); break;
		case 'a': align = strtoul(optarg, NULL, 0); break;
		case 'f': fixed = true; break;
		case 'v': pieces = strtoul(optarg, NULL, 0); break;
		case 's': sync_only = true; break;
		case 'k': opt.flags |= NVQ_RING_KERNEL_POLL; break;
		case 'p': opt.flags |= NVQ_RING_SQPOLL; break;
		case 'n': native = true; break;
		case 'u': native = native_uring = true; break;
		case 'm': memory = memory_of(optarg); break;
		default: errx(2, "usage: see the source");
		}
	}
	if (argc - optind != 5 || pieces > MAX_PIECES || !qd ||
	    (native && (fixed || pieces || sync_only || opt.flags)))
		errx(2, "usage: see the source");
}

int main(int argc, char **argv)
{
	struct nvq_error e;

	parse(argc, argv);
	argv += optind;
	to_queue = !strcmp(argv[0], "to");
	slba = strtoull(argv[2], NULL, 0);
	length = strtoll(argv[3], NULL, 0);
	file = open(argv[4], to_queue ? O_RDONLY : O_RDWR | O_CREAT, 0600);
	if (file < 0)
		err(1, "%s", argv[4]);
	if (nvq_open(&q, argv[1], to_queue || native_uring ? O_RDWR : O_RDONLY, &e))
		errx(1, "%s", e.text);
	make_slots();
	if (native) {
		make_native();
		natively();
		end_native();
	} else if (sync_only) {
		one_by_one();
	} else {
		make_ring();
		with_ring();
		nvq_ring_exit(&ring);
	}
	nvq_close(&q);
	if (done != length)
		errx(1, "%lld bytes of %lld", (long long)done,
		     (long long)length);
	return 0;
}
