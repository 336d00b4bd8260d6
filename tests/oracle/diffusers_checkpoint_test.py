"""Checkpoints that diffusers itself writes, sharded, load and give diffusers' own clips."""

import os
import pathlib
import subprocess
import tempfile
import unittest

os.environ.update(TQDM_DISABLE="1", DIFFUSERS_VERBOSITY="critical", TRANSFORMERS_VERBOSITY="critical")
try:
    import numpy as np
    import small_pipelines
    MISSING = ""
except ImportError as error:
    MISSING = f"needs a Python with diffusers, transformers and sentencepiece: {error}"

BINARY = pathlib.Path(os.environ.get("MEROPE_BINARY_DIR", "build/dev")) / "tests" / "merope_generate"


def generated(model, **keys):
    with tempfile.NamedTemporaryFile() as out:
        command = [str(BINARY), str(model), out.name] + [f"{key}={value}" for key, value in keys.items()]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {run.stderr}")
        clip = np.frombuffer(pathlib.Path(out.name).read_bytes(), np.uint8)
    return clip.reshape(keys["frames"], keys["height"], keys["width"], 3)


@unittest.skipIf(MISSING, MISSING)
class DiffusersCheckpoint(unittest.TestCase):
    def compare(self, kind, with_picture, **options):
        request = dict(width=64, height=96, frames=9, steps=4, seed=5, guidance=4.0, prompt="a street in the rain", negative="")
        request.update(options)
        pipeline = small_pipelines.build(kind)
        image = small_pipelines.picture(request["width"], request["height"]) if with_picture else None
        expected = small_pipelines.clip(pipeline, image=image, **request)
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / kind
            small_pipelines.save(pipeline, model)
            self.assertTrue(list((model / "transformer").glob("*.index.json")), "meant to be sharded")
            keys = dict(request)
            if with_picture:
                (pathlib.Path(folder) / "picture").write_bytes(image.tobytes())
                keys["picture"] = pathlib.Path(folder) / "picture"
            actual = generated(model, **keys)
        first = 1 if with_picture else 0  # the picture itself takes the place of its reconstruction
        difference = np.abs(actual[first:].astype(int) - expected[first:].astype(int))
        self.assertLessEqual(difference.max(), 1)
        self.assertLess((difference > 0).mean(), 1e-3)
        self.assertGreater(expected.std(), 5, "a clip of one colour would prove nothing")

    def test_text_to_video(self):
        self.compare("t2v", False)

    def test_text_to_video_without_guidance(self):
        self.compare("t2v", False, guidance=1.0, steps=3, frames=5)

    def test_text_to_video_of_two_experts(self):
        self.compare("t2v_experts", False)

    def test_image_to_video_of_two_experts(self):
        self.compare("i2v_experts", True, frames=13)

    def test_image_to_video_with_a_clean_first_frame(self):
        self.compare("ti2v", True)


if __name__ == "__main__":
    unittest.main()
