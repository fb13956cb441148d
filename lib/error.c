// SPDX-License-Identifier: MIT
/*
 * Error texts.
 */
#include <stdarg.h>
#include <stdio.h>

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
