# SPDX-License-Identifier: MIT
"""fio's JSON: the figures of a job, whatever else fio printed around them."""

import json
import re

DIRECTIONS = ("read", "write", "trim")
READ_ONLY = ("read", "randread")


class FioError(Exception):
	"""Why there are no figures."""


def load(text):
	"""The JSON object; fio prints remarks of engines before it."""
	start = re.search(r"^\{", text, re.M)
	if not start:
		raise FioError("fio left no JSON")
	try:
		data = json.JSONDecoder().raw_decode(text, start.start())[0]
	except ValueError as error:
		raise FioError(f"fio's JSON is broken: {error}") from None
	if not data.get("jobs"):
		raise FioError("fio's JSON has no job in it")
	return data


def percentiles(direction):
	"""{99.0: nanoseconds} of completion latency, or of the total if that is all."""
	for key in ("clat_ns", "lat_ns"):
		found = direction.get(key, {}).get("percentile")
		if found:
			return {float(p): float(ns) for p, ns in found.items()}
	return {}


def latency(direction, key):
	block = direction.get("clat_ns") or direction.get("lat_ns") or {}
	return float(block[key]) if block.get(key) else None


class Figures:
	"""What limits and reports ask of one job; entries of one name are one job."""

	def __init__(self, entries):
		self.entries = entries
		self.used = [d for d in DIRECTIONS
		             if any(e.get(d, {}).get("total_ios") for e in entries)]

	def blocks(self, direction):
		wanted = [direction] if direction else self.used
		return [e[d] for d in wanted for e in self.entries
		        if e.get(d, {}).get("total_ios")]

	def errors(self):
		"""fio tells the number only to those who asked it to go on."""
		return sum(e["total_err"] if e.get("total_err") else
		           1 if e.get("error") else 0 for e in self.entries)

	def error(self):
		"""The first one: an errno, or an NVMe status."""
		return next((e["error"] for e in self.entries if e.get("error")), 0)

	def worst(self, blocks, ask):
		found = [ask(b) for b in blocks]
		found = [f for f in found if f is not None]
		return max(found) if found else None

	def value(self, metric):
		"""A number, None if it was not measured.  Of several directions: the sum of
		rates, the worst of latencies."""
		if metric == "errors":
			return self.errors()
		first, _, rest = metric.partition(".")
		direction, name = (first, rest) if first in DIRECTIONS else (None, metric)
		blocks = self.blocks(direction)
		if not blocks:
			return None
		if name == "iops":
			return sum(b["iops"] for b in blocks)
		if name == "bw":
			return sum(b["bw_bytes"] for b in blocks)
		if name in ("mean", "max"):
			return self.worst(blocks, lambda b: latency(b, name))
		return self.worst(blocks, lambda b: percentiles(b).get(float(name[1:])))

	def percentiles(self):
		"""The worst direction's, for a curve."""
		curve = {}
		for block in self.blocks(None):
			for p, ns in percentiles(block).items():
				curve[p] = max(ns, curve.get(p, 0))
		return curve

	def summary(self):
		"""What is kept of a job beside fio's own file."""
		return {"iops": self.value("iops"), "bw": self.value("bw"),
		        "mean": self.value("mean"), "p50": self.value("p50"),
		        "p99": self.value("p99"), "p99.9": self.value("p99.9"),
		        "p99.99": self.value("p99.99"), "max": self.value("max"),
		        "errors": self.errors(), "error": self.error()}


def jobs(data):
	"""(name, options, Figures) for each job of a fio output, in order."""
	common = data.get("global options", {})
	by_name = {}
	for entry in data["jobs"]:
		by_name.setdefault(entry.get("jobname", "job"), []).append(entry)
	return [(name, {**common, **entries[0].get("job options", {})}, Figures(entries))
	        for name, entries in by_name.items()]


def figures(text):
	"""The Figures of an output with one job."""
	return jobs(load(text))[0][2]
