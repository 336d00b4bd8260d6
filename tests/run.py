#!/usr/bin/env python3
"""Runs the CTest programs of a build folder and says what passed, failed and was skipped, case by case and with reasons.

Cases are read from the result files of GoogleTest and from the verbose output of Python's unittest.

Usage: tests/run.py BUILD_FOLDER [ctest arguments ...]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def gtest_cases(path):
    """Yields (name, outcome, reason) for every case of a GoogleTest result file."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None:
            yield name, "failed", ""
        elif skipped is not None:
            message = (skipped.get("message") or skipped.text or "no reason given").strip()
            # GoogleTest puts file and line before the text.
            lines = [line for line in message.splitlines() if line and not re.match(r".*\.(cc|h):\d+$", line)]
            yield name, "skipped", " ".join(lines)
        elif case.get("status") == "notrun":
            yield name, "skipped", "disabled"
        else:
            yield name, "passed", ""


# A case of unittest begins a line with "test_x (module.Suite.test_x)", before Python 3.11 "test_x (module.Suite)"; then come
# " ... " and the outcome. A docstring, or what the test prints, may stand between. A subtest is an indented line with its
# parameters, there only when it failed or was skipped, and the test itself has no outcome then.
UNITTEST_CASE = r"(\w+) \(([\w.]+)\)"
UNITTEST_START = re.compile(rf"^{UNITTEST_CASE}(?: \.\.\. |$)")
UNITTEST_SUBTEST = re.compile(rf"^  {UNITTEST_CASE} (.*) \.\.\. ")
UNITTEST_OUTCOME = re.compile(r"(?:^| )(?:ok|FAIL|ERROR|expected failure|unexpected success|skipped (['\"])(.*)\1)$")
UNITTEST_FAILURE = re.compile(rf"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): {UNITTEST_CASE}")  # in the report at the end


def unittest_name(match):
    """Suite.test_x"""
    parts = match[2].split(".")
    if len(parts) > 1 and parts[-1] == match[1]:
        parts.pop()
    return f"{parts[-1]}.{match[1]}"


def unittest_cases(output):
    """Yields (name, outcome, reason) for every case in the verbose output of Python's unittest."""
    cases, current = {}, None
    for line in output.splitlines():
        failure, subtest, start = (form.match(line) for form in (UNITTEST_FAILURE, UNITTEST_SUBTEST, UNITTEST_START))
        ended = UNITTEST_OUTCOME.search(line)
        if failure:
            cases[unittest_name(failure)] = ("failed", "")
        elif subtest:
            cases.setdefault(unittest_name(subtest), ("passed", ""))
            if ended and ended[1]:
                cases[f"{unittest_name(subtest)} {subtest[3]}"] = ("skipped", ended[2])
            current = None
        elif start:
            current = unittest_name(start)
        if current and ended:
            cases[current] = ("skipped", ended[2]) if ended[1] else ("passed", "")
            current = None
    if current:
        cases[current] = ("failed", "")  # the program ended in the middle of it
    for name, (outcome, reason) in cases.items():
        yield name, outcome, reason


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    results = build / "test_results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    junit = results / "ctest.junit"
    jobs = str(os.cpu_count() or 2)
    code = subprocess.run(
        # By default CTest keeps a kilobyte of what a program prints that passes; the cases of Python's tests are in it.
        ["ctest", "--test-dir", str(build), "-j", jobs, "--output-on-failure", "--test-output-size-passed", "1048576",
         "--output-junit", str(junit), *sys.argv[2:]],  # fmt: skip
        check=False,
    ).returncode

    counts = {"passed": 0, "failed": 0, "skipped": 0}
    skipped, failed = [], []

    def count(name, outcome, reason=""):
        counts[outcome] += 1
        if outcome == "skipped":
            skipped.append(f"{name}: {reason}")
        elif outcome == "failed":
            failed.append(name)

    if not junit.exists():
        print("ctest wrote no result", file=sys.stderr)
        return code or 1
    for program in ElementTree.parse(junit).getroot().iter("testcase"):
        name = program.get("name")
        ok = program.get("status") == "run"
        detail = results / f"{name}.xml"
        output = program.findtext("system-out") or ""
        cases = list(gtest_cases(detail) if detail.exists() else unittest_cases(output))
        for case, outcome, reason in cases:
            count(f"{name}: {case}", outcome, reason)
        if not ok and not any(outcome == "failed" for _, outcome, _ in cases):
            count(name, "failed")  # crashed, timed out or could not be started
        if not cases and ok:
            reasons = re.findall(r"^\[  SKIPPED \] (.*)$", output, re.MULTILINE)
            for reason in reasons:
                count(name, "skipped", reason)
            if not reasons:
                count(name, "passed")

    for line in skipped:
        print(f"skipped  {line}")
    for line in failed:
        print(f"FAILED   {line}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    if counts["passed"] == 0:
        print("no test passed: that is a failure too", file=sys.stderr)
        return 1
    return 1 if counts["failed"] else code


if __name__ == "__main__":
    sys.exit(main())
