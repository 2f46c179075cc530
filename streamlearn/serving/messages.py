"""A request, what it is answered with, and the error that becomes an answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

from pydantic_core import from_json

JSON = b"application/json"


class HttpError(Exception):
    """4xx: the caller's fault, said so that it can be mended. 5xx only where trying again later helps."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}

    def answer(self, target: bytes = b"") -> Response:
        """In the shape that clients of that path know: the inference protocol has an error that is a text."""
        content: dict[str, Any] = {"error": {"code": self.code, "message": self.message}}
        if target.startswith(b"/v2"):
            content = {"error": self.message, "code": self.code}
        return json_answer(content, self.status, self.headers)


def away(code: str, message: str, seconds: int = 1) -> HttpError:
    return HttpError(503, code, message, {"Retry-After": str(seconds)})


class Request:
    def __init__(self, method: str, target: bytes, headers: dict[bytes, bytes], body: bytes) -> None:
        self.method, self.headers, self.body = method, headers, body
        path, _, self._query = target.partition(b"?")
        self.raw_path = path
        self.places: Mapping[str, str] = {}  # what the braces of the route stand for
        self.route = 0  # its place among those that are counted; 0: none

    @cached_property
    def path(self) -> str:
        try:
            return unquote(self.raw_path.decode("ascii"), errors="strict")
        except UnicodeDecodeError:
            raise HttpError(400, "bad-path", "the path is not UTF-8, percent-encoded") from None

    @cached_property
    def query(self) -> dict[str, str]:
        try:
            pairs = parse_qsl(self._query.decode("ascii"), True, errors="strict", max_num_fields=50)
        except (UnicodeDecodeError, ValueError):
            raise HttpError(400, "bad-query", "the query cannot be read") from None
        return dict(pairs)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number from the query."""
        text = self.query.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) <= 18 and least <= int(text) <= most):
            raise HttpError(422, "bad-query", f"{name} must be a whole number from {least} to {most}")
        return int(text)

    def header(self, name: bytes) -> str | None:
        raw = self.headers.get(name)
        if raw is None:
            return None
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise HttpError(400, "bad-header", f"{name.decode()} is not UTF-8") from None

    @property
    def content_type(self) -> str:
        """Without its parameters; "" if there is none."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("ascii", "replace")

    def json(self) -> dict[str, Any]:
        return json_object(self.body)


def json_object(data: bytes | memoryview) -> dict[str, Any]:
    """pydantic's parser: bounded in depth and in the size of numbers, and it knows no NaN."""
    try:
        content = from_json(bytes(data), allow_inf_nan=False)
    except ValueError as error:
        raise HttpError(400, "bad-json", f"the body is not JSON: {str(error)[:120]}") from None
    if not isinstance(content, dict):
        raise HttpError(422, "bad-json", "the body must be a JSON object")
    return content


@dataclass(slots=True)
class Response:
    body: bytes = b""
    status: int = 200
    content_type: bytes = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None  # instead of a body: as it comes, until the client leaves

    def head(self, date: bytes, keep_alive: bool) -> bytes:
        length = b"transfer-encoding: chunked" if self.stream else b"content-length: %d" % len(self.body)
        parts = [_STATUS[self.status], b"date: ", date, b"\r\n"]
        if self.status not in (204, 304):  # there it would be the length of what is not sent
            parts += [length, b"\r\n"]
        if self.content_type:
            parts += [b"content-type: ", self.content_type, b"\r\n"]
        parts += [f"{name.lower()}: {value}\r\n".encode("latin-1") for name, value in self.headers.items()]
        if not keep_alive:
            parts.append(b"connection: close\r\n")
        parts.append(b"\r\n")
        return b"".join(parts)


_STATUS = {status.value: b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}


def json_answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        json.dumps(content, ensure_ascii=False).encode("utf-8", "backslashreplace"), status, JSON, headers or {}
    )
