#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nvq-qual: reports: pages that need nothing else, curves, differences, ci/bench's and
ci/experiments' figures, and the pictures themselves where gnuplot is."""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import struct
import tempfile
import unittest
import xml.etree.ElementTree as ET

import tap
from nvq_qual import (charts, experiments, outcome, page, panels, pictures, report, results,
                      verdict)

BENCH = os.path.join(tap.ROOT, "doc", "results", "bench.json")
EXPERIMENTS = os.path.join(tap.ROOT, "doc", "results", "experiments.json")
GNUPLOT = shutil.which("gnuplot")
EVIL = '<script src="http://x/y.js"> & "quoted" \'`date`\' \\ $a'


def output(name, iops, p99, **options):
	direction = {"total_ios": 9, "iops": iops, "bw_bytes": iops * 4096,
	             "clat_ns": {"mean": p99 / 2, "max": p99 * 2, "percentile": {
	                 "50.000000": p99 / 3, "99.000000": p99, "99.990000": p99 * 4}}}
	return {"fio version": "fio-3.33", "jobs": [{
		"jobname": name, "error": 0, "read": direction, "job options": {
			"rw": "randread", "bs": "4k", "iodepth": "1", "ioengine": "external:/libnvqueue.so",
			**options}}]}


class Files(unittest.TestCase):
	def setUp(self):
		self.dir = tempfile.mkdtemp()

	def tearDown(self):
		shutil.rmtree(self.dir)

	def put(self, name, data):
		path = os.path.join(self.dir, name)
		os.makedirs(os.path.dirname(path), exist_ok=True)
		with open(path, "w", encoding="utf-8") as f:
			f.write(data if isinstance(data, str) else json.dumps(data))
		return path

	def sweep(self, folder, factor=1.0, slow=1.0):
		for depth in (1, 2, 4):
			for engine in ("external:/libnvqueue.so", "io_uring_cmd"):
				name = f"{'ours' if 'nvq' in engine else 'stock'}-{depth}"
				self.put(f"{folder}/{name}.json", output(
					name, 1000 * depth * factor, 9000 * slow, iodepth=str(depth),
					ioengine=engine, filename="/dev/ng0n1"))
		return os.path.join(self.dir, folder)

	def report(self, *paths, pictures_too=False):
		args = argparse.Namespace(result=list(paths), output=os.path.join(self.dir, "out"),
		                          threshold=5.0, no_pictures=not pictures_too)
		with contextlib.redirect_stdout(io.StringIO()):
			self.assertEqual(report.of_results(args), 0)
		with open(os.path.join(self.dir, "out", "report.html"), encoding="utf-8") as f:
			return f.read()


class Pages(Files):
	def check(self, text):
		"""XML, and nothing that a browser would fetch."""
		self.assertTrue(text.startswith("<!DOCTYPE html>\n"))
		root = ET.fromstring(text.split("\n", 1)[1])
		ids = [e.get("id") for e in root.iter() if e.get("id")]
		self.assertEqual(len(ids), len(set(ids)), "an id is there twice")
		for element in root.iter():
			tag = element.tag.split("}")[-1]
			self.assertNotIn(tag, ("script", "link", "img", "iframe", "object", "embed", "image"))
			for name, value in element.attrib.items():
				if name.split("}")[-1] in ("href", "src", "action", "data", "srcset"):
					self.assertTrue(value.startswith("#"), value)
					self.assertIn(value[1:], ids)
				for target in re.findall(r"url\(['\"]?([^'\")]*)", value):
					self.assertTrue(target.startswith("#"), value)
					self.assertIn(target[1:], ids)
		self.assertNotIn("@import", text)
		addresses = set(re.findall(r"https?://[^\"'<> ]*", re.sub(r"&lt;.*", "", text)))
		self.assertLessEqual(addresses, {"http://www.w3.org/1999/xhtml",
		                                 "http://www.w3.org/2000/svg"})
		return root

	def test_parts(self):
		text = page.page(EVIL, [page.table([EVIL, "n"], [[EVIL, 1]], (1,)),
		                        page.bullets([EVIL]), page.verdict("pass")])
		self.check(text)
		self.assertNotIn("<script", text)

	def test_prints(self):
		self.assertIn("@media print", page.page("x", []))

	def test_of_everything(self):
		text = self.report(self.sweep("a"), self.sweep("b", 1.2), BENCH, EXPERIMENTS)
		self.check(text)
		for word in ("ours-4", "stock-2", "t/io_uring, block device, polled", "× stock",
		             "b against a", "cmd:t-poll / passthrough:t-poll", "sweep-depth: IOPS",
		             "2023-04-empty-polls: share of empty polls"):
			self.assertIn(word, text)

	def test_colour_is_not_alone(self):
		text = self.report(self.sweep("a"), self.sweep("b", 0.5))
		self.assertIn('<span class="worse">▼ worse</span>', text)

	def test_what_is_no_result(self):
		for name, text in (("a.json", "{}"), ("b.json", "no"), ("c/d.txt", "x"),
		                   ("e.json", '{"fio version": "x", "jobs": []}')):
			path = self.put(name, text)
			with self.assertRaises(results.ResultError):
				results.load(path)
		with self.assertRaises(results.ResultError):
			results.load(os.path.join(self.dir, "c"))
		with self.assertRaises(results.ResultError):
			results.load("/nonexistent")

	def test_each_kind_has_its_first(self):
		text = self.report(EXPERIMENTS, self.sweep("a"), BENCH, self.sweep("b"))
		self.assertIn("<h2>b against a</h2>", text)
		self.assertEqual(text.count(" against "), 1)

	@unittest.skipUnless(GNUPLOT, "no gnuplot")
	def test_with_pictures(self):
		text = self.report(self.sweep("a"), self.sweep("b", 1.2), BENCH, EXPERIMENTS,
		                   pictures_too=True)
		root = self.check(text)
		svgs = root.findall(".//{http://www.w3.org/2000/svg}svg")
		made = os.listdir(os.path.join(self.dir, "out", "pictures"))
		self.assertEqual(len(made), 2 * len(svgs))
		self.assertGreater(len(svgs), 29)
		self.assertTrue(all(s.get("aria-label") for s in svgs))
		self.assertIn("<figcaption>bench.json: ", text)

	@unittest.skipUnless(GNUPLOT, "no gnuplot")
	def test_names_cannot_break_gnuplot(self):
		picture = pictures.iops_bars("x", EVIL, "", [(EVIL, 5.0, True), ("b", 7.0, False)])
		pictures.draw([picture], self.dir)
		with open(os.path.join(self.dir, "x.png"), "rb") as f:
			head = f.read(24)
		self.assertEqual(struct.unpack(">II", head[16:]), (picture.width * 2, picture.height * 2))
		with open(os.path.join(self.dir, "x.svg"), encoding="utf-8") as f:
			svg = pictures.inline(f.read(), "x", page.escape(EVIL))
		self.check(page.page("x", [page.figure(svg, picture)]))

	def test_without_gnuplot(self):
		path, os.environ["PATH"] = os.environ["PATH"], self.dir
		try:
			with self.assertRaisesRegex(pictures.PictureError, "gnuplot-nox"):
				pictures.draw([pictures.iops_bars("x", "x", "", [("a", 5.0, True)])], self.dir)
		finally:
			os.environ["PATH"] = path


class Curves(Files):
	def test_sweeps(self):
		loaded = results.load(self.sweep("a"))
		curves = results.sweeps(loaded.records, "depth")
		self.assertEqual(sorted(curves), ["io_uring_cmd, stock, randread", "nvqueue, randread"])
		self.assertEqual([r.depth for r in curves["nvqueue, randread"]], [1, 2, 4])
		self.assertEqual(results.sweeps(loaded.records, "bs"), {})

	def test_a_point_of_another_curve(self):
		path = self.sweep("a")
		self.put("a/0-bs-4k.json", output("0-bs-4k", 5, 5, iodepth="2"))
		self.put("a/z-bs-4k.json", output("z-bs-4k", 5, 5, iodepth="2"))
		curve = results.sweeps(results.load(path).records, "depth")["nvqueue, randread"]
		self.assertEqual([r.job for r in curve], ["ours-1", "ours-2", "ours-4"])

	def test_what_is_no_point_of_it(self):
		"""Another job in between would be a notch in the curve."""
		path = self.sweep("a")
		self.put("a/irq.json", output("irq", 5, 5, iodepth="3"))
		curve = results.sweeps(results.load(path).records, "depth")["nvqueue, randread"]
		self.assertEqual([r.depth for r in curve], [1, 2, 4])

	def test_labels_that_would_touch(self):
		depths = [1, 2, 4, 8, 16, 31, 32, 64, 127, 128]
		axis = panels.x_axis(charts.AXES["depth"][1], depths)
		self.assertIn('"16" 16, "31" 31, "64" 64, "128" 128)', axis)

	def test_two_points_are_no_curve(self):
		records = results.load(self.sweep("a")).records
		self.assertEqual(results.sweeps([r for r in records if r.depth < 4], "depth"), {})

	def test_differences(self):
		a, b = results.load(self.sweep("a")), results.load(self.sweep("b", 1.2, 1.03))
		found = {(d.name, d.metric): d for d in results.compare(a, b, 5.0)}
		self.assertEqual(len(found), 18)
		self.assertEqual(found["ours-4", "iops"].mark, "better")
		self.assertAlmostEqual(found["ours-4", "iops"].percent, 20)
		self.assertEqual(found["ours-4", "p99"].mark, "")
		slower = results.compare(b, results.load(self.sweep("c", 1.2, 1.2)), 5.0)
		self.assertEqual({d.mark for d in slower if d.metric == "p99"}, {"worse"})

	def test_same_labels_are_told_apart(self):
		paths = [self.sweep("x/run"), self.sweep("y/run")]
		self.assertEqual([r.label for r in results.load_all(paths)], paths)


class Bench(unittest.TestCase):
	def setUp(self):
		self.result = results.load(BENCH)

	def test_costs(self):
		row = {"iops": 250000, "user": 1000.0, "kernel": 2900.0}
		self.assertEqual(results.cost(row), (1000.0, 2900.0, 3900.0))
		# a window in which the CPU idled tells nothing of the path
		self.assertEqual(results.cost({"iops": 250000, "user": 1.0, "kernel": 2.0}),
		                 (None, None, 4000.0))

	def test_waterfall(self):
		names = [p.name for p in charts.waterfalls(self.result, "")]
		self.assertEqual(names, ["waterfall-fio", "waterfall-lean"])

	def test_steps_add_up(self):
		picture = pictures.waterfall("w", "", "", [("a", 100.0), ("b", 60.0), ("c", 70.0)], 50.0)
		self.assertIn('0 100 "100"\n1 100 "−40"\n2 70 "+10"\n3 70 "70"', picture.script)

	def test_compared_with_itself(self):
		found = results.compare(self.result, self.result, 5.0)
		self.assertGreater(len(found), 50)
		self.assertEqual({(d.percent, d.mark) for d in found}, {(0.0, "")})


class Experiments(Files):
	def setUp(self):
		super().setUp()
		self.result = results.load(EXPERIMENTS)

	def entry(self, values, **more):
		return {"name": "x", "about": "x", "timed": False, "values": values, **more}

	def drawn(self, values, **more):
		return list(experiments.of_one(self.entry(values, **more), "x"))

	def test_keys(self):
		key = experiments.parse_key("passthrough+iostats=0:t-lean@NVQ_BS=4k,NVQ_DEPTH=8")
		self.assertEqual(key, ("passthrough+iostats=0", "t-lean", {"NVQ_BS": "4k", "NVQ_DEPTH": "8"}))
		self.assertEqual(experiments.parse_key("queue:poll"), ("queue", "poll", {}))
		self.assertEqual(experiments.label_of(key.path), "stock passthrough, iostats=0")
		self.assertEqual(experiments.label_of("new"), "new")

	def test_points_are_in_order(self):
		values = [(experiments.parse_key(f"queue:s@NVQ_BS={bs}"), 1.0)
		          for bs in ("1m", "512", "16k", "2k")]
		self.assertEqual(experiments.swept(values), {"NVQ_BS": ["512", "2k", "16k", "1m"]})

	def test_names_of_ratios(self):
		for what, want in (
				("cmd:t-poll / passthrough:t-poll", "cmd / passthrough: t-poll"),
				("queue:bs@NVQ_BS=256k / queue:bs@NVQ_BS=512", "256 KiB / 512 B: queue, bs"),
				("queue:a@NVQ_DEPTH=8 / block:b@NVQ_DEPTH=8", "queue, a / block, b: depth 8"),
				("queue:poll", "queue, poll")):
			self.assertEqual(experiments.ratio_name(what), want)

	def test_ratios_of_threads(self):
		for text, want in (("1.16 (1.77 M / 1.52 M)", 1.16), (">= 1.25 hoped for", 1.25),
		                   ("-", None), ("- (block: 13.04 M, IOS/call 30/30)", None),
		                   ("0.64 (78 M / 122 M), 0.86", 0.64), ("slight", None),
		                   ("13.04 M", None), ("170 K / 95.8 K", None)):
			self.assertEqual(experiments.thread_ratio(text), want, text)

	def test_which_pictures(self):
		"""By what was varied, not by names, and whatever the number of points."""
		names = [p.name for p in experiments.of_experiments(self.result, "2-")]
		self.assertEqual(len(names), len(set(names)))
		self.assertEqual(names[0], "2-ratios")
		for entry in self.result.experiments["experiments"]:
			self.assertTrue(any(n.startswith("2-" + entry["name"]) for n in names), entry["name"])
		for name in ("2-latency-qd1-latency", "2-2025-02-ublk-one", "2-2025-02-ublk-many"):
			self.assertIn(name, names)

	def test_a_sweep(self):
		made = self.drawn({f"{p}:d@NVQ_DEPTH={d}": 1e5 * d for p in ("queue", "block")
		                   for d in (1, 2, 4, 8)})
		self.assertEqual(len(made), 1)
		self.assertIn("1 100\n2 200\n4 400\n8 800\n", made[0].script)
		self.assertIn("1 10000\n2 5000\n4 2500\n8 1250\n", made[0].script)
		self.assertIn("'instructions per I/O'", made[0].script.replace('"', "'"))
		# with real time there are none to count
		timed = self.drawn({f"queue:d@NVQ_DEPTH={d}": 1e5 for d in (1, 2)}, timed=True)
		self.assertNotIn("instructions", timed[0].script)

	def test_block_sizes_are_bytes_as_well(self):
		made = self.drawn({f"queue:b@NVQ_BS={bs}": 1024.0 for bs in ("1k", "64k", "1m")})
		self.assertIn("1024 1\n65536 64\n1.04858e+06 1024\n", made[0].script)

	def test_two_variables(self):
		def keys(ones, others):
			return {f"{p}:s@NVQ_SUBMIT={a},NVQ_COMPLETE={b}": 1e3 * a * b
			        for p in ("queue", "block") for a in ones for b in others}
		table = self.drawn(keys((1, 8, 64), (1, 16, 64)))
		self.assertIn('2 1 ', table[0].script)
		self.assertEqual(table[0].script.count(" EOD"), 2)
		self.assertIn('"4096"', table[0].script)
		curves = self.drawn(keys((1, 8, 64), (0, 1)))
		self.assertEqual([p.name for p in curves], ["x-s"])

	def test_tenants(self):
		values = {"queue:big": 1500.0, "queue:small": 500.0}
		made = self.drawn(values, settings={"NVQ_DEPTH": "32", "NVQ_DEPTH_SMALL": "8"}, timed=True)
		self.assertIn("75 %", made[0].script)
		self.assertIn("80 -0.6\n80 ", made[0].script)
		self.assertNotIn("by their depths", self.drawn(values)[0].script)

	def test_a_file_of_before(self):
		"""It has neither latencies nor settings, nor says what is measured."""
		with open(EXPERIMENTS, encoding="utf-8") as f:
			data = json.load(f)
		for entry in data["experiments"]:
			for key in ("latencies", "settings", "measure"):
				del entry[key]
		old = results.load(self.put("old.json", data))
		names = [p.name for p in experiments.of_experiments(old, "")]
		self.assertIn("2023-04-empty-polls", names)
		self.assertNotIn("latency-qd1-latency", names)

	def test_compared(self):
		found = results.compare(self.result, self.result, 5.0)
		self.assertGreater(len(found), 100)
		self.assertEqual({(d.metric, d.mark) for d in found}, {("iops", "")})
		self.assertFalse(any("empty-polls" in d.name for d in found))

	def test_latency_is_there(self):
		"""What ci/experiments took from fio, path by path, is of the whole way."""
		entry = next(e for e in self.result.experiments["experiments"] if e["name"] == "latency-qd1")
		self.assertEqual(set(entry["latencies"]), set(entry["values"]))
		for key, iops in entry["values"].items():
			self.assertLess(entry["latencies"][key]["mean"], 1e9 / iops)
			self.assertGreater(entry["latencies"][key]["mean"], 0.4 * 1e9 / iops)


def job(status, **more):
	return {"status": status, "checks": [], "void": [], "message": None, "figures": None, **more}


def drive(finished=True, stock=None, **jobs):
	return {"address": "0000:03:00.0", "model": "M", "serial": "S", "firmware": "F",
	        "jobs": jobs, "stock": stock or {}, "notes": [], "finished": finished}


class Rules(unittest.TestCase):
	def test_jobs(self):
		met, missed = {"met": True}, {"met": False}
		self.assertEqual(verdict.of_job([met], None, []), "pass")
		self.assertEqual(verdict.of_job([met, missed], None, []), "fail")
		self.assertEqual(verdict.of_job([], "fio ended", []), "fail")
		self.assertEqual(verdict.of_job([missed], "x", ["hot"]), "void")

	def test_drives(self):
		for want, jobs in (("pass", ("pass", "skipped")), ("fail", ("pass", "fail")),
		                   ("void", ("fail", "void")), ("fail", ("skipped",)), ("fail", ())):
			named = {f"j{i}": job(status) for i, status in enumerate(jobs)}
			self.assertEqual(verdict.of_drive(drive(**named)), want, jobs)
		self.assertEqual(verdict.of_drive(drive(False, a=job("pass"))), "interrupted")
		self.assertEqual(verdict.of_drive({**drive(False), "stopped": "gone"}), "fail")

	def run_of(self, *words):
		made = {"pass": drive(a=job("pass")), "fail": drive(a=job("fail")),
		        "void": drive(a=job("void")), "interrupted": drive(False)}
		return verdict.of_run({"drives": [made[w] for w in words]})

	def test_runs(self):
		self.assertEqual(self.run_of("pass", "pass"), 0)
		self.assertEqual(self.run_of("pass", "void"), 3)
		self.assertEqual(self.run_of("void", "fail"), 1)
		self.assertEqual(self.run_of("fail", "interrupted"), 130)

	def test_blame(self):
		some = {"iops": 5}
		self.assertEqual(verdict.blame(job("fail", figures=some)), "drive")
		self.assertEqual(verdict.blame(job("pass", figures=some)), "path")
		self.assertIsNone(verdict.blame(job("void", figures=some)))
		self.assertIsNone(verdict.blame(job("fail", figures={"iops": None})))
		self.assertIsNone(verdict.blame(job("fail")))
		# fio's own failure, and the drive's, before anything was measured
		self.assertIsNone(verdict.blame(job("fail", figures={"iops": None, "error": 22})))
		for status in (641, -641, 17025):
			self.assertEqual(verdict.blame(job("fail", figures={"iops": None, "error": status})),
			                 "drive")
		self.assertIsNone(verdict.blame(None))

	def test_to_compare(self):
		d = drive(stock={"c": job("fail")}, a=job("pass"), b=job("fail"), c=job("fail"),
		          d=job("void"), e=job("skipped"))
		self.assertEqual(verdict.to_compare(d, "failed"), ["b"])
		self.assertEqual(verdict.to_compare(d, "always"), ["a", "b"])
		self.assertEqual(verdict.to_compare(d, "never"), [])

	def test_junit_takes_any_text(self):
		data = {"suite": "quick", "begun": "2026-01-01T00:00:00Z", "write": False,
		        "drives": [drive(a=job("fail", message="\x1b[1m" + EVIL))]}
		root = ET.fromstring(outcome.junit(data, {"kernel": "6", "fio": "3"}).encode())
		self.assertIn("<script", root.find(".//failure").get("message"))
		self.assertEqual(root.find(".//failure").get("type"), "unknown")


if __name__ == "__main__":
	tap.main(__name__)
