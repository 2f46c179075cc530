"""`streamlearn status` against a stand-in that shows what it was asked; tests/integration asks a real daemon."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from .command import streamlearn


@pytest.fixture
def url() -> Iterator[str]:
    """Tells the token that came."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"state": "%s"}' % str(self.headers["Authorization"]).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["TOKEN", "READ_TOKEN"])
def test_the_token_comes_from_the_environment_or_its_file(url: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "token").write_text("from-file\n")
    for environment, sent in (
        ({}, "None"),
        ({f"STREAMLEARN_HTTP__{name}": "direct"}, "Bearer direct"),
        ({f"STREAMLEARN_HTTP__{name}_FILE": str(tmp_path / "token")}, "Bearer from-file"),
    ):
        assert sent in streamlearn("status", "--json", "--url", url, environment=environment).stdout


def test_a_token_file_that_cannot_be_read(url: str) -> None:
    done = streamlearn("status", "--url", url, environment={"STREAMLEARN_HTTP__TOKEN_FILE": "/nowhere"})
    assert done.returncode == 2
    assert done.stderr.startswith("error: STREAMLEARN_HTTP__TOKEN_FILE: /nowhere cannot be read")
