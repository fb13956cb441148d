# SPDX-License-Identifier: MIT
"""A suite: a fio job file, each section of which is run by itself, on our engine or
on the stock driver.

The file is one that fio takes as it is.  Of its syntax this reads sections, [global]
and comments; it knows no includes and no variables but ${NVQ_ENGINE}."""

import os
import re

from . import fio, units

# What our engine knows and io_uring_cmd does not (nvqueue-fio(1)).
# A generic node takes no O_DIRECT, and polling needs queues that nvme.ko seldom has.
NOT_FOR_STOCK = {"direct", "hipri"}
ENGINE_ONLY = {"phase_check", "submit", "queue_kind", "queue_map",
               "queue_offset", "nsid", "queue_stats"}
SUITES = ("quick", "full", "endurance")


class SuiteError(Exception):
	"""What is wrong with the file, or with its name."""


class Job:
	def __init__(self, name, options):
		self.name = name
		self.options = options

	def get(self, key, default=None):
		return self.options.get(key, default)

	def rw(self):
		return self.get("rw", self.get("readwrite", "read"))

	def writes(self):
		"""Anything but plain reads, which fio then refuses to do (--readonly)."""
		return self.rw().split(":")[0] not in fio.READ_ONLY

	def number(self, key, default):
		return int(self.get(key, default))

	def biggest_block(self):
		text = self.get("bs", self.get("bsrange", self.get("bssplit", "4k")))
		return max(units.parse_size(re.split(r"[/]", part)[0])
		           for part in re.split(r"[,:-]", text) if part)

	def seconds(self):
		"""How long it is going to take; None if it is over when its work is done."""
		ramp = units.parse_seconds(self.get("ramp_time", "0"))
		if "time_based" not in self.options or "runtime" not in self.options:
			return None
		return ramp + units.parse_seconds(self.get("runtime"))


def parse(text, name="suite"):
	"""Jobs, in order."""
	common, jobs, now = {}, [], None
	for number, line in enumerate(text.splitlines(), 1):
		line = line.strip()
		if not line or line[0] in "#;":
			continue
		m = re.fullmatch(r"\[(\S+)\]", line)
		if m and m[1] == "global":
			now = common
		elif m:
			now = dict(common)
			jobs.append(Job(m[1], now))
		elif now is None or line.startswith("include"):
			raise SuiteError(f"{name}:{number}: \"{line}\" is not for a suite")
		else:
			key, _, value = line.partition("=")
			now[key.strip()] = value.strip()
	if not jobs:
		raise SuiteError(f"{name}: no job in it")
	if len({j.name for j in jobs}) != len(jobs):
		raise SuiteError(f"{name}: two jobs of one name")
	return jobs


def choose(jobs, names):
	"""Those of these names; all without any."""
	missing = set(names or ()) - {j.name for j in jobs}
	if missing:
		raise SuiteError(f"the suite has no job \"{sorted(missing)[0]}\": "
		                 f"{', '.join(j.name for j in jobs)}")
	return [j for j in jobs if not names or j.name in names]


REHEARSED = "16m"	# bytes of a job that ends when its work is done
SIZES = ("size", "io_size", "loops")


def rehearsal(job):
	"""The same job, over in a moment: no ramp, a second if it runs for a time, else a few
	bytes once."""
	options = {**job.options, "ramp_time": "0"}
	if job.seconds() is None:
		for key in SIZES:
			options.pop(key, None)
		options["size"] = REHEARSED
	else:
		options["runtime"] = "1"
	return Job(job.name, options)


def path_of(directory, name):
	if name not in SUITES:
		raise SuiteError(f"there is no suite \"{name}\": {', '.join(SUITES)}")
	return os.path.join(directory, name + ".fio")


def all_names(directory):
	"""Of every job of every suite: what a limits file may have sections for."""
	names = set()
	for suite in SUITES:
		with open(path_of(directory, suite), encoding="utf-8") as f:
			names |= {job.name for job in parse(f.read(), suite)}
	return names


def why_not(job, write, target, has):
	"""Why a job cannot run, or None.  target: "" for the controller, or its queue;
	has: numbers of the drive: mdts, depth, poll, irq, lba."""
	if job.writes() and not write:
		return "it writes (--write)"
	kind = "irq" if job.get("queue_kind") == "irq" else "poll"
	wanted = job.number("numjobs", 1)
	if target:
		if wanted > 1:
			return f"it takes {wanted} queues, and one was given"
		if not target.startswith(kind) and "queue_kind" in job.options:
			return f"it takes a queue of kind {kind}, and {target} was given"
	elif wanted > has.get(kind, wanted):
		return f"it takes {wanted} {kind} queues, and the drive has {has[kind]}"
	if job.number("iodepth", 1) > has.get("depth", 1 << 16) - 1:
		return f"iodepth {job.get('iodepth')} is beyond the queue, {has['depth'] - 1}"
	if job.biggest_block() > has.get("mdts", 1 << 30):
		return f"blocks of {job.get('bs')} are beyond MDTS, {has['mdts']} bytes"
	if job.biggest_block() % has.get("lba", 1):
		return f"blocks of {job.get('bs')} do not fit an LBA of {has['lba']} bytes"
	return None


def job_file(job, engine, filename, percentiles, runtime=None):
	"""The text of a job file that runs one job: ours, or, with engine=None, the same
	on the stock driver's passthrough, by interrupts."""
	options = dict(job.options)
	for key in ("ioengine", "filename", "percentile_list", "group_reporting"):
		options.pop(key, None)
	if engine is None:
		for key in ENGINE_ONLY | NOT_FOR_STOCK:
			options.pop(key, None)
		options = {"ioengine": "io_uring_cmd", "cmd_type": "nvme", **options}
	else:
		options = {"ioengine": "external:" + engine, **options}
	options["filename"] = filename
	options["group_reporting"] = "1"
	options["percentile_list"] = ":".join(f"{p:g}" for p in percentiles)
	if runtime is not None and "time_based" in options:
		options["runtime"] = str(runtime)
	lines = ["# written by nvq-qual; fio runs it as it is", f"[{job.name}]"]
	lines += [f"{key}={value}" if value else key for key, value in options.items()]
	return "\n".join(lines) + "\n"
