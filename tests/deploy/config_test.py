#!/usr/bin/env python3
"""The samples of deploy/config against the real programs: every line is an option, and every value is taken.

Usage: config_test.py BIN_FOLDER
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("MEROPE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("MEROPE_")}


def effective(program, sample):
    """What --print-config says: name -> (value, source)."""
    result = subprocess.run(
        [program, "--config", sample, "--print-config"], capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=60
    )
    values = {name: (value, source) for name, value, source in re.findall(r'^(\S+) = "(.*)"  # (\w+)$', result.stdout, re.M)}
    return result.returncode, values, result.stderr


def names_in(sample):
    return re.findall(r"^([a-z-]+) = ", sample, re.M)


def main():
    problems = []
    checked = 0
    for name in ("server", "worker"):
        program = pathlib.Path(sys.argv[1], f"merope-{name}")
        if not program.exists():
            print(f"[  SKIPPED ] {name}.toml: merope-{name} is not built")
            continue
        sample = ROOT / "deploy" / "config" / f"{name}.toml"
        code, values, message = effective(program, sample)
        if code != 0:
            problems.append(f"{sample.name}: exit code {code}: {message.strip()}")
            continue
        wanted = names_in(sample.read_text())
        assert len(wanted) >= 8, f"{sample.name}: only {wanted}"
        for option in wanted:
            if option not in values:
                problems.append(f"{sample.name}: {option} is no option of merope-{name}")
            elif values[option][1] != "file":
                problems.append(f"{sample.name}: {option} comes from {values[option][1]}")
        # A name that the program does not know must not pass in silence, or the samples would go stale unseen.
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as wrong:
            wrong.write("no-such-option = 1\n")
            wrong.flush()
            code, _, message = effective(program, wrong.name)
            if code != 64 or "no-such-option" not in message:
                problems.append(f"merope-{name} takes a file with a name it does not know (exit code {code}): {message.strip()}")
        checked += len(wanted)
    for problem in problems:
        print(problem)
    print(f"{checked} options checked")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
