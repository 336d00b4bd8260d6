#!/usr/bin/env python3
"""Whatever dies, freezes or is stopped: an accepted job ends exactly once, and its stream has no hole."""
import concurrent.futures
import contextlib
import hashlib
import os
import signal
import unittest

import harness
from harness import has_frames, is_progress, of_kind, state_of, wait_for

# A second or two of denoising and one of decoding on two free cores: there is a middle to be hit.
LONG = ["--shape", "straight:10m,turn:30deg", "--frames", 49, "--size", "64x64", "--steps", 60, "--seed", 5]
SHORT = ["--shape", "straight:10m", "--frames", 5, "--size", "32x32", "--steps", 1, "--seed", 3]
ENDED = ("succeeded", "failed", "cancelled", "expired")


class Trust(harness.EndToEndTest):
    def assert_ended_once(self, service, job_id, state="succeeded"):
        """The job is over; its whole stream is there, to be read again and again; no later word changes the end."""
        job = service.status(job_id)
        self.assertEqual(state_of(job), state, job)
        streams = []
        for i in range(2):
            path = self.test_folder / f"{job_id}.{i}.mp4"
            answer = service.cli("watch", job_id, "-o", path)
            self.assertEqual(answer.code, 0, answer)
            self.assert_whole_stream(answer.lines())
            (finished,) = of_kind(answer.lines(), "finished")
            self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), finished["sha256"])
            streams.append(answer.out)
        self.assertEqual(streams[0], streams[1])
        self.assertEqual(service.status(job_id), job)
        return job

    def pid_of_worker(self, lines, worker):
        """By the name that it gave itself in the job's Started event."""
        return next(line["pid"] for line in lines if line.get("event") == "worker ready" and line["worker"] == worker)

    def test_a_worker_that_is_killed_costs_an_attempt_and_not_the_job(self):
        service = self.service()
        path = self.test_folder / "clip.mp4"
        follower = service.follow("submit", *LONG, "-o", path)
        # Once while nothing has been written, once in the middle of the clip.
        for attempt, moment in enumerate((lambda event: is_progress(event, "DENOISE", 3), has_frames), start=1):
            def in_this_attempt(event, moment=moment, attempt=attempt):
                return moment(event) and int(event["cursor"]["epoch"]) == attempt

            follower.wait_for(in_this_attempt, f"of attempt {attempt}")
            (worker,) = service.children("merope-worker")
            os.kill(worker, signal.SIGKILL)
        self.assertEqual(follower.wait(), 0, follower.program.log())
        self.assert_whole_stream(follower.events)
        self.assertEqual([restarted["epoch"] for restarted in of_kind(follower.events, "restarted")], ["2", "3"])
        self.assertEqual([started["attempt"] for started in of_kind(follower.events, "started")], [1, 2, 3])
        job = self.assert_ended_once(service, follower.job_id())
        self.assertEqual((job["attempts"], job["epoch"]), (3, "3"))
        # The file holds the last attempt and nothing of the two before.
        self.assertEqual(int(harness.probe(path)["nb_read_frames"]), 49)
        self.assertEqual(path.read_bytes(), (self.test_folder / f"{job['job_id']}.0.mp4").read_bytes())

    def test_a_job_whose_workers_die_too_often_fails_once(self):
        service = self.service("--server-arg=--max-attempts=1")
        follower = service.follow("submit", *LONG, "-o", self.test_folder / "clip.mp4")
        follower.wait_for(lambda event: is_progress(event, "DENOISE", 3), "of denoising")
        (worker,) = service.children("merope-worker")
        os.kill(worker, signal.SIGKILL)
        self.assertEqual(follower.wait(), 1, follower.program.log())
        job = service.status(follower.job_id())
        self.assertEqual((state_of(job), job["attempts"]), ("failed", 1), job)
        self.assertFalse((self.test_folder / "clip.mp4").exists())
        again = service.cli("watch", job["job_id"], "-o", self.test_folder / "clip.mp4")
        self.assertEqual(again.code, 1, again)
        self.assertEqual(len(of_kind(again.lines(), "failed")), 1)
        # The next worker serves the next job.
        self.assertEqual(service.cli("submit", *SHORT, "-o", self.test_folder / "short.mp4").code, 0)

    def test_a_worker_that_wakes_up_after_its_lease_is_fenced(self):
        service = self.service()
        other = service.another_worker(self.model)
        follower = service.follow("submit", *LONG, "-o", self.test_folder / "clip.mp4")
        first = follower.wait_for(lambda event: "started" in event, "of the start")["started"]["worker"]
        follower.wait_for(has_frames, "with frames")
        frozen = self.pid_of_worker(service.log_lines() + other.log_lines(), first)
        os.kill(frozen, signal.SIGSTOP)
        self.addCleanup(self.thaw, frozen)
        second = follower.wait_for(lambda event: event.get("started", {}).get("attempt") == 2, "of the second attempt")
        self.assertNotEqual(second["started"]["worker"], first)
        # It wakes up while the other one is at work, with frames in hand that belong to the lost attempt.
        os.kill(frozen, signal.SIGCONT)

        def gave_up():
            lines = service.log_lines("job finished") + other.log_lines("job finished")
            return [line for line in lines if line["pid"] == frozen]

        (line,) = wait_for(gave_up, "the frozen worker to give up")
        self.assertEqual(line["outcome"], "lost", line)
        self.assertEqual(follower.wait(), 0, follower.program.log())
        self.assert_whole_stream(follower.events)
        job = self.assert_ended_once(service, follower.job_id())
        self.assertEqual((job["epoch"], job["worker"]), ("2", second["started"]["worker"]))

    def thaw(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def test_redis_killed_under_load_loses_no_accepted_job(self):
        service = self.service()
        long_job = service.follow("submit", *LONG, "-o", self.test_folder / "clip.mp4")
        long_job.wait_for(lambda event: is_progress(event, "DENOISE", 3), "of denoising")

        def submit_until_accepted(i):
            answers = []
            while not answers or answers[-1].code != 0:
                answers.append(service.cli("submit", *SHORT, "--detach", "--request-id", f"load-{i}"))
                self.assertIn(answers[-1].code, (0, 69), answers[-1])
            return answers[-1].line()["job_id"]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            submits = [pool.submit(submit_until_accepted, i) for i in range(16)]
            next(concurrent.futures.as_completed(submits[4:]))
            (redis,) = service.children("redis-server")
            os.kill(redis, signal.SIGKILL)
            accepted = [submit.result() for submit in submits]
        self.assertNotEqual(service.children("redis-server"), [redis])
        self.assertEqual(long_job.wait(), 0, long_job.program.log())
        self.assert_whole_stream(long_job.events)
        self.assertEqual(len(set(accepted)), 16)
        for job_id in accepted:
            self.assertEqual(service.cli("watch", job_id, "-o", self.test_folder / "short.mp4").code, 0)
        self.assert_ended_once(service, long_job.job_id())
        for job_id in accepted[:2] + accepted[-2:]:
            self.assert_ended_once(service, job_id)
        # Nobody else is there: a submit whose answer was lost did not make a second job.
        jobs = service.jobs()
        self.assertEqual({job["job_id"] for job in jobs}, {*accepted, long_job.job_id()})
        self.assertEqual({state_of(job) for job in jobs}, {"succeeded"})
        ends = [line["job"] for line in service.log_lines("job finished") if line["outcome"] == "succeeded"]
        self.assertEqual(sorted(ends), sorted([*accepted, long_job.job_id()]), "each job was finished once")

    def test_jobs_queued_at_ctrl_c_are_done_after_the_next_start(self):
        service = self.service("--drain-seconds", 0)
        follower = service.follow("submit", *LONG, "-o", self.test_folder / "clip.mp4")
        follower.wait_for(lambda event: is_progress(event, "DENOISE"), "of denoising")
        queued = [service.submit(*SHORT, "--priority", priority) for priority in ("low", "normal", "high")]
        before = [service.status(job_id) for job_id in queued]
        self.assertEqual([state_of(job) for job in before], ["queued"] * 3)
        self.assertEqual(service.stop(), 0, service.standalone.log())
        self.assertFalse((service.state / "server.address").exists())
        self.assertFalse((service.state / "redis.sock").exists(), "Redis is still there")

        service.start()
        for job_id in (follower.job_id(), *queued):
            service.wait_for_state(job_id, *ENDED)
        for job_id, job in zip(queued, before):
            after = self.assert_ended_once(service, job_id)
            self.assertEqual((after["submitted_unix_ms"], after["attempts"]), (job["submitted_unix_ms"], 1))
        # The one that was running went back to the queue, which is no fault of its own.
        running = self.assert_ended_once(service, follower.job_id())
        self.assertEqual((running["attempts"], running["epoch"]), (1, "2"))
        high, low = service.status(queued[2]), service.status(queued[0])
        self.assertLess(int(high["started_unix_ms"]), int(low["started_unix_ms"]))
        self.assertEqual(service.stop(), 0, service.standalone.log())

    def test_a_server_that_is_killed_costs_a_watcher_nothing(self):
        service = self.service()
        path = self.test_folder / "clip.mp4"
        follower = service.follow("submit", *LONG, "-o", path)
        follower.wait_for(has_frames, "with frames")
        (server,) = service.children("merope-server")
        os.kill(server, signal.SIGKILL)
        self.assertEqual(follower.wait(), 0, follower.program.log())
        self.assert_whole_stream(follower.events)
        self.assertEqual(of_kind(follower.events, "restarted"), [])
        self.assertEqual(int(harness.probe(path)["nb_read_frames"]), 49)
        job = self.assert_ended_once(service, follower.job_id())
        self.assertEqual(job["attempts"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
