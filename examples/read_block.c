// SPDX-License-Identifier: MIT
/*
 * read_block FILE - the first block of a drive, read by its hardware queue.
 *
 * The native path in one command: a queue file is opened, memory registered, a
 * read staged and handed over by one ioctl, and its completion found in the
 * mapped completion queue.  FILE is a queue of `nvq list`, /dev/nvq0poll0.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvq.h>
#include <nvq_native.h>

static void hexdump(const unsigned char *p, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < len; i++)
		printf("%s%02x%s", i % 16 ? " " : "", p[i],
		       i % 16 == 15 ? "\n" : "");
}

int main(int argc, char **argv)
{
	const struct nvq_cqe *c;
	struct nvq_native n;
	struct nvq_error e;
	char text[128];
	struct nvq q;
	void *mem;
	int buf, ret;

	if (argc != 2)
		errx(2, "usage: read_block FILE (a queue file: see nvq list)");
	/* for reading: then no command that writes is accepted */
	if (nvq_open(&q, argv[1], O_RDONLY, &e) || nvq_native_init(&n, &q, &e))
		errx(1, "%s", e.text);
	mem = aligned_alloc(4096, (q.geo.lba_size + 4095) / 4096 * 4096);
	if (!mem)
		errx(1, "no memory for a block of %u bytes: free some",
		     q.geo.lba_size);
	buf = nvq_native_register(&n, mem, q.geo.lba_size, 0, &e);
	if (buf < 0)
		errx(1, "%s", e.text);

	/* command id 7: 1 block from LBA 0 to byte 0 of the buffer */
	nvq_stage_rw(&n, 7, NVQ_READ, 0, 1, buf, 0);
	ret = nvq_native_submit(&n);
	if (ret != 1)
		errx(1, "%s: the read was not accepted: %s; nvq list shows the drive's state, and the kernel's log why",
		     q.name, strerror(-ret));
	/* spins on a poll queue, sleeps on an irq queue */
	ret = nvq_native_wait(&n, 1, 10000);
	if (ret)
		errx(1, "%s: no answer within 10 s: %s; the kernel's log says what became of the command",
		     q.name, strerror(-ret));
	c = nvq_native_next(&n);
	if (nvq_native_res(c))
		errx(1, "%s: command %u, reading LBA 0: %s; nvme-cli's smart-log tells more",
		     q.name, nvq_native_cid(c),
		     nvq_status_text(nvq_native_res(c), text, sizeof(text)));
	hexdump(mem, 64);

	nvq_native_unregister(&n, buf, NULL);
	nvq_native_exit(&n);
	nvq_close(&q);
	free(mem);
	return 0;
}
