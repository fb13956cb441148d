# SPDX-License-Identifier: MIT
"""What ci/bench-table and ci/experiments read: the output of t/io_uring and fio."""

import json
import os
import re


def read(*path):
	try:
		with open(os.path.join(*path), encoding="utf-8", errors="replace") as f:
			return f.read()
	except FileNotFoundError:
		return ""


def iops_of_t_io_uring(text):
	"""From IOPS=355.12K, BW=..., a line a second, of which the first has the start
	in it; nvq-perf prints one that is alike, at its end."""
	factor = {"": 1, "K": 1e3, "M": 1e6}
	values = [float(number) * factor[unit]
	          for number, unit in re.findall(r"^IOPS=([\d.]+)([KM]?)[, ]", text, re.M)]
	values = values[1:] or values
	return sum(values) / len(values)


def jobs_of_fio(text):
	"""The jobs of fio's JSON, which may stand between other output."""
	start = re.search(r"^\{", text, re.M).start()
	jobs = json.JSONDecoder().raw_decode(text, start)[0]["jobs"]
	for job in jobs:
		if job["error"]:
			raise ValueError(f"fio: {job['jobname']}: error {job['error']}")
	return jobs


def iops_of_fio(text):
	return jobs_of_fio(text)[0]["read"]["iops"]


def latency_of_job(job):
	"""{"mean": ns, "99": ns, ...} from submission to completion, the worse direction's;
	empty without lat_percentiles.  Not clat: engines differ in when it begins."""
	latency = {}
	for direction in (job["read"], job["write"]):
		found = direction.get("lat_ns", {})
		if found.get("percentile"):
			numbers = {f"{float(p):g}": ns for p, ns in found["percentile"].items()}
			for name, ns in {"mean": found["mean"], **numbers}.items():
				latency[name] = max(ns, latency.get(name, 0))
	return latency
