"""The manifest: the file whose appearance makes a checkpoint exist. It names every other file by its SHA-256.

    {"manifest":{"format":1, ...},"sha256":"<of the bytes of the manifest>"}

This envelope, and that `format` is in it, stays the same in all formats, so that an old streamlearn can say that a
file is too new for it. The files' paths are never in it: they follow from the number and the digests, so a manifest
from elsewhere cannot point outside the directory.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from math import prod
from typing import Any, NoReturn

import numpy as np

from streamlearn.checkpoint.damage import Damaged
from streamlearn.checkpoint.shards import RowKind, Shard
from streamlearn.checkpoint.tree import DTYPES, plain_json
from streamlearn.errors import StateIncompatible
from streamlearn.version import VERSION

FORMAT = 1
MANIFEST_BYTES = 64 << 20  # a manifest beyond this is neither written nor read
_ROW_BYTES = 1 << 30
_START, _MIDDLE, _END = b'{"manifest":', b',"sha256":"', b'"}\n'
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredArrays:
    """The file with all arrays but the rows."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class StoredIndex:
    """One large array: what its rows are, and the shards they are in."""

    kind: RowKind
    slots: int
    shards: tuple[Shard, ...]


@dataclass(frozen=True)
class Manifest:
    number: int
    created_at: float  # seconds since 1970
    examples_seen: int
    position: Any  # a plain value, for whoever must know which records are still needed
    seconds: float
    bytes_written: int  # without the manifest itself
    sha256: str  # of the whole state
    libraries: dict[str, str]
    values: Any
    arrays: StoredArrays
    rows: dict[str, StoredIndex]
    format: int = FORMAT

    def shards(self) -> dict[Shard, RowKind]:
        return {shard: stored.kind for stored in self.rows.values() for shard in stored.shards}

    @property
    def bytes_total(self) -> int:
        """Of everything it needs, shared or not, without the manifest itself."""
        return self.arrays.bytes + sum(shard.size(kind) for shard, kind in self.shards().items())


@cache
def libraries() -> dict[str, str]:
    found = {"python": platform.python_version(), "streamlearn": VERSION}
    for name in ("numpy", "safetensors", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def encode(manifest: Manifest) -> bytes:
    body = plain_json(
        {
            "format": manifest.format,
            "number": manifest.number,
            "created_at": manifest.created_at,
            "examples_seen": manifest.examples_seen,
            "position": manifest.position,
            "seconds": manifest.seconds,
            "bytes_written": manifest.bytes_written,
            "state_sha256": manifest.sha256,
            "libraries": manifest.libraries,
            "arrays": {"sha256": manifest.arrays.sha256, "bytes": manifest.arrays.bytes},
            "rows": {
                name: {
                    "dtype": stored.kind.dtype,
                    "row_shape": list(stored.kind.shape),
                    "slots": stored.slots,
                    "shards": [[shard.sha256, shard.rows] for shard in stored.shards],
                }
                for name, stored in manifest.rows.items()
            },
            "values": manifest.values,
        }
    )
    content = _START + body + _MIDDLE + hashlib.sha256(body).hexdigest().encode() + _END
    if len(content) > MANIFEST_BYTES:
        raise ValueError(f"{len(body)} bytes of plain values: more than a manifest may hold, use arrays")
    try:
        decode(content, manifest.number)
    except Damaged as error:  # better a save that fails than a checkpoint that nobody can load
        raise ValueError(f"this state could not be read back: {error}") from error
    return content


def decode(content: bytes, number: int) -> Manifest:
    """From anywhere: what makes no sense is Damaged, what is too new is StateIncompatible."""
    cut = len(content) - len(_MIDDLE) - 64 - len(_END)
    body = content[len(_START) : cut]
    if content != _START + body + _MIDDLE + hashlib.sha256(body).hexdigest().encode() + _END:
        raise Damaged("the manifest has changed since it was written")
    try:
        read = json.loads(body, parse_constant=_refuse)
        found = _whole(read["format"], 1)
        if found > FORMAT:
            raise StateIncompatible(
                f"checkpoint {number} has format {found}, this streamlearn reads up to format {FORMAT}",
                hint="use the streamlearn that wrote it, or a newer one",
            )
        if read["number"] != number:
            raise Damaged(f"the manifest belongs to checkpoint {str(read['number'])[:20]}")
        return Manifest(
            number=number,
            created_at=float(read["created_at"]),
            examples_seen=_whole(read["examples_seen"], 0),
            position=read["position"],
            seconds=float(read["seconds"]),
            bytes_written=_whole(read["bytes_written"], 0),
            sha256=_sha256(read["state_sha256"]),
            libraries={str(name): str(version) for name, version in read["libraries"].items()},
            values=read["values"],
            arrays=StoredArrays(_sha256(read["arrays"]["sha256"]), _whole(read["arrays"]["bytes"], 0)),
            rows={name: _index(stored) for name, stored in read["rows"].items()},
            format=found,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged(f"the manifest makes no sense: {type(error).__name__} {str(error)[:200]}") from error


def _index(stored: Any) -> StoredIndex:
    dtype, shape = stored["dtype"], tuple(_whole(length, 0) for length in stored["row_shape"])
    if dtype not in DTYPES or prod(shape) * np.dtype(dtype).itemsize > _ROW_BYTES or len(shape) > 8:
        raise ValueError(f"rows of {str(dtype)[:20]} {str(shape)[:80]}")
    shards = tuple(Shard(_sha256(digest), _whole(rows, 1)) for digest, rows in stored["shards"])
    return StoredIndex(RowKind(dtype, shape), _whole(stored["slots"], 0), shards)


def _whole(value: Any, least: int) -> int:
    if type(value) is not int or not least <= value < 2**63:
        raise ValueError(f"{str(value)[:20]!r} is not a number of things")
    return value


def _sha256(value: Any) -> str:
    if type(value) is not str or not _SHA256.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} is not a SHA-256")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")
