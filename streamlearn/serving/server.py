"""The server of one process: connections, their limits, and stopping without losing an answer."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate

from streamlearn.logs import event_logger
from streamlearn.metrics.server_numbers import ServerNumbers
from streamlearn.serving.connection import Connection
from streamlearn.serving.messages import HttpError, Request, Response
from streamlearn.settings.http import HttpSettings

log = event_logger("http")

Handle = Callable[[Request], Awaitable[Response]]

SWEEP_SECONDS = 0.1
FINISH_SECONDS = 5.0  # for answers under way when the server is told to stop


class HttpServer:
    def __init__(self, limits: HttpSettings, handle: Handle, numbers: ServerNumbers) -> None:
        self.limits, self._handle, self._numbers = limits, handle, numbers
        self.connections: set[Connection] = set()
        self.stopping = False
        self.now = time.monotonic()
        self.date = formatdate(usegmt=True).encode()
        self.loop: asyncio.AbstractEventLoop

    async def start(self, listening: socket.socket) -> None:
        self.loop = asyncio.get_running_loop()
        self._server = await self.loop.create_server(lambda: Connection(self), sock=listening, backlog=2048)
        self._sweeper = self.loop.create_task(self._sweep())

    async def stop(self) -> None:
        """Requests under way are answered; then every connection closes."""
        self.stopping = True
        self._server.close()
        deadline = self.loop.time() + FINISH_SECONDS
        while self.connections and self.loop.time() < deadline:
            for connection in list(self.connections):
                connection.stop()
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.abort()
        self._sweeper.cancel()

    def admit(self, connection: Connection) -> bool:
        """False: one too many. Those that are being told so count as well, up to as many again."""
        if len(self.connections) >= 2 * self.limits.max_connections:
            connection.abort()
        self.connections.add(connection)
        return len(self.connections) <= self.limits.max_connections

    async def respond(self, request: Request) -> Response:
        begun = time.perf_counter()
        try:
            response = await self._handle(request)
        except HttpError as error:
            response = error.answer(request.raw_path)
        except Exception as error:  # whatever it is, the next request must find a server
            log.crash("a request failed", error, method=request.method, path=request.raw_path[:200])
            response = HttpError(500, "internal", "something went wrong here; the log says what").answer(
                request.raw_path
            )
        self._numbers.answered(request.route, response.status, time.perf_counter() - begun)
        return response

    def count_refusal(self, error: HttpError) -> None:
        self._numbers.refused(error.status)

    async def _sweep(self) -> None:
        """One timer for all connections: cheaper than one each, and nobody needs it exact."""
        second = 0
        while True:
            self.now = time.monotonic()
            if int(self.now) != second:
                second, self.date = int(self.now), formatdate(usegmt=True).encode()
            for connection in [open for open in self.connections if open.deadline < self.now]:
                connection.expired()
            await asyncio.sleep(SWEEP_SECONDS)
