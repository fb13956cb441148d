# SPDX-License-Identifier: MIT
"""Progress and time left, on standard error: one line that is rewritten on a terminal,
a line now and then elsewhere."""

import re
import sys
import threading
import time

from . import units

QUIET = 30	# seconds between two lines that are no terminal's
ETA = re.compile(r"\[\s*([\d.]+)%\]")
LEFT = re.compile(r"\[eta (?:(\d+)d:)?(?:(\d+)h:)?(\d+)m:(\d+)s\]")
IOPS = re.compile(r"\[[^\]]*?([\d.]+[kM]?)(?:,[^\]]*)? IOPS\]")


def parse_eta(line):
	"""(percent, seconds left, IOPS as fio writes it) of fio's line; None for what it
	does not say."""
	percent, left, iops = ETA.search(line), LEFT.search(line), IOPS.search(line)
	seconds = None
	if left:
		d, h, m, s = (int(part or 0) for part in left.groups())
		seconds = ((d * 24 + h) * 60 + m) * 60 + s
	return (float(percent[1]) if percent else None, seconds, iops[1] if iops else None)


class Track:
	"""One drive's: planned has (job, seconds or None) for what is to do."""

	def __init__(self, name, planned, count):
		self.name = name
		self.planned = planned
		self.count = count
		self.job = None
		self.percent = self.left = self.iops = None
		self.begun = 0.0
		self.expected = None

	def start(self, job):
		self.job = job
		self.percent = self.left = self.iops = None
		self.begun = time.monotonic()
		self.expected = dict(self.planned).get(job)
		self.planned = [p for p in self.planned if p[0] != job]

	def feed(self, line):
		percent, left, iops = parse_eta(line)
		self.percent = self.percent if percent is None else percent
		self.left = self.left if left is None else left
		self.iops = iops or self.iops

	def stop(self):
		self.job = None

	def seconds_left(self):
		"""(seconds, whether that is all that is known to come)"""
		total, all_known = 0.0, True
		for _, seconds in self.planned:
			total += seconds or 0
			all_known = all_known and seconds is not None
		if self.job:
			elapsed = time.monotonic() - self.begun
			if self.expected is not None:
				total += max(self.expected - elapsed, 0)
			elif self.left is not None:
				total += self.left
			else:
				all_known = False
		return total, all_known

	def text(self):
		done = self.count - len(self.planned)
		if not self.job:
			return f"{self.name} {done}/{self.count}"
		percent = "" if self.percent is None else f" {self.percent:.0f}%"
		iops = f" {self.iops} IOPS" if self.iops else ""
		return f"{self.name} {done}/{self.count} {self.job}{percent}{iops}"


class Progress:
	def __init__(self, out=sys.stderr):
		self.out = out
		self.tracks = []
		self.tty = out.isatty()
		self.lock = threading.Lock()
		self.width = 0
		self.shown = time.monotonic()

	def add(self, track):
		self.tracks.append(track)

	def write(self, text):
		"""A terminal that has gone is no reason to end what it had started."""
		try:
			self.out.write(text)
			self.out.flush()
		except OSError:
			self.tty = False

	def line(self):
		left = [t.seconds_left() for t in self.tracks] or [(0, True)]
		seconds = max(s for s, _ in left)
		about = "" if all(known for _, known in left) else "at least "
		return ("  |  ".join(t.text() for t in self.tracks) +
		        f"  |  {about}{units.show_duration(seconds)} left")

	def show(self):
		"""Called several times a second."""
		with self.lock:
			if self.tty:
				text = self.line()[:199]
				self.write("\r" + text.ljust(self.width))
				self.width = len(text)
			elif time.monotonic() - self.shown >= QUIET:
				self.write(f"nvq-qual: {self.line()}\n")
				self.shown = time.monotonic()

	def say(self, text):
		"""A line that stays."""
		with self.lock:
			if self.tty and self.width:
				self.write("\r" + " " * self.width + "\r")
				self.width = 0
			self.write(f"nvq-qual: {text}\n")
			self.shown = time.monotonic()
