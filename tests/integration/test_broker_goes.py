"""A broker that goes and comes back, a topic that is made again, offsets that somebody else has changed."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlearn.records.record import Record
from streamlearn.stream.kafka_library import OffsetAndMetadata, TopicPartition
from streamlearn.stream.url import open_stream
from tests.broker import Broker
from tests.records.mixed import examples, mixed
from tests.serving import Serve, digest, run, saved_state

AWAY = "the stream does not answer; trying again"


def append(url: str, records: list[Record]) -> None:
    stream = open_stream(url)
    stream.append(records)
    stream.close()


@pytest.fixture
def passing_broker(own_broker: Broker) -> Iterator[Broker]:
    """One that may be stopped; it runs again for the next test, whatever happened."""
    yield own_broker
    if own_broker._process is None:
        own_broker.start()


def check_broker_away(broker: Broker, tmp_path: Path, seconds: float) -> None:
    url, records = f"{broker.url}/{broker.new_topic()}", mixed(2000)
    append(url, records[:1000])
    with Serve(tmp_path / "state", url) as daemon:
        daemon.learned(300)
        broker.stop()
        daemon.hear(AWAY)
        time.sleep(seconds)  # the broker is away for so long; nothing is waited for
        assert len(daemon.said(AWAY)) <= 1 + seconds // 30
        broker.start()
        began = time.monotonic()
        append(url, records[1000:1500])
        before = saved_state(tmp_path / "state")["counters"]["examples_learned"]
        daemon.learned(before + 50)
        assert time.monotonic() - began < 15
        append(url, records[1500:])
        daemon.passed(len(records))
        assert daemon.stop() == 0
    run(tmp_path / "undisturbed", url)
    assert digest(tmp_path / "state") == digest(tmp_path / "undisturbed")


def test_learning_goes_on_soon_after_the_broker_is_back(passing_broker: Broker, tmp_path: Path) -> None:
    check_broker_away(passing_broker, tmp_path, seconds=3)


@pytest.mark.long
def test_learning_goes_on_after_a_minute_without_a_broker(passing_broker: Broker, tmp_path: Path) -> None:
    check_broker_away(passing_broker, tmp_path, seconds=65)


def test_a_broker_that_is_absent_at_the_start_is_waited_for(passing_broker: Broker, tmp_path: Path) -> None:
    url = f"{passing_broker.url}/{passing_broker.new_topic()}"
    append(url, examples(500))
    passing_broker.stop()
    with Serve(tmp_path / "stopped", url) as daemon:
        daemon.hear(AWAY)
        assert daemon.stop() == 0
    assert not (tmp_path / "stopped" / "checkpoints").exists()
    with Serve(tmp_path / "state", url) as daemon:
        assert "no broker answers" in daemon.hear(AWAY)["error"]
        passing_broker.start()
        daemon.learned(500)
        assert daemon.said(AWAY)[1:] == [], "more often than once in 30 seconds"
        assert daemon.stop() == 0


def test_it_stops_in_time_when_the_broker_hangs(passing_broker: Broker, tmp_path: Path) -> None:
    url = f"{passing_broker.url}/{passing_broker.new_topic()}"
    append(url, examples(500))
    with Serve(tmp_path / "state", url) as daemon:
        daemon.learned(500)
        passing_broker.signal(signal.SIGSTOP)
        try:
            daemon.hear(AWAY)
            assert daemon.stop() == 0
        finally:
            passing_broker.signal(signal.SIGCONT)
    assert saved_state(tmp_path / "state")["position"]["offsets"] == {"0": 500}


def test_a_topic_that_was_made_again_ends_it_with_what_to_do(broker: Broker, tmp_path: Path) -> None:
    topic, state_dir = broker.new_topic(), tmp_path / "state"
    url = f"{broker.url}/{topic}"
    append(url, examples(300))
    with Serve(state_dir, url) as daemon:
        daemon.learned(300)
        broker.delete(topic)
        broker.create(topic)
        append(url, examples(400, seed=1))
        assert daemon.end(seconds=10) == 4
    with Serve(state_dir, url) as later:
        assert later.end() == 4
    for one in (daemon, later):
        for part in (f"topic {topic}", "partition 0", "wanted offset 300", "available 0 to ", "--from-earliest"):
            assert part in one.errors
    assert "available 0 to 400" in later.errors  # the first may have noticed before there was a record
    assert saved_state(state_dir)["counters"]["examples_learned"] == 300
    run(state_dir, url, "--from-earliest")
    state = saved_state(state_dir)
    assert state["counters"]["examples_learned"] == 700
    assert state["position"]["offsets"] == {"0": 400}


def test_records_that_are_deleted_before_they_are_learned_end_it(broker: Broker, tmp_path: Path) -> None:
    topic, state_dir = broker.new_topic(), tmp_path / "state"
    url = f"{broker.url}/{topic}"
    append(url, examples(300))
    run(state_dir, url)
    append(url, examples(200, seed=1))
    with broker.admin() as admin:
        admin.delete_records({TopicPartition(topic, 0): 400})
    with Serve(state_dir, url) as daemon:
        assert daemon.end() == 4
    for part in (f"topic {topic}", "partition 0", "wanted offset 300", "available 400 to 500", "--from-earliest"):
        assert part in daemon.errors


def test_what_others_do_to_the_group_changes_nothing(broker: Broker, tmp_path: Path) -> None:
    topic, group, records = broker.new_topic(), "streamlearn", mixed(1500)
    url, partition = f"{broker.url}/{topic}", TopicPartition(topic, 0)

    def committed() -> int | None:
        (offsets,) = admin.list_group_offsets([group]).values()
        return int(offsets[partition].offset) if partition in offsets else None

    with broker.admin() as admin:
        append(url, records[:500])
        run(tmp_path / "state", url)
        assert committed() == 500
        admin.alter_group_offsets(group, {partition: OffsetAndMetadata(7, "", -1)})
        append(url, records[500:1000])
        run(tmp_path / "state", url)
        assert committed() == 1000
        admin.delete_groups([group])
        append(url, records[1000:])
        run(tmp_path / "state", url)
        run(tmp_path / "whole", url)
    assert digest(tmp_path / "state") == digest(tmp_path / "whole")
