# SPDX-License-Identifier: MIT
"""ci/experiments' results: what its keys mean, and which pictures they make."""

import re
from collections import namedtuple

from . import panels, pictures, units

# PATH:SECTION[@NAME=VALUE,...] of jobs/; point is {name: value}
Key = namedtuple("Key", "path section point")

# In the order of legends; each has the same colour in every picture.
PATHS = {"queue": "nvqueue, natively", "standard": "nvqueue, submit=standard",
         "kpoll": "nvqueue, kernel polls", "cmd": "io_uring_cmd on a queue file",
         "passthrough": "stock passthrough", "block": "block device",
         "copied": "stock passthrough, copied"}
STYLES = {"queue": 0, "standard": 4, "kpoll": 5, "cmd": 2, "passthrough": 1, "block": 3,
          "copied": 6}
OTHER_STYLE = 7		# of variants, which are few
STOCK = {"passthrough", "block", "copied"}
AXES = {"NVQ_DEPTH": panels.Axis("I/Os in flight (iodepth)", str, True),
        "NVQ_BS": panels.Axis("block size", units.show_size, True),
        "NVQ_NUMJOBS": panels.Axis("jobs at once", str, True),
        "NVQ_READS": panels.Axis("reads, % of all I/Os", str, False),
        "NVQ_SUBMIT": panels.Axis("I/Os submitted at once", str, True),
        "NVQ_COMPLETE": panels.Axis("I/Os reaped at once", str, True)}
# In a ratio's name; what has no short form is NAME=VALUE.
SHORT = {"NVQ_DEPTH": "depth {}", "NVQ_BS": "{}", "NVQ_NUMJOBS": "{} jobs",
         "NVQ_READS": "{} % reads", "NVQ_SUBMIT": "submit {}", "NVQ_COMPLETE": "reap {}",
         "NVQ_FIXEDBUFS": "fixedbufs={}"}
COUNTS = ("Counts of instructions, in a guest where each takes a nanosecond: compare paths, do "
          "not take the figures for a drive's.")
TIMED = "In a guest with real time."


### keys

def parse_key(text):
	path, _, rest = text.partition(":")
	section, _, point = rest.partition("@")
	pairs = (pair.partition("=")[::2] for pair in point.split(",") if pair)
	return Key(path, section, dict(pairs))


def number(text):
	"""Of a point's value; fio's k is 1024."""
	try:
		return units.parse_size(text)
	except ValueError:
		return 0


def axis_of(name):
	return AXES.get(name, panels.Axis(name, str, False))


def style_of(path):
	return STYLES.get(path, OTHER_STYLE)


def fill_of(path):
	if "+" in path:
		return panels.VARIANT
	return panels.STOCK if path in STOCK else panels.OURS


def label_of(path):
	"""passthrough+iostats=0 is passthrough with an attribute of its block device."""
	plain, _, variant = path.partition("+")
	return PATHS.get(plain, plain) + (f", {variant}" if variant else "")


def by_path(items):
	"""In the order of PATHS; variants behind the path they are of."""
	order = list(PATHS)
	return sorted(items, key=lambda path: (order.index(path.partition("+")[0])
	                                       if path.partition("+")[0] in PATHS else 99, path))


def values_of(entry):
	"""{Key as a tuple that can be looked up: value}"""
	return [(parse_key(text), value) for text, value in entry["values"].items()]


def swept(values):
	"""{variable: its values in order}, of those that were varied."""
	found = {}
	for key, _ in values:
		for name, value in key.point.items():
			found.setdefault(name, set()).add(value)
	return {name: sorted(points, key=number) for name, points in found.items() if len(points) > 1}


def thread_ratio(text):
	"""The number that a thread's text begins with, or None."""
	m = re.match(r"(?:>=? *)?(\d+(?:\.\d+)?)(?![\d.]* *[KM%])", text)
	return float(m[1]) if m else None


### names of ratios

def parts_of(key):
	"""What one side of a ratio is, part by part."""
	found = {"path": key.path, "section": key.section}
	for name, value in key.point.items():
		shown = axis_of(name).show(number(value)) if name == "NVQ_BS" else value
		found[name] = SHORT.get(name, name + "={}").format(shown)
	return found


def ratio_name(what):
	"""What differs, as "A / B", then what both share: "passthrough / block: t-poll"."""
	sides = [parts_of(parse_key(side)) for side in what.split(" / ")]
	if len(sides) == 1:
		return ", ".join(sides[0].values())
	a, b = sides
	differ = [n for n in a if a[n] != b.get(n)]
	left, right = (", ".join(side.get(n, "") for n in differ) for side in sides)
	same = ", ".join(a[n] for n in a if n not in differ)
	return f"{left} / {right}" + (f": {same}" if same else "")


def short_name(name):
	"""2023-04 of 2023-04-queue-file"""
	m = re.match(r"\d{4}-\d\d", name)
	return m[0] if m else name


### pictures

def title_of(entry):
	return entry["about"][:1].upper() + entry["about"][1:]


def caption_of(entry, text=""):
	settings = ", ".join(SHORT.get(name, name + "={}").format(value)
	                     for name, value in entry.get("settings", {}).items())
	return " ".join(filter(None, (f"jobs/{entry['name']}.fio{settings and ', ' + settings}.", text,
	                              TIMED if entry["timed"] else COUNTS)))


def curves_over(values, axis, value_of=lambda key, value: value):
	"""{path: [(x, y)]}"""
	found = {}
	for key, value in values:
		if axis in key.point and value:
			x = number(key.point[axis])
			found.setdefault(key.path, []).append((x, value_of(x, value)))
	return {path: sorted(found[path]) for path in by_path(found)}


def lines(curves):
	"""For panels: a curve's name, the index of its style, its points."""
	return [panels.Curve(label_of(p), style_of(p), points) for p, points in curves.items()]


def of_sweep(entry, values, axis, name):
	"""Above IOPS, below what they mean: bytes a second, or instructions per I/O."""
	about = axis_of(axis)
	iops = lines(curves_over(values, axis, lambda _, v: v / 1e3))
	if axis == "NVQ_BS":
		label, lower = "MiB/s", curves_over(values, axis, lambda x, v: x * v / (1 << 20))
	elif not entry["timed"]:
		label, lower = "instructions per I/O", curves_over(values, axis, lambda _, v: 1e9 / v)
	else:
		label, lower = None, {}
	shown = [panels.Panel("IOPS, thousands", iops)]
	if lower:
		shown.append(panels.Panel(label, lines(lower)))
	yield panels.stacked(name, title_of(entry), caption_of(entry), about, shown)


def of_two(entry, values, axes, name):
	"""A panel for each value of the variable with two, curves over the other one."""
	split, axis = sorted(axes, key=lambda a: len(axes[a]))
	for section in dict.fromkeys(key.section for key, _ in values if key.point):
		own = [(k, v) for k, v in values if k.section == section]
		shown = []
		for value in axes[split]:
			curves = curves_over([(k, v / 1e3) for k, v in own if k.point.get(split) == value],
			                     axis)
			shown.append(panels.Panel("IOPS, thousands", lines(curves),
			                          SHORT.get(split, split + "={}").format(value)))
		yield panels.stacked(f"{name}-{section}", f"{title_of(entry)}: section {section}",
		                     caption_of(entry), axis_of(axis), shown)


def of_batches(entry, values, axes, name):
	"""Two variables with several values each: a table of each path, coloured."""
	across, down = list(axes)[::-1]
	tables = {}
	for key, value in values:
		if across in key.point and down in key.point:
			tables.setdefault(key.path, {})[key.point[across], key.point[down]] = value
	tables = [(label_of(p), tables[p]) for p in by_path(tables)]
	yield panels.heat(name, title_of(entry), caption_of(entry, "Thousands of IOPS; darker is more."),
	                  (axis_of(across).label, axes[across]), (axis_of(down).label, axes[down]),
	                  tables)


def of_tenants(entry, values, name):
	"""Each one's share; the depths say what it is to be."""
	shares = {}
	for key, value in values:
		shares.setdefault(key.path, {})[key.section] = value
	depths = [number(entry.get("settings", {}).get(n, ""))
	          for n in ("NVQ_DEPTH", "NVQ_DEPTH_SMALL")]
	fair = depths[0] / sum(depths) if all(depths) else None
	rows = [(label_of(p), shares[p]["big"], shares[p]["small"]) for p in by_path(shares)
	        if {"big", "small"} <= set(shares[p])]
	return panels.shares(name, title_of(entry), caption_of(entry), rows, fair)


def of_paths(entry, values, name):
	"""Sections and paths: bars, in groups."""
	groups = {}
	for key, value in values:
		groups.setdefault(key.section, {})[key.path] = value
	if len(groups) == 1:
		found = next(iter(groups.values()))
		title = title_of(entry) + (": IOPS" if entry.get("latencies") else "")
		return pictures.iops_bars(name, title, caption_of(entry, "Hatched: stock paths."),
		                          [(label_of(p), found[p], p in STOCK) for p in by_path(found)])
	rows = [(section, [(label_of(p), style_of(p.partition("+")[0]), fill_of(p), found[p])
	                   for p in by_path(found)]) for section, found in groups.items()]
	tool = any(section.startswith("t-") for section in groups)
	return panels.groups(name, title_of(entry), caption_of(
		entry, "t-…: the thread's own t/io_uring, the others fio." if tool else ""), rows)


def of_shares(entry, values, name):
	"""What is measured is a part of a whole."""
	rows = [(label_of(key.path), value * 100, key.path in STOCK) for key, value in values]
	return panels.percents(name, title_of(entry), caption_of(entry), "polls that find nothing, % of all",
	                       rows)


def of_latencies(entry, name):
	curves, styles = {}, {}
	for text, found in entry.get("latencies", {}).items():
		path = parse_key(text).path
		curves[label_of(path)] = {float(p): ns for p, ns in found.items() if p != "mean"}
		styles[label_of(path)] = style_of(path)
	if curves:
		yield pictures.latencies(
			f"{name}-latency", f"{title_of(entry)}: percentiles",
			caption_of(entry, "From submission to completion; both axes are logarithmic."),
			curves, styles, "latency")


def of_one(entry, name):
	values = values_of(entry)
	axes = swept(values)
	if not values:
		return
	if len(axes) == 1:
		yield from of_sweep(entry, values, next(iter(axes)), name)
	elif len(axes) == 2 and min(map(len, axes.values())) == 2:
		yield from of_two(entry, values, axes, name)
	elif len(axes) == 2:
		yield from of_batches(entry, values, axes, name)
	elif entry.get("measure", "IOPS") != "IOPS" or max(v for _, v in values) <= 1:
		yield of_shares(entry, values, name)
	elif {key.section for key, _ in values} == {"big", "small"}:
		yield of_tenants(entry, values, name)
	else:
		yield of_paths(entry, values, name)
		if len({key.section for key, _ in values}) == 1:
			yield from of_latencies(entry, name)


def of_ratios(found, name):
	"""The threads' ratios beside ours."""
	rows = []
	for entry in found["experiments"]:
		for c in entry["comparisons"]:
			thread = thread_ratio(c["thread"])
			if thread and " / " in c["what"]:
				rows.append((f"{short_name(entry['name'])}  {ratio_name(c['what'])}",
				             thread, c["ours"], c["thread"].startswith(">")))
	if rows:
		yield panels.ratios(
			name, "Ratios of IOPS: the mailing lists' and ours",
			"One path over another, or one setting over another.  Ours are of counts of "
			"instructions, the threads' of times, so they need not agree.  t-…: the threads' "
			"own t/io_uring.", rows)


def of_experiments(result, prefix):
	found = result.experiments
	yield from of_ratios(found, f"{prefix}ratios")
	for entry in found["experiments"]:
		yield from of_one(entry, f"{prefix}{entry['name']}")


### tables

def cells(entry):
	"""(paths, [(section and point, {path: value})])"""
	rows, paths = {}, []
	for text, value in entry["values"].items():
		path, _, row = text.partition(":")
		rows.setdefault(row, {})[path] = value
		paths.append(path)
	return by_path(dict.fromkeys(paths)), list(rows.items())
