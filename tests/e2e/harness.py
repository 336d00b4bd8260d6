"""Runs the real programs in a temporary folder and speaks to them as a user does: merope-cli, signals and files.

Every program that is started here is ended here, by its own process id, and dies with this process if that is killed. Nothing
sleeps for a fixed time: wait_for() asks until a condition holds or a deadline is over.
"""
import contextlib
import ctypes
import json
import math
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

SOURCE = pathlib.Path(os.environ.get("MEROPE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BINARIES = pathlib.Path(os.environ.get("MEROPE_BINARY_DIR", SOURCE / "build" / "dev")) / "bin"

# A machine that is busy with other tests may need long for what takes a moment; only a failure waits for all of it.
PATIENCE_S = 120

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def environment():
    """Without MEROPE_*, which would configure the programs."""
    return {key: value for key, value in os.environ.items() if not key.startswith("MEROPE_")}


def wait_for(condition, what, seconds=PATIENCE_S):
    """Returns the first true value of condition()."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A program with its standard error, and what it prints unless `out` says otherwise, in a file."""

    def __init__(self, command, log, out=None):
        self.command = [str(word) for word in command]
        self.log_path = log
        with open(log, "ab") as file:
            # The main thread starts it: a parent's death is that of the thread which forked.
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=file if out is None else out,
                stderr=file,
                env=environment(),
                preexec_fn=_die_with_parent,
            )
        self.stdout = self._process.stdout
        self.pid = self._process.pid

    def send(self, number):
        if self._process.poll() is None:
            self._process.send_signal(number)

    def exit_code(self):
        """None while it runs; -n after signal n."""
        return self._process.poll()

    def wait(self, seconds=PATIENCE_S):
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.command[0]} did not end within {seconds} s") from None

    def end(self):
        """For cleaning up: whatever state it is in."""
        self.send(signal.SIGKILL)
        self._process.wait()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def log_lines(self, event=None):
        """The JSON lines of the log, those of one event or all."""
        lines = []
        for text in self.log().splitlines():
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if event is None or line.get("event") == event:
                    lines.append(line)
        return lines


class Answer:
    """What one run of merope-cli came to."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def line(self):
        (line,) = self.lines()
        return line

    def __repr__(self):
        return f"exit code {self.code}\n{self.out}{self.err}"


def run_cli(address, *arguments):
    """merope-cli, to its end."""
    command = [BINARIES / "merope-cli", "--server", address, *arguments]
    result = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        timeout=PATIENCE_S,
    )
    return Answer(result.returncode, result.stdout, result.stderr)


class Follower:
    """merope-cli --json that follows a job: its events as they come."""

    def __init__(self, address, log, *arguments):
        self.program = Program(
            [BINARIES / "merope-cli", "--server", address, "--json", *arguments], log, out=subprocess.PIPE
        )
        self.events = []
        self.arrived = []  # time.time() of each
        self._changed = threading.Condition()
        self._at_end = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.program.stdout:
            now = time.time()
            with self._changed:
                self.events.append(json.loads(line))
                self.arrived.append(now)
                self._changed.notify_all()
        with self._changed:
            self._at_end = True
            self._changed.notify_all()

    def wait_for(self, wanted, what, seconds=PATIENCE_S):
        """Returns the first event of which wanted(event) is true."""

        def find():
            return next((event for event in self.events if wanted(event)), None)

        with self._changed:
            self._changed.wait_for(lambda: find() or self._at_end, seconds)
            found = find()
        if found is None:
            raise AssertionError(f"no event {what} in {[event_kind(event) for event in self.events]}\n{self.program.log()}")
        return found

    def job_id(self):
        return self.wait_for(lambda event: "job_id" in event, "with a job id")["job_id"]

    def wait(self, seconds=PATIENCE_S):
        code = self.program.wait(seconds)
        self._reader.join()
        return code

    def end(self):
        self.program.end()
        self._reader.join()
        self.program.stdout.close()


class Service:
    """merope-standalone on a state folder of its own: private Redis, server and one worker."""

    def __init__(self, folder, model, *arguments, lease_seconds=2):
        self.state = folder / "state"
        self.log_path = folder / "service.log"
        self._folder = folder
        self._n_followers = 0
        self._cleanup = contextlib.ExitStack()
        self._command = [
            BINARIES / "merope-standalone", "--state", self.state, "--model", model, "--listen", "127.0.0.1:0",
            "--log-format", "json", "--lease-seconds", lease_seconds, "--stop-seconds", 20,
            "--server-arg=--reconcile-seconds=0.5", "--server-arg=--model-refresh-seconds=0.2", *arguments,
        ]  # fmt: skip
        self.standalone = None
        self.address = ""

    def start(self):
        self.standalone = Program(self._command, self.log_path)
        address_file = self.state / "server.address"

        def is_there():
            if self.standalone.exit_code() is not None:
                raise AssertionError(f"merope-standalone ended with {self.standalone.exit_code()}\n{self.standalone.log()}")
            return address_file.exists()

        wait_for(is_there, "the address of the server")
        self.address = address_file.read_text().strip()
        self.wait_for_model()
        return self

    def wait_for_model(self):
        wait_for(lambda: self.cli("capabilities").line()["models"], "a model among the capabilities")

    def cli(self, *arguments):
        return run_cli(self.address, "--json", *arguments)

    def follow(self, *arguments):
        """A merope-cli that goes on while the test does something else."""
        self._n_followers += 1
        follower = Follower(self.address, self._folder / f"cli{self._n_followers}.log", *arguments)
        self._cleanup.callback(follower.end)
        return follower

    def submit(self, *arguments):
        """Queues a job and returns its id."""
        answer = self.cli("submit", "--detach", *arguments)
        if answer.code != 0:
            raise AssertionError(repr(answer))
        return answer.line()["job_id"]

    def status(self, job_id):
        answer = self.cli("status", job_id)
        if answer.code != 0:
            raise AssertionError(repr(answer))
        return answer.line()

    def jobs(self, *arguments):
        answer = self.cli("list", "--limit", 1000, *arguments)
        if answer.code != 0:
            raise AssertionError(repr(answer))
        return answer.lines()

    def wait_for_state(self, job_id, *states):
        """Returns the job once it is in one of these states."""

        def reached():
            job = self.status(job_id)
            return job if state_of(job) in states else None

        return wait_for(reached, f"{job_id} to be {' or '.join(states)}")

    def children(self, name):
        """Process ids of the service's programs of this name."""
        path = pathlib.Path(f"/proc/{self.standalone.pid}/task/{self.standalone.pid}/children")
        found = []
        for pid in path.read_text().split():
            with contextlib.suppress(FileNotFoundError):
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == name:
                    found.append(int(pid))
        return found

    def another_worker(self, model, *arguments):
        """A second worker on the same queue, as on a second machine."""
        log = self._folder / "another_worker.log"
        command = [
            BINARIES / "merope-worker", "--model", model, "--redis-url", f"unix://{self.state}/redis.sock", "--admin-port", 0,
            "--lease-seconds", self._command[self._command.index("--lease-seconds") + 1], "--log-format", "json", *arguments,
        ]  # fmt: skip
        worker = Program(command, log)
        self._cleanup.callback(worker.end)
        wait_for(lambda: worker.log_lines("worker ready"), "the other worker")
        return worker

    def log_lines(self, event=None):
        return self.standalone.log_lines(event)

    def stop(self, number=signal.SIGINT):
        """Ctrl-C; returns the exit code."""
        self.standalone.send(number)
        return self.standalone.wait()

    def end(self):
        """For cleaning up: ends everything that was started."""
        self._cleanup.close()
        if self.standalone is None or self.standalone.exit_code() is not None:
            return
        for name in ("merope-worker", "redis-server"):  # a frozen program does not stop
            for pid in self.children(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        self.standalone.send(signal.SIGINT)
        try:
            self.standalone.wait(60)
        except AssertionError:
            self.standalone.end()  # its programs die with it


class EndToEndTest(unittest.TestCase):
    """A temporary folder with a checkpoint; when a test fails, the ends of the logs in it are shown."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="merope_e2e_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.model = cls.folder / "checkpoint"
        make_checkpoint(cls.model)

    @classmethod
    def share_service(cls, *arguments):
        """Starts the service that all tests of the class use, cls.shared."""
        cls.shared = Service(cls.folder, cls.model, *arguments)
        cls.addClassCleanup(cls.shared.end)
        cls.shared.start()

    def setUp(self):
        super().setUp()
        # Short, as the path of a Unix socket must be.
        self.test_folder = pathlib.Path(tempfile.mkdtemp(prefix="t", dir=self.folder))

    def service(self, *arguments, **settings):
        """A service for this test alone."""
        service = Service(self.test_folder, self.model, *arguments, **settings)
        self.addCleanup(service.end)
        return service.start()

    def run(self, result=None):
        before = 0 if result is None else len(result.failures) + len(result.errors)
        super().run(result)
        if result is not None and len(result.failures) + len(result.errors) > before:
            self._show_logs()

    def _show_logs(self):
        for log in sorted(self.folder.glob("**/*.log")):
            lines = log.read_text(errors="replace").splitlines()
            if lines and log.parent in (self.folder, getattr(self, "test_folder", self.folder)):
                print(f"--- {log.relative_to(self.folder)}, last lines of {len(lines)}", *lines[-60:], sep="\n", file=sys.stderr)

    def assert_whole_stream(self, events):
        """Every event of every attempt once and in order, voided attempts announced, and one end, which is the last event."""
        epoch, seq, ends = 0, 0, 0
        for event in events:
            kind = event_kind(event)
            self.assertEqual(ends, 0, f"{kind} after the job's end")
            if kind == "restarted":
                self.assertGreater(int(event["restarted"]["epoch"]), epoch)
                epoch, seq = int(event["restarted"]["epoch"]), 0
            elif kind not in ("accepted", "queued"):
                at = (int(event["cursor"]["epoch"]), int(event["cursor"].get("seq", 0)))
                if epoch == 0:
                    epoch = at[0]
                self.assertEqual(at, (epoch, seq + 1), f"a hole or a repeat before {kind}")
                seq = at[1]
            ends += kind in ("finished", "failed")
        self.assertEqual(ends, 1, "the job's end")


def make_checkpoint(folder):
    subprocess.run([sys.executable, SOURCE / "worker" / "tools" / "make_toy_checkpoint.py", folder], check=True)


# ---- events ------------------------------------------------------------------------------------------------------------------


def event_kind(event):
    kinds = ("accepted", "queued", "started", "progress", "fragment", "restarted", "finished", "failed", "error")
    return next((kind for kind in kinds if kind in event), "unknown")


def of_kind(events, kind):
    return [event[kind] for event in events if event_kind(event) == kind]


def state_of(job):
    return job["state"].removeprefix("JOB_STATE_").lower()


def is_progress(event, stage, step=1):
    progress = event.get("progress", {})
    return progress.get("stage") == f"STAGE_{stage}" and progress.get("step", 0) >= step


def has_frames(event):
    return event.get("fragment", {}).get("n_frames", 0) > 0


# ---- what a user brings ------------------------------------------------------------------------------------------------------


def driving_poses(n):
    """Camera-to-world matrices [R|t] of a car that drives a bend: 0.4 m and half a degree a frame, axes right, down, forward."""
    poses, x, z = [], 0.0, 0.0
    for i in range(n):
        yaw = math.radians(0.5 * i)
        s, c = math.sin(yaw), math.cos(yaw)
        poses.append([c, 0, s, x, 0, 1, 0, 0, -s, 0, c, z])
        x += 0.4 * s
        z += 0.4 * c
    return poses


def write_kitti(path, poses):
    path.write_text("".join(" ".join(f"{number:.17g}" for number in pose) + "\n" for pose in poses))
    return path


def picture(width, height, index=0):
    """RGB bytes of a smooth picture with a bright square that moves with the index."""
    rows = bytearray()
    for y in range(height):
        for x in range(width):
            if abs(x - width // 4 - 3 * index) < height // 8 and abs(y - height // 2) < height // 8:
                rows += bytes((240, 200, 40))
            else:
                rows += bytes((40 + 160 * x // width, 60 + 120 * y // height, 90 + 8 * index))
    return bytes(rows)


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_of_chunks(width, height, *chunks):
    """An 8-bit RGB PNG whose header says this size, whatever the chunks hold."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IEND", b"")


def png(width, height, rgb):
    stride = 3 * width
    rows = b"".join(b"\0" + rgb[y * stride : (y + 1) * stride] for y in range(height))
    return png_of_chunks(width, height, chunk(b"IDAT", zlib.compress(rows)))


def write_pictures(folder, width, height, n):
    """n PNG files; returns their paths and their pixels."""
    paths, pixels = [], []
    for i in range(n):
        pixels.append(picture(width, height, i))
        paths.append(folder / f"cond{i}.png")
        paths[-1].write_bytes(png(width, height, pixels[-1]))
    return paths, pixels


# ---- what a user gets --------------------------------------------------------------------------------------------------------


def probe(path):
    """What ffprobe says about the video stream, with every frame decoded and counted."""
    command = ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_streams", "-show_format", "-of", "json"]
    result = subprocess.run([*command, path], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    if result.stderr:
        raise AssertionError(f"ffprobe complains about {path}: {result.stderr}")
    answer = json.loads(result.stdout)
    (stream,) = answer["streams"]
    return {**stream, "format_duration": float(answer["format"]["duration"])}


def decode(width, height, *inputs):
    """Frames of a clip or of picture files as RGB bytes, by ffmpeg."""
    frames = []
    for path in inputs:
        command = ["ffmpeg", "-v", "error", "-xerror", "-i", path, "-fps_mode", "passthrough"]
        command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
        raw = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S).stdout
        size = 3 * width * height
        if len(raw) % size != 0:
            raise AssertionError(f"{path} is not {width}x{height}")
        frames += [raw[i : i + size] for i in range(0, len(raw), size)]
    return frames


def psnr(a, b):
    """Of 8-bit values, in dB."""
    error = sum((x - y) ** 2 for x, y in zip(a, b)) / len(a)
    return math.inf if error == 0 else 10 * math.log10(255**2 / error)
