# SPDX-License-Identifier: MIT
"""Pictures of experiments: curves by path, tables in colour, bars in groups, ratios
side by side."""

import math
from collections import namedtuple

from . import pictures, units
from .pictures import BLUE, GREY, LINES, ORANGE, RED, block, quoted

# of x; show: a value's label
Axis = namedtuple("Axis", "label show logarithmic")
# style: an index of pictures.style()
Curve = namedtuple("Curve", "title style points")
# times: y is nanoseconds
Panel = namedtuple("Panel", "label curves title times", defaults=("", False))
WIDTH = 900
LEFT, RIGHT = 0.13, 0.965	# of the width: the y axis, the end of the x axis
NAMES = 0.45			# the y axis of ratios
TITLE, TICS, LABEL, LEGEND, GAP = 46, 22, 26, 22, 44	# pixels
PLOT = 250
COLUMNS = 2			# of a legend, unless
WIDE = 46			# characters are in its longest line
STEEP = 20			# from there on a y axis is logarithmic


def picture(name, title, caption, height, script):
	return pictures.Picture(name, title, caption, WIDTH, height, script)


### curves

def y_axis(panel, shown):
	"""Plots of one label have one scale."""
	values = [y for p in shown if p.label == panel.label for c in p.curves for _, y in c.points]
	if panel.times:
		return pictures.time_axis(values)
	low, high = min(values), max(values)
	if not high > STEEP * low > 0:
		return f"unset logscale y\nset yrange [0:{high * 1.12:.6g}]\nset ytics auto\nset format y '%g'\n"
	steps = (1, 2, 5) if high < 1000 * low else (1,)
	text = ", ".join(f'"{m * 10 ** e:.12g}" {m * 10 ** e}' for e in range(-3, 10) for m in steps)
	return f"set logscale y 10\nset yrange [{low / 1.5:.6g}:{high * 1.5:.6g}]\nset ytics ({text})\n"


def y_label(text, top, bottom, height):
	"""Always in the same place, however wide the tics are."""
	return (f"set label 1 {quoted(text)} at screen 0.02,{1 - (top + bottom) / 2 / height:.4f} "
	        "center rotate\n")


def apart(values, distance):
	"""Those whose labels do not touch, the first and the last among them."""
	kept = [values[0]]
	for value in values[1:]:
		if distance(kept[-1], value) > 0.045:
			kept.append(value)
	if values[-1] not in kept:
		kept[-1 if len(kept) > 1 else len(kept):] = [values[-1]]
	return kept


def x_axis(about, values):
	span = max(values) - min(values) or 1
	log_span = math.log(max(values) / min(values)) if min(values) > 0 else 0
	logarithmic = about.logarithmic and log_span > 0
	shown = apart(values, (lambda a, b: math.log(b / a) / log_span) if logarithmic else
	              (lambda a, b: (b - a) / span))
	tics = ", ".join(f"{quoted(about.show(v))} {v}" for v in shown)
	if logarithmic:
		return (f"set logscale x 2\nset xrange [{min(values) / 1.4}:{max(values) * 1.4}]\n"
		        f"set xtics ({tics})\n")
	room = span * 0.04
	return (f"unset logscale x\nset xrange [{min(values) - room}:{max(values) + room}]\n"
	        f"set xtics ({tics})\n")


def frame(top, bottom, height):
	"""The borders of a plot, pixels from the top."""
	return (f"set lmargin at screen {LEFT}\nset rmargin at screen {RIGHT}\n"
	        f"set tmargin at screen {1 - top / height:.4f}\n"
	        f"set bmargin at screen {1 - bottom / height:.4f}\n")


def legend(titles, height):
	"""Below all plots: a line for each curve that every one of them may have."""
	return (f"set key at screen {(LEFT + RIGHT) / 2},{6 / height:.4f} bottom center vertical "
	        f"maxrows {legend_rows(titles)} width 1\n")


def legend_rows(titles):
	columns = COLUMNS if max(map(len, titles)) < WIDE else 1
	return -(-len(titles) // columns)


def stacked(name, title, caption, about, shown):
	"""Plots one below the other over the same x, which is told below the last one;
	about: an Axis."""
	curves = {c.title: c for panel in shown for c in panel.curves}
	values = sorted({x for c in curves.values() for x, _ in c.points})
	gap = GAP + (20 if any(p.title for p in shown[1:]) else 0)
	heads = [TITLE + (26 if shown[0].title else 0)]
	for _ in shown[1:]:
		heads.append(heads[-1] + PLOT + gap)
	height = heads[-1] + PLOT + TICS + LABEL + legend_rows(curves) * LEGEND + 16
	script, plots = "", []
	for i, (panel, top) in enumerate(zip(shown, heads)):
		drawn = []
		for j, c in enumerate(panel.curves):
			script += block(f"c{i}_{j}", c.points)
			drawn.append(f"$c{i}_{j} using 1:2 {pictures.style(c.style)} notitle")
		if i == len(shown) - 1:
			drawn += [f"NaN {pictures.style(c.style)} title {quoted(c.title)} noenhanced"
			          for c in curves.values()]
		plots.append(frame(top, top + PLOT, height) + y_axis(panel, shown) +
		             y_label(panel.label, top, top + PLOT, height) +
		             (f"set title {quoted(panel.title)} font smallfont offset 0,-0.6\n"
		              if panel.title else "unset title\n") +
		             ("set key off\n" if i < len(shown) - 1 else
		              legend(curves, height) + f"set xlabel {quoted(about.label)}\n") +
		             "plot " + ", \\\n".join(drawn) + "\n")
	script += (f"set multiplot title {quoted(title)} font titlefont\n" + x_axis(about, values) +
	           "".join(plots) + "unset multiplot\n")
	return picture(name, title, caption, height, script)


### a table in colour

PALE, DARK = (0xF2, 0xF7, 0xFC), (0x08, 0x45, 0x7E)


def shade(part):
	"""0 is pale, 1 dark; one hue, so that it prints and everyone can tell them apart."""
	r, g, b = (round(p + (d - p) * part) for p, d in zip(PALE, DARK))
	return r << 16 | g << 8 | b


def heat_panel(i, across, down, table, low, high):
	"""(blocks of data, commands to plot) of one path's."""
	rows = []
	for x, a in enumerate(across[1]):
		for y, d in enumerate(down[1]):
			value = table.get((a, d))
			if value:
				part = (value - low) / (high - low) if high > low else 0.5
				rows.append((x, y, shade(part), 0xFFFFFF if part > 0.45 else 0x222222,
				             units.show_thousands(value)))
	data = "$h{} << EOD\n{}\nEOD\n".format(i, "\n".join(
		f'{x} {y} {fill} {ink} "{text}"' for x, y, fill, ink, text in rows))
	return data, (f"plot $h{i} using 1:2:(0.48):(0.48):3 with boxxyerror lc rgb variable fs solid 1.0 "
	              f"noborder, $h{i} using 1:2:5:4 with labels font smallfont tc rgb variable noenhanced\n")


def heat(name, title, caption, across, down, tables):
	"""across, down: (label, values); tables: (title, {(across, down): value}), a panel
	each, on one scale of colours."""
	values = [v for _, table in tables for v in table.values()]
	columns = min(3, len(tables))
	rows = -(-len(tables) // columns)
	side = max(130, 34 * len(down[1]))
	height = TITLE + rows * (side + 30 + TICS + LABEL + 10)
	step = 1 / columns
	script, plots = "", ""
	for i, (path, table) in enumerate(tables):
		data, plot = heat_panel(i, across, down, table, min(values), max(values))
		script += data
		column, row = i % columns, i // columns
		top = TITLE + 30 + row * (height - TITLE) / rows
		plots += (f"set lmargin at screen {column * step + 0.075:.4f}\n"
		          f"set rmargin at screen {(column + 1) * step - 0.015:.4f}\n"
		          f"set tmargin at screen {1 - top / height:.4f}\n"
		          f"set bmargin at screen {1 - (top + side) / height:.4f}\n"
		          f"set title {quoted(path)} font smallfont offset 0,-0.6\n"
		          f"set ylabel {quoted(down[1] and down[0])} font smallfont\n" + plot)
	def tics(labels):
		return ", ".join(f"{quoted(t)} {i}" for i, t in enumerate(labels))
	script += (f"set multiplot title {quoted(title)} font titlefont\nunset key\nunset grid\n"
	           f"set border 0\nset tics scale 0 font smallfont\nset xtics ({tics(across[1])}) offset 0,0.4\n"
	           f"set ytics ({tics(down[1])})\nset xrange [-0.5:{len(across[1]) - 0.5}]\n"
	           f"set yrange [{len(down[1]) - 0.5}:-0.5]\n"
	           f"set xlabel {quoted(across[0])} font smallfont offset 0,0.6\n" + plots + "unset multiplot\n")
	return picture(name, title, caption, round(height), script)


### bars

# Stock paths are hatched, variants of them the other way.
OURS, STOCK, VARIANT = "solid 1.0", "pattern 6", "pattern 2"


def bar(block_name, index, fill, height, title=""):
	"""A lying bar of x, y."""
	colour = LINES[index]
	said = f"title {quoted(title)} noenhanced" if title else "notitle"
	return (f"${block_name} using ($1/2):2:($1/2):({height}) with boxxyerror fs {fill} border "
	        f"lc rgb '{colour}' lc rgb '{colour}' {said}")


def groups(name, title, caption, rows):
	"""rows: (label, [(path, style, fill, value)]): bars of one group close together."""
	most = max(b[3] for _, bars in rows for b in bars)
	factor, unit = (1e6, "million IOPS") if most >= 2e6 else (1e3, "thousand IOPS") \
		if most >= 2e3 else (1, "IOPS")
	own, ends, tics, at = {}, [], [], 0.0
	for label, bars in rows:
		tics.append((label, at + (len(bars) - 1) / 2))
		for path, index, fill, value in bars:
			own.setdefault((path, index, fill), []).append((value / factor, at))
			ends.append((value / factor, at, units.show_count(value)))
			at += 1
		at += 0.7
	plots = []
	script = ""
	for i, ((path, index, fill), data) in enumerate(own.items()):
		script += block(f"g{i}", data)
		plots.append(bar(f"g{i}", index, fill, 0.42, path))
	script += block("ends", ends)
	plots.append("$ends using 1:2:3 with labels left offset 0.5,0 font smallfont noenhanced notitle")
	bottom = TITLE + 20 * at
	height = round(bottom + TICS + LABEL + legend_rows([o[0] for o in own]) * LEGEND + 16)
	text = ", ".join(f"{quoted(t)} {y}" for t, y in tics)
	script += (frame(TITLE, bottom, height) + legend([o[0] for o in own], height) +
	           f"set xrange [0:{most / factor * 1.12:.6g}]\nset yrange [{at - 1 + 0.2}:-0.9]\n"
	           f"set grid noytics\nset ytics scale 0 ({text})\nset xtics scale 0.5\n"
	           f"set xlabel {quoted(unit)}\nplot " + ", \\\n".join(plots) + "\n")
	return picture(name, title, caption, height, script)


def percents(name, title, caption, label, rows):
	"""rows: (label, per cent, stock)"""
	script = pictures.bars_frame([r[0] for r in rows], label, 100)
	plots = []
	for stock, index in ((True, 1), (False, 0)):
		chosen = [(max(r[1], 0), i) for i, r in enumerate(rows) if r[2] == stock]
		if chosen:
			block_name = "stock" if stock else "ours"
			script += block(block_name, chosen)
			plots.append(bar(block_name, index, STOCK if stock else OURS, 0.36))
	script += block("ends", [(r[1], i, f"{r[1]:.1f} %") for i, r in enumerate(rows)])
	plots.append("$ends using 1:2:3 with labels left offset 0.6,0 noenhanced")
	return picture(name, title, caption, pictures.bars_height(len(rows)),
	               script + "plot " + ", \\\n".join(plots) + "\n")


def shares(name, title, caption, rows, fair):
	"""rows: (label, the big one's, the small one's); fair: the big one's share by depth."""
	big, small, texts = [], [], []
	for i, (_, a, b) in enumerate(rows):
		part = 100 * a / (a + b)
		big.append((part, i))
		small.append((part, i))
		texts.append((part / 2, i, f"{units.show_count(a)} IOPS, {part:.0f} %"))
		texts.append(((100 + part) / 2, i, f"{units.show_count(b)}, {100 - part:.0f} %"))
	height = 150 + 40 * len(rows)
	script = (block("big", big) + block("small", small) + block("texts", texts) +
	          pictures.x_label("share of the drive's IOPS, %") +
	          f"set xrange [0:100]\nset yrange [{len(rows) - 0.4}:-0.6]\nset grid noytics\n"
	          "set ytics scale 0\nset key outside bottom center horizontal\n" +
	          pictures.y_tics([r[0] for r in rows]))
	plots = [f"$big using ($1/2):2:($1/2):(0.36) with boxxyerror fs solid 1.0 border lc rgb "
	         f"'{pictures.SKY}' lc rgb '{pictures.SKY}' title 'the deep tenant'",
	         f"$small using ((100+$1)/2):2:((100-$1)/2):(0.36) with boxxyerror fs solid 0.25 border "
	         f"lc rgb '{ORANGE}' lc rgb '{ORANGE}' title 'the other one'",
	         "$texts using 1:2:3 with labels center noenhanced notitle"]
	if fair:
		script += block("fair", [(100 * fair, -0.6), (100 * fair, len(rows) - 0.4)])
		plots.insert(2, "$fair using 1:2 with lines dt (6,4) lw 1.5 lc rgb 'black' title 'by their depths'")
	return picture(name, title, caption, height, script + "plot " + ", \\\n".join(plots) + "\n")


### ratios

def powers(low, high):
	"""Of two, from the last one below to the first above."""
	found = [2.0 ** e for e in range(-6, 16)]
	first = max([p for p in found if p <= low], default=found[0])
	last = min([p for p in found if p >= high], default=found[-1])
	return [p for p in found if first <= p <= last]


def show_ratio(ratio):
	return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def ratios(name, title, caption, rows):
	"""rows: (label, the thread's, ours, whether the thread's was a hope)"""
	every = [r for _, a, b, _ in rows for r in (a, b)]
	tics = powers(min(every), max(every))
	text = ", ".join(f'"{t:g}" {t}' for t in tics)
	bottom = TITLE + 26 * len(rows)
	height = bottom + TICS + LABEL + LEGEND + 16
	script = (frame(TITLE, bottom, height).replace(f"screen {LEFT}", f"screen {NAMES}") +
	          f"set title {quoted(title)} font titlefont offset screen {(0.5 - (NAMES + RIGHT) / 2):.4f},0\n"
	          # room for the numbers
	          f"set logscale x 2\nset xrange [{tics[0]}:{tics[-1] * 3}]\nset xtics ({text})\n"
	          f"set xlabel 'ratio of IOPS, A / B'\nset yrange [{len(rows) - 0.4}:-0.6]\n"
	          f"set key at screen 0.5,{6 / height:.4f} bottom center vertical width 1 maxrows 1\n"
	          "set ytics scale 0 font smallfont\n" + pictures.y_tics([r[0] for r in rows]) +
	          "set arrow 1 from 1,graph 0 to 1,graph 1 nohead lw 1.5 lc rgb '#444444' back\n")
	script += block("between", [(min(a, b), i, max(a, b)) for i, (_, a, b, _) in enumerate(rows)])
	plots = [f"$between using 1:2:($3-$1):(0) with vectors nohead lw 2 lc rgb '{GREY}' notitle"]
	script += block("ours", [(r[2], i) for i, r in enumerate(rows)])
	plots.append(f"$ours using 1:2 with points pt 7 ps 0.9 lc rgb '{BLUE}' title 'here'")
	# hollow and larger, so that ours shows where they are alike
	for block_name, chosen, point, said in (
			("thread", [(r[1], i) for i, r in enumerate(rows) if not r[3]], 4, "the thread"),
			("hoped", [(r[1], i) for i, r in enumerate(rows) if r[3]], 12, "hoped for there")):
		if chosen:
			script += block(block_name, chosen)
			plots.append(f"${block_name} using 1:2 with points pt {point} ps 1.4 lw 2 "
			             f"lc rgb '{RED}' title {quoted(said)}")
	script += block("numbers", [(max(a, b), i, f"{show_ratio(a)}, here {show_ratio(b)}")
	                            for i, (_, a, b, _) in enumerate(rows)])
	plots.append("$numbers using 1:2:3 with labels left offset 1.4,0 font smallfont noenhanced notitle")
	return picture(name, title, caption, height, script + "plot " + ", \\\n".join(plots) + "\n")
