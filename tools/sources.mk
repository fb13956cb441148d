# SPDX-License-Identifier: MIT
#
# The tool's sources, but for its main().
nvq_tool_c = \
	tools/sysfs.c \
	tools/pci.c \
	tools/json.c \
	tools/inuse.c \
	tools/holders.c \
	tools/hold.c \
	tools/nodes.c \
	tools/bind.c \
	tools/unbind.c \
	tools/list.c \
	tools/stats.c
nvq_tool_h = \
	tools/tool.h \
	tools/inuse.h \
	tools/json.h
