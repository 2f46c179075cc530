"""GET /: the live page. Its files come with the package and hold no data; what they show they ask for, like anybody.

The files have a digest of all of them in their path, so that browsers may keep them for ever; the page itself, which
names that path, is asked for again each time.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from streamlearn.serving.messages import HttpError, Request, Response

FOLDER = files("streamlearn.serving") / "page"
INDEX = "index.html"
TYPES: Mapping[str, bytes] = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
# Nothing from elsewhere and nothing inline: what somebody writes into a label cannot become a script. Pictures that
# need a token are fetched by the script and shown from its memory (blob:).
SECURITY: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
CHECK_EACH_TIME = "no-cache"
FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class File:
    content_type: bytes
    content: bytes
    zipped: bytes


class Page:
    def __init__(self) -> None:
        contents = {file.name: file.read_bytes() for file in FOLDER.iterdir() if file.name.rpartition(".")[2] in TYPES}
        whole = hashlib.sha256()
        for name in sorted(contents):
            whole.update(name.encode() + b"\0" + contents[name] + b"\0")
        self.digest = whole.hexdigest()[:16]
        contents[INDEX] = contents[INDEX].replace(b"{digest}", self.digest.encode())
        self._files = {
            name: File(TYPES[name.rpartition(".")[2]], content, gzip.compress(content, mtime=0))
            for name, content in contents.items()
        }

    async def index(self, request: Request) -> Response:
        return self._answer(request, self._files[INDEX], CHECK_EACH_TIME)

    async def file(self, request: Request) -> Response:
        found = self._files.get(request.places["file"])
        if found is None or request.places["digest"] != self.digest:
            raise HttpError(404, "unknown-path", "the page has no such file; load / again")
        return self._answer(request, found, FOR_EVER)

    def _answer(self, request: Request, file: File, kept: str) -> Response:
        tag = f'"{self.digest}"'
        headers = {**SECURITY, "Cache-Control": kept, "ETag": tag, "Vary": "Accept-Encoding"}
        if tag.encode() in request.headers.get(b"if-none-match", b""):
            return Response(b"", 304, b"", headers)
        if b"gzip" not in request.headers.get(b"accept-encoding", b""):
            return Response(file.content, content_type=file.content_type, headers=headers)
        return Response(file.zipped, content_type=file.content_type, headers={**headers, "Content-Encoding": "gzip"})
