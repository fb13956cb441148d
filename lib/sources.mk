# SPDX-License-Identifier: MIT
#
# libnvq's sources.
nvq_lib_c = \
	lib/nvq.c
nvq_lib_h =
