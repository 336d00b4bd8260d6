#!/usr/bin/env python3
"""What tests/run.py reads from the output of Python's unittest, of this Python's."""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run

PROGRAM = """
import sys, unittest

class Cases(unittest.TestCase):
    def test_passes(self):
        pass
    def test_has_a_docstring(self):
        '''Which unittest prints.'''
    def test_prints(self):
        print("something is not ok", file=sys.stderr)
        print("and something else", file=sys.stderr)
    def test_fails(self):
        self.fail("no")
    def test_raises(self):
        raise ValueError
    def test_is_skipped(self):
        self.skipTest("it's not there")
    def test_subtests_pass(self):
        for i in range(3):
            with self.subTest(i=i):
                pass
    def test_a_subtest_fails(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)
    @unittest.expectedFailure
    def test_fails_as_expected(self):
        self.fail()
    @unittest.expectedFailure
    def test_passes_unexpectedly(self):
        pass

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise ValueError
    def test_never_runs(self):
        pass

class Absent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("no machine")
    def test_never_runs(self):
        pass

unittest.main(verbosity=2)
"""


class UnittestCases(unittest.TestCase):
    def test_every_case_has_its_outcome(self):
        ran = subprocess.run([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE, text=True, check=False)
        outcomes = {name: (outcome, reason) for name, outcome, reason in run.unittest_cases(ran.stderr)}
        self.assertEqual(outcomes, {
            "Cases.test_passes": ("passed", ""),
            "Cases.test_has_a_docstring": ("passed", ""),
            "Cases.test_prints": ("passed", ""),
            "Cases.test_fails": ("failed", ""),
            "Cases.test_raises": ("failed", ""),
            "Cases.test_is_skipped": ("skipped", "it's not there"),
            "Cases.test_subtests_pass": ("passed", ""),
            "Cases.test_a_subtest_fails": ("failed", ""),
            "Cases.test_fails_as_expected": ("passed", ""),
            "Cases.test_passes_unexpectedly": ("failed", ""),
            "Broken.setUpClass": ("failed", ""),
            "Absent.setUpClass": ("skipped", "no machine"),
        })  # fmt: skip

    def test_a_program_that_dies_in_a_case_failed_in_it(self):
        output = "test_a (suite.S.test_a) ... ok\ntest_b (suite.S) ... some words\n"
        self.assertEqual(list(run.unittest_cases(output)), [("S.test_a", "passed", ""), ("S.test_b", "failed", "")])

    def test_other_programs_have_no_cases(self):
        self.assertEqual(list(run.unittest_cases("[  SKIPPED ] no tool\n3 options checked: ok\n")), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
