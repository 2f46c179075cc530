"""What a server knows of the learner beside it: by asking, or from what was left when it cannot be asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from streamlearn.run_folder import RunFolder, SocketPath, read_json
from streamlearn.serving.messages import HttpError, away

LONGEST_ANSWER = 64 << 20
STATUS_SECONDS = 2.0


class LearnerAway(Exception):
    pass


class LearnerLink:
    def __init__(self, run: RunFolder) -> None:
        self._run = run

    async def ask(self, request: dict[str, Any], seconds: float) -> Any:
        """Carried out by the learner between two records. LearnerAway if it does not answer in time."""
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await self._connect()
                try:
                    writer.write(json.dumps(request).encode() + b"\n")
                    line = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            raise LearnerAway from error
        if not line:
            raise LearnerAway
        answer = json.loads(line)
        if "error" in answer:
            refusal = answer["error"]
            raise HttpError(refusal["status"], refusal["code"], refusal["message"])
        return answer["answer"]

    async def order(self, request: dict[str, Any], seconds: float) -> Any:
        """Like ask, for what has no other answer than the learner's."""
        try:
            return await self.ask(request, seconds)
        except LearnerAway:
            _, reason = self.stopped()
            raise away("learner-away", reason or "the learner does not answer", 2) from None

    async def events(self, after: int | None) -> AsyncIterator[dict[str, Any]]:
        """Until the learner is gone."""
        try:
            reader, writer = await self._connect()
        except OSError as error:
            raise LearnerAway from error
        try:
            writer.write(json.dumps({"do": "events", "after": after}).encode() + b"\n")
            while line := await reader.readline():
                yield json.loads(line)
        except ConnectionError:
            return
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        with SocketPath(self._run.control) as path:
            return await asyncio.open_unix_connection(path, limit=LONGEST_ANSWER)

    # ------------------------------------------------------------------ without asking

    def stopped(self) -> tuple[bool, str | None]:
        """Whether learning has stopped for a reason, and what the learner waits for or why it is not there."""
        learner = read_json(self._run.learner) or {}
        if learner.get("stopped"):
            return True, learner.get("reason") or "the learner has stopped"
        if learner.get("starting"):
            return False, learner.get("reason") or "the learner is starting"
        return False, None

    def trouble(self) -> str | None:
        """Why nothing is learned although it should be."""
        stopped, reason = self.stopped()
        if stopped or reason:
            return reason if stopped else None
        return self.last_status().get("reason")

    def last_status(self) -> dict[str, Any]:
        return read_json(self._run.status) or {}

    async def status(self) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await self.ask({"do": "status"}, STATUS_SECONDS)
        except LearnerAway:
            last, (stopped, reason) = NOTHING_KNOWN | self.last_status(), self.stopped()
            learner = "stopped" if stopped else "starting" if reason else "away"
            reason = reason or last["reason"] or "the learner does not answer"
            return last | {"state": "stopped", "learner": learner, "reason": reason}
        return answer | {"learner": "up"}


# What a status has when there never was a learner to ask.
NOTHING_KNOWN: dict[str, Any] = {
    "state": "stopped",
    "learner": "away",
    "reason": None,
    "examples_seen": 0,
    "records_rejected": 0,
    "stream": {"url": None, "positions": {}, "lag": None},
    "classes": [],
    "groups": [],
    "held_out_at": None,
    "learning_rate": None,
    "bias": {"version": 0, "group": None, "alpha": 1.0, "beta": 0.0},
    "buffer": {"capacity": 0, "examples": 0, "by_class": {}},
    "checkpoint": None,
    "snapshot": None,
}
