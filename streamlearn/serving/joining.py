"""Requests that wait at the same time are answered by one forward pass."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from streamlearn.learner import Answers
from streamlearn.records.record import Array
from streamlearn.serving.messages import HttpError, away
from streamlearn.serving.model import Models, Served

AT_ONCE = 256  # inputs in one pass, unless a single request has more
SLOW_SECONDS = 0.005  # a pass that takes longer is made beside the event loop, which answers others meanwhile

Answer: TypeAlias = tuple[Served, Answers]


@dataclass(slots=True)
class _Waiting:
    inputs: Array
    version: int | None
    future: asyncio.Future[Answer]


class Joiner:
    """`ask` puts inputs in line; everything in line by the end of one turn of the event loop goes into one pass."""

    def __init__(self, models: Models, most_waiting: int, passed: Callable[[int], None] = lambda size: None) -> None:
        """`passed` is told how many inputs each pass answered."""
        self.models = models
        self.passes = self.answered = 0
        self._passed = passed
        self._most_waiting = most_waiting
        self._line: list[_Waiting] = []
        self._in_line = 0
        self._under_way = False
        self._slow = False
        # Also the only one that loads snapshots. torch counts its threads for each of ours: alike, so are the answers.
        self._beside = ThreadPoolExecutor(1, "predict", torch.set_num_threads, (torch.get_num_threads(),))
        self._loop = asyncio.get_running_loop()

    def ask(self, inputs: Array, version: int | None = None) -> asyncio.Future[Answer]:
        if self._in_line + len(inputs) > max(self._most_waiting, len(inputs)):
            raise away("busy", "too many inputs wait for the model already")
        waiting = _Waiting(inputs, version, self._loop.create_future())
        self._line.append(waiting)
        self._in_line += len(inputs)
        if not self._under_way:
            self._under_way = True
            self._loop.call_soon(self._turn)
        return waiting.future

    async def keep_fresh(self) -> None:
        """Load a newer snapshot now, so that the next one who asks need not wait for it."""
        if not self._under_way and self.models.stale():
            self._under_way = True
            await self._turn_beside()

    def _turn(self) -> None:
        if self._slow or self.models.stale():
            self._loop.create_task(self._turn_beside())
            return
        self._answer(self._take())
        self._go_on()

    async def _turn_beside(self) -> None:
        if self.models.stale():
            await self._loop.run_in_executor(self._beside, self.models.refresh)
        taken = self._take()
        if self._slow:
            results = await self._loop.run_in_executor(self._beside, self._results, taken)
            _settle(taken, results)
        else:
            self._answer(taken)
        self._go_on()

    def _go_on(self) -> None:
        if self._line:
            self._loop.call_soon(self._turn)
        else:
            self._under_way = False

    def _take(self) -> list[_Waiting]:
        """From the front of the line, as much as fits into one pass; who left meanwhile is left out."""
        taken: list[_Waiting] = []
        count = places = 0
        for waiting in self._line:
            if taken and count + len(waiting.inputs) > AT_ONCE:
                break
            places += 1
            self._in_line -= len(waiting.inputs)
            if not waiting.future.done():
                taken.append(waiting)
                count += len(waiting.inputs)
        del self._line[:places]
        return taken

    def _answer(self, taken: list[_Waiting]) -> None:
        _settle(taken, self._results(taken))

    def _results(self, taken: list[_Waiting]) -> list[Answer | HttpError]:
        begun = time.perf_counter()
        results: list[Answer | HttpError] = []
        fitting: dict[Served, list[int]] = {}
        for place, waiting in enumerate(taken):
            found = self._model_for(waiting)
            results.append(found if isinstance(found, HttpError) else (found, _NOTHING))
            if isinstance(found, Served):
                fitting.setdefault(found, []).append(place)
        for served, places in fitting.items():
            parts = [taken[place].inputs for place in places]
            together: Any = parts[0] if len(parts) == 1 else np.concatenate(parts)
            answers = served.predict(together)
            self.passes += 1
            self.answered += len(answers.labels)
            self._passed(len(answers.labels))
            start = 0
            for place, part in zip(places, parts, strict=True):
                end = start + len(part)
                results[place] = (
                    served,
                    Answers(answers.labels[start:end], answers.probabilities[start:end], answers.classes),
                )
                start = end
        self._slow = time.perf_counter() - begun > SLOW_SECONDS
        return results

    def _model_for(self, waiting: _Waiting) -> Served | HttpError:
        version = waiting.version
        served = self.models.current if version is None else self.models.kept.get(version)
        if served is None:
            if version is not None:
                there = ", ".join(map(str, self.models.kept))
                return HttpError(404, "unknown-version", f"version {version} is not served; there are {there}")
            return away("no-snapshot", "nothing has been published to answer with yet")
        inputs = waiting.inputs
        if served.shape is not None and (inputs.shape[1:] != served.shape or inputs.dtype != served.dtype):
            return wrong_shape(inputs, served)
        return served


_NOTHING = Answers([], np.zeros((0, 0), np.float32), ())


def wrong_shape(inputs: Array, served: Served) -> HttpError:
    return HttpError(
        422,
        "wrong-shape",
        f"the input is {inputs.dtype} of shape {list(inputs.shape[1:])}; "
        f"this model knows {served.dtype} of {list(served.shape or ())}",
    )


def _settle(taken: list[_Waiting], results: list[Answer | HttpError]) -> None:
    for waiting, result in zip(taken, results, strict=True):
        if waiting.future.done():
            continue  # who asked has left
        if isinstance(result, HttpError):
            waiting.future.set_exception(result)
        else:
            waiting.future.set_result(result)
