"""What a client sends -> inputs for the model. Pictures and numbers are read by the same code as the stream's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from streamlearn.errors import BadRecord
from streamlearn.records.headers import FLOAT32, JSON, OCTETS, PICTURES, Dtype
from streamlearn.records.json_body import body_input, nested_array
from streamlearn.records.pictures import decode_picture
from streamlearn.records.record import Array
from streamlearn.serving.messages import HttpError, Request
from streamlearn.serving.model import Served
from streamlearn.settings.limits import Limits

_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
# What clients say when they were told nothing: curl --data-binary names a form.
_UNSAID = ("", "application/x-www-form-urlencoded", OCTETS)
_STATUS = {"too-large": 413, "image-too-large": 413, "unknown-content-type": 415, "bad-json": 400, "bad-utf8": 400}


@contextmanager
def refusals_as_answers(prefix: str = "") -> Iterator[None]:
    """What the decoder refuses, in HTTP's words."""
    try:
        yield
    except BadRecord as error:
        raise HttpError(_STATUS.get(error.reason, 422), error.reason, prefix + error.message) from None


def is_picture(request: Request) -> bool:
    return request.content_type in PICTURES or (
        request.content_type in _UNSAID and b"x-shape" not in request.headers and request.body.startswith(_MAGIC)
    )


def read_instances(request: Request, model: Served | None, limits: Limits, most: int) -> list[Array]:
    """Each input of a request for predictions."""
    with refusals_as_answers():
        if is_picture(request):
            return [decode_picture(request.body, limits)]
        if request.content_type == OCTETS:
            return read_octets(request, model, limits, most)
    if request.content_type not in (JSON, ""):
        raise HttpError(415, "unknown-content-type", f"content-type can be {JSON}, {OCTETS}, {' or '.join(PICTURES)}")
    instances = request.json().get("instances")
    if not isinstance(instances, list) or not instances:
        raise HttpError(422, "no-input", 'expected {"instances": [...]} with at least one')
    if len(instances) > most:
        raise HttpError(413, "too-many-instances", f"{len(instances):,} instances; at most {most:,} at once")
    dtype = dtype_of(model)
    return [_instance(instance, place, dtype, limits) for place, instance in enumerate(instances)]


def _instance(instance: Any, place: int, dtype: Dtype | None, limits: Limits) -> Array:
    with refusals_as_answers(f"instances[{place}]: "):
        if isinstance(instance, dict):
            return body_input(instance, None, dtype, limits)
        return nested_array(instance, None, dtype, limits)


def read_octets(request: Request, model: Served | None, limits: Limits, most: int) -> list[Array]:
    """One array of the model's shape, or several with their number in front."""
    dtype = request.headers.get(b"x-dtype", b"uint8")
    if dtype not in (b"uint8", b"float32"):
        raise HttpError(422, "bad-dtype", "X-Dtype can be uint8 or float32")
    shape = _shape(request)
    size = prod(shape) * (4 if dtype == b"float32" else 1)
    if len(request.body) != size:
        raise HttpError(
            422, "bad-shape", f"X-Shape and X-Dtype ask for {size:,} bytes; there are {len(request.body):,}"
        )
    array: Any = np.frombuffer(request.body, np.uint8 if dtype == b"uint8" else FLOAT32).reshape(shape)
    if dtype == b"float32" and not np.isfinite(array).all():
        raise HttpError(422, "not-finite", "the array holds NaN or infinity")
    known = None if model is None else model.shape
    if known is not None and shape[1:] == known:
        if shape[0] > most:
            raise HttpError(413, "too-many-instances", f"{shape[0]:,} instances; at most {most:,} at once")
        return list(array)
    if len(shape) > 3:
        raise HttpError(422, "bad-shape", f"shape {list(shape)} is not that of the model's inputs")
    return [array]


def _shape(request: Request) -> tuple[int, ...]:
    text = request.headers.get(b"x-shape")
    if text is None:
        raise HttpError(422, "bad-shape", "an octet-stream needs X-Shape, such as 28,28")
    sides = [side.strip() for side in text.split(b",")]
    if len(sides) > 4 or not all(side.isdigit() and len(side) <= 10 and int(side) for side in sides):
        raise HttpError(422, "bad-shape", "X-Shape must be up to four numbers such as 28,28 or 64,28,28")
    return tuple(map(int, sides))


def dtype_of(model: Served | None) -> Dtype | None:
    if model is None or model.dtype is None:
        return None
    return "uint8" if model.dtype == np.uint8 else "float32"


Reader = Callable[[Request, Served | None, Limits, int], list[Array]]
