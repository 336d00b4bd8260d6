"""Client of the MeRoPE video service. Messages have the names of merope/v1/generation.proto."""

from merope.client import Client, FieldViolation, MeropeError
from merope.trajectory import lens_from_fov, pinhole, trajectory
from merope.v1.generation_pb2 import (
    Capabilities,
    ConditioningFrames,
    Cursor,
    Finished,
    GenerationRequest,
    Job,
    JobEvent,
    Pictures,
    SubmitResponse,
)
from merope.v1.trajectory_pb2 import Lens, Trajectory

__all__ = [
    "Capabilities",
    "Client",
    "ConditioningFrames",
    "Cursor",
    "FieldViolation",
    "Finished",
    "GenerationRequest",
    "Job",
    "JobEvent",
    "Lens",
    "MeropeError",
    "Pictures",
    "SubmitResponse",
    "Trajectory",
    "lens_from_fov",
    "pinhole",
    "trajectory",
]
