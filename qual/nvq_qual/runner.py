# SPDX-License-Identifier: MIT
"""Runs a suite on one drive: fio for each job, the checks around it, and the same jobs
on the stock driver where they are to be compared."""

import os
import select
import signal
import subprocess
import threading
import time

from . import drives, environment, fio, kmsg, limits, suite, verdict

GRACE = 60	# seconds that fio may take to end once it is told to
LATE = 180	# and beyond the time that its job takes


class Context:
	"""What the drives of a run share."""

	def __init__(self, folder, jobs, rules, tools, progress):
		self.folder = folder
		self.jobs = jobs		# of the suite
		self.rules = rules		# Limits
		self.fio = tools["fio"]
		self.engine = tools["engine"]
		self.mover = drives.Mover(tools["nvq"])
		self.progress = progress
		self.stop = threading.Event()
		self.environment = {}

	def runtime(self):
		return self.folder.data["runtime"]


class Interrupted(Exception):
	"""Somebody wants us to stop; the job at hand does not count."""


class Fio:
	"""One fio process, in a session of its own so that ^C does not reach it before us."""

	def __init__(self, context, directory, name, writes):
		command = [context.fio, "--output-format=json", f"--output={name}.json",
		           "--eta=always", "--eta-newline=1"]
		if not writes:
			command.append("--readonly")
		self.error_path = os.path.join(directory, name + ".err")
		with open(self.error_path, "wb") as err:
			self.process = subprocess.Popen(
				command + [name + ".fio"], cwd=directory, stdin=subprocess.DEVNULL,
				stdout=subprocess.PIPE, stderr=err, start_new_session=True)

	def follow(self, feed, context, seconds):
		"""To its end; raises Interrupted if that came by our doing."""
		out, end = self.process.stdout.fileno(), None
		if seconds is not None:
			end = time.monotonic() + 2 * seconds + LATE
		rest = ""
		while True:
			ready = select.select([out], [], [], 0.25)[0]
			data = os.read(out, 4096) if ready else b""
			if ready and not data:
				break
			rest = (rest + data.decode(errors="replace"))[-2000:]
			lines = rest.replace("\r", "\n").split("\n")
			for line in lines[:-1]:
				feed(line)
			rest = lines[-1]
			if context.stop.is_set():
				self.finish(signal.SIGINT)
				raise Interrupted
			if end is not None and time.monotonic() > end:
				self.finish(signal.SIGINT)
				return f"fio did not end within {2 * seconds + LATE} s"
		self.process.wait()
		return None

	def finish(self, first):
		"""Asks it to end, then makes it."""
		for sig, patience in ((first, GRACE), (signal.SIGTERM, 10), (signal.SIGKILL, 10)):
			try:
				os.killpg(self.process.pid, sig)
				self.process.wait(patience)
				return
			except ProcessLookupError:
				self.process.wait(patience)
				return
			except subprocess.TimeoutExpired:
				continue

	def complaint(self):
		"""The last line of standard error that says something."""
		with open(self.error_path, encoding="utf-8", errors="replace") as f:
			lines = [line.strip() for line in f if line.strip()]
		ours = [line for line in lines if line.startswith("nvqueue:")]
		return (ours or lines or [""])[-1 if not ours else 0]


class Watch:
	"""The kernel's log and the temperatures, from one job's start to its end."""

	def __init__(self, context, drive):
		self.context = context
		self.log = kmsg.Log()
		self.change(drive)
		self.before = environment.heat(drive.node)

	def change(self, drive):
		entries = drives.listing(self.context.mover.nvq)
		others = {n for e in entries if e["address"] != drive.address
		          for n in (e["address"], e["node"]) if n}
		own = {e["node"] for e in entries if e["address"] == drive.address} - {None}
		self.ours, self.others = drive.names() | own, others

	def reasons(self, node):
		"""Why what was since the last call is void."""
		found = [f"the kernel logged: {text}" for text in
		         kmsg.voids(self.log.new(), self.ours, self.others)]
		if node:
			after = environment.heat(node)
			found += environment.throttled(self.before, after)
			self.before = after
		return list(dict.fromkeys(found))[:8]

	def forget(self):
		self.log.new()

	def close(self):
		self.log.close()


class DriveRun:
	"""A drive's share of a run; work() is a thread's."""

	def __init__(self, context, drive, record, track):
		self.context = context
		self.drive = drive
		self.record = record
		self.track = track
		self.directory = context.folder.file(record["directory"])

	def say(self, text):
		self.context.progress.say(f"{self.record['address']}: {text}")

	def note(self, text):
		self.context.folder.note(self.record, text)
		self.say(text)

	def work(self):
		self.record.pop("stopped", None)
		try:
			self.all_jobs()
			self.compare()
			self.context.folder.finish(self.record, [j.name for j in self.context.jobs])
		except Interrupted:
			pass
		except (drives.DriveError, OSError) as error:
			self.record["stopped"] = str(error)
			self.note(f"stopped: {error}")
		except Exception as error:
			# a mistake of ours: the verdict must not be that somebody interrupted it
			self.record["stopped"] = repr(error)
			raise
		finally:
			self.track.stop()

	def all_jobs(self):
		todo = [j for j in self.context.jobs if j.name not in self.record["jobs"]]
		if not todo:
			return
		self.keep_logs("before")
		watch = Watch(self.context, self.drive)
		if watch.log.why_not:
			self.note(f"the kernel's log is not watched: {watch.log.why_not}")
		try:
			for job in todo:
				self.one(job, watch)
		finally:
			watch.close()
		self.keep_logs("after")

	def keep_logs(self, when):
		context = self.context
		with context.folder.lock:
			kept = context.environment["drives"].setdefault(self.record["address"], {})
		if when == "before" and "before" in kept:
			return		# of the run as it was begun
		found = environment.logs(self.drive.node)
		with context.folder.lock:
			kept[when] = found

	def one(self, job, watch):
		why = suite.why_not(job, self.context.folder.data["write"], self.drive.target,
		                    self.drive.has())
		if why:
			result = {"status": "skipped", "message": why}
			self.track.start(job.name)
			self.track.stop()
		else:
			result = self.measure(job, job.name, self.context.engine, self.drive.path(),
			                      lambda: watch.reasons(self.drive.node))
		self.context.folder.record(self.record, job.name, result)
		self.tell(job.name, result)

	def tell(self, name, result):
		text = f"{name}: {result['status']}"
		figures = result.get("figures")
		if figures and figures["iops"]:
			text += f", {figures['iops']:.0f} IOPS"
		missed = [f"{c['limit']} (is {limits.show_value(c)})"
		          for c in result.get("checks", []) if not c["met"]]
		reasons = result.get("void", []) + missed
		if result.get("message"):
			reasons.insert(0, result["message"])
		self.say(text + "".join(f"; {r}" for r in reasons))

	def measure(self, job, name, engine, filename, reasons):
		"""Runs fio once; a result, or Interrupted."""
		context = self.context
		if context.stop.is_set():
			raise Interrupted
		rules = context.rules.of(job.name)
		with open(os.path.join(self.directory, name + ".fio"), "w", encoding="utf-8") as f:
			f.write(suite.job_file(job, engine, filename,
			                       context.rules.percentiles(job.name), context.runtime()))
		begun = time.time()
		self.track.start(name)
		process = Fio(context, self.directory, name, job.writes())
		late = process.follow(self.track.feed, context, planned(job, context.runtime()))
		result = self.judge(process, name, rules, late, reasons())
		result["begun"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun))
		result["seconds"] = round(time.time() - begun, 1)
		self.track.stop()
		return result

	def judge(self, process, name, rules, late, void):
		message, checks, figures = late, [], None
		try:
			with open(os.path.join(self.directory, name + ".json"), encoding="utf-8",
			          errors="replace") as f:
				measured = fio.figures(f.read())
			checks = limits.judge(rules, measured)
			figures = measured.summary()
		except (OSError, fio.FioError) as error:
			message = message or f"{getattr(error, 'strerror', None) or error}"
		status = process.process.returncode
		if status and not message and not (figures and figures["errors"]):
			message = f"fio ended with status {status}"
		said = process.complaint()
		if said and (message or (figures and figures["errors"])):
			message = f"{message}: {said}" if message else said
		failed = message if message and not (figures and figures["errors"]) else None
		return {"status": verdict.of_job(checks, failed, void), "message": message,
		        "checks": checks, "void": void, "figures": figures}

	### on the stock driver

	def compare(self):
		names = verdict.to_compare(self.record, self.context.folder.data["compare"])
		if not names or self.context.stop.is_set():
			if names:
				raise Interrupted
			return
		address = self.record["address"]
		with self.context.folder.lock:
			self.record["at_stock"] = True
			self.context.folder.save()
		try:
			node = self.context.mover.to_stock(address)
			self.say(f"compared on the stock driver, {node}: {', '.join(names)}")
			self.at_stock(names, node)
		except drives.DriveError as error:
			self.note(f"not compared on the stock driver: {error}")
		finally:
			self.come_back()

	def at_stock(self, names, node):
		watch = Watch(self.context, self.drive)
		try:
			for job in self.context.jobs:
				if job.name in names:
					result = self.measure(job, job.name + ".stock", None, node,
					                      lambda: watch.reasons(None))
					self.context.folder.record(self.record, job.name, result, stock=True)
					self.tell(job.name + " on the stock driver", result)
		finally:
			watch.close()

	def come_back(self):
		address = self.record["address"]
		try:
			self.drive = self.context.mover.back(address, self.drive.target)
		except drives.DriveError as error:
			self.note(f"it is still with the stock driver: {error}; nvq bind {address}")
			return
		with self.context.folder.lock:
			self.record["at_stock"] = False
			self.context.folder.save()
		self.say(f"back on nvqueue, /dev/{self.drive.node}")


def planned(job, runtime):
	"""Seconds, or None."""
	seconds = job.seconds()
	if seconds is None or runtime is None:
		return seconds
	return seconds - suite.units.parse_seconds(job.get("runtime")) + runtime
