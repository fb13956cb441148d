# SPDX-License-Identifier: MIT
#
# The fio engine's sources.
nvq_engine_c = \
	engines/failure.c \
	engines/issue.h \
	engines/native.c \
	engines/nvqueue.c \
	engines/nvqueue.h \
	engines/options.c \
	engines/setup.c
