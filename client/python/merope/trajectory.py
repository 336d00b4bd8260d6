"""Trajectories from nested lists or arrays of poses."""

import math
from typing import Any, Iterable, List, Optional, Sequence

from merope.v1 import trajectory_pb2 as pb


def pinhole(fx: float, fy: float, cx: float, cy: float, width: int, height: int) -> pb.Lens:
    """A pinhole; fx, fy, cx, cy in pixels of a picture of width x height, whose corner is (0, 0)."""
    return pb.Lens(width=width, height=height, pinhole=pb.Pinhole(fx=fx, fy=fy, cx=cx, cy=cy))


def lens_from_fov(horizontal_degrees: float, width: int, height: int) -> pb.Lens:
    """A pinhole whose picture spans so many degrees from left to right, square pixels, centre in the middle."""
    focal = width / 2 / math.tan(math.radians(horizontal_degrees) / 2)
    return pinhole(focal, focal, width / 2, height / 2, width, height)


def trajectory(
    poses: Iterable[Any],
    lens: pb.Lens,
    *,
    times_s: Optional[Sequence[float]] = None,
    pose_direction: str = "camera_to_world",
    camera_axes: str = "opencv",
    length_unit: str = "metre",
) -> pb.Trajectory:
    """One pose a frame: 3x4 or 4x4, as nested lists, an array of [n, 3, 4] or [n, 4, 4], or 12 or 16 numbers.

    pose_direction: camera_to_world, world_to_camera. camera_axes: opencv (x right, y down, z forward), opengl (x right,
    y up, z backward), flu (x forward, y left, z up). length_unit: metre, centimetre, millimetre. Whether a pose is one
    is checked by the service, which names every frame that is wrong.
    """
    message = pb.Trajectory(
        pose_direction=_enum(pb.PoseDirection, "POSE_DIRECTION", "pose_direction", pose_direction),
        camera_axes=_enum(pb.CameraAxes, "CAMERA_AXES", "camera_axes", camera_axes),
        length_unit=_enum(pb.LengthUnit, "LENGTH_UNIT", "length_unit", length_unit),
        lens=lens,
    )
    for pose in poses:
        message.frames.add(pose=_flat(pose))
    if times_s is not None:
        if len(times_s) != len(message.frames):
            raise ValueError(f"{len(times_s)} times for {len(message.frames)} poses")
        for frame, time_s in zip(message.frames, times_s):
            frame.time_s = float(time_s)
    return message


def _flat(value: Any) -> List[float]:
    try:
        items = iter(value)
    except TypeError:
        return [float(value)]
    return [number for item in items for number in _flat(item)]


def _enum(kind: Any, prefix: str, name: str, value: str) -> Any:
    try:
        return kind.Value(f"{prefix}_{value.upper()}")
    except ValueError:
        known = [key[len(prefix) + 1 :].lower() for key in kind.keys() if not key.endswith("_UNSPECIFIED")]
        raise ValueError(f"{name} {value!r} is not one of {', '.join(known)}") from None
