"""Several runs at once, each in a process of its own with one thread, and an end that leaves nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import FrameType

from replay_producers.runs import Result, Run, through_learner
from streamlearn.errors import StreamlearnError

# A run that failed comes back as the reason.
Outcome = tuple[Run, Result | str]


def cores() -> int:
    """Those this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def outcomes(runs: Sequence[Run], jobs: int) -> Generator[Outcome, None, None]:
    """As they end. Closing the iterator (or Ctrl-C) ends those that are under way."""
    executor = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_begin)
    waiting: dict[Future[Result], Run] = {executor.submit(one_run, run): run for run in runs}
    try:
        while waiting:
            done, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                run = waiting.pop(future)
                try:
                    yield run, future.result()
                except StreamlearnError as error:
                    yield run, str(error)
                except BrokenProcessPool:
                    yield run, "its process was ended from outside, perhaps for lack of memory (--jobs 1 needs least)"
        executor.shutdown()
    finally:
        if waiting:
            executor.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()


def _begin() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    if _under_way:
        sys.exit(130)  # through every `finally`: a daemon that was started is stopped
    os._exit(130)


_under_way: list[Run] = []  # in this process


def one_run(run: Run) -> Result:
    _under_way.append(run)
    try:
        if run.through == "learner":
            return through_learner(run)
        from replay_producers.through_daemon import through_daemon

        return through_daemon(run)
    except SystemExit:
        os._exit(130)  # the pool would take it for a result, and begin the next run
    finally:
        _under_way.clear()
