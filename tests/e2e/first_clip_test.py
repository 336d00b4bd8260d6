#!/usr/bin/env python3
"""From a trajectory file and nine pictures to a clip: everything that a user does with merope-cli when nothing goes wrong."""
import hashlib
import signal
import unittest
from datetime import datetime

import harness
from harness import event_kind, has_frames, is_progress, of_kind, state_of

WIDTH, HEIGHT, FRAMES, FPS, N_COND = 128, 64, 49, 16, 9


class FirstClip(harness.EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # One pose more than the clip has frames: --first and --frames choose.
        cls.trajectory = harness.write_kitti(cls.folder / "00.txt", harness.driving_poses(FRAMES + 1))
        cls.images, cls.cond_frames = harness.write_pictures(cls.folder, WIDTH, HEIGHT, N_COND)
        cls.request = ["--trajectory", cls.trajectory, "--format", "kitti", "--first", 1, "--frames", FRAMES, "--fov", 80]
        cls.request += ["--size", f"{WIDTH}x{HEIGHT}", "--fps", FPS, "--steps", 2, "--guidance", 3, "--seed", 7]
        cls.request += ["--prompt", "a street in the rain", "--image", *cls.images]
        # Long enough that it is still running when it is interrupted or cancelled.
        cls.long_request = ["--shape", "straight:10m,turn:30deg", "--frames", 49, "--size", "128x64", "--steps", 200]
        cls.short_request = ["--shape", "straight:10m", "--frames", 5, "--size", "64x64", "--steps", 2, "--seed", 3]
        cls.share_service("--log-level", "debug")

    def make(self, output, path):
        answer = self.shared.cli("submit", *self.request, "--output", output, "-o", path)
        self.assertEqual(answer.code, 0, answer)
        events = answer.lines()
        self.assert_whole_stream(events)
        (finished,) = of_kind(events, "finished")
        self.assertEqual((finished["frames"], finished["seed"]), (FRAMES, "7"))
        self.assertEqual([stage["stage"] for stage in finished["stage_seconds"]],
                         ["STAGE_PREPARE", "STAGE_TEXT", "STAGE_ENCODE", "STAGE_DENOISE", "STAGE_DECODE"])  # fmt: skip
        return finished

    def assert_same_file(self, path, finished):
        content = path.read_bytes()
        self.assertEqual((len(content), hashlib.sha256(content).hexdigest()), (int(finished["bytes"]), finished["sha256"]))

    def assert_plays(self, path):
        video = harness.probe(path)
        self.assertEqual((video["codec_name"], video["width"], video["height"]), ("h264", WIDTH, HEIGHT))
        self.assertEqual(int(video["nb_read_frames"]), FRAMES)
        self.assertEqual(video["r_frame_rate"], f"{FPS}/1")
        self.assertAlmostEqual(video["format_duration"], FRAMES / FPS, delta=0.02)

    def test_a_kitti_file_and_nine_pictures_become_a_clip_that_begins_with_them(self):
        path = self.test_folder / "clip.mp4"
        self.assert_same_file(path, self.make("h264", path))
        self.assert_plays(path)
        frames = harness.decode(WIDTH, HEIGHT, path)
        self.assertEqual(len(frames), FRAMES)
        for i, known in enumerate(self.cond_frames):
            # 4:2:0 and crf 18 leave 33.5 dB and more of these pictures; two neighbours of the nine are 26.5 dB apart.
            self.assertGreater(harness.psnr(frames[i], known), 31, f"conditioning frame {i}")
        self.assertLess(harness.psnr(frames[-1], self.cond_frames[-1]), 25, "nothing was generated")

    def test_rgb_and_png_hold_the_same_values_and_the_known_beginning_exactly(self):
        exact = self.test_folder / "exact.mp4"
        self.assert_same_file(exact, self.make("rgb", exact))
        self.assert_plays(exact)
        frames = harness.decode(WIDTH, HEIGHT, exact)
        self.assertEqual(frames[:N_COND], self.cond_frames)

        folder = self.test_folder / "frames"
        self.make("png", folder)
        files = sorted(folder.iterdir())
        self.assertEqual([file.suffix for file in files], [".png"] * FRAMES)
        # The same request and seed on the same machine: the same frames.
        self.assertEqual(harness.decode(WIDTH, HEIGHT, *files), frames)

    def test_the_first_frames_arrive_before_the_last_are_decoded(self):
        follower = self.shared.follow("submit", *self.request, "-o", self.test_folder / "clip.mp4")
        self.assertEqual(follower.wait(), 0)
        first = next(i for i, event in enumerate(follower.events) if has_frames(event))
        order = [event_kind(event) for event in follower.events]
        n_latent_frames = (FRAMES - 1) // 4 + 1
        last_step = next(i for i, event in enumerate(follower.events) if is_progress(event, "DECODE", n_latent_frames))
        self.assertLess(first, last_step, order)
        # By the clock too: it was with the client before the worker had decoded the last latent frame.
        decoded = [line for line in self.shared.log_lines("step done")
                   if line["job"] == follower.job_id() and line["stage"] == "decode"]  # fmt: skip
        self.assertEqual(decoded[-1]["step"], n_latent_frames)
        self.assertLess(follower.arrived[first], datetime.fromisoformat(decoded[-1]["time"]).timestamp())

    def test_detach_then_watch_as_often_as_wanted(self):
        submitted = self.shared.cli("submit", *self.short_request, "--detach", "--request-id", "twice")
        self.assertEqual(submitted.code, 0, submitted)
        job_id = submitted.line()["job_id"]
        again = self.shared.cli("submit", *self.short_request, "--detach", "--request-id", "twice").line()
        self.assertEqual((again["job_id"], again["duplicate"]), (job_id, True))
        other = self.shared.cli("submit", *self.short_request, "--fps", 8, "--detach", "--request-id", "twice")
        self.assertEqual(other.code, 65, other)

        paths = [self.test_folder / name for name in ("one.mp4", "two.mp4")]
        for path in paths:
            answer = self.shared.cli("watch", job_id, "-o", path)
            self.assertEqual(answer.code, 0, answer)
            self.assert_whole_stream(answer.lines())
            self.assert_same_file(path, of_kind(answer.lines(), "finished")[0])
        self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())

    def test_ctrl_c_leaves_the_job_alone_and_watch_takes_it_up_again(self):
        follower = self.shared.follow("submit", *self.request, "-o", self.test_folder / "left.mp4")
        follower.wait_for(has_frames, "with frames")
        follower.program.send(signal.SIGINT)
        self.assertEqual(follower.wait(), 130)
        self.assertIn(f"merope-cli watch {follower.job_id()}", follower.program.log())
        self.assertFalse((self.test_folder / "left.mp4").exists(), "half a clip under the clip's name")

        path = self.test_folder / "clip.mp4"
        answer = self.shared.cli("watch", follower.job_id(), "-o", path)
        self.assertEqual(answer.code, 0, answer)
        self.assert_plays(path)

    def test_ctrl_c_can_cancel(self):
        follower = self.shared.follow("submit", *self.long_request, "--cancel-on-interrupt", "-o", self.test_folder / "a.mp4")
        follower.wait_for(lambda event: is_progress(event, "DENOISE"), "of denoising")
        follower.program.send(signal.SIGINT)
        self.assertEqual(follower.wait(), 2)
        self.shared.wait_for_state(follower.job_id(), "cancelled")

    def test_a_running_and_a_queued_job_are_cancelled(self):
        follower = self.shared.follow("submit", *self.long_request, "-o", self.test_folder / "a.mp4")
        running = follower.job_id()
        follower.wait_for(lambda event: is_progress(event, "DENOISE"), "of denoising")
        self.assertEqual([job["job_id"] for job in self.shared.jobs("--state", "running")], [running])
        self.assertEqual(self.shared.status(running)["attempts"], 1)

        queued = self.shared.submit(*self.long_request)
        self.assertEqual(state_of(self.shared.status(queued)), "queued")
        answer = self.shared.cli("cancel", queued)
        self.assertEqual((answer.code, state_of(answer.line())), (0, "cancelled"), answer)

        self.assertEqual(self.shared.cli("cancel", running).code, 0)
        self.assertEqual(follower.wait(), 2)
        self.assert_whole_stream([event for event in follower.events if event_kind(event) != "error"])
        self.assertEqual(state_of(self.shared.status(running)), "cancelled")
        self.assertFalse((self.test_folder / "a.mp4").exists(), "a clip of a cancelled job")
        # An ended job stays as it is.
        ended = self.shared.status(running)
        self.assertEqual(self.shared.cli("cancel", running).line(), ended)
        self.assertEqual(self.shared.cli("watch", running, "-o", self.test_folder / "b.mp4").code, 2)

    def test_capabilities_status_and_list_speak_json(self):
        capabilities = self.shared.cli("capabilities").line()
        (model,) = capabilities["models"]
        self.assertEqual((model["name"], model["encodings"], model["trained"]), ("merope-toy", ["merope"], False))
        self.assertEqual(capabilities["outputs"], ["OUTPUT_FORMAT_H264", "OUTPUT_FORMAT_RGB_EXACT", "OUTPUT_FORMAT_PNG_FRAMES"])
        (worker,) = capabilities["workers"]
        self.assertEqual((worker["device"], worker["model"]), ("cpu", "merope-toy"))

        job_id = self.shared.submit(*self.short_request, "--priority", "high")
        job = self.shared.wait_for_state(job_id, "succeeded")
        self.assertEqual((job["priority"], job["attempts"], job["epoch"]), ("PRIORITY_HIGH", 1, "1"))
        self.assertLessEqual(int(job["submitted_unix_ms"]), int(job["started_unix_ms"]))
        self.assertLess(int(job["started_unix_ms"]), int(job["ended_unix_ms"]))
        self.assertEqual(self.shared.cli("list", "--limit", 1).line(), job)

        missing = self.shared.cli("status", "job-0")
        self.assertEqual((missing.code, missing.line()["error"]["code"]), (66, "NOT_FOUND"))

    def test_exit_codes_before_anything_is_queued(self):
        before = self.shared.jobs()
        for code, arguments in (
            (64, ["submit", "--shape", "straight:10m", "--no-such-option"]),
            (64, ["no-such-command"]),
            (66, ["submit", "--trajectory", self.test_folder / "missing.txt", "--fov", 80]),
            (73, ["submit", *self.short_request, "-o", self.test_folder / "missing" / "clip.mp4"]),
        ):
            with self.subTest(arguments=[str(word) for word in arguments]):
                answer = self.shared.cli(*arguments)
                self.assertEqual(answer.code, code, answer)
                self.assertEqual(answer.err.count("merope-cli:"), 1, answer)
        self.assertEqual(self.shared.jobs(), before)
        away = harness.run_cli("127.0.0.1:1", "--json", "list")
        self.assertEqual((away.code, away.line()["error"]["code"]), (69, "UNAVAILABLE"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
