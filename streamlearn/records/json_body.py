"""The JSON form of a record: nested lists -> array, base64 -> picture, and bounded whatever is sent."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping
from itertools import chain
from typing import Final

import numpy as np
from pydantic_core import from_json

from streamlearn.records.headers import Dtype
from streamlearn.records.pictures import decode_picture
from streamlearn.records.reasons import Reason, refused, shown
from streamlearn.records.record import Array
from streamlearn.settings.limits import Limits

_MOST_DIMENSIONS: Final = 3
_NUMBERS: Final = frozenset({int, float})


def parse_body(value: bytes) -> Mapping[str, object]:
    """pydantic's parser: it stops at a depth of 200, at integers of more than 4,300 digits, and knows no NaN."""
    try:
        body = from_json(value, allow_inf_nan=False)
    except ValueError as error:
        try:
            value.decode()
        except UnicodeDecodeError:
            raise refused("bad-utf8", "the JSON is not UTF-8") from error
        raise refused("bad-json", f"not JSON: {shown(str(error))}") from error
    if not isinstance(body, dict):
        raise refused("bad-json", f"expected a JSON object, not {shown(body)}")
    return body


def body_text(body: Mapping[str, object], name: str, limit: int, reason: Reason = "bad-header") -> str | None:
    """None where the body does not have it."""
    text = body.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise refused(reason, f"{name} must be a string, not {shown(text)}")
    if len(text.encode()) > limit:
        raise refused(reason, f"{name} has more than {limit} bytes")
    return text


def body_id(body: Mapping[str, object], limit: int) -> str | None:
    """An id that is a number is taken as its digits: databases have them so."""
    number = body.get("id")
    return body_text({"id": str(number)} if type(number) is int else body, "id", limit)


def body_input(body: Mapping[str, object], shape: tuple[int, ...] | None, dtype: Dtype | None, limits: Limits) -> Array:
    nested, image = body.get("x"), body.get("image")
    if (nested is None) == (image is None):
        raise refused("no-input", 'expected one of "x" (nested lists) and "image" (a PNG or JPEG in base64)')
    if image is None:
        return nested_array(nested, shape, dtype, limits)
    if not isinstance(image, str):
        raise refused("bad-image", f"image must be a string, not {shown(image)}")
    try:
        data = a2b_base64(image, strict_mode=True)
    except (Base64Error, ValueError) as error:  # ValueError: not even ASCII
        raise refused("bad-image", f"image is not base64: {shown(str(error))}") from error
    return decode_picture(data, limits)


def nested_array(nested: object, shape: tuple[int, ...] | None, dtype: Dtype | None, limits: Limits) -> Array:
    """Integers in two or three dimensions are a uint8 picture, everything else is float32, unless `dtype` says."""
    found, numbers = _flattened(nested)
    if len(found) > 1 and found[0] * found[1] > limits.image_pixels:
        raise refused("image-too-large", f"x is {shown(found)}; at most {limits.image_pixels:,} pixels are allowed")
    types = set(map(type, numbers))
    if not types <= _NUMBERS:
        strange = next(number for number in numbers if type(number) not in _NUMBERS)
        raise refused("bad-dtype", f"x holds {shown(strange)} where a number should be")
    if dtype is None:
        dtype = "uint8" if len(shape or found) > 1 and types == {int} else "float32"
    array = _bytes_array(numbers, types) if dtype == "uint8" else _float_array(numbers)
    try:
        return array.reshape(shape or found)
    except ValueError as error:
        raise refused("bad-shape", f"the shape header says {shown(shape)}, x is {shown(found)}") from error


def _flattened(nested: object) -> tuple[tuple[int, ...], list[object]]:
    """Shape and elements. numpy would do it as well, but takes ragged lists, strings and truth values for data."""
    if not isinstance(nested, list):
        raise refused("bad-shape", f"x must be a list, not {shown(nested)}")
    shape: tuple[int, ...] = (len(nested),)
    items = nested
    while items and isinstance(items[0], list):
        if len(shape) == _MOST_DIMENSIONS:
            raise refused("bad-shape", "x has more than three dimensions")
        side = len(items[0])
        if not all(isinstance(item, list) and len(item) == side for item in items):
            raise refused("bad-shape", "x is ragged: its lists differ in length")
        shape, items = (*shape, side), list(chain.from_iterable(items))
    if not items:
        raise refused("bad-shape", "x is empty")
    if any(isinstance(item, list) for item in items):
        raise refused("bad-shape", "x is ragged: numbers and lists side by side")
    return shape, items


def _bytes_array(numbers: list[object], types: set[type]) -> Array:
    if types != {int}:
        raise refused("bad-dtype", "x has fractions, uint8 has none")
    try:
        return np.frombuffer(bytes(numbers), np.uint8)  # type: ignore[arg-type]
    except ValueError as error:
        raise refused("bad-dtype", "x has integers outside 0..255; say dtype float32 if they are not pixels") from error


def _float_array(numbers: list[object]) -> Array:
    try:
        with np.errstate(over="ignore"):  # beyond float32: becomes infinite and is refused below
            array = np.array(numbers, np.float32)
    except OverflowError as error:
        raise refused("not-finite", "x has a number beyond float32") from error
    if not np.isfinite(array).all():
        raise refused("not-finite", "x has a number beyond float32")
    return array
