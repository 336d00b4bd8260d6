#!/usr/bin/env python3
"""Draws one conditioning frame of the demo: a straight street between houses, seen 2 m further on in every frame.

Usage: demo_frame.py INDEX WIDTHxHEIGHT OUT.png   (standard library only)
"""
import struct
import sys
import zlib

FOCAL = 0.71  # of the width: 70 degrees
CAMERA_HEIGHT = 1.5
HALF_STREET = 6.0


def colour(x, y, z):
    """RGB of a point of the world: x right, y down, z forward, metres, origin at the first camera."""
    if abs(x) < 3.5 and y > 1.4:
        dashed = abs(x) < 0.12 and int(z / 3) % 2 == 0
        return (230, 230, 220) if dashed else (70 + int(z) % 2 * 6, 70, 74)
    if y > 1.3:
        return (150, 146, 138)
    house = int(z // 9)
    base = ((178, 96, 74), (196, 178, 140), (120, 132, 150), (160, 120, 96))[house % 4]
    if (z % 3.0) / 3.0 > 0.35 and (z % 3.0) / 3.0 < 0.8 and (-y % 3.0) / 3.0 > 0.4:
        return (52, 64, 84)
    shade = 1.0 if x < 0 else 0.8
    return tuple(int(channel * shade) for channel in base)


def pixel(u, v, width, height, forward):
    dx = (u + 0.5 - width / 2) / (FOCAL * width)
    dy = (v + 0.5 - height / 2) / (FOCAL * width)
    best = None
    if dy > 1e-6:
        best = CAMERA_HEIGHT / dy
    if abs(dx) > 1e-6:
        wall = HALF_STREET / abs(dx)
        if wall * dy > -9.0 and (best is None or wall < best):
            best = wall
    if best is None or best > 150:
        return (168 + int(40 * (v / height)), 196, 226)
    return colour(dx * best, dy * best, best + forward)


def main():
    index = int(sys.argv[1])
    width, height = (int(part) for part in sys.argv[2].split("x"))
    rows = bytearray()
    for v in range(height):
        rows.append(0)
        for u in range(width):
            rows += bytes(pixel(u, v, width, height, 0.4 * index))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(sys.argv[3], "wb") as png:
        png.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b""))


if __name__ == "__main__":
    main()
