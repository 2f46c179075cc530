"""From the newest checkpoint that is whole back to a running state."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from streamlearn.checkpoint.store import CheckpointStore, Loaded
from streamlearn.daemon.core import Core
from streamlearn.logs import event_logger

log = event_logger("learner")


def restore(store: CheckpointStore, core: Core) -> Loaded | None:
    """None: nothing has been saved yet."""
    loaded = store.load()
    if loaded is None:
        return None
    for skipped in loaded.skipped:
        log.warning("a damaged checkpoint was passed over", number=skipped.number, why=skipped.reason)
    tree = loaded.tree
    if tree["learner"]["buffer"] is not None:
        tree["learner"]["buffer"]["inputs"] = _Readable(tree["learner"]["buffer"]["inputs"])
    core.load_state_dict(tree)
    changed = _changed(tree["learner"]["settings"], core.settings.learner.model_dump(mode="json"))
    if tree["threads"] != torch.get_num_threads() or tree["torch"] != torch.__version__:
        changed["arithmetic"] = f"torch {tree['torch']} with {tree['threads']} threads before"
    if changed:
        log.info("settings changed since the checkpoint", **changed)
    core.begin_anew()
    log.info("restored", checkpoint=loaded.info.number, examples=loaded.info.examples_seen)
    return loaded


class _Readable:
    """Rows of a checkpoint as the buffer wants them: by slots in square brackets."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __getitem__(self, slots: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
        return self._rows.read(slots)


def _changed(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    names = sorted(name for name in now if name in before and before[name] != now[name])
    return {name: f"{before[name]} -> {now[name]}" for name in names}
