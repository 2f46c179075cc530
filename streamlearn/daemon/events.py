"""The newest things that happened, numbered, for whoever subscribes. Bounded: who is too slow misses some."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from operator import itemgetter
from typing import Any

KEPT = 100  # of each kind, so that the frequent ones push out none of the rare ones


class Events:
    """Added to by the learner's threads; `listener` is called with each, from the thread that added it."""

    def __init__(self) -> None:
        self._recent: dict[str, deque[dict[str, Any]]] = {}  # by kind
        self._number = int(time.time() * 1000)  # goes up over restarts, so that "after" means the same to everybody
        self._lock = threading.Lock()
        self._listeners: list[Callable[[dict[str, Any]], None]] = []

    def add(self, kind: str, fields: dict[str, Any]) -> None:
        with self._lock:
            self._number += 1
            event = {"number": self._number, "at": time.time(), "event": kind, "data": fields}
            self._recent.setdefault(kind, deque(maxlen=KEPT)).append(event)
            listeners = list(self._listeners)
        for listener in listeners:
            listener(event)

    def subscribe(self, listener: Callable[[dict[str, Any]], None], after: int | None) -> None:
        """`after`: the number of the last event seen, to be told what was missed; None: only what comes."""
        with self._lock:
            recent = [event for kind in self._recent.values() for event in kind]
            missed = [event for event in recent if after is not None and event["number"] > after]
            self._listeners.append(listener)
        for event in sorted(missed, key=itemgetter("number")):
            listener(event)

    def unsubscribe(self, listener: Callable[[dict[str, Any]], None]) -> None:
        with self._lock:
            self._listeners.remove(listener)
