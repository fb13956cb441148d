# SPDX-License-Identifier: MIT
#
# libnvq's sources.
nvq_lib_c = \
	lib/error.c \
	lib/native.c \
	lib/open.c \
	lib/ring.c \
	lib/status.c \
	lib/sync.c \
	lib/sysfs.c
nvq_lib_h = \
	lib/internal.h
