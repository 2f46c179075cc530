"""Some data sets are published as pickles. This reads those, and refuses every other kind of pickle.

A pickle may name any function of any module and have it called. Here only what builds numpy arrays can be named, so a
file made with bad intent is refused before anything of it runs.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from replay_producers.datasets.files import damaged, read_bytes

_rebuild_array = np.zeros(0).__reduce__()[0]  # numpy's own; its module was renamed between versions


def _latin1(text: str, codec: str) -> bytes:
    """What Python 3 writes for bytes in the old protocols."""
    if codec != "latin1":
        raise pickle.UnpicklingError(f"it wants the codec {codec!r}")
    return text.encode("latin1")


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _rebuild_array,
    ("numpy._core.multiarray", "_reconstruct"): _rebuild_array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no picture needs") from None


def read_pickle(path: Path, hint: str) -> Any:
    content = read_bytes(path, hint)
    try:
        # latin1: what Python 2 called str is bytes for pictures and ASCII for names, and survives as either.
        return _ArraysOnly(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a broken pickle raises anything at all
        raise damaged(path, f"it cannot be unpickled: {error}", hint) from error
