# SPDX-License-Identifier: MIT
"""Numbers with units: how people write them and how we do."""

import re

TIME = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
COUNT = {"": 1, "k": 1e3, "m": 1e6}
BYTES = {"": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "b": 1,
         "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def split(text):
	"""'500us' -> (500.0, 'us'); ValueError if it is no number with a unit."""
	m = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]*)", text.strip())
	if not m:
		raise ValueError(f"\"{text}\" is not a number")
	return float(m[1]), m[2]


def parse_time(text):
	"""Nanoseconds.  A plain number could be anything, so it is none."""
	number, unit = split(text)
	if unit not in TIME:
		raise ValueError(f"\"{text}\" needs a unit: ns, us, ms or s")
	return number * TIME[unit]


def parse_count(text):
	number, unit = split(text)
	if unit.lower() not in COUNT:
		raise ValueError(f"\"{text}\": the unit is k or M, or none")
	return number * COUNT[unit.lower()]


def parse_rate(text):
	"""Bytes per second, with or without the \"/s\"."""
	number, unit = split(text)
	unit = unit.lower()
	unit = unit[:-2] if unit.endswith("/s") else unit
	if unit not in BYTES:
		raise ValueError(f"\"{text}\": the unit is B/s, kB/s, MB/s, GB/s, "
		                 "KiB/s, MiB/s or GiB/s")
	return number * BYTES[unit]


def parse_size(text):
	"""fio's sizes: 4k, 1m; its k is 1024."""
	m = re.fullmatch(r"([0-9]+)([kmgt]?)(i?b)?", text.strip().lower())
	if not m:
		raise ValueError(f"\"{text}\" is not a size")
	return int(m[1]) << 10 * " kmgt".index(m[2] or " ")


def parse_seconds(text):
	"""fio's times: 30, 30s, 5m, 2h, 1d."""
	m = re.fullmatch(r"([0-9]+)([smhd]?)", text.strip().lower())
	if not m:
		raise ValueError(f"\"{text}\" is not a time")
	return int(m[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[m[2]]


def digits(number):
	"""Three significant ones, but never 1.2e+03."""
	if number >= 100:
		return f"{number:.0f}"
	return f"{number:.3g}"


def scaled(number, steps):
	for factor, unit in steps:
		if number >= factor:
			return digits(number / factor) + unit
	return digits(number / steps[-1][0]) + steps[-1][1]


def show_time(ns):
	if ns is None:
		return "-"
	return scaled(ns, ((1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1, " ns")))


def show_count(number):
	if number is None:
		return "-"
	return scaled(number, ((1e6, " M"), (1e3, " k"), (1, "")))


def show_thousands(number):
	"""For a small cell: 482687 is 483."""
	return digits(number / 1e3)


def show_rate(number):
	if number is None:
		return "-"
	return scaled(number, ((1 << 30, " GiB/s"), (1 << 20, " MiB/s"),
	                       (1 << 10, " KiB/s"), (1, " B/s")))


def show_size(number):
	for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
		if number >= 1 << shift:
			return f"{digits(number / (1 << shift))} {unit}"
	return f"{number} B"


def show_duration(seconds):
	seconds = int(seconds + 0.5)
	if seconds < 60:
		return f"{seconds} s"
	if seconds < 3600:
		return f"{seconds // 60} min {seconds % 60:02d} s"
	return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"
