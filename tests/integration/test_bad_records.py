"""Bad records through the real daemon: kept once each, with the reason; too many of them, or nowhere to keep them."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from streamlearn.errors import BadRecord
from streamlearn.learner import texts
from streamlearn.records.decode import Decoder
from streamlearn.records.encode import encode_example
from streamlearn.records.record import Event, Record
from streamlearn.stream.url import open_stream
from tests.broker import Broker
from tests.cli.command import streamlearn
from tests.records.mixed import examples
from tests.records.test_fuzz import GREY, MAKERS, damaged, nested, with_odd_headers
from tests.serving import SMALL, Serve, digest, run, saved_state

PREFIX = "streamlearn.error."
UNLABELLED = Record(json.dumps({"x": GREY.tolist()}).encode(), b"without a label")


def fuzzed(seed: int) -> list[Record]:
    """Two good pictures for each that may be anything."""
    rng = random.Random(seed)
    records = [encode_example(GREY, "boot", id="first"), UNLABELLED]
    for number in range(200):
        for half in range(2):
            noise = np.random.default_rng([number, half]).integers(0, 256, GREY.shape, dtype=np.uint8)
            records.append(encode_example(noise, rng.choice(["boot", "bag", "coat"]), id=f"{number}.{half}"))
        maker = nested if number % 50 == 0 else rng.choice(MAKERS)
        record = with_odd_headers(maker(rng), rng)
        if len(record.value) > 900_000:
            record = Record(damaged(record.value[:1000], rng))
        records.append(record)
    return records


def judged(records: list[Record]) -> tuple[Counter[str], dict[int, str]]:
    """What the daemon should make of them: how many of each kind, and the reason for each bad one by offset."""
    decoder, kinds, reasons = Decoder(), Counter[str](), dict[int, str]()
    for offset, record in enumerate(records):
        try:
            found = decoder.decode(record)
        except BadRecord as error:
            reasons[offset] = error.reason
            continue
        if isinstance(found, Event):
            kinds["event"] += 1
        elif (found.input.shape, found.input.dtype) != (GREY.shape, GREY.dtype):
            reasons[offset] = "wrong-shape"
        else:
            kinds[found.split] += 1
    return kinds, reasons


def letters_of(url: str) -> list[Record]:
    stream = open_stream(url)
    try:
        return list(stream.dead_letters())
    finally:
        stream.close()


def append(url: str, records: list[Record]) -> None:
    stream = open_stream(url)
    stream.append(records)
    stream.close()


@pytest.mark.parametrize("url", ["log", "kafka"], indirect=True)
def test_each_bad_record_is_kept_once_and_a_repaired_one_is_learned(tmp_path: Path, url: str) -> None:
    state_dir, records = tmp_path / "state", fuzzed(seed=5)
    kinds, reasons = judged(records)
    assert len(set(reasons.values())) > 8, "the mix should be bad in many ways"
    append(url, records)
    settings = {**SMALL, "learner.buffer_size": 1000}

    # Killed before its first checkpoint, when letters have been sent: all of them will be met again.
    never = {"checkpoint.every_seconds": 0, "checkpoint.every_examples": 0}
    with Serve(state_dir, url, settings={**settings, **never}) as daemon:
        daemon.wait(lambda: len(letters_of(url)) > 20, "20 dead letters")
    assert not (state_dir / "checkpoints").exists()
    run(state_dir, url, settings=settings)

    counters = saved_state(state_dir)["counters"]
    assert counters["records_consumed"] == len(records)
    assert counters["rejected"] == {**dict.fromkeys(counters["rejected"], 0), **Counter(reasons.values())}
    state = saved_state(state_dir)
    assert counters["examples_learned"] + len(state["training"]["ids"]) == kinds["train"]
    assert counters["examples_evaluated"] + len(state["held_out"]["ids"]) == kinds["eval"]
    assert kinds.total() + len(reasons) == len(records)

    letters = sorted(letters_of(url), key=lambda letter: int(dict(letter.headers)[PREFIX + "offset"]))
    assert [int(dict(letter.headers)[PREFIX + "offset"]) for letter in letters] == list(reasons)
    for letter, (offset, reason) in zip(letters, reasons.items(), strict=True):
        original, headers = records[offset], dict(letter.headers)
        assert letter.value == original.value
        assert letter.key == original.key
        assert letter.headers[: len(original.headers)] == original.headers
        assert headers[PREFIX + "reason"] == reason.encode()
        assert headers[PREFIX + "message"]
        assert headers[PREFIX + "partition"] == b"0"

    listed = json.loads(streamlearn("dead-letters", "list", "--limit", "1000", "--json", "--stream", url).stdout)
    (number,) = [one["number"] for one in listed if one["place"] == "0:1"]
    done = streamlearn("dead-letters", "replay", str(number), "--set", "label=boot", "--stream", url)
    assert done.returncode == 0, done.stderr
    run(state_dir, url, settings=settings)
    state = saved_state(state_dir)
    assert state["counters"]["examples_learned"] + len(state["training"]["ids"]) == kinds["train"] + 1
    assert state["counters"]["rejected"] == counters["rejected"]
    ids = [*texts.unpack(state["learner"]["buffer"]["ids"]), *state["training"]["ids"]]
    assert ids.count("without a label") == 1


def test_more_than_half_of_the_last_thousand_bad_stops_it_and_a_new_start_counts_anew(tmp_path: Path) -> None:
    state_dir, url = tmp_path / "state", f"log:{tmp_path / 'stream.log'}"
    good = examples(1100)
    append(url, [*good[:600], *[Record(b"rubbish")] * 2000, *good[600:]])
    for offset, share in ((1101, "50%"), (2101, "100%")):  # 501 of the last 1,000; then 1,000 counted anew
        with Serve(state_dir, url) as daemon:
            assert daemon.end() == 3
        assert f"error: {share} of the last 1,000 records are bad" in daemon.errors
        assert "bad-json" in daemon.errors
        assert "hint: look at them with 'streamlearn dead-letters list'" in daemon.errors
        state = saved_state(state_dir)
        assert state["position"]["offsets"] == {"0": offset}
        assert state["counters"]["rejected"]["bad-json"] == offset - 600
        assert len(letters_of(url)) == offset - 600
    run(state_dir, url)
    counters = saved_state(state_dir)["counters"]
    assert (counters["examples_learned"], counters["rejected"]["bad-json"]) == (1100, 2000)


def test_a_dead_letter_that_cannot_be_written_stops_the_position_on_the_log(tmp_path: Path) -> None:
    path = tmp_path / "stream.log"
    url, good = f"log:{path}", examples(400)
    append(url, [*good[:200], Record(b"rubbish"), *good[200:]])
    settings = {**SMALL, "stream.log.busy_timeout": 0.3}
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # as somebody's long transaction would
    with Serve(tmp_path / "state", url, settings=settings) as daemon:
        daemon.hear("the stream does not answer; trying again")
        assert daemon.stop() == 0
    state = saved_state(tmp_path / "state")
    assert state["position"]["offsets"] == {"0": 200}
    assert state["counters"]["examples_learned"] == 200
    with Serve(tmp_path / "state", url, settings=settings) as daemon:
        daemon.hear("the stream does not answer; trying again")
        other.execute("ROLLBACK")
        daemon.learned(400)
        assert daemon.stop() == 0
    other.close()
    assert len(letters_of(url)) == 1
    run(tmp_path / "undisturbed", url, settings=settings)
    assert digest(tmp_path / "state") == digest(tmp_path / "undisturbed")


def test_a_dead_letter_that_cannot_be_written_stops_the_position_on_kafka(tmp_path: Path, broker: Broker) -> None:
    topic, good = broker.new_topic(), examples(400)
    url, letters = f"{broker.url}/{topic}", f"{topic}.dead-letters"
    broker.create(letters, max_message_bytes="50")
    append(url, [*good[:200], Record(b"rubbish"), *good[200:]])
    with Serve(tmp_path / "state", url) as daemon:
        assert daemon.end() == 3
    assert "a record is larger than the broker takes" in daemon.errors
    state = saved_state(tmp_path / "state")
    assert state["position"]["offsets"] == {"0": 200}
    assert state["counters"]["examples_learned"] == 200
    assert letters_of(url) == []
    broker.delete(letters)
    run(tmp_path / "state", url)
    assert len(letters_of(url)) == 1
    assert saved_state(tmp_path / "state")["counters"]["examples_learned"] == 400
