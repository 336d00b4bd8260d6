#!/usr/bin/env python3
"""The metric table of deploy/README.md against the sources: names, kinds, and labels, in both directions."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ.get("MEROPE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))

# registry.counter("name", "help", {{"label", value}, ...}): up to the end of the call.
CALL = re.compile(r'\.\s*(counter|gauge|histogram)\(\s*"([a-z_]+)"')
LABEL = re.compile(r'\{\s*"([a-z_]+)"\s*,')
ROW = re.compile(r"^\| `([a-z_]+)` \| (\w+) \| ([^|]*) \|([^|]+)\|$", re.M)


def arguments(text, start):
    """The text of a call from its opening parenthesis to the closing one; parentheses inside strings do not count."""
    depth, inside = 0, False
    for at in range(start, len(text)):
        character = text[at]
        if character == '"' and text[at - 1] != "\\":
            inside = not inside
        elif not inside and character == "(":
            depth += 1
        elif not inside and character == ")":
            depth -= 1
            if depth == 0:
                return text[start : at + 1]
    return text[start:]


def metrics_in(text):
    for match in CALL.finditer(text):
        call = arguments(text, text.index("(", match.start()))
        yield match[2], match[1], frozenset(LABEL.findall(call)), "labels" in re.sub(r'"[^"]*"', "", call)


def metrics_of_code():
    found = {}
    for top in ("core", "server", "worker"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in (".h", ".cc") or "/tools/" in path.as_posix():
                continue
            text = path.read_text()
            for name, kind, labels, by_variable in metrics_in(text):
                if by_variable:  # the labels are a variable of this file
                    labels |= frozenset(LABEL.findall("".join(re.findall(r"MetricLabels \w+[^;]*;", text))))
                old_kind, old_labels = found.get(name, (kind, frozenset()))
                assert old_kind == kind, f"{name} is a {old_kind} and a {kind}"
                found[name] = (kind, old_labels | labels)
    return found


def metrics_of_table(text):
    # What stands in brackets behind a label are its values.
    return {
        name: (kind, frozenset(re.findall(r"[a-z_]+", re.sub(r"\([^)]*\)", "", labels))))
        for name, kind, labels, _ in ROW.findall(text)
    }


def differences(code, table):
    for name in sorted(code.keys() - table.keys()):
        yield f"{name}: in the code, not in deploy/README.md"
    for name in sorted(table.keys() - code.keys()):
        yield f"{name}: in deploy/README.md, not in the code"
    for name in sorted(code.keys() & table.keys()):
        if code[name] != table[name]:
            (code_kind, code_labels), (table_kind, table_labels) = code[name], table[name]
            yield f"{name}: {code_kind} {sorted(code_labels)} in the code, {table_kind} {sorted(table_labels)} in the table"


def self_test():
    """A comparison that can not fail is none."""
    source = 'r.counter("a_total", "h (x)", {{"code", c}}); r.gauge("b", "h")'
    code = {name: (kind, labels) for name, kind, labels, _ in metrics_in(source)}
    assert code == {"a_total": ("counter", frozenset(["code"])), "b": ("gauge", frozenset())}, code
    table = metrics_of_table("| `a_total` | counter | code (OK, ...) | x |\n| `c` | gauge | - | x |\n")
    assert table == {"a_total": ("counter", frozenset(["code"])), "c": ("gauge", frozenset())}, table
    assert len(list(differences(code, table))) == 2
    assert len(list(differences(code, {**code, "b": ("counter", frozenset())}))) == 1


def main():
    self_test()
    code = metrics_of_code()
    if "--print" in sys.argv:
        for name, (kind, labels) in sorted(code.items()):
            print(f"| `{name}` | {kind} | {', '.join(sorted(labels)) or '-'} |  |")
        return 0
    table = metrics_of_table((ROOT / "deploy" / "README.md").read_text())
    problems = list(differences(code, table))
    for problem in problems:
        print(problem)
    print(f"{len(code)} metrics in the code, {len(table)} in the table")
    assert len(code) > 20, "the search finds too little"
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
