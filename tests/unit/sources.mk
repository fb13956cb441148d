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
