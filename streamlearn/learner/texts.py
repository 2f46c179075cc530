"""Many short texts as two arrays, so that a state holds no long list of strings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

NONE = -1


def pack(texts: Iterable[str | None]) -> dict[str, NDArray[np.uint8] | NDArray[np.int32]]:
    encoded = [None if text is None else text.encode() for text in texts]
    lengths = [NONE if data is None else len(data) for data in encoded]
    joined = b"".join(data for data in encoded if data)
    return {"bytes": np.frombuffer(joined, np.uint8), "lengths": np.array(lengths, np.int32)}


def unpack(packed: dict[str, NDArray[np.uint8] | NDArray[np.int32]]) -> list[str | None]:
    data, texts, start = packed["bytes"].tobytes(), [], 0
    for length in packed["lengths"].tolist():
        texts.append(None if length == NONE else data[start : start + length].decode())
        start += max(length, 0)
    return texts
