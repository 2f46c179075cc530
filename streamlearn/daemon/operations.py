"""What can be asked of a running learner, carried out between two records."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamlearn.accuracy import Source
from streamlearn.daemon.control import Control, Reply
from streamlearn.daemon.status import status

if TYPE_CHECKING:
    from streamlearn.daemon.learning import Learning

MOST_ON_A_PAGE = 1000
MOST_INPUT_BYTES = 1 << 20  # of the inputs on a page: learning waits while they are copied


class Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.content = {"status": status, "code": code, "message": message}


class Operations:
    """`attend` is called between records. What must be durable is answered after the save that holds it."""

    def __init__(self, learning: Learning, control: Control) -> None:
        self._learning, self._control = learning, control
        self._unsaved: list[tuple[Reply, Callable[[], Any]]] = []  # wait for a save to begin,
        self._saving: list[tuple[Reply, Callable[[], Any]]] = []  # wait for it to end
        self._purge = False
        self._saves_before = (0, 0)

    def attend(self) -> None:
        while self._control.waiting:
            request, reply = self._control.waiting.popleft()
            try:
                self._carry_out(request, reply)
            except Refused as refusal:
                reply({"error": refusal.content})
        if self._unsaved or self._saving:
            self._settle()

    def _carry_out(self, request: dict[str, Any], reply: Reply) -> None:
        learning, wanted = self._learning, request["do"]
        if wanted == "status":
            reply({"answer": status(learning)})
        elif wanted == "metrics":
            reply({"answer": learning.metrics.collect()})
        elif wanted == "history":
            reply({"answer": learning.core.history()})
        elif wanted == "confusion":
            reply({"answer": self._confusion(request.get("source"))})
        elif wanted == "buffer":
            reply({"answer": self._page(request)})
        elif wanted == "image":
            reply({"answer": self._input(int(request["slot"]))})
        elif wanted in ("pause", "resume"):
            learning.pause(wanted == "pause")
            reply({"answer": {"state": status(learning)["state"]}})
        elif wanted == "refit-bias":
            learning.core.refit_bias()
            learning.tell_happenings()
            bias = learning.core.learner.bias
            self._when_saved(reply, lambda: {"bias": {"version": bias.version, "group": bias.group}})
        elif wanted == "checkpoint":
            self._when_saved(reply, self._checkpoint)
        elif wanted == "erase":
            erased = learning.core.erase(id=request.get("id"), label=request.get("label"))
            learning.tell_happenings()
            self._purge = True
            self._when_saved(reply, lambda: {"erased": erased, **self._checkpoint()})
        else:
            raise Refused(404, "unknown-request", f"there is no {wanted!r}")

    def _checkpoint(self) -> dict[str, Any]:
        last = self._learning.saver.last
        assert last is not None
        return {"checkpoint": {"id": last.number, "at": last.created_at, "examples_seen": last.examples_seen}}

    # ------------------------------------------------------------------ answered when durable

    def _when_saved(self, reply: Reply, answer: Callable[[], Any]) -> None:
        self._unsaved.append((reply, answer))

    def _settle(self) -> None:
        saver = self._learning.saver
        if self._saving:
            saved, failed = self._saves_before
            if saver.saved > saved or saver.failed > failed:
                for reply, answer in self._saving:
                    if saver.saved > saved:
                        reply({"answer": answer()})
                    else:
                        reply({"error": Refused(503, "not-saved", f"not saved: {saver.last_failure}").content})
                self._saving = []
        if self._unsaved and not self._saving and not saver.busy:
            self._saves_before = (saver.saved, saver.failed)
            saver.save(changed=True, purge=self._purge)
            self._saving, self._unsaved, self._purge = self._unsaved, [], False

    # ------------------------------------------------------------------ looking into the buffer

    def _page(self, request: dict[str, Any]) -> dict[str, Any]:
        """Filled slots in order, from `after` on; `label` and `id` leave out others."""
        learner, core = self._learning.core.learner, self._learning.core
        buffer, limit = learner.buffer, min(int(request.get("limit", 100)), MOST_ON_A_PAGE)
        if buffer is None:
            return {"examples": [], "next": None, "total": 0}
        slots = buffer.filled()
        if (label := request.get("label")) is not None:
            slots = slots[buffer.classes[slots] == learner.classes.index.get(label, -1)]
        if (id := request.get("id")) is not None:
            slots = slots[buffer.ids[slots] == id]
        total = len(slots)
        slots = slots[slots > int(request.get("after", -1))]
        inputs = bool(request.get("inputs"))
        if inputs and len(slots):
            limit = min(limit, max(1, MOST_INPUT_BYTES // buffer.inputs[int(slots[0])].nbytes))
        page = [
            {
                "slot": slot,
                "label": learner.classes.names[int(buffer.classes[slot])],
                "id": buffer.ids[slot],
                "loss": float(buffer.losses[slot]),
                "arrival": int(buffer.arrivals[slot]),
                "age": core.learner.examples_seen - int(buffer.arrivals[slot]),
                **({"input": self._input(slot)} if inputs else {}),
            }
            for slot in slots[:limit].tolist()
        ]
        return {"examples": page, "next": page[-1]["slot"] if len(slots) > limit else None, "total": total}

    def _confusion(self, source: Source | None) -> dict[str, Any]:
        """Held-out records first: they alone come for old classes, too."""
        accuracy = self._learning.core.accuracy
        source = source or ("eval" if accuracy.tallies["eval"] else "prequential")
        table, counts = self._learning.core.learner.classes, accuracy.confusion(source)
        labels = [table.names[output] for output in table.known]
        place = {label: number for number, label in enumerate(labels)}
        return {
            "source": source,
            "answers": counts.total(),
            "labels": labels,
            "counts": [
                [place[label], None if answer is None else place[answer], count]
                for (label, answer), count in sorted(counts.items(), key=str)
                if label in place
            ],
        }

    def _input(self, slot: int) -> dict[str, Any]:
        buffer = self._learning.core.learner.buffer
        if buffer is None or not 0 <= slot < buffer.capacity or buffer.classes[slot] < 0:
            raise Refused(404, "unknown-slot", f"slot {slot} holds no example")
        content = buffer.inputs[slot]
        return {
            "shape": list(content.shape),
            "dtype": str(content.dtype),
            "arrival": int(buffer.arrivals[slot]),
            "bytes": base64.b64encode(content.tobytes()).decode(),
        }
