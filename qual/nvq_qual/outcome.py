# SPDX-License-Identifier: MIT
"""What a run leaves for people and for machines: summary.txt and junit.xml."""

import xml.etree.ElementTree as ET

from . import limits, units, verdict


def reasons(job):
	"""Why a job's verdict is what it is, a line each."""
	lines = list(job.get("void") or [])
	if job.get("message"):
		lines.append(job["message"])
	lines += [f"{c['limit']}: it is {limits.show_value(c)}"
	          for c in job.get("checks", []) if not c["met"]]
	return lines


def earlier(drive, name):
	"""What was set aside of a job before it was run again, a line each."""
	return [f"void before, on {e['begun']}{' on the stock driver' if e['on'] == 'stock' else ''}: "
	        f"{e['void'][0]} ({e['file']})" for e in drive.get("aside", {}).get(name, [])]


def title(drive):
	return f"{drive['address']}  {drive['model']}  serial {drive['serial']}  " \
	       f"firmware {drive['firmware']}"


### summary.txt

def job_line(name, job):
	figures = job.get("figures") or {}
	return (f"  {job['status']:<8} {name:<20} "
	        f"{units.show_count(figures.get('iops')):>9} IOPS  "
	        f"{units.show_rate(figures.get('bw')):>11}  "
	        f"p99 {units.show_time(figures.get('p99')):>8}  "
	        f"p99.99 {units.show_time(figures.get('p99.99')):>8}")


def drive_lines(drive):
	blames = verdict.blames(drive)
	yield f"{verdict.of_drive(drive).upper()}  {title(drive)}"
	for name, job in drive["jobs"].items():
		if job["status"] == "skipped":
			yield f"  skipped  {name:<20} {job['message']}"
			continue
		yield job_line(name, job)
		for reason in reasons(job):
			yield f"           - {reason}"
		if name in drive["stock"]:
			stock = drive["stock"][name]
			yield job_line("  on the stock driver", stock)
			for reason in reasons(stock):
				yield f"           - {reason}"
		for line in earlier(drive, name):
			yield f"           - {line}"
		if name in blames:
			yield f"           = {verdict.BLAME_TEXT[blames[name]]}"
	for note in drive["notes"]:
		yield f"  note: {note}"


def about(data):
	"""The suite, when, and how."""
	how = "writing" if data["write"] else "read-only"
	if data.get("rehearse"):
		how += ", a rehearsal: its figures are worth nothing"
	return f"suite {data['suite']}, begun {data['begun']}, {how}"


def summary(data, differences):
	lines = [f"nvq-qual: {about(data)}", ""]
	for drive in data["drives"]:
		lines += list(drive_lines(drive)) + [""]
	for line in differences:
		lines.append(f"the environment changed: {line}")
	lines.append(verdict.RULE)
	counts = [verdict.of_drive(d) for d in data["drives"]]
	said = ", ".join(f"{counts.count(w)} {w}" for w in verdict.WORDS if w in counts)
	lines.append(f"drives: {said}")
	return "\n".join(lines) + "\n"


### junit.xml

def clean(text):
	"""XML has no place for control characters, not even escaped ones."""
	return "".join(c if c >= " " or c in "\n\t" else "?" for c in text)


def add_case(parent, drive, name, job, blame):
	case = ET.SubElement(parent, "testcase", name=name, time=str(job.get("seconds", 0)),
	                     classname=f"nvq-qual.{drive['address']}")
	text = "\n".join(reasons(job))
	if job["status"] == "skipped":
		ET.SubElement(case, "skipped", message=clean(job["message"]))
	elif job["status"] == "void":
		ET.SubElement(case, "error", type="void", message=clean(job["void"][0])).text = clean(text)
	elif job["status"] == "fail":
		kind = blame or "unknown"
		message = f"{reasons(job)[0]} ({verdict.BLAME_TEXT[blame]})"
		ET.SubElement(case, "failure", type=kind, message=clean(message)).text = clean(text)
	figures = job.get("figures") or {}
	said = [f"{key} {value:.0f}" for key, value in figures.items() if value is not None]
	said += earlier(drive, name)
	if said:
		ET.SubElement(case, "system-out").text = clean("\n".join(said))


def add_interrupted(parent, drive):
	case = ET.SubElement(parent, "testcase", name="the run ends", time="0",
	                     classname=f"nvq-qual.{drive['address']}")
	ET.SubElement(case, "error", type="interrupted",
	              message="interrupted; nvq-qual resume goes on")


def add_suite(root, data, drive, host):
	jobs = drive["jobs"]
	states = [job["status"] for job in jobs.values()]
	open_end = 0 if drive["finished"] else 1
	element = ET.SubElement(
		root, "testsuite", name=f"{data['suite']} on {drive['address']}",
		timestamp=data["begun"].rstrip("Z"), tests=str(len(jobs) + open_end),
		failures=str(states.count("fail")), skipped=str(states.count("skipped")),
		errors=str(states.count("void") + open_end),
		time=str(round(sum(j.get("seconds", 0) for j in jobs.values()), 1)))
	properties = ET.SubElement(element, "properties")
	for name in ("model", "serial", "firmware"):
		ET.SubElement(properties, "property", name=name, value=clean(drive[name]))
	for name in ("kernel", "fio"):
		ET.SubElement(properties, "property", name=name, value=clean(str(host.get(name))))
	blames = verdict.blames(drive)
	for name, job in jobs.items():
		add_case(element, drive, name, job, blames.get(name))
	if open_end:
		add_interrupted(element, drive)


def junit(data, host):
	root = ET.Element("testsuites", name=f"nvq-qual {data['suite']}")
	for drive in data["drives"]:
		add_suite(root, data, drive, host)
	for key in ("tests", "failures", "errors", "skipped"):
		root.set(key, str(sum(int(s.get(key)) for s in root)))
	ET.indent(root)
	return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
