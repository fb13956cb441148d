#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Data that says where it belongs: each 512-byte block names its own number and
# a salt, and has no two equal words.
#
#	pattern.py write FILE FIRST COUNT SALT	blocks FIRST.. of the pattern, at
#						their places in FILE
#	pattern.py make FILE FIRST COUNT SALT	the same from the start of FILE
#	pattern.py check FILE FIRST COUNT SALT	are they at their places?

import os
import struct
import sys

BLOCK = 512
RAMP = struct.pack("<124I", *range(0x6e767100, 0x6e767100 + 124))


def blocks(first, count, salt):
    return b"".join(struct.pack("<QQ", first + i, salt) + RAMP for i in range(count))


def put(path, at, data):
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as f:
        f.seek(at)
        f.write(data)


def check(path, first, count, salt):
    with open(path, "rb") as f:
        f.seek(first * BLOCK)
        got = f.read(count * BLOCK)
    want = blocks(first, count, salt)
    if got == want:
        return 0
    for i in range(count):
        g = got[i * BLOCK:(i + 1) * BLOCK]
        if g != want[i * BLOCK:(i + 1) * BLOCK]:
            print(f"block {first + i} is wrong: {g[:32].hex()}, not block number, salt {salt}, ramp")
            return 1
    return 1


def main():
    verb, path = sys.argv[1:3]
    first, count, salt = (int(a, 0) for a in sys.argv[3:6])
    if verb == "check":
        return check(path, first, count, salt)
    put(path, first * BLOCK if verb == "write" else 0, blocks(first, count, salt))
    return 0


sys.exit(main())
