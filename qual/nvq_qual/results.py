# SPDX-License-Identifier: MIT
"""Reads results for reports: folders of ours, folders and files of fio's JSON, all as
records that pictures and tables can be made of, and what ci/bench and ci/experiments
write, as it is."""

import json
import os
import re
from collections import namedtuple

from . import fio, state, units

OURS, STOCK = "nvqueue", "stock driver"
NOT_KNOWN = "neither fio's JSON nor that of ci/bench or ci/experiments"
Record = namedtuple("Record", "run drive job path rw bs depth numjobs figures status")


class ResultError(Exception):
	"""What cannot be read."""


class Result:
	"""One argument of a report."""

	def __init__(self, label):
		self.label = label
		self.records = []
		self.bench = None	# ci/bench's
		self.experiments = None	# ci/experiments'
		self.data = None	# state.json of ours
		self.environment = None

	def kind(self):
		"""Results of one kind can be compared."""
		return "bench" if self.bench else "experiments" if self.experiments else "jobs"


def path_of(options):
	"""How a job of whoever's reached the drive, from its options."""
	engine, file = options.get("ioengine", ""), options.get("filename", "")
	if "libnvqueue" in engine:
		submit = options.get("submit")
		return OURS + (f", {submit}" if submit else "")
	if engine == "io_uring_cmd":
		return "io_uring_cmd, " + ("queue file" if "/dev/nvq" in file else "stock")
	if engine == "io_uring" and "/dev/nvme" in file:
		return "block device"
	return engine or "fio"


def number(text, parse, fallback):
	try:
		return parse(str(text).split(",")[0].split("-")[0])
	except ValueError:
		return fallback


def make_record(run, drive, name, options, figures, path=None, status=None):
	return Record(run, drive, name, path or path_of(options),
	              options.get("rw", options.get("readwrite", "read")).split(":")[0],
	              number(options.get("bs", "4k"), units.parse_size, 4096),
	              number(options.get("iodepth", "1"), int, 1),
	              number(options.get("numjobs", "1"), int, 1), figures, status)


def read_text(path):
	try:
		with open(path, encoding="utf-8", errors="replace") as f:
			return f.read()
	except OSError as error:
		raise ResultError(f"{path}: {error.strerror}") from None


def load_run(path, result):
	"""A folder of nvq-qual's."""
	result.data = state.Folder.open(path).data
	environment = os.path.join(path, "environment.json")
	result.environment = state.read_json(environment) if os.path.exists(environment) else {}
	for drive in result.data["drives"]:
		for key, suffix, way in (("jobs", "", OURS), ("stock", ".stock", STOCK)):
			for name, job in drive[key].items():
				if not job.get("figures"):
					continue
				file = os.path.join(path, drive["directory"], name + suffix + ".json")
				_, options, figures = fio.jobs(fio.load(read_text(file)))[0]
				result.records.append(make_record(
					result.label, drive["serial"] or drive["address"], name,
					options, figures, way, job["status"]))


def load_fio(path, text, result):
	try:
		found = fio.jobs(fio.load(text))
	except fio.FioError as error:
		raise ResultError(f"{path}: {error}") from None
	stem = os.path.splitext(os.path.basename(path))[0]
	for name, options, figures in found:
		label = name if len(found) > 1 or name == stem else f"{stem}: {name}"
		result.records.append(make_record(result.label, "", label, options, figures))


def load_directory(path, result):
	for directory, _, names in sorted(os.walk(path)):
		for name in sorted(names):
			file = os.path.join(directory, name)
			if not name.endswith(".json"):
				continue
			text = read_text(file)
			if '"fio version"' in text:
				load_fio(file, text, result)
	if not result.records:
		raise ResultError(f"{path}: no results of nvq-qual or fio in it")


def load_file(path, result):
	text = read_text(path)
	if '"fio version"' in text:
		load_fio(path, text, result)
		return
	try:
		data = json.loads(text)
	except ValueError as error:
		raise ResultError(f"{path}: {NOT_KNOWN}: {error}") from None
	if not isinstance(data, dict) or "about" not in data:
		raise ResultError(f"{path}: {NOT_KNOWN}")
	result.bench = data if data.get("paths") else None
	result.experiments = data if data.get("experiments") else None
	if result.kind() == "jobs":
		raise ResultError(f"{path}: {NOT_KNOWN}")


def load(path, label=None):
	result = Result(label or os.path.basename(os.path.abspath(path)))
	if state.is_folder(path):
		load_run(path, result)
	elif os.path.isdir(path):
		load_directory(path, result)
	else:
		load_file(path, result)
	return result


def load_all(paths):
	"""With labels that tell them apart."""
	names = [os.path.basename(os.path.abspath(p)) for p in paths]
	return [load(p, n if names.count(n) == 1 else p) for p, n in zip(paths, names)]


### sweeps

FEWEST = 3		# points of a curve
SWEEPS = {"depth": "depth", "block size": "bs", "jobs": "numjobs"}


def stem(job):
	"""depth- of depth-32"""
	return re.sub(r"[0-9].*", "", job)


def curve(found):
	"""A record for each x, in order: of those that are named as most are, if these make a
	curve; else of whatever there is, one of several."""
	stems = [stem(r.job) for candidates in found.values() for r in candidates]
	most = max(stems, key=stems.count)
	own = {x: [r for r in found[x] if stem(r.job) == most] for x in sorted(found)}
	if sum(map(bool, own.values())) < FEWEST:
		own = found
	return [max(own[x], key=lambda r: stems.count(stem(r.job))) for x in sorted(own) if own[x]]


def sweeps(records, field):
	"""{name of a curve: its records in order} for those that differ in one field only,
	at three points or more."""
	fields = [f for f in ("run", "drive", "path", "rw", "bs", "depth", "numjobs")
	          if f != field]
	groups = {}
	for r in records:
		if r.figures.value("iops"):
			key = tuple(getattr(r, f) for f in fields)
			groups.setdefault(key, {}).setdefault(getattr(r, field), []).append(r)
	groups = {k: curve(g) for k, g in groups.items() if len(g) >= FEWEST}
	return {name_of(k, fields, groups): g for k, g in groups.items()}


def name_of(key, fields, groups):
	"""What tells a curve from the others; its path and direction if nothing does."""
	parts = []
	for i, field in enumerate(fields):
		if len({k[i] for k in groups}) > 1 or field in ("path", "rw"):
			value = key[i]
			parts.append({"bs": lambda v: units.show_size(v),
			              "depth": lambda v: f"QD {v}",
			              "numjobs": lambda v: f"{v} jobs"}.get(field, str)(value))
	return ", ".join(p for p in parts if p)


### two results side by side

Difference = namedtuple("Difference", "name metric old new percent mark")


def change(name, metric, old, new, threshold, more_is_better):
	percent = (new / old - 1) * 100 if old else 0.0
	mark = ""
	if abs(percent) > threshold:
		mark = "better" if (percent > 0) == more_is_better else "worse"
	return Difference(name, metric, old, new, percent, mark)


def drive_keys(result):
	"""Serial numbers if drives are to be told apart, else nothing."""
	drives = list(dict.fromkeys(r.drive for r in result.records))
	return {d: d if len(drives) > 1 else "" for d in drives}


def by_name(result):
	keys = drive_keys(result)
	found = {}
	for r in result.records:
		name = " ".join(filter(None, (keys[r.drive], r.job)))
		found[name if r.path == OURS else f"{name} ({r.path})"] = r.figures
	return found


def compare(old, new, threshold):
	"""What both have, metric by metric."""
	found = []
	a, b = by_name(old), by_name(new)
	for name in (n for n in a if n in b):
		for metric, more in (("iops", True), ("p99", False), ("p99.99", False)):
			x, y = a[name].value(metric), b[name].value(metric)
			if x and y:
				found.append(change(name, metric, x, y, threshold, more))
	if old.bench and new.bench:
		a, b = bench_costs(old), bench_costs(new)
		found += [change(n, "instructions", a[n], b[n], threshold, False)
		          for n in a if n in b]
	if old.experiments and new.experiments:
		a, b = experiment_iops(old), experiment_iops(new)
		found += [change(n, "iops", a[n], b[n], threshold, True) for n in a if n in b]
	return found


def experiment_iops(result):
	"""{experiment and key: IOPS}"""
	return {f"{e['name']}: {key}": value for e in result.experiments["experiments"]
	        for key, value in e["values"].items() if value > 1}


def bench_costs(result):
	"""{path: instructions per I/O}, virtual nanoseconds where they were not split."""
	costs = {}
	for row in result.bench["paths"]:
		guest = "" if row["guest"] == "main" else f" ({row['guest']})"
		if "sqpoll" not in row["name"]:
			costs[row["what"] + guest] = cost(row)[2]
	return costs


def cost(row):
	"""(user, kernel, all) of a row of ci/bench.  user and kernel are None where its
	window saw the CPU idle for much of the time, and so not what the path executes."""
	total = 1e9 / row["iops"]
	user, kernel = row.get("user"), row.get("kernel")
	if user is None or kernel is None or user + kernel < total / 2:
		return None, None, total
	return user, kernel, user + kernel
