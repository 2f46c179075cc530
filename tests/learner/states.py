"""Comparing states bit for bit."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from streamlearn import Learner


def digest(state: Any) -> str:
    """Equal states, equal digests: arrays by dtype, shape and bytes, plain values by their text."""
    sha = hashlib.sha256()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                assert isinstance(key, str)
                sha.update(f"{key}:".encode())
                walk(value[key])
        elif isinstance(value, list):
            sha.update(b"[")
            for item in value:
                walk(item)
        elif isinstance(value, np.ndarray):
            assert value.dtype != object, "arrays of plain numbers only"
            sha.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
        else:
            assert value is None or isinstance(value, bool | int | float | str), type(value)
            sha.update(repr(value).encode())

    walk(state)
    return sha.hexdigest()


def state_of(learner: Learner) -> str:
    return digest(learner.state_dict())
