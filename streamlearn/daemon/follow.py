"""A server without a learner: it follows a folder of snapshots that somebody else publishes."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import torch
import uvloop

from streamlearn.daemon.server_process import keep_fresh, leave_off
from streamlearn.logs import event_logger
from streamlearn.serving.app import App, models_of
from streamlearn.serving.server import HttpServer
from streamlearn.settings.daemon import Settings

log = event_logger("follow")


def run(settings: Settings, snapshots: Path, listening: socket.socket) -> None:
    torch.set_num_threads(settings.threads)
    uvloop.run(_serve(settings, snapshots, listening))


async def _serve(settings: Settings, snapshots: Path, listening: socket.socket) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    app = App(settings, models_of(snapshots), follow=True)
    server = HttpServer(settings.http, app, app.numbers)
    fresh = asyncio.get_running_loop().create_task(keep_fresh(app))
    await server.start(listening)
    host, port = listening.getsockname()[:2]
    log.info("following snapshots", folder=str(snapshots), url=f"http://{host}:{port}")
    await stop.wait()
    await leave_off(app, server)
    fresh.cancel()
    app.close()
