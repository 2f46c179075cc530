"""Pictures for the tests: good ones from Pillow, and some that no good program writes."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image


def saved(picture: Image.Image, format: str, **options: Any) -> bytes:
    file = BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


def png(array: np.ndarray[Any, Any]) -> bytes:
    return saved(Image.fromarray(array), "PNG")


def jpeg(array: np.ndarray[Any, Any], **options: Any) -> bytes:
    return saved(Image.fromarray(array), "JPEG", **options)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def zeros_compressed(count: int) -> bytes:
    compressor = zlib.compressobj(9)
    return b"".join(compressor.compress(bytes(1_000_000)) for _ in range(count // 1_000_000)) + compressor.flush()


def png_bomb(width: int, height: int) -> bytes:
    """Says it is that large; the rows, all zero, take a thousandth of it."""
    rows = zeros_compressed(min(width * height, 200_000_000))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def png_with_text_bomb() -> bytes:
    good = png(np.zeros((2, 2), np.uint8))
    text = chunk(b"zTXt", b"comment\0\0" + zeros_compressed(200_000_000))
    return good[:33] + text + good[33:]


def jpeg_with_size(width: int, height: int) -> bytes:
    """A good JPEG whose header claims another size."""
    good = bytearray(jpeg(np.zeros((8, 8), np.uint8)))
    start = good.index(b"\xff\xc0")
    good[start + 5 : start + 9] = struct.pack(">HH", height, width)
    return bytes(good)


def jpeg_of_many_scans(scans: int) -> bytes:
    """A progressive JPEG with its last scan again and again."""
    good = jpeg(np.zeros((1900, 2000), np.uint8), progressive=True)
    last = good.rindex(b"\xff\xda")
    return good[:last] + good[last:-2] * scans + good[-2:]
