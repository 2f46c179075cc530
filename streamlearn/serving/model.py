"""The models that are served: the newest snapshot and a few before it."""

from __future__ import annotations

import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from streamlearn import snapshot
from streamlearn.errors import StateIncompatible
from streamlearn.learner import Answers, Learner
from streamlearn.logs import event_logger
from streamlearn.records.record import Array
from streamlearn.settings.learner import LearnerSettings

log = event_logger("serving")

KEPT = 4  # versions that can be asked for by number: a client that read the newest one's must still find it
KEPT_BYTES = 64 << 20  # of a network; of larger ones only the newest is kept


class Served:
    """One snapshot, ready to answer."""

    def __init__(self, found: snapshot.Snapshot) -> None:
        self.version, self.examples_seen = found.version, found.examples_seen
        self.published_at = found.published_at
        self.bias_version: int = found.learner["bias"]["version"]
        # The weights' file has been read into the network long ago; the settings are those of the learner otherwise.
        settings = LearnerSettings(**found.learner["settings"] | {"weights": None, "freeze": False})
        settings = settings.model_copy(update={"freeze": found.learner["settings"]["freeze"]})
        self._learner = Learner(settings)
        self._learner.load_state_dict(found.learner)
        self.classes = tuple(self._learner.classes.names[output] for output in self._learner.classes.known)
        method = self._learner.method
        self.shape: tuple[int, ...] | None = method.inputs.shape if method else None
        self.dtype: np.dtype[Any] | None = method.inputs.dtype if method else None
        self.bytes = sum(array.nbytes for array in (found.learner["network"] or {}).values())

    def predict(self, inputs: Array) -> Answers:
        return self._learner.predict(inputs)

    def inputs(self) -> dict[str, Any] | None:
        """What it takes; None before anything was learned."""
        return None if self.shape is None else {"shape": list(self.shape), "dtype": str(self.dtype)}

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "examples_seen": self.examples_seen,
            "bias_version": self.bias_version,
            "published_at": self.published_at,
            "age_seconds": max(0.0, round(time.time() - self.published_at, 3)),
        }


class Models:
    """Follows a folder of snapshots. `stale` and `refresh` may be called from different threads, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.current: Served | None = None
        self.kept: OrderedDict[int, Served] = OrderedDict()
        self._folder = folder
        self._identity: snapshot.Identity | None = None

    def stale(self) -> bool:
        """Is there a newer one? Asked before every answer, so that all servers of a folder change over at once."""
        try:
            return snapshot.identity(self._folder) != self._identity
        except OSError:
            return False  # a shared folder that does not answer: what is here is served

    def refresh(self) -> None:
        """Load what is there now. What cannot be loaded changes nothing, and is not tried again."""
        identity = snapshot.identity(self._folder)
        if identity is None or identity == self._identity:
            return
        try:
            found = snapshot.read(self._folder)
            # A learner that lost its folder counts anew; whoever asks here must never see the number go back.
            if self.current is not None and found.version <= self.current.version:
                log.warning("a snapshot is older than the one that is served", version=found.version)
            else:
                self._serve(Served(found))
        except (snapshot.Unreadable, StateIncompatible, ValidationError, OSError) as error:
            log.error("a snapshot cannot be served; the one before is", error=str(error)[:500])
        self._identity = identity

    def _serve(self, served: Served) -> None:
        self.kept[served.version] = self.current = served
        while len(self.kept) > (KEPT if served.bytes <= KEPT_BYTES else 1):
            self.kept.popitem(last=False)
