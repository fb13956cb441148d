# SPDX-License-Identifier: MIT
"""Runs the unittest cases of a module, as TAP; and where nvq-qual's modules are."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
SUITES = os.path.join(ROOT, "jobs", "qual")
sys.path.insert(0, os.path.join(ROOT, "qual"))
sys.dont_write_bytecode = True


class Tap(unittest.TestResult):
	def __init__(self):
		super().__init__()
		self.number = 0

	def line(self, word, test, why="", skip=""):
		self.number += 1
		name = ".".join(test.id().split(".")[1:])
		print(f"{word} {self.number} - {name}{skip and ' # SKIP ' + skip}", flush=True)
		for text in why.splitlines():
			print(f"# {text}")

	def addSuccess(self, test):
		self.line("ok", test)

	def addFailure(self, test, err):
		super().addFailure(test, err)
		self.line("not ok", test, self.failures[-1][1])

	def addError(self, test, err):
		super().addError(test, err)
		self.line("not ok", test, self.errors[-1][1])

	def addSkip(self, test, reason):
		self.line("ok", test, skip=reason)


def main(name):
	"""For a test's last line: tap.main(__name__)"""
	result = Tap()
	unittest.defaultTestLoader.loadTestsFromModule(sys.modules[name]).run(result)
	print(f"1..{result.number}")
	sys.exit(not result.wasSuccessful() or not result.number)
