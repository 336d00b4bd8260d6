"""The Python client against a server in this process that follows a script."""

import os
import sys
import tempfile
import unittest
from concurrent import futures
from hashlib import sha256

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

import merope
from merope.v1 import generation_pb2 as pb
from merope.v1 import generation_pb2_grpc as pb_grpc


def event(epoch, seq, **kind):
    return pb.JobEvent(job_id="job-1", cursor=pb.Cursor(epoch=epoch, seq=seq), **kind)


def fragment(epoch, seq, data):
    return event(epoch, seq, fragment=pb.Fragment(data=data, last_part=True))


def finished(epoch, seq, data):
    return event(epoch, seq, finished=pb.Finished(frames=5, seed=7, bytes=len(data), sha256=sha256(data).hexdigest()))


def broken():
    return grpc.StatusCode.UNAVAILABLE


class ScriptedService(pb_grpc.GenerationServiceServicer):
    def __init__(self):
        self.submitted = []
        self.submit_codes = []
        self.violations = []
        self.watches = []
        self.watched_after = []

    def Submit(self, request, context):
        self.submitted.append(request)
        if self.violations:
            bad = error_details_pb2.BadRequest()
            for field, description in self.violations:
                bad.field_violations.add(field=field, description=description)
            detail = any_pb2.Any()
            detail.Pack(bad)
            status = status_pb2.Status(code=3, message="wrong", details=[detail])
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "wrong")
        if self.submit_codes:
            context.abort(self.submit_codes.pop(0), "not now")
        return pb.SubmitResponse(job_id="job-1", request_id=request.request_id)

    def Watch(self, request, context):
        self.watched_after.append((request.after.epoch, request.after.seq))
        for item in self.watches.pop(0):
            if isinstance(item, grpc.StatusCode):
                context.abort(item, "the script says so")
            yield item

    def GetJob(self, request, context):
        if request.job_id != "job-1":
            context.abort(grpc.StatusCode.NOT_FOUND, f"no job {request.job_id}")
        return pb.Job(job_id="job-1", state=pb.JOB_STATE_RUNNING)

    def ListJobs(self, request, context):
        return pb.ListJobsResponse(jobs=[pb.Job(state=request.state)] * request.limit)

    def Cancel(self, request, context):
        return pb.Job(job_id=request.job_id, cancel_requested=True)

    def GetCapabilities(self, request, context):
        return pb.Capabilities(models=[pb.ModelCapabilities(name="toy")])


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.service = ScriptedService()
        self.server = grpc.server(
            futures.ThreadPoolExecutor(max_workers=4), options=[("grpc.max_receive_message_length", 64 << 20)]
        )
        pb_grpc.add_GenerationServiceServicer_to_server(self.service, self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.client = merope.Client(f"127.0.0.1:{port}", timeout_s=20)
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "clip.mp4")

    def tearDown(self):
        self.client.close()
        self.server.stop(None).wait()
        self.folder.cleanup()

    def content(self):
        with open(self.path, "rb") as file:
            return file.read()

    def test_unavailable_submit_is_repeated_with_the_same_id_however_large_it_is(self):
        self.service.submit_codes = [broken(), broken()]
        request = pb.GenerationRequest(conditioning=pb.ConditioningFrames(mp4_clip=b"x" * (3 << 20)))
        self.client.submit(request)
        ids = {submitted.request_id for submitted in self.service.submitted}
        self.assertEqual(len(self.service.submitted), 3)
        self.assertEqual(len(ids), 1)
        self.assertNotIn("", ids)
        self.assertEqual(request.request_id, "", "the caller's message is left alone")

    def test_refused_request_carries_every_violation(self):
        self.service.violations = [("frames", "50 is not 4n+1"), ("steps", "0")]
        with self.assertRaises(merope.MeropeError) as raised:
            self.client.submit(pb.GenerationRequest())
        self.assertEqual(raised.exception.code, "INVALID_ARGUMENT")
        self.assertEqual(
            raised.exception.violations,
            (merope.FieldViolation("frames", "50 is not 4n+1"), merope.FieldViolation("steps", "0")),
        )

    def test_generate_survives_a_break_and_writes_the_clip_at_once(self):
        self.service.watches = [
            [event(1, 1, started=pb.Started(epoch=1)), fragment(1, 2, b"start "), broken()],
            [fragment(1, 2, b"start "), fragment(1, 3, b"rest"), finished(1, 4, b"start rest")],
        ]
        seen = []
        result = self.client.generate(
            pb.GenerationRequest(), self.path, on_event=lambda e: seen.append(e.WhichOneof("event"))
        )
        self.assertEqual(result.seed, 7)
        self.assertEqual(seen, ["started", "fragment", "fragment", "finished"])
        self.assertEqual(self.content(), b"start rest")
        self.assertEqual(os.listdir(self.folder.name), ["clip.mp4"])
        self.assertEqual(self.service.watched_after, [(0, 0), (1, 2)])

    def test_a_lost_attempt_is_dropped(self):
        self.service.watches = [
            [fragment(1, 1, b"old"), event(2, 0, restarted=pb.Restarted(epoch=2)), fragment(2, 1, b"n"), broken()],
            [fragment(3, 1, b"new"), finished(3, 2, b"new")],
        ]
        self.client.generate(pb.GenerationRequest(), self.path)
        self.assertEqual(self.content(), b"new")

    def test_holes_wrong_bytes_and_failed_jobs_raise_and_leave_no_file(self):
        cases = {
            "DATA_LOSS": [
                [fragment(1, 1, b"a"), fragment(1, 3, b"c")],
                [fragment(1, 1, b"a"), finished(1, 2, b"b")],
                [fragment(1, 1, b"a"), finished(1, 2, b"ab")],
            ],
            "INTERNAL": [[event(1, 1, failed=pb.Failed(code=13, message="denoise: not a number"))]],
            "CANCELLED": [[event(0, 0, failed=pb.Failed(code=1, message="cancelled"))]],
            "NOT_FOUND": [[grpc.StatusCode.NOT_FOUND]],
        }
        for code, scripts in cases.items():
            for script in scripts:
                self.service.watches = [script]
                with self.assertRaises(merope.MeropeError) as raised:
                    self.client.generate(pb.GenerationRequest(), self.path)
                self.assertEqual(raised.exception.code, code)
                self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_place_that_can_not_be_written_is_found_before_the_job_is_queued(self):
        with self.assertRaises(FileNotFoundError):
            self.client.generate(pb.GenerationRequest(), os.path.join(self.folder.name, "missing", "clip.mp4"))
        self.assertEqual(self.service.submitted, [])

    def test_the_other_calls(self):
        self.assertEqual(self.client.get_job("job-1").state, pb.JOB_STATE_RUNNING)
        self.assertEqual(len(self.client.list_jobs(pb.JOB_STATE_FAILED, 2)), 2)
        self.assertTrue(self.client.cancel("job-1").cancel_requested)
        self.assertEqual(self.client.capabilities().models[0].name, "toy")
        with self.assertRaises(merope.MeropeError) as raised:
            self.client.get_job("job-2")
        self.assertEqual(raised.exception.code, "NOT_FOUND")
        self.server.stop(None).wait()
        with self.assertRaises(merope.MeropeError) as raised:
            self.client.get_job("job-1")
        self.assertEqual(raised.exception.code, "UNAVAILABLE")


class TrajectoryTest(unittest.TestCase):
    def test_poses_may_be_nested_lists_flat_lists_or_anything_that_iterates(self):
        lens = merope.lens_from_fov(90, 512, 288)
        self.assertAlmostEqual(lens.pinhole.fx, 256)
        nested = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 2.5]]
        flat = [number for row in nested for number in row]
        path = merope.trajectory([nested, flat, tuple(map(tuple, nested))], lens, times_s=[0, 0.1, 0.2])
        for frame in path.frames:
            self.assertEqual(list(frame.pose), flat)
        self.assertEqual(path.frames[2].time_s, 0.2)
        self.assertFalse(merope.trajectory([flat], lens).frames[0].HasField("time_s"))

    def test_conventions_are_named(self):
        lens = merope.pinhole(256, 256, 256, 144, 512, 288)
        path = merope.trajectory([], lens, pose_direction="world_to_camera", camera_axes="flu", length_unit="centimetre")
        self.assertEqual((path.pose_direction, path.camera_axes, path.length_unit), (2, 3, 2))
        with self.assertRaisesRegex(ValueError, "camera_axes 'blender' is not one of opencv, opengl, flu"):
            merope.trajectory([], lens, camera_axes="blender")
        with self.assertRaisesRegex(ValueError, "1 times for 0 poses"):
            merope.trajectory([], lens, times_s=[0])


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=2).result.wasSuccessful())
