"""Records from HTTP onto the stream. What waits at the same time is made durable together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from streamlearn.errors import StreamError
from streamlearn.records.record import Record
from streamlearn.serving.messages import away
from streamlearn.settings.daemon import Settings
from streamlearn.stream.interface import Stream
from streamlearn.stream.url import open_stream

MOST_WAITING = 10_000


class Appender:
    """One thread has the stream to itself; nothing is contacted before the first record."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stream: Stream | None = None
        self._thread = ThreadPoolExecutor(1, "append")
        self._waiting: list[tuple[Sequence[Record], asyncio.Future[None]]] = []
        self._under_way = False

    async def append(self, records: Sequence[Record]) -> None:
        """Returns when they are durable on the stream; 503 if the stream does not take them."""
        if sum(len(waiting) for waiting, _ in self._waiting) + len(records) > max(MOST_WAITING, len(records)):
            raise away("busy", "too many examples wait to be written already")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((records, done))
        if not self._under_way:
            self._under_way = True
            asyncio.get_running_loop().create_task(self._work())
        await done

    async def _work(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            together = [record for records, _ in taken for record in records]
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._append, together)
            except StreamError as error:
                refusal = away("stream-away", error.message, 5)
                for _, done in taken:
                    if not done.done():
                        done.set_exception(refusal)
            else:
                for _, done in taken:
                    if not done.done():
                        done.set_result(None)
        self._under_way = False

    def _append(self, records: Sequence[Record]) -> None:
        if self._stream is None:
            self._stream = open_stream(self._settings.stream_url, self._settings.stream)
        self._stream.append(records)

    def close(self) -> None:
        self._thread.shutdown()
        if self._stream is not None:
            self._stream.close()
