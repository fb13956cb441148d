/* SPDX-License-Identifier: MIT */
/*
 * TAP for the guest's C programs: one program, one file, no threads in it.
 *
 *	int main(void)
 *	{
 *		struct tap_loop l = { "open and close", .count = 1000, .floor = 50 };
 *
 *		ok(fd >= 0, "opens: %s", strerror(errno));
 *		is(ret, -EBUSY, "the second owner is refused");
 *		skip("no IOMMU here", "leak of IOVAs");
 *		while (tap_loop(&l))
 *			tap_loop_check(&l, !open_and_close(), "round %u", l.done);
 *		return tap_done();
 *	}
 *
 * Run it with tap_program (lib.sh), or by itself.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned int tap_number, tap_failures;

#define TAP_PRINTF(a, b)	__attribute__((format(printf, a, b), unused))

/* With NVQ_FIRST the first failure is the end. */
static inline void tap_line(bool good, const char *fmt, va_list ap)
{
	const char *first = getenv("NVQ_FIRST");

	printf("%sok %u - ", good ? "" : "not ", ++tap_number);
	vprintf(fmt, ap);
	putchar('\n');
	fflush(stdout);
	tap_failures += !good;
	if (!good && first && *first) {
		printf("1..%u\n", tap_number);
		fflush(stdout);
		_exit(1);
	}
}

/* ok() - one test; returns whether it was good. */
TAP_PRINTF(2, 3) static bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_line(good, fmt, ap);
	va_end(ap);
	return good;
}

TAP_PRINTF(1, 2) static void diag(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("# ");
	vprintf(fmt, ap);
	putchar('\n');
	fflush(stdout);
	va_end(ap);
}

/* is() - two numbers are the same. */
TAP_PRINTF(3, 4) static bool is(long long got, long long want, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_line(got == want, fmt, ap);
	va_end(ap);
	if (got != want)
		diag("got %lld, want %lld", got, want);
	return got == want;
}

TAP_PRINTF(2, 3) static void skip(const char *reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("ok %u - ", ++tap_number);
	vprintf(fmt, ap);
	printf(" # SKIP %s\n", reason);
	fflush(stdout);
	va_end(ap);
}

/* bail() - nothing more can be tested: a failure, and the end. */
TAP_PRINTF(1, 2) static void bail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_line(false, fmt, ap);
	va_end(ap);
	printf("1..%u\n", tap_number);
	fflush(stdout);
	exit(1);
}

/* tap_done() - the plan; what main() returns. */
static inline int tap_done(void)
{
	printf("1..%u\n", tap_number);
	fflush(stdout);
	return tap_failures || !tap_number;
}

/* A loop within a budget: the same rules as loop_budget (lib.sh). */
struct tap_loop {
	const char *name;
	unsigned int count;	/* rounds wanted; with NVQ_FULL all are run */
	unsigned int floor;	/* fewer are a failure */
	unsigned int seconds;	/* 0: NVQ_LOOP_SECONDS, or 30 */
	unsigned int done;	/* rounds run */
	bool failed;
	double end;
};

static inline double tap_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline unsigned int tap_env(const char *name, unsigned int otherwise)
{
	const char *s = getenv(name);

	return s && *s ? (unsigned int)atoi(s) : otherwise;
}

/* tap_alarm() - ends a program that hangs; a slow kernel gets more time. */
static inline void tap_alarm(unsigned int seconds)
{
	alarm(seconds * tap_env("NVQ_SLOW", 1));
}

/* tap_loop_check() - remembers the first round that failed, and says why. */
TAP_PRINTF(3, 4)
static bool tap_loop_check(struct tap_loop *l, bool good, const char *fmt, ...)
{
	va_list ap;

	if (!good && !l->failed) {
		va_start(ap, fmt);
		printf("# ");
		vprintf(fmt, ap);
		putchar('\n');
		va_end(ap);
		l->failed = true;
	}
	return good;
}

/*
 * tap_loop() - true while there is another round to run, then one test.  The
 * floor is reached even if that takes twice the time.
 */
static inline bool tap_loop(struct tap_loop *l)
{
	double now = tap_clock(), time;

	time = l->seconds ? l->seconds : tap_env("NVQ_LOOP_SECONDS", 30);
	if (l->end == 0)
		l->end = now + time;
	else
		l->done++;
	if (!l->failed && l->done < l->count &&
	    (tap_env("NVQ_FULL", 0) || now < l->end ||
	     (l->done < l->floor && now < l->end + time)))
		return true;
	diag("%s: %u rounds of %u (floor %u)", l->name, l->done, l->count,
	     l->floor);
	ok(!l->failed && l->done >= l->floor, "%s", l->name);
	return false;
}

#endif /* TAP_H */
