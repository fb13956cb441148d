# SPDX-License-Identifier: MIT
"""Which pictures results make: of ci/bench's figures, of jobs, of two runs."""

from . import panels, pictures, results, units

GROUPS = {"t": "t/io_uring and nvq-perf", "fio": "fio with its usual options",
          "lean": "fio, lean"}
LEAN = "Lean: gtod_reduce=1 norandommap=1.  "
STEPS = (("stock", "stock passthrough"), ("kpoll", "queue file, kernel polls"),
         ("phase", "phase check in user space"), ("nvq", "registered buffers"),
         ("native", "native batches by io_uring"), ("native-ioctl", "batches by ioctl"))
PAIRS = (("lean", "512 B"), ("lean64k", "64 KiB"), ("lean128k", "128 KiB"),
         ("qd1", "depth 1"), ("one", "no batch options"),
         ("onelean", "no batch options, lean"))
COUNTS = ("Counted where one instruction takes one nanosecond: no MMIO cost, no cache "
          "misses; a real drive shows other ratios.")


def safe(text):
	"""A file's name."""
	return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")


### ci/bench

def bench_rows(result, group):
	"""Stock ones first; SQPOLL's figures are a matter of time slices."""
	rows = [r for r in result.bench["paths"] if r["guest"] == "main" and
	        r["group"] == group and "sqpoll" not in r["name"]]
	return sorted(rows, key=lambda r: not r["stock"])


def about(group):
	return (LEAN if group == "lean" else "") + COUNTS


def waterfalls(result, prefix):
	by_name = {r["name"]: r for r in result.bench["paths"] if r["guest"] == "main"}
	for group in ("fio", "lean"):
		steps = [(label, results.cost(by_name[f"{group}-{step}"])[2])
		         for step, label in STEPS if f"{group}-{step}" in by_name]
		if len(steps) < 3:
			continue
		null = by_name.get(f"{group}-null")
		floor = results.cost(null)[2] if null else None
		yield pictures.waterfall(
			f"{prefix}waterfall-{group}", f"What each step saves: {GROUPS[group]}",
			"Each step is the one before it and one thing more.  " + about(group),
			steps, floor)


def pairs(result, prefix):
	rows = []
	for group, label in PAIRS:
		found = bench_rows(result, group)
		stock = [r for r in found if r["stock"] and r["name"].endswith("-stock")]
		ours = [r for r in found if r["name"].endswith("-native")]
		if stock and ours:
			rows.append((label, results.cost(stock[0])[2], results.cost(ours[0])[2]))
	if rows:
		yield pictures.pair_bars(
			f"{prefix}sizes-and-depths", "Stock passthrough and nvqueue: sizes and depths",
			"512 B, depth 128, batches of 32, lean, unless a line says otherwise; depth 1 and "
			"\"no batch options\" with fio's usual options.  " + COUNTS, rows)


def of_bench(result, prefix):
	for group, what in GROUPS.items():
		rows = bench_rows(result, group)
		if len(rows) < 2:
			continue
		yield pictures.cost_bars(f"{prefix}instructions-{group}",
		                         f"Instructions per I/O: {what}", about(group), rows)
		yield pictures.iops_bars(f"{prefix}iops-{group}", f"IOPS by path: {what}",
		                         "At one instruction a nanosecond.  Hatched: stock paths.",
		                         [(r["what"], r["iops"], r["stock"]) for r in rows])
	yield from waterfalls(result, prefix)
	yield from pairs(result, prefix)


### jobs

def drives_of(records):
	"""{(run, drive): its records}"""
	found = {}
	for r in records:
		found.setdefault((r.run, r.drive), []).append(r)
	return found


def in_sweep(records):
	"""What is a point of a curve already."""
	return {id(r) for field in results.SWEEPS.values()
	        for curve in results.sweeps(records, field).values() for r in curve}


def of_latencies(records, prefix):
	"""A picture for each drive, of what is no point of a sweep."""
	for (run, drive), own in drives_of(records).items():
		points = in_sweep(own)
		chosen = [r for r in own if id(r) not in points] or own
		curves = {}
		for r in chosen:
			curve = r.figures.percentiles()
			if curve:
				way = "" if r.path == results.OURS else f" ({r.path})"
				curves[r.job + way] = curve
		if not curves:
			continue
		more = len(curves) - pictures.MAX_CURVES
		caption = "Completion latency; both axes are logarithmic."
		if more > 0:
			caption += f"  The first {pictures.MAX_CURVES} of {len(curves)} jobs."
		name = " ".join(filter(None, (run if prefix else "", drive)))
		yield pictures.latencies(safe(f"{prefix}latency-{run}-{drive}"),
		                         f"Latency percentiles: {name or run}", caption, curves)


# a title, and what the curves are over
AXES = {"depth": ("IOPS and latency over the depth",
                  panels.Axis("I/Os in flight (iodepth)", str, True)),
        "bs": ("IOPS and bandwidth over the block size",
               panels.Axis("block size", units.show_size, True)),
        "numjobs": ("IOPS and latency over the number of jobs",
                    panels.Axis("jobs, each with a queue pair", str, True))}


def points(records, field, metric, factor=1.0):
	return [(getattr(r, field), r.figures.value(metric) / factor) for r in records
	        if r.figures.value(metric)]


def of_curves(name, field, curves):
	"""Above IOPS, below what they mean; curves: of results.sweeps()"""
	def lines(metric, factor=1.0):
		drawn = [panels.Curve(title, i, points(records, field, metric, factor))
		         for i, (title, records) in enumerate(curves.items())]
		return [c for c in drawn if c.points]
	if field == "bs":
		lower = panels.Panel("MiB/s", lines("bw", 1 << 20))
		caption = "Above, IOPS; below, bandwidth."
	else:
		lower = panels.Panel("99th percentile", lines("p99"), times=True)
		caption = "Above, IOPS; below, the 99th percentile of completion latency."
	shown = [panels.Panel("IOPS, thousands", lines("iops", 1e3))]
	if lower.curves:
		shown.append(lower)
	title, axis = AXES[field]
	return panels.stacked(name, title, caption, axis, shown)


def of_sweeps(records, prefix):
	for what, field in results.SWEEPS.items():
		items = list(results.sweeps(records, field).items())
		for at in range(0, len(items), pictures.MAX_CURVES):
			part = f"-{at // pictures.MAX_CURVES + 1}" if len(items) > pictures.MAX_CURVES else ""
			yield of_curves(f"{prefix}over-{safe(what)}{part}", field,
			                dict(items[at:at + pictures.MAX_CURVES]))


def of_paths(records, prefix):
	"""Where a job was run in several ways: the ways side by side."""
	for (run, drive), own in drives_of(records).items():
		ways = {}
		for r in own:
			if r.figures.value("iops"):
				ways.setdefault(r.job, {})[r.path] = r.figures.value("iops")
		rows = [(f"{job}, {path}", iops, path != results.OURS)
		        for job, found in ways.items() if len(found) > 1
		        for path, iops in found.items()]
		if rows:
			name = " ".join(filter(None, (run if prefix else "", drive)))
			yield pictures.iops_bars(safe(f"{prefix}paths-{run}-{drive}"),
			                         f"IOPS by path: {name or run}",
			                         "Jobs that were run in several ways.  Hatched: not "
			                         "nvqueue's engine.", rows)


def of_jobs(records, prefix=""):
	yield from of_paths(records, prefix)
	yield from of_latencies(records, prefix)
	yield from of_sweeps(records, prefix)


### two results

METRICS = {"iops": "IOPS", "p99": "99th percentile of latency",
           "p99.99": "99.99th percentile of latency",
           "instructions": "instructions per I/O"}
MAX_CHANGES = 20


def of_differences(differences, old, new, threshold, prefix=""):
	"""A picture for each metric."""
	for metric, what in METRICS.items():
		rows = [d for d in differences if d.metric == metric]
		if not rows:
			continue
		caption = f"{new} against {old}; the grey band is {threshold:g} %."
		if len(rows) > MAX_CHANGES:
			rows = sorted(rows, key=lambda d: -abs(d.percent))[:MAX_CHANGES]
			caption += f"  The {MAX_CHANGES} largest."
		yield pictures.change_bars(f"{prefix}change-{safe(metric)}", f"Change of {what}",
		                           caption, rows, threshold)


def show_metric(metric, value):
	if metric == "iops":
		return units.show_count(value)
	if metric == "instructions":
		return f"{value:.0f}"
	return units.show_time(value)
