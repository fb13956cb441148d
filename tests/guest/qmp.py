#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hands a guest's wishes to its QEMU: on the host, beside the guest.

usage: qmp.py DIR

DIR is shared with the guest.  DIR/qmp is QEMU's socket; a QMP command in
DIR/qmp.ask (put there by a rename) is executed, and what QEMU says goes into
DIR/qmp.answer: {"return": ...} or {"error": ...}.  Ends with QEMU.  See qmp()
in lib.sh.
"""

import json
import os
import select
import socket
import sys
import time


def connect(path):
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            return s.makefile("rw")
        except OSError:
            s.close()
            time.sleep(0.1)


def execute(qemu, command):
    """The answer to a command; events are passed over."""
    qemu.write(command + "\n")
    qemu.flush()
    for line in qemu:
        answer = json.loads(line)
        if "return" in answer or "error" in answer:
            return answer
    sys.exit(0)


def serve(directory):
    ask = os.path.join(directory, "qmp.ask")
    answer = os.path.join(directory, "qmp.answer")
    qemu = connect(os.path.join(directory, "qmp"))
    qemu.readline()
    execute(qemu, '{"execute": "qmp_capabilities"}')
    while True:
        if select.select([qemu], [], [], 0.05)[0] and not qemu.readline():
            return
        if not os.path.exists(ask):
            continue
        with open(ask) as f:
            command = f.read().replace("\n", " ")
        os.unlink(ask)
        text = json.dumps(execute(qemu, command))
        with open(answer + ".new", "w") as f:
            f.write(text + "\n")
        os.rename(answer + ".new", answer)


if len(sys.argv) != 2:
    sys.exit(__doc__)
try:
    serve(sys.argv[1])
except (BrokenPipeError, ConnectionError):
    pass
