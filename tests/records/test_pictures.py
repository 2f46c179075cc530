"""Pictures of every kind, broken ones, and ones made to hurt."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from streamlearn.errors import BadRecord
from streamlearn.records.decode import Decoder
from streamlearn.records.pictures import decode_picture
from streamlearn.records.record import Example, Record
from streamlearn.settings.limits import Limits

from .pictures import jpeg, jpeg_of_many_scans, jpeg_with_size, png, png_bomb, png_with_text_bomb, saved

LIMITS = Limits()
RANDOM = np.random.default_rng(0)
GREY = RANDOM.integers(0, 256, (28, 20), np.uint8)
COLOUR = RANDOM.integers(0, 256, (28, 20, 3), np.uint8)


# In a process of its own: the most memory a process ever had is all that can be asked for.
DECODE_AND_MEASURE = """
import json, resource, sys, time
from streamlearn.errors import BadRecord
from streamlearn.records.pictures import decode_picture
from streamlearn.settings.limits import Limits

bomb, reason = sys.stdin.buffer.read(), "none"
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
try:
    decode_picture(bomb, Limits())
except BadRecord as error:
    reason = error.reason
seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
json.dump([reason, seconds, after - before], sys.stdout)
"""


def reason(data: bytes, limits: Limits = LIMITS) -> str:
    with pytest.raises(BadRecord) as caught:
        decode_picture(data, limits)
    return caught.value.reason


@pytest.mark.parametrize("array", [GREY, COLOUR])
def test_png_comes_back_as_it_was(array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    decoded = decode_picture(png(array), LIMITS)
    assert decoded.dtype == np.uint8
    np.testing.assert_array_equal(decoded, array)


@pytest.mark.parametrize("content_type", [b"image/png", b"image/jpeg"])
def test_as_the_value_of_a_record(content_type: bytes) -> None:
    data = png(COLOUR) if content_type == b"image/png" else jpeg(COLOUR)
    decoded = Decoder().decode(Record(data, headers=(("content-type", content_type), ("label", b"boot"))))
    assert isinstance(decoded, Example)
    assert (decoded.input.shape, decoded.input.dtype, decoded.label) == ((28, 20, 3), np.uint8, "boot")


def test_jpeg_is_close_to_what_it_was() -> None:
    smooth = np.linspace(0, 255, 28 * 28).reshape(28, 28).astype(np.uint8)
    assert np.abs(decode_picture(jpeg(smooth, quality=95), LIMITS).astype(int) - smooth).max() < 8
    assert decode_picture(jpeg(COLOUR, progressive=True), LIMITS).shape == (28, 20, 3)


def test_one_bit_palette_and_opaque_alpha() -> None:
    grey, colour = Image.fromarray(GREY), Image.fromarray(COLOUR)
    assert set(np.unique(decode_picture(saved(grey.convert("1"), "PNG"), LIMITS))) == {0, 255}
    palette = colour.quantize(16)
    np.testing.assert_array_equal(
        decode_picture(saved(palette, "PNG"), LIMITS), np.asarray(palette.convert("RGB")), strict=True
    )
    np.testing.assert_array_equal(decode_picture(saved(colour.convert("RGBA"), "PNG"), LIMITS), COLOUR)
    np.testing.assert_array_equal(decode_picture(saved(grey.convert("LA"), "PNG"), LIMITS), GREY)


def test_colours_that_would_need_a_guess_are_refused() -> None:
    colour = Image.fromarray(COLOUR)
    see_through = colour.convert("RGBA")
    see_through.putalpha(100)
    assert reason(saved(see_through, "PNG")) == "bad-image"
    assert reason(saved(colour.quantize(16), "PNG", transparency=0)) == "bad-image"
    assert reason(saved(colour.convert("CMYK"), "JPEG")) == "bad-image"
    assert reason(saved(Image.fromarray(GREY.astype(np.uint16) * 256), "PNG")) == "bad-image"


@pytest.mark.parametrize("encode", [png, jpeg])
def test_a_picture_cut_anywhere_is_refused(
    encode: Callable[[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]], bytes],
) -> None:
    whole = encode(COLOUR)
    for length in range(len(whole)):
        assert reason(whole[:length]) == "bad-image", length


def test_other_formats_are_refused() -> None:
    for format in ("GIF", "BMP", "TIFF", "WEBP"):
        assert reason(saved(Image.fromarray(COLOUR), format)) == "bad-image"


def test_exactly_at_the_limit() -> None:
    assert decode_picture(png(GREY), Limits(image_pixels=28 * 20)).shape == (28, 20)
    assert reason(png(GREY), Limits(image_pixels=28 * 20 - 1)) == "image-too-large"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: png_bomb(20_000, 20_000), "image-too-large"),
        (lambda: png_bomb(2**31 - 1, 2**31 - 1), "image-too-large"),
        (lambda: jpeg_with_size(65_500, 65_500), "image-too-large"),
        (lambda: jpeg_of_many_scans(5_000), "bad-image"),
        (png_with_text_bomb, "bad-image"),
    ],
    ids=["png", "png-largest", "jpeg", "jpeg-scans", "png-text"],
)
def test_a_bomb_costs_neither_time_nor_memory(make: Callable[[], bytes], expected: str) -> None:
    command = [sys.executable, "-c", DECODE_AND_MEASURE]
    answer = subprocess.run(command, input=make(), capture_output=True, check=True, timeout=60)
    found, seconds, kibibytes = json.loads(answer.stdout)
    assert found == expected
    assert seconds < 0.1
    assert kibibytes < 20_000
