# SPDX-License-Identifier: MIT
#
# The unit tests: add a program to nvq_units, and its variables below.
nvq_units = \
	tests/unit/test_inuse \
	tests/unit/test_pci

nvq_tool_unit_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/tools
nvq_unit_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
nvq_fixture = tests/unit/fixture.c tests/unit/fixture.h

tests_unit_test_inuse_SOURCES = tests/unit/test_inuse.c $(nvq_fixture)
tests_unit_test_inuse_CPPFLAGS = $(nvq_tool_unit_cppflags)
tests_unit_test_inuse_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_inuse_LDADD = tools/libtool-nvq.la $(CMOCKA_LIBS)

tests_unit_test_pci_SOURCES = tests/unit/test_pci.c $(nvq_fixture)
tests_unit_test_pci_CPPFLAGS = $(nvq_tool_unit_cppflags)
tests_unit_test_pci_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_pci_LDADD = tools/libtool-nvq.la $(CMOCKA_LIBS)

nvq_units += \
	tests/unit/test_lib_cq \
	tests/unit/test_lib_native \
	tests/unit/test_lib_query \
	tests/unit/test_lib_ring \
	tests/unit/test_lib_status

nvq_lib_unit_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/lib
nvq_lib_unit_libs = lib/libnvq-core.la $(LIBURING_LIBS) $(CMOCKA_LIBS)

tests_unit_test_lib_cq_SOURCES = tests/unit/test_lib_cq.c
tests_unit_test_lib_cq_CPPFLAGS = $(nvq_lib_unit_cppflags)
tests_unit_test_lib_cq_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_lib_cq_LDADD = $(nvq_lib_unit_libs)

# The queue file is the test's own: its ioctls, its mappings.
tests_unit_test_lib_native_SOURCES = tests/unit/test_lib_native.c \
	tests/unit/native_kernel.h
tests_unit_test_lib_native_CPPFLAGS = $(nvq_lib_unit_cppflags)
tests_unit_test_lib_native_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_lib_native_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=ioctl,--wrap=fcntl,--wrap=fcntl64,--wrap=mmap,--wrap=mmap64 \
	-Wl,--wrap=munmap,--wrap=getrlimit,--wrap=getrlimit64
tests_unit_test_lib_native_LDADD = $(nvq_lib_unit_libs)

tests_unit_test_lib_query_SOURCES = tests/unit/test_lib_query.c
tests_unit_test_lib_query_CPPFLAGS = $(nvq_lib_unit_cppflags)
tests_unit_test_lib_query_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_lib_query_LDADD = $(nvq_lib_unit_libs)

# io_uring_enter() is the test's own, which plays kernel and drive.
tests_unit_test_lib_ring_SOURCES = tests/unit/test_lib_ring.c
tests_unit_test_lib_ring_CPPFLAGS = $(nvq_lib_unit_cppflags)
tests_unit_test_lib_ring_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_lib_ring_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=io_uring_enter,--wrap=io_uring_enter2
tests_unit_test_lib_ring_LDADD = $(nvq_lib_unit_libs)

tests_unit_test_lib_status_SOURCES = tests/unit/test_lib_status.c
tests_unit_test_lib_status_CPPFLAGS = $(nvq_lib_unit_cppflags)
tests_unit_test_lib_status_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_lib_status_LDADD = $(nvq_lib_unit_libs) $(LIBNVME_LIBS)

# The driver's pure headers, compiled natively.
nvq_units += \
	tests/unit/test_dptr \
	tests/unit/test_opcode

nvq_driver_unit_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/driver

tests_unit_test_dptr_SOURCES = tests/unit/test_dptr.c
tests_unit_test_dptr_CPPFLAGS = $(nvq_driver_unit_cppflags)
tests_unit_test_dptr_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_dptr_LDADD = $(CMOCKA_LIBS)

tests_unit_test_opcode_SOURCES = tests/unit/test_opcode.c
tests_unit_test_opcode_CPPFLAGS = $(nvq_driver_unit_cppflags)
tests_unit_test_opcode_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_opcode_LDADD = $(CMOCKA_LIBS)

nvq_units += tests/unit/test_stage

tests_unit_test_stage_SOURCES = tests/unit/test_stage.c \
	tests/unit/stage_model.h
tests_unit_test_stage_CPPFLAGS = $(nvq_driver_unit_cppflags)
tests_unit_test_stage_CFLAGS = $(nvq_unit_cflags)
tests_unit_test_stage_LDADD = $(CMOCKA_LIBS)
