#!/usr/bin/env python3
"""Runs the CTest programs of a build folder and says what passed, failed and was skipped, case by case and with reasons.

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


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    results = build / "test_results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    junit = results / "ctest.junit"
    jobs = str(os.cpu_count() or 2)
    code = subprocess.run(
        ["ctest", "--test-dir", str(build), "-j", jobs, "--output-on-failure", "--output-junit", str(junit), *sys.argv[2:]],
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
        cases = list(gtest_cases(detail)) if detail.exists() else []
        for case, outcome, reason in cases:
            count(f"{name}: {case}", outcome, reason)
        if not ok and not any(outcome == "failed" for _, outcome, _ in cases):
            count(name, "failed")  # crashed, timed out or could not be started
        if not cases and ok:
            output = program.findtext("system-out") or ""
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
