/* SPDX-License-Identifier: MIT */
/*
 * What libnvq's files share among themselves.
 */
#ifndef NVQ_INTERNAL_H
#define NVQ_INTERNAL_H

#include <time.h>

#include "nvq.h"

#define __printf(fmt, args) __attribute__((format(printf, fmt, args)))

/* Where sysfs is; the unit tests put a directory of theirs here. */
extern const char *nvq_sysfs;

/* Fill @err, if there is one, and return @code. */
int nvq_fail(struct nvq_error *err, int code, const char *fmt, ...)
	__printf(3, 4);

/* strerror() of @code, a negative errno; with number and way out of a limit. */
#define NVQ_WHY_LEN	160
const char *nvq_why(int code, char *buf, size_t len);

/* A file of /sys/class/nvqueue/@name as text, without its newline; or -errno. */
int nvq_attr(const char *name, const char *attr, char *buf, size_t len);

/* The same as a number; -errno if it is missing or no number. */
int nvq_attr_u64(const char *name, const char *attr, uint64_t *val);

/* Name and kind from a device's path; fills those fields of @info only. */
int nvq_identify(struct nvq_info *info, const char *path,
		 struct nvq_error *err);

/* "pid 1234 (fio)", or "another process" if sysfs does not say. */
const char *nvq_owner_text(const char *name, char *buf, size_t len);

/*
 * The descriptor to enter a ring with: registered where that works, which saves
 * a reference on the ring's file per call in threaded programs; *@flags then
 * says so.
 */
int nvq_enter_fd(struct io_uring *u, unsigned int *flags);

/* Between two looks of a spin. */
static inline void nvq_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Milliseconds of a clock that only goes forward. */
static inline uint64_t nvq_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

#endif /* NVQ_INTERNAL_H */
