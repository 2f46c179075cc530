"""What systemd wants to hear from a service of `Type=notify`. Silent where nobody listens.

The protocol is one datagram to the socket in NOTIFY_SOCKET: READY=1, STOPPING=1, WATCHDOG=1, STATUS=some words.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping
from contextlib import suppress


class Systemd:
    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        # Taken out of the environment: the children are not the service and must not speak for it.
        address = environment.pop("NOTIFY_SOCKET", "")
        patience = environment.pop("WATCHDOG_USEC", "")
        watched = environment.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._address = "\0" + address[1:] if address.startswith("@") else address  # @: a name that is no file
        # Twice as often as it has to be, as systemd recommends.
        self._every = int(patience) / 2e6 if watched and patience.isdecimal() else None
        self._alive_at = 0.0
        self._said = ""

    def ready(self, status: str) -> None:
        """It does what it is there for. May be said again and again; only what is new is sent."""
        self._say(f"READY=1\nSTATUS={' '.join(status.split())}")  # a line break would begin another message

    def stopping(self) -> None:
        self._say("STOPPING=1\nSTATUS=saving what was learned")

    def alive(self) -> None:
        """Called as often as one likes; tells it when the watchdog is due."""
        now = time.monotonic()
        if self._every is not None and now - self._alive_at >= self._every:
            self._alive_at = now
            self._send("WATCHDOG=1")

    def _say(self, words: str) -> None:
        if words != self._said:
            self._said = words
            self._send(words)

    def _send(self, words: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.setblocking(False)  # a manager that does not listen must not stop the daemon
            sending.sendto(words.encode(), self._address)
