#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Enables an NVMe controller that has no driver, as firmware may leave it: what
# comes next finds CC.EN set, and admin queues that are not its own.
#
#	enable.py 0000:00:10.0		prints CC and CSTS

import mmap
import struct
import sys
import time

CC, CSTS, AQA, ASQ, ACQ = 0x14, 0x1c, 0x24, 0x28, 0x30
# Page frames that nothing uses: below 640 KiB, above the BIOS's data.
SQ_PAGE, CQ_PAGE = 0x80000, 0x81000

device = "/sys/bus/pci/devices/" + sys.argv[1]
with open(device + "/enable", "w") as f:
    f.write("1")
with open(device + "/resource0", "r+b", buffering=0) as f:
    bar = mmap.mmap(f.fileno(), 0x1000)


def get(reg):
    return struct.unpack_from("<I", bar, reg)[0]


def put(reg, value):
    struct.pack_into("<I", bar, reg, value)


put(AQA, 15 << 16 | 15)
put(ASQ, SQ_PAGE)
put(ASQ + 4, 0)
put(ACQ, CQ_PAGE)
put(ACQ + 4, 0)
put(CC, 4 << 20 | 6 << 16 | 1)
for i in range(100):
    if get(CSTS) & 1:
        break
    time.sleep(0.05)
print(f"CC 0x{get(CC):x} CSTS 0x{get(CSTS):x}")
sys.exit(get(CSTS) & 3 != 1)
