// SPDX-License-Identifier: MIT
/*
 * Marks a window in a guest that counts instructions: what icount-plugin.c has
 * counted at its begin and at its end goes to QEMU's log; printed are NUMBER and
 * the nanoseconds between the two.
 *
 * usage: icount-mark NUMBER DELAY-MS LENGTH-MS
 *
 * The marks are 2 x NUMBER and the one after it.  Between them this program
 * makes one system call, to sleep, which the reader takes off.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "icount.h"

#define RET	0xc3

typedef void (*mark_fn)(void);

/* The number is part of the instruction, which is hence made here. */
static mark_fn make_mark(unsigned char *code, uint32_t number)
{
	uint64_t nop = mark_nop(number);

	memcpy(code, &nop, MARK_BYTES);
	code[MARK_BYTES] = RET;
	return (mark_fn)(void *)code;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void sleep_ms(unsigned long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

int main(int argc, char **argv)
{
	unsigned long number, delay, length;
	mark_fn begin, end;
	uint64_t from, to;
	unsigned char *code;

	if (argc != 4)
		errx(2, "usage: icount-mark NUMBER DELAY-MS LENGTH-MS");
	number = strtoul(argv[1], NULL, 10);
	delay = strtoul(argv[2], NULL, 10);
	length = strtoul(argv[3], NULL, 10);
	if (2 * number + 1 > MARK_MAX || !length)
		errx(2, "numbers up to %u, and a window longer than nothing",
		     MARK_MAX / 2);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (code == MAP_FAILED)
		err(1, "a page for two instructions");
	begin = make_mark(code, 2 * number);
	end = make_mark(code + 64, 2 * number + 1);
	sleep_ms(delay);
	/* the vDSO's clock: no system call */
	from = now_ns();
	begin();
	sleep_ms(length);
	end();
	to = now_ns();
	printf("%lu %llu\n", number, (unsigned long long)(to - from));
	return 0;
}
