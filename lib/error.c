// SPDX-License-Identifier: MIT
/*
 * Error texts.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "internal.h"

int nvq_fail(struct nvq_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

const char *nvq_why(int code, char *buf, size_t len)
{
	struct rlimit lim = { 0 };

	switch (code) {
	case -EMFILE:
		getrlimit(RLIMIT_NOFILE, &lim);
		snprintf(buf, len,
			 "too many open files, RLIMIT_NOFILE is %llu for this process: raise it (ulimit -n), or use fewer queues in it",
			 (unsigned long long)lim.rlim_cur);
		return buf;
	case -ENFILE:
		return "too many open files on this machine: raise sysctl fs.file-max";
	default:
		return strerror(-code);
	}
}
