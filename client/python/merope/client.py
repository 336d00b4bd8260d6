"""The client: submits jobs and follows them until they end, whatever breaks on the way."""

import hashlib
import json
import os
import random
import tempfile
import time
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Iterator, List, NoReturn, Optional, Tuple, Type

import grpc
from google.rpc import error_details_pb2, status_pb2

from merope.v1 import generation_pb2 as pb
from merope.v1 import generation_pb2_grpc as pb_grpc

_MAX_MESSAGE_BYTES = 64 << 20
_RETRYABLE = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED")
_SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{"service": "merope.v1.GenerationService"}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
}
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


@dataclass(frozen=True)
class FieldViolation:
    """One field of a request that is wrong."""

    field: str
    description: str


class MeropeError(Exception):
    """A call or a job that failed. `code` is a gRPC code by name: "INVALID_ARGUMENT", "UNAVAILABLE", "DATA_LOSS", ..."""

    def __init__(self, code: str, message: str, violations: Tuple[FieldViolation, ...] = ()) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.violations = violations


class Client:
    """Any thread may use it. Every method raises MeropeError."""

    def __init__(self, address: str = "127.0.0.1:50051", *, timeout_s: float = 60, reattach_for_s: float = 300) -> None:
        """timeout_s: limit of one call, its retries included. reattach_for_s: how long a broken watch is taken up again
        without hearing anything."""
        options: List[Tuple[str, Any]] = [
            ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
            ("grpc.enable_retries", 1),
            # gRPC does not repeat a call whose request is larger than this; its default is less than one picture.
            ("grpc.per_rpc_retry_buffer_size", 2 * _MAX_MESSAGE_BYTES),
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 5_000),
        ]
        if address.startswith(("127.", "localhost:", "[::1]", "unix:")):
            options.append(("grpc.enable_http_proxy", 0))
        self._address = address
        self._timeout_s = timeout_s
        self._reattach_for_s = reattach_for_s
        self._channel = grpc.insecure_channel(address, options=options)
        self._stub = pb_grpc.GenerationServiceStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def submit(self, request: pb.GenerationRequest) -> pb.SubmitResponse:
        """Queues a job. A request without an id gets one, so that a repeated call can not make a second job."""
        if not request.request_id:
            with_id = pb.GenerationRequest()
            with_id.CopyFrom(request)
            with_id.request_id = f"req-{uuid.uuid4().hex}"
            request = with_id
        return self._call(self._stub.Submit, request)

    def watch(self, job_id: str, after: Optional[pb.Cursor] = None) -> Iterator[pb.JobEvent]:
        """Every event of the job once and in order, up to Finished or Failed; a broken call is taken up again. After
        Restarted everything received before is void. Raises DATA_LOSS for a hole or for other bytes than Finished names."""
        checker = _EventChecker(after)
        pause = 0.2
        last_event = time.monotonic()
        while True:
            call = self._stub.Watch(pb.WatchRequest(job_id=job_id, after=checker.cursor()))
            try:
                for event in call:
                    last_event = time.monotonic()
                    pause = 0.2
                    for checked in checker.accept(event):
                        yield checked
                        if checked.WhichOneof("event") in ("finished", "failed"):
                            return
                error = MeropeError("UNAVAILABLE", f"{self._address}: the stream of {job_id} ended before the job")
            except grpc.RpcError as broken:
                error = self._error(broken)
            finally:
                call.cancel()
            if error.code not in _RETRYABLE or time.monotonic() - last_event + pause > self._reattach_for_s:
                raise error
            time.sleep(pause * random.uniform(1.0, 1.2))
            pause = min(2 * pause, 5.0)

    def generate(
        self,
        request: pb.GenerationRequest,
        path: "os.PathLike[str] | str",
        on_event: Optional[Callable[[pb.JobEvent], None]] = None,
    ) -> pb.Finished:
        """Submits, waits, and writes the MP4 to `path`, which appears only when it is complete. Raises the reason of a job
        that did not succeed. For PNG frames use submit() and watch(): each is a fragment of its own."""
        if request.output == pb.OUTPUT_FORMAT_PNG_FRAMES:
            raise ValueError("generate() writes one file; use submit() and watch() for PNG frames")
        target = os.path.abspath(os.fspath(path))
        # Before the job is queued: a clip that has no place to go is not worth making.
        handle, part = tempfile.mkstemp(
            dir=os.path.dirname(target), prefix=f".{os.path.basename(target)}.", suffix=".part"
        )
        try:
            with os.fdopen(handle, "wb") as file:
                finished = self._store(self.submit(request).job_id, file, on_event)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(part, 0o666 & ~_umask())
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise
        return finished

    def get_job(self, job_id: str) -> pb.Job:
        return self._call(self._stub.GetJob, pb.GetJobRequest(job_id=job_id))

    def list_jobs(self, state: "pb.JobState" = pb.JOB_STATE_UNSPECIFIED, limit: int = 0) -> List[pb.Job]:
        """Newest first; limit 0 is the service's default."""
        return list(self._call(self._stub.ListJobs, pb.ListJobsRequest(state=state, limit=limit)).jobs)

    def cancel(self, job_id: str) -> pb.Job:
        """Asks the job to stop; returns it as it is then."""
        return self._call(self._stub.Cancel, pb.CancelRequest(job_id=job_id))

    def capabilities(self) -> pb.Capabilities:
        return self._call(self._stub.GetCapabilities, pb.GetCapabilitiesRequest())

    def _store(self, job_id: str, file: Any, on_event: Optional[Callable[[pb.JobEvent], None]]) -> pb.Finished:
        for event in self.watch(job_id):
            kind = event.WhichOneof("event")
            if kind == "restarted":
                file.seek(0)
                file.truncate()
            elif kind == "fragment":
                file.write(event.fragment.data)
            if on_event is not None:
                on_event(event)
            if kind == "finished":
                return event.finished
            if kind == "failed":
                raise MeropeError(_CODES.get(event.failed.code, "UNKNOWN"), event.failed.message)
        raise MeropeError("INTERNAL", f"the events of {job_id} have no end")

    def _call(self, method: Any, request: Any) -> Any:
        try:
            return method(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise self._error(error) from None

    def _error(self, error: Any) -> MeropeError:
        message = error.details() or ""
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            message = f"{self._address}: {message}"
        violations: List[FieldViolation] = []
        for key, value in error.trailing_metadata() or ():
            if key != "grpc-status-details-bin":
                continue
            for detail in status_pb2.Status.FromString(value).details:
                bad_request = error_details_pb2.BadRequest()
                if detail.Unpack(bad_request):
                    violations += [FieldViolation(v.field, v.description) for v in bad_request.field_violations]
        return MeropeError(error.code().name, message, tuple(violations))


class _EventChecker:
    """One sequence without holes, repeats or wrong bytes out of the events of several watch calls."""

    def __init__(self, after: Optional[pb.Cursor]) -> None:
        self._epoch = after.epoch if after is not None else 0
        self._seq = after.seq if after is not None else 0
        self._complete = self._seq == 0  # every byte of this attempt has passed through here
        self._bytes = 0
        self._digest = hashlib.sha256()

    def cursor(self) -> Optional[pb.Cursor]:
        return pb.Cursor(epoch=self._epoch, seq=self._seq) if (self._epoch, self._seq) != (0, 0) else None

    def accept(self, event: pb.JobEvent) -> List[pb.JobEvent]:
        kind = event.WhichOneof("event")
        if kind == "restarted":
            if event.restarted.epoch <= self._epoch:
                return []
            self._begin(event.restarted.epoch)
            return [event]
        if kind not in ("started", "progress", "fragment", "finished", "failed"):
            return [event]
        at = (event.cursor.epoch, event.cursor.seq)
        behind = at <= (self._epoch, self._seq)
        if kind == "failed" and (behind or at[1] == 0):
            return [event]  # the end of a job that no attempt wrote
        if behind:
            return []
        delivered = [event]
        if at[0] > self._epoch:
            if self._seq > 0:
                restarted = pb.JobEvent(job_id=event.job_id, cursor=pb.Cursor(epoch=at[0]))
                restarted.restarted.epoch = at[0]
                delivered = [restarted, event]
            self._begin(at[0])
        if at[1] != self._seq + 1:
            self._lost(f"{event.job_id}: event {at[0]}-{self._seq + 1} is missing, {at[0]}-{at[1]} came instead")
        self._seq = at[1]
        self._verify(event, kind)
        return delivered

    def _begin(self, epoch: int) -> None:
        self._epoch, self._seq = epoch, 0
        self._complete = True
        self._bytes = 0
        self._digest = hashlib.sha256()

    def _verify(self, event: pb.JobEvent, kind: str) -> None:
        if kind == "fragment":
            self._bytes += len(event.fragment.data)
            self._digest.update(event.fragment.data)
        if kind != "finished" or not self._complete:
            return
        if event.finished.bytes != self._bytes:
            self._lost(f"{event.job_id}: {self._bytes} bytes received, Finished says {event.finished.bytes}")
        if event.finished.sha256 != self._digest.hexdigest():
            self._lost(f"{event.job_id}: the SHA-256 of the bytes received is not the one that Finished names")

    @staticmethod
    def _lost(message: str) -> NoReturn:
        raise MeropeError("DATA_LOSS", message)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
