/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer on the trust boundary: any 64 bytes as a staged command, in any of a
 * few worlds, against the slow model.  Half of the input bits choose mutations of
 * a valid command, so that most inputs get past the first checks.
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -Idriver -Itests/unit \
 *		tests/fuzz/fuzz_stage.c -o fuzz_stage && ./fuzz_stage -runs=1000000
 */
#include <stdint.h>
#include <stdio.h>

#include "stage_model.h"

static struct model worlds[4];

static void init(void)
{
	static bool done;

	if (done)
		return;
	model_init(&worlds[0], 9, 1 << 20, true);
	model_init(&worlds[1], 12, 5, true);
	model_init(&worlds[2], 9, ~0ULL, false);
	model_init(&worlds[3], 20, 70000, true);
	done = true;
}

/* Within 2 MiB before the end of a buffer, or 64 KiB beyond it. */
static void about_the_end(__le64 *w, u64 v)
{
	unsigned int buf = v % MODEL_BUFS;

	w[4] = cpu_to_le64(buf);
	w[3] = cpu_to_le64(worlds[0].views[buf].len + (64 << 10) -
			   (v >> 32) % ((2 << 20) + (64 << 10)));
}

/* A read of four LBAs that is right, then what the input changes of it. */
static void make(__le64 *w, const uint8_t *data, size_t size)
{
	size_t i;

	memset(w, 0, 64);
	w[0] = cpu_to_le64(0x02 | 5 << 16 | 3ULL << 32);
	w[6] = cpu_to_le64(3);
	for (i = 0; i + 9 <= size && i < 36; i += 9) {
		u64 v;

		memcpy(&v, data + i + 1, 8);
		if (data[i] & 0x80)
			w[data[i] & 7] = cpu_to_le64(v);
		else if (data[i] & 0x40)
			((uint8_t *)w)[data[i] & 63] = v;
		else if (data[i] & 0x20)
			about_the_end(w, v);
		else
			w[data[i] & 7] ^= cpu_to_le64(v & 0xffff);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *wrong;
	__le64 w[8];

	init();
	if (!size)
		return 0;
	make(w, data + 1, size - 1);
	wrong = model_run(&worlds[data[0] & 3], w);
	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		abort();
	}
	return 0;
}
