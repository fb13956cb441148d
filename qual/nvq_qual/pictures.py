# SPDX-License-Identifier: MIT
"""The pictures, drawn by gnuplot: as SVG for the report and as PNG.

Colours are Okabe and Ito's, which the colour-blind can tell apart; lines differ in
their points and dashes as well, bars in their pattern or place."""

import math
import re
import subprocess
from collections import namedtuple

from . import results, units

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY = (
	"#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
	"#999999")
LINES = (BLUE, ORANGE, GREEN, RED, SKY, PURPLE, BLACK, GREY)
POINTS = (7, 5, 9, 13, 6, 4, 8, 12)
DASHES = (1, 2, 4, 5, 1, 2, 4, 5)
FONT = "DejaVu Sans"
MAX_CURVES = 8
# width and height are those of the SVG; the PNG has twice as many pixels
Picture = namedtuple("Picture", "name title caption width height script")
HEAD = """\
set encoding utf8
set border 3 lc rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid lc rgb "#dddddd" lt 1 lw 1
set style fill solid 1.0 noborder
set key textcolor rgb "#222222" samplen 2.5 spacing 1.2 reverse Left
"""


def quoted(text):
	text = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("`", "'")
	return '"' + text.replace("\n", "\\n") + '"'


def block(name, rows):
	"""A named block of data, a line for each row."""
	lines = [" ".join(quoted(c) if isinstance(c, str) else f"{c:.6g}" for c in row)
	         for row in rows]
	return f"${name} << EOD\n" + "\n".join(lines) + "\nEOD\n"


def x_label(text):
	"""With a line of space below it, for the key would touch it."""
	return f"set xlabel {quoted(text + chr(10) + ' ')}\n"


def reset():
	return "reset\nunset multiplot\n" + HEAD


def wrap(text, width):
	"""Lines no longer than that, where there are spaces to break at."""
	lines = [""]
	for word in text.split():
		if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
			lines.append("")
		lines[-1] = f"{lines[-1]} {word}".strip()
	return "\n".join(lines)


### bars

def y_tics(labels):
	return "set ytics (" + ", ".join(f"{quoted(l)} {i}" for i, l in enumerate(labels)) + ")\n"


def bars_frame(labels, label, most):
	"""Bars that lie, one below the other, with room for the numbers at their ends."""
	return (f"set xrange [0:{most * 1.16:.6g}]\nset yrange [{len(labels) - 0.4}:-0.6]\n"
	        f"{x_label(label)}unset key\nset grid noytics\n"
	        "set ytics scale 0\nset xtics scale 0.5\n" + y_tics(labels))


def bars_height(count):
	return 120 + 30 * count


def iops_bars(name, title, caption, rows):
	"""rows: (label, IOPS, whether it is stock's)"""
	most = max(r[1] for r in rows)
	factor, unit = (1e6, "million IOPS") if most >= 1e6 else (1e3, "thousand IOPS")
	data = [(r[1] / factor, i, f"{units.show_count(r[1])}") for i, r in enumerate(rows)]
	script = bars_frame([r[0] for r in rows], unit, most / factor)
	plots = []
	for stock, colour, style in ((True, ORANGE, "pattern 6"), (False, BLUE, "solid 1.0")):
		chosen = [d for d, r in zip(data, rows) if r[2] == stock]
		if chosen:
			block_name = "stock" if stock else "ours"
			script += block(block_name, chosen)
			plots.append(f"${block_name} using ($1/2):2:($1/2):(0.36) with boxxyerror "
			             f"fs {style} border lc rgb '{colour}' lc rgb '{colour}'")
	script += block("all", data)
	plots.append("$all using 1:2:3 with labels left offset 0.6,0 noenhanced")
	return Picture(name, title, caption, 900, bars_height(len(rows)),
	               script + "plot " + ", \\\n".join(plots) + "\n")


def cost_bars(name, title, caption, rows):
	"""rows: ci/bench's; user and kernel side by side in one bar"""
	costs = [results.cost(row) for row in rows]
	most = max(c[2] for c in costs)
	split, whole, ends = [], [], []
	for i, (user, kernel, total) in enumerate(costs):
		ends.append((total, i, f"{total:.0f}"))
		if user is None:
			whole.append((total, i))
		else:
			split.append((user, user + kernel, i))
	script = bars_frame([r["what"] for r in rows], "instructions per I/O", most)
	script += "set key outside bottom center horizontal\n"
	plots = []
	if split:
		script += block("split", split)
		plots += [f"$split using ($1/2):3:($1/2):(0.36) with boxxyerror fs solid 1.0 "
		          f"border lc rgb '{BLUE}' lc rgb '{BLUE}' title 'user space'",
		          f"$split using (($1+$2)/2):3:(($2-$1)/2):(0.36) with boxxyerror "
		          f"fs pattern 6 border lc rgb '{ORANGE}' lc rgb '{ORANGE}' title 'kernel'"]
	if whole:
		script += block("whole", whole)
		plots.append(f"$whole using ($1/2):2:($1/2):(0.36) with boxxyerror fs pattern 1 "
		             f"border lc rgb '{GREY}' lc rgb '{GREY}' title 'not split'")
	script += block("ends", ends)
	plots.append("$ends using 1:2:3 with labels left offset 0.6,0 noenhanced notitle")
	return Picture(name, title, caption, 900, bars_height(len(rows)) + 30,
	               script + "plot " + ", \\\n".join(plots) + "\n")


def pair_bars(name, title, caption, rows):
	"""rows: (label, stock's cost, ours)"""
	script = bars_frame([r[0] for r in rows], "instructions per I/O",
	                    max(max(r[1], r[2]) for r in rows))
	script += "set key outside bottom center horizontal\n"
	script += block("stock", [(r[1], i - 0.2, f"{r[1]:.0f}") for i, r in enumerate(rows)])
	script += block("ours", [(r[2], i + 0.2, f"{r[2]:.0f}  ({r[1] / r[2]:.1f} times fewer)")
	                         for i, r in enumerate(rows)])
	script += (f"plot $stock using ($1/2):2:($1/2):(0.18) with boxxyerror fs pattern 6 border "
	           f"lc rgb '{ORANGE}' lc rgb '{ORANGE}' title 'stock passthrough', \\\n"
	           f"$ours using ($1/2):2:($1/2):(0.18) with boxxyerror fs solid 1.0 border "
	           f"lc rgb '{BLUE}' lc rgb '{BLUE}' title 'nvqueue', \\\n"
	           "$stock using 1:2:3 with labels left offset 0.6,0 noenhanced notitle, \\\n"
	           "$ours using 1:2:3 with labels left offset 0.6,0 noenhanced notitle\n")
	return Picture(name, title, caption, 900, 150 + 46 * len(rows), script)


def waterfall(name, title, caption, steps, floor):
	"""steps: (label, cost), the first the whole, each later one what is left after it;
	floor: cost of what no step can take away."""
	labels, falls, rises, ends, texts = [], [], [], [], []
	top = max(c for _, c in steps)
	previous = None
	for i, (label, value) in enumerate(steps):
		labels.append(label)
		if previous is None:
			ends.append((i, 0, value))
			texts.append((i, value, f"{value:.0f}"))
		else:
			low, high = sorted((previous, value))
			(falls if value <= previous else rises).append((i, low, high))
			texts.append((i, high, f"{value - previous:+.0f}".replace("-", "−")))
		previous = value
	last = len(steps)
	labels.append("what is left")
	ends.append((last, 0, previous))
	texts.append((last, previous, f"{previous:.0f}"))
	tics = ", ".join(f"{quoted(wrap(l, 14))} {i}" for i, l in enumerate(labels))
	script = (f"set xrange [-0.6:{last + 0.6}]\nset yrange [0:{top * 1.1:.6g}]\n"
	          "set bmargin 7\n"
	          f"set xtics scale 0 ({tics})\nset ylabel 'instructions per I/O'\n"
	          "set key outside bottom center horizontal\nset grid noxtics\n")
	plots = []
	for block_name, rows, colour, style, text in (
			("ends", ends, BLUE, "solid 1.0", "cost of an I/O"),
			("falls", falls, GREEN, "pattern 6", "saved by the step"),
			("rises", rises, RED, "pattern 2", "added by the step")):
		if rows:
			script += block(block_name, rows)
			plots.append(f"${block_name} using 1:(($2+$3)/2):(0.36):(($3-$2)/2) with boxxyerror "
			             f"fs {style} border lc rgb '{colour}' lc rgb '{colour}' title '{text}'")
	if floor:
		plots.append(f"{floor:.6g} with lines dt 2 lw 2 lc rgb '{BLACK}' "
		             f"title 'fio itself, no I/O: {floor:.0f}'")
	script += block("texts", texts)
	plots.append("$texts using 1:2:3 with labels center offset 0,0.7 noenhanced notitle")
	return Picture(name, title, caption, 900, 500,
	               script + "plot " + ", \\\n".join(plots) + "\n")


def change_bars(name, title, caption, changes, threshold):
	"""Per cent against an older result: left of the middle less, right of it more; what
	has more than doubled is cut, and its number says so."""
	rows = list(changes)
	most = min(max([abs(c.percent) for c in rows] + [threshold * 2]), 100)
	script = (f"set xrange [{-most * 1.3:.6g}:{most * 1.3:.6g}]\n"
	          f"set yrange [{len(rows) - 0.4}:-0.6]\nset grid noytics\n"
	          f"{x_label('change, %')}set ytics scale 0\nset key outside bottom center horizontal\n" +
	          y_tics([c.name for c in rows]) +
	          f"set object 1 rect from {-threshold},graph 0 to {threshold},graph 1 behind "
	          "fc rgb '#eeeeee' fs solid 1.0 noborder\n"
	          "set arrow 1 from 0,graph 0 to 0,graph 1 nohead lc rgb '#444444' back\n")
	plots = []
	for mark, colour, style in (("better", BLUE, "solid 1.0"), ("worse", RED, "pattern 2"),
	                            ("", GREY, "solid 0.5")):
		chosen = [(min(c.percent, most), i) for i, c in enumerate(rows) if c.mark == mark]
		if chosen:
			block_name = mark or "same"
			script += block(block_name, chosen)
			plots.append(f"${block_name} using ($1/2):2:(abs($1)/2):(0.36) with boxxyerror "
			             f"fs {style} border lc rgb '{colour}' lc rgb '{colour}' "
			             f"title '{mark or f'within {threshold:g} %'}'")
	for side, place, offset in ((1, "left", 0.6), (-1, "right", -0.6)):
		chosen = [(min(c.percent, most), i, f"{c.percent:+.1f}".replace("-", "−"))
		          for i, c in enumerate(rows) if (c.percent >= 0) == (side > 0)]
		if chosen:
			script += block(place, chosen)
			plots.append(f"${place} using 1:2:3 with labels {place} offset {offset},0 "
			             "noenhanced notitle")
	return Picture(name, title, caption, 900, bars_height(len(rows)) + 30,
	               script + "plot " + ", \\\n".join(plots) + "\n")


### curves

TIMES = [m * 10 ** e for e in range(0, 12) for m in (1, 2, 5)]
NINES = [(0.30103, "50"), (1, "90"), (2, "99"), (3, "99.9"), (4, "99.99"),
         (5, "99.999")]


def time_axis(values):
	"""From the last round number below the values to the next above; of a narrow span 2
	and 5 are labelled as well."""
	low = max((t for t in TIMES if t <= min(values)), default=1)
	high = min((t for t in TIMES if t >= max(values) and t > low), default=max(values))
	tics = [t for t in TIMES if low <= t <= high]
	if high / low > 200:
		tics = [t for t in tics if str(t)[0] == "1"]
	text = ", ".join(f"{quoted(units.show_time(t))} {t}" for t in tics)
	# a little more than that, or rounding takes away the tics at both ends
	return (f"set logscale y 10\nset yrange [{low * 0.999}:{high * 1.001}]\n"
	        f"set ytics ({text})\n")


def style(i):
	i %= MAX_CURVES
	return (f"with linespoints lw 2 ps 0.9 pt {POINTS[i]} dt {DASHES[i]} "
	        f"lc rgb '{LINES[i]}'")


def latencies(name, title, caption, curves, styles=None, label="completion latency"):
	"""curves: {title: {percentile: ns}}; styles: {title: index of a style}"""
	def nines(percentile):
		return -math.log10(1 - percentile / 100)
	points = {t: [(nines(p), ns) for p, ns in sorted(c.items()) if ns > 0 and 50 <= p <= 99.9995]
	          for t, c in list(curves.items())[:MAX_CURVES]}
	last = max(x for p in points.values() for x, _ in p)
	tics = ", ".join(f"{quoted(label)} {x}" for x, label in NINES)
	script = (f"set xrange [0.2:{max(last, 2) + 0.1:.3g}]\nset xtics ({tics})\n"
	          f"{x_label('percentile of I/Os')}set ylabel {quoted(label)}\n"
	          "set key outside bottom center horizontal\n" +
	          time_axis([y for p in points.values() for _, y in p]))
	plots = []
	for i, (curve, found) in enumerate(points.items()):
		script += block(f"c{i}", found)
		plots.append(f"$c{i} using 1:2 {style(styles[curve] if styles else i)} "
		             f"title {quoted(curve)} noenhanced")
	return Picture(name, title, caption, 900, 480 + 20 * (len(points) // 3),
	               script + "plot " + ", \\\n".join(plots) + "\n")


### drawing

class PictureError(Exception):
	"""gnuplot's complaint."""


def terminal(kind, picture, path):
	size = f"{picture.width},{picture.height}"
	if kind == "svg":
		text = f"set terminal svg size {size} font '{FONT},14' background rgb 'white' noenhanced"
	else:
		size = f"{picture.width * 2},{picture.height * 2}"
		text = (f"set terminal pngcairo size {size} font '{FONT},11' fontscale 2 linewidth 2 "
		        "pointscale 2 background 'white' noenhanced")
	return f"{text}\nset output {quoted(path)}\n"


def draw(pictures, directory, kinds=("svg", "png")):
	"""All by one gnuplot; files directory/NAME.svg and NAME.png."""
	script = ""
	for p in pictures:
		for kind in kinds:
			script += reset() + terminal(kind, p, f"{directory}/{p.name}.{kind}")
			title, small = (16, 12) if kind == "svg" else (13, 9.5)
			script += (f"titlefont = ',{title}'\nsmallfont = ',{small}'\n"
			           f"set title {quoted(p.title)} font titlefont\n")
			script += p.script + "set output\n"
	try:
		done = subprocess.run(["gnuplot"], input=script.encode(), stdout=subprocess.PIPE,
		                      stderr=subprocess.STDOUT, check=False)
	except FileNotFoundError:
		raise PictureError("no pictures: gnuplot is not there "
		                   "(Debian: apt install gnuplot-nox)") from None
	if done.returncode:
		said = done.stdout.decode(errors="replace").strip().splitlines()
		raise PictureError(f"no pictures: gnuplot: {' '.join(said[-3:])}")


def inline(text, name, title):
	"""gnuplot's SVG as a part of a page: its ids are its own, its size is the page's."""
	text = text[text.index("<svg"):]
	text = text.replace("xlink:href", "href")
	text = re.sub(r'\sxmlns:xlink="[^"]*"', "", text)
	text = re.sub(r"<desc>.*?</desc>", "", text, flags=re.S)
	text = re.sub(r"<title>Gnuplot</title>", "", text)
	for before in (r"\bid\s*=\s*['\"]", r"href\s*=\s*['\"]#", r"url\(['\"]?#"):
		text = re.sub(before, lambda m: f"{m[0]}{name}-", text)
	text = re.sub(r'font-family="[^"]*"', 'font-family="DejaVu Sans, Verdana, sans-serif"', text)
	head = f'<svg role="img" aria-label="{title}"'
	return re.sub(r'<svg\s+width="\d+" height="\d+"', lambda _: head, text, count=1).strip()
