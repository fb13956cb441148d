# SPDX-License-Identifier: MIT
"""Reports: of a run, in its folder, and of one or several results, wherever."""

import os
import sys

from . import charts, environment, experiments, outcome, page, pictures, results, units, verdict

ReportError = results.ResultError
FIGURES = (("IOPS", "iops", units.show_count), ("bandwidth", "bw", units.show_rate),
           ("mean", "mean", units.show_time), ("p99", "p99", units.show_time),
           ("p99.99", "p99.99", units.show_time), ("max", "max", units.show_time))


### parts of a page

def job_row(name, job, blame=None, earlier=()):
	figures = job.get("figures") or {}
	why = outcome.reasons(job) + list(earlier)
	if blame is not None:
		why.append(verdict.BLAME_TEXT[blame[0]])
	return [name, page.verdict(job["status"]),
	        *(show(figures.get(key)) for _, key, show in FIGURES),
	        page.bullets(why)]


def drive_part(drive):
	"""A drive's verdict and its jobs."""
	blames = verdict.blames(drive)
	rows = []
	for name, job in drive["jobs"].items():
		rows.append(job_row(name, job, (blames[name],) if name in blames else None,
		                    outcome.earlier(drive, name)))
		if name in drive["stock"]:
			rows.append(job_row("\u2003on the stock driver", drive["stock"][name]))
	heads = ["job", "verdict", *(head for head, _, _ in FIGURES), "why"]
	yield page.tag("h3", page.join((page.verdict(verdict.of_drive(drive)), " ",
	                                outcome.title(drive))))
	yield page.table(heads, rows, range(2, 2 + len(FIGURES)))
	yield page.bullets(drive["notes"])


def log_changes(entry):
	"""What SMART, the error log and the self-test log say now and did not before."""
	before, after = entry.get("before"), entry.get("after")
	if not before or not after:
		return ["no logs of before and after"]
	lines = []
	for name in environment.LOGS:
		changes = environment.differences(before[name], after[name])
		lines += [f"{name}: {line}" for line in changes[:30]]
		unknown = after[name].get("unknown") if isinstance(after[name], dict) else None
		if unknown:
			lines.append(f"{name}: not known: {unknown}")
	return lines or ["nothing changed"]


def environment_part(found):
	host = environment.flat(found.get("host", {}))
	shown = {k: v for k, v in host.items() if not k.startswith("module.parameters")
	         and v != "Not affected"}
	yield page.tag("h2", "Environment")
	yield page.table(["what", "value"], [(k, "-" if v is None else v) for k, v in shown.items()])
	for address, entry in found.get("drives", {}).items():
		yield page.tag("h3", f"Drive {address}")
		rows = environment.flat(entry.get("drive", {})).items()
		yield page.table(["what", "value"], [(k, "-" if v is None else v) for k, v in rows])
		yield page.tag("p", "Its logs, before the run -> after it:")
		yield page.bullets(log_changes(entry))
	changed = [line for r in found.get("resumed", []) for line in r["differences"]]
	if changed:
		yield page.tag("h3", "Changed while the run was interrupted")
		yield page.bullets(changed)


def run_part(result):
	data = result.data
	said = outcome.about(data)
	yield page.tag("p", said[:1].upper() + said[1:] + ".")
	for drive in data["drives"]:
		yield from drive_part(drive)
	yield page.tag("p", verdict.RULE, class_="small")


def records_part(result):
	"""Jobs of fio's JSON that no run of ours judged."""
	heads = ["job", "path", "rw", "block", "depth", "jobs",
	         *(head for head, _, _ in FIGURES), "errors"]
	rows = [[r.job, r.path, r.rw, units.show_size(r.bs), r.depth, r.numjobs,
	         *(show(r.figures.value(key)) for _, key, show in FIGURES), r.figures.errors()]
	        for r in result.records]
	yield page.table(heads, rows, range(3, 7 + len(FIGURES)))


def bench_part(result):
	yield page.tag("p", "ci/bench, " + said_of(result.bench["about"], ("whole", "split")))
	for guest in dict.fromkeys(r["guest"] for r in result.bench["paths"]):
		rows = []
		for r in result.bench["paths"]:
			if r["guest"] == guest:
				user, kernel, total = results.cost(r)
				over = r.get("over_stock")
				rows.append([r["what"], f"{r['iops']:.0f}",
				             *("-" if c is None else f"{c:.0f}" for c in (total, user, kernel)),
				             "-" if over is None else f"{over:.2f}"])
		yield page.tag("h3", f"Guest {guest}")
		yield page.table(["path", "IOPS", "instructions per I/O", "user", "kernel", "× stock"],
		                 rows, range(1, 6))


def said_of(about, but=()):
	return ", ".join(f"{k} {v}" for k, v in about.items() if k not in but)


def ratio_row(entry, c):
	expected = f"{c['op']} {c['limit']:g}" if c["op"] else "-"
	met = {None: "", True: page.verdict("pass"), False: page.verdict("fail")}[c["met"]]
	return [entry["name"], c["what"], c["thread"], f"{c['ours']:.2f}", expected, met]


def experiments_part(result):
	found = result.experiments
	yield page.tag("p", "ci/experiments, " + said_of(found["about"]))
	yield page.table(["experiment", "ratio of IOPS", "the thread's", "here", "expected", ""],
	                 [ratio_row(e, c) for e in found["experiments"] for c in e["comparisons"]], (3,))
	for entry in found["experiments"]:
		paths, rows = experiments.cells(entry)
		show = "{:.0f}" if entry.get("measure", "IOPS") == "IOPS" else "{:.3f}"
		yield page.tag("h3", f"{entry['name']}: {entry.get('measure', 'IOPS')}")
		yield page.table(["", *map(experiments.label_of, paths)],
		                 [[row, *(show.format(cells[p]) if p in cells else "-" for p in paths)]
		                  for row, cells in rows], range(1, 1 + len(paths)))
		yield page.bullets([f"failed: {what}" for what in entry["failed"]])


def differences_part(found, old, new, threshold):
	yield page.tag("h2", f"{new} against {old}")
	if not found:
		yield page.tag("p", "They have no job or path in common.")
		return
	marked = [d for d in found if d.mark]
	worse = sum(d.mark == "worse" for d in marked)
	yield page.tag("p", f"{len(found)} figures compared, {worse} are worse and "
	               f"{len(marked) - worse} better by more than {threshold:g} %.")
	rows = [[d.name, charts.METRICS[d.metric], charts.show_metric(d.metric, d.old),
	         charts.show_metric(d.metric, d.new), f"{d.percent:+.1f} %".replace("-", "−"),
	         page.tag("span", f"{page.SIGNS[d.mark]} {d.mark}", class_=d.mark)
	         if d.mark else ""] for d in found]
	yield page.table(["what", "figure", old, new, "change", "mark"], rows, (2, 3, 4))


### pages

def draw(made, directory):
	"""{picture: its SVG for the page}; the files are left in the directory."""
	os.makedirs(directory, exist_ok=True)
	pictures.draw(made, directory)
	drawn = {}
	for p in made:
		with open(os.path.join(directory, p.name + ".svg"), encoding="utf-8") as f:
			drawn[p] = pictures.inline(f.read(), p.name, page.escape(p.title))
	return drawn


def pictures_part(made, directory):
	"""(parts of the page, a complaint or None)"""
	made = list(made)
	if not made:
		return [], None
	try:
		drawn = draw(made, directory)
	except pictures.PictureError as error:
		return [page.tag("p", str(error))], str(error)
	return [page.figure(svg, p) for p, svg in drawn.items()], None


def write(path, title, body):
	with open(path, "w", encoding="utf-8") as f:
		f.write(page.page(title, body))


def of_run(folder, with_pictures=True):
	"""report.html of a results folder; a complaint about pictures, or None."""
	result = results.load(folder)
	body, said = list(run_part(result)), None
	if with_pictures:
		figures, said = pictures_part(charts.of_jobs(result.records),
		                              os.path.join(folder, "pictures"))
		body += figures
	body += environment_part(result.environment)
	data = result.data
	title = f"nvq-qual: {data['suite']} on {', '.join(d['serial'] for d in data['drives'])}"
	write(os.path.join(folder, "report.html"), title, body)
	return said


def all_pictures(loaded, compared, threshold):
	several = len(loaded) > 1
	for i, result in enumerate(loaded, 1):
		prefix = f"{i}-" if several else ""
		made = charts.of_bench(result, prefix) if result.bench else \
			experiments.of_experiments(result, prefix) if result.experiments else ()
		for p in made:
			yield p._replace(caption=f"{result.label}: {p.caption}") if several else p
	records = [r for result in loaded for r in result.records]
	yield from charts.of_jobs(records, "jobs-" if several else "")
	for i, (old, new, found) in enumerate(compared, 1):
		prefix = f"{i}-" if len(compared) > 1 else ""
		yield from charts.of_differences(found, old, new, threshold, prefix)


def result_parts(loaded):
	for result in loaded:
		yield page.tag("h2", f"Figures: {result.label}")
		if result.data:
			yield from run_part(result)
		elif result.bench:
			yield from bench_part(result)
		elif result.experiments:
			yield from experiments_part(result)
		else:
			yield from records_part(result)
	for result in loaded:
		if result.environment:
			yield from environment_part(result.environment)


def compare_all(loaded, threshold):
	"""(label, label, differences): the first of each kind and what comes after it."""
	firsts = {}
	for result in loaded:
		first = firsts.setdefault(result.kind(), result)
		if first is not result:
			yield first.label, result.label, results.compare(first, result, threshold)


def of_results(args):
	"""The command: report.html and pictures of all that was named."""
	loaded = results.load_all(args.result)
	compared = list(compare_all(loaded, args.threshold))
	body, said = [], None
	for old, new, found in compared:
		body += differences_part(found, old, new, args.threshold)
	os.makedirs(args.output, exist_ok=True)
	if not args.no_pictures:
		figures, said = pictures_part(all_pictures(loaded, compared, args.threshold),
		                              os.path.join(args.output, "pictures"))
		body += [page.tag("h2", "Pictures")] + figures if figures else []
	body += result_parts(loaded)
	write(os.path.join(args.output, "report.html"), "nvqueue: " +
	      ", ".join(r.label for r in loaded), body)
	if said:
		print(f"nvq-qual: {said}", file=sys.stderr)
	print(os.path.join(args.output, "report.html"))
	return verdict.FAIL if said else verdict.PASS
