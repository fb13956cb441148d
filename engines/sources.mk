# SPDX-License-Identifier: MIT
#
# The fio engine's sources.
nvq_engine_c = \
	engines/nvqueue.c
