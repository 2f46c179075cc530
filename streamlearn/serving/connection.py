"""One HTTP/1.1 connection: bytes -> requests -> answers, in order, with every limit on what a client may cost.

llhttp (through httptools) reads the bytes. What is added is what keeps a server alive: headers and bodies are counted
as they come, a request must be whole in time, an answer must be ready in time, and whoever is refused gets to read why
before the connection closes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

import httptools

from streamlearn.serving.messages import HttpError, Request, Response

if TYPE_CHECKING:
    from streamlearn.serving.server import HttpServer

MOST_HEADER_BYTES = 32 * 1024
MOST_HEADERS = 100
MOST_PIPELINED = 16
REFUSED_SECONDS = 2.0  # a refused client may go on sending for this long while it reads the answer


class Connection(asyncio.Protocol):
    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._requests: deque[tuple[Request, bool]] = deque()  # whole, with whether to keep the connection after it
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._refusing = False  # the answer is out; what still comes is thrown away
        self._ended = False  # the client sends no more
        self._receiving = self._headers_done = False
        self._header_bytes = 0
        self.deadline = server.now + server.limits.idle_seconds
        self._start_message()

    def _start_message(self) -> None:
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0

    @property
    def busy(self) -> bool:
        return self._task is not None or bool(self._requests) or self._receiving

    # ------------------------------------------------------------------ the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._server.admit(self):
            self._refuse(HttpError(503, "too-many-connections", "too many connections are open", {"Retry-After": "1"}))

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        self._drained.set()
        if self._task is not None:
            self._task.cancel()

    def eof_received(self) -> bool:
        """A client may close its side and still read the answer to what it sent."""
        self._ended = True
        return self._task is not None or bool(self._requests)

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def data_received(self, data: bytes) -> None:
        if self._refusing:
            return
        if self._receiving and not self._body_bytes:
            self._header_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # not offered here: the request itself is answered as any other, and the connection closes
        except httptools.HttpParserCallbackError as error:
            refusal = error.__context__
            if not isinstance(refusal, HttpError):
                raise
            self._refuse(refusal)
            return
        except httptools.HttpParserError:
            self._refuse(HttpError(400, "bad-request", "this is not HTTP/1.1"))
            return
        if self._receiving and not self._headers_done and self._header_bytes > MOST_HEADER_BYTES:
            self._refuse(_headers_too_large())

    # ------------------------------------------------------------------ the parser's side

    def on_message_begin(self) -> None:
        self._start_message()
        self._receiving, self._headers_done, self._header_bytes = True, False, 0
        if self._task is None:
            self.deadline = self._server.now + self._server.limits.request_seconds

    def on_url(self, url: bytes) -> None:
        self._target += url
        if len(self._target) > MOST_HEADER_BYTES:
            raise _headers_too_large()

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) >= MOST_HEADERS or len(name) + len(value) > MOST_HEADER_BYTES:
            raise _headers_too_large()
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._headers_done = True
        length = self._headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > self._server.limits.max_body_bytes:
            raise self._body_too_large()
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and not self._requests and not self._task:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self._server.limits.max_body_bytes:
            raise self._body_too_large()
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._receiving = False
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(self._parser.get_method().decode("ascii"), self._target, self._headers, body)
        keep = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        self._requests.append((request, keep))
        if self._task is None:
            self._next()
        elif len(self._requests) >= MOST_PIPELINED:
            self._transport.pause_reading()

    def _body_too_large(self) -> HttpError:
        most = self._server.limits.max_body_bytes
        return HttpError(413, "body-too-large", f"the body is larger than {most:,} bytes")

    # ------------------------------------------------------------------ answering

    def _next(self) -> None:
        """Answer the oldest request that waits; the connection has one answer under way at a time."""
        request, keep = self._requests.popleft()
        self.deadline = self._server.now + self._server.limits.request_seconds
        self._task = self._server.loop.create_task(self._answer(request, keep))

    async def _answer(self, request: Request, keep: bool) -> None:
        response = await self._server.respond(request)
        keep = keep and not self._server.stopping and not self._ended
        if self._transport.is_closing():
            return
        head = response.head(self._server.date, keep and response.stream is None)
        if request.method == "HEAD":
            self._transport.write(head)
        elif response.stream is None:
            self._transport.write(head + response.body)
        else:
            keep = False
            await self._send_stream(head, response)
        self._task = None
        if not keep:
            self._transport.close()
            return
        self.deadline = self._server.now + self._server.limits.idle_seconds
        if self._requests:
            if len(self._requests) < MOST_PIPELINED:
                self._transport.resume_reading()
            self._next()

    async def _send_stream(self, head: bytes, response: Response) -> None:
        assert response.stream is not None
        self.deadline = float("inf")
        self._transport.write(head)
        async for piece in response.stream:
            self._transport.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await self._drained.wait()
        self._transport.write(b"0\r\n\r\n")

    def _refuse(self, error: HttpError) -> None:
        """Answer and close, but slowly: closing at once, with bytes unread, would take the answer with it."""
        self._refusing = True
        self._receiving = False
        self._requests.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._server.count_refusal(error)
        response = error.answer(self._target)
        self._transport.write(response.head(self._server.date, False) + response.body)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self.deadline = self._server.now + REFUSED_SECONDS

    def expired(self) -> None:
        """The deadline has passed."""
        if self._refusing:
            self._transport.abort()
        elif self._receiving and self._task is None:
            self._refuse(HttpError(408, "too-slow", "the request did not arrive in time"))
        elif self._task is not None:
            self._refuse(HttpError(503, "too-slow", "the answer was not ready in time", {"Retry-After": "1"}))
        else:
            self._transport.abort() if self._transport.get_write_buffer_size() else self._transport.close()

    def stop(self) -> None:
        """No new request: what is under way is answered, the rest is closed."""
        if not self.busy and not self._refusing:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


def _headers_too_large() -> HttpError:
    return HttpError(431, "headers-too-large", f"the headers are larger than {MOST_HEADER_BYTES:,} bytes")
