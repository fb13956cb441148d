# SPDX-License-Identifier: MIT
"""nvq-qual: runs a suite of fio jobs on NVMe drives and says how it went."""
