"""The learner: two verbs, `learn` and `predict`, over whatever the stream brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from streamlearn.errors import LearnerError, SettingsError, StateIncompatible
from streamlearn.learner.bias import BiasCorrection, fit_bias
from streamlearn.learner.buffer import Buffer
from streamlearn.learner.checks import check_call, check_inputs
from streamlearn.learner.classes import ClassTable
from streamlearn.learner.decay import Decay
from streamlearn.learner.eviction import EVICTIONS
from streamlearn.learner.inputs import Inputs
from streamlearn.learner.methods import METHODS, Method, Parts
from streamlearn.learner.models import Network, NotFinite, build_network
from streamlearn.learner.randomness import Randomness
from streamlearn.learner.report import Answers, Batch, Refit, Report
from streamlearn.records.record import Array
from streamlearn.settings.learner import ARCHITECTURE, LearnerSettings

FORMAT = 1


class Learner:
    """Learns each example once, replays what it remembers, and answers at any time.

    The network is built when the first example shows its shape.
    """

    def __init__(self, settings: LearnerSettings, *, weights: Mapping[str, Tensor] | None = None) -> None:
        if settings.weights is not None and weights is None:
            raise SettingsError(
                [f"weights names the file {settings.weights}, but its content was not given"],
                "Learner(settings, weights=read_weights(settings.weights))",
            )
        self.settings = settings
        self.examples_seen = 0  # the N of the paper: over the whole life
        self.classes = ClassTable(settings.classes, settings.group_span)
        self.bias = BiasCorrection()
        self.decay = Decay(settings)
        self.chance = Randomness(settings.seed)
        self.method: Method | None = None  # with network and buffer, once there is an example
        self._weights = weights
        self._answers_only = False  # loaded from a state without its buffer

    # ------------------------------------------------------------------ the two verbs

    def learn(
        self,
        inputs: Array,
        labels: Sequence[str],
        *,
        groups: Sequence[str | None] | None = None,
        ids: Sequence[str | None] | None = None,
        predict_first: bool = False,
    ) -> Report:
        """One step per `batch_size` examples and a smaller one for the rest; cut where a new class group begins.

        `groups` names the class group of each label, where the caller knows better than first appearance.
        With `predict_first` the report also holds the answer to each example from before it was learned.
        """
        if self._answers_only:
            raise LearnerError("this learner was loaded without its buffer: it can answer, but not learn")
        check_call(self, inputs, labels, groups, ids)
        method = self.method or self._build(inputs.shape[1:], inputs.dtype)
        report = Report(predicted=[] if predict_first else None)
        start = 0
        while start < len(labels):
            # Batches lie on a fixed grid, so that many examples at once and a few at a time give the same steps.
            end = min(len(labels), start - start % self.settings.batch_size + self.settings.batch_size)
            mark = self._mark(method)
            known = list(self.classes.index.values()) if predict_first else []
            try:
                end, met = self._meet(method, labels, groups, start, end)
                outputs = [self.classes.index[label] for label in labels[start:end]]
                batch = Batch(inputs[start:end], outputs, None if ids is None else ids[start:end])
                answers = method.scores(batch.inputs) if predict_first and not method.answers_in_step else None
                method.inputs.observe(batch.inputs)
                step = method.step(batch, self.examples_seen)
            except NotFinite as error:
                self._undo(method, mark)
                report.add_discarded(end - start, str(error))
                if report.predicted is not None:
                    report.predicted += [None] * (end - start)
            else:
                self.examples_seen += end - start
                report.add_step(step, end - start)
                if met is not None:
                    report.add_met(met)
                if report.predicted is not None:
                    report.predicted += self._names(
                        step.outputs.detach().numpy()[: end - start] if answers is None else answers, known
                    )
                if self._refit_is_due(end - start):
                    self.refit_bias("interval", report)
            start = end
        return report

    def predict(self, inputs: Array) -> Answers:
        """The answer to each input, corrected for bias. Changes nothing."""
        method = self.method
        check_inputs(inputs, method.inputs if method else None)
        known = self.classes.known
        if method is None or not known:
            return Answers([None] * len(inputs), np.zeros((len(inputs), 0), np.float32), ())
        scores = self.bias.correct(method.scores(inputs))[:, known]
        scores = np.nan_to_num(scores).clip(-1e30, 1e30)  # a network about to diverge still answers
        exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
        names = [self.classes.names[output] for output in known]
        best = scores.argmax(axis=1)
        shares = (exponents / exponents.sum(axis=1, keepdims=True)).astype(np.float32)
        return Answers([names[k] for k in best], shares, tuple(names))

    # ------------------------------------------------------------------ class groups and bias

    def end_group(self) -> Report:
        """The classes so far are complete: the next new class opens another group. Refits the bias correction."""
        report = Report()
        if self.method is not None and self.classes.groups:
            mark = self._mark(self.method)
            try:
                self.method.end_group(self.examples_seen)
            except NotFinite as error:
                self._undo(self.method, mark)
                report.discarded.append(str(error))
            self.classes = self.classes.copy()
            self.classes.closed = True
            self.refit_bias("end-of-group", report)
        return report

    def refit_bias(self, cause: str = "request", report: Report | None = None) -> None:
        """Fit the correction anew on the buffer; from now on it is the one in force."""
        method, groups = self.method, self.classes.groups
        if self.settings.bias == "none" or method is None or not len(method.buffer):
            return
        outputs, targets = np.zeros((0, 0)), np.zeros(0, np.int64)
        if len(groups) > 1:
            slots = method.buffer.filled()
            if len(slots) > self.settings.bias_examples:
                # A generator of its own, so that asking for a refit does not change what is learned later.
                own = np.random.default_rng([self.settings.seed, self.examples_seen])
                slots = np.sort(own.choice(slots, self.settings.bias_examples, replace=False))
            scores = method.scores(method.buffer.inputs[slots])
            outputs = np.full(scores.shape, -np.inf)
            known = self.classes.known
            outputs[:, known] = scores[:, known]
            targets = method.buffer.classes[slots].astype(np.int64)
        self.bias = fit_bias(self.settings.bias, outputs, targets, groups, self.classes.current, self.bias.version + 1)
        if report is not None:
            report.refits.append(Refit(cause, groups[self.classes.current].name))

    def _refit_is_due(self, learned: int) -> bool:
        every = self.settings.bias_refit_every
        return every > 0 and self.examples_seen // every != (self.examples_seen - learned) // every

    def _meet(
        self, method: Method, labels: Sequence[str], groups: Sequence[str | None] | None, start: int, end: int
    ) -> tuple[int, Report | None]:
        """Make the classes of this batch known. Says where the batch ends: before another class group begins."""
        if all(label in self.classes.index for label in labels[start:end]):
            return end, None
        met = Report()
        self.classes = self.classes.copy()  # the old one stays as it was, for undoing this
        for place in range(start, end):
            label, group = labels[place], None if groups is None else groups[place]
            if label in self.classes.index:
                continue
            seen = self.examples_seen + place - start
            if self.classes.opens_group(label, group, seen):
                if place > start:
                    end = place
                    break
                if not self.classes.closed:
                    method.end_group(self.examples_seen)
                    self.refit_bias("new-class", met)
                self.classes.add(label, group, seen)
                met.new_groups.append(self.classes.groups[self.classes.current].name)
            else:
                self.classes.add(label, group, seen)
            met.new_classes.append(label)
        method.network.grow(len(self.classes.names), self.chance)
        method.buffer.know_classes(len(self.classes.names))
        method.grown()
        return end, met

    def _names(self, scores: NDArray[np.float32], known: list[int]) -> list[str | None]:
        """Answers from scores, among classes that were known at the time."""
        if not known:
            return [None] * len(scores)
        names, corrected = self.classes.names, self.bias.correct(scores)
        if len(known) < corrected.shape[1]:
            known.sort()
            return [names[known[k]] for k in corrected[:, known].argmax(axis=1).tolist()]
        return [names[k] for k in corrected.argmax(axis=1).tolist()]

    # ------------------------------------------------------------------ what is remembered

    @property
    def buffer(self) -> Buffer | None:
        """What is remembered, to look into; None before the first example."""
        return self.method.buffer if self.method else None

    def erase(self, *, id: str | None = None, label: str | None = None) -> int:
        """Forget what the buffer holds of this id, or of this class; it is never replayed again. Says how many."""
        buffer = self.buffer
        if buffer is None:
            return 0
        slots = buffer.filled()
        if id is not None:
            slots = slots[buffer.ids[slots] == id]
        if label is not None:
            slots = slots[buffer.classes[slots] == self.classes.index.get(label, -1)]
        return buffer.erase(slots) if id is not None or label is not None else 0

    # ------------------------------------------------------------------ state

    def state_dict(self, *, copy: bool = True, buffer: bool = True) -> dict[str, Any]:
        """Everything, as arrays and plain values. Without `copy`, arrays are the learner's own and go on changing.

        Without `buffer` it is what answering needs: whoever loads that can predict, but not learn.
        """
        method = self.method
        return {
            "format": FORMAT,
            "settings": self.settings.model_dump(mode="json"),
            "examples_seen": self.examples_seen,
            "chance": self.chance.state_dict(),
            "classes": self.classes.state_dict(),
            "bias": self.bias.state_dict(),
            "inputs": method and method.inputs.state_dict(),
            "network": method and method.network.arrays(copy=copy),
            "buffer": method.buffer.state_dict(copy=copy) if method and buffer else None,
            "method": method and method.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Become the learner that made this state. One made for another architecture is refused by name."""
        if state["format"] > FORMAT:
            raise StateIncompatible(f"the state has format {state['format']}, this version reads up to {FORMAT}")
        own = self.settings.model_dump(mode="json")
        if other := [name for name in ARCHITECTURE if state["settings"].get(name) != own[name]]:
            changes = ", ".join(f"{name} was {state['settings'].get(name)!r} and is {own[name]!r}" for name in other)
            raise StateIncompatible(f"the state does not fit these settings: {changes}", "start anew or set it back")
        self.method = None
        self._answers_only = state["network"] is not None and state["buffer"] is None
        if state["network"] is not None:
            method = self._build(tuple(state["inputs"]["shape"]), np.dtype(state["inputs"]["dtype"]))
            method.inputs.load_state_dict(state["inputs"])
            method.network.load_arrays(state["network"], self.settings.model)
            if not self._answers_only:
                method.buffer.load_state_dict(state["buffer"])
            method.load_state_dict(state["method"])
            method.buffer.know_classes(len(state["classes"]["names"]))
        self.classes.load_state_dict(state["classes"])
        self.bias = BiasCorrection(**state["bias"])
        self.examples_seen = state["examples_seen"]
        self.chance.load_state_dict(state["chance"])

    def _build(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Method:
        settings = self.settings
        inputs = Inputs(settings, shape, dtype)

        def new_network() -> Network:
            return build_network(settings, shape, self._weights)

        network = new_network()
        network.grow(len(settings.classes), self.chance)
        size = 0 if self._answers_only else settings.buffer_size
        buffer = Buffer(size, shape, dtype, EVICTIONS[settings.eviction]())
        buffer.know_classes(len(settings.classes))
        self.method = METHODS[settings.method](
            Parts(settings, inputs, network, buffer, self.decay, self.chance, new_network)
        )
        return self.method

    def _mark(self, method: Method) -> tuple[Any, ...]:
        """Remember how things stand before a step, cheaply: what a step replaces is kept, what it changes is copied."""
        return self.chance.mark(), self.classes, self.bias, method.network.mark(), method.inputs.mark()

    def _undo(self, method: Method, mark: tuple[Any, ...]) -> None:
        chance, self.classes, self.bias, network, inputs = mark
        self.chance.restore(chance)
        method.network.restore(network)
        method.inputs.restore(inputs)
