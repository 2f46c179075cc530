"""PNG and JPEG bytes -> array, with everything that could cost memory or time looked at before it is spent."""

from __future__ import annotations

from io import BytesIO
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from streamlearn.errors import BadRecord
from streamlearn.records.reasons import refused, shown
from streamlearn.settings.limits import Limits

_PNG_START: Final = b"\x89PNG\r\n\x1a\n"
_PNG_END: Final = b"IEND\xaeB`\x82"
_JPEG_START: Final = b"\xff\xd8\xff"
_JPEG_SCAN: Final = b"\xff\xda"
_PNG_BIT_DEPTH: Final = 24  # where the header chunk, always the first, keeps it
# Each scan of a progressive JPEG is another pass over the whole picture: a small file of thousands costs minutes.
_MOST_SCANS: Final = 100


def decode_picture(data: bytes, limits: Limits) -> NDArray[np.uint8]:
    """Grey -> (height, width), colour -> (height, width, 3)."""
    try:
        with _opened(data) as picture:
            width, height = picture.size
            if width * height > limits.image_pixels:
                size = f"{width:,} x {height:,} pixels"
                raise refused("image-too-large", f"the picture has {size}; at most {limits.image_pixels:,} are allowed")
            return np.asarray(_grey_or_colour(picture))
    except (BadRecord, MemoryError):
        raise
    except Exception as error:
        # What Pillow raises on damaged files has no end: OSError, SyntaxError, ValueError, zlib.error, struct.error ...
        raise refused("bad-image", f"the picture cannot be read: {shown(str(error))}") from error


def _opened(data: bytes) -> ImageFile:
    """Reads the header only. Not by Image.open: it would try more formats, and warn of large sizes on its own."""
    if data.startswith(_PNG_START):
        if data[_PNG_BIT_DEPTH : _PNG_BIT_DEPTH + 1] == b"\x10":
            raise refused(
                "bad-image", "the PNG has 16 bits a channel; only 8 can be learned without a loss nobody chose"
            )
        picture = PngImageFile(BytesIO(data))
        if _PNG_END not in data:  # Pillow is content once it has all pixels
            raise refused("bad-image", "the PNG is truncated: its end is missing")
        return picture
    if data.startswith(_JPEG_START):
        if data.count(_JPEG_SCAN) > _MOST_SCANS:
            raise refused("bad-image", f"the JPEG has more than {_MOST_SCANS} scans")
        return JpegImageFile(BytesIO(data))
    raise refused("bad-image", f"neither PNG nor JPEG: it starts with {shown(data[:8])}")


def _grey_or_colour(picture: Image) -> Image:
    if picture.mode in ("L", "RGB"):
        picture.load()  # here, where a truncated file raises; numpy would ask for it just the same
        return picture
    if picture.mode == "1":
        return picture.convert("L")
    if picture.mode == "P" and "transparency" not in picture.info:
        return picture.convert("RGB")
    if picture.mode in ("P", "LA", "RGBA"):
        opaque = picture if picture.mode == "LA" else picture.convert("RGBA")
        if opaque.getchannel("A").getextrema() != (255, 255):
            raise refused("bad-image", "the picture is partly transparent: put it on a background first")
        return opaque.convert("L" if picture.mode == "LA" else "RGB")
    raise refused("bad-image", f"the picture's colours are {picture.mode}; grey, RGB or a palette can be learned")
