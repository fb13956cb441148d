#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nvq-qual: what it reads: limits, fio's JSON and progress, suites, the kernel's log,
temperatures."""

import json
import os
import tempfile
import unittest

import tap
from nvq_qual import environment, fio, kmsg, limits, progress, suite, units


def entry(name="j", **directions):
	"""A job of fio's JSON."""
	job = {"jobname": name, "error": 0, "job options": {"bs": "4k"}}
	for direction in fio.DIRECTIONS:
		job[direction] = {"total_ios": 0, "iops": 0.0, "bw_bytes": 0,
		                  **directions.get(direction, {})}
	return job


def block(iops, p99, bw=None):
	return {"total_ios": 10, "iops": iops, "bw_bytes": bw or iops * 4096,
	        "clat_ns": {"mean": p99 / 2, "max": p99 * 10,
	                    "percentile": {"50.000000": p99 / 3, "99.000000": p99}}}


def output(*entries, before=""):
	return before + json.dumps({"fio version": "fio-3.33", "jobs": list(entries)}, indent=1)


class Units(unittest.TestCase):
	def test_values(self):
		self.assertEqual(units.parse_time("500us"), 500000)
		self.assertEqual(units.parse_time("1.5 ms"), 1500000)
		self.assertEqual(units.parse_count("400k"), 400000)
		self.assertEqual(units.parse_count("1.2M"), 1200000)
		self.assertEqual(units.parse_rate("3GiB/s"), 3 << 30)
		self.assertEqual(units.parse_rate("3 GB/s"), 3e9)
		self.assertEqual(units.parse_size("128k"), 131072)
		self.assertEqual(units.parse_seconds("2h"), 7200)

	def test_nonsense(self):
		for parse, text in ((units.parse_time, "500"), (units.parse_time, "fast"),
		                    (units.parse_count, "3us"), (units.parse_rate, "3ms"),
		                    (units.parse_count, "-1"), (units.parse_count, "nan")):
			with self.assertRaises(ValueError, msg=text):
				parse(text)

	def test_shown(self):
		self.assertEqual(units.show_time(1234567), "1.23 ms")
		self.assertEqual(units.show_count(410479), "410 k")
		self.assertEqual(units.show_count(1500000), "1.5 M")
		self.assertEqual(units.show_rate(3 << 30), "3 GiB/s")
		self.assertEqual(units.show_duration(3725), "1 h 02 min")


class LimitsFile(unittest.TestCase):
	def test_general_and_sections(self):
		rules = limits.parse("# all\niops >= 400000\np99.99<=500us # tail\n"
		                     "[slow]\niops >= 10\n", jobs={"slow", "other"})
		self.assertEqual([l.text for l in rules.of("other")],
		                 ["errors = 0", "iops >= 400000", "p99.99<=500us"])
		self.assertEqual([l.text for l in rules.of("slow")],
		                 ["errors = 0", "p99.99<=500us", "iops >= 10"])

	def test_errors_default_is_replaced(self):
		rules = limits.parse("errors <= 5\n")
		self.assertEqual([l.text for l in rules.of("j")], ["errors <= 5"])

	def test_two_bounds_of_one_metric(self):
		self.assertEqual(len(limits.parse("iops >= 1\niops <= 9\n").of("j")), 3)

	def bad(self, text, number, word, jobs=None):
		with self.assertRaises(limits.LimitError) as caught:
			limits.parse(text, "file", jobs)
		self.assertIn(f"file:{number}: ", str(caught.exception))
		self.assertIn(word, str(caught.exception))

	def test_bad_lines_are_named(self):
		self.bad("\n# x\niops > fast\n", 3, "fast")
		self.bad("iops 400\n", 1, "METRIC OP VALUE")
		self.bad("errors = 0\nspeed >= 3\n", 2, "speed")
		self.bad("p99 <= 500\n", 1, "needs a unit")
		self.bad("p100 <= 5us\n", 1, "p100")
		self.bad("iops => 3\n", 1, "> 3")
		self.bad("read.errors = 0\n", 1, "read.errors")
		self.bad("[typo]\niops >= 1\n", 1, "typo", {"randread-4k"})

	def test_percentiles_go_to_fio(self):
		rules = limits.parse("p99.9999 <= 5ms\n[a]\nread.p37.5 <= 1ms\n")
		self.assertIn(99.9999, rules.percentiles("a"))
		self.assertIn(37.5, rules.percentiles("a"))
		self.assertNotIn(37.5, rules.percentiles("b"))

	def test_too_many_percentiles(self):
		text = "".join(f"p{n} <= 1s\n" for n in range(20, 30))
		with self.assertRaises(limits.LimitError):
			limits.parse(text)

	def judge(self, text, *entries):
		figures = fio.Figures(list(entries))
		return [c["met"] for c in limits.judge(limits.parse(text).of("j"), figures)]

	def test_judged(self):
		good = entry(read=block(500000, 300000))
		self.assertEqual(self.judge("iops >= 400000\np99 <= 500us", good), [True] * 3)
		self.assertEqual(self.judge("iops >= 600k\np99 <= 200us", good), [True, False, False])
		self.assertEqual(self.judge("iops >= 500000\niops > 500000", good), [True, True, False])

	def test_unmeasured_is_not_met(self):
		self.assertEqual(self.judge("write.iops <= 5\np42 <= 5s", entry(read=block(5, 5))),
		                 [True, False, False])


class FioJson(unittest.TestCase):
	def test_remarks_before_it(self):
		text = output(entry(read=block(7, 5)), before="nvqueue: 3 commands {\n")
		self.assertEqual(fio.figures(text).value("iops"), 7)

	def test_directions(self):
		figures = fio.Figures([entry(read=block(100, 10), write=block(50, 30))])
		self.assertEqual(figures.value("iops"), 150)
		self.assertEqual(figures.value("read.iops"), 100)
		self.assertEqual(figures.value("p99"), 30)
		self.assertEqual(figures.value("read.p99"), 10)
		self.assertEqual(figures.value("max"), 300)
		self.assertIsNone(figures.value("trim.iops"))

	def test_jobs_of_one_name_are_one(self):
		data = fio.load(output(entry("a", read=block(1, 10)), entry("a", read=block(2, 20))))
		(name, _, figures), = fio.jobs(data)
		self.assertEqual((name, figures.value("iops"), figures.value("p99")), ("a", 3, 20))

	def test_errors(self):
		failed = dict(entry(), error=17025)
		self.assertEqual(fio.Figures([failed]).errors(), 1)
		self.assertEqual(fio.Figures([dict(failed, total_err=12)]).errors(), 12)
		self.assertEqual(fio.Figures([entry()]).errors(), 0)

	def test_none(self):
		for text in ("", "fio: it failed\n", "{ broken", '{"jobs": []}'):
			with self.assertRaises(fio.FioError):
				fio.load(text)

	def test_progress(self):
		line = "Jobs: 1 (f=1): [r(1)][75.0%][r=8942MiB/s][r=2289k IOPS][eta 01m:01s]"
		self.assertEqual(progress.parse_eta(line), (75.0, 61, "2289k"))
		self.assertEqual(progress.parse_eta("Jobs: 1 (f=0)"), (None, None, None))
		self.assertEqual(progress.parse_eta("[5.0%][eta 01d:02h:00m:00s]")[1], 26 * 3600)


HAS = {"poll": 4, "irq": 1, "depth": 64, "mdts": 1 << 17, "lba": 512}


class Suites(unittest.TestCase):
	def jobs(self, text):
		return suite.parse(text)

	def test_ours_parse(self):
		for name in suite.SUITES:
			with open(suite.path_of(tap.SUITES, name), encoding="utf-8") as f:
				jobs = suite.parse(f.read(), name)
			self.assertTrue(any(j.writes() for j in jobs))
			self.assertTrue(any(not j.writes() for j in jobs))

	def test_global_and_comments(self):
		a, b = self.jobs("[global]\nbs=4k\n; x\n# y\n[a]\nrw=read\n[b]\nbs=8k\nrw=randrw\n")
		self.assertEqual((a.get("bs"), b.get("bs")), ("4k", "8k"))
		self.assertEqual((a.writes(), b.writes()), (False, True))

	def test_all_but_reads_write(self):
		for rw, writes in (("read", False), ("randread", False), ("randread:8", False),
		                   ("write", True), ("randtrim", True), ("trimwrite", True),
		                   ("rw", True), ("readwrite", True)):
			self.assertEqual(suite.Job("j", {"rw": rw}).writes(), writes, rw)
			self.assertEqual(suite.Job("j", {"readwrite": rw}).writes(), writes, rw)

	def test_not_a_suite(self):
		for text in ("", "bs=4k\n[a]\n", "[a]\nrw=read\n[a]\nrw=read\n", "[a]\ninclude x\n"):
			with self.assertRaises(suite.SuiteError):
				self.jobs(text)

	def test_choose(self):
		jobs = self.jobs("[a]\nrw=read\n[b]\nrw=read\n")
		self.assertEqual([j.name for j in suite.choose(jobs, ["b"])], ["b"])
		with self.assertRaisesRegex(suite.SuiteError, "a, b"):
			suite.choose(jobs, ["c"])

	def why(self, target="", write=False, **options):
		return suite.why_not(suite.Job("j", {"rw": "read", **options}), write, target, HAS)

	def test_skipped(self):
		self.assertIsNone(self.why())
		self.assertIn("--write", self.why(rw="write"))
		self.assertIsNone(self.why(rw="write", write=True))
		self.assertIn("5 poll queues", self.why(numjobs="5"))
		self.assertIn("2 irq queues", self.why(numjobs="2", queue_kind="irq"))
		self.assertIn("one was given", self.why(numjobs="2", target="poll0"))
		self.assertIn("irq", self.why(queue_kind="irq", target="poll0"))
		self.assertIn("beyond the queue, 63", self.why(iodepth="64"))
		self.assertIn("MDTS", self.why(bs="256k"))
		self.assertIn("LBA", self.why(bs="1000"))

	def test_seconds(self):
		timed = {"runtime": "1m", "time_based": "", "ramp_time": "5"}
		self.assertEqual(suite.Job("j", timed).seconds(), 65)
		self.assertIsNone(suite.Job("j", {"runtime": "60"}).seconds())

	def test_rehearsal(self):
		"""Of every job: it is short, and else what it was."""
		for name in suite.SUITES:
			with open(suite.path_of(tap.SUITES, name), encoding="utf-8") as f:
				jobs = suite.parse(f.read(), name)
			for job in jobs:
				short = suite.rehearsal(job)
				self.assertEqual(short.seconds(), None if job.seconds() is None else 1)
				if job.seconds() is None:
					self.assertEqual(short.get("size"), "16m", job.name)
					self.assertNotIn("loops", short.options)
				for key in ("rw", "bs", "iodepth", "verify", "queue_kind"):
					self.assertEqual(short.get(key), job.get(key))
		self.assertEqual(suite.rehearsal(suite.Job("j", {"size": "1g", "loops": "2"})).options,
		                 {"size": "16m", "ramp_time": "0"})

	def test_job_files(self):
		job = suite.Job("j", {"rw": "randread", "ioengine": "x", "filename": "y",
		                      "hipri": "1", "direct": "1",
		                      "queue_kind": "irq", "submit": "native", "time_based": "",
		                      "runtime": "10"})
		ours = suite.job_file(job, "/e.so", "/dev/nvq0", [50.0, 99.99], 3).splitlines()
		for line in ("[j]", "ioengine=external:/e.so", "filename=/dev/nvq0", "queue_kind=irq",
		             "percentile_list=50:99.99", "runtime=3", "time_based"):
			self.assertIn(line, ours)
		stock = suite.job_file(job, None, "/dev/ng0n1", [50.0])
		self.assertIn("ioengine=io_uring_cmd\n", stock)
		self.assertIn("runtime=10\n", stock)
		for word in ("queue_kind", "submit", "hipri", "direct", "/e.so", "filename=y"):
			self.assertNotIn(word, stock)


def record(level, text, facility=0, device=""):
	raw = f"{facility << 3 | level},5,77,-;{text}\n"
	return kmsg.parse(raw + (f" DEVICE={device}\n" if device else ""))


class KernelLog(unittest.TestCase):
	ours, others = {"0000:03:00.0", "nvq0"}, {"0000:04:00.0", "nvq1"}

	def voids(self, *records):
		return kmsg.voids(records, self.ours, self.others)

	def test_parse(self):
		r = kmsg.parse("30,339,5140900,-;systemd[1]: hello; there\n DEVICE=+pci:0000:03:00.0\n")
		self.assertEqual(r, (3, 6, "systemd[1]: hello; there", "+pci:0000:03:00.0"))

	def test_errors_void(self):
		self.assertEqual(self.voids(record(3, "disk on fire")), ["disk on fire"])
		self.assertEqual(self.voids(record(0, "panic soon")), ["panic soon"])
		self.assertEqual(len(self.voids(record(4, "WARNING: CPU: 0 PID: 1 at x.c:3"))), 1)

	def test_what_does_not(self):
		self.assertEqual(self.voids(record(4, "nvme nvq0: slow"), record(6, "hello")), [])

	def test_other_drives(self):
		self.assertEqual(self.voids(record(3, "nvqueue 0000:04:00.0: reset")), [])
		self.assertEqual(self.voids(record(3, "nvme nvq1: reset")), [])
		self.assertEqual(self.voids(record(3, "reset", device="+pci:0000:04:00.0")), [])
		self.assertEqual(len(self.voids(record(3, "nvme nvq0: reset"))), 1)
		self.assertEqual(len(self.voids(record(3, "nvq0 and nvq1: reset"))), 1)
		# no drive of ours by its name, but perhaps what it hangs on
		self.assertEqual(len(self.voids(record(3, "pcieport 0000:00:1c.0: AER"))), 1)

	def test_user_space(self):
		self.assertEqual(self.voids(record(3, "systemd: a unit failed", 3)), [])
		self.assertEqual(len(self.voids(record(3, "nvme nvq0: test", 1))), 1)

	def test_only_from_now_on(self):
		with tempfile.NamedTemporaryFile("wb", buffering=0) as f:
			f.write(b"3,1,1,-;before\n")
			log = kmsg.Log(f.name)
			self.assertEqual(log.new(), [])
			f.write(b"3,2,2,-;now\n")
			self.assertEqual([r.text for r in log.new()], ["now"])
			self.assertEqual(log.new(), [])
			log.close()

	def test_unreadable(self):
		log = kmsg.Log("/nonexistent/kmsg")
		self.assertIn("/nonexistent/kmsg", log.why_not)
		self.assertEqual(log.new(), [])


def heat(cpu=0, **smart):
	return {"smart": {"critical_warning": 0, "temperature": 310, **smart}, "cpu": cpu}


class Heat(unittest.TestCase):
	def test_cool(self):
		self.assertEqual(environment.throttled(heat(), heat(temperature=330)), [])
		self.assertEqual(environment.throttled(heat(thm_temp1_trans_count=4),
		                                       heat(thm_temp1_trans_count=4)), [])

	def test_throttled(self):
		for after in (heat(thm_temp1_trans_count=1), heat(warning_temp_time="2"),
		              heat(critical_comp_time=1), heat(critical_warning=2),
		              heat(critical_warning={"value": 2}), heat(cpu=3)):
			self.assertEqual(len(environment.throttled(heat(), after)), 1, after)

	def test_other_warnings(self):
		self.assertEqual(environment.throttled(heat(), heat(critical_warning=1)), [])

	def test_no_smart(self):
		self.assertEqual(environment.throttled({"smart": {"unknown": "x"}, "cpu": 0},
		                                       {"smart": {"unknown": "x"}, "cpu": 0}), [])


class Environments(unittest.TestCase):
	def test_differences(self):
		old = {"kernel": "6.1", "cpu": {"count": 2}, "date": "x", "gone": 1}
		new = {"kernel": "6.12", "cpu": {"count": 2}, "date": "y"}
		self.assertEqual(environment.differences(old, new),
		                 ["gone: 1 -> None", "kernel: 6.1 -> 6.12"])

	def test_lists(self):
		self.assertEqual(environment.differences({"a": [1, 2]}, {"a": [1, 3]}), ["a.1: 2 -> 3"])


if __name__ == "__main__":
	assert os.path.isdir(tap.SUITES)
	tap.main(__name__)
