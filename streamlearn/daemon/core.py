"""What a record does to the state. No clock, no threads: the same records in the same order give the same state.

The path of one record: decode (or dead letter), wait for the batch to be full, answer, learn; held-out records are
answered only. Where a batch ends depends on the records alone: when it is full, or at an event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from streamlearn.accuracy import Accuracy, History, Source
from streamlearn.daemon.counters import Counters
from streamlearn.daemon.happenings import Happening, Kind
from streamlearn.errors import BadInput, BadRecord, StateIncompatible, StreamError
from streamlearn.learner import Learner, Report, texts
from streamlearn.learner.checks import check_inputs
from streamlearn.learner.classes import ClassTable
from streamlearn.learner.inputs import Inputs
from streamlearn.records.decode import Decoder
from streamlearn.records.pending import Pending, stacked
from streamlearn.records.reasons import refused
from streamlearn.records.record import Event, Example, Position, Record
from streamlearn.settings.daemon import Settings

FORMAT = 2  # 1: without history, confusion and held_out_at
EVALUATED_AT_ONCE = 256
MOST_DISCARDED_IN_A_ROW = 10

Refuse = Callable[[Record, BadRecord], None]


class Core:
    """Everything a checkpoint holds, and `take`, which moves it one record further.

    `refuse` makes a dead letter and returns when it is durable.
    """

    def __init__(self, settings: Settings, learner: Learner, refuse: Refuse) -> None:
        self.settings, self.learner = settings, learner
        self.counters = Counters(settings.records.bad_window)
        self.accuracy, self._history = Accuracy(settings.accuracy.window), History()
        self.last_report = Report()
        self.held_out_at: int | None = None  # examples learned when held-out records were last answered
        self.last_timestamp = 0  # of the newest record, milliseconds since 1970
        self.happenings: list[Happening] = []
        self._refuse = refuse
        self._decoder = Decoder(settings.records.limits())
        self._training, self._held_out = Pending(), Pending()
        self._batch_size = settings.learner.batch_size
        self._shape: tuple[int, ...] | None = None  # of every input, from the first on
        self._dtype: np.dtype[Any] | None = None
        self._labels: set[str] = set()  # classes known or about to be
        self._grouped: ClassTable | None = None  # the table that
        self._group_of: dict[str, str] = {}  # this was made from: class -> its group
        self._offsets: dict[int, int] = {}  # of the next record of each partition
        self._stream_id = ""
        self._turn = 0
        self._why_discarded = ""

    # ------------------------------------------------------------------ one record

    def take(self, record: Record) -> bool:
        """Whether anything came of it; False while an example only waits for its batch, as most do.

        Raises StreamError when going on would do harm. The record that led to it has been taken in by then.
        """
        try:
            found = self._decoder.decode(record)
            if isinstance(found, Example):
                self._admit(found)
        except BadRecord as error:
            self._refuse(record, error)
            self._move_behind(record)
            self.counters.rejected[error.reason] += 1
            self.counters.record(bad=True)
            place = {"partition": record.partition, "offset": record.offset}
            self._happened("dead-letter", reason=error.reason, message=error.message, **place)
            if self.counters.bad_ratio > self.settings.records.max_bad_ratio:
                raise StreamError(
                    f"{self.counters.bad_ratio:.0%} of the last {self.settings.records.bad_window:,} records are bad "
                    f"(the newest: {error.reason}: {error.message}), so learning has stopped and reads no further",
                    "look at them with 'streamlearn dead-letters list', mend the producer, start again",
                ) from None
            return True
        self._move_behind(record)
        self.counters.record(bad=False)
        self.last_timestamp = record.timestamp
        if isinstance(found, Event):
            self._event(found)
        elif found.split == "train":
            self._training.add(found)
            if len(self._training) < self._batch_size:
                return False
            self._learn()
        else:
            self._held_out.add(found)
            if len(self._held_out) < EVALUATED_AT_ONCE:
                return False
            self._evaluate()
        self._stop_if_nothing_is_finite()
        return True

    def _admit(self, example: Example) -> None:
        """Can the learner take this one? What it would refuse is found here, record by record."""
        shape, dtype = example.input.shape, example.input.dtype
        if self._shape is None:
            try:
                check_inputs(example.input[None], None)
                Inputs(self.settings.learner, shape, dtype)
            except BadInput as error:
                raise refused("wrong-shape", str(error)) from error
            self._shape, self._dtype = shape, dtype
        elif shape != self._shape or dtype != self._dtype:
            raise refused(
                "wrong-shape",
                f"the input is {dtype} of shape {shape}; this daemon learns {self._dtype} of {self._shape}",
            )
        if example.label not in self._labels and example.split == "train":
            if len(self._labels) >= self.settings.learner.max_classes:
                raise refused(
                    "too-many-classes",
                    f"{example.label!r} would be one class more than {len(self._labels)} (max_classes)",
                )
            self._labels.add(example.label)

    def _event(self, event: Event) -> None:
        self._evaluate()
        if len(self._training):
            self._learn()
        self._note(self.learner.end_group())
        self._happened(event.kind, examples=self.counters.examples_learned)

    # ------------------------------------------------------------------ where in the stream

    @property
    def position(self) -> Position | None:
        """Behind the last record taken; None before a stream was opened."""
        return Position(dict(self._offsets), self._stream_id, self._turn) if self._stream_id else None

    @position.setter
    def position(self, position: Position) -> None:
        self._offsets, self._stream_id, self._turn = dict(position.offsets), position.stream_id, position.turn

    def _move_behind(self, record: Record) -> None:
        self._offsets[record.partition] = record.offset + 1
        if len(self._offsets) > 1:
            order = sorted(self._offsets)
            self._turn = order[(order.index(record.partition) + 1) % len(order)]

    # ------------------------------------------------------------------ one batch

    def _learn(self) -> None:
        self._evaluate()  # held-out records that came before are answered by the model they met
        batch = self._training.take()
        labels = [example.label for example in batch]
        groups = [example.group for example in batch] if any(example.group for example in batch) else None
        ids = [example.id for example in batch]
        report = self.learner.learn(stacked(batch), labels, groups=groups, ids=ids, predict_first=True)
        assert report.predicted is not None
        self._score("prequential", labels, report.predicted)
        self.accuracy.learned()
        self._note(report)
        if report.discarded:  # a class met in a step that was undone is not known after all
            self._labels = set(self.learner.classes.index)
        self.last_report = report
        if self.counters.examples_learned >= self._history.due:
            self._history.add([group.name for group in self.learner.classes.groups], self.accuracy, *self._now())

    def _evaluate(self) -> None:
        if not len(self._held_out):
            return
        examples = self._held_out.take()
        self.counters.examples_evaluated += len(examples)
        self.held_out_at = self.counters.examples_learned
        answers = self.learner.predict(stacked(examples)).labels
        self._score("eval", [example.label for example in examples], answers)

    def _score(self, source: Source, labels: list[str], answers: list[str | None]) -> None:
        if self._grouped is not self.learner.classes:  # the learner makes a new table when a class turns up
            self._grouped = self.learner.classes
            self._group_of = self._grouped.group_names()
        self.accuracy.add(source, labels, answers, self._group_of)

    # ------------------------------------------------------------------ how it came about

    def history(self) -> dict[str, Any]:
        """Points over the whole life, the last of them now."""
        return self._history.plain(self.accuracy, *self._now())

    def _now(self) -> tuple[float | None, ...]:
        report, seen = self.last_report, self.learner.examples_seen
        rate = self.learner.decay.rate(seen)
        return self.counters.examples_learned, self.last_timestamp, rate, report.loss_stream, report.loss_replay

    def _note(self, report: Report) -> None:
        counters = self.counters
        counters.examples_learned += report.examples
        counters.steps += report.steps
        for label in report.new_classes:
            self._happened("new-class", label=label, classes=len(self.learner.classes.index))
            self._history.new_class(counters.examples_learned, label)
        counters.new_class_events += len(report.new_groups)
        for refit in report.refits:
            counters.refits[refit.cause] += 1
            self._history.refit(counters.examples_learned, refit.cause, refit.group)
            bias = self.learner.bias
            self._happened("bias-refit", cause=refit.cause, group=refit.group, version=bias.version, alpha=bias.alpha)
        for why in report.discarded:
            counters.steps_discarded += 1
            counters.discarded_in_a_row += 1
            self._why_discarded = why
            self._happened("step-discarded", why=why)
        if report.steps:
            counters.discarded_in_a_row = 0

    def _stop_if_nothing_is_finite(self) -> None:
        if self.counters.discarded_in_a_row >= MOST_DISCARDED_IN_A_ROW:
            raise StreamError(
                f"{self.counters.discarded_in_a_row} steps in a row were not finite "
                f"({self._why_discarded}); all were undone, and learning has stopped",
                "a smaller learning_rate usually helps; 'streamlearn checkpoints rollback' goes back to an older state",
            )

    def _happened(self, kind: Kind, **fields: Any) -> None:
        self.happenings.append(Happening(kind, fields))

    # ------------------------------------------------------------------ asked for from outside

    def refit_bias(self) -> None:
        report = Report()
        self.learner.refit_bias("request", report)
        self._note(report)

    def erase(self, *, id: str | None, label: str | None) -> int:
        """Forget what is remembered, or waits to be learned, of this id or class. Says how many examples that was."""
        erased = self.learner.erase(id=id, label=label)
        for pending in (self._training, self._held_out):
            stays = [example for example in pending.examples if example.id != id and example.label != label]
            erased += len(pending) - len(stays)
            pending.examples = stays
        self._happened("erased", id=id, label=label, examples=erased)
        return erased

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """Copies of everything but the buffer's inputs, which are frozen: whoever saves them must release them.

        Taking it must be quick, so the buffer's ids are left to be packed (`packed`).
        """
        learner = self.learner.state_dict(copy=False)
        learner["network"] = None if learner["network"] is None else _copied(learner["network"])
        if learner["buffer"] is not None:
            assert self.learner.buffer is not None
            learner["buffer"] = _copied(learner["buffer"] | {"inputs": None})
            learner["buffer"]["inputs"] = self.learner.buffer.freeze()
        position = self.position
        return {
            "format": FORMAT,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "learner": learner,
            "inputs": None if self._shape is None else {"shape": list(self._shape), "dtype": str(self._dtype)},
            "training": self._training.state_dict(),
            "held_out": self._held_out.state_dict(),
            "accuracy": self.accuracy.state_dict(),
            "history": self._history.state_dict(),
            "counters": self.counters.state_dict(),
            "held_out_at": self.held_out_at,
            "last_timestamp": self.last_timestamp,
            "position": None if position is None else position.to_plain(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["format"] > FORMAT:
            raise StateIncompatible(
                f"the checkpoint has format {state['format']}, this version of streamlearn reads up to {FORMAT}"
            )
        self.learner.load_state_dict(state["learner"])
        self._training.load_state_dict(state["training"])
        self._held_out.load_state_dict(state["held_out"])
        self.accuracy.load_state_dict(state["accuracy"])
        if state["format"] > 1:
            self._history.load_state_dict(state["history"])
            self.held_out_at = state["held_out_at"]
        self.counters.load_state_dict(state["counters"])
        self.last_timestamp = state["last_timestamp"]
        if state["position"] is not None:
            self.position = Position.from_plain(state["position"])
        self._labels = set(self.learner.classes.index) | {example.label for example in self._training.examples}
        if state["inputs"] is not None:
            self._shape, self._dtype = tuple(state["inputs"]["shape"]), np.dtype(state["inputs"]["dtype"])

    def begin_anew(self) -> None:
        """Somebody has started the daemon again after it had stopped for its records: count those from zero."""
        if self.counters.bad_ratio > self.settings.records.max_bad_ratio:
            self.counters.forgive()
        if self.counters.discarded_in_a_row >= MOST_DISCARDED_IN_A_ROW:
            self.counters.discarded_in_a_row = 0


def packed(tree: dict[str, Any]) -> dict[str, Any]:
    """The state with its ids as arrays, ready to be written."""
    buffer = tree["learner"]["buffer"]
    if buffer is not None:
        buffer["ids"] = texts.pack(buffer["ids"])
    return tree


def _copied(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in tree.items()}
