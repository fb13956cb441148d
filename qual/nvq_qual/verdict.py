# SPDX-License-Identifier: MIT
"""The rules: what a job's, a drive's and a run's verdict is.

A job fails if a limit is not met or fio failed.  It is void, whatever it measured, if
the kernel logged an error about its drive or something was throttled meanwhile.
A drive is void if a job of it is, else it fails if one does, or if it was lost.
Of a run with several drives a failure outweighs a void one: that drive would fail again."""

PASS, FAIL, VOID, USAGE, INTERRUPTED = 0, 1, 3, 2, 130
MAX_ERRNO = 133		# what is above is an NVMe status
WORDS = {"pass": PASS, "fail": FAIL, "void": VOID, "interrupted": INTERRUPTED}


def of_job(checks, message, reasons):
	"""message: what fio failed with; reasons: what makes it void."""
	if reasons:
		return "void"
	if message or not all(c["met"] for c in checks):
		return "fail"
	return "pass"


def tells(stock):
	"""Whether a run on the stock driver tells something of the drive: not if it was void
	or did not get as far as the drive.  One that ended in fio's ramp time has no figures,
	but an NVMe status."""
	figures = stock.get("figures") or {}
	reached = figures.get("iops") or abs(figures.get("error") or 0) > MAX_ERRNO
	return stock["status"] in ("pass", "fail") and bool(reached)


def blame(stock):
	"""Where the fault of a failed job is: it failed on our path."""
	if stock is None or not tells(stock):
		return None
	return "drive" if stock["status"] == "fail" else "path"


def of_drive(drive):
	if not drive["finished"]:
		return "fail" if drive.get("stopped") else "interrupted"
	states = [job["status"] for job in drive["jobs"].values()]
	for status in ("void", "fail"):
		if status in states:
			return status
	# nothing was measured, so nothing passed
	return "pass" if "pass" in states else "fail"


def blames(drive):
	"""{job: "drive" | "path" | None} of the failed ones."""
	return {name: blame(drive["stock"].get(name))
	        for name, job in drive["jobs"].items() if job["status"] == "fail"}


def of_run(data):
	"""The exit status."""
	words = [of_drive(d) for d in data["drives"]]
	for word in ("interrupted", "fail", "void"):
		if word in words:
			return WORDS[word]
	return PASS


def to_compare(drive, when):
	"""Names of the jobs that go to the stock driver and have not been there."""
	if when == "never":
		return []
	wanted = ("pass", "fail") if when == "always" else ("fail",)
	return [name for name, job in drive["jobs"].items()
	        if job["status"] in wanted and name not in drive["stock"]]


BLAME_TEXT = {"drive": "drive: it fails on the stock driver too",
              "path": "path: the stock driver passes",
              None: "drive or path: not known, there is no valid run on the stock driver"}
RULE = ("A job that fails here and on the stock driver is the drive's fault; one that "
        "passes there is the path's.  The stock driver runs it with io_uring_cmd and "
        "interrupts, against the same limits.")
