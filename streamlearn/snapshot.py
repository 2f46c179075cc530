"""What passes from the learner to the servers: one file with all that an answer needs, replaced as a whole.

    snapshots/current.safetensors       arrays; everything else is JSON in its metadata

It holds no example: neither the buffer nor pending records are in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from streamlearn import disk
from streamlearn.errors import StateIncompatible

FORMAT = 1
NAME = "current.safetensors"
_ARRAY = "array:"  # what stands in the JSON in place of an array

Identity = tuple[int, int, int]


class Unreadable(Exception):
    """There is a file, but it is no snapshot, or not a whole one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    version: int  # counts up for as long as the state directory lives, over every crash
    examples_seen: int
    published_at: float  # seconds since 1970
    position: Any  # in the stream, as plain values
    learner: Mapping[str, Any]  # Learner.state_dict without its buffer


def folder_of(state_dir: Path) -> Path:
    return state_dir / "snapshots"


def publish(folder: Path, snapshot: Snapshot) -> None:
    """Whoever looks sees the one before or this one, whole. Raises OSError when the disk does not take it."""
    arrays: dict[str, Any] = {}
    facts = {
        "format": FORMAT,
        "version": snapshot.version,
        "examples_seen": snapshot.examples_seen,
        "published_at": snapshot.published_at,
        "position": snapshot.position,
        "learner": _without_arrays(snapshot.learner, "learner", arrays),
    }
    disk.make_directory(folder)
    disk.write_file(folder / NAME, [save(arrays, {"streamlearn": json.dumps(facts, ensure_ascii=False)})])


def identity(folder: Path) -> Identity | None:
    """Changes with every snapshot published; None: there is none. Cheap enough to ask before every answer."""
    try:
        found = os.stat(folder / NAME)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read(folder: Path) -> Snapshot:
    """The newest one. The file is mapped: only what is used is read from the disk."""
    try:
        with safe_open(folder / NAME, framework="numpy") as file:
            facts = _facts(file)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a dict
            learner = _with_arrays(facts["learner"], arrays)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise Unreadable(f"{folder / NAME}: {error}") from error
    return Snapshot(facts["version"], facts["examples_seen"], facts["published_at"], facts["position"], learner)


def newest_version(folder: Path) -> int:
    """0 if there is none."""
    try:
        with safe_open(folder / NAME, framework="numpy") as file:
            version = _facts(file)["version"]
    except FileNotFoundError:
        return 0
    except (SafetensorError, KeyError, ValueError) as error:
        raise Unreadable(f"{folder / NAME}: {error}") from error
    return int(version)


def _facts(file: Any) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(file.metadata()["streamlearn"])
    if facts["format"] > FORMAT:
        raise StateIncompatible(f"the snapshot has format {facts['format']}, this version reads up to {FORMAT}")
    return facts


def _without_arrays(node: Any, name: str, arrays: dict[str, Any]) -> Any:
    if isinstance(node, np.ndarray):
        arrays[name] = np.asarray(node, order="C")
        return _ARRAY + name
    if isinstance(node, Mapping):
        return {key: _without_arrays(value, f"{name}/{key}", arrays) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_without_arrays(value, f"{name}/{place}", arrays) for place, value in enumerate(node)]
    return node


def _with_arrays(node: Any, arrays: Mapping[str, Any], name: str = "learner") -> Any:
    if isinstance(node, dict):
        return {key: _with_arrays(value, arrays, f"{name}/{key}") for key, value in node.items()}
    if isinstance(node, list):
        return [_with_arrays(value, arrays, f"{name}/{place}") for place, value in enumerate(node)]
    # The place decides, not the text alone: a class may well be called "array:x".
    return arrays[name] if node == _ARRAY + name and name in arrays else node
