"""The whole daemon: one learner and its servers, started, watched, started again, and stopped in order.

Imports no torch: it is there in a blink, holds the lock and the listening socket, and never does anything that could
fail. A connection made while a server is being replaced waits in the socket's queue.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from streamlearn.daemon.child import Child
from streamlearn.daemon.restarts import Restarts
from streamlearn.daemon.systemd import Systemd
from streamlearn.errors import SettingsError, StreamlearnError
from streamlearn.lock import DirectoryLock
from streamlearn.logs import event_logger
from streamlearn.run_folder import RunFolder, write_json
from streamlearn.settings.daemon import Settings

log = event_logger("supervisor")

LOOK_SECONDS = 0.02
STOP_SECONDS = 9.0  # for the final checkpoint and the last answers; a promise is that 10 are enough
REASONS = (2, 3, 4, 5)  # exit codes of a learner that would only stop again


class LearnerStopped(StreamlearnError):
    """What the learner said, and its exit code."""

    def __init__(self, message: str, hint: str, code: int) -> None:
        super().__init__(message, hint)
        self.exit_code = code


class Supervisor:
    def __init__(
        self, settings: Settings, stop: Callable[[], bool], *, until_idle: bool = False, demo: bool = False
    ) -> None:
        self._settings, self._stop, self._until_idle, self._demo = settings, stop, until_idle, demo
        self._lock = DirectoryLock(settings.state_dir)
        self._run = RunFolder(settings.state_dir)
        self._systemd = Systemd()
        self._learner: Child | None = None
        self._servers: list[Child] = []  # those that serve
        self._spares: list[Child] = []  # those that are on their way to, or wait
        self._learner_restarts, self._server_restarts = Restarts(), Restarts()
        self._began = time.time()
        self._learner_was_up = False
        self._stopped: LearnerStopped | None = None  # why there is no learner

    def run(self) -> None:
        self._startup()
        try:
            self._main_loop()
        finally:
            self._shutdown()

    def _startup(self) -> None:
        self._lock.acquire()
        self._run.make()
        self._run.clear_metrics()
        self._write_restarts()
        self._listening = listen(self._settings.http.host, self._settings.http.port)
        host, port = self._listening.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        self._tell(self._run.http, "where it listens", {"url": self.url})
        self._run.own_token()
        self._start_learner()
        self._add_servers()
        log.info(f"serving on {self.url}", token=None if self._settings.http.token else str(self._run.token))

    def _main_loop(self) -> None:
        while not self._stop():
            if self._look_after_learner():
                return
            self._look_after_servers()
            self._tell_systemd()
            time.sleep(LOOK_SECONDS)

    def _tell_systemd(self) -> None:
        self._systemd.alive()
        if self._stopped is not None:
            self._systemd.ready(f"predictions on {self.url}, but learning has stopped: {self._stopped.message}")
        elif self._learner_was_up and any(server.told.get("serving") for server in self._servers):
            self._systemd.ready(f"learning, predictions on {self.url}")

    # ------------------------------------------------------------------ the learner

    def _start_learner(self) -> None:
        self._write_learner(starting=True)
        self._learner = Child(
            "streamlearn.daemon.learner_process",
            self._settings,
            (self._lock.descriptor,),
            until_idle=self._until_idle,
            demo=self._demo,
            lock=self._lock.descriptor,
        )

    def _look_after_learner(self) -> bool:
        """True: the daemon is to end."""
        learner = self._learner
        if learner is None:
            if self._stopped is None and self._learner_restarts.due():
                self._start_learner()
            return False
        if learner.told.pop("following", False):
            self._learner_was_up = True
            self._write_learner()
        code = learner.code()
        if code is None:
            return False
        self._learner = None
        if code == 0:  # it was told to stop when everything was learned
            return True
        reason, hint = learner.told.get("reason"), learner.told.get("hint", "")
        if code in REASONS and reason is not None:
            self._stopped = LearnerStopped(reason, hint, code)
        elif not self._learner_restarts.died(time.monotonic() - learner.started_at):
            self._stopped = LearnerStopped(
                f"the learner died again and again, the last time with {ending(code)}", "", 1
            )
        if self._stopped is not None:
            return self._learner_gave_up(self._stopped)
        log.error(f"the learner died with {ending(code)}; it starts again", wait=self._learner_restarts.wait)
        self._write_restarts()
        self._write_learner(starting=True, reason=f"the learner died with {ending(code)} and starts again")
        return False

    def _learner_gave_up(self, why: LearnerStopped) -> bool:
        """One that never got to its stream ends the daemon: whoever starts it wants to know. One that did leaves the
        servers on, with what it has learned so far.
        """
        if self._until_idle or self._settings.http.exit_with_learner or not self._learner_was_up:
            raise why
        log.error("learning has stopped; predictions go on", reason=why.message, hint=why.hint)
        self._write_learner(stopped=True, reason=str(why), exit_code=why.exit_code)
        return False

    def _write_learner(self, **facts: object) -> None:
        pid = self._learner.pid if self._learner else None
        self._tell(self._run.learner, "how the learner is", {"pid": pid, **facts})

    def _write_restarts(self) -> None:
        """For the metrics, which a server tells."""
        counts = {"learner_restarts": self._learner_restarts.count, "server_restarts": self._server_restarts.count}
        facts = {"pid": os.getpid(), "started_at": self._began, **counts}
        self._tell(self._run.supervisor, "how often processes were started again", facts)

    @staticmethod
    def _tell(path: Path, what: str, facts: Mapping[str, object]) -> None:
        """To others on this machine. On a full disk they know less, and everything else goes on."""
        try:
            write_json(path, facts)
        except OSError as error:
            log.warning(f"{what} cannot be told", error=error.strerror)

    # ------------------------------------------------------------------ the servers

    def _add_servers(self) -> None:
        """The spare one comes last, when the others have had the processor to themselves."""
        http = self._settings.http
        all_up = len(self._servers) == http.servers and (self._learner_was_up or self._stopped is not None)
        while len(self._servers) + len(self._spares) < http.servers + (http.spare and all_up):
            descriptor = self._listening.fileno()
            self._spares.append(
                Child(
                    "streamlearn.daemon.server_process",
                    self._settings,
                    (descriptor,),
                    socket=descriptor,
                    slot=self._free_slot(),
                )
            )

    def _free_slot(self) -> int:
        """Where a new server counts: it goes on where one that died left off."""
        taken = {server.more["slot"] for server in (*self._servers, *self._spares)}
        return next(slot for slot in itertools.count() if slot not in taken)

    def _look_after_servers(self) -> None:
        for server in [*self._servers, *self._spares]:
            code = server.code()
            if code is None:
                continue
            (self._servers if server in self._servers else self._spares).remove(server)
            log.error(f"a server died with {ending(code)}", pid=server.pid)
            restart = self._server_restarts.died(time.monotonic() - server.started_at)
            self._write_restarts()
            if not restart:
                raise LearnerStopped(f"servers died again and again, the last time with {ending(code)}", "", 1)
        while len(self._servers) < self._settings.http.servers:
            ready = next((spare for spare in self._spares if spare.told.get("ready")), None)
            if ready is None:
                break
            self._spares.remove(ready)
            ready.tell("serve")
            self._servers.append(ready)
        if self._server_restarts.due():
            self._add_servers()

    # ------------------------------------------------------------------ the end

    def _shutdown(self) -> None:
        """All at once: servers answer what is under way while the learner saves."""
        self._systemd.stopping()
        children = [child for child in (self._learner, *self._servers, *self._spares) if child is not None]
        self._listening.close()
        for child in children:
            child.stop()
        deadline = time.monotonic() + STOP_SECONDS
        while any(child.code() is None for child in children) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        for child in children:
            if child.code() is None:
                log.error("a process did not stop in time and was ended", pid=child.pid)
            child.kill()
        self._run.http.unlink(missing_ok=True)
        self._write_learner(stopped=True, reason="the daemon was stopped")
        self._lock.release()

    def kill(self) -> None:
        """At once, as safe as a power cut; also from a signal handler."""
        for child in (self._learner, *self._servers, *self._spares):
            if child is not None:
                child.kill_at_once()


def listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        raise SettingsError(
            [f"http: cannot listen on {host}:{port}: {error.strerror}"], "is another daemon there? --http picks another"
        ) from error
    listening.setblocking(False)
    return listening


def ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
