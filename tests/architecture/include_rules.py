#!/usr/bin/env python3
"""Who may include whom: the table of docs/architecture.md as a test.

Every #include of a source under a room is checked: project headers against USES, libraries against LIBRARIES. A room that is in
neither table is an error, so a new folder has to say where it stands.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ.get("MEROPE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))

# Room (longest matching prefix wins) -> prefixes of project headers that it may include, its own room always.
USES = {
    "core/base": [],
    "core/camera": ["core/base"],
    "core/media": ["core/base"],
    "core/queue": ["core/base"],
    "kernels": [],
    "proto/spec": ["core/camera", "core/base"],
    # The job codec is where the queue's opaque bytes get their meaning; it knows the worker's words for stages, not the worker.
    "proto/wire": ["proto/spec", "core/camera", "core/base", "merope/v1"],
    "server": ["proto", "core/queue", "core/camera", "core/media/picture_header.h", "core/base", "merope/v1", "google/rpc"],
    "server/standalone": ["core/base"],
    "client": ["proto", "core/camera", "core/base", "merope/v1", "google/rpc"],
    "worker/engine.h": ["proto/spec", "core/media/rgb_frames.h", "core/base"],
    "worker/app": ["worker/engine.h", "proto", "core/queue", "core/media", "core/camera", "core/base", "merope/v1"],
    "worker/schedule": ["proto/spec", "core/base"],
    "worker/text": ["core/base"],
    "worker/weights": ["core/base"],
    "worker/model": ["kernels", "core/camera", "worker/weights", "core/base"],
    "worker/pipeline": [
        "worker/model", "worker/schedule", "worker/text", "worker/weights", "worker/engine.h", "proto/spec",
        "core/camera", "core/media/rgb_frames.h", "core/base", "kernels",
    ],
    # Programs introduce the rooms to each other.
    "worker/main.cc": ["worker", "core", "proto"],
    "worker/worker_config": ["worker/app", "core"],
}

# Library (as the start of what stands in <...>) -> the rooms that may include it.
LIBRARIES = {
    "ATen/": ["worker/model", "worker/pipeline"],
    "c10/": ["worker/model", "worker/pipeline"],
    "torch/": [],
    "grpc": ["server", "client"],
    "google/protobuf/": ["proto/wire", "server", "client", "worker/app"],
    "hiredis": ["core/queue/redis"],
    "libav": ["core/media"],
    "libsw": ["core/media"],
    "prometheus/": ["core/base"],
    "Civet": ["core/base"],
    "spdlog/": ["core/base"],
    "fmt/": None,  # anywhere
    "openssl/": ["core/base"],
    "cuda": ["kernels/cuda"],
    "Eigen/": ["core/camera", "proto", "worker/pipeline", "worker/model"],
    "CLI/": ["core/base", "server", "worker", "client"],
    "nlohmann/": None,
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def room_of(path, table):
    matches = [room for room in table if path == room or path.startswith(room + "/") or path.startswith(room + ".")]
    return max(matches, key=len) if matches else None


def problems_in(path, text):
    room = room_of(path, USES)
    if room is None:
        yield f"{path}: is in no room of USES"
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match[2]
        if match[1] == '"':
            home = room if "/" in room else room + "/"
            allowed = name.startswith(home.rstrip("/")) or any(name.startswith(prefix) for prefix in USES[room])
            if not allowed:
                yield f'{path}:{number}: {room} may not include "{name}"'
        else:
            for library, rooms in LIBRARIES.items():
                if name.startswith(library) and rooms is not None and not any(path.startswith(r) for r in rooms):
                    yield f"{path}:{number}: <{name}> belongs to {', '.join(rooms) or 'no room'}"


def self_test():
    """The checker finds what it must: a rule that can not fail is none."""
    bad = [
        ("core/camera/pose.cc", '#include "worker/engine.h"'),
        ("server/main.cc", "#include <ATen/ATen.h>"),
        ("kernels/dispatch.cc", '#include "core/base/result.h"'),
        ("worker/app/job_runner.cc", '#include "worker/pipeline/wan_pipeline.h"'),
        ("elsewhere/thing.cc", "int x;"),
    ]
    good = [
        ("core/camera/pose.cc", "#include <Eigen/Core>\n#include \"core/camera/pose.h\""),
        ("worker/pipeline/a.cc", '#include "worker/model/wan_dit.h"'),
    ]
    assert all(list(problems_in(path, text)) for path, text in bad), "a forbidden include was not found"
    assert not any(list(problems_in(path, text)) for path, text in good), "an allowed include was refused"


def main():
    self_test()
    problems = []
    count = 0
    for top in ("core", "kernels", "proto", "server", "worker", "client"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cc", ".cu", ".cuh", ".inl"):
                count += 1
                problems += problems_in(path.relative_to(ROOT).as_posix(), path.read_text())
    for problem in problems:
        print(problem)
    print(f"{count} files, {len(problems)} forbidden includes")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
