"""`python -m streamlearn.daemon.server_process`: one server as a child of the supervisor.

It loads everything first, says that it is ready, and waits for the word to serve: a spare one waits for as long as the
others live, and takes over in no time.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import TYPE_CHECKING

from streamlearn.daemon.child import Parent, leave

if TYPE_CHECKING:
    from streamlearn.serving.app import App
    from streamlearn.serving.server import HttpServer

LINGER_SECONDS = 0.5


def main() -> int:
    parent = Parent()
    import torch  # seconds, so after the settings were taken
    import uvloop

    torch.set_num_threads(1)  # several would only wait for each other when the learner has the other core
    uvloop.run(serve(parent))
    return 0


async def serve(parent: Parent) -> None:
    from streamlearn.serving.app import App, models_of
    from streamlearn.serving.server import HttpServer
    from streamlearn.snapshot import folder_of

    loop = asyncio.get_running_loop()
    go, stop = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def on_word(word: str) -> None:
        if word == "serve":
            loop.call_soon_threadsafe(go.set)

    parent.listen(on_word)
    settings = parent.settings
    app = App(settings, models_of(folder_of(settings.state_dir)), slot=parent.more["slot"])
    server = HttpServer(settings.http, app, app.numbers)
    follower = loop.create_task(keep_fresh(app))
    parent.tell(ready=True)
    await first_of(go, stop)
    if go.is_set() and not stop.is_set():
        await server.start(socket.socket(fileno=parent.more["socket"]))
        parent.tell(serving=True)
        await stop.wait()
        await leave_off(app, server)
    follower.cancel()
    app.close()


async def leave_off(app: App, server: HttpServer) -> None:
    """Still answering for a moment, but not ready: whoever sends requests here must notice."""
    app.admin.stopping = True
    await asyncio.sleep(LINGER_SECONDS)
    await server.stop()


async def keep_fresh(app: App) -> None:
    """Load new snapshots also while nobody asks, so that the next one who does need not wait."""
    while True:
        await app.joiner.keep_fresh()
        app.metrics.tell()
        await asyncio.sleep(0.1)


async def first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


if __name__ == "__main__":
    leave(main())
