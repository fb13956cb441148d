# SPDX-License-Identifier: MIT
"""The command line: run, resume, report, list."""

import argparse
import os
import signal
import sys
import threading
import time

from . import (drives, environment, limits, outcome, progress, report, runner, state,
               suite, units, verdict)

ERRORS = (drives.DriveError, limits.LimitError, state.StateError, suite.SuiteError,
          report.ReportError)
COMMANDS = ("run", "resume", "report", "list")


class UsageError(Exception):
	"""What is wrong with the command line."""


### arguments

class Parser(argparse.ArgumentParser):
	def error(self, message):
		raise UsageError(f"{message} ({self.prog} --help)")


def add_run(commands, tools):
	p = commands.add_parser("run", help="run a suite on drives (the default)")
	p.add_argument("drive", nargs="+", help="a controller (/dev/nvq0), a queue "
	               "(/dev/nvq0poll0) or a PCI address")
	p.add_argument("-s", "--suite", default="quick", choices=suite.SUITES)
	p.add_argument("-j", "--job", action="append", metavar="JOB", help="this job of "
	               "the suite only; may be repeated")
	p.add_argument("-o", "--output", metavar="FOLDER", help="results folder "
	               "(nvq-qual-DATE-TIME)")
	p.add_argument("-l", "--limits", metavar="FILE", help="what figures are held to")
	p.add_argument("-w", "--write", action="store_true",
	               help="run the jobs that write, which destroys the drive's data")
	p.add_argument("--confirm-serial", metavar="SERIAL", action="append", default=[],
	               help="a drive that may be written to, instead of the prompt")
	when = p.add_mutually_exclusive_group()
	when.add_argument("--compare", dest="compare", action="store_const", const="always",
	                  default="failed", help="run every job on the stock driver too")
	when.add_argument("--no-compare", dest="compare", action="store_const", const="never",
	                  help="do not even run those that failed")
	p.add_argument("--runtime", metavar="TIME", help="of every job that runs for a time")
	p.add_argument("--rehearse", action="store_true", help="every job for a second or "
	               f"{suite.REHEARSED.upper()}, to see that all of them run; figures are worth "
	               "nothing")
	add_tools(p, tools)


def add_tools(p, tools):
	p.add_argument("--no-pictures", action="store_true", help="a report without pictures")
	p.add_argument("--fio", default="fio", help="the fio to run (%(default)s)")
	p.add_argument("--engine", default=tools["engine"], help=argparse.SUPPRESS)
	p.add_argument("--nvq", default=tools["nvq"], help=argparse.SUPPRESS)


def parser(tools):
	p = Parser(prog="nvq-qual", description="Qualify NVMe drives with fio on their "
	           "hardware queues.", epilog="nvq-qual DRIVE... is nvq-qual run DRIVE...")
	p.add_argument("--version", action="version", version=f"nvq-qual {tools['version']}")
	commands = p.add_subparsers(dest="command", required=True, parser_class=Parser)
	add_run(commands, tools)
	r = commands.add_parser("resume", help="go on with an interrupted run, and run void "
	                        "jobs again")
	r.add_argument("folder")
	add_tools(r, tools)
	r = commands.add_parser("report", help="one HTML file and its pictures, of results")
	r.add_argument("result", nargs="+", help="results folder, folder of fio's JSON files, "
	               "fio's JSON file, ci/bench's or ci/experiments'")
	r.add_argument("-o", "--output", metavar="DIR", default="nvq-report",
	               help="where to (%(default)s)")
	r.add_argument("--threshold", type=float, default=5.0, metavar="PERCENT",
	               help="what two runs may differ by, unmarked (%(default)s)")
	r.add_argument("--no-pictures", action="store_true", help="tables alone")
	commands.add_parser("list", help="the suites and their jobs")
	return p


def arguments(argv, tools):
	"""A first word that is no command begins the drives of a run."""
	if argv and argv[0] not in COMMANDS and argv[0] not in ("-h", "--help", "--version"):
		argv = ["run", *argv]
	return parser(tools).parse_args(argv)


### permission to write

def ask(drive, stream, out):
	"""The serial number, typed; it is not shown, so that it has to be known."""
	out.write(f"{drive.path()}: {drive.address} {drive.model}\n"
	          "ALL ITS DATA WILL BE LOST.  Its serial number, to confirm that: ")
	out.flush()
	return stream.readline().strip()


def confirm(found, serials):
	"""UsageError unless every drive's own serial number was given."""
	wrong = set(serials) - {d.serial for d in found}
	if wrong:
		raise UsageError(f"--confirm-serial {sorted(wrong)[0]}: none of the drives has that "
		                 "serial number; nvq list shows them")
	for drive in found:
		if not drive.serial:
			raise UsageError(f"{drive.path()} has no serial number, so it cannot be "
			                 "confirmed; it is not written to")
		if drive.serial in serials:
			continue
		if not sys.stdin or not sys.stdin.isatty():
			raise UsageError(f"--write needs the serial number of {drive.path()} "
			                 f"({drive.address}): --confirm-serial, or a terminal to "
			                 "type it at")
		if ask(drive, sys.stdin, sys.stderr) != drive.serial:
			raise UsageError(f"that is not the serial number of {drive.path()}; "
			                 "nothing was written")


### running

def find_drives(names, nvq):
	entries = drives.listing(nvq)
	found = [drives.find_bound(entries, name) for name in names]
	seen = [d.address for d in found]
	for address in seen:
		if seen.count(address) > 1:
			raise UsageError(f"{address} is named twice; a drive is qualified once at a time")
	return found


def read_file(path):
	try:
		with open(path, encoding="utf-8") as f:
			return f.read()
	except (OSError, UnicodeDecodeError) as error:
		raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def write_file(path, text):
	with open(path, "w", encoding="utf-8") as f:
		f.write(text)


def new_environment(found, host):
	return {"host": host, "drives": {d.address: {"drive": environment.of_drive(d)}
	                                 for d in found}, "resumed": []}


def install_signals(context):
	"""^C once asks everything to stop; what is under way then gets its time."""
	def stop(number, _frame):
		if not context.stop.is_set():
			context.progress.say(f"{signal.Signals(number).name}: stopping; drives go back "
			                     "to nvqueue, nvq-qual resume goes on")
		context.stop.set()
	for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
		signal.signal(number, stop)


def execute(context, found):
	"""One thread a drive, to their ends.  found: {address: Drive}"""
	threads = []
	for record in context.folder.unfinished():
		todo = [(j.name, runner.planned(j, context.runtime())
		         if j.writes() <= context.folder.data["write"] else 0)
		        for j in context.jobs if j.name not in record["jobs"]]
		track = progress.Track(record["address"], todo, len(context.jobs))
		context.progress.add(track)
		work = runner.DriveRun(context, found[record["address"]], record, track).work
		threads.append(threading.Thread(target=work, name=record["address"]))
	for thread in threads:
		thread.start()
	while any(t.is_alive() for t in threads):
		context.progress.show()
		time.sleep(0.25)


def conclude(context, pictures):
	"""Everything that is made of what was measured; the exit status."""
	folder, data = context.folder, context.folder.data
	state.write_json(folder.file("environment.json"), context.environment)
	changed = [line for r in context.environment["resumed"] for line in r["differences"]]
	summary = outcome.summary(data, changed)
	write_file(folder.file("summary.txt"), summary)
	write_file(folder.file("junit.xml"), outcome.junit(data, context.environment["host"]))
	said = report.of_run(folder.path, pictures)
	if said:
		context.progress.say(said)
	context.progress.say(f"results: {folder.path}")
	try:
		print(summary, end="", flush=True)
	except BrokenPipeError:
		os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
	status = verdict.of_run(data)
	if status == verdict.VOID:
		context.progress.say(f"void jobs: nvq-qual resume {folder.path} runs them again")
	return status


def make_context(folder, args, tools):
	jobs = suite.parse(read_file(folder.file("suite.fio")), folder.file("suite.fio"))
	jobs = suite.choose(jobs, folder.data["only"])
	if folder.data.get("rehearse"):
		jobs = [suite.rehearsal(job) for job in jobs]
	rules = limits.parse(read_file(folder.file("limits.txt")), folder.file("limits.txt"))
	tools = {**tools, "fio": args.fio, "engine": os.path.abspath(args.engine),
	         "nvq": args.nvq}
	return runner.Context(folder, jobs, rules, tools, progress.Progress())


def check_engine(path):
	"""fio cuts a name at such characters, and looks elsewhere for what is not there."""
	if not os.path.exists(path):
		raise UsageError(f"{path}: the engine is not there; build nvqueue with fio, or "
		                 "name it with --engine")
	if set(path) & set(",:"):
		raise UsageError(f"{path}: fio takes no engine with a comma or colon in its path")


def prepare_run(args, tools):
	"""The new folder, and what is known of its drives."""
	check_engine(args.engine)
	if args.confirm_serial and not args.write:
		raise UsageError("--confirm-serial goes with --write")
	text = read_file(suite.path_of(tools["jobs"], args.suite))
	jobs = suite.parse(text, args.suite)
	suite.choose(jobs, args.job)
	known = suite.all_names(tools["jobs"])
	rules = read_file(args.limits) if args.limits else "errors = 0\n"
	limits.parse(rules, args.limits or "limits", known | {j.name for j in jobs})
	try:
		runtime = units.parse_seconds(args.runtime) if args.runtime else None
	except ValueError as error:
		raise UsageError(f"--runtime: {error}") from None
	found = find_drives(args.drive, args.nvq)
	if args.write:
		confirm(found, args.confirm_serial)
	path = args.output or time.strftime("nvq-qual-%Y%m%d-%H%M%S")
	folder = state.Folder.create(os.path.abspath(path), {
		"suite": args.suite, "write": args.write, "compare": args.compare,
		"rehearse": args.rehearse, "runtime": runtime, "only": args.job, "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
	}, found)
	write_file(folder.file("suite.fio"), text)
	write_file(folder.file("limits.txt"), rules)
	return folder, found


def run(args, tools):
	folder, found = prepare_run(args, tools)
	context = make_context(folder, args, tools)
	context.environment = new_environment(
		found, environment.host(tools["version"], args.fio, context.engine))
	state.write_json(folder.file("environment.json"), context.environment)
	install_signals(context)
	execute(context, {d.address: d for d in found})
	return conclude(context, not args.no_pictures)


### resuming

def same_drive(record, drive):
	"""What was confirmed, and measured so far, was this one."""
	for key in ("model", "serial"):
		now = getattr(drive, key)
		if record[key] != now:
			raise UsageError(f"{record['address']}: its {key} is \"{now}\", and was "
			                 f"\"{record[key]}\"; it is another drive")


def find_again(folder, nvq):
	"""The drives that have something to do; one that was left at the stock driver comes
	back."""
	found = {}
	mover = drives.Mover(nvq)
	for record in folder.to_resume():
		address = record["address"]
		drive = drives.find(drives.listing(nvq), address)
		if drive.driver == "nvme" and record.get("at_stock"):
			same_drive(record, drive)
			mover.back(address)
		drive = drives.find_bound(drives.listing(nvq), address)
		drive.target = record["target"]
		same_drive(record, drive)
		found[address] = drive
	return found


def compare_environment(context, found, version, args):
	"""Says what is not as it was when the run was begun."""
	new = new_environment(found.values(),
	                      environment.host(version, args.fio, context.engine))
	old = context.environment
	lines = environment.differences(old["host"], new["host"])
	for address, entry in new["drives"].items():
		was = old["drives"].get(address, {}).get("drive", {})
		lines += [f"{address} {line}"
		          for line in environment.differences(was, entry["drive"])]
	for line in lines:
		context.progress.say(f"the environment changed: {line}")
	old["resumed"].append({"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
	                       "differences": lines})


def resume(args, tools):
	folder = state.Folder.open(os.path.abspath(args.folder))
	context = make_context(folder, args, tools)
	context.environment = state.read_json(folder.file("environment.json"))
	if folder.to_resume():
		check_engine(args.engine)
		found = find_again(folder, args.nvq)
		for record in folder.to_resume():
			again = folder.set_aside(record)
			if again:
				context.progress.say(f"{record['address']}: void, to be run again: "
				                     f"{', '.join(again)}")
		compare_environment(context, found, tools["version"], args)
		install_signals(context)
		execute(context, found)
	else:
		context.progress.say(f"{args.folder} is complete; nothing is left to run")
	return conclude(context, not args.no_pictures)


def list_suites(tools):
	for name in suite.SUITES:
		jobs = suite.parse(read_file(suite.path_of(tools["jobs"], name)), name)
		print(f"{name}:")
		for job in jobs:
			seconds = job.seconds()
			print(f"  {job.name:<20} {'write' if job.writes() else 'read':<6} "
			      f"{units.show_duration(seconds) if seconds else 'until it is done'}")
	return verdict.PASS


def main(argv, tools):
	try:
		args = arguments(argv, tools)
		if args.command == "list":
			return list_suites(tools)
		if args.command == "report":
			return report.of_results(args)
		return (run if args.command == "run" else resume)(args, tools)
	except (UsageError, *ERRORS) as error:
		for line in str(error).splitlines():
			print(f"nvq-qual: {line}", file=sys.stderr)
		return verdict.USAGE
	except BrokenPipeError:
		# whoever read our output has enough; the interpreter's last flush as well
		os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
		return verdict.FAIL
	except KeyboardInterrupt:
		# before a run's own handler is there, so that nothing was begun
		print("\nnvq-qual: interrupted; nothing was run", file=sys.stderr)
		return verdict.INTERRUPTED
