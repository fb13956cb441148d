# SPDX-License-Identifier: MIT
#
# The guest suites' C programs: tests/guest/NAME.c, of one file each, linked
# with libnvq.  Add a name to the list; `make` builds them, tests/guest/run runs
# the suites (tests/guest/*.test) that run them.
nvq_guest_programs = \
	tests/guest/copy
