# SPDX-License-Identifier: MIT
"""The kernel's log, from now on, and which of its lines make a run void."""

import errno
import os
import re
from collections import namedtuple

Record = namedtuple("Record", "facility level text device")
PATH = "/dev/kmsg"
ERR = 3		# KERN_ERR; what is worse has lower numbers
# A WARN() is at the level of a warning.
BAD = re.compile(r"^(WARNING: |BUG: |INFO: task .* blocked)")


def parse(raw):
	"""A record as /dev/kmsg gives it: prefix;text, then lines of properties."""
	head, _, rest = raw.partition(";")
	lines = rest.split("\n")
	priority = int(head.split(",")[0])
	device = ""
	for line in lines[1:]:
		if line.startswith(" DEVICE="):
			device = line[8:]
	return Record(priority >> 3, priority & 7, lines[0], device)


def is_error(record):
	"""Errors of the kernel's own, and warnings with a stack.  Of what user space writes
	there only what is in the name of an NVMe driver: others log their own errors."""
	if record.facility and not re.match(r"(nvme|nvqueue|nvq)\b", record.text):
		return False
	return record.level <= ERR or bool(BAD.match(record.text))


def concerns(record, ours, others):
	"""A line that names another drive and not ours is about that one; ours and others
	are names: 0000:03:00.0, nvq0, nvme0."""
	said = record.text + " " + record.device
	words = set(re.findall(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|(?:nvq|nvme)\d+", said))
	return bool(words & ours) or not words & others


def voids(records, ours, others):
	return [r.text for r in records if is_error(r) and concerns(r, ours, others)]


class Log:
	"""What the kernel says from when this is made."""

	def __init__(self, path=None):
		path = path or PATH
		self.fd = -1
		self.why_not = None
		try:
			self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
			os.lseek(self.fd, 0, os.SEEK_END)
		except OSError as error:
			self.why_not = f"{path}: {error.strerror}"

	def new(self):
		"""The records since last asked."""
		records = []
		while self.fd >= 0:
			try:
				raw = os.read(self.fd, 8192)
			except OSError as error:
				# EPIPE: some were overwritten before we came; go on behind
				if error.errno == errno.EPIPE:
					continue
				break
			if not raw:
				break
			records.append(parse(raw.decode(errors="replace")))
		return records

	def close(self):
		if self.fd >= 0:
			os.close(self.fd)
		self.fd = -1
