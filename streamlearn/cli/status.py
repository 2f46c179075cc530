"""`streamlearn status`: what a running daemon is doing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import typer

from streamlearn.errors import SettingsError, StreamlearnError

DEFAULT_URL = "http://127.0.0.1:8080"
SECONDS = 10.0
TOKENS = ("STREAMLEARN_HTTP__TOKEN", "STREAMLEARN_HTTP__READ_TOKEN")


class NotRunning(StreamlearnError):
    pass


def status(
    url: Annotated[
        str | None, typer.Option("--url", help=f"Where the daemon serves: {DEFAULT_URL}.", metavar="URL")
    ] = None,
    state_dir: Annotated[
        Path,
        typer.Option(
            "--state-dir",
            "-d",
            envvar="STREAMLEARN_STATE_DIR",
            help="Without --url: the daemon of this directory.",
            metavar="DIR",
        ),
    ] = Path("streamlearn-state"),
    as_json: Annotated[bool, typer.Option("--json", help="All of it, for scripts.")] = False,
) -> None:
    """Tell what a running daemon is doing: how far it is, what it knows, how well.

    A token, where one is needed, is taken from STREAMLEARN_HTTP__TOKEN or STREAMLEARN_HTTP__READ_TOKEN, or from the
    file that one of them with _FILE at its end tells the path of.
    """
    found = ask(url or _url_of(state_dir) or DEFAULT_URL, "/v1/status")
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    from rich.console import Console

    from streamlearn.daemon.display import render

    Console().print(render(found, None))


def _url_of(state_dir: Path) -> str | None:
    from streamlearn.run_folder import RunFolder, read_json

    found = read_json(RunFolder(state_dir).http)
    return None if found is None else found["url"]


def _token() -> str | None:
    """As the daemon takes it from its environment, so that one command serves inside its container, too."""
    for variable in TOKENS:
        if token := os.environ.get(variable):
            return token
        if path := os.environ.get(f"{variable}_FILE"):
            try:
                return Path(path).read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise SettingsError([f"{variable}_FILE: {path} cannot be read: {error}"]) from None
    return None


def ask(url: str, path: str) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise SettingsError([f"--url {url!r}: expected http://HOST:PORT"])
    token = _token()
    request = Request(url.rstrip("/") + path, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urlopen(request, timeout=SECONDS) as answer:
            found = json.load(answer)
    except HTTPError as error:
        hint = f"set {' or '.join(TOKENS)}" if error.code in (401, 403) else ""
        raise NotRunning(f"{url} answers {error.code} {error.reason}", hint) from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise NotRunning(
            f"no daemon answers at {url}: {getattr(reason, 'strerror', None) or reason}",
            "start one with 'streamlearn serve', or say where it is with --url",
        ) from None
    except ValueError:
        raise NotRunning(f"what answers at {url} is not streamlearn") from None
    if not isinstance(found, dict) or "state" not in found:
        raise NotRunning(f"what answers at {url} is not streamlearn")
    return found
