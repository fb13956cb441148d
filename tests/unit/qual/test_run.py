#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nvq-qual: whole runs, on drives and with a fio that are not real."""

import contextlib
import io
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import xml.etree.ElementTree as ET

import tap
from nvq_qual import cli, drives, kmsg

A, B = "0000:03:00.0", "0000:04:00.0"


class Run(unittest.TestCase):
	"""With a directory of its own, drives A and B, and three jobs of "quick"."""

	def setUp(self):
		self.dir = tempfile.mkdtemp()
		self.fake = os.path.join(self.dir, "fake")
		os.makedirs(self.fake)
		for name in ("nvme", "fio", "nvq"):
			os.symlink(os.path.join(tap.HERE, "fake_" + name), os.path.join(self.fake, name))
		self.put("drives.json", {A: "nvqueue", B: "nvqueue"})
		self.put("fio.json", {})
		self.put("smart", {"critical_warning": 0})
		for name in ("kmsg", "log", "engine.so", "ng0n1", "ng1n1"):
			self.put(name, None)
		self.environ = dict(os.environ)
		os.environ.update(FAKE=self.fake, PATH=self.fake + ":" + os.environ["PATH"])
		self.saved = drives.DEV, drives.WAIT, kmsg.PATH
		drives.DEV, drives.WAIT, kmsg.PATH = self.fake + "/", 1, self.fake + "/kmsg"
		self.signals = {s: signal.getsignal(s)
		                for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
		self.folder = os.path.join(self.dir, "results")

	def tearDown(self):
		for number, handler in self.signals.items():
			signal.signal(number, handler)
		drives.DEV, drives.WAIT, kmsg.PATH = self.saved
		os.environ.clear()
		os.environ.update(self.environ)
		shutil.rmtree(self.dir)

	def put(self, name, data):
		with open(os.path.join(self.fake, name), "w", encoding="utf-8") as f:
			if data is not None:
				json.dump(data, f)

	def qual(self, *argv):
		"""(exit status, what it printed, what it complained of)"""
		out, err = io.StringIO(), io.StringIO()
		tools = {"version": "0", "nvq": self.fake + "/nvq", "jobs": tap.SUITES,
		         "engine": self.fake + "/engine.so"}
		with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), \
				unittest.mock.patch("sys.stdin", io.StringIO()):
			# made when the modules were loaded
			cli.progress.Progress.__init__.__defaults__ = (err,)
			status = cli.main(list(argv), tools)
		return status, out.getvalue(), err.getvalue()

	def run_jobs(self, *argv):
		return self.qual("run", "--no-pictures", "-o", self.folder, "-j", "randread-qd1",
		                 "-j", "randread-4k", "-j", "randwrite-4k", *argv)

	def log(self):
		with open(self.fake + "/log", encoding="utf-8") as f:
			return f.read().splitlines()

	def ran(self):
		return [line.split()[1] for line in self.log() if line.startswith("fio ")]

	def state(self):
		with open(self.folder + "/state.json", encoding="utf-8") as f:
			return json.load(f)["drives"]

	def limits(self, text):
		path = os.path.join(self.dir, "limits")
		with open(path, "w", encoding="utf-8") as f:
			f.write(text)
		return ["-l", path]


class Verdicts(Run):
	def test_pass(self):
		status, out, _ = self.run_jobs(A)
		self.assertEqual(status, 0, out)
		self.assertIn(f"PASS  {A}  Fake drive  serial SER0", out)
		self.assertEqual(self.ran(), ["randread-qd1", "randread-4k"])
		self.assertTrue(all(line.endswith("readonly") for line in self.log()))
		for name in ("summary.txt", "report.html", "junit.xml", "environment.json"):
			self.assertTrue(os.path.getsize(os.path.join(self.folder, name)), name)

	def test_drive_is_to_blame(self):
		self.put("fio.json", {"*": {"iops": 10}})
		status, out, _ = self.run_jobs(*self.limits("[randread-4k]\niops >= 100\n"), A)
		self.assertEqual(status, 1)
		self.assertEqual(self.ran(), ["randread-qd1", "randread-4k", "randread-4k.stock"])
		self.assertIn("drive: it fails on the stock driver too", out)
		self.assertEqual(self.log()[-1], f"bind {A}")

	def test_path_is_to_blame(self):
		self.put("fio.json", {"randread-4k": {"iops": 10}})
		status, out, _ = self.run_jobs(*self.limits("iops >= 100\n"), A)
		self.assertEqual(status, 1)
		self.assertIn("path: the stock driver passes", out)
		stock = [line for line in self.log() if ".stock" in line][0]
		self.assertIn(f"io_uring_cmd {self.fake}/ng0n1 readonly", stock)

	def test_compare_always_and_never(self):
		self.run_jobs("--compare", A)
		self.assertEqual(self.ran()[2:], ["randread-qd1.stock", "randread-4k.stock"])
		self.put("log", None)
		self.folder += "2"
		self.put("fio.json", {"*": {"error": 641}})
		status, out, _ = self.run_jobs("--no-compare", A)
		self.assertEqual((status, len(self.ran())), (1, 2))
		self.assertIn("errors = 0: it is 1", out)
		self.assertIn("Unrecovered Read Error", out)
		self.assertNotIn(f"unbind {A}", self.log())

	def test_fio_fails(self):
		self.put("fio.json", {"randread-4k": {"text": "fio: no", "status": 3}})
		status, out, _ = self.run_jobs("--no-compare", A)
		self.assertEqual(status, 1)
		self.assertIn("fio left no JSON", out)

	def test_two_drives(self):
		self.put("fio.json", {"randread-4k": {"error": 5}})
		status, out, _ = self.run_jobs(A, "/dev/nvq1poll1")
		self.assertEqual(status, 1)
		self.assertEqual(out.count("FAIL  "), 2)
		self.assertIn(f"{self.fake}/nvq1poll1", " ".join(self.log()))
		self.assertEqual([d["at_stock"] for d in self.state()], [False, False])

	def test_stays_away(self):
		"""It cannot be bound again: that is said, and resume tries once more."""
		self.put("fio.json", {"randread-4k": {"error": 5}})
		self.put("no-bind", None)
		status, out, _ = self.run_jobs(A)
		self.assertEqual(status, 1)
		self.assertIn(f"still with the stock driver: nvq: {A}: busy; nvq bind {A}", out)

	def test_not_comparable(self):
		self.put("fio.json", {"randread-4k": {"error": 5}})
		self.put("no-unbind", None)
		status, out, _ = self.run_jobs(A)
		self.assertEqual(status, 1)
		self.assertIn("not compared on the stock driver", out)
		self.assertIn("drive or path: not known", out)

	def test_junit(self):
		self.put("fio.json", {"randread-4k": {"error": 5}, "randread-4k.stock": {"error": 5}})
		self.run_jobs(A)
		root = ET.parse(self.folder + "/junit.xml").getroot()
		self.assertEqual((root.tag, root.get("tests"), root.get("failures"),
		                  root.get("skipped")), ("testsuites", "3", "1", "1"))
		cases = root.findall("./testsuite/testcase")
		self.assertEqual([c.get("name") for c in cases],
		                 ["randread-qd1", "randread-4k", "randwrite-4k"])
		self.assertEqual(cases[1].find("failure").get("type"), "drive")
		self.assertIsNotNone(cases[2].find("skipped"))
		self.assertTrue(all(float(c.get("time")) >= 0 for c in cases))


class Void(Run):
	def test_kernel_error(self):
		self.put("fio.json", {"randread-4k": {"kmsg": "3,1,1,-;nvme nvq0: on fire\n"}})
		status, out, _ = self.run_jobs(A)
		self.assertEqual(status, 3)
		self.assertIn("the kernel logged: nvme nvq0: on fire", out)
		self.assertNotIn("randread-4k.stock", self.ran())
		root = ET.parse(self.folder + "/junit.xml").getroot()
		self.assertEqual(root.get("errors"), "1")
		self.assertEqual(root.find(".//error").get("type"), "void")

	def test_before_the_run(self):
		with open(self.fake + "/kmsg", "w", encoding="utf-8") as f:
			f.write("3,1,1,-;nvme nvq0: on fire\n")
		self.assertEqual(self.run_jobs(A)[0], 0)

	def test_the_other_drive(self):
		self.put("fio.json", {"*": {"kmsg": "3,1,1,-;nvme nvq1: on fire\n"}})
		status, out, _ = self.run_jobs(A, B)
		self.assertEqual(status, 3)
		self.assertIn(f"PASS  {A}", out)
		self.assertIn(f"VOID  {B}", out)

	def test_hot(self):
		self.put("smart", {"critical_warning": 2})
		status, out, _ = self.run_jobs(A)
		self.assertEqual(status, 3)
		self.assertIn("warns of its temperature", out)

	def test_failure_outweighs(self):
		self.put("fio.json", {"*": {"kmsg": "3,1,1,-;nvme nvq1: on fire\n", "iops": 5}})
		status, out, _ = self.run_jobs("--no-compare", *self.limits("iops >= 9\n"), A, B)
		self.assertEqual(status, 1)
		self.assertIn(f"VOID  {B}", out)


class Writing(Run):
	def test_refused(self):
		for argv in (["--write", A], ["--write", "--confirm-serial", "SER1", A],
		             ["--write", "--confirm-serial", "SER0", A, B],
		             ["--confirm-serial", "SER0", A]):
			status, _, err = self.run_jobs(*argv)
			self.assertEqual(status, 2, argv)
			self.assertIn("serial", err)
		self.assertEqual(self.log(), [])
		self.assertFalse(os.path.exists(self.folder))

	def test_confirmed(self):
		self.assertEqual(self.run_jobs("--write", "--confirm-serial", "SER0", A)[0], 0)
		self.assertIn("randwrite-4k", self.ran())
		said = {line.split()[1]: line for line in self.log()}
		self.assertFalse(said["randwrite-4k"].endswith("readonly"))
		self.assertTrue(said["randread-4k"].endswith("readonly"))


class Prompt(Run):
	"""A process of its own, on a real pseudo terminal."""

	CODE = """
import sys
sys.path[:0] = [{path!r}]
from nvq_qual import cli, drives, kmsg
drives.DEV, drives.WAIT, kmsg.PATH = {fake!r} + "/", 1, {fake!r} + "/kmsg"
sys.exit(cli.main(sys.argv[1:], {{"version": "0", "nvq": {fake!r} + "/nvq", "jobs": {jobs!r},
	"engine": {fake!r} + "/engine.so"}}))
"""

	def command(self, *argv):
		code = self.CODE.format(path=os.path.join(tap.ROOT, "qual"), fake=self.fake,
		                        jobs=tap.SUITES)
		return [sys.executable, "-B", "-c", code, "run", "--no-pictures", "-o", self.folder,
		        "-j", "randwrite-4k", "--write", *argv]

	def told(self, terminal, until):
		"""What it says, until that is in it, or to its end."""
		said, end = "", time.monotonic() + 60
		while until not in said and time.monotonic() < end:
			if not select.select([terminal], [], [], 1)[0]:
				continue
			try:
				said += os.read(terminal, 4096).decode()
			except OSError:		# it has ended
				break
		return said

	def type(self, keys, *argv):
		"""(exit status, what it said) with keys typed at each prompt."""
		pid, terminal = pty.fork()
		if not pid:
			# a shell's background job, which this may be one of, ignores ^C
			signal.signal(signal.SIGINT, signal.SIG_DFL)
			os.execv(sys.executable, self.command(*argv))
		said = ""
		for key in keys:
			asked = self.told(terminal, "to confirm that: ")
			said += asked
			if "to confirm that: " not in asked:
				break
			os.write(terminal, key.encode())
		said += self.told(terminal, "\0")
		os.close(terminal)	# one that still waits is hung up
		status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
		return status, said

	def assert_refused(self, want, status, said):
		self.assertEqual(status, want, said)
		self.assertEqual(self.log(), [])
		self.assertFalse(os.path.exists(self.folder))

	def test_right(self):
		status, said = self.type(["SER0\n"], A)
		self.assertEqual(status, 0, said)
		self.assertIn(f"{A} Fake drive\r\nALL ITS DATA WILL BE LOST", said)
		# the prompt does not give it away
		self.assertNotIn("SER0", said[:said.index("to confirm that: ")])
		self.assertEqual(self.ran(), ["randwrite-4k"])

	def test_wrong(self):
		for typed in ("SER1\n", "\n", "yes\n", "ser0\n"):
			status, said = self.type([typed], A)
			self.assert_refused(2, status, said)
			self.assertIn("that is not the serial number of", said)
			self.assertIn("nothing was written", said)

	def test_each_drive_has_its_own(self):
		status, said = self.type(["SER0\n", "SER0\n"], A, B)
		self.assert_refused(2, status, said)
		self.assertIn(f"that is not the serial number of {self.fake}/nvq1", said)
		status, said = self.type(["SER1\n"], "--confirm-serial", "SER0", A, B)
		self.assertEqual(status, 0, said)
		self.assertEqual(self.ran(), ["randwrite-4k", "randwrite-4k"])

	def test_interrupted(self):
		status, said = self.type(["SER0\x03"], A)
		self.assert_refused(130, status, said)
		self.assertIn("nothing was run", said)

	def test_end_of_file(self):
		status, said = self.type(["\x04"], A)
		self.assert_refused(2, status, said)
		self.assertIn("nothing was written", said)

	def test_no_terminal(self):
		"""The right answer from elsewhere is none."""
		for given in ({"input": b"SER0\n"}, {"stdin": subprocess.DEVNULL}):
			done = subprocess.run(self.command(A), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
			                      start_new_session=True, check=False, timeout=60, **given)
			said = done.stderr.decode()
			self.assert_refused(2, done.returncode, said)
			self.assertIn("--confirm-serial", said)


class Usage(Run):
	def test_wrong(self):
		self.put("drives.json", {A: "nvqueue", B: "nvme"})
		for argv, word in (([], "drive"), (["-s", "slow", A], "slow"), ([B], f"nvq bind {B}"),
		                   (["/dev/nvq7"], "nvq7"), ([A, "/dev/nvq0poll0"], "twice"),
		                   (["--runtime", "long", A], "long"), (["-j", "x", A], "no job"),
		                   (["--engine", "/none.so", A], "/none.so"),
		                   ([*self.limits("iops > x\n"), A], "limits:1"),
		                   ([*self.limits("[typo]\n"), A], "typo")):
			status, _, err = self.qual("run", "-o", self.folder, *argv)
			self.assertEqual(status, 2, argv)
			self.assertIn(word, err)
		self.assertFalse(os.path.exists(self.folder))

	def test_a_folder_is_not_overwritten(self):
		self.run_jobs(A)
		status, _, err = self.run_jobs(A)
		self.assertEqual(status, 2)
		self.assertIn("nvq-qual resume", err)

	def test_list(self):
		status, out, _ = self.qual("list")
		self.assertEqual(status, 0)
		self.assertIn("randread-qd1", out)


class Resuming(Run):
	def interrupt(self, when):
		"""^C once the fake fio has begun that job."""
		def later():
			for _ in range(400):
				if when in self.ran():
					break
				time.sleep(0.05)
			time.sleep(0.3)
			os.kill(os.getpid(), signal.SIGINT)
		threading.Thread(target=later).start()

	def test_in_the_middle(self):
		self.put("fio.json", {"randread-4k": {"sleep": 20}})
		self.interrupt("randread-4k")
		status, out, _ = self.run_jobs(A)
		self.assertEqual(status, 130)
		self.assertIn(f"INTERRUPTED  {A}", out)
		self.assertEqual(list(self.state()[0]["jobs"]), ["randread-qd1"])
		root = ET.parse(self.folder + "/junit.xml").getroot()
		self.assertEqual(root.find(".//error").get("type"), "interrupted")
		self.put("fio.json", {})
		status, out, err = self.qual("resume", self.folder, "--no-pictures")
		self.assertEqual(status, 0, err)
		self.assertEqual(self.ran(), ["randread-qd1", "randread-4k", "randread-4k"])
		self.assertNotIn("the environment changed", err)

	def test_on_the_stock_driver(self):
		self.put("fio.json", {"randread-4k": {"error": 5}, "randread-4k.stock": {"sleep": 20}})
		self.interrupt("randread-4k.stock")
		self.assertEqual(self.run_jobs(A)[0], 130)
		self.assertEqual(self.log()[-1], f"bind {A}")
		self.put("fio.json", {})
		status, out, _ = self.qual("resume", self.folder, "--no-pictures")
		self.assertEqual(status, 1)
		self.assertIn("path: the stock driver passes", out)
		self.assertEqual(self.ran().count("randread-4k"), 1)

	def unfinished(self, **changes):
		"""A run of which one job is done, as if it had been killed."""
		self.run_jobs(A)
		with open(self.folder + "/state.json", encoding="utf-8") as f:
			data = json.load(f)
		drive = data["drives"][0]
		del drive["jobs"]["randread-4k"]
		drive.update(finished=False, **changes)
		with open(self.folder + "/state.json", "w", encoding="utf-8") as f:
			json.dump(data, f)

	def test_left_on_the_stock_driver(self):
		self.unfinished(at_stock=True)
		self.put("drives.json", {A: "nvme", B: "nvqueue"})
		self.assertEqual(self.qual("resume", self.folder, "--no-pictures")[0], 0)
		self.assertIn(f"bind {A}", self.log())
		self.assertEqual(self.ran(), ["randread-qd1", "randread-4k", "randread-4k"])

	def test_another_drive(self):
		self.unfinished(serial="OTHER")
		status, _, err = self.qual("resume", self.folder)
		self.assertEqual(status, 2)
		self.assertIn('its serial is "SER0", and was "OTHER"', err)

	def test_environment_changed(self):
		self.unfinished()
		path = self.folder + "/environment.json"
		with open(path, encoding="utf-8") as f:
			data = json.load(f)
		data["host"]["fio"] = "fio-3.1"
		with open(path, "w", encoding="utf-8") as f:
			json.dump(data, f)
		status, out, err = self.qual("resume", self.folder, "--no-pictures")
		self.assertEqual(status, 0)
		self.assertIn("the environment changed: fio: fio-3.1 -> fio-3.33", err)
		self.assertIn("the environment changed: fio: fio-3.1 -> fio-3.33", out)

	FIRE = {"kmsg": "3,1,1,-;nvme nvq0: on fire\n"}

	def test_void_is_run_again(self):
		self.put("fio.json", {"randread-qd1": {**self.FIRE, "iops": 5}})
		status, _, err = self.run_jobs(A)
		self.assertEqual(status, 3)
		self.assertIn(f"nvq-qual resume {self.folder}", err)
		self.put("fio.json", {})
		status, out, err = self.qual("resume", self.folder, "--no-pictures")
		self.assertEqual(status, 0, out)
		self.assertIn(f"{A}: void, to be run again: randread-qd1", err)
		self.assertEqual(self.ran(), ["randread-qd1", "randread-4k", "randread-qd1"])
		self.assertEqual(list(self.state()[0]["jobs"]),
		                 ["randread-qd1", "randread-4k", "randwrite-4k"])
		directory = A.replace(":", "-")
		with open(f"{self.folder}/{directory}/randread-qd1.void1.json", encoding="utf-8") as f:
			self.assertEqual(json.load(f)["jobs"][0]["read"]["iops"], 5)
		with open(f"{self.folder}/report.html", encoding="utf-8") as f:
			page = f.read()
		with open(f"{self.folder}/junit.xml", encoding="utf-8") as f:
			junit = f.read()
		for text in (out, page, junit):
			self.assertIn("on fire", text)
			self.assertIn(f"{directory}/randread-qd1.void1.json", text)

	def test_void_once_more(self):
		self.put("fio.json", {"randread-4k": self.FIRE})
		self.run_jobs(A)
		for count in (1, 2):
			status, out, _ = self.qual("resume", self.folder, "--no-pictures")
			self.assertEqual(status, 3)
			self.assertIn(f"randread-4k.void{count}.json", out)
		self.assertEqual(self.ran().count("randread-4k"), 3)
		self.assertEqual(self.ran().count("randread-qd1"), 1)

	def test_void_on_the_stock_driver(self):
		self.put("fio.json", {"randread-4k": {"error": 5}, "randread-4k.stock": self.FIRE})
		status, out, _ = self.run_jobs(A)
		self.assertEqual(status, 1)
		self.assertIn("drive or path: not known", out)
		self.put("fio.json", {"*": {"error": 5}})
		status, out, _ = self.qual("resume", self.folder, "--no-pictures")
		self.assertEqual(status, 1)
		self.assertIn("drive: it fails on the stock driver too", out)
		self.assertIn("on the stock driver: the kernel logged: nvme nvq0: on fire", out)
		self.assertEqual(self.ran()[2:], ["randread-4k.stock", "randread-4k.stock"])

	def test_void_of_another_drive(self):
		"""It is refused, and so nothing is set aside."""
		self.put("fio.json", {"randread-4k": self.FIRE})
		self.run_jobs(A)
		self.put("drives.json", {B: "nvqueue", A: "nvqueue"})
		status, _, err = self.qual("resume", self.folder)
		self.assertEqual(status, 2)
		self.assertIn("it is another drive", err)
		self.assertEqual(self.state()[0]["jobs"]["randread-4k"]["status"], "void")

	def test_a_rehearsal_stays_one(self):
		self.put("fio.json", {"randread-4k": {"sleep": 20}})
		self.interrupt("randread-4k")
		self.assertEqual(self.run_jobs("--rehearse", A)[0], 130)
		self.put("fio.json", {})
		status, out, _ = self.qual("resume", self.folder, "--no-pictures")
		self.assertEqual(status, 0)
		self.assertIn("a rehearsal", out)
		with open(f"{self.folder}/{A.replace(':', '-')}/randread-4k.fio", encoding="utf-8") as f:
			text = f.read()
		self.assertIn("\nruntime=1\n", text)
		self.assertIn("\nramp_time=0\n", text)

	def test_complete(self):
		self.run_jobs(A)
		ran = self.ran()
		status, _, err = self.qual("resume", self.folder, "--no-pictures")
		self.assertEqual((status, self.ran()), (0, ran))
		self.assertIn("complete", err)

	def test_no_folder(self):
		status, _, err = self.qual("resume", self.dir)
		self.assertEqual(status, 2)
		self.assertIn("state.json", err)


if __name__ == "__main__":
	tap.main(__name__)
