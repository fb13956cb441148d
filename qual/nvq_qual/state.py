# SPDX-License-Identifier: MIT
"""The results folder: what was asked, and what has been done so far.

state.json is replaced as a whole after each job, so that a run that ends for whatever
reason goes on where it was."""

import json
import os
import threading

VERSION = 1
SUFFIX = {"jobs": "", "stock": ".stock"}	# of files, behind the job's name


class StateError(Exception):
	"""Why a folder cannot be used."""


def write_json(path, data):
	"""As a whole or not at all."""
	with open(path + ".new", "w", encoding="utf-8") as f:
		json.dump(data, f, indent=1, sort_keys=False)
		f.write("\n")
		f.flush()
		os.fsync(f.fileno())
	os.replace(path + ".new", path)


def read_json(path):
	try:
		with open(path, encoding="utf-8") as f:
			return json.load(f)
	except OSError as error:
		raise StateError(f"{path}: {error.strerror}") from None
	except ValueError as error:
		raise StateError(f"{path}: it is no JSON: {error}") from None


def new_drive(drive):
	return {**drive.identity(), "target": drive.target,
	        "directory": drive.address.replace(":", "-"), "jobs": {}, "stock": {},
	        "aside": {}, "notes": [], "finished": False}


class Folder:
	"""One results folder; its methods may be called by several threads."""

	def __init__(self, path, data):
		self.path = path
		self.data = data
		self.lock = threading.RLock()

	@classmethod
	def create(cls, path, asked, drives):
		"""asked: suite, only, write, compare, rehearse, runtime, begun."""
		if os.path.exists(os.path.join(path, "state.json")):
			raise StateError(f"{path} has results already: nvq-qual resume {path}, "
			                 "or another --output")
		data = {"version": VERSION, **asked, "drives": [new_drive(d) for d in drives]}
		for drive in data["drives"]:
			os.makedirs(os.path.join(path, drive["directory"]), exist_ok=True)
		folder = cls(path, data)
		folder.save()
		return folder

	@classmethod
	def open(cls, path):
		data = read_json(os.path.join(path, "state.json"))
		if data.get("version") != VERSION:
			raise StateError(f"{path}: version {data.get('version')} of its results; "
			                 f"this nvq-qual knows {VERSION}")
		return cls(path, data)

	def file(self, *names):
		return os.path.join(self.path, *names)

	def save(self):
		with self.lock:
			write_json(self.file("state.json"), self.data)

	def record(self, drive, job, result, stock=False):
		"""A job that is done, on our engine or on the stock driver."""
		with self.lock:
			drive["stock" if stock else "jobs"][job] = result
			self.save()

	def note(self, drive, text):
		with self.lock:
			if text not in drive["notes"]:
				drive["notes"].append(text)
			self.save()

	def finish(self, drive, names):
		"""names: of the jobs, in their order, which one that was run again is out of."""
		with self.lock:
			for key in ("jobs", "stock"):
				drive[key] = {n: drive[key][n] for n in names if n in drive[key]}
			drive["finished"] = True
			self.save()

	def unfinished(self):
		return [d for d in self.data["drives"] if not d["finished"]]

	def to_resume(self):
		"""Drives with something to run, or to run again."""
		return [d for d in self.data["drives"] if not d["finished"] or any(voids_of(d))]

	def set_aside(self, drive):
		"""Void results become earlier ones, files and all, so that their jobs are to be
		run; their names."""
		with self.lock:
			names = []
			for key, job in list(voids_of(drive)):
				self.keep(drive, key, job)
				names.append(job + SUFFIX[key])
			return names

	def keep(self, drive, key, job):
		kept = drive.setdefault("aside", {}).setdefault(job, [])
		count = 1 + sum(e["on"] == key for e in kept)
		old = job + SUFFIX[key]
		new = f"{old}.void{count}"
		for extension in ("json", "fio", "err"):
			path = self.file(drive["directory"], f"{old}.{extension}")
			if os.path.exists(path):
				os.replace(path, self.file(drive["directory"], f"{new}.{extension}"))
		kept.append({**drive[key].pop(job), "on": key, "file": f"{drive['directory']}/{new}.json"})
		drive["finished"] = False
		self.save()


def voids_of(drive):
	"""(jobs or stock, name) of each void result."""
	return ((key, name) for key in SUFFIX for name, job in drive[key].items()
	        if job["status"] == "void")


def is_folder(path):
	return os.path.exists(os.path.join(path, "state.json"))
