"""A child of the supervisor, seen from both sides.

The parent writes one line with the settings to the child's standard input and keeps that pipe open: when it closes,
the parent is gone, and the child ends at once. Through another pipe the child tells what the parent should know, one
JSON object a line. What people should know goes to standard output and error, as ever.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, NoReturn

from streamlearn import logs
from streamlearn.settings.daemon import Settings
from streamlearn.settings.handover import from_line, to_line
from streamlearn.settings.tree import secret_values


class Child:
    """Started at once. `told` is what it has said so far, merged."""

    def __init__(self, module: str, settings: Settings, descriptors: tuple[int, ...] = (), **more: Any) -> None:
        self.started_at = time.monotonic()
        self.told: dict[str, Any] = {}
        self.more = more
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            pass_fds=(*descriptors, writing),
            process_group=0,  # Ctrl-C is for the supervisor, which knows the order in which to stop
        )
        os.close(writing)
        self._heard = os.fdopen(reading, "rb")
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self._write(to_line(settings, tell=writing, **more))

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, word: str) -> None:
        self._write(word.encode() + b"\n")

    def code(self) -> int | None:
        """How it ended; None: it runs. A signal is negative."""
        code = self._process.poll()
        if code is not None:
            self._reader.join(1.0)  # its last words
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        return code

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def kill_at_once(self) -> None:
        """For signal handlers: takes no lock that the code they interrupted may hold, as `poll` and `wait` do."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died: `code` says so
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def _listen(self) -> None:
        with self._heard as lines:
            for line in lines:
                self.told |= json.loads(line)


def leave(code: int) -> NoReturn:
    """Everything is saved and closed: to take torch apart piece by piece would only cost seconds."""
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)


class Parent:
    """In the child: read the settings, then listen on. `on_word` is called from a thread of its own."""

    def __init__(self) -> None:
        _die_with_the_parent()
        self._input: IO[bytes] = os.fdopen(os.dup(0), "rb")
        self.settings, self.more = from_line(self._input.readline())
        os.set_inheritable(self.more["tell"], False)
        self._output = os.fdopen(self.more["tell"], "wb", 0)
        log = self.settings.log
        logs.configure(log.format, log.level, secrets=secret_values(self.settings))

    def listen(self, on_word: Callable[[str], None]) -> None:
        def run() -> None:
            for line in self._input:
                on_word(line.decode().strip())
            os._exit(1)  # as safe as a power cut, and the state directory is free at once

        threading.Thread(target=run, name="parent", daemon=True).start()

    def tell(self, **facts: Any) -> None:
        with suppress(OSError):  # the parent is gone, and so will we be
            self._output.write(json.dumps(facts).encode() + b"\n")


def _die_with_the_parent() -> None:
    """Linux does it even while this process imports something and hears nothing; elsewhere the pipe has to do."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
