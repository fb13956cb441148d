# SPDX-License-Identifier: MIT
#
# The unit tests: add a program to nvq_units and its sources below it.
nvq_units = \
	tests/unit/test_inuse

tests_unit_test_inuse_SOURCES = tests/unit/test_inuse.c
tests_unit_test_inuse_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tools
tests_unit_test_inuse_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_inuse_LDADD = tools/libtool-nvq.la $(CMOCKA_LIBS)
