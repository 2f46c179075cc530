"""Named arrays in one safetensors file: written in one pass without copies, read by the safetensors library.

Written here because the library wants all bytes in memory at once and holds the interpreter meanwhile, which would
stall whoever learns in the other thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from streamlearn.checkpoint.damage import Damaged
from streamlearn.checkpoint.tree import DTYPES, AnyArray, plain_json, raw

ArrayKind: TypeAlias = tuple[str, str, Sequence[int]]  # name, dtype, shape


def header(kinds: Iterable[ArrayKind]) -> bytes:
    """What stands before the arrays' bytes. A pure function of the kinds: equal contents are equal files."""
    described: dict[str, object] = {}
    end = 0
    for name, dtype, shape in kinds:
        start, end = end, end + prod(shape) * np.dtype(dtype).itemsize
        described[name] = {"dtype": DTYPES[dtype], "shape": list(shape), "data_offsets": [start, end]}
    text = plain_json(described)
    text += b" " * (-len(text) % 8)  # the data starts aligned
    return struct.pack("<Q", len(text)) + text


def pieces(arrays: Mapping[str, AnyArray]) -> Iterator[bytes | memoryview]:
    """The file, piece by piece."""
    yield header((name, array.dtype.name, array.shape) for name, array in arrays.items())
    for array in arrays.values():
        yield raw(array)


def parse(content: bytes) -> dict[str, AnyArray]:
    """The arrays of a whole file. The library checks every length against the file before it allocates anything."""
    try:
        arrays = load(content)
    except (SafetensorError, KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise Damaged(f"not a safetensors file: {error}") from error
    for name, array in arrays.items():
        if array.dtype.name not in DTYPES:
            raise Damaged(f"array {name[:80]!r} is of {array.dtype}")
    return arrays
