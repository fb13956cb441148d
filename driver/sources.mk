# SPDX-License-Identifier: MIT
#
# The module's sources, read by Kbuild and by Makefile.am.
nvq_driver_c = \
	main.c \
	pci.c \
	ctrl.c \
	admin.c \
	ring.c \
	queue.c \
	poll.c \
	sync.c \
	life.c \
	map.c \
	passthru.c \
	ioctl.c \
	uring.c \
	qfile.c \
	cfile.c \
	recover.c \
	sysfs.c \
	ns.c \
	nodes.c \
	native.c \
	native_stop.c \
	native_wait.c \
	buffer.c
# with --enable-fault-points only
nvq_fault_c = \
	fault.c
nvq_driver_h = \
	nvqueue.h \
	native.h \
	compat.h \
	dptr.h \
	fault.h \
	fault_alloc.h \
	opcode.h \
	stage.h \
	pure.h
