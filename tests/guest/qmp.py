#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hands a guest's wishes to its QEMU: on the host, beside the guest.

usage: qmp.py DIR

DIR is shared with the guest.  DIR/qmp is QEMU's socket; a QMP command in
DIR/qmp.ask (put there by a rename; $WORK in it is DIR) is executed, and what QEMU
says goes into
DIR/qmp.answer: {"return": ...} or {"error": ...}.  Ends with QEMU.  See qmp()
in lib.sh.
"""

import json
import os
import select
import socket
import sys
import time


class Qemu:
    """QEMU's end of the socket, line by line."""

    def __init__(self, path):
        self.rest = b""
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(path)
                break
            except OSError:
                self.socket.close()
                time.sleep(0.1)

    def line(self):
        while b"\n" not in self.rest:
            data = self.socket.recv(65536)
            if not data:
                sys.exit(0)
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def execute(self, command):
        """The answer to a command; events are passed over."""
        self.socket.sendall(command.encode() + b"\n")
        while True:
            answer = self.line()
            if "return" in answer or "error" in answer:
                return answer

    def idle(self, seconds):
        """Waits, and passes events over; ends with QEMU."""
        if select.select([self.socket], [], [], seconds)[0]:
            self.line()


def serve(directory):
    ask = os.path.join(directory, "qmp.ask")
    answer = os.path.join(directory, "qmp.answer")
    qemu = Qemu(os.path.join(directory, "qmp"))
    qemu.line()
    qemu.execute('{"execute": "qmp_capabilities"}')
    while True:
        qemu.idle(0.05)
        if not os.path.exists(ask):
            continue
        with open(ask) as f:
            command = f.read().replace("\n", " ").replace("$WORK", directory)
        os.unlink(ask)
        text = json.dumps(qemu.execute(command))
        with open(answer + ".new", "w") as f:
            f.write(text + "\n")
        os.rename(answer + ".new", answer)


if len(sys.argv) != 2:
    sys.exit(__doc__)
try:
    serve(sys.argv[1])
except (BrokenPipeError, ConnectionError):
    pass
