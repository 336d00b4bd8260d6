#!/usr/bin/env python3
"""Programs that can not start: each cause has its exit code and one sentence that names what to look at."""
import json
import os
import shutil
import socket
import struct
import unittest

import harness
from harness import BINARIES, Program

USAGE, DATA, NO_INPUT, UNAVAILABLE, CONFIG = 64, 65, 66, 69, 78


def rewrite_header(path, change):
    """Passes the header of a safetensors file through change(header); the tensors' bytes stay where they are."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    assert len(text) <= size
    path.write_bytes(content[:8] + text.ljust(size) + content[8 + size :])


class StartUp(harness.EndToEndTest):
    def broken_model(self):
        return shutil.copytree(self.model, self.test_folder / "checkpoint")

    def run_program(self, name, *arguments):
        program = Program([BINARIES / name, "--log-format", "json", *arguments], self.test_folder / f"{name}.log")
        self.addCleanup(program.end)
        return program.wait(), program

    def assert_does_not_start(self, code, words, name, *arguments):
        """Exit code, and one line of error with these words."""
        found, program = self.run_program(name, *arguments)
        self.assertEqual(found, code, program.log())
        errors = [line for line in program.log_lines() if line["level"] == "error"]
        self.assertEqual(len(errors), 1, program.log())
        for word in words:
            self.assertIn(word, errors[0]["reason"])

    def assert_standalone_does_not_start(self, code, words, *arguments):
        """The whole service ends with the code of the program that failed, and the cause is on standard error."""
        arguments = ("--state", self.test_folder / "state", *arguments)
        if "--listen" not in arguments:
            arguments = ("--listen", "127.0.0.1:0", *arguments)
        found, program = self.run_program("merope-standalone", *arguments)
        self.assertEqual(found, code, program.log())
        errors = " ".join(line.get("reason", "") for line in program.log_lines() if line["level"] == "error")
        for word in words:
            self.assertIn(word, errors)
        self.assertFalse((self.test_folder / "state" / "server.address").exists(), "an address of a service that is not there")

    def worker_arguments(self, model):
        """For a worker that never comes to asking Redis, or finds it away."""
        return ["--model", model, "--redis-url", f"unix://{self.test_folder}/redis.sock", "--admin-port", 0]

    def taken_port(self):
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        return listener.getsockname()[1]

    def test_a_weight_file_that_is_cut_off(self):
        model = self.broken_model()
        weights = sorted((model / "transformer").glob("*.safetensors"))[0]
        os.truncate(weights, weights.stat().st_size - 1000)
        self.assert_standalone_does_not_start(DATA, [weights.name], "--model", model)

    def test_a_weight_file_that_is_no_weight_file(self):
        model = self.broken_model()
        (model / "vae" / "diffusion_pytorch_model.safetensors").write_bytes(b"\xff" * 5000)
        self.assert_standalone_does_not_start(DATA, ["vae/diffusion_pytorch_model.safetensors"], "--model", model)

    def test_a_tensor_that_is_missing(self):
        model = self.broken_model()

        def rename(header):
            header["decoder.conv_in.biaz"] = header.pop("decoder.conv_in.bias")

        rewrite_header(model / "vae" / "diffusion_pytorch_model.safetensors", rename)
        self.assert_standalone_does_not_start(DATA, ["decoder.conv_in.bias"], "--model", model)

    def test_a_tensor_of_another_shape(self):
        model = self.broken_model()

        def turn(header):
            tensor = next(value for name, value in header.items() if name.endswith("ffn.net.0.proj.weight"))
            tensor["shape"].reverse()

        rewrite_header(sorted((model / "transformer").glob("*.safetensors"))[0], turn)
        self.assert_standalone_does_not_start(DATA, ["ffn.net.0.proj.weight", "[512, 256]"], "--model", model)

    def test_a_model_that_is_not_there(self):
        self.assert_standalone_does_not_start(NO_INPUT, ["no-such-model"], "--model", self.test_folder / "no-such-model")

    def test_a_configuration_file_of_the_model_that_is_broken(self):
        model = self.broken_model()
        (model / "transformer" / "config.json").write_text('{"num_layers": ')
        self.assert_standalone_does_not_start(DATA, ["transformer/config.json"], "--model", model)

    def test_ports_in_use(self):
        port = self.taken_port()
        words = [f"127.0.0.1:{port}"]
        self.assert_standalone_does_not_start(CONFIG, words, "--model", self.model, "--listen", f"127.0.0.1:{port}")
        self.assert_standalone_does_not_start(CONFIG, words, "--model", self.model, "--admin-port", port)
        self.assert_standalone_does_not_start(CONFIG, words, "--model", self.model, "--worker-admin-port", port)

    def test_redis_that_is_away(self):
        url = f"unix://{self.test_folder}/redis.sock"
        words = [f"{self.test_folder}/redis.sock", "can not be reached"]
        self.assert_does_not_start(UNAVAILABLE, words, "merope-server", "--redis-url", url, "--listen", "127.0.0.1:0",
                                   "--admin-port", 0)  # fmt: skip
        self.assert_does_not_start(UNAVAILABLE, words, "merope-worker", *self.worker_arguments(self.model))

    def test_a_redis_program_that_is_missing(self):
        missing = self.test_folder / "redis-server"
        self.assert_standalone_does_not_start(NO_INPUT, [str(missing)], "--model", self.model, "--redis-server", missing)

    def test_a_second_service_on_the_same_folder(self):
        first = self.service()
        found, second = self.run_program("merope-standalone", "--state", first.state, "--model", self.model, "--listen", "127.0.0.1:0")
        self.assertEqual(found, CONFIG, second.log())
        self.assertIn(f"runs on the state folder {first.state}", second.log())
        self.assertEqual(first.cli("list").code, 0, "the first one was disturbed")
        self.assertEqual(first.stop(), 0)

    def test_a_command_line_that_is_wrong(self):
        for i, (name, arguments) in enumerate((
            ("merope-standalone", []),
            ("merope-standalone", ["--model", self.model, "--lease-seconds", "soon"]),
            ("merope-server", ["--listen", "nowhere"]),
            ("merope-server", ["--no-such-option"]),
            ("merope-worker", ["--model", self.model, "--threads", -1]),
            ("merope-worker", ["--model", self.model, "--redis-url", "http://127.0.0.1"]),
        )):  # fmt: skip
            with self.subTest(name=name, arguments=arguments[-2:]):
                program = Program([BINARIES / name, *arguments], self.test_folder / f"usage{i}.log")
                self.addCleanup(program.end)
                self.assertEqual(program.wait(), USAGE, program.log())
                self.assertEqual(program.log().count("\n"), 1, program.log())


if __name__ == "__main__":
    unittest.main(verbosity=2)
