# SPDX-License-Identifier: MIT
#
# The tool's sources, but for its main().
nvq_tool_c = \
	tools/util.c \
	tools/json.c \
	tools/sysfs.c \
	tools/pci.c \
	tools/drive.c \
	tools/mounts.c \
	tools/holders.c \
	tools/procs.c \
	tools/hold.c \
	tools/nodes.c \
	tools/rebind.c \
	tools/bind.c \
	tools/unbind.c \
	tools/list.c \
	tools/stats.c
nvq_tool_h = \
	tools/tool.h \
	tools/inuse.h \
	tools/json.h
