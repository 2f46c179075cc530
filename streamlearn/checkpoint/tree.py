"""A state as the parts have it (nested dicts) and as a manifest has it (JSON, with the arrays elsewhere).

Leaves are None, bool, int of any size, finite float, str, lists of those, numpy arrays of bool, ints or floats, and
`Rows` for an array too large to hand over as a copy. What JSON cannot say becomes a dict with one key:

    {"$array": "/learner/model/weight"}    the array of that name        {"$int": "-1f"}   an int beyond 64 bits, in hex
    {"$rows": "/learner/buffer/inputs"}    the rows of that name         a key "$x" of the user's own is written "$$x"

A name is the JSON pointer to the leaf (RFC 6901), so no two leaves share one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streamlearn.checkpoint.damage import Damaged

Tree: TypeAlias = dict[str, Any]
AnyArray: TypeAlias = NDArray[Any]

DTYPES = {  # the numpy name of each kind of array that can be kept, and its name in safetensors
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
}


@runtime_checkable
class Rows(Protocol):
    """A large array whose rows change one at a time; row i is the same as long as keys[i] is."""

    @property
    def keys(self) -> NDArray[np.int64]:
        """The content number of each row when it was frozen; -1: an empty row."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def row_shape(self) -> tuple[int, ...]: ...

    def read(self, rows: NDArray[np.int64]) -> AnyArray:
        """Those rows as they were when frozen. Called from the thread that saves."""

    def release(self) -> None:
        """Called exactly once when the save ends, well or not."""


@dataclass
class Flat:
    """A tree taken apart: what goes into the manifest, and what goes into files of its own."""

    values: Any = None
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)


def flatten(tree: Tree) -> Flat:
    flat = Flat()
    flat.values = _flatten(tree, "", flat)
    return flat


def _flatten(node: Any, name: str, flat: Flat) -> Any:
    if isinstance(node, np.generic):
        node = node.item()  # a numpy scalar comes back as the Python number it stands for
    if node is None or isinstance(node, bool | str):
        return node
    if isinstance(node, int):
        return node if -(2**63) <= node < 2**63 else {"$int": f"{node:x}"}
    if isinstance(node, float):
        if not math.isfinite(node):
            raise ValueError(f"{name}: {node} cannot be kept as a plain value")
        return float(node)
    if isinstance(node, list):
        return [_flatten(child, f"{name}/{index}", flat) for index, child in enumerate(node)]
    if isinstance(node, dict):
        return {_escaped(key, name): _flatten(node[key], f"{name}/{_pointer(key)}", flat) for key in node}
    if isinstance(node, np.ndarray):
        if node.dtype.name not in DTYPES:
            raise TypeError(f"{name}: arrays of {node.dtype} cannot be kept")
        flat.arrays[name] = node
        return {"$array": name}
    if isinstance(node, Rows):
        if node.dtype.name not in DTYPES:
            raise TypeError(f"{name}: rows of {node.dtype} cannot be kept")
        flat.rows[name] = node
        return {"$rows": name}
    raise TypeError(f"{name}: a {type(node).__name__} cannot be kept")


def _escaped(key: object, name: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{name}: the key {key!r} is not a str")
    key.encode()  # names end up in files that are UTF-8: a lone surrogate is refused here
    return f"${key}" if key.startswith("$") else key


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def unflatten(values: Any, arrays: Mapping[str, AnyArray], rows: Mapping[str, Rows]) -> Any:
    """The tree again. `values` may come from anywhere: what makes no sense is Damaged."""
    if isinstance(values, list):
        return [unflatten(child, arrays, rows) for child in values]
    if not isinstance(values, dict):
        return values
    if len(values) == 1:
        ((tag, content),) = values.items()
        if tag in ("$array", "$rows", "$int"):
            try:
                return int(content, 16) if tag == "$int" else (arrays if tag == "$array" else rows)[content]
            except (KeyError, TypeError, ValueError) as error:
                raise Damaged(f"{tag} {str(content)[:80]!r} does not exist") from error
    return {_unescaped(key): unflatten(child, arrays, rows) for key, child in values.items()}


def _unescaped(key: str) -> str:
    if not key.startswith("$"):
        return key
    if not key.startswith("$$"):
        raise Damaged(f"unknown tag {key[:80]!r}")
    return key[1:]


def raw(array: AnyArray) -> memoryview:
    """The array's bytes, C order and little endian, copied only if they are not so already."""
    ordered = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    return ordered.reshape(-1).view(np.uint8).data


def plain_json(value: Any, *, sort_keys: bool = False) -> bytes:
    """ASCII without spaces; floats in the shortest form that reads back as the same bits."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, sort_keys=sort_keys).encode("ascii")


def state_sha256(values: Any, arrays: Mapping[str, AnyArray], rows: Mapping[str, tuple[Any, str]]) -> str:
    """The digest of a whole state: equal states, equal digests, however and wherever they were saved.

    It is the SHA-256 of the JSON (keys sorted, ASCII, no spaces) of

        {"arrays": {name: [dtype, shape, SHA-256 of the bytes]},
         "rows":   {name: [dtype, shape of a row, number of rows, SHA-256 of the row digests one after the other]},
         "values": the tree as described at the top of this module}

    where bytes are C order and little endian, dtypes are numpy's names ("uint8"), the digest of a row is the SHA-256
    of its bytes, and that of an empty row is 32 zero bytes. Not part of it: content numbers, where rows are stored,
    the checkpoint's number, time and position in the manifest. So two checkpoints can be compared by anybody with
    their arrays and a SHA-256, and a save has to hash only the rows that changed.
    """
    described = {
        "arrays": {
            name: [array.dtype.name, list(array.shape), hashlib.sha256(raw(array)).hexdigest()]
            for name, array in arrays.items()
        },
        "rows": {name: [*kind, digest] for name, (kind, digest) in rows.items()},
        "values": values,
    }
    return hashlib.sha256(plain_json(described, sort_keys=True)).hexdigest()
