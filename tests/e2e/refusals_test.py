#!/usr/bin/env python3
"""The server checks for itself: requests that merope-cli would not send, sent by the Python client, and a clip made with it.

Needs the Python client: run it through tests/client/with_python_client.sh.
"""
import math
import unittest

import merope
from merope.v1 import generation_pb2 as pb

import harness

WIDTH, HEIGHT, FRAMES = 64, 64, 9


def good_request():
    trajectory = merope.trajectory(
        harness.driving_poses(FRAMES),
        merope.pinhole(60, 60, 32, 32, WIDTH, HEIGHT),
        times_s=[i / 16 for i in range(FRAMES)],
    )
    picture = harness.png(WIDTH, HEIGHT, harness.picture(WIDTH, HEIGHT))
    return merope.GenerationRequest(
        width=WIDTH,
        height=HEIGHT,
        fps=16,
        steps=1,
        seed=1,
        trajectory=trajectory,
        conditioning=merope.ConditioningFrames(pictures=merope.Pictures(files=[picture])),
    )


class Refusals(harness.EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.share_service()
        cls.client = merope.Client(cls.shared.address)
        cls.addClassCleanup(cls.client.close)

    def assert_refused(self, field, words, change):
        """A good request passed through change() is refused for this field and no other, and nothing is queued."""
        request = good_request()
        change(request)
        before = self.client.list_jobs()
        with self.assertRaises(merope.MeropeError) as raised:
            self.client.submit(request)
        error = raised.exception
        self.assertEqual(error.code, "INVALID_ARGUMENT", error)
        self.assertEqual([violation.field for violation in error.violations], [field], error)
        self.assertIn(words, error.violations[0].description)
        self.assertEqual(self.client.list_jobs(), before)

    def pose(self, frame, index, value):
        def change(request):
            request.trajectory.frames[frame].pose[index] = value

        return change

    def test_poses(self):
        for field, words, change in (
            ("trajectory.frames[2].pose", "not orthonormal", self.pose(2, 5, 1.2)),
            ("trajectory.frames[4].pose", "left-handed", self.pose(4, 5, -1)),
            ("trajectory.frames[0].pose[0]", "nan", self.pose(0, 0, math.nan)),
            ("trajectory.frames[8].pose[3]", "nan", self.pose(8, 3, math.nan)),
            ("trajectory.frames[8].pose[11]", "inf", self.pose(8, 11, math.inf)),
            ("trajectory.frames[1].pose", "12", lambda request: request.trajectory.frames[1].pose.pop()),
            ("trajectory.frames[1].pose", "12", lambda request: request.trajectory.frames[1].ClearField("pose")),
        ):
            with self.subTest(field=field, words=words):
                self.assert_refused(field, words, change)

    def test_times(self):
        def at(frame, time_s):
            def change(request):
                request.trajectory.frames[frame].time_s = time_s

            return change

        self.assert_refused("trajectory.frames[6].time_s", "is not after", at(6, 5 / 16))
        self.assert_refused("trajectory.frames[3].time_s", "not finite", at(3, math.nan))
        self.assert_refused("trajectory.frames", "8 of 9", lambda request: request.trajectory.frames[3].ClearField("time_s"))

    def test_conventions_are_never_guessed(self):
        for name in ("pose_direction", "camera_axes", "length_unit"):
            with self.subTest(name):
                self.assert_refused(f"trajectory.{name}", "", lambda request: request.trajectory.ClearField(name))

    def test_lenses(self):
        def lens(name, value):
            return lambda request: setattr(request.trajectory.lens.pinhole, name, value)

        for field, words, change in (
            ("trajectory.lens.pinhole.fx", "", lens("fx", 0)),
            ("trajectory.lens.pinhole.fy", "", lens("fy", -60)),
            ("trajectory.lens.pinhole.fx", "nan", lens("fx", math.nan)),
            ("trajectory.lens.pinhole.cx", "", lens("cx", 65)),
            ("trajectory.lens.width", "not between 1 and 65536", lambda request: setattr(request.trajectory.lens, "width", 0)),
            ("trajectory.lens.model", "pinhole", lambda request: request.trajectory.lens.ClearField("pinhole")),
            ("trajectory.lens", "required", lambda request: request.trajectory.ClearField("lens")),
        ):
            with self.subTest(field=field, words=words):
                self.assert_refused(field, words, change)

    def test_counts_and_choices(self):
        def field(name, value):
            return lambda request: setattr(request, name, value)

        for name, words, change in (
            ("frames", "must be 4n+1", field("frames", 8)),
            ("trajectory.frames", "has 9 frames, but the clip has 13", field("frames", 13)),
            ("trajectory.frames", "must be 4n+1", lambda request: request.trajectory.frames.pop()),
            ("trajectory", "is required", lambda request: request.ClearField("trajectory")),
            ("width", "multiple of 32", field("width", 100)),
            ("fps", "not between 1 and 120", field("fps", 121)),
            ("guidance_scale", "nan", field("guidance_scale", math.nan)),
            ("guidance_scale", "not between 1 and 30", field("guidance_scale", 0.5)),
            ("shift", "not between", field("shift", -1)),
            ("solver", "unknown value 9", field("solver", 9)),
            ("output", "unknown value 9", field("output", 9)),
            ("priority", "unknown value 9", field("priority", 9)),
            ("model", "there are: merope-toy", field("model", "wan-900b")),
            ("encoding", "it has: merope", field("encoding", "plucker")),
            ("request_id", "1 to 128 characters", field("request_id", "two words")),
            ("max_run_time", "", lambda request: request.max_run_time.FromMilliseconds(10)),
            ("conditioning", "neither pictures nor mp4_clip", lambda request: request.conditioning.ClearField("pictures")),
        ):
            with self.subTest(field=name, words=words):
                self.assert_refused(name, words, change)

    def test_pictures(self):
        good = good_request().conditioning.pictures.files[0]
        bomb = harness.png_of_chunks(60_000, 60_000, harness.chunk(b"IDAT", b"x"))
        for words, content in (
            ("cut off", good[:200]),
            ("neither PNG nor JPEG", b"BM" + bytes(100)),
            ("is 60000x60000", bomb),
            ("is empty", b""),
        ):
            with self.subTest(words):
                def change(request, content=content):
                    request.conditioning.pictures.files[0] = content

                self.assert_refused("conditioning.pictures.files[0]", words, change)

    def test_a_message_that_is_too_large(self):
        request = good_request()
        request.conditioning.pictures.files[0] = bytes(65 << 20)
        with self.assertRaises(merope.MeropeError) as raised:
            self.client.submit(request)
        self.assertEqual(raised.exception.code, "RESOURCE_EXHAUSTED", raised.exception)
        self.assertTrue(self.client.capabilities().models, "the server went on")

    def test_a_clip_by_the_python_client(self):
        path = self.test_folder / "clip.mp4"
        kinds = []
        finished = self.client.generate(good_request(), path, on_event=lambda event: kinds.append(event.WhichOneof("event")))
        self.assertEqual((finished.frames, finished.seed), (FRAMES, 1))
        self.assertEqual(kinds[-1], "finished")
        self.assertEqual(int(harness.probe(path)["nb_read_frames"]), FRAMES)
        newest = self.client.list_jobs(limit=1)[0]
        self.assertEqual(self.client.get_job(newest.job_id), newest)
        self.assertEqual(newest.state, pb.JOB_STATE_SUCCEEDED)

        # Taken up again after any event, the stream goes on with the next one.
        events = list(self.client.watch(newest.job_id))
        self.assertEqual([event.WhichOneof("event") for event in events], kinds)
        for i in (0, len(events) // 2, len(events) - 2):
            self.assertEqual(list(self.client.watch(newest.job_id, after=events[i].cursor)), events[i + 1 :])


if __name__ == "__main__":
    unittest.main(verbosity=2)
