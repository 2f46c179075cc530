"""What systemd hears, on a real datagram socket: of the words alone, and of the daemon's whole life."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlearn.daemon.systemd import Systemd
from tests.serving import Serve


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The other end of NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening


def heard(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().splitlines()


def nothing_more(manager: socket.socket) -> bool:
    manager.setblocking(False)
    try:
        manager.recv(4096)
    except BlockingIOError:
        return True
    return False


def test_what_is_new_is_said_once(manager: socket.socket) -> None:
    systemd = Systemd({"NOTIFY_SOCKET": manager.getsockname()})
    for _ in range(3):
        systemd.ready("well")
    systemd.ready("not so\nMAINPID=1")
    systemd.alive()
    systemd.stopping()
    assert heard(manager) == ["READY=1", "STATUS=well"]
    assert heard(manager) == ["READY=1", "STATUS=not so MAINPID=1"]
    assert heard(manager)[0] == "STOPPING=1"
    assert nothing_more(manager)  # no watchdog was asked for


def test_a_socket_without_a_file() -> None:
    name = f"streamlearn-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        listening.settimeout(10)
        Systemd({"NOTIFY_SOCKET": f"@{name}"}).ready("well")
        assert heard(listening) == ["READY=1", "STATUS=well"]


def test_the_watchdog_hears_of_it_when_due(manager: socket.socket) -> None:
    systemd = Systemd({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "60000000"})
    systemd.alive()
    systemd.alive()
    assert heard(manager) == ["WATCHDOG=1"]
    assert nothing_more(manager)
    of_another = {"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1", "NOTIFY_SOCKET": manager.getsockname()}
    Systemd(of_another).alive()
    assert nothing_more(manager)
    assert of_another == {}  # children inherit nothing of it


@pytest.mark.parametrize("address", ["", "/nowhere/at/all"])
def test_nobody_listens(address: str) -> None:
    systemd = Systemd({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1"})
    systemd.ready("well")
    systemd.alive()
    systemd.stopping()


@pytest.mark.parametrize("http", ["127.0.0.1:0", None])
def test_the_life_of_a_daemon(tmp_path: Path, manager: socket.socket, http: str | None) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
    with Serve(tmp_path / "state", f"log:{tmp_path / 'log'}", http=http, environment=environment) as daemon:
        ready, status = heard(manager)
        assert ready == "READY=1"
        assert status.startswith("STATUS=learning")
        if http:
            assert daemon.said("serving on ")
        assert daemon.said("following the stream")
        assert daemon.stop() == 0
        if http:
            assert heard(manager)[0] == "STOPPING=1"
