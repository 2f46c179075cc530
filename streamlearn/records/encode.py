"""Example or event -> Record: what producers and the HTTP edge put on the stream. What it makes, the decoder takes."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streamlearn.records.headers import FLOAT32, OCTETS, Split
from streamlearn.records.reasons import refused
from streamlearn.records.record import Record


def encode_example(
    input: NDArray[np.generic],
    label: str,
    *,
    id: str | None = None,
    split: Split = "train",
    group: str | None = None,
    timestamp: int | None = None,
) -> Record:
    """An octet-stream record; `timestamp` in milliseconds, now if not given. Raises BadRecord as the decoder would."""
    array = np.asarray(input)
    if not 1 <= array.ndim <= 3 or not array.size:
        raise refused("bad-shape", f"the input's shape is {array.shape}; one to three dimensions can be learned")
    if not label:
        raise refused("bad-label", "the label is empty")
    dtype = "uint8" if array.dtype == np.uint8 else "float32"
    if dtype == "float32":
        if array.dtype.kind != "f":
            raise refused("bad-dtype", f"the input's dtype is {array.dtype}; uint8 and floats can be learned")
        with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite and is refused
            array = array.astype(FLOAT32, copy=False)
        if not np.isfinite(array).all():
            raise refused("not-finite", "the input holds NaN, infinity or a number beyond float32")
    headers = [
        ("content-type", OCTETS.encode()),
        ("shape", ",".join(map(str, array.shape)).encode()),
        ("dtype", dtype.encode()),
        ("label", _utf8("label", label)),
    ]
    if split != "train":
        headers.append(("split", split.encode()))
    if group is not None:
        headers.append(("group", _utf8("group", group)))
    if id is not None:
        headers.append(("id", _utf8("id", id)))
    return Record(array.tobytes(), headers=tuple(headers), timestamp=_now() if timestamp is None else timestamp)


def encode_event(kind: Literal["end-of-group", "flush"]) -> Record:
    return Record(b"", headers=(("event", kind.encode()),), timestamp=_now())


def _utf8(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise refused("bad-utf8", f"{name} cannot be written in UTF-8") from error


def _now() -> int:
    return time.time_ns() // 1_000_000
