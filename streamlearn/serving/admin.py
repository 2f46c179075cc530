"""Looking at the learner and telling it what to do: status, buffer, erasure, pause, checkpoint, events, health."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from streamlearn.serving.labels import PendingLabels
from streamlearn.serving.learner_link import NOTHING_KNOWN, LearnerAway, LearnerLink
from streamlearn.serving.messages import HttpError, Request, Response, json_answer
from streamlearn.serving.model import Models

LONGEST_NUMBER = 10**9
PICTURE_SECONDS = 60  # a browser may keep a picture: long enough to look around, short enough to forget the erased
KEEP_ALIVE_SECONDS = 15.0  # between two comments on an event stream: proxies close silent ones
RECONNECT_SECONDS = 0.5


class Admin:
    def __init__(
        self, link: LearnerLink | None, models: Models, labels: PendingLabels | None, order_seconds: float
    ) -> None:
        self._link, self._models, self._labels, self._seconds = link, models, labels, order_seconds
        self.stopping = False

    def _learner(self) -> LearnerLink:
        if self._link is None:
            raise HttpError(409, "no-learner", "this server follows snapshots only: ask the learner's own daemon")
        return self._link

    # ------------------------------------------------------------------ looking

    async def status(self, request: Request) -> Response:
        if self._link is None:
            reason = "this server follows snapshots; the learner is elsewhere"
            status = NOTHING_KNOWN | {"learner": "elsewhere", "reason": reason}
        else:
            status = await self._link.status()
        if self._labels is not None:
            with suppress(HttpError):  # a disk in trouble is no reason to tell nothing
                status["labels"] = await self._labels.counts()
        served = self._models.current
        status["serving"] = None if served is None else served.facts()
        status["inputs"] = None if served is None else served.inputs()
        if status["snapshot"] is None and served is not None:
            facts = served.facts()
            status["snapshot"] = {name: facts[name] for name in ("version", "published_at", "examples_seen")}
        return json_answer(status)

    async def history(self, request: Request) -> Response:
        return json_answer(await self._learner().order({"do": "history"}, self._seconds))

    async def confusion(self, request: Request) -> Response:
        source = request.query.get("source")
        if source not in (None, "prequential", "eval"):
            raise HttpError(422, "bad-query", "source must be prequential (on the stream) or eval (held-out records)")
        return json_answer(await self._learner().order({"do": "confusion", "source": source}, self._seconds))

    async def buffer(self, request: Request) -> Response:
        wanted: dict[str, Any] = {"do": "buffer", "limit": request.number("limit", 100, 1, 1000)}
        wanted["after"] = request.number("after", -1, 0, LONGEST_NUMBER)
        wanted |= {name: request.query[name] for name in ("label", "id") if name in request.query}
        wanted["inputs"] = request.number("inputs", 0, 0, 1)
        return json_answer(await self._learner().order(wanted, self._seconds))

    async def image(self, request: Request) -> Response:
        slot = request.places["slot"]
        if not (slot.isascii() and slot.isdecimal() and len(slot) < 10):
            raise HttpError(404, "unknown-slot", "a slot is a number")
        arrival = request.number("arrival", -1, 0, 10**18)
        found = await self._learner().order({"do": "image", "slot": int(slot)}, self._seconds)
        if arrival not in (-1, found["arrival"]):
            return Response(status=204, content_type=b"")  # no fault of whoever asks: it made room for another
        if found["dtype"] != "uint8" or (len(found["shape"]) == 3 and found["shape"][2] not in (1, 3)):
            raise HttpError(404, "not-a-picture", f"slot {slot} holds {found['dtype']} of shape {found['shape']}")
        pixels = np.frombuffer(base64.b64decode(found["bytes"]), np.uint8).reshape(found["shape"])
        png = BytesIO()
        Image.fromarray(pixels.squeeze(-1) if pixels.shape[2:] == (1,) else pixels).save(png, "PNG")
        kept = "no-store" if arrival == -1 else f"private, max-age={PICTURE_SECONDS}"
        return Response(png.getvalue(), content_type=b"image/png", headers={"Cache-Control": kept})

    # ------------------------------------------------------------------ telling

    async def erase(self, request: Request) -> Response:
        chosen: dict[str, str] = {name: request.query[name] for name in ("id", "label") if name in request.query}
        if len(chosen) != 1 or not next(iter(chosen.values())):
            raise HttpError(422, "bad-query", "say what to forget: either ?id=... or ?label=...")
        erased: dict[str, Any] = await self._learner().order({"do": "erase", **chosen}, self._seconds)
        if self._labels is not None and "id" in chosen:
            erased["pending_predictions"] = await self._labels.forget(id=chosen["id"])
        return json_answer(erased)

    async def order(self, request: Request) -> Response:
        wanted = request.places["order"]
        if wanted not in ("pause", "resume", "checkpoint", "refit-bias"):
            raise HttpError(404, "unknown-path", "the orders are pause, resume, checkpoint and refit-bias")
        return json_answer(await self._learner().order({"do": wanted}, self._seconds))

    # ------------------------------------------------------------------ events

    async def events(self, request: Request) -> Response:
        link, last = self._learner(), request.header(b"last-event-id") or request.query.get("after")
        if last is not None and not (last.isascii() and last.isdecimal() and len(last) <= 18):
            raise HttpError(422, "bad-query", "after (or Last-Event-ID) must be the number of an event")
        stream = self._event_stream(link, None if last is None else int(last))
        return Response(content_type=b"text/event-stream", headers={"Cache-Control": "no-store"}, stream=stream)

    async def _event_stream(self, link: LearnerLink, after: int | None) -> AsyncIterator[bytes]:
        """Goes on when the learner was away, from the last event told."""
        yield b": streamlearn\n\n"
        while not self.stopping:
            source = link.events(after)
            coming: asyncio.Future[dict[str, Any]] | None = None
            try:
                while not self.stopping:
                    coming = coming or asyncio.ensure_future(anext(source))
                    done, _ = await asyncio.wait({coming}, timeout=KEEP_ALIVE_SECONDS)
                    if not done:
                        yield b": still here\n\n"
                        continue
                    event, coming = coming.result(), None
                    after = event["number"]
                    data = json.dumps(event["data"] | {"at": event["at"]}, ensure_ascii=False)
                    yield f"id: {after}\nevent: {event['event']}\ndata: {data}\n\n".encode()
            except (LearnerAway, StopAsyncIteration):
                await asyncio.sleep(RECONNECT_SECONDS)
            finally:
                if coming is not None:
                    coming.cancel()

    # ------------------------------------------------------------------ health

    async def healthz(self, request: Request) -> Response:
        return json_answer({"status": "ok"})

    def serving(self) -> str | None:
        """Why no predictions should be sent here; None: they should."""
        if self.stopping:
            return "the server is stopping"
        if self._models.current is None:
            reason = self._link.stopped()[1] if self._link else None
            return f"no snapshot has been published yet{': ' + reason if reason else ''}"
        return None

    async def readyz(self, request: Request) -> Response:
        """Ready: predictions are answered, and learning goes on or was paused on purpose."""
        reason = self.serving()
        trouble = self._link.trouble() if self._link else None
        content: dict[str, Any] = {"ready": not (reason or trouble), "reason": reason or trouble, "serving": not reason}
        if content["ready"]:
            return json_answer(content)
        content["error"] = {"code": "not-ready", "message": content["reason"]}
        return json_answer(content, 503, {"Retry-After": "1"})
