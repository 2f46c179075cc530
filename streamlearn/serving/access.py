"""Who may do what. Three levels: looking and asking, adding to the stream, and administration."""

from __future__ import annotations

from enum import IntEnum
from hmac import compare_digest

from streamlearn.serving.messages import HttpError, Request
from streamlearn.settings.http import HttpSettings


class Level(IntEnum):
    OPEN = 0  # anybody: health and the description of the interface
    READ = 1
    WRITE = 2
    ADMIN = 3


class Access:
    """With tokens in the settings everything but health needs one. Without, only administration does: the one in the
    state directory, so that no page in a browser on this machine can pause or erase anything.
    """

    def __init__(self, settings: HttpSettings, own_token: str | None) -> None:
        self._tokens: list[tuple[bytes, Level]] = []
        if settings.token is not None:
            self._tokens.append((settings.token.get_secret_value().encode(), Level.ADMIN))
        if settings.read_token is not None:
            self._tokens.append((settings.read_token.get_secret_value().encode(), Level.READ))
        self._free = Level.OPEN if self._tokens else Level.WRITE
        if not self._tokens and settings.allow_no_token:
            self._free = Level.ADMIN
        if settings.token is None and own_token is not None:
            self._tokens.append((own_token.encode(), Level.ADMIN))

    def check(self, request: Request, needed: Level) -> None:
        if needed <= self._free:
            return
        kind, _, given = request.headers.get(b"authorization", b"").partition(b" ")
        granted = Level.OPEN
        for token, level in self._tokens:  # all of them, always: how long it takes tells nothing
            if compare_digest(given.strip(), token) and kind.lower() == b"bearer":
                granted = max(granted, level)
        if granted is Level.OPEN:
            challenge = {"WWW-Authenticate": 'Bearer realm="streamlearn"'}
            raise HttpError(401, "no-token", "this needs Authorization: Bearer with the right token", challenge)
        if granted < needed:
            raise HttpError(403, "not-allowed", "this token is for looking and asking only")
