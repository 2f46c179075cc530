"""How well each class group is known: test-then-train on the stream, and on held-out records, now and over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from streamlearn.accuracy.confusion import Pair, RecentConfusion, RoundConfusion
from streamlearn.accuracy.tally import Tally

Source = Literal["prequential", "eval"]
SOURCES: tuple[Source, ...] = get_args(Source)


class Accuracy:
    """A tally for each class group and source, which group the answers went to, and what was taken for what.

    Held-out records come in rounds: those between two examples learned are answers of one and the same model, so the
    first one after learning starts its group's tally anew, and the accuracy of a round is exact, not a mixture.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self.tallies: dict[Source, dict[str, Tally]] = {source: {} for source in SOURCES}
        self.predicted: Counter[str] = Counter()  # answers by the group of the class they named
        self._recent, self._round = RecentConfusion(window), RoundConfusion()
        self._stale: set[str] = set()  # groups whose held-out outcomes are of an older model

    def add(
        self, source: Source, labels: Sequence[str], answers: Sequence[str | None], group_of: Mapping[Any, str]
    ) -> None:
        """Classes and the answers given. One that belongs to no group was never learned, and does not count."""
        hits: dict[str, list[bool]] = {}
        predicted = self.predicted
        for label, answer in zip(labels, answers, strict=True):
            if label in group_of:
                hits.setdefault(group_of[label], []).append(label == answer)
                if answer in group_of:
                    predicted[group_of[answer]] += 1
        tallies = self.tallies[source]
        for group, outcomes in hits.items():
            if source == "eval" and group in self._stale:
                tallies[group].start_round()
                self._round.start_round(group)
                self._stale.discard(group)
            if group not in tallies:
                tallies[group] = self._tally(source)
            tallies[group].add(outcomes)
        pairs = zip(labels, answers, strict=True)
        if source == "prequential":
            self._recent.add(pairs)
            for group in hits:
                tallies[group].settle()
        else:
            for pair in pairs:
                if pair[0] in group_of:
                    self._round.add(group_of[pair[0]], pair)

    def _tally(self, source: Source) -> Tally:
        return Tally(self._window if source == "prequential" else None)

    def learned(self) -> None:
        """The model has changed: the round of held-out records, if there was one, is over."""
        held_out = self.tallies["eval"]
        if len(self._stale) < len(held_out):
            for group in held_out.keys() - self._stale:
                held_out[group].settle()
            self._stale = set(held_out)

    def now(self, source: Source, group: str) -> float | None:
        tally = self.tallies[source].get(group)
        return None if tally is None else tally.now

    def seen(self, group: str) -> int:
        """Examples of the group that were answered, from either source."""
        return sum(tallies[group].evaluated for tallies in self.tallies.values() if group in tallies)

    def forgetting(self, group: str) -> float | None:
        """From held-out records if there are any: they alone come for old groups, too."""
        tally = self.tallies["eval"].get(group) or self.tallies["prequential"].get(group)
        return None if tally is None else tally.forgetting

    def confusion(self, source: Source) -> Counter[Pair]:
        """How often each answer was given to each class: by the recent models on the stream, by one on held-out
        records.
        """
        return self._recent.counts() if source == "prequential" else self._round.counts()

    def state_dict(self) -> dict[str, Any]:
        return {
            **{
                source: {name: t.state_dict() for name, t in tallies.items()}
                for source, tallies in self.tallies.items()
            },
            "predicted": dict(self.predicted),
            "confusion": {"recent": self._recent.state_dict(), "round": self._round.state_dict()},
            "stale": sorted(self._stale),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for source in SOURCES:
            self.tallies[source] = {}
            for name, tally in state[source].items():
                self.tallies[source][name] = self._tally(source)
                self.tallies[source][name].load_state_dict(tally)
        self.predicted = Counter(state["predicted"])
        if "confusion" in state:  # the first format had none
            self._recent.load_state_dict(state["confusion"]["recent"])
            self._round.load_state_dict(state["confusion"]["round"])
        self._stale = set(state["stale"])
