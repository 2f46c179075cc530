"""The learner's ear: requests come in through a Unix socket and wait until the loop is between two records.

One JSON object a line, in and out: {"do": "status"} -> {"answer": ...} or {"error": {"status", "code", "message"}}.
{"do": "events"} is answered with a line for every event from then on. A thread of its own moves the lines; nothing of
the learner is touched there.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlearn.daemon.events import Events
from streamlearn.logs import event_logger
from streamlearn.run_folder import listen

log = event_logger("control")

LONGEST_LINE = 64 * 1024
SLOWEST_LISTENER = 1000  # events that may wait for one subscriber before it misses some

Reply = Callable[[dict[str, Any]], None]


class Control:
    def __init__(self, path: Path, events: Events) -> None:
        self.waiting: deque[tuple[dict[str, Any], Reply]] = deque()
        self._path, self._events = path, events
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Whoever still waits finds the connection closed."""
        if not self._thread.ident:
            return  # never started
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._converse, sock=listen(self._path), limit=LONGEST_LINE)
        try:
            await self._stopping.wait()
        finally:
            server.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                request = json.loads(line)
                if request["do"] == "events":
                    await self._tell_events(request, reader, writer)
                    return
                writer.write(json.dumps(await self._answer(request)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the server on the other side is gone, or we are stopping
        except (ValueError, KeyError, TypeError) as error:
            log.warning("a request on the control socket was not understood", error=str(error))
        finally:
            writer.close()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()

        def settle(content: dict[str, Any]) -> None:
            if not answer.done():  # who asked may have left
                answer.set_result(content)

        def reply(content: dict[str, Any]) -> None:
            self._loop.call_soon_threadsafe(settle, content)

        self.waiting.append((request, reply))
        return await answer

    async def _tell_events(
        self, request: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

        def put(event: dict[str, Any]) -> None:
            if queue.qsize() < SLOWEST_LISTENER:
                queue.put_nowait(event)

        def listener(event: dict[str, Any]) -> None:
            self._loop.call_soon_threadsafe(put, event)

        self._events.subscribe(listener, request.get("after"))
        gone = asyncio.ensure_future(reader.read(1))  # a subscriber says no more: this ends when it leaves
        try:
            while not gone.done():
                coming = asyncio.ensure_future(queue.get())
                await asyncio.wait({coming, gone}, return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    writer.write(json.dumps(coming.result()).encode() + b"\n")
                    await writer.drain()
                else:
                    coming.cancel()
        finally:
            gone.cancel()
            self._events.unsubscribe(listener)
