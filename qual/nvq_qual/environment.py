# SPDX-License-Identifier: MIT
"""The environment: what a figure depends on besides the drive, and what the drive says
of itself before and after."""

import glob
import json
import os
import platform
import re

from . import drives

LOGS = {"smart": ["smart-log"], "error_log": ["error-log", "-e", "16"],
        "self_test": ["self-test-log"]}
VOLATILE = {"date"}
SYS = "/sys"


def read(path):
	try:
		with open(path, encoding="utf-8", errors="replace") as f:
			return f.read().strip()
	except OSError:
		return None


def first_line(command):
	try:
		said = drives.run(command, 20).strip()
	except drives.DriveError as error:
		return f"unknown ({error})"
	return said.splitlines()[0] if said else "unknown"


def cpu():
	info = read("/proc/cpuinfo") or ""
	model = re.search(r"^model name\s*: (.*)", info, re.M)
	return {"model": model[1] if model else platform.machine(),
	        "count": os.cpu_count(),
	        "governor": read(f"{SYS}/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
	        "numa_nodes": len(glob.glob(f"{SYS}/devices/system/node/node[0-9]*"))}


def virtual():
	"""None on real hardware, as far as the firmware tells."""
	vendor = read(f"{SYS}/class/dmi/id/sys_vendor") or ""
	hypervisor = " hypervisor " in (read("/proc/cpuinfo") or "").replace("\n", " ")
	if not hypervisor and vendor not in ("QEMU", "VMware, Inc.", "Xen", "innotek GmbH"):
		return None
	return {"vendor": vendor, "machine": read(f"{SYS}/class/dmi/id/product_version")
	        or read(f"{SYS}/class/dmi/id/product_name")}


def module():
	base = f"{SYS}/module/nvqueue"
	parameters = {os.path.basename(p): read(p) for p in sorted(glob.glob(base + "/parameters/*"))}
	try:
		with open(base + "/notes/.note.gnu.build-id", "rb") as f:
			build = f.read()[16:].hex()
	except OSError:
		build = None
	return {"build_id": build, "parameters": parameters}


def mitigations():
	found = {}
	for path in sorted(glob.glob(f"{SYS}/devices/system/cpu/vulnerabilities/*")):
		found[os.path.basename(path)] = read(path)
	return found


def host(version, fio, engine):
	"""What all drives share."""
	command_line = read("/proc/cmdline") or ""
	return {
		"nvq-qual": version,
		"kernel": platform.release() + " " + platform.version(),
		"command_line": command_line,
		"module": module(),
		"fio": first_line([fio, "--version"]),
		"engine": engine,
		"nvme-cli": first_line(["nvme", "version"]),
		"virtual": virtual(),
		"cpu": cpu(),
		"iommus": sorted(map(os.path.basename, glob.glob(f"{SYS}/class/iommu/*"))),
		"mitigations": "off" if "mitigations=off" in command_line.split() else "on",
		"vulnerabilities": mitigations(),
	}


def iommu_mode(address):
	"""strict, lazy, passthrough, or off."""
	kind = read(f"{SYS}/bus/pci/devices/{address}/iommu_group/type")
	return {"DMA": "strict", "DMA-FQ": "lazy", "identity": "passthrough",
	        None: "off"}.get(kind, kind)


def of_drive(drive):
	"""What stays while a run lasts."""
	device = f"{SYS}/bus/pci/devices/{drive.address}/"
	virtual_of = drive.model.startswith("QEMU")
	return {**drive.identity(), "iommu": iommu_mode(drive.address),
	        "QEMU": drive.firmware if virtual_of else None,
	        "link": " x".join(filter(None, (read(device + "current_link_speed"),
	                                        read(device + "current_link_width")))) or None,
	        "numa_node": read(device + "numa_node"),
	        "namespaces": [{k: s[k] for k in ("nsid", "lba_size", "size")}
	                       for s in drive.spaces]}


def nvme_log(node, command):
	try:
		return json.loads(drives.run(["nvme", *command, "/dev/" + node, "-o", "json"], 30))
	except drives.DriveError as error:
		return {"unknown": str(error)}
	except ValueError:
		return {"unknown": f"nvme {command[0]}: its output is no JSON"}


def logs(node):
	"""SMART, the error log, the self-test log, of the controller's node."""
	return {name: nvme_log(node, command) for name, command in LOGS.items()}


### what changed

def flat(value, prefix=""):
	"""{"cpu.model": ...}"""
	if isinstance(value, dict):
		items = value.items()
	elif isinstance(value, list):
		items = enumerate(value)
	else:
		return {prefix: value}
	found = {}
	for key, inner in items:
		found.update(flat(inner, f"{prefix}.{key}" if prefix else str(key)))
	return found


def differences(old, new):
	"""Lines: what is not as it was."""
	old, new = flat(old), flat(new)
	return [f"{key}: {old.get(key)} -> {new.get(key)}"
	        for key in sorted(set(old) | set(new))
	        if key.split(".")[0] not in VOLATILE and old.get(key) != new.get(key)]


### heat

# Each of these grows when a drive or a processor has slowed itself down.
SMART_HEAT = ("warning_temp_time", "critical_comp_time", "thm_temp1_trans_count",
              "thm_temp2_trans_count", "thm_temp1_total_time", "thm_temp2_total_time")
TOO_HOT = 2	# the bit of SMART's critical_warning


def cpu_heat():
	total = 0
	pattern = f"{SYS}/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count"
	for path in glob.glob(pattern):
		total += int(read(path) or 0)
	return total


def heat(node):
	"""What is compared before and after a job."""
	return {"smart": nvme_log(node, LOGS["smart"]), "cpu": cpu_heat()}


def as_number(value):
	"""nvme-cli writes large counters as strings."""
	try:
		return int(str(value), 0)
	except ValueError:
		return 0


def warning_bits(smart):
	value = smart.get("critical_warning", 0)
	return as_number(value.get("value", 0) if isinstance(value, dict) else value)


def throttled(before, after):
	"""Why it was too hot between the two, or nothing."""
	reasons = []
	if warning_bits(after["smart"]) & TOO_HOT:
		reasons.append("the drive warns of its temperature (SMART)")
	for key in SMART_HEAT:
		old, new = (as_number(s["smart"].get(key, 0)) for s in (before, after))
		if new > old:
			reasons.append(f"the drive was throttled: {key} {old} -> {new} (SMART)")
	if after["cpu"] > before["cpu"]:
		reasons.append(f"the CPU was throttled {after['cpu'] - before['cpu']} times")
	return reasons
