#!/usr/bin/env python3
"""What a user can get wrong with merope-cli: an exit code that tells the kind, a message that names the place, nothing queued.

What merope-cli refuses by itself and never sends is in refusals_test.py once more, sent to the server.
"""
import json
import unittest
import zlib

import harness
from harness import chunk, of_kind, png, png_of_chunks, state_of

WIDTH, HEIGHT = 64, 64
SIZE = f"{WIDTH}x{HEIGHT}"


def trajectory_json(poses, times):
    lens = {"width": WIDTH, "height": HEIGHT, "pinhole": {"fx": 60, "fy": 60, "cx": 32, "cy": 32}}
    frames = [{"time_s": time_s, "pose": pose} for pose, time_s in zip(poses, times)]
    conventions = {"pose_direction": "camera_to_world", "camera_axes": "opencv", "length_unit": "metre"}
    return json.dumps({"format": "merope-trajectory", "version": 1, **conventions, "lens": lens, "frames": frames})


class BadInput(harness.EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.share_service()

    def write(self, name, content):
        path = self.test_folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def kitti(self, change=None, n=9):
        """A good KITTI file, its poses passed through change(poses)."""
        poses = harness.driving_poses(n)
        if change is not None:
            change(poses)
        path = harness.write_kitti(self.test_folder / "poses.txt", poses)
        return ["--trajectory", path, "--format", "kitti", "--fov", 80]

    def submit(self, *arguments):
        defaults = ["--size", SIZE, "--fps", 16, "--steps", 1]
        for i in range(0, len(defaults), 2):
            if defaults[i] not in arguments:
                arguments = (*arguments, *defaults[i : i + 2])
        return self.shared.cli("submit", "--detach", *arguments)

    def assert_field(self, field, words, *arguments):
        """The server refuses it and names the field and the reason."""
        answer = self.submit(*arguments)
        self.assertEqual(answer.code, 65, answer)
        error = answer.line()["error"]
        self.assertEqual(error["code"], "INVALID_ARGUMENT", answer)
        named = {violation["field"]: violation["description"] for violation in error["violations"]}
        self.assertIn(field, named, answer)
        self.assertIn(words, named[field])
        self.assertIn(field, answer.err, "the text for people")
        self.assertEqual(self.shared.jobs(), [])

    def assert_refused_here(self, code, words, *arguments):
        """merope-cli refuses it before the server hears of it."""
        answer = self.submit(*arguments)
        self.assertEqual(answer.code, code, answer)
        for word in words:
            self.assertIn(word, answer.err)
        self.assertEqual(self.shared.jobs(), [])

    # ---- trajectory and lens

    def test_a_rotation_that_is_none_is_named_by_its_frame(self):
        def stretch(poses):
            poses[3][0] *= 1.1

        self.assert_refused_here(65, ["poses.txt: frames[3].pose", "not orthonormal"], *self.kitti(stretch))

    def test_a_mirror_is_left_handed(self):
        def mirror(poses):
            for i in (0, 4, 8):
                poses[5][i] *= -1

        self.assert_refused_here(65, ["poses.txt: frames[5].pose", "left-handed"], *self.kitti(mirror))

    def test_everything_wrong_is_named_at_once(self):
        def stretch(poses):
            poses[2][5] = 3
            poses[7][10] = 0

        self.assert_refused_here(65, ["frames[2].pose", "frames[7].pose"], *self.kitti(stretch))
        answer = self.submit(*self.kitti(), "--encoding", "plucker", "--size", "63x65", "--steps", 1000)
        named = [violation["field"] for violation in answer.line()["error"]["violations"]]
        self.assertEqual(sorted(named), ["encoding", "height", "steps", "width"])

    def test_numbers_that_are_none_in_a_pose_file(self):
        good = harness.write_kitti(self.test_folder / "good.txt", harness.driving_poses(9)).read_text().splitlines()
        for word, reason in (("nan", "not finite"), ("inf", "not finite"), ("1.0e", "not a number")):
            with self.subTest(word=word):
                bad = list(good)
                bad[4] = " ".join([word, *bad[4].split()[1:]])
                path = self.write("bad.txt", "\n".join(bad) + "\n")
                self.assert_refused_here(65, ["bad.txt", "line 5", reason], "--trajectory", path, "--fov", 80)

    def test_times_that_do_not_rise(self):
        times = [i / 16 for i in range(9)]
        times[6] = times[5]
        path = self.write("times.json", trajectory_json(harness.driving_poses(9), times))
        self.assert_refused_here(65, ["times.json", "frames[6].time_s", "is not after"], "--trajectory", path)

    def test_frame_counts(self):
        self.assert_field("frames", "must be 4n+1", "--shape", "straight:5m", "--frames", 50)
        self.assert_field("frames", "at most 257", "--shape", "straight:5m", "--frames", 1001)
        self.assert_refused_here(65, ["--frames 9", "8 poses"], *self.kitti(n=8), "--frames", 9)
        self.assert_refused_here(65, ["8 poses", "4n+1"], *self.kitti(n=8))

    def test_a_lens_without_focal_length(self):
        path = self.kitti()[:4]
        for lens in ("pinhole:0,60,32,32,64,64", "pinhole:60,-1,32,32,64,64", "pinhole:nan,60,32,32,64,64"):
            with self.subTest(lens=lens):
                self.assert_refused_here(64, ["--lens", lens], *path, "--lens", lens)
        self.assert_field("trajectory.lens", "aspect ratio", *path, "--lens", "pinhole:60,60,64,32,128,64")

    # ---- choices

    def test_sizes(self):
        shape = ["--shape", "straight:5m", "--frames", 9]
        self.assert_field("width", "100 is not a multiple of 32", *shape, "--size", "100x64")
        self.assert_field("height", "65 is not a multiple of 32", *shape, "--size", "64x65")
        self.assert_field("width", "pixels; at most", *shape, "--size", "32768x32768")

    def test_names_that_the_service_does_not_have(self):
        shape = ["--shape", "straight:5m", "--frames", 9]
        self.assert_field("model", 'unknown model "wan-900b"; there are: merope-toy', *shape, "--model", "wan-900b")
        self.assert_field("encoding", 'no encoding "plucker"; it has: merope', *shape, "--encoding", "plucker")

    def test_too_much(self):
        shape = ["--shape", "straight:5m", "--frames", 9]
        self.assert_field("prompt", "at most 8192", *shape, "--prompt", "street " * 2000)
        self.assert_field("steps", "not between 1 and 200", *shape, "--steps", 201)

    # ---- pictures

    def assert_picture(self, words, content, name="picture.png"):
        path = self.write(name, content)
        good = self.write("good.png", png(WIDTH, HEIGHT, harness.picture(WIDTH, HEIGHT)))
        images = ["--image", *[good] * 3, path, good]
        self.assert_field("conditioning.pictures.files[3]", words, *self.kitti(), *images)

    def test_pictures_that_are_cut_off_or_damaged(self):
        good = png(WIDTH, HEIGHT, harness.picture(WIDTH, HEIGHT))
        self.assert_picture("cut off", good[: len(good) // 2])
        self.assert_picture("end chunk is missing", good[:-12])
        self.assert_picture("checksum", good[:60] + bytes([good[60] ^ 1]) + good[61:])
        self.assert_picture("is empty", b"")

    def test_pictures_that_are_something_else(self):
        self.assert_picture("neither PNG nor JPEG", b"GIF89a" + bytes(200))
        self.assert_picture("but an MP4 clip", b"\0\0\0\x18ftypisom" + bytes(200))
        self.assert_field("conditioning.mp4_clip", "", *self.kitti(),
                          "--clip", self.write("clip.mp4", png(WIDTH, HEIGHT, harness.picture(WIDTH, HEIGHT))))  # fmt: skip

    def test_pictures_of_another_size_are_not_stretched(self):
        self.assert_picture("is 96x64, but the clip is 64x64", png(96, 64, harness.picture(96, 64)))

    def test_a_picture_bomb_is_refused_for_what_its_header_says(self):
        pixels = chunk(b"IDAT", zlib.compress(bytes(1000)))
        self.assert_picture("is 60000x60000", png_of_chunks(60_000, 60_000, pixels))

    def test_too_many_bytes(self):
        large = png_of_chunks(WIDTH, HEIGHT, chunk(b"prVt", bytes(17 << 20)), chunk(b"IDAT", zlib.compress(bytes(1000))))
        self.assert_picture("at most 16777216 are allowed", large)
        path = self.write("large.png", large)
        self.assert_refused_here(65, ["--image", "67108864 bytes"], *self.kitti(), "--image", *[path] * 5)

    def test_wrong_numbers_of_pictures(self):
        good = self.write("good.png", png(WIDTH, HEIGHT, harness.picture(WIDTH, HEIGHT)))
        self.assert_field("conditioning.pictures.files", "4n+1", *self.kitti(), "--image", *[good] * 4)
        self.assert_field("conditioning.pictures.files", "", *self.kitti(), "--image", *[good] * 9)


class BadPixels(harness.EndToEndTest):
    """What only decoding can tell: the job is accepted and fails, with the picture's name, and the worker goes on."""

    def test_pictures_whose_pixels_are_broken_cost_the_job_and_nothing_else(self):
        service = self.service()
        (worker,) = service.children("merope-worker")
        good = self.test_folder / "good.png"
        good.write_bytes(png(WIDTH, HEIGHT, harness.picture(WIDTH, HEIGHT)))
        bad = self.test_folder / "bad.png"
        request = ["--shape", "straight:5m", "--frames", 9, "--size", SIZE, "--steps", 1, "--image", *[good] * 2, bad, *[good] * 2]
        broken = {
            "not deflate": b"\xff" * 500,
            "too few pixels": zlib.compress(bytes(100)),
        }
        for name, content in broken.items():
            with self.subTest(name):
                bad.write_bytes(png_of_chunks(WIDTH, HEIGHT, chunk(b"IDAT", content)))
                answer = service.cli("submit", *request, "-o", self.test_folder / "clip.mp4")
                self.assertEqual(answer.code, 1, answer)
                events = [event for event in answer.lines() if "error" not in event]
                self.assert_whole_stream(events)
                (failed,) = of_kind(events, "failed")
                self.assertIn("conditioning.pictures.files[2]", failed["message"])
                self.assertEqual(state_of(service.jobs()[0]), "failed")
        # A stream that inflates to 256 MB behind a header of 64x64: whatever becomes of the job, it ends and the worker stays.
        squeezer = zlib.compressobj(1)
        zeros = bytes(1 << 20)
        bomb = b"".join(squeezer.compress(zeros) for _ in range(256)) + squeezer.flush()
        bad.write_bytes(png_of_chunks(WIDTH, HEIGHT, chunk(b"IDAT", bomb)))
        answer = service.cli("submit", *request, "-o", self.test_folder / "clip.mp4")
        self.assertIn(answer.code, (0, 1), answer)
        self.assertEqual(service.children("merope-worker"), [worker], "the worker died")
        self.assertEqual(service.jobs("--state", "queued") + service.jobs("--state", "running"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
