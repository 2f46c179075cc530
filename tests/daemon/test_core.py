"""What a record does to the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamlearn.checkpoint.tree import flatten
from streamlearn.daemon.core import Core, packed
from streamlearn.errors import BadRecord, StateIncompatible, StreamError
from streamlearn.learner import Learner
from streamlearn.records.encode import encode_event, encode_example
from streamlearn.records.record import Position, Record
from streamlearn.settings.daemon import Settings
from tests.records.mixed import examples, mixed

LEARNER = {"buffer_size": 30, "batch_size": 5, "replay_batch": 5, "group_span": 50}


class Letters(list[tuple[int, str]]):
    def __call__(self, record: Record, error: BadRecord) -> None:
        self.append((record.offset, error.reason))


def new_core(letters: Letters | None = None, **tables: dict[str, Any]) -> Core:
    settings = Settings.model_validate({**tables, "learner": LEARNER | tables.get("learner", {})})
    core = Core(settings, Learner(settings.learner), Letters() if letters is None else letters)
    core.position = Position({0: 0}, "stream")
    return core


def feed(core: Core, records: list[Record], first: int = 0) -> None:
    for place, record in enumerate(records):
        core.take(record._replace(offset=first + place))


def state_of(core: Core) -> dict[str, Any]:
    """Whole and apart from the core, as it would come back from the disk."""
    tree = packed(core.state_dict())
    buffer = tree["learner"]["buffer"]
    if buffer is not None:
        frozen = buffer["inputs"]
        buffer["inputs"] = frozen.read(np.arange(len(frozen.keys)))
        frozen.release()
    return tree


def reloaded(core: Core) -> Core:
    other = Core(core.settings, Learner(core.settings.learner), Letters())
    other.load_state_dict(state_of(core))
    return other


def assert_same(one: Core, other: Core) -> None:
    first, second = flatten(state_of(one)), flatten(state_of(other))
    assert first.values == second.values
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)


def test_interrupted_anywhere_it_goes_on_as_if_it_had_not_been() -> None:
    records = mixed(300)
    whole = new_core()
    feed(whole, records)
    broken = new_core()
    for place, record in enumerate(records):
        broken.take(record._replace(offset=place))
        if place % 19 == 3:
            broken = reloaded(broken)
    assert_same(whole, broken)


def test_a_batch_depends_on_the_records_alone() -> None:
    core = new_core()
    feed(core, examples(12))
    assert (core.counters.examples_learned, core.counters.steps) == (10, 2)
    feed(core, [encode_event("end-of-group")], 12)
    assert (core.counters.examples_learned, core.counters.steps) == (12, 3)
    assert core.position == Position({0: 13}, "stream")


def test_a_bad_record_becomes_a_letter_before_the_position_moves() -> None:
    places = []

    def refuse(record: Record, error: BadRecord) -> None:
        assert core.position is not None
        places.append(core.position.offsets[0])
        if len(places) == 1:
            raise StreamError("no room for letters")

    settings = Settings.model_validate({"learner": LEARNER})
    core = Core(settings, Learner(settings.learner), refuse)
    core.position = Position({0: 5}, "stream")
    bad = Record(b"rubbish", offset=5)
    with pytest.raises(StreamError, match="no room"):
        core.take(bad)
    assert (core.position, core.counters.records_consumed) == (Position({0: 5}, "stream"), 0)
    core.take(bad)
    assert places == [5, 5]
    assert (core.position, core.counters.rejected["bad-json"]) == (Position({0: 6}, "stream"), 1)


@pytest.mark.parametrize(
    ("first", "learner"),
    [
        (Record(b'{"x": [[0.5, 1], [2, 3]], "label": "ant"}'), {}),  # numbers with fractions in two dimensions
        (
            Record(b"1234", headers=(("content-type", b"application/octet-stream"), ("shape", b"4"), ("label", b"a"))),
            {},
        ),
        (encode_example(np.zeros((8, 8), np.uint8), "ant"), {"normalise": "running"}),
    ],
)
def test_what_no_learner_could_take_is_refused_even_as_the_first(first: Record, learner: dict[str, Any]) -> None:
    letters = Letters()
    core = new_core(letters, learner=learner)
    feed(core, [first, *examples(10)])
    assert letters == [(0, "wrong-shape")]
    assert core.counters.examples_learned == 10


def test_the_first_input_settles_the_shape_even_if_it_was_only_held_out() -> None:
    first, *_ = examples(1, length=6)
    letters = Letters()
    core = new_core(letters)
    feed(core, [first._replace(headers=(*first.headers, ("split", b"eval"))), encode_event("flush")])
    other = Core(core.settings, Learner(core.settings.learner), letters)
    other.load_state_dict(state_of(core))
    feed(other, examples(1, length=7), 2)
    assert letters == [(2, "wrong-shape")]


def test_one_class_too_many_is_refused_and_one_whose_step_was_undone_does_not_count() -> None:
    letters = Letters()
    core = new_core(letters, learner={"max_classes": 2, "batch_size": 2, "learning_rate": 0.03})
    feed(core, examples(20, classes=("ant",)))
    huge = np.full(6, 3e38, np.float32)
    feed(core, [encode_example(huge, label) for label in ("bee", "ant")], 20)
    assert core.counters.steps_discarded == 1
    assert_same(core, reloaded(core))
    for going_on in (reloaded(core), core):
        letters.clear()
        going_on._refuse = letters
        feed(going_on, examples(20, classes=("cat",)), 22)
        feed(going_on, examples(1, classes=("dog",)), 42)
        assert letters == [(42, "too-many-classes")]
        assert set(going_on.learner.classes.index) == {"ant", "cat"}


def huge_batches(count: int, batch: int = 5) -> list[Record]:
    one = np.full(6, 3e38, np.float32)
    return [encode_example(one, ("ant", "bee")[place % 2]) for place in range(count * batch)]


def test_ten_steps_in_a_row_that_are_not_finite_are_the_end() -> None:
    core = new_core()
    feed(core, [*examples(50), *huge_batches(9), *examples(5)])
    assert (core.counters.steps_discarded, core.counters.discarded_in_a_row) == (9, 0)
    before = state_of(core)["learner"]
    with pytest.raises(StreamError, match="10 steps in a row were not finite") as raised:
        feed(core, huge_batches(10), 100)
    assert "learning_rate" in raised.value.hint
    assert core.position == Position({0: 150}, "stream")
    after = state_of(core)["learner"]
    assert flatten(before).values == flatten(after).values
    for name, array in flatten(before).arrays.items():
        np.testing.assert_array_equal(array, flatten(after).arrays[name], err_msg=name)


def test_a_kill_does_not_change_where_the_tenth_is() -> None:
    core = new_core()
    feed(core, [*examples(50), *huge_batches(6)])
    core = reloaded(core)
    core.begin_anew()
    feed(core, huge_batches(3), 80)
    assert core.counters.discarded_in_a_row == 9
    with pytest.raises(StreamError, match="10 steps"):
        feed(core, huge_batches(1), 95)
    core = reloaded(core)
    core.begin_anew()  # after it had stopped for them
    assert core.counters.discarded_in_a_row == 0


def test_an_event_is_carried_out_even_where_it_brings_the_tenth() -> None:
    core = new_core()
    feed(core, [*examples(50), *huge_batches(9), *huge_batches(1)[:3]])
    assert not core.learner.classes.closed
    with pytest.raises(StreamError, match="10 steps"):
        feed(core, [encode_event("end-of-group")], 98)
    assert core.learner.classes.closed


def test_more_than_half_bad_stops_it_and_a_new_start_forgives() -> None:
    core = new_core(records={"bad_window": 10})
    feed(core, [*examples(5), *[Record(b"?")] * 5])
    with pytest.raises(
        StreamError, match=r"60% of the last 10 records are bad \(the newest: bad-json: .*reads no further"
    ):
        feed(core, [Record(b"?")], 10)
    assert core.position == Position({0: 11}, "stream")
    other = reloaded(core)
    other.begin_anew()
    feed(other, [Record(b"?")] * 9, 11)
    with pytest.raises(StreamError, match="100%"):
        feed(other, [Record(b"?")], 20)


def test_partitions_in_turn() -> None:
    core = new_core()
    core.position = Position({0: 0, 1: 7, 4: 0}, "stream", 0)
    for partition, record in zip((0, 1, 4, 0), examples(4), strict=True):
        core.take(record._replace(partition=partition, offset=7))
    assert core.position == Position({0: 8, 1: 8, 4: 8}, "stream", 1)


def test_a_state_of_a_newer_format_is_refused_with_both_numbers() -> None:
    core = new_core()
    with pytest.raises(StateIncompatible, match="has format 9, this version of streamlearn reads up to 2"):
        core.load_state_dict(state_of(core) | {"format": 9})


def test_what_happened_is_told_in_order() -> None:
    core = new_core()
    feed(core, [*examples(10), Record(b"?"), encode_event("flush")])
    told = [(one.kind, one.fields) for one in core.happenings]
    assert [kind for kind, _ in told] == ["new-class", "new-class", "dead-letter", "bias-refit", "flush"]
    assert told[2][1] == {"reason": "bad-json", "message": told[2][1]["message"], "partition": 0, "offset": 10}
    assert told[4][1] == {"examples": 10}


def test_a_state_of_the_first_format_is_read() -> None:
    core = new_core(Letters())
    feed(core, mixed(200))
    state = state_of(core)
    del state["history"], state["held_out_at"], state["accuracy"]["confusion"]
    other = new_core(Letters())
    other.load_state_dict(state | {"format": 1})
    assert other.counters.examples_learned == core.counters.examples_learned
    assert other.history()["examples"] == [other.counters.examples_learned]
