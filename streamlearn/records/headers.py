"""What the headers of a record say about its value.

Nearly all records of a stream have the same headers but for `label` and `id`, so what the others mean is worked out
once and remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final, Literal, TypeAlias

import numpy as np

from streamlearn.records.reasons import Reason, refused, shown
from streamlearn.settings.limits import Limits

Split: TypeAlias = Literal["train", "eval"]
Kind: TypeAlias = Literal["example", "end-of-group", "flush"]
Dtype: TypeAlias = Literal["uint8", "float32"]

OCTETS: Final = "application/octet-stream"
JSON: Final = "application/json"
PICTURES: Final = ("image/png", "image/jpeg")

FLOAT32: Final[np.dtype[np.float32]] = np.dtype("<f4")  # little-endian whatever the machine is: bytes travel
CONTENT_TYPES: Final = (OCTETS, JSON, *PICTURES)
NAMES: Final = frozenset({"content-type", "shape", "dtype", "split", "group", "event"})  # all but label and id

_LONGEST_HEADER = 256


@dataclass(frozen=True, slots=True)
class Meaning:
    """None: the headers do not say, the body may."""

    content_type: str = JSON
    shape: tuple[int, ...] | None = None
    dtype: Dtype | None = None
    split: Split | None = None
    group: str | None = None
    kind: Kind | None = None
    array_bytes: int = 0  # of a value of this shape and dtype


def understand(headers: tuple[tuple[str, bytes], ...], limits: Limits) -> Meaning:
    given = dict(headers)  # of a header given twice the last one holds, as in Kafka
    content_type = _content_type(given["content-type"]) if "content-type" in given else JSON
    shape = _shape(given["shape"], limits) if "shape" in given else None
    dtype = _dtype(given["dtype"]) if "dtype" in given else None
    return Meaning(
        content_type,
        shape,
        dtype,
        split_named(header_text("split", given["split"], 16)) if "split" in given else None,
        header_text("group", given["group"], limits.group_bytes) or None if "group" in given else None,
        kind_named(header_text("event", given["event"], _LONGEST_HEADER)) if "event" in given else None,
        prod(shape) * (4 if dtype == "float32" else 1) if shape else 0,
    )


def split_named(name: str) -> Split:
    if name == "train":
        return "train"
    if name == "eval":
        return "eval"
    raise refused("bad-split", f"split is {shown(name)}; it can be train or eval")


def kind_named(name: str) -> Kind:
    if name == "example":
        return "example"
    if name == "end-of-group":
        return "end-of-group"
    if name == "flush":
        return "flush"
    raise refused("unknown-event", f"event is {shown(name)}; it can be example, end-of-group or flush")


def header_text(name: str, raw: bytes, limit: int, reason: Reason = "bad-header") -> str:
    if len(raw) > limit:
        raise refused(reason, f"{name} has {len(raw):,} bytes; at most {limit} are allowed")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise refused("bad-utf8", f"{name} is not UTF-8: {shown(raw)}") from error


def _content_type(raw: bytes) -> str:
    text = header_text("content-type", raw, _LONGEST_HEADER)
    name = text.partition(";")[0].strip().lower()  # parameters such as charset=utf-8 change nothing here
    if name not in CONTENT_TYPES:
        raise refused("unknown-content-type", f"content-type is {shown(text)}; it can be {', '.join(CONTENT_TYPES)}")
    return name


def _dtype(raw: bytes) -> Dtype:
    text = header_text("dtype", raw, _LONGEST_HEADER)
    if text == "uint8":
        return "uint8"
    if text == "float32":
        return "float32"
    raise refused("bad-dtype", f"dtype is {shown(text)}; it can be uint8 or float32")


def _shape(raw: bytes, limits: Limits) -> tuple[int, ...]:
    text = header_text("shape", raw, _LONGEST_HEADER, "bad-shape")
    sides = [side.strip() for side in text.split(",")]
    # isdecimal alone takes the digits of any script, and int() would read them: only 0-9 is meant.
    if len(sides) > 3 or not all(side.isascii() and side.isdecimal() and len(side) <= 10 for side in sides):
        raise refused(
            "bad-shape", f"shape is {shown(text)}; expected up to three numbers such as 28,28 or 32,32,3 or 64"
        )
    shape = tuple(map(int, sides))
    if 0 in shape:
        raise refused("bad-shape", f"shape is {shown(text)}: nothing is in it")
    if len(shape) > 1 and shape[0] * shape[1] > limits.image_pixels:
        raise refused("image-too-large", f"shape is {shown(text)}; at most {limits.image_pixels:,} pixels are allowed")
    return shape
