"""What is known of each class group, in a bounded number of series: the newest groups have their own, others share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np

from streamlearn.accuracy import SOURCES, Source
from streamlearn.daemon.core import Core
from streamlearn.metrics.ledger import Ledger
from streamlearn.metrics.values import Values

OWN_SERIES = 10  # of the newest groups
OLDER = "older"

GroupSource = tuple[str, Source]


def labels_of(groups: Sequence[str]) -> dict[str, str]:
    """Group -> the value of its label; `groups` from the oldest to the newest.

    A group that is really called `older` shares that series: people were free to name it so.
    """
    first = max(0, len(groups) - OWN_SERIES)
    return {name: name if place >= first else OLDER for place, name in enumerate(groups)}


class GroupMetrics:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._evaluated: Ledger[GroupSource, GroupSource] = Ledger()
        self._correct: Ledger[GroupSource, GroupSource] = Ledger()
        self._predicted: Ledger[str, str] = Ledger()
        evaluated, correct = self._outcomes()
        self._evaluated.begin(evaluated)
        self._correct.begin(correct)
        self._predicted.begin(core.accuracy.predicted)

    def _outcomes(self) -> tuple[dict[GroupSource, int], dict[GroupSource, int]]:
        tallies = self._core.accuracy.tallies
        every = [((name, source), tally) for source in SOURCES for name, tally in tallies[source].items()]
        return {key: tally.evaluated for key, tally in every}, {key: tally.correct for key, tally in every}

    def add_to(self, values: Values) -> None:
        names = [group.name for group in self._core.learner.classes.groups]
        labels = labels_of(names)
        self._add_counts(values, labels)
        self._add_accuracy(values, names[0] if names else "", labels)
        self._add_means(values, labels)
        self._add_buffer(values, labels)

    def _add_counts(self, values: Values, labels: Mapping[str, str]) -> None:
        evaluated, correct = self._outcomes()
        both = {(name, source): (label, source) for name, label in labels.items() for source in SOURCES}
        for name, ledger, numbers in (
            ("predictions_evaluated_total", self._evaluated, evaluated),
            ("predictions_correct_total", self._correct, correct),
        ):
            booked = ledger.book(numbers, both)
            for label, source in dict.fromkeys(chain(both.values(), ((OLDER, source) for source in SOURCES))):
                values.add(name, booked.get((label, source), 0), label, source)
        predicted = self._predicted.book(self._core.accuracy.predicted, labels)
        for label in dict.fromkeys((*labels.values(), OLDER)):
            values.add("predicted_group_total", predicted.get(label, 0), label)

    def _add_accuracy(self, values: Values, oldest: str, labels: Mapping[str, str]) -> None:
        """Of several groups in one series: of all their recent answers together."""
        values.add_each("accuracy_ratio", ())
        values.add_each("oldest_group_accuracy_ratio", ())
        for source, tallies in self._core.accuracy.tallies.items():
            recent: dict[str, tuple[int, int]] = {}
            for name, label in labels.items():
                if name in tallies:
                    answers, right = tallies[name].recent
                    before = recent.get(label, (0, 0))
                    recent[label] = (before[0] + answers, before[1] + right)
            if oldest in tallies and (ratio := tallies[oldest].now) is not None:
                values.add("oldest_group_accuracy_ratio", ratio, oldest, source)
            for label, (answers, right) in recent.items():
                if answers:
                    values.add("accuracy_ratio", right / answers, label, source)

    def _add_means(self, values: Values, labels: Mapping[str, str]) -> None:
        bias, accuracy = self._core.learner.bias, self._core.accuracy
        betas = bias.betas or {}
        of: dict[str, Callable[[str], float]] = {
            "forgetting_ratio": lambda name: accuracy.forgetting(name) or 0.0,  # it was never known better
            "bias_alpha": lambda name: bias.alpha if name == bias.group else 1.0,
            "bias_beta": lambda name: betas.get(name, 0.0),
        }
        for metric, value in of.items():
            found: dict[str, list[float]] = {}
            for name, label in labels.items():
                found.setdefault(label, []).append(value(name))
            values.add_each(metric, ((label, sum(many) / len(many)) for label, many in found.items()))

    def _add_buffer(self, values: Values, labels: Mapping[str, str]) -> None:
        learner = self._core.learner
        counts, losses = dict.fromkeys((*labels.values(), OLDER), 0), dict.fromkeys(labels.values(), 0.0)
        if (buffer := learner.buffer) is not None:
            slots = buffer.filled()
            sums = np.bincount(buffer.classes[slots], buffer.losses[slots], len(buffer.counts)).tolist()
            for group in learner.classes.groups:
                label = labels[group.name]
                counts[label] += sum(buffer.counts[output] for output in group.classes)
                losses[label] += sum(sums[output] for output in group.classes)
        values.add_each("buffer_examples", counts.items())
        values.add_each(
            "buffer_mean_loss", ((label, losses[label] / counts[label]) for label in losses if counts[label])
        )
