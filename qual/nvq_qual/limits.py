# SPDX-License-Identifier: MIT
"""The limits file: what a job's figures are held to.

A line is METRIC OP VALUE, "#" begins a comment, and [job] a section whose lines
are for that job alone and take the place of the general ones on the same metric."""

import operator
import re
from collections import namedtuple

from . import units

OPS = {">=": operator.ge, "<=": operator.le, ">": operator.gt,
       "<": operator.lt, "=": operator.eq, "==": operator.eq}
DIRECTIONS = ("read", "write", "trim")
Limit = namedtuple("Limit", "metric op value text line")
# fio takes twenty, and these are those that its reader wants to see anyway.
PERCENTILES = (1.0, 5.0, 10.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9,
               99.95, 99.99, 99.999)
MAX_PERCENTILES = 20


class LimitError(Exception):
	"""Names the file and the line."""


def percentile_of(name):
	"""99.99 of "p99.99", or None."""
	m = re.fullmatch(r"p([0-9]+(?:\.[0-9]+)?)", name)
	return float(m[1]) if m and 0 < float(m[1]) < 100 else None


def parse_value(metric, text):
	"""What a metric's value means; ValueError with the reason."""
	name = strip_direction(metric)
	if name == "iops":
		return units.parse_count(text)
	if name == "bw":
		return units.parse_rate(text)
	if name in ("mean", "max") or percentile_of(name) is not None:
		return units.parse_time(text)
	if metric == "errors":
		return units.parse_count(text)
	raise ValueError(f"there is no metric \"{metric}\": iops, bw, mean, max, "
	                 "p99 (any percentile), errors; read., write. or trim. "
	                 "before any but errors")


def parse_line(text, number):
	m = re.fullmatch(r"([A-Za-z0-9_.]+)\s*(>=|<=|==|=|>|<)\s*(\S.*)", text)
	if not m:
		raise ValueError(f"\"{text}\" is not METRIC OP VALUE, as in "
		                 "\"iops >= 400000\"; OP is >=, <=, >, < or =")
	value = parse_value(m[1], m[3])
	return Limit(m[1], m[2], value, " ".join(text.split()), number)


class Limits:
	"""Those for all jobs, and those of each section."""

	def __init__(self):
		self.general = [Limit("errors", "=", 0, "errors = 0", 0)]
		self.sections = {}

	def add(self, section, limit):
		if section is None:
			# one of the file's takes the place of the one that needs no file
			self.general = [old for old in self.general
			                if old.line or old.metric != limit.metric]
			self.general.append(limit)
		else:
			self.sections[section].append(limit)

	def of(self, job):
		own = self.sections.get(job, [])
		named = {limit.metric for limit in own}
		return [l for l in self.general if l.metric not in named] + own

	def percentiles(self, job):
		"""What fio is to print, in order."""
		wanted = {percentile_of(strip_direction(l.metric)) for l in self.of(job)}
		return sorted((wanted - {None}) | set(PERCENTILES))


def strip_direction(metric):
	first, _, rest = metric.partition(".")
	return rest if first in DIRECTIONS else metric


def parse(text, name="limits", jobs=None):
	"""jobs: the names that a section may have, if they are known."""
	limits, section = Limits(), None
	for number, line in enumerate(text.splitlines(), 1):
		line = line.split("#", 1)[0].strip()
		if not line:
			continue
		try:
			m = re.fullmatch(r"\[\s*(\S+)\s*\]", line)
			if m:
				section = m[1]
				if jobs is not None and section not in jobs:
					raise ValueError(f"no suite has a job \"{section}\"; "
					                 "nvq-qual list names them")
				limits.sections.setdefault(section, [])
			else:
				limits.add(section, parse_line(line, number))
		except ValueError as error:
			raise LimitError(f"{name}:{number}: {error}") from None
	check_percentiles(limits, name)
	return limits


def check_percentiles(limits, name):
	for job in list(limits.sections) + [None]:
		if len(limits.percentiles(job)) > MAX_PERCENTILES:
			raise LimitError(f"{name}: more percentiles for one job than fio prints, "
			                 f"{MAX_PERCENTILES - len(PERCENTILES)} besides "
			                 "the usual ones")


def judge(limits, figures):
	"""A check for each limit: what it says, what was measured, whether that meets it.
	What was not measured meets nothing."""
	checks = []
	for limit in limits:
		value = figures.value(limit.metric)
		met = value is not None and OPS[limit.op](value, limit.value)
		checks.append({"limit": limit.text, "metric": limit.metric,
		               "value": value, "met": met})
	return checks


def show_value(check):
	"""What was measured, with its unit."""
	value, name = check["value"], strip_direction(check["metric"])
	if value is None:
		return "not measured"
	if name == "iops":
		return units.show_count(value)
	if name == "bw":
		return units.show_rate(value)
	if name == "errors":
		return f"{value:.0f}"
	return units.show_time(value)
