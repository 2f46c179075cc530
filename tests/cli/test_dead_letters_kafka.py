"""`streamlearn dead-letters` on a real Kafka topic."""

from __future__ import annotations

import json

from streamlearn.errors import BadRecord
from streamlearn.records.decode import Decoder
from streamlearn.records.record import Example, Record
from streamlearn.stream.url import open_stream
from tests.broker import Broker

from .command import streamlearn


def test_list_repair_and_replay_once(broker: Broker) -> None:
    url = f"{broker.url}/{broker.new_topic()}"
    stream = open_stream(url)
    stream.append([Record(b'{"x": [1, 2]}', b"a"), Record(b"{", b"b", (("label", b"c"),))])
    position = stream.open(None)
    while len(records := [*stream.poll(10, 10.0)]) < 2:
        position = stream.open(position)
    for record in records:
        try:
            Decoder().decode(record)
        except BadRecord as error:
            stream.send_dead_letter(record, error.reason, error.message)

    def listed() -> list[tuple[int, str, str, bool]]:
        letters = json.loads(streamlearn("dead-letters", "list", "--json", "--stream", url).stdout)
        return [(one["number"], one["place"], one["reason"], one["replayed"]) for one in letters]

    assert listed() == [(0, "0:0", "no-label", False), (1, "0:1", "bad-json", False)]
    done = streamlearn("dead-letters", "replay", "--all", "--set", "label=boot", "--stream", url)
    assert done.stderr == ""
    assert done.stdout.endswith(f"Sent 1 of 2 to {url}.\n")
    assert [replayed for *_, replayed in listed()] == [True, False]
    again = streamlearn("dead-letters", "replay", "0", "--set", "label=boot", "--stream", url)
    assert again.returncode == 2
    assert "letter 0 was replayed before" in again.stderr
    assert sum(stream.ends().values()) == 3

    (sent,) = stream.poll(10, 10.0)
    decoded = Decoder().decode(sent)
    assert isinstance(decoded, Example)
    assert (decoded.label, decoded.id) == ("boot", "a")
    assert sent.headers == (("label", b"boot"), ("streamlearn.replayed-from", b"0"))

    # What the notes say to people must not confuse the daemon: a letter of its own is still sent once.
    stream.open(position)
    assert not stream.send_dead_letter(records[1], "bad-json", "again")
    assert stream.send_dead_letter(sent, "wrong-shape", "new")
    stream.close()


def test_a_broker_that_is_not_there() -> None:
    done = streamlearn("dead-letters", "list", "--stream", "kafka://127.0.0.1:1/t")
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
