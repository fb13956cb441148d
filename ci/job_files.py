# SPDX-License-Identifier: MIT
"""The experiments of jobs/: what the heads of the job files say, what is to be run for
it, and what comes of the runs.  jobs/README.md describes the head's lines."""

import configparser
import itertools
import json
import os
import re

from bench_reading import iops_of_t_io_uring, jobs_of_fio, latency_of_job, read

JOBS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jobs")
KEY = re.compile(r"^(?P<path>[a-z]+(?:\+\w+=\w+)?):(?P<section>[\w-]+)(?:@(?P<point>\S+))?$")
OPERATORS = {
	">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
	"<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
}


class BadHead(Exception):
	pass


class Comparison:
	"""LEFT / RIGHT; thread TEXT; expect OP NUMBER.  RIGHT may be "-": LEFT's own value."""

	def __init__(self, text):
		self.text = text
		parts = [part.strip() for part in text.split(";")]
		self.left, _, self.right = (side.strip() for side in parts[0].partition(" / "))
		if not self.right:
			raise BadHead(f"compare: no LEFT / RIGHT in '{text}'")
		self.thread, self.op, self.limit = "-", None, None
		for part in parts[1:]:
			word, _, rest = part.partition(" ")
			if word == "thread":
				self.thread = rest
			elif word == "expect":
				self.op, limit = rest.split()
				self.limit = float(limit)
				if self.op not in OPERATORS:
					raise BadHead(f"compare: what is {self.op}?")
			else:
				raise BadHead(f"compare: what is '{part}'?")

	def keys(self):
		return [key for key in (self.left, self.right) if key != "-"]

	def judge(self, values):
		"""A dictionary for the results, or None if one of the sides was not run."""
		if any(key not in values for key in self.keys()):
			return None
		ours = values[self.left] / (1 if self.right == "-" else values[self.right])
		met = OPERATORS[self.op](ours, self.limit) if self.op else None
		return {"what": " / ".join(self.keys()), "thread": self.thread,
		        "ours": ours, "op": self.op, "limit": self.limit, "met": met}


class Experiment:
	def __init__(self, file):
		self.file = os.path.abspath(file)
		self.name = os.path.splitext(os.path.basename(file))[0]
		self.head = {}
		for line in read(file).splitlines():
			m = re.match(r"# ([a-zA-Z_/-]+): +(.*)", line)
			if m:
				self.head.setdefault(m[1], []).append(m[2])
		self.paths = self.one("paths", "").split()
		self.drives = int(self.one("drives", "1"))
		self.timed = self.one("guest", "icount") == "timed"
		self.sections = self.read_sections(file)
		self.tool = dict(line.split(" ", 1) for line in self.head.get("t/io_uring", []))
		self.variants = [line.replace(" ", "+") for line in self.head.get("variant", [])]
		self.sweeps = [self.read_sweep(line) for line in self.head.get("sweep", [])]
		self.skips = [line.split() for line in self.head.get("skip", [])]
		self.defaults = dict(pair.split("=") for pair in self.one("default", "").split())
		self.comparisons = [Comparison(text) for text in self.head.get("compare", [])]

	def one(self, key, default):
		return self.head.get(key, [default])[0]

	@staticmethod
	def read_sections(file):
		ini = configparser.RawConfigParser(allow_no_value=True, delimiters=("=",), strict=False)
		ini.read(file)
		return [s for s in ini.sections() if s != "global"]

	@staticmethod
	def read_sweep(line):
		"""VARIABLE POINT...; full POINT...: the few points, and all of them."""
		few, _, every = line.partition(";")
		name, *few = few.split()
		return name, few, every.split()[1:] or few

	def reported(self):
		"""Sections that have figures of their own: fio adds a group up under its first
		job, and the busy job of one does no I/O."""
		named = {KEY.match(key)["section"] for c in self.comparisons for key in c.keys()}
		return [s for s in self.sections if s in named]

	def check(self):
		"""Says what is wrong with the head."""
		wrong = [f"no # {key}:" for key in ("thread", "about", "paths") if not self.one(key, "")]
		known = self.sections + list(self.tool)
		for comparison in self.comparisons:
			for key in comparison.keys():
				m = KEY.match(key)
				if not m:
					wrong.append(f"compare: {key} is no PATH:SECTION[@POINT]")
				elif m["path"] not in self.paths + self.variants:
					wrong.append(f"compare: {key}: the path is not one of # paths:")
				elif m["section"] not in known:
					wrong.append(f"compare: {key}: no such section")
				elif m["section"] in self.sections and m["point"] not in self.all_points():
					wrong.append(f"compare: {key}: no such point")
		return wrong

	def all_points(self):
		return {point for points in (self.points("few"), self.points("full")) for point in points}

	def points(self, extent):
		"""NAME=VALUE,... of each point; None where nothing is swept.  Of several sweeps, for
		"few" and "full" each value with each; for the check all move on together."""
		if not self.sweeps:
			return [None]
		lists = [every if extent == "full" else few for _, few, every in self.sweeps]
		names = [name for name, _, _ in self.sweeps]
		combined = itertools.product(*lists)
		if extent == "check":
			most = max(map(len, lists))
			combined = ([values[i % len(values)] for values in lists] for i in range(most))
		return [",".join(f"{n}={v}" for n, v in zip(names, values)) for values in combined]

	def is_skipped(self, path, point):
		return any(path == p and setting in (point or "").split(",") for p, setting in self.skips)

	def runs(self, extent, runtime):
		"""What is to be run, each a dictionary with the fields of a line of the plan."""
		settings = self.one("in-guest", "").split() + [f"NVQ_RUNTIME={runtime}"]
		runs = []
		for path in self.paths + self.variants:
			for point in self.points(extent):
				if not self.is_skipped(path, point):
					runs.append({"path": path, "point": point, "kind": "fio", "arguments": self.file,
					             "settings": settings + (point.split(",") if point else [])})
			if extent == "check" or path.split("+")[0] not in ("block", "passthrough", "cmd"):
				continue
			for section, arguments in self.tool.items():
				runs.append({"path": path, "point": None, "kind": "t", "section": section,
				             "arguments": arguments, "settings": []})
		for i, run in enumerate(runs):
			run["id"] = f"{self.name}.{i}"
		return runs

	def outputs(self, runs, directory):
		"""(run, what it printed, "@POINT" or nothing) of those that ran."""
		failed = read(directory, "failed").split()
		for run in runs:
			if run["id"] not in failed:
				yield run, read(directory, run["id"] + ".out"), f"@{run['point']}" if run["point"] else ""

	def values(self, runs, directory):
		"""{PATH:SECTION[@POINT]: IOPS, or what is measured instead}, of those that ran."""
		values = {}
		for run, text, at in self.outputs(runs, directory):
			if run["kind"] == "t":
				values[f"{run['path']}:{run['section']}"] = iops_of_t_io_uring(text)
				continue
			for job in jobs_of_fio(text):
				iops = job["read"]["iops"] + job["write"]["iops"]
				# no such file in the check, whose guest has no probes
				probed = read(directory, run["id"] + ".probe")
				if iops and probed:
					iops = share_of_empty(probed)
				# a busy job has none
				if iops:
					values[f"{run['path']}:{job['jobname']}{at}"] = iops
		return values

	def latencies(self, runs, directory):
		"""{PATH:SECTION[@POINT]: {"mean": ns, "99": ns, ...}} of jobs with lat_percentiles."""
		found = {f"{run['path']}:{job['jobname']}{at}": latency_of_job(job)
		         for run, text, at in self.outputs(runs, directory) if run["kind"] == "fio"
		         for job in jobs_of_fio(text)}
		return {key: latency for key, latency in found.items() if latency}

	def settings(self):
		"""What the variables are that are not swept, where the head says so."""
		pairs = self.one("default", "").split() + self.one("in-guest", "").split()
		swept = [name for name, _, _ in self.sweeps]
		return {name: value for name, value in (p.split("=") for p in pairs) if name not in swept}


def share_of_empty(text):
	"""Of "FUNCTION EMPTY FOUND" lines: calls that found nothing, of all calls."""
	counts = [list(map(int, line.split()[1:])) for line in text.splitlines()]
	empty, found = (sum(column) for column in zip(*counts))
	if not found:
		raise ValueError("the probes have counted no poll that found something")
	return empty / (empty + found)


def plan_line(run):
	return "\t".join((run["id"], run["path"], " ".join(run["settings"]) or "-", run["kind"],
	                  run["arguments"]))


def write_plan(runs, directory):
	with open(os.path.join(directory, "plan"), "w", encoding="utf-8") as f:
		f.writelines(plan_line(run) + "\n" for run in runs)
	with open(os.path.join(directory, "runs.json"), "w", encoding="utf-8") as f:
		json.dump(runs, f, indent=1)


def experiments(names=()):
	files = sorted(f for f in os.listdir(JOBS) if f.endswith(".fio"))
	found = [Experiment(os.path.join(JOBS, f)) for f in files]
	found = [e for e in found if e.paths]
	unknown = set(names) - {e.name for e in found}
	if unknown:
		raise BadHead(f"no experiment {', '.join(sorted(unknown))}")
	return [e for e in found if not names or e.name in names]
