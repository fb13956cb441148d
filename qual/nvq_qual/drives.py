# SPDX-License-Identifier: MIT
"""Finds drives, as `nvq list` knows them, and moves them between drivers."""

import json
import os
import re
import subprocess
import threading
import time

DEV = "/dev/"
WAIT = 20	# seconds for nodes to come, or a queue's owner to go


class DriveError(Exception):
	"""What is wrong with a drive, and what to do about it."""


def run(command, timeout=120):
	"""What a command prints; DriveError with what it complained about."""
	try:
		done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
		                      stdin=subprocess.DEVNULL, timeout=timeout,
		                      start_new_session=True, check=False)
	except OSError as error:
		raise DriveError(f"{command[0]}: {error.strerror}") from None
	except subprocess.TimeoutExpired:
		raise DriveError(f"{' '.join(command)}: no end after {timeout} s") from None
	if done.returncode:
		said = done.stderr.decode(errors="replace").strip()
		raise DriveError(said or f"{' '.join(command)}: status {done.returncode}")
	return done.stdout.decode(errors="replace")


class Drive:
	"""One controller, as it is now; target is "" or one of its queues: "poll0"."""

	def __init__(self, entry, target=""):
		self.address = entry["address"]
		self.driver = entry["driver"] or ""
		self.node = entry["node"] or ""
		self.target = target
		self.model = (entry["model"] or "").strip()
		self.serial = (entry["serial"] or "").strip()
		self.firmware = (entry["firmware_rev"] or "").strip()
		self.spaces = entry["namespaces"]
		self.queues = entry["queues"]

	def path(self):
		return f"{DEV}{self.node}{self.target}"

	def name(self):
		return f"{self.address} {self.model} serial {self.serial}".replace("  ", " ")

	def identity(self):
		return {"address": self.address, "model": self.model,
		        "serial": self.serial, "firmware": self.firmware}

	def attribute(self, name):
		try:
			with open(f"/sys/class/nvqueue/{self.node}/{name}", encoding="ascii") as f:
				return int(f.read())
		except (OSError, ValueError):
			return None

	def has(self):
		"""The numbers that say whether a job fits."""
		kinds = [q["kind"] for q in self.queues]
		has = {"poll": kinds.count("user_poll"), "irq": kinds.count("user_irq"),
		       "depth": self.queues[0]["depth"] if self.queues else None,
		       "mdts": self.attribute("mdts"),
		       "lba": self.spaces[0]["lba_size"] if self.spaces else None}
		return {key: value for key, value in has.items() if value is not None}

	def names(self):
		"""What the kernel's log may call it."""
		return {self.address, self.node} - {""}


def listing(nvq):
	"""All controllers of the machine: the array of `nvq list --json`."""
	try:
		return json.loads(run([nvq, "list", "--json"]))["controllers"]
	except (ValueError, KeyError):
		raise DriveError(f"{nvq} list --json: that is not its output") from None


def generic_of(disk):
	"""nvme0n1 is ng0n1 as a character device."""
	return re.sub(r"^nvme", "ng", disk or "")


def find(entries, name):
	"""The drive that NAME is: an address, a controller's node or a queue's."""
	address = name.lower()
	if re.fullmatch(r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", address):
		address = "0000:" + address
	base = os.path.basename(os.path.realpath(name if "/" in name else "/dev/" + name))
	for entry in entries:
		node = entry["node"]
		disks = [s["node"] for s in entry["namespaces"]]
		if entry["address"] == address or (node and node == base):
			return Drive(entry)
		for queue in entry["queues"]:
			if queue["node"] == base:
				return Drive(entry, base[len(node):])
		if base in disks or base in map(generic_of, disks):
			return Drive(entry)
	raise DriveError(f"{name} is no NVMe drive of this machine; see nvq list")


def find_bound(entries, name):
	"""The same, but it has to be nvqueue's."""
	drive = find(entries, name)
	if drive.driver != "nvqueue":
		raise DriveError(f"{name}: its driver is {drive.driver or 'none'}; "
		                 f"nvq bind {drive.address} first")
	if not drive.node or not drive.queues:
		raise DriveError(f"{name}: it has no queue; see dmesg")
	if not drive.spaces:
		raise DriveError(f"{name}: it has no active namespace")
	return drive


def wait_for(what, ask, stop_after=WAIT):
	"""The first true answer; DriveError when the time is up."""
	end = time.monotonic() + stop_after
	while True:
		answer = ask()
		if answer:
			return answer
		if time.monotonic() > end:
			raise DriveError(f"{what}: not after {stop_after} s")
		time.sleep(0.2)


class Mover:
	"""Moves drives to the stock driver and back, one at a time."""

	lock = threading.Lock()

	def __init__(self, nvq):
		self.nvq = nvq

	def entry(self, address):
		found = next((e for e in listing(self.nvq) if e["address"] == address), None)
		if not found:
			raise DriveError(f"{address}: it is gone; see dmesg")
		return found

	def generic(self, address):
		"""The node of the lowest namespace under nvme.ko, once it is there."""
		entry = self.entry(address)
		spaces = sorted((s for s in entry["namespaces"] if s["node"]),
		                key=lambda s: s["nsid"])
		if entry["driver"] != "nvme" or not spaces:
			return None
		path = DEV + generic_of(spaces[0]["node"])
		return path if os.path.exists(path) else None

	def unbind(self, address):
		"""fio's queues are released a moment after it ended."""
		end = time.monotonic() + WAIT
		while True:
			try:
				return run([self.nvq, "unbind", address])
			except DriveError:
				if time.monotonic() > end:
					raise
			time.sleep(0.5)

	def to_stock(self, address):
		"""Returns the passthrough node there."""
		with self.lock:
			self.unbind(address)
			return wait_for(f"{address}: a generic node under nvme",
			                lambda: self.generic(address))

	def bind(self, address):
		"""The nodes under nvme.ko may be open for a moment, by udev's rules or fio."""
		end = time.monotonic() + WAIT
		while True:
			try:
				return run([self.nvq, "bind", address])
			except DriveError:
				if time.monotonic() > end:
					raise
			time.sleep(0.5)

	def back(self, address, target=""):
		"""The drive as nvqueue has it again, perhaps under another number."""
		with self.lock:
			self.bind(address)
			return Drive(self.entry(address), target)
