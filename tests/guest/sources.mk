# SPDX-License-Identifier: MIT
#
# The guest suites' C programs: tests/guest/NAME.c, of one file each, linked
# with libnvq.  Add a name to the list; `make` builds them, tests/guest/run runs
# the suites (tests/guest/*.test) that run them.
nvq_guest_programs = \
	tests/guest/copy \
	tests/guest/drop

# rings.test; they and those below share queue.c
nvq_guest_programs += \
	tests/guest/fullqueue \
	tests/guest/passthru \
	tests/guest/ring_cells \
	tests/guest/transfers

# safety.test
nvq_guest_programs += \
	tests/guest/maps \
	tests/guest/owner \
	tests/guest/refusals

# lifetime.test, lifetime_iommu.test
nvq_guest_programs += \
	tests/guest/churn

# faults.test
nvq_guest_programs += \
	tests/guest/removal \
	tests/guest/resets \
	tests/guest/timeouts

# faultpoints.test; they share faulty.c
nvq_guest_programs += \
	tests/guest/fault_ctrl \
	tests/guest/fault_queue

# nomem.test
nvq_guest_programs += \
	tests/guest/nomem

# formats.test
nvq_guest_programs += \
	tests/guest/formats

# resize.test
nvq_guest_programs += \
	tests/guest/resize

# boundary.test
nvq_guest_programs += \
	tests/guest/boundary \
	tests/guest/memory

# stall.test
nvq_guest_programs += \
	tests/guest/held

# resync.test
nvq_guest_programs += \
	tests/guest/resync \
	tests/guest/stuck

# survive.test, unplug.test, power.test, reboot.test and more
nvq_guest_programs += \
	tests/guest/acked \
	tests/guest/dying \
	tests/guest/passed_on

# hostile.test; of several files, see Makefile.am
nvq_guest_programs += \
	tests/guest/hostile
